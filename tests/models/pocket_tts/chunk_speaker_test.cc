// Whole generations, from tokens to samples, against the maker's package with the maker's noise, for all small
// checkpoints; then the rules of a stream.
#include "models/pocket_tts/chunk_speaker.h"

#include "allocation_count.h"
#include "loaded.h"
#include "stages.h"

namespace syrinx::pocket {
namespace {

// In parts of the maximum.  The maker's own code paths are up to 1.4e-5 apart over a whole generation.
constexpr double kBound = 1e-4;

class ChunkSpeakerParity : public ::testing::TestWithParam<TestModel> {};
INSTANTIATE_TEST_SUITE_P(All, ChunkSpeakerParity, ::testing::ValuesIn(test_models()), name_of);

TEST_P(ChunkSpeakerParity, SoundAgreesToTheLastSample) {
  const Loaded loaded(GetParam().name);
  ThreadTeam team(1);
  nn::Runner runner(team);
  const auto voice = loaded.voice(runner);
  ChunkSpeaker speaker = loaded.speaker(runner);
  const auto generations = read_generations(loaded.facts, loaded.model.eos_threshold);
  ASSERT_TRUE(generations.has_value()) << generations.error().message;
  ASSERT_GE(generations->size(), 2u);
  for (const Generation& generation : *generations)
    EXPECT_EQ(count_within(generated_sound(generation, voice, speaker, loaded.reference.tensors()), kBound), 1u);
}

void expect_each_run_the_same(Precision precision) {
  SCOPED_TRACE(precision_name(precision));
  const Loaded loaded("english_7m", precision);
  const std::vector<int32_t> ids = ids_of((*(*loaded.facts.find("generate")->array())[0].find("chunks")->array())[0]);
  std::vector<float> first;
  for (const int threads : {1, 2, 3}) {
    ThreadTeam team(threads);
    nn::Runner runner(team);
    const auto voice = loaded.voice(runner);
    ChunkSpeaker speaker = loaded.speaker(runner);
    const std::vector<float> fresh = frames_of(speaker, voice, ids, 5);
    if (first.empty()) first = fresh;
    EXPECT_EQ(frames_of(speaker, voice, ids, 5), fresh) << "after an abandoned chunk";
    EXPECT_EQ(fresh, first) << threads << " threads";
  }
}

TEST(ChunkSpeaker, ChunksThreadsAndAbandonedChunksDoNotChangeASample) {
  for (const Precision precision : kBothHistories) expect_each_run_the_same(precision);
}

// Three streams of different texts, begun at different times, one of which pauses and one of which begins again.
void expect_the_same_together(const Loaded& loaded, int threads) {
  ThreadTeam team(threads);
  nn::Runner runner(team);
  const auto voice = loaded.voice(runner);
  ChunkSpeaker alone = loaded.speaker(runner), together = loaded.speaker(runner, 3);
  const size_t size = alone.frame_samples();
  const std::vector<std::vector<int32_t>> texts = {{5, 9, 2}, {7, 7, 1, 30, 4, 8}, {3}};
  std::vector<std::vector<float>> want, got(3);
  for (const auto& ids : texts) want.push_back(frames_of(alone, voice, ids, 7));
  const std::vector<float> noise(alone.latent(), 0.25f);
  std::vector<std::vector<float>> sounds(3, std::vector<float>(size));
  for (size_t round = 0; round < 10; ++round) {
    std::vector<ChunkSpeaker::Frame> frames;
    for (size_t n = 0; n < 3; ++n) {
      if (round == n || (n == 2 && round == 4)) {
        ASSERT_TRUE(together.begin(n, voice, texts[n], 1e30f, 3).has_value());
        got[n].clear();
      }
      if (round >= n && !(n == 1 && round == 3)) frames.push_back({n, noise, sounds[n]});
    }
    together.next(frames);
    for (const ChunkSpeaker::Frame& frame : frames) {
      EXPECT_TRUE(frame.spoken);
      got[frame.stream].insert(got[frame.stream].end(), frame.samples.begin(), frame.samples.end());
    }
  }
  for (size_t n = 0; n < 3; ++n) {
    const size_t count = std::min(want[n].size(), got[n].size());
    EXPECT_GE(count, 6 * size);
    EXPECT_EQ(std::memcmp(want[n].data(), got[n].data(), count * sizeof(float)), 0) << "stream " << n;
  }
}

TEST(ChunkSpeaker, SameSamplesAloneAndTogether) {
  for (const char* const name : {"english", "english_2m", "flow_matching"}) {
    for (const Precision precision : kBothHistories) {
      const Loaded loaded(name, precision);
      for (const int threads : {1, 2, 3}) {
        SCOPED_TRACE(::testing::Message()
                     << name << ", " << precision_name(precision) << ", " << threads << " threads");
        expect_the_same_together(loaded, threads);
      }
    }
  }
}

// More streams than a codec decodes together: each gets what it gets alone.
TEST(ChunkSpeaker, ManyStreamsMatchOneAlone) {
  constexpr size_t kStreams = 17, kFrames = 3;
  const Loaded loaded("english", Precision::kInt8);
  for (const int threads : {1, 2}) {
    SCOPED_TRACE(::testing::Message() << threads << " threads");
    ThreadTeam team(threads);
    nn::Runner runner(team);
    const auto voice = loaded.voice(runner);
    ChunkSpeaker alone = loaded.speaker(runner), together = loaded.speaker(runner, kStreams);
    const size_t size = alone.frame_samples();
    const std::vector<float> noise(alone.latent(), 0.25f);
    std::vector<std::vector<float>> sounds(kStreams, std::vector<float>(size));
    std::vector<ChunkSpeaker::Frame> frames;
    std::vector<std::vector<float>> want;
    for (size_t n = 0; n < kStreams; ++n) {
      const std::vector<int32_t> ids = {static_cast<int32_t>(n + 1), 9, static_cast<int32_t>(n % 3)};
      want.push_back(frames_of(alone, voice, ids, kFrames));
      ASSERT_TRUE(together.begin(n, voice, ids, 1e30f, 3).has_value());
      frames.push_back({n, noise, sounds[n]});
    }
    for (size_t i = 0; i < kFrames; ++i) {
      together.next(frames);
      for (size_t n = 0; n < kStreams; ++n) {
        EXPECT_TRUE(frames[n].spoken);
        EXPECT_EQ(std::memcmp(sounds[n].data(), want[n].data() + i * size, size * sizeof(float)), 0)
            << "stream " << n << ", frame " << i;
      }
    }
  }
}

// Between the parts of a long text another stream begins and speaks.
TEST(ChunkSpeaker, OtherStreamsSpeakDuringBegin) {
  const Loaded loaded("english", Precision::kInt8);
  ThreadTeam team(2);
  nn::Runner runner(team);
  const auto voice = loaded.voice(runner);
  ChunkSpeaker alone = loaded.speaker(runner), both = loaded.speaker(runner, 2);
  const std::vector<int32_t> long_text(100, 5), short_text = {7, 7, 1};
  const size_t size = alone.frame_samples();
  const std::vector<float> want_long = frames_of(alone, voice, long_text, 2),
                           want_short = frames_of(alone, voice, short_text, 5);
  const std::vector<float> noise(alone.latent(), 0.25f);
  std::vector<float> sound(size), got_long, got_short;
  const auto speak = [&](size_t stream, std::vector<float>& got) {
    ASSERT_TRUE(both.next(stream, noise, sound));
    got.insert(got.end(), sound.begin(), sound.end());
  };
  size_t calls = 0;
  const auto between = [&] {
    if (calls++ == 0) {
      ASSERT_TRUE(both.begin(1, voice, short_text, 1e30f, 3).has_value());
    }
    speak(1, got_short);
  };
  ASSERT_TRUE(both.begin(0, voice, long_text, 1e30f, 3, between).has_value());
  EXPECT_GE(calls, 3u);
  for (int i = 0; i < 2; ++i) speak(0, got_long);
  EXPECT_EQ(got_long, want_long);
  got_short.resize(std::min(got_short.size(), want_short.size()));
  EXPECT_EQ(got_short,
            std::vector<float>(want_short.begin(), want_short.begin() + static_cast<ptrdiff_t>(got_short.size())));
}

TEST(ChunkSpeaker, NothingIsAllocatedInAFrame) {
  const Loaded loaded("english");
  ThreadTeam team(2);
  nn::Runner runner(team);
  const auto voice = loaded.voice(runner);
  ChunkSpeaker speaker = loaded.speaker(runner, 2);
  const std::vector<int32_t> ids = ids_of((*(*loaded.facts.find("generate")->array())[0].find("chunks")->array())[0]);
  for (const size_t stream : {0, 1}) {
    ASSERT_TRUE(speaker.begin(stream, voice, ids, 1e30f, 3).has_value());
  }
  const std::vector<float> noise(speaker.latent(), 0.25f);
  std::vector<float> first(speaker.frame_samples()), second(first);
  ChunkSpeaker::Frame frames[] = {{0, noise, first}, {1, noise, second}};
  const size_t before = allocation_count();
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(speaker.next(0, noise, first));
  for (int i = 0; i < 50; ++i) speaker.next(frames);
  EXPECT_EQ(allocation_count() - before, 0u);
  EXPECT_TRUE(frames[0].spoken && frames[1].spoken);
}

TEST(ChunkSpeaker, RefusesInvalidInput) {
  const Loaded loaded("english"), other("english_7m");
  ThreadTeam team(1);
  nn::Runner runner(team);
  const auto voice = loaded.voice(runner);
  ChunkSpeaker speaker = loaded.speaker(runner);
  const std::vector<float> noise(speaker.latent());
  std::vector<float> frame(speaker.frame_samples());
  EXPECT_FALSE(speaker.next(0, noise, frame)) << "nothing was begun";
  const std::vector<int32_t> unknown = {1 << 20};
  const Status token = speaker.begin(0, voice, unknown, -4.0f, 3);
  ASSERT_FALSE(token.has_value());
  EXPECT_EQ(token.error().code, Code::kInvalidArgument);
  EXPECT_FALSE(speaker.next(0, noise, frame));
  const std::vector<int32_t> one = {5};
  EXPECT_EQ(speaker.begin(0, other.voice(runner), one, -4.0f, 3).error().code, Code::kInvalidArgument);
  const std::vector<int32_t> long_text(4000, 5);
  EXPECT_EQ(speaker.begin(0, voice, long_text, -4.0f, 3).error().code, Code::kLimitExceeded);
}

// The rise goes on over as many frames as it needs.
TEST(ChunkSpeaker, FadesInOverFramesShorterThanTheRise) {
  std::vector<float> whole(300, 1.0f);
  size_t risen = 0;
  fade_in_chunk(whole, risen);
  EXPECT_EQ(risen, kFadeInSamples);
  for (size_t i = 0; i < whole.size(); ++i) ASSERT_EQ(whole[i], i < 120 ? static_cast<float>(i) / 119.0f : 1.0f) << i;
  for (const size_t frame : {1, 50, 64, 119, 120, 121}) {
    std::vector<float> sound(300, 1.0f);
    risen = 0;
    for (size_t at = 0; at < sound.size(); at += frame)
      fade_in_chunk(std::span(sound).subspan(at, std::min(frame, sound.size() - at)), risen);
    EXPECT_EQ(sound, whole) << frame;
  }
}

}  // namespace
}  // namespace syrinx::pocket
