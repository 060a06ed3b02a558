#include "server/speech_answer.h"

#include <cmath>
#include <utility>

#include "base/json.h"
#include "server/base64.h"

namespace syrinx::server {
namespace {

constexpr int kFrameMs = 80;  // what `usage` counts sound in, whatever the model

std::string event(const Json& json) { return "data: " + json.dump() + "\n\n"; }

}  // namespace

ByteSink HttpSpeechAnswer::sink() {
  if (whole_) return memory_sink(memory_);
  ByteSink sink;
  if (events_)
    sink.append = [this](std::span<const std::byte> bytes) {
      Json delta;
      delta.set("type", "speech.audio.delta");
      delta.set("audio", base64(bytes));
      return reply()->write(event(delta));
    };
  else
    sink.append = [this](std::span<const std::byte> bytes) { return reply()->write(bytes); };
  return sink;
}

std::string HttpSpeechAnswer::type() const {
  if (events_) return "text/event-stream";
  if (format_ != AudioFormat::kPcm) return media_type(format_);
  return fmt::format("audio/pcm; rate={}; channels=1", rate_hz_);
}

Status HttpSpeechAnswer::begin() {
  if (whole_) return {};
  HttpReply head{.type = type()};
  if (events_) head.headers.push_back({"Cache-Control", "no-store"});
  reply()->begin(std::move(head), /*whole=*/false);
  return {};
}

Status HttpSpeechAnswer::finish(const Spoken& spoken) {
  if (whole_) {
    const auto* const bytes = reinterpret_cast<const char*>(memory_.data());
    reply()->begin({.type = type(), .body = std::string(bytes, memory_.size())}, /*whole=*/true);
    return {};
  }
  if (!events_) return {};
  const auto characters = static_cast<int64_t>(spoken.characters);
  const auto frames = static_cast<int64_t>(std::llround(spoken.audio_seconds * 1000 / kFrameMs));
  Json usage, done;
  usage.set("input_tokens", characters);
  usage.set("output_tokens", frames);
  usage.set("total_tokens", characters + frames);
  done.set("type", "speech.audio.done");
  done.set("usage", std::move(usage));
  return reply()->write(event(done));
}

bool HttpSpeechAnswer::fail(const HttpError& error) {
  HttpReply told = error_reply(error);
  if (!reply()->begun()) {
    reply()->begin(std::move(told), /*whole=*/true);
    return true;
  }
  return events_ && reply()->write("event: error\ndata: " + told.body + "\n\n").has_value();
}

void HttpSpeechAnswer::end(bool complete) {
  if (!reply()->begun()) {  // nothing could be told
    const HttpError lost{.status = 500, .message = "the speech was given up; the server's log says why"};
    reply()->begin(error_reply(lost), /*whole=*/true);
    complete = true;
  }
  if (complete)
    reply()->finish();
  else
    reply()->abort();
}

}  // namespace syrinx::server
