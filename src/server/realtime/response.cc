#include "server/realtime/response.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "audio/g711.h"
#include "server/http/base64.h"
#include "text/unicode.h"

namespace syrinx::server::realtime {
namespace {

constexpr int kFrameMs = 80;                     // what `usage` counts sound in, as /v1/audio/speech does
constexpr double kDeltaSeconds = 0.2;            // of sound in one event, at most
constexpr const char* kConversation = "conv_1";  // each session has one

void append_samples(std::span<const int16_t> samples, SoundFormat format, std::vector<std::byte>& bytes) {
  if (format == SoundFormat::kPcm) {
    const auto raw = std::as_bytes(samples);
    bytes.insert(bytes.end(), raw.begin(), raw.end());
    return;
  }
  for (const int16_t sample : samples)
    bytes.push_back(format == SoundFormat::kMuLaw ? encode_mu_law(sample) : encode_a_law(sample));
}

size_t delta_bytes(SoundFormat format) {
  const auto samples = static_cast<size_t>(kDeltaSeconds * rate_hz(format));
  return format == SoundFormat::kPcm ? samples * sizeof(int16_t) : samples;
}

}  // namespace

Response::Response(EventSender& events, ResponseOrder order, const SpeechModel& model, const JobReports& reports,
                   const Clock& clock)
    : events_(events),
      order_(std::move(order)),
      model_(model),
      reports_(reports),
      clock_(clock),
      id_(events.new_id("resp")),
      item_{.id = events.new_id("item"),
            .role = Role::kAssistant,
            .status = ItemStatus::kInProgress,
            .is_sound = order_.output.is_spoken,
            .is_answered = true} {
  begin();
}

void Response::begin() {
  Json created;
  created.set("response", response_json("in_progress", {}));
  events_.send(ServerEvent::kResponseCreated, std::move(created));
  events_.send(ServerEvent::kOutputItemAdded, item_event("response_id"));
  if (order_.is_in_conversation) events_.send(ServerEvent::kItemAdded, item_event("previous_item_id"));
  events_.send(ServerEvent::kContentPartAdded, place().set("part", part(/*is_done=*/false)));
}

// Position of an event: this response, its one item, its one part.
Json Response::place() const {
  Json json;
  json.set("response_id", id_).set("item_id", item_.id);
  return json.set("output_index", 0).set("content_index", 0);
}

Json Response::part(bool is_done) const {
  Json json;
  json.set("type", item_.is_sound ? "audio" : "text");
  return json.set(item_.is_sound ? "transcript" : "text", is_done ? item_.text : std::string());
}

// The item as part of the response, or of the conversation.
Json Response::item_event(const char* key) const {
  Json json;
  const bool is_output = key == std::string_view("response_id");
  if (is_output)
    json.set(key, id_).set("output_index", 0);
  else
    json.set(key, order_.previous_item.empty() ? Json() : Json(order_.previous_item));
  return json.set("item", item_json(item_, events_.dialect()));
}

Json Response::usage() const {
  const auto characters = static_cast<int64_t>(text::count_code_points(item_.text));
  const auto frames = static_cast<int64_t>(std::llround(item_.audio_ms / kFrameMs));
  const auto details = [](int64_t text_tokens, int64_t audio_tokens) {
    Json json;
    return json.set("text_tokens", text_tokens).set("audio_tokens", audio_tokens);
  };
  Json json;
  json.set("total_tokens", characters + frames).set("input_tokens", characters).set("output_tokens", frames);
  json.set("input_token_details", details(characters, 0));
  return json.set("output_token_details", details(0, frames));
}

Json Response::response_json(const char* status, Json details) const {
  const bool is_over = !details.is_null();
  Json json;
  json.set("object", "realtime.response").set("id", id_).set("status", status);
  json.set("status_details", std::move(details));
  Json::Array output;
  if (is_over) output.push_back(item_json(item_, events_.dialect()));
  json.set("output", std::move(output));
  json.set("conversation_id", order_.is_in_conversation ? Json(kConversation) : Json());
  if (events_.dialect() == Dialect::kReleased) {
    Json audio;
    audio.set("output", output_json(order_.output));
    json.set("output_modalities", modalities_json(order_.output, Dialect::kReleased)).set("audio", std::move(audio));
  } else {
    json.set("modalities", modalities_json(order_.output, Dialect::kBeta));
    json.set("voice", order_.output.voice.empty() ? Json() : Json(order_.output.voice));
    json.set("output_audio_format", beta_format_name(order_.output.format));
  }
  const std::vector<std::string>& ignored = order_.output.ignored;
  if (!ignored.empty()) json.set("ignored", Json::Array(ignored.begin(), ignored.end()));
  json.set("metadata", order_.metadata);
  return json.set("usage", is_over ? usage() : Json());
}

Response::Step Response::advance() {
  if (!events_.has_room_for_sound()) return Step::kWaiting;
  const Step text = reply_ended_ ? Step::kWaiting : take_text();
  if (text == Step::kOver || !order_.speech) return text;
  const Step sound = take_sound();
  return sound == Step::kWaiting ? text : sound;
}

Response::Step Response::take_text() {
  std::string text;
  const Result<bool> more = order_.reply->take(text);
  if (!more) return fail(more.error());
  if (*more && text.empty()) return Step::kWaiting;
  const bool is_whole = !*more && item_.text.empty();
  // Before anything of it is kept, so that no refused text stays in the conversation.
  if (characters_ += text::count_code_points(text); characters_ > order_.max_characters)
    return fail(
        {Code::kInvalidArgument,
         fmt::format(
             "the text to be spoken has more than {} characters; give it in several responses, by 'response.input'",
             order_.max_characters)});
  item_.text += text;
  if (!text.empty())
    events_.send(item_.is_sound ? ServerEvent::kAudioTranscriptDelta : ServerEvent::kTextDelta,
                 place().set("delta", text));
  reply_ended_ = !*more;
  if (order_.speech) {
    // A text that is there at once gives the samples that it gives anywhere else.
    const Status given = is_whole ? order_.speech->speak(text) : order_.speech->write(text);
    if (!given) return end_speech(given.error());
    if (reply_ended_ && !is_whole) order_.speech->finish();
  } else if (reply_ended_) {
    return complete();
  }
  return Step::kSome;
}

// One event's sound at a time: a chunk may have seconds.
Response::Step Response::take_sound() {
  if (!pending_.empty()) {
    send_sound();
    return Step::kSome;
  }
  if (sound_ended_) return complete();
  if (!order_.speech->is_ready()) return Step::kWaiting;
  const Result<bool> more = order_.speech->next(chunk_);
  if (!more) return end_speech(more.error());
  if (*more) add_sound(chunk_);
  sound_ended_ = !*more;
  encode(sound_ended_);
  return Step::kSome;
}

void Response::add_sound(const SpeechChunk& chunk) {
  if (item_.audio_ms == 0) {
    first_audio_s_ = static_cast<double>(clock_.now_ns() - order_.asked_ns) * 1e-9;
    reports_.metrics.observe("syrinx_time_to_first_audio_seconds", {{"model", model_.id()}}, first_audio_s_);
  }
  item_.audio_ms += static_cast<double>(chunk.samples.size()) * 1000 / model_.engine().rate_hz();
  item_.words.insert(item_.words.end(), chunk.words.begin(), chunk.words.end());
}

void Response::encode(bool is_last) {
  samples_.clear();
  if (is_last)
    order_.resampler->finish(samples_);
  else
    order_.resampler->push(chunk_.samples, samples_);
  std::vector<int16_t> quantized(samples_.size());
  quantizer_.convert(samples_, quantized);
  append_samples(quantized, order_.output.format, pending_);
}

void Response::send_sound() {
  const std::span<const std::byte> left = std::span(pending_).subspan(told_bytes_);
  const auto delta = left.first(std::min(left.size(), delta_bytes(order_.output.format)));
  events_.send(ServerEvent::kAudioDelta, place().set("delta", base64(delta)), order_.number);
  told_bytes_ += delta.size();
  if (told_bytes_ < pending_.size()) return;
  pending_.clear();
  told_bytes_ = 0;
}

// An answer may have no words, or none that are said: an emoji.  It is told, and makes no sound.
Response::Step Response::end_speech(const Error& error) {
  const bool is_mute = order_.is_generated && reply_ended_ && item_.audio_ms == 0;
  return is_mute && error.code == Code::kInvalidArgument ? complete() : fail(error);
}

Response::Step Response::fail(const Error& error) {
  const HttpError told = speech_error(error, model_, order_.output.voice);
  outcome_ = "error";
  if (told.status >= 500) fault_ = error.message;
  finish_failed(told);
  return Step::kOver;
}

void Response::finish_failed(const HttpError& why) {
  item_.spoken_bytes = spoken_bytes(item_, order_.output.speed);
  Json cause, details;
  cause.set("type", error_type(why.status));
  cause.set("code", why.code.empty() ? Json() : Json(why.code)).set("message", why.message);
  details.set("type", "failed").set("error", std::move(cause));
  finish(ItemStatus::kIncomplete, "failed", std::move(details));
}

// Not cancelled: of that OpenAI's interface knows two reasons, and this is neither.
void Response::break_off(const HttpError& why) { finish_failed(why); }

Response::Step Response::complete() {
  Json details;
  outcome_ = "done";
  // An addition to OpenAI's: the end of a piece of the text that was cut.
  if (order_.speech && order_.speech->statistics().finished.cut() > 0)
    details.set("finish_reason", stop_reason(order_.speech->statistics()));
  if (const char* const why = order_.reply->cut_short(); why != nullptr)
    finish(ItemStatus::kIncomplete, "incomplete", details.set("type", "incomplete").set("reason", why));
  else
    finish(ItemStatus::kCompleted, "completed", details.set("type", "completed"));
  return Step::kOver;
}

void Response::cancel(const char* reason) {
  item_.spoken_bytes = spoken_bytes(item_, order_.output.speed);
  events_.messages().revoke(order_.number);
  Json details;
  details.set("type", "cancelled").set("reason", reason);
  finish(ItemStatus::kIncomplete, "cancelled", std::move(details));
}

void Response::finish(ItemStatus item_status, const char* status, Json details) {
  item_.status = item_status;
  if (item_.is_sound) {
    events_.send(ServerEvent::kAudioDone, place());
    events_.send(ServerEvent::kAudioTranscriptDone, place().set("transcript", item_.text));
  } else {
    events_.send(ServerEvent::kTextDone, place().set("text", item_.text));
  }
  events_.send(ServerEvent::kContentPartDone, place().set("part", part(/*is_done=*/true)));
  events_.send(ServerEvent::kOutputItemDone, item_event("response_id"));
  if (order_.is_in_conversation) events_.send(ServerEvent::kItemDone, item_event("previous_item_id"));
  Json done;
  done.set("response", response_json(status, std::move(details)));
  events_.send(ServerEvent::kResponseDone, std::move(done));
}

void Response::give_up(std::string fault) {
  outcome_ = "error";
  fault_ = std::move(fault);
}

void Response::report(const std::string& request_id) const {
  if (order_.speech) order_.speech->cancel();  // it may be in the middle of a step
  report_speech(reports_, {.event = "response",
                           .id = request_id,
                           .model = model_.id(),
                           .outcome = outcome_,
                           .fault = fault_,
                           .characters = text::count_code_points(item_.text),
                           .first_audio_s = first_audio_s_,
                           .ignored = order_.output.ignored,
                           .statistics = order_.speech ? order_.speech->statistics() : SpeechStatistics{}});
}

}  // namespace syrinx::server::realtime
