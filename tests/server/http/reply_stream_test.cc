#include "server/http/reply_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <new>
#include <stdexcept>
#include <thread>

#include "base/log.h"
#include "server/host/slots.h"

namespace syrinx::server {
namespace {

constexpr size_t kRoom = ReplyStream::kBlocks * ReplyStream::kBlockBytes;

std::string pop_all(ReplyStream& stream) {
  std::string text;
  for (ReplyStream::Block block; stream.try_pop(block);)
    text.append(reinterpret_cast<const char*>(block.data()), block.size());
  return text;
}

TEST(ReplyStream, BlocksComeOutInOrder) {
  ReplyStream stream;
  int news = 0;
  stream.on_news([&] { ++news; });
  EXPECT_EQ(stream.pop_news().head, nullptr);
  stream.begin({.status = 201}, /*whole=*/false);
  EXPECT_TRUE(stream.begun());
  ASSERT_TRUE(stream.write("one"));
  ASSERT_TRUE(stream.write(std::string(ReplyStream::kBlockBytes + 1, 'x')));
  EXPECT_EQ(news, 1);  // told once for all of it
  EXPECT_EQ(stream.pop_news().head->status, 201);
  EXPECT_EQ(pop_all(stream), "one" + std::string(ReplyStream::kBlockBytes + 1, 'x'));
  stream.finish();
  EXPECT_EQ(news, 2);
  EXPECT_EQ(stream.pop_news().end, ReplyStream::End::kFinished);
}

TEST(ReplyStream, TheLastWordsComeBehindTheRestAndWithTheEnd) {
  ReplyStream stream;
  stream.begin({}, /*whole=*/false);
  const std::string rest(kRoom, 'x'), last(2 * ReplyStream::kBlockBytes, 'y');
  ASSERT_TRUE(stream.write(rest));
  stream.finish(last);  // which waits for no room
  EXPECT_EQ(stream.pop_news().end, ReplyStream::End::kFinished);
  EXPECT_EQ(pop_all(stream), rest + last);
  EXPECT_EQ(pop_all(stream), "");
}

TEST(ReplyStream, NewsThatCouldNotBeToldAreToldWithTheNext) {
  ReplyStream stream;
  int calls = 0;
  stream.on_news([&] {
    if (++calls == 1) throw std::bad_alloc();
  });
  EXPECT_NO_THROW(stream.begin({}, /*whole=*/false));  // whose head is there all the same
  stream.abort();
  EXPECT_EQ(calls, 2);
  const ReplyStream::News news = stream.pop_news();
  EXPECT_NE(news.head, nullptr);
  EXPECT_EQ(news.end, ReplyStream::End::kAborted);
}

TEST(ReplyStream, AFullQueueMakesTheProducerWaitForTheReader) {
  ReplyStream stream;
  const std::string text(4 * kRoom + 5, 'y');
  std::atomic<bool> written{false};
  std::thread producer([&] {
    EXPECT_TRUE(stream.write(text));
    written = true;
    stream.finish();
  });
  std::string read;
  EXPECT_FALSE(written);  // and will not be, before something is read
  for (bool ended = false; !ended;) {
    ended = stream.pop_news().end == ReplyStream::End::kFinished;
    read += pop_all(stream);
  }
  producer.join();
  EXPECT_EQ(read.size(), text.size());
}

TEST(ReplyStream, ACancelledReaderEndsTheWaitAndTheWork) {
  ReplyStream stream;
  std::promise<void> full;
  Status status;
  std::thread producer([&] {
    EXPECT_TRUE(stream.write(std::string(kRoom, 'z')));
    full.set_value();
    status = stream.write("more");
  });
  full.get_future().wait();
  int ended = 0;
  stream.on_cancel([&] { ++ended; });
  stream.cancel();
  producer.join();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kCancelled);
  EXPECT_EQ(ended, 1);
  stream.on_cancel([&] { ++ended; });  // too late to be told: told at once
  EXPECT_EQ(ended, 2);
  stream.on_cancel({});
  stream.cancel();
  EXPECT_EQ(ended, 2);
}

TEST(SlotPool, RefusesWhenAllAreBusyAndIsFreeBeforeItSaysSo) {
  SlotPool slots(2);
  ASSERT_TRUE(slots.start());
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  std::promise<size_t> busy_at_end;
  std::promise<void> second;
  EXPECT_TRUE(slots.try_start([gone](SlotWatch&) { gone.wait(); }, [&] { busy_at_end.set_value(slots.busy()); }));
  EXPECT_TRUE(slots.try_start([](SlotWatch&) {}, [&] { second.set_value(); }));
  second.get_future().wait();
  EXPECT_EQ(slots.busy(), 1U);
  EXPECT_TRUE(slots.try_start([gone](SlotWatch&) { gone.wait(); }, [] {}));
  EXPECT_EQ(slots.busy(), 2U);
  EXPECT_FALSE(slots.try_start([](SlotWatch&) {}, [] {}));
  go.set_value();
  EXPECT_LE(busy_at_end.get_future().get(), 1U);
}

// Whichever of the two comes first.
TEST(SlotPool, BatchWorkLeavesSlotsToLiveWork) {
  using enum SlotPool::Work;
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  SlotPool slots(4, system_clock(), 1);
  ASSERT_TRUE(slots.start());
  EXPECT_EQ(slots.size(), 4U);
  EXPECT_EQ(slots.size(kBatch), 3U);
  const auto begin = [&](SlotPool::Work work) {
    return slots.try_start([gone](SlotWatch&) { gone.wait(); }, [] {}, work);
  };
  for (const size_t left : {2U, 1U, 0U}) {
    EXPECT_TRUE(begin(kBatch));
    EXPECT_EQ(slots.free(kBatch), left);
    EXPECT_EQ(slots.free(kLive), left + 1);
  }
  EXPECT_FALSE(begin(kBatch));
  EXPECT_EQ(slots.busy(), 3U);
  EXPECT_TRUE(slots.try_take());  // and given back at once
  EXPECT_EQ(slots.free(kLive), 1U);
  EXPECT_FALSE(begin(kBatch));
  EXPECT_TRUE(begin(kLive));
  EXPECT_FALSE(begin(kLive));
  go.set_value();
  while (slots.busy() > 0) std::this_thread::yield();
  EXPECT_EQ(slots.free(kBatch), 3U);
  std::vector<SlotPool::Lease> live;
  for (const size_t left : {3U, 2U, 1U, 0U}) {
    live.push_back(*slots.try_take());
    EXPECT_EQ(slots.free(kBatch), left);
  }
  EXPECT_FALSE(begin(kBatch));
}

TEST(SlotPool, OneSlotBatchWorkMayAlwaysTake) {
  using enum SlotPool::Work;
  for (const size_t live : {0U, 1U, 64U}) {
    EXPECT_EQ(SlotPool(0, system_clock(), live).size(kBatch), 0U);
    EXPECT_EQ(SlotPool(0, system_clock(), live).free(kBatch), 0U);
    EXPECT_EQ(SlotPool(1, system_clock(), live).free(kBatch), 1U);
    EXPECT_EQ(SlotPool(2, system_clock(), live).free(kBatch), live == 0 ? 2U : 1U);
  }
}

TEST(SlotPool, AJobThatThrowsFreesItsSlotAndIsEnded) {
  SlotPool slots(1);
  ASSERT_TRUE(slots.start());
  for (int i = 0; i < 3; ++i) {
    std::promise<void> ended;
    ASSERT_TRUE(slots.try_start([](SlotWatch&) { throw std::runtime_error("no room"); }, [&] { ended.set_value(); }));
    ended.get_future().wait();
  }
  EXPECT_EQ(slots.busy(), 0U);
}

// Neither what is no std::exception nor what telling of the end throws ends the process.
TEST(SlotPool, WhateverIsThrownEndsAtItsSlot) {
  std::atomic<int> lines{0};
  set_log_sink([&](LogLevel, std::string_view) { ++lines; });
  {
    SlotPool slots(1);
    ASSERT_TRUE(slots.start());
    const auto throws = [] { throw std::runtime_error("no memory"); };
    ASSERT_TRUE(slots.try_start([](SlotWatch&) { throw 1; }, throws));
    while (!slots.try_start([](SlotWatch&) {}, throws)) std::this_thread::yield();
    while (slots.busy() > 0) std::this_thread::yield();
  }
  set_log_sink({});
  EXPECT_EQ(lines, 3);
}

TEST(SlotPool, WaitForTheEngineIsMeasured) {
  ManualClock clock;
  SlotPool slots(2, clock);
  ASSERT_TRUE(slots.start());
  std::promise<void> waits, go, ended;
  ASSERT_TRUE(slots.try_start(
      [&](SlotWatch& watch) {
        watch.wait_begins();
        waits.set_value();
        go.get_future().wait();
      },
      [&] { ended.set_value(); }));
  waits.get_future().wait();
  clock.advance_ns(3'000'000'000);
  EXPECT_EQ(slots.engine_silent_s(), 3);
  go.set_value();
  ended.get_future().wait();
  EXPECT_EQ(slots.engine_silent_s(), 0);
}

TEST(SlotPool, WaitingForTurnIsNotStuck) {
  ManualClock clock;
  std::promise<void> waits, go, heard, let;  // before the pool, whose jobs are at them until its end
  SlotPool slots(2, clock);
  ASSERT_TRUE(slots.start());
  ASSERT_TRUE(slots.try_start(
      [&](SlotWatch& watch) {
        watch.wait_begins();
        waits.set_value();
        go.get_future().wait();
      },
      [] {}));
  waits.get_future().wait();
  clock.advance_ns(3'000'000'000);
  ASSERT_TRUE(slots.try_start(
      [&](SlotWatch& watch) {
        watch.wait_begins();
        watch.wait_goes_on();
        heard.set_value();
        let.get_future().wait();
      },
      [] {}));
  heard.get_future().wait();
  EXPECT_EQ(slots.engine_silent_s(), 0);
  clock.advance_ns(2'000'000'000);
  EXPECT_EQ(slots.engine_silent_s(), 2);
  let.set_value();
  go.set_value();
}

}  // namespace
}  // namespace syrinx::server
