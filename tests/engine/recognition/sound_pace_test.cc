#include "engine/recognition/sound_pace.h"

#include <gtest/gtest.h>

namespace syrinx {
namespace {

constexpr int64_t kSecond = 1'000'000'000, kStart = 1000 * kSecond;
constexpr double kChunkS = 0.5;
constexpr int64_t kChunk = kSecond / 2;

TEST(SoundPace, AChunkIsDueWhenTheNextOneIsThere) {
  SoundPace pace;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(pace.due_ns(kStart + i * kChunk, kChunkS), kStart + (i + 1) * kChunk);
}

// When audio comes all at once, two seconds are due as if it was live, the rest at the pace of speech.
TEST(SoundPace, EarlyAudioIsDueAtPace) {
  SoundPace pace;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(pace.due_ns(kStart, kChunkS), kStart + kChunk) << i;
  for (int i = 1; i < 100; ++i) EXPECT_EQ(pace.due_ns(kStart, kChunkS), kStart + (i + 1) * kChunk) << i;
}

// A network that stalls and brings what it held back; and, behind a long silence, no more than so much at once.
TEST(SoundPace, DelayedAudioIsNotAhead) {
  SoundPace pace;
  for (int i = 0; i < 20; ++i) pace.due_ns(kStart + i * kChunk, kChunkS);
  const int64_t late = kStart + 24 * kChunk;
  for (int i = 20; i <= 24; ++i) EXPECT_EQ(pace.due_ns(late, kChunkS), late + kChunk) << i;
  EXPECT_EQ(pace.due_ns(late + kChunk, kChunkS), late + 2 * kChunk);
  const int64_t later = late + 3600 * kSecond;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(pace.due_ns(later, kChunkS), later + kChunk) << i;
  EXPECT_GT(pace.due_ns(later, kChunkS), later + kChunk);
}

// Shorter chunks that are given as long as others keep the pace of their own lengths.
TEST(SoundPace, GivenTimeIsNotPartOfThePace) {
  SoundPace pace;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(pace.due_ns(kStart + i * kChunk / 2, kChunkS / 2, kChunkS), kStart + i * kChunk / 2 + kChunk) << i;
  }
}

}  // namespace
}  // namespace syrinx
