#include "server/decode/stream_session.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <new>
#include <span>
#include <utility>

#include "audio/wav.h"

namespace syrinx::server::decode {
namespace {

constexpr std::chrono::seconds kTick{1};  // how soon the stream's times are heeded
constexpr int kNormal = 1000, kNoText = 1003, kViolation = 1008, kFault = 1011, kTryLater = 1013;
constexpr PcmFormat kFormat{.rate_hz = kRecognitionRateHz, .channels = 1, .bits = 16};
// Samples that the engine is given at once: after each piece the session checks whether the client has left, and reads
// the messages that came.
constexpr size_t kPieceSamples = kRecognitionRateHz / 10;

double seconds_of(uint64_t samples) { return static_cast<double>(samples) / kRecognitionRateHz; }
double rounded_s(double seconds) { return std::round(seconds * 1e3) / 1e3; }
double seconds_between(int64_t then_ns, int64_t now_ns) { return static_cast<double>(now_ns - then_ns) * 1e-9; }

// The engine's place is free before the slot is, and nothing waits for it, whatever is thrown.
class Leaving {
 public:
  Leaving(std::unique_ptr<RecognitionStream>& stream, WaitingSound& sound) : stream_(stream), sound_(sound) {}
  ~Leaving() {
    stream_.reset();
    sound_.clear();
  }
  Leaving(const Leaving&) = delete;
  Leaving& operator=(const Leaving&) = delete;

