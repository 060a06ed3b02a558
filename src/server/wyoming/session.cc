#include "server/wyoming/session.h"

#include <utility>

#include "base/clock.h"
#include "base/in_quotes.h"
#include "server/request_id.h"
#include "server/wyoming/speech_answer.h"

namespace syrinx::server::wyoming {
namespace {

constexpr const char* kSpeechRoute = "wyoming synthesize";
constexpr const char* kDescribeRoute = "wyoming describe";
constexpr const char* kOrder = "wyoming";  // of what is no event, or not in its place
constexpr size_t kMaxNameBytes = 256;

HttpError bad_event(std::string message) { return {.status = 400, .message = std::move(message), .code = "bad_event"}; }

}  // namespace

Session::Said Session::take(const Event& event) {
  if (event.type == "ping") {
    Event pong{.type = "pong"};
    if (const std::string* const text = event.text("text")) pong.data.set("text", *text);
    return {.bytes = written(pong)};
  }
  if (event.type == "describe") {
    const auto models = service_.loaded_models();
    if (!models) return refuse(kDescribeRoute, models.error());
    return {.bytes = description_.of(*models)};
  }
  if (event.type == "synthesize") return synthesize(event);
  if (event.type == "synthesize-start") return synthesize_start(event);
  if (event.type == "synthesize-chunk") return synthesize_chunk(event);
  if (event.type == "synthesize-stop") return synthesize_stop();
  return {};
}

// Of `voice`: a name, or a language, whose first voice speaks.
tl::expected<SpeechRequest, HttpError> Session::request_of(const Event& event) const {
  SpeechRequest request;
  request.format = AudioFormat::kPcm;
  if (const std::string* const format = event.text("text_format"); format != nullptr && *format != "text")
    return tl::unexpected(bad_event("'text_format' must be text: marks of other formats are not known"));
  const Json* const voice = event.data.find("voice");
  if (voice == nullptr || voice->is_null()) return request;
  const Event asked{.type = "voice", .data = *voice};
  for (const char* field : {"name", "speaker", "language"})
    if (const std::string* const text = asked.text(field); text != nullptr && text->size() > kMaxNameBytes)
      return tl::unexpected(
          bad_event(fmt::format("the voice's '{}' has {} bytes; give at most {}", field, text->size(), kMaxNameBytes)));
  if (const std::string* const name = asked.text("name")) {
    request.voice = *name;
  } else if (const std::string* const language = asked.text("language"); language != nullptr && !language->empty()) {
    const auto models = service_.loaded_models();
    if (!models) return tl::unexpected(models.error());
    if (models->speech) request.voice = voice_of_language(*models->speech, *language);
    if (request.voice.empty())
      return tl::unexpected(HttpError{
          .status = 404,
          .message =
              fmt::format("no voice speaks {}; the answer to `describe` lists those there are", in_quotes(*language)),
          .code = "voice_not_found"});
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
  ArrivingText limited(service_.max_text_characters());
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
  return start(kSpeechRoute, std::move(*request), std::make_shared<ArrivingText>(service_.max_text_characters()));
}

Session::Said Session::start(const char* route, SpeechRequest request, std::shared_ptr<ArrivingText> text) {
  asked_ = {.route = route, .id = new_request_id(), .arrived_ns = system_clock().now_ns()};
  auto job = service_.start_speech(
      {.request = std::move(request), .id = asked_.id, .arrived_ns = asked_.arrived_ns, .text = text},
      std::make_unique<EventAnswer>(/*streamed=*/text != nullptr));
  if (!job) return refuse(route, job.error());
  reply_ = (*job)->reply();
  text_ = std::move(text);
  return {};
}

Session::Said Session::synthesize_chunk(const Event& event) {
  if (!text_) return refuse(kOrder, bad_event("'synthesize-chunk' came without 'synthesize-start'; send that first"));
  const std::string* const text = event.text("text");
  if (text == nullptr) return refuse(kOrder, bad_event("'text' is missing; give a part of the text to be spoken"));
  const Status taken = text_->append(*text);
  return taken ? Said() : refuse(kOrder, http_error(taken.error()));
}

Session::Said Session::synthesize_stop() {
  if (!text_) return refuse(kOrder, bad_event("'synthesize-stop' came without 'synthesize-start'; send that first"));
  text_->finish();
  text_.reset();
  return {};
}

Session::Said Session::refuse_bytes(const Error& error) { return refuse(kOrder, bad_event(error.message)); }

// What is under way is given up.
Session::Said Session::refuse(const char* route, const HttpError& error) {
  if (reply_ != nullptr) {
    reply_ended(error.status, 0);
  } else {
    service_.answered({.route = route, .id = new_request_id(), .arrived_ns = system_clock().now_ns()},
                      {.status = error.status});
  }
  return {.bytes = written(error_event(error)), .closes = true};
}

void Session::reply_ended(int status, uint64_t bytes) {
  if (reply_ == nullptr) return;
  reply_->on_news({});
  reply_->cancel();
  reply_.reset();
  text_.reset();
  service_.answered(asked_, {.status = status, .bytes = bytes});
}

}  // namespace syrinx::server::wyoming
