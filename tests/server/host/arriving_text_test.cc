#include "server/host/arriving_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace syrinx::server {
namespace {

using testing::HasSubstr;

// A sample for each byte, in chunks as the text comes.
class ByteSpeaker final : public Speaker {
 public:
  size_t chunks_ahead() const override { return 1; }
  int rate_hz() const override { return 24000; }
  Status speak(SpeechStream& stream) override {
    for (bool ended = false; !ended;) {
      std::string text;
      SYRINX_TRY(const SpeechStream::Arrival arrival, stream.take_text({}, text));
      ended = arrival == SpeechStream::Arrival::kEnd;
      SpeechChunk chunk = stream.spare();
      chunk.samples.assign(text.size(), 0.0f);
      SYRINX_TRY_VOID(stream.hand_over(std::move(chunk)));
    }
    return {};
  }
};

class ArrivingTextTest : public testing::Test {
 protected:
  size_t heard() {
    SpeechChunk chunk;
    const auto more = session_.next(chunk);
    EXPECT_TRUE(more && *more);
    return chunk.samples.size();
  }

  ManualClock clock_;
  SlotWatch watch_{clock_};
  ArrivingText text_{10};
  SpeechSession session_{std::make_unique<ByteSpeaker>()};
};

TEST_F(ArrivingTextTest, TextBeforeTheSessionComesFirst) {
  ASSERT_TRUE(text_.append("ab"));
  ASSERT_TRUE(text_.append("\xC3\xA9"));  // one character, two bytes
  EXPECT_EQ(text_.characters(), 3U);
  text_.attach(session_, watch_);
  EXPECT_EQ(heard(), 4U);
  ASSERT_TRUE(text_.append("cde"));
  EXPECT_EQ(heard(), 3U);
  text_.finish();
  EXPECT_EQ(heard(), 0U);
  SpeechChunk chunk;
  EXPECT_FALSE(*session_.next(chunk));
  text_.detach();
}

TEST_F(ArrivingTextTest, AnEndThatCameBeforeTheSessionEndsIt) {
  text_.finish();
  text_.attach(session_, watch_);
  EXPECT_EQ(heard(), 0U);
  text_.detach();
}

TEST_F(ArrivingTextTest, TooMuchIsRefusedAndNotTaken) {
  ASSERT_TRUE(text_.append("0123456789"));
  ASSERT_TRUE(text_.append(""));
  const Status more = text_.append("x");
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Code::kLimitExceeded);
  EXPECT_THAT(more.error().message, HasSubstr("more than 10 characters"));
  EXPECT_EQ(text_.whole().error().code, Code::kLimitExceeded);
  ArrivingText wide(size_t{10} << 20);
  const std::string most(SpeechSession::kMaxWaitingText, 'x');
  ASSERT_TRUE(wide.append(most));
  EXPECT_THAT(wide.append("x").error().message, HasSubstr("more than 1048576 bytes"));
  SpeechSession session(std::make_unique<ByteSpeaker>());
  wide.attach(session, watch_);
  wide.detach();
}

// Waiting for a client is not waiting for the engine.
TEST_F(ArrivingTextTest, ASlotThatWaitsForTextIsNotStuck) {
  text_.attach(session_, watch_);
  clock_.advance_ns(1);
  text_.wait_begins();
  clock_.advance_ns(1'000'000'000);
  EXPECT_EQ(watch_.waiting_s(), 0.0);
  text_.finish();
  clock_.advance_ns(2'000'000'000);
  EXPECT_EQ(watch_.waiting_s(), 2.0);
  text_.wait_ends();
  EXPECT_EQ(watch_.waiting_s(), 0.0);
  text_.wait_begins();
  clock_.advance_ns(3'000'000'000);
  EXPECT_EQ(watch_.waiting_s(), 3.0);
  text_.detach();
}

}  // namespace
}  // namespace syrinx::server
