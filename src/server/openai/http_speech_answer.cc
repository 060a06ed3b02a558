#include "server/openai/http_speech_answer.h"

#include <cmath>
#include <utility>

#include "base/json.h"
#include "server/http/base64.h"
#include "server/http/reply_events.h"
#include "server/openai/ignored_fields.h"

namespace syrinx::server {
namespace {

constexpr size_t kMaxWholeBytes = size_t{64} << 20;  // of an answer that is kept until it is complete
constexpr int kFrameMs = 80;                         // what `usage` counts sound in, whatever the model

}  // namespace

ByteSink HttpSpeechAnswer::sink() {
  ByteSink sink;
  if (whole_) {
    sink = memory_sink(memory_);
    sink.append = [this, append = std::move(sink.append)](std::span<const std::byte> bytes) -> Status {
      if (bytes.size() > kMaxWholeBytes - memory_.size())
        return syrinx::fail(
            Code::kLimitExceeded,
            "the answer is longer than {} MB, which is the most without streaming; leave 'stream' out, or give "
            "a shorter text",
            kMaxWholeBytes >> 20);
      return append(bytes);
    };
    return sink;
  }
  if (events_)
    sink.append = [this](std::span<const std::byte> bytes) {
      Json delta;
      delta.set("type", "speech.audio.delta");
      delta.set("audio", base64(bytes));
      return reply()->write(event_text(delta));
    };
  else
    sink.append = [this](std::span<const std::byte> bytes) { return reply()->write(bytes); };
  return sink;
}

std::string HttpSpeechAnswer::type() const {
  if (format_ != AudioFormat::kPcm) return media_type(format_);
  return fmt::format("audio/pcm; rate={}; channels=1", rate_hz_);
}

Status HttpSpeechAnswer::begin() {
  if (whole_) return {};
  reply()->begin(naming_ignored(events_ ? event_head() : HttpReply{.type = type()}, ignored_), /*whole=*/false);
  return {};
}

Status HttpSpeechAnswer::finish(const Spoken& spoken) {
  if (whole_) {
    const auto* const bytes = reinterpret_cast<const char*>(memory_.data());
    reply()->begin(naming_ignored({.type = type(), .body = std::string(bytes, memory_.size())}, ignored_),
                   /*whole=*/true);
    return {};
  }
  if (!events_) return {};
  const auto characters = static_cast<int64_t>(spoken.characters);
  const auto frames = static_cast<int64_t>(std::llround(spoken.audio_seconds * 1000 / kFrameMs));
  Json usage, done;
  usage.set("input_tokens", characters);
  usage.set("output_tokens", frames);
  usage.set("total_tokens", characters + frames);
  usage.set("stopped", spoken.stopped);
  done.set("type", "speech.audio.done").set("finish_reason", spoken.stopped);
  done.set("usage", std::move(usage));
  return reply()->write(event_text(done));
}

bool HttpSpeechAnswer::fail(const HttpError& error) { return tell_failure(*reply(), error, events_); }

void HttpSpeechAnswer::end(bool complete) { end_reply(*reply(), complete, "the speech"); }

}  // namespace syrinx::server
