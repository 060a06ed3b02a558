// A session's place at the recogniser: a job on a slot of recognition that hears the sound of its turns, one after the
// other, each in a stream of its own, and tells their words as they become certain.
//
// It gives its slot up by itself: when no turn is open, and when nothing comes of an open one for a while, whose words
// so far are told then.  Sound that comes later needs another ear.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/recognition/recogniser.h"
#include "server/host/first_word.h"
#include "server/host/recognition_model.h"
#include "server/host/slot_job.h"
#include "server/host/waiting_sound.h"

namespace syrinx::server::realtime {

class Ear {
 public:
  // How long it keeps its slot without sound in a turn, and without a turn.
  struct Times {
    std::chrono::milliseconds open_idle{5000}, idle{200};
  };
  struct Order {
    std::shared_ptr<const RecognitionModel> model = {};
    std::string id = {};  // of the HTTP request
    Times times = {};
  };
  // News of one turn, in order.
  struct News {
    uint64_t turn = 0;
    std::string text = {};    // goes on the turn's
    bool is_segment = false;  // which it begins: a blank belongs between two
    bool is_over = false;     // there will be no more
    std::optional<HttpError> error = {};
  };

  // `wake` is called, on the slot's thread, when there are news.  What the reports name and the clock must outlive
  // this.
  Ear(Order order, const JobReports& reports, std::function<void()> wake, const Clock& clock = system_clock());
  Ear(const Ear&) = delete;
  Ear& operator=(const Ear&) = delete;

  // For the session; one thread.  False: it has given its slot up, and all of its news are there.
  bool hear(uint64_t turn, std::shared_ptr<const TranscribeOptions> options, std::span<const float> samples);
  bool end(uint64_t turn);   // all of it is there
  bool drop(uint64_t turn);  // it is of no interest any more
  bool take(News& news);
  bool is_broken();  // it was given up amid its turns; the news that were there still are
  size_t waiting_samples() const { return sound_.samples(); }
  void leave();  // the session is over: gives up what is under way

  void run(SlotWatch& watch);  // on the slot

 private:
  enum class Kind : uint8_t { kSound, kEnd, kDrop };
  struct Command {
    Kind kind = Kind::kSound;
    uint64_t turn = 0;
    std::shared_ptr<const TranscribeOptions> options = {};
    std::vector<float> sound = {};
    int64_t came_ns = 0;
  };
  // The turn that is being heard.
  struct Turn {
    uint64_t number = 0;
    std::unique_ptr<RecognitionStream> stream = {};  // null: none is open
    std::shared_ptr<const TranscribeOptions> options = {};
    size_t told_bytes = 0;  // of the segment's text
    uint64_t samples = 0;
    double took_ms = 0;
    bool failed = false;
  };

  void hear_turns(SlotWatch& watch);
  bool send(Command command);
  bool next(Command& command);
  void obey(const Command& command, SlotWatch& watch);
  Status hear_sound(const Command& command, SlotWatch& watch);
  Status finish_stream(const Command& command, SlotWatch& watch);
  void tell(const RecognitionEvent& event);
  void fail_turn(const Error& error);
  void end_turn(const char* outcome);
  bool is_left();
  void put(News news);
  HttpError answer_to(const Error& error) const;

  const Order order_;
  const JobReports reports_;
  const std::function<void()> wake_;
  const Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Command> commands_;  // by mutex_, as what follows
  std::deque<News> news_;
  bool closed_ = false, left_ = false, is_broken_ = false;
  WaitingSound sound_;
  FirstWord first_word_;  // of the slot's thread, as what follows
  Turn turn_;
  std::vector<RecognitionEvent> events_;
  std::string fault_;
};

}  // namespace syrinx::server::realtime
