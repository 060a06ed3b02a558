#include "models/pocket_tts/stream_pool.h"

#include <atomic>
#include <thread>

#include "loaded.h"

namespace syrinx::pocket {
namespace {

constexpr size_t kFrames = 6;

std::vector<int32_t> text_of(size_t stream) {
  return std::vector<int32_t>(stream % 5 + 1, static_cast<int32_t>(stream));
}

std::vector<float> say(StreamPool::Lease& lease, const std::shared_ptr<const FlowLmState>& voice,
                       std::span<const int32_t> ids) {
  std::vector<float> sound(kFrames * lease.frame_samples());
  const std::vector<float> noise(lease.latent(), 0.25f);
  EXPECT_TRUE(lease.begin(voice, ids, 1e30f, 3).has_value());
  for (size_t i = 0; i < kFrames; ++i)
    EXPECT_TRUE(lease.next(noise, std::span(sound).subspan(i * lease.frame_samples(), lease.frame_samples())));
  return sound;
}

// Eight threads, each with several chunks in a stream of its own, while another works on the team now and then.
TEST(StreamPool, ThreadsTogetherGetWhatEachGetsAlone) {
  const Loaded loaded("english_7m");
  constexpr size_t kStreams = 8;
  for (const int threads : {1, 2}) {
    ThreadTeam team(threads);
    nn::Runner runner(team);
    const auto voice = loaded.voice(runner);
    ChunkSpeaker alone = loaded.speaker(runner);
    std::vector<std::vector<float>> want;
    for (size_t n = 0; n < kStreams; ++n) want.push_back(frames_of(alone, voice, text_of(n), kFrames));

    StreamPool pool(loaded.flow, loaded.codec, *make_schedule(*loaded.flow, loaded.model.evaluations), runner,
                    kStreams);
    std::atomic<size_t> equal{0};
    std::vector<std::thread> speakers;
    for (size_t n = 0; n < kStreams; ++n) {
      speakers.emplace_back([&, n] {
        auto lease = pool.lease();
        if (!lease) return;
        for (size_t chunk = 0; chunk < 3; ++chunk) {
          const size_t text = (n + chunk) % kStreams;
          if (say(*lease, voice, text_of(text)) == want[text]) ++equal;
        }
      });
    }
    bool exclusive = true;
    for (int i = 0; i < 10; ++i) pool.alone([&] { team.run([&](int member) { exclusive &= member < threads; }); });
    for (std::thread& speaker : speakers) speaker.join();
    EXPECT_EQ(equal, 3 * kStreams) << threads << " threads";
    EXPECT_TRUE(exclusive);
  }
}

TEST(StreamPool, EndsAndErrorsAreEachStreamsOwn) {
  const Loaded loaded("english"), other("english_7m");
  ThreadTeam team(1);
  nn::Runner runner(team);
  const auto voice = loaded.voice(runner);
  StreamPool pool(loaded.flow, loaded.codec, *make_schedule(*loaded.flow, loaded.model.evaluations), runner, 2);
  auto first = pool.lease();
  ASSERT_TRUE(first.has_value());
  {
    const auto second = pool.lease();
    ASSERT_TRUE(second.has_value());
    const auto third = pool.lease();
    ASSERT_FALSE(third.has_value());
    EXPECT_EQ(third.error().code, Code::kUnavailable);
    EXPECT_EQ(third.error().message, "all 2 streams speak; ask again when one has ended");
  }
  auto again = pool.lease();
  ASSERT_TRUE(again.has_value()) << "a lease that ended gives its stream back";
  const std::vector<int32_t> ids = {5, 6};
  const std::vector<float> noise(first->latent());
  std::vector<float> frame(first->frame_samples());
  ASSERT_TRUE(first->begin(voice, ids, 1e30f, 3).has_value());
  EXPECT_EQ(again->begin(other.voice(runner), ids, 1e30f, 3).error().code, Code::kInvalidArgument);
  EXPECT_FALSE(again->next(noise, frame));
  EXPECT_TRUE(first->next(noise, frame));
  // A threshold below every logit: the first step that may end does, and nothing is spoken after it.
  ASSERT_TRUE(again->begin(voice, ids, -1e30f, 0).has_value());
  size_t frames = 0;
  while (again->next(noise, frame)) ++frames;
  EXPECT_EQ(frames, again->end().frames());
  EXPECT_EQ(again->end().end_step(), std::optional<size_t>(frames));
  EXPECT_TRUE(first->next(noise, frame));
}

}  // namespace
}  // namespace syrinx::pocket
