// The part of a session that is about sound: its format, its order, and the words that come back.
#include <utility>

#include "audio/sound_limits.h"
#include "base/clock.h"
#include "base/in_quotes.h"
#include "server/http/request_id.h"
#include "server/wyoming/bad_event.h"
#include "server/wyoming/session.h"
#include "server/wyoming/utterance_job.h"
#include "text/language.h"

namespace syrinx::server::wyoming {
namespace {

constexpr const char* kRoute = "wyoming transcribe";
constexpr int kMaxWidth = 4;  // bytes of a sample

// The host's messages name routes, which mean nothing here.
HttpError no_such_model(const std::string& name) {
  return {.status = 404,
          .message = name.empty()
                         ? "no model of this server recognises speech; the operator can name one in recognition_model"
                         : fmt::format("there is no model {}; the answer to `describe` has its name", in_quotes(name)),
          .code = "model_not_found"};
}

// The format in the event's 'rate', 'width' and 'channels'; missing ones stay as they are.
tl::expected<PcmFormat, HttpError> format_of(const Event& event, PcmFormat format) {
  const SoundLimits limits;
  int width = format.bits / 8;
  const auto take = [&](const char* field, int min, int max, int& number) -> std::optional<HttpError> {
    const Json* const value = event.data.find(field);
    const bool is_missing = value == nullptr || value->is_null();
    if (is_missing && number > 0) return std::nullopt;
    if (is_missing || value->whole() == nullptr || *value->whole() < min || *value->whole() > max)
      return bad_event(
          fmt::format("the '{}' of '{}' must be a whole number from {} to {}", field, event.type, min, max));
    number = static_cast<int>(*value->whole());
    return std::nullopt;
  };
  if (auto fault = take("rate", limits.min_rate_hz, limits.max_rate_hz, format.rate_hz))
    return tl::unexpected(std::move(*fault));
  if (auto fault = take("width", 1, kMaxWidth, width)) return tl::unexpected(std::move(*fault));
  if (auto fault = take("channels", 1, limits.max_channels, format.channels)) return tl::unexpected(std::move(*fault));
  format.bits = 8 * width;
  return format;
}

bool are_same(const PcmFormat& a, const PcmFormat& b) {
  return a.rate_hz == b.rate_hz && a.bits == b.bits && a.channels == b.channels;
}

}  // namespace

// The event's settings hold for the next recording.
Session::Said Session::transcribe(const Event& event) {
  if (sound_)
    return refuse(kRoute, bad_event("'transcribe' came before the last sound's 'audio-stop'; send that first"));
  std::string language;
  for (const char* field : {"name", "language"}) {
    const Json* const value = event.data.find(field);
    if (value == nullptr || value->is_null()) continue;
    if (value->string() == nullptr || value->string()->size() > kMaxNameBytes)
      return refuse(kRoute, bad_event(fmt::format("'{}' must be a text of at most {} bytes", field, kMaxNameBytes)));
  }
  const auto models = host_.loaded_models();
  if (!models) return refuse(kRoute, models.error());
  const std::string* const name = event.text("name");
  const std::string model = name != nullptr ? *name : "";
  if (!models->recognition || !models->recognition->is_called(model))
    return refuse(kRoute, no_such_model(models->recognition ? model : ""));
  if (const std::string* const asked = event.text("language"); asked != nullptr && !text::is_any_language(*asked)) {
    auto known = models->recognition->language_called(*asked);
    if (!known) return refuse(kRoute, known.error());
    language = std::move(*known);
  }
  language_ = std::move(language);
  return {};
}

Session::Said Session::audio_start(const Event& event) {
  if (sound_)
    return refuse(kRoute, bad_event("'audio-start' came before the last sound's 'audio-stop'; send that first"));
  const auto format = format_of(event, {});
  if (!format) return refuse(kRoute, format.error());
  return start_sound(*format);
}

// The slot is taken now: who has spoken would hear too late that there is none.
Session::Said Session::start_sound(const PcmFormat& format) {
  asked_ = {.route = kRoute, .id = new_request_id(), .arrived_ns = system_clock().now_ns()};
  sent_ = 0;
  refused_ = 0;
  const auto sound = std::make_shared<ArrivingSound>(format, host_.max_utterance_s());
  UtteranceOrder order{
      .sound = sound, .language = std::exchange(language_, {}), .max_s = host_.max_utterance_s(), .id = asked_.id};
  auto reply = host_.start_recognition([&](std::shared_ptr<const RecognitionModel> model, const JobReports& reports) {
    return std::make_shared<UtteranceJob>(std::move(model), std::move(order), reports);
  });
  if (!reply) return refuse(kRoute, reply.error().code == "model_not_found" ? no_such_model("") : reply.error());
  reply_ = std::move(*reply);
  sound_ = sound;
  return {};
}

// Each says its format again; one that comes without an 'audio-start' is one.
Session::Said Session::audio_chunk(const Event& event) {
  const auto format = format_of(event, sound_ ? sound_->format() : PcmFormat());
  if (!format) return refuse(kRoute, format.error());
  if (!sound_) {
    Said said = start_sound(*format);
    if (!sound_) return said;
  }
  if (!are_same(*format, sound_->format()))
    return refuse(kRoute, bad_event("'audio-chunk' has another rate, width or number of channels than the sound before "
                                    "it; send 'audio-stop' in between"));
  if (const Status taken = sound_->append(event.payload); !taken) {
    if (taken.error().code == Code::kInvalidArgument) return refuse(kRoute, bad_event(taken.error().message));
    return refuse(kRoute, http_error(taken.error()));
  }
  return {};
}

Session::Said Session::audio_stop() {
  if (!sound_) return refuse(kRoute, bad_event("'audio-stop' came without any sound; send 'audio-start' first"));
  sound_->finish();
  sound_.reset();
  return {};
}

}  // namespace syrinx::server::wyoming
