#include "server/wyoming/session.h"

#include <utility>

#include "base/clock.h"
#include "base/in_quotes.h"
#include "server/http/request_id.h"
#include "server/wyoming/bad_event.h"
#include "server/wyoming/info.h"
#include "server/wyoming/speech_answer.h"

namespace syrinx::server::wyoming {
namespace {

constexpr const char* kSpeechRoute = "wyoming synthesize";
constexpr const char* kDescribeRoute = "wyoming describe";
constexpr const char* kOrder = "wyoming";  // of what is no event, or not in its place

// The host's messages name routes, which mean nothing here.
HttpError in_our_words(HttpError error, const std::string& voice) {
  if (error.code == "voice_not_found")
    error.message = fmt::format("there is no voice {}; the answer to `describe` lists all", in_quotes(voice));
  if (error.code == "model_not_found")
    error.message = "no model of this server speaks; the operator can name one in speech_model";
  return error;
}

bool is_of_hearing(std::string_view type) { return type == "transcribe" || type.starts_with("audio-"); }

}  // namespace

Session::Said Session::take(const Event& event) {
  const bool owed = owes();
  Said said = answer(event);
  const auto brings_some = [&] {
    if (sound_) return event.type == "audio-chunk" && !event.payload.empty();
    return event.type == "synthesize-chunk" && !event.text("text")->empty();
  };
  said.goes_on = !owed || !owes() || brings_some();
  return said;
}

Session::Said Session::answer(const Event& event) {
  if (event.type == "ping") {
    Event pong{.type = "pong"};
    if (const std::string* const text = event.text("text")) pong.data.set("text", *text);
    return {.bytes = written(pong)};
  }
  if (event.type == "describe") return describe();
  const bool speaks = event.type.starts_with("synthesize"), hears = is_of_hearing(event.type);
  if (speaks && sound_)
    return refuse(kOrder,
                  bad_event(fmt::format("'{}' came before the sound's 'audio-stop'; send that first", event.type)));
  if (hears && text_)
    return refuse(kOrder,
                  bad_event(fmt::format("'{}' came before the text's 'synthesize-stop'; send that first", event.type)));
  if (event.type == "synthesize") return synthesize(event);
  if (event.type == "synthesize-start") return synthesize_start(event);
  if (event.type == "synthesize-chunk") return synthesize_chunk(event);
  if (event.type == "synthesize-stop") return synthesize_stop();
  if (event.type == "transcribe") return transcribe(event);
  if (event.type == "audio-start") return audio_start(event);
  if (event.type == "audio-chunk") return audio_chunk(event);
  if (event.type == "audio-stop") return audio_stop();
  return {};
}

Session::Said Session::describe() {
  const Host::Asked asked{.route = kDescribeRoute, .id = new_request_id(), .arrived_ns = system_clock().now_ns()};
  const auto models = host_.loaded_models();
  if (!models) return refuse(kDescribeRoute, models.error());
  Said said{.bytes = description_.of(*models)};
  host_.answered(asked, {.status = 200, .bytes = said.bytes.size()});
  return said;
}

tl::expected<std::string, HttpError> Session::voice_speaking(const std::string& language) const {
  const auto models = host_.loaded_models();
  if (!models) return tl::unexpected(models.error());
  std::string voice = models->speech ? models->speech->voice_of_language(language) : std::string();
  if (!voice.empty()) return voice;
  return tl::unexpected(
      HttpError{.status = 404,
                .message = fmt::format("no voice speaks {}; the answer to `describe` lists all", in_quotes(language)),
                .code = "voice_not_found"});
}

// Reads `voice`: a name, or a language, whose first voice speaks.  Never another voice than asked for.
tl::expected<SpeechRequest, HttpError> Session::request_of(const Event& event) const {
  SpeechRequest request;
  request.format = AudioFormat::kPcm;
  if (const std::string* const format = event.text("text_format"); format != nullptr && *format != "text")
    return tl::unexpected(bad_event("'text_format' must be text: marks of other formats are not known"));
  const Json* const voice = event.data.find("voice");
  if (voice == nullptr || voice->is_null()) return request;
  if (voice->object() == nullptr)
    return tl::unexpected(bad_event("'voice' must be an object; give the voice's 'name' or 'language' in it"));
  const Event asked{.type = "voice", .data = *voice};
  for (const char* field : {"name", "speaker", "language"}) {
    const Json* const value = asked.data.find(field);
    if (value == nullptr || value->is_null()) continue;
    if (value->string() == nullptr || value->string()->size() > kMaxNameBytes)
      return tl::unexpected(
          bad_event(fmt::format("the voice's '{}' must be a text of at most {} bytes", field, kMaxNameBytes)));
  }
  if (const std::string* const speaker = asked.text("speaker"); speaker != nullptr && !speaker->empty())
    return tl::unexpected(HttpError{
        .status = 404,
        .message = fmt::format("there is no speaker {}: voices have none here; give a 'name'", in_quotes(*speaker)),
        .code = "voice_not_found"});
  if (const std::string* const name = asked.text("name")) {
    request.voice = *name;
  } else if (const std::string* const language = asked.text("language"); language != nullptr && !language->empty()) {
    SYRINX_TRY(request.voice, voice_speaking(*language));
  }
  return request;
}

// Behind a text in parts it is the same once more, for servers that know no parts.
Session::Said Session::synthesize(const Event& event) {
  if (text_) return {};
  auto request = request_of(event);
  if (!request) return refuse(kSpeechRoute, request.error());
  const std::string* const text = event.text("text");
  if (text == nullptr || text->empty())
    return refuse(kSpeechRoute, bad_event("'text' is missing or empty; give the text to be spoken"));
  ArrivingText limited(host_.max_text_characters());
  if (const Status fits = limited.append(*text); !fits) return refuse(kSpeechRoute, http_error(fits.error()));
  request->input = *text;
  return start(kSpeechRoute, std::move(*request), nullptr);
}

Session::Said Session::synthesize_start(const Event& event) {
  if (text_)
    return refuse(kOrder,
                  bad_event("'synthesize-start' came before the last text's 'synthesize-stop'; send that first"));
  auto request = request_of(event);
  if (!request) return refuse(kSpeechRoute, request.error());
  return start(kSpeechRoute, std::move(*request), std::make_shared<ArrivingText>(host_.max_text_characters()));
}

Session::Said Session::start(const char* route, SpeechRequest request, std::shared_ptr<ArrivingText> text) {
  asked_ = {.route = route, .id = new_request_id(), .arrived_ns = system_clock().now_ns()};
  sent_ = 0;
  refused_ = 0;
  const std::string voice = request.voice;
  auto job = host_.start_speech(
      {.request = std::move(request), .id = asked_.id, .arrived_ns = asked_.arrived_ns, .text = text},
      std::make_unique<EventAnswer>(text));
  if (!job) return refuse(route, in_our_words(job.error(), voice));
  reply_ = (*job)->reply();
  text_ = std::move(text);
  return {};
}

Session::Said Session::synthesize_chunk(const Event& event) {
  if (!text_) return refuse(kOrder, bad_event("'synthesize-chunk' came without 'synthesize-start'; send that first"));
  const std::string* const text = event.text("text");
  if (text == nullptr) return refuse(kOrder, bad_event("'text' is missing; give a part of the text to be spoken"));
  const Status taken = text_->append(*text);
  if (taken) return {};
  refused_ = http_error(taken.error()).status;
  return synthesize_stop();  // what has been taken is spoken, and the error stands behind it
}

Session::Said Session::synthesize_stop() {
  if (!text_) return refuse(kOrder, bad_event("'synthesize-stop' came without 'synthesize-start'; send that first"));
  text_->finish();
  text_.reset();
  return {};
}

Session::Said Session::refuse_late() {
  if (sound_)
    return refuse(kOrder, {.status = 408,
                           .message = "the rest of the sound has not come in time; send its chunks sooner, or "
                                      "'audio-stop' behind what there is",
                           .code = "sound_timeout"});
  return refuse(kOrder, {.status = 408,
                         .message = "the rest of the text has not come in time; send its parts sooner, or "
                                    "'synthesize-stop' behind what there is",
                         .code = "text_timeout"});
}

Session::Said Session::refuse_bytes(const Error& error) { return refuse(kOrder, bad_event(error.message)); }

// Gives up the reply in progress.
Session::Said Session::refuse(const char* route, const HttpError& error) {
  if (reply_ != nullptr) {
    reply_ended(error.status);
  } else {
    host_.answered({.route = route, .id = new_request_id(), .arrived_ns = system_clock().now_ns()},
                   {.status = error.status});
  }
  return {.bytes = written(error_event(error)), .closes = true};
}

void Session::reply_ended(int status) {
  if (reply_ == nullptr) return;
  reply_->on_news({});
  reply_->cancel();
  reply_.reset();
  text_.reset();
  if (sound_) sound_->on_room({});
  sound_.reset();
  host_.answered(asked_, {.status = refused_ != 0 && status >= 500 ? refused_ : status, .bytes = sent_});
}

}  // namespace syrinx::server::wyoming