 private:
  std::unique_ptr<RecognitionStream>& stream_;
  WaitingSound& sound_;
};

}  // namespace

StreamSession::StreamSession(StreamOrder order, const JobReports& reports, const Clock& clock)
    : order_(std::move(order)),
      reports_(reports),
      clock_(clock),
      message_pace_(std::max(order_.max_backlog_s, 1 / order_.messages_per_s)),
      sound_pace_(order_.max_backlog_s),
      sound_(order_.model->id(), reports, clock),
      first_word_(order_.model->id(), reports, clock) {}

void StreamSession::run(SlotWatch& watch) {
  const Leaving leaving(stream_, sound_);
  try {
    converse(watch);
  } catch (const std::bad_alloc&) {
    fail_stream({Code::kUnavailable, "out of memory while a stream was heard; ask when the server has less to do"});
  } catch (const std::exception& error) {
    fail_stream({Code::kInternal, error.what()});
  } catch (...) {
    fail_stream({Code::kInternal, "an unknown exception was thrown in a stream"});
  }
  report();
}

void StreamSession::converse(SlotWatch& watch) {
  began_ns_ = active_ns_ = clock_.now_ns();
  TranscribeOptions options;
  options.is_wanted = [this] { return !messages_->is_gone(); };
  auto stream = order_.model->recogniser().start(options);
  if (!stream) return fail_stream(stream.error());
  stream_ = std::move(*stream);
  while (!over_ && !messages_->is_gone()) {
    const int64_t now_ns = clock_.now_ns();  // what had come by then is looked at before it is called late
    const bool took = take_messages();
    if (!over_) end_if_late(now_ns, watch);
    const bool heard = !over_ && hear_some(watch);
    if (!over_) tell_words();
    if (!over_ && !took && !heard) messages_->wait(kTick);
  }
}

// All that has come, so that what waits is known; each has an answer at most, for which there must be room.
bool StreamSession::take_messages() {
  const bool is_ending = messages_->is_ending();  // first: what came before that is heard
  bool took = false, has_more = true;
  MessageStream::Message message;
  while (!over_ && !ended_ && messages_->has_room(1) && (has_more = messages_->try_receive(message))) {
    took = true;
    take(message);
  }
  is_all_taken_ = !has_more;
  if (is_ending && is_all_taken_) end_sound(clock_.now_ns());
  return took;
}

void StreamSession::take(const MessageStream::Message& message) {
  if (message.is_text)
    return refuse("a text message came; sound and control bytes are sent in binary messages",
                  {kNoText, "text messages are not taken"});
  const int64_t now_ns = clock_.now_ns();
  if (!message_pace_.take(1 / order_.messages_per_s, now_ns))
    return refuse(fmt::format("more messages than {} a second came; send fewer and longer ones", order_.messages_per_s),
                  {kViolation, "too many messages"});
  const int64_t came_ns = message.came_ns.value_or(now_ns);
  if (message.bytes.size() == 1) return take_control(static_cast<uint8_t>(message.bytes.front()), came_ns, now_ns);
  if (message.bytes.size() % kFormat.frame_bytes() == 0) return take_sound(message.bytes, came_ns, now_ns);
  tell("ERROR", fmt::format("a message has {} bytes, and a sample has {}; nothing of it was taken: send whole samples",
                            message.bytes.size(), kFormat.frame_bytes()));
}

void StreamSession::take_control(uint8_t byte, int64_t came_ns, int64_t now_ns) {
  if (byte == order_.end_byte) {
    end_sound(came_ns);
  } else if (byte == order_.keepalive_byte) {
    active_ns_ = now_ns;
    if (!std::exchange(sound_came_, false)) tell("PAUSED");
  } else {
    tell("ERROR",
         fmt::format("the control byte 0x{:02x} means nothing here; 0x{:02x} ends the stream, 0x{:02x} keeps it "
                     "alive",
                     byte, order_.end_byte, order_.keepalive_byte));
  }
}

void StreamSession::end_sound(int64_t came_ns) {
  if (!std::exchange(ended_, true)) ended_ns_ = came_ns;
}

void StreamSession::take_sound(const std::string& bytes, int64_t came_ns, int64_t now_ns) {
  const size_t count = bytes.size() / kFormat.frame_bytes();
  if (count == 0) return;
  if (!has_room_for(seconds_of(count), came_ns)) return;
  active_ns_ = now_ns;
  sound_came_ = true;
  std::vector<float> samples;
  decode_pcm(std::as_bytes(std::span(bytes)), kFormat, samples);
  unheard_.erase(unheard_.begin(), unheard_.begin() + static_cast<std::ptrdiff_t>(std::exchange(at_, 0)));
  unheard_.insert(unheard_.end(), samples.begin(), samples.end());
  arrivals_.push_back({.samples = samples_ + unheard_.size(), .at_ns = came_ns});
  sound_.add(count);
}

// Audio ahead of the clock is the client's fault, whatever the engine does; audio that came in time waits for the
// server, and another server may have room.  A stream with a gap is useless: either ends it.
bool StreamSession::has_room_for(double seconds, int64_t came_ns) {
  if (!sound_pace_.take(seconds, came_ns)) {
    refuse_sound(fmt::format("with {:.1f} s of sound in a message more than {} s would be ahead of time; nothing of "
                             "them was taken: send sound at the pace of speech",
                             seconds, order_.max_backlog_s),
                 {kViolation, "sound came ahead of time"});
    return false;
  }
  const double waiting_s = seconds_of(sound_.samples());
  if (waiting_s + seconds <= order_.max_backlog_s) return true;
  fault_ = fmt::format("{:.1f} s of sound waited for the recogniser, and more than {} s may not", waiting_s + seconds,
                       order_.max_backlog_s);
  refuse_sound(fmt::format("the server is behind: {:.1f} s of sound wait, and with these {:.1f} s they would "
                           "be more than {} s; nothing of them was taken: connect again, or to another server",
                           waiting_s, seconds, order_.max_backlog_s),
               {kTryLater, "try again later"});
  return false;
}

void StreamSession::refuse_sound(const std::string& message, MessageStream::End end) {
  reports_.metrics.add("syrinx_rejected_total", {{"reason", "audio_backlog"}});
  refuse(message, std::move(end));
}

bool StreamSession::hear_some(SlotWatch& watch) {
  if (at_ == unheard_.size()) {
    if (ended_) complete(watch);
    return ended_;
  }
  const auto some = std::span<const float>(unheard_).subspan(at_, std::min(kPieceSamples, unheard_.size() - at_));
  at_ += some.size();
  samples_ += some.size();
  while (arrivals_.front().samples < samples_) arrivals_.pop_front();
  const int64_t came_ns = arrivals_.front().at_ns;  // of the last of them
  first_word_.hear(some.size(), came_ns);
  ask_engine(watch, [&] { return sound_.push(*stream_, some, came_ns, events_); });
  watch.note_audio(seconds_of(some.size()));
  sound_.take_off(some.size());
  return true;
}

// The transcript is complete, and the slot is free for the next client.
void StreamSession::complete(SlotWatch& watch) {
  const bool going_down = messages_->is_ending();
  if (!ask_engine(watch, [&] { return sound_.finish(*stream_, ended_ns_, events_); })) return;
  tell("COMPLETE", going_down ? "the server is going down" : "");
  outcome_ = "done";
  over_ = true;
  end_ = going_down ? MessageStream::going_away() : MessageStream::End{kNormal, {}};
}

template <class Call>
bool StreamSession::ask_engine(SlotWatch& watch, const Call& call) {
  const Stopwatch took;
  events_.clear();
  const Status done = [&] {
    const EngineWait wait(watch);
    return call();
  }();
  took_ms_ += took.elapsed_ms();
  note_words();
  if (!done && done.error().code != Code::kCancelled) fail_stream(done.error());  // else the client has left
  return done.has_value();
}

// As Transcript::text() joins them.
void StreamSession::note_words() {
  changed_ = changed_ || !events_.empty();
  for (const RecognitionEvent& event : events_) {
    partial_ = event.result.text;
    if (!partial_.empty()) first_word_.tell(event.result.start_s);
    if (event.is_final) text_ = words();
    if (event.is_final) partial_.clear();
  }
}

std::string StreamSession::words() const {
  return text_.empty() || partial_.empty() ? text_ + partial_ : text_ + ' ' + partial_;
}

void StreamSession::tell_words() {
  // A slow reader gets the latest message, not all of them: each message has all words.
  if (!changed_ || messages_->room() < MessageStream::kMessages) return;
  changed_ = false;
  if (words() != told_) tell("ACTIVE");
}

void StreamSession::tell(const char* status, const std::string& message) {
  while (messages_->room() == 0 && !messages_->is_gone()) messages_->wait(kTick);
  told_ = words();
  Json metadata;
  metadata.set("audio_length_seconds", rounded_s(seconds_of(samples_)));
  metadata.set("processing_time_ms", milliseconds(took_ms_ / 1000));
  Json json;
  json.set("transcription", told_).set("status", status);
  if (!message.empty()) json.set("message", message);
  json.set("metadata", std::move(metadata));
  if (order_.opaque) json.set("opaque", *order_.opaque);
  messages_->send({.bytes = json.dump()});
}

void StreamSession::refuse(const std::string& message, MessageStream::End end) {
  tell("ERROR", message);
  outcome_ = "error";
  over_ = true;
  end_ = std::move(end);
}

void StreamSession::fail_stream(const Error& error) {
  const bool is_ours = order_.model->names_its_files(error.message);
  const HttpError answer = http_error(is_ours ? Error{Code::kInternal, error.message} : error);
  if (answer.status >= 500) fault_ = error.message;
  refuse(answer.message, answer.status == 503 ? MessageStream::End{kTryLater, "try again later"}
                                              : MessageStream::End{kFault, "the stream cannot be heard"});
}

// Audio that came until then has been taken, unless a client that reads no answers has left no room for them: it may
// have sent all the time.  A client that has ended its audio is not late.
void StreamSession::end_if_late(int64_t now_ns, SlotWatch& watch) {
  if (ended_) return;
  const bool is_quiet = is_all_taken_ && at_ == unheard_.size();
  const bool is_over_time = seconds_between(began_ns_, now_ns) > order_.max_session_s;
  if (!is_over_time && (!is_quiet || seconds_between(active_ns_, now_ns) <= order_.idle_s)) return;
  const std::string why = is_over_time ? fmt::format("a stream takes at most {} s", order_.max_session_s)
                                       : fmt::format("neither sound nor a keepalive has come for {} s", order_.idle_s);
  // The words that the engine still holds of what it has heard.
  if (ask_engine(watch, [&] { return sound_.finish(*stream_, now_ns, events_); }))
    refuse(why + "; connect again", {kViolation, why});
}

void StreamSession::report() const {
  const double audio_s = seconds_of(samples_);
  reports_.metrics.add("syrinx_audio_seconds_total", {{"model", order_.model->id()}, {"direction", "in"}}, audio_s);
  auto line = begin_log_line(reports_, fault_, "stream", order_.id, order_.model->id(), outcome_);
  if (!line) return;
  line->set("audio_seconds", rounded_s(audio_s));
  line->set("took_ms", milliseconds(took_ms_ / 1000));
  reports_.log->write(line->dump());
}

}  // namespace syrinx::server::decode
