#include "server/realtime/ear.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "base/clock.h"

namespace syrinx::server::realtime {

Ear::Ear(Order order, const JobReports& reports, std::function<void()> wake, const Clock& clock)
    : order_(std::move(order)),
      reports_(reports),
      wake_(std::move(wake)),
      clock_(clock),
      sound_(order_.model->id(), reports, clock),
      first_word_(order_.model->id(), reports, clock) {}

bool Ear::hear(uint64_t turn, std::shared_ptr<const TranscribeOptions> options, std::span<const float> samples) {
  return send({.kind = Kind::kSound,
               .turn = turn,
               .options = std::move(options),
               .sound = std::vector<float>(samples.begin(), samples.end())});
}

bool Ear::end(uint64_t turn) { return send({.kind = Kind::kEnd, .turn = turn}); }

// Its waiting audio is dropped, and no longer counts as waiting.
bool Ear::drop(uint64_t turn) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(commands_, [&](const Command& command) {
      if (command.turn != turn) return false;
      sound_.take_off(command.sound.size());
      return true;
    });
  }
  return send({.kind = Kind::kDrop, .turn = turn});
}

bool Ear::send(Command command) {
  const size_t samples = command.sound.size();
  command.came_ns = clock_.now_ns();
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    commands_.push_back(std::move(command));
    sound_.add(samples);  // before anybody can take it
  }
  changed_.notify_one();
  return true;
}

bool Ear::take(News& news) {
  const std::lock_guard lock(mutex_);
  if (news_.empty()) return false;
  news = std::move(news_.front());
  news_.pop_front();
  return true;
}

void Ear::leave() {
  {
    const std::lock_guard lock(mutex_);
    left_ = true;
  }
  changed_.notify_one();
}

void Ear::put(News news) {
  {
    const std::lock_guard lock(mutex_);
    news_.push_back(std::move(news));
  }
  wake_();
}

// An exception while a turn fails, or one of no standard type, ends the job: nothing may go on queueing for it.
void Ear::run(SlotWatch& watch) {
  try {
    hear_turns(watch);
  } catch (...) {
    {
      const std::lock_guard lock(mutex_);
      is_broken_ = !std::exchange(closed_, true);
      commands_.clear();
      sound_.clear();
    }
    wake_();
    throw;
  }
}

bool Ear::is_left() {
  const std::lock_guard lock(mutex_);
  return left_;
}

bool Ear::is_broken() {
  const std::lock_guard lock(mutex_);
  return is_broken_;
}

// An exception of a library ends the turn, not the session.
void Ear::hear_turns(SlotWatch& watch) {
  Command command;
  while (next(command)) {
    try {
      obey(command, watch);
    } catch (const std::bad_alloc&) {
      fail_turn({Code::kUnavailable, "out of memory while a turn was heard; ask when the server has less to do"});
    } catch (const std::exception& error) {
      fail_turn({Code::kInternal, error.what()});
    }
    sound_.take_off(command.sound.size());
    command = {};
  }
  end_turn(is_left() ? "cancelled" : "paused");  // one that is open may go on in another ear
}

// Without a command in time: the words of an open turn are told, and then the slot is given up.
bool Ear::next(Command& command) {
  std::unique_lock lock(mutex_);
  const bool is_open = turn_.stream != nullptr;
  changed_.wait_for(lock, is_open ? order_.times.open_idle : order_.times.idle,
                    [this] { return left_ || !commands_.empty(); });
  if (!left_ && !commands_.empty()) {
    command = std::move(commands_.front());
    commands_.pop_front();
    return true;
  }
  if (left_ || !is_open) {
    closed_ = true;
    return false;
  }
  command = {.turn = turn_.number, .came_ns = clock_.now_ns()};  // of no sound: it ends the stream
  return true;
}

