#include "server/wyoming/speech_answer.h"

#include <algorithm>

#include "base/in_quotes.h"
#include "server/host/speech_order.h"

namespace syrinx::server::wyoming {
namespace {

constexpr int kWidth = 2;             // bytes of a sample, one channel
constexpr size_t kChunkBytes = 4096;  // of sound in an event
constexpr size_t kMaxErrorBytes = 2000;
static_assert(kChunkBytes + 1024 < ReplyStream::kBlockBytes);

Event sound_event(const char* type, int64_t heard_ms) {
  Event event{.type = type};
  event.data.set("rate", kUsualRateHz);
  event.data.set("width", kWidth);
  event.data.set("channels", 1);
  event.data.set("timestamp", heard_ms);
  return event;
}

}  // namespace

Event error_event(const HttpError& error) {
  Event event{.type = "error"};
  event.data.set("text", shortened(error.message, kMaxErrorBytes));
  event.data.set("code", error.code.empty() ? error_type(error.status) : error.code);
  return event;
}

Status EventAnswer::send(const Event& event) { return reply()->write(written(event)); }

int64_t EventAnswer::heard_ms() const { return static_cast<int64_t>(bytes_ / kWidth * 1000 / kUsualRateHz); }

ByteSink EventAnswer::sink() {
  ByteSink sink;
  sink.append = [this](std::span<const std::byte> bytes) { return send_sound(bytes); };
  return sink;
}

Status EventAnswer::send_sound(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::span<const std::byte> part = bytes.first(std::min(bytes.size(), kChunkBytes));
    Event event = sound_event("audio-chunk", heard_ms());
    event.payload.assign(reinterpret_cast<const char*>(part.data()), part.size());
    SYRINX_TRY_VOID(send(event));
    bytes_ += part.size();
    bytes = bytes.subspan(part.size());
  }
  return {};
}

Status EventAnswer::begin() {
  reply()->begin({.status = 200}, /*whole=*/false);
  return send(sound_event("audio-start", 0));
}

Status EventAnswer::finish(const Spoken& /*spoken*/) {
  Event stop{.type = "audio-stop"};
  stop.data.set("timestamp", heard_ms());
  last_ = written(stop);
  if (!text_) return {};
  if (const Status whole = text_->whole(); !whole)
    give_up(http_error(whole.error()));
  else
    last_ += written(Event{.type = "synthesize-stopped"});
  return {};
}

bool EventAnswer::fail(const HttpError& error) {
  // A client that sends a text in parts cannot know before its end that nothing in it is spoken.
  const bool heard_nothing = text_ && !reply()->begun() && error.status == 400 && error.param == "input";
  if (!heard_nothing) {
    give_up(error);
  } else if (const Status whole = text_->whole(); !whole) {
    give_up(http_error(whole.error()));
  } else {
    reply()->begin({.status = 200}, /*whole=*/false);
    last_ = written(Event{.type = "synthesize-stopped"});
  }
  return true;
}

void EventAnswer::give_up(const HttpError& error) {
  failed_ = true;
  if (!reply()->begun()) reply()->begin({.status = error.status}, /*whole=*/false);  // for the accounts
  last_ += written(error_event(error));
}

void EventAnswer::end(bool complete) {
  if (complete && !failed_)
    reply()->finish(last_);
  else
    reply()->abort(last_);
}

}  // namespace syrinx::server::wyoming
