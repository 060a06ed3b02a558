// Three streams of Qwen3-TTS speak and a fourth begins with a long prompt: how long the others wait for their frames
// while it is read, and the newcomer for its first sound.
//
//   qwen_newcomer MODEL [THREADS [TOKENS [FRAMES OF A CHUNK [CACHE FOLDER]]]]      MODEL: a folder of CustomVoice
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "engine/families/qwen_tts/frame_pool.h"
#include "engine/families/qwen_tts/qwen_model.h"

namespace syrinx {
namespace {

constexpr size_t kStreams = 3, kFrames = 120, kFrom = 40;  // the newcomer comes when each has so many frames
constexpr size_t kStart = 20;  // frames that are not counted: the streams are newcomers to each other
constexpr int64_t kFrameNs = 80'000'000;

using qwen_tts::FramePool;

FramePool::Piece piece(const QwenModel& model, size_t tokens, uint64_t seed, size_t frames) {
  const std::vector<int32_t> words = *model.tokenizer().encode("The quick brown fox jumps over the lazy dog. ");
  std::vector<int32_t> ids;
  while (ids.size() < tokens) ids.push_back(words[ids.size() % words.size()]);
  auto prompt = qwen_tts::make_prompt(model.config(), {.role = model.tokenizer().role(), .text = ids});
  if (!prompt) std::abort();
  qwen_tts::SpeechSettings settings{.draws = model.generation(), .seed = seed};
  settings.draws.max_frames = frames;
  return {.prompt = *std::move(prompt),
          .settings = settings,
          .expected_frames = qwen_tts::SpeechGuard::expected_frames(tokens),
          .codec = nullptr};
}

struct Wait {
  int64_t asked_ns, made_ns;
};

// As a listener that has heard everything so far: frames are due when the sound before them is over.
void speak(FramePool::Lease& lease, size_t chunk, std::atomic<size_t>& made, std::vector<Wait>& waits) {
  const Clock& clock = system_clock();
  std::vector<float> samples;
  int64_t due_ns = clock.now_ns();
  for (bool ended = false; !ended; ++made) {
    const int64_t asked_ns = clock.now_ns();
    const size_t before = samples.size();
    const auto frame = lease.next(chunk, samples, due_ns);
    ended = !frame || frame->ended;
    const int64_t now_ns = clock.now_ns();
    waits.push_back({asked_ns, now_ns});
    const size_t more = samples.size() - std::min(before, samples.size());  // a cut takes frames off
    due_ns = std::max(due_ns, now_ns) + static_cast<int64_t>(more / 1920) * kFrameNs;
  }
}

void tell(const char* name, std::vector<double> ms) {
  if (ms.empty()) return;
  std::sort(ms.begin(), ms.end());
  std::printf("%s: %zu frames, ms p50 %.0f p90 %.0f p99 %.0f most %.0f\n", name, ms.size(), ms[ms.size() / 2],
              ms[ms.size() * 9 / 10], ms[ms.size() * 99 / 100], ms.back());
}

int run(const char* folder, int threads, size_t tokens, size_t chunk, const char* cache) {
  ThreadTeam team(threads);
  const auto model = QwenModel::load(folder, {.precision = Precision::kInt8, .cache_folder = cache, .team = &team});
  if (!model) return std::fprintf(stderr, "%s\n", model.error().message.c_str()), 1;
  Scheduler scheduler;
  StepQueue queue(scheduler);
  nn::Runner runner(team);
  auto pool = FramePool::make((*model)->weights(), (*model)->codec(), runner, queue, kStreams + 1);
  if (!pool) return std::fprintf(stderr, "%s\n", pool.error().message.c_str()), 1;
  const auto first_sound_ms = [&] {
    FramePool::Lease lease = *(*pool)->lease();
    if (!lease.begin(piece(**model, tokens, 9, 2))) std::abort();
    std::vector<float> samples;
    const Stopwatch watch;
    if (!lease.next(1, samples, system_clock().now_ns())) std::abort();
    return watch.elapsed_ms();
  };
  first_sound_ms();
  std::printf("%zu tokens alone: first sound after %.0f ms\n", tokens, first_sound_ms());
  std::vector<std::vector<Wait>> waits(kStreams);
  std::vector<std::atomic<size_t>> made(kStreams);
  std::vector<FramePool::Lease> leases;
  for (size_t n = 0; n < kStreams; ++n) {
    leases.push_back(*(*pool)->lease());
    if (!leases[n].begin(piece(**model, 20, n, kFrames))) std::abort();
  }
  std::vector<std::thread> speakers;
  for (size_t n = 0; n < kStreams; ++n) speakers.emplace_back([&, n] { speak(leases[n], chunk, made[n], waits[n]); });
  while (std::any_of(made.begin(), made.end(), [](const auto& each) { return each < kFrom; }))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const int64_t began_ns = system_clock().now_ns();
  const double first_ms = first_sound_ms();
  const int64_t ended_ns = system_clock().now_ns();
  for (std::thread& speaker : speakers) speaker.join();
  std::vector<double> with, without;
  for (const auto& stream : waits)
    for (const Wait& wait : std::span(stream).subspan(std::min(stream.size(), kStart)))
      (wait.made_ns > began_ns && wait.asked_ns < ended_ns ? with : without)
          .push_back(static_cast<double>(wait.made_ns - wait.asked_ns) * 1e-6);
  tell("without a newcomer", without);
  tell("beside its prompt", with);
  std::printf("%zu tokens beside %zu streams: first sound after %.0f ms, at most %zu positions in a round\n", tokens,
              kStreams, first_ms, (*pool)->times().longest_slice);
  return 0;
}

}  // namespace
}  // namespace syrinx

int main(int argc, char** argv) {
  if (argc < 2)
    return std::fprintf(stderr, "usage: qwen_newcomer MODEL [THREADS [TOKENS [CHUNK [CACHE FOLDER]]]]\n"), 2;
  const auto number = [&](int at, int otherwise) { return argc > at ? std::atoi(argv[at]) : otherwise; };
  return syrinx::run(argv[1], number(2, 2), static_cast<size_t>(number(3, 400)), static_cast<size_t>(number(4, 1)),
                     argc > 5 ? argv[5] : "");
}