void Ear::obey(const Command& command, SlotWatch& watch) {
  if (command.turn != turn_.number) {
    turn_ = {.number = command.turn};
    first_word_.begin_turn();
  }
  if (command.kind == Kind::kDrop) {
    end_turn("cancelled");
    return;
  }
  const bool is_pause = command.kind == Kind::kSound && command.sound.empty();
  const Status done =
      command.kind == Kind::kEnd || is_pause ? finish_stream(command, watch) : hear_sound(command, watch);
  if (!done && done.error().code == Code::kCancelled) return;  // the session has left, and so does this
  if (!done) return fail_turn(done.error());
  if (command.kind != Kind::kEnd) return;
  if (!turn_.failed) put({.turn = turn_.number, .is_over = true});
  end_turn("done");
}

Status Ear::hear_sound(const Command& command, SlotWatch& watch) {
  if (turn_.failed) return {};
  const Stopwatch took;
  const EngineWait wait(watch);
  if (!turn_.stream) {
    TranscribeOptions options = *command.options;
    options.is_wanted = [this] { return !is_left(); };
    SYRINX_TRY(turn_.stream, order_.model->recogniser().start(options));
    first_word_.begin_stream();
  }
  first_word_.hear(command.sound.size(), command.came_ns);
  turn_.samples += command.sound.size();
  events_.clear();
  SYRINX_TRY_VOID(sound_.push(*turn_.stream, command.sound, command.came_ns, events_));
  watch.note_audio(static_cast<double>(command.sound.size()) / kRecognitionRateHz);
  turn_.took_ms += took.elapsed_ms();
  for (const RecognitionEvent& event : events_) tell(event);
  return {};
}

Status Ear::finish_stream(const Command& command, SlotWatch& watch) {
  if (!turn_.stream) return {};
  const Stopwatch took;
  const EngineWait wait(watch);
  events_.clear();
  const auto stream = std::move(turn_.stream);
  SYRINX_TRY_VOID(sound_.finish(*stream, command.came_ns, events_));
  turn_.took_ms += took.elapsed_ms();
  for (const RecognitionEvent& event : events_) tell(event);
  turn_.told_bytes = 0;
  return {};
}

// Only what will not change, so that a delta is never taken back.
void Ear::tell(const RecognitionEvent& event) {
  const std::string& text = event.result.text;
  const size_t known = event.is_final ? text.size() : std::min(event.stable_bytes, text.size());
  if (known > turn_.told_bytes) {
    first_word_.tell(event.result.start_s);
    put({.turn = turn_.number,
         .text = text.substr(turn_.told_bytes, known - turn_.told_bytes),
         .is_segment = std::exchange(turn_.told_bytes, known) == 0});
  }
  if (event.is_final) turn_.told_bytes = 0;
}

void Ear::fail_turn(const Error& error) {
  if (turn_.failed) return;
  turn_.failed = true;
  turn_.stream.reset();
  HttpError answer = answer_to(error);
  if (answer.status >= 500) fault_ = error.message;
  put({.turn = turn_.number, .is_over = true, .error = std::move(answer)});
}

HttpError Ear::answer_to(const Error& error) const {
  if (order_.model->names_its_files(error.message)) return http_error({Code::kInternal, error.message});
  return http_error(error);
}

// For metrics and log, of what was heard here.
void Ear::end_turn(const char* outcome) {
  if (turn_.samples == 0 && !turn_.failed) {
    turn_ = {};
    return;
  }
  const double audio_s = static_cast<double>(turn_.samples) / kRecognitionRateHz;
  reports_.metrics.add("syrinx_audio_seconds_total", {{"model", order_.model->id()}, {"direction", "in"}}, audio_s);
  auto line = begin_log_line(reports_, fault_, "turn", order_.id, order_.model->id(), turn_.failed ? "error" : outcome);
  if (line) {
    line->set("audio_seconds", std::round(audio_s * 1e3) / 1e3);
    line->set("took_ms", milliseconds(turn_.took_ms / 1000));
    reports_.log->write(line->dump());
  }
  fault_.clear();
  turn_ = {};
}

}  // namespace syrinx::server::realtime
