// Requests of several threads that one step serves together: a frame of each stream that speaks, a chunk of each that
// is heard, so that the weights are read once for all of them.
//
// The first request joins the scheduler's queue for all; those that come before its turn are served with it.  Its
// thread works, and then lets the request that is due next join, before the turn ends.  No thread of its own, no delay
// to gather more unless a class asks for it (patience_ns), and a request that is alone passes nothing to another
// thread.
//
// A round counts for the figures (StepQueue::note_round()) by how many requests it ends, whatever these ask for.
//
// Any number of threads.  Nothing is allocated as long as no more threads ask at once than it was made for.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "engine/schedule/scheduler.h"

namespace syrinx {

class Rounds {
 public:
  // A request of a derived class; lives on its thread's stack while it is served.
  struct Request {
    int64_t due_ns = kDueAtOnce;
    // Asked behind each round in which the request waits and before its own, by any of the threads; must neither wait
    // nor throw.  Once it says no, nothing is made for the request.  Null or empty: always wanted.
    const std::function<bool()>* is_wanted = nullptr;
    std::exception_ptr thrown = nullptr;  // in its round; thrown again to its own thread
    // Set by make(): only a part of it is made, and it waits on for another round.
    bool stays = false;

    bool is_left() const { return is_wanted != nullptr && *is_wanted && !(*is_wanted)(); }

   private:
    friend class Rounds;
    bool done = false, leads = false;
    std::condition_variable changed = {};
    StepQueue::Place place = {};
  };

  // Requests that wait for a round, without the one that waits in the scheduler's queue for all.
  size_t waiting_behind() const;
  // With it.
  size_t waiting() const;
  StepQueue& queue() const { return queue_; }

 protected:
  // The queue is borrowed.
  Rounds(StepQueue& queue, size_t most_waiting);
  ~Rounds() = default;

  // Waits until the request has been served, or is left.
  void serve(Request& own);
  // The same in two parts: between them a turn may end in which the request was entered, so that no other round fits
  // between.
  void enter(Request& own);
  void wait(Request& own);

  // So long behind a round the next one waits, in its turn, for as many further requests as that one has ended; 0: it
  // does not.  By the lock of this class.
  virtual int64_t patience_ns() const { return 0; }
  // Moves requests from `waiting`, the earliest due first, to `round`, at least one.  By the lock of this class.  What
  // it throws reaches the request whose thread calls it; all others wait for the next round.
  virtual void choose(std::vector<Request*>& waiting, std::vector<Request*>& round) = 0;
  // In the turn.  What it throws reaches all requests of the round that have nothing thrown yet.
  virtual void make(std::span<Request* const> round, StepQueue::Turn& turn) = 0;

 private:
  void work(std::unique_lock<std::mutex>& lock, Request& own);
  void lead(Request& next);
  void insert(Request& own);
  void end_round(const Request& own);
  bool choose_for(Request& own);
  void make_one(StepQueue::Turn& turn);
  void leave_out_left();
  void gather(std::unique_lock<std::mutex>& lock);

  StepQueue& queue_;
  mutable std::mutex mutex_;
  bool is_led_ = false;            // a request leads, or its thread works
  Request* leader_ = nullptr;      // that waits in the scheduler's queue
  std::vector<Request*> waiting_;  // in the order in which they are due
  std::vector<Request*> round_;    // of the thread that works
  size_t awaited_ = 0;  // requests for the next round: those that waited behind the last one, and as many as it ended
  int64_t last_end_ns_ = 0;
  bool gathers_ = false;
  std::condition_variable arrived_ = {};
};

}  // namespace syrinx
