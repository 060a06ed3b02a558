// Qwen3-TTS: whether the codec of a frame gains beside the talker and predictor of the next one.  Both in turns on all
// threads, as the product has it; each alone on one thread; and both at once, on one thread each.  From these the time
// of a frame where all members help the one that is not done yet.  And what jobs, barriers and draws take of a frame.
//
//   qwen_beside MODEL [FRAMES [CACHE FOLDER]]      MODEL: a folder of CustomVoice; two processors
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "bench/suite/rounds.h"
#include "engine/families/qwen_tts/qwen_model.h"
#include "kernels/argmax.h"
#include "kernels/block_exponentials.h"
#include "models/qwen_tts/codec_decoder.h"
#include "models/qwen_tts/frame_generator.h"
#include "nn/runner.h"
#include "nn/sampler.h"

namespace syrinx {
namespace {

using bench::Times;

// One stream on a team of its own.
class Frames {
 public:
  Frames(const QwenModel& model, nn::Runner& runner, size_t frames)
      : generator_(*qwen_tts::FrameGenerator::make(model.weights(), runner)) {
    const std::vector<int32_t> ids = *model.tokenizer().encode("The quick brown fox jumps over the lazy dog.");
    qwen_tts::Prompt prompt = *qwen_tts::make_prompt(model.config(), {.role = model.tokenizer().role(), .text = ids});
    qwen_tts::SpeechSettings settings{.draws = model.generation()};
    settings.draws.max_frames = frames;
    stream_ = *generator_->make_stream(generator_->positions_for(prompt, settings));
    if (!generator_->begin(stream_, std::move(prompt), settings)) std::abort();
    while (!generator_->read_prompt(stream_)) continue;
  }
  std::vector<int32_t> next() {
    qwen_tts::FrameStream* const pointer = &stream_;
    generator_->step({&pointer, 1});
    return {stream_.codes().begin(), stream_.codes().end()};
  }

 private:
  const std::unique_ptr<qwen_tts::FrameGenerator> generator_;
  qwen_tts::FrameStream stream_;
};

class Sound {
 public:
  Sound(const QwenModel& model, nn::Runner& runner) : decoder_(model.codec(), runner), state_(decoder_.make_state()) {
    samples_.resize(decoder_.config().frame_samples());
  }
  void decode(const std::vector<int32_t>& codes) {
    decoder_.decode(state_, {codes.data(), {1, codes.size()}}, samples_);
  }

 private:
  qwen_tts::CodecDecoder decoder_;
  qwen_tts::CodecDecoderState state_;
  std::vector<float> samples_;
};

template <class Work>
Times time(size_t frames, const Work& work) {
  Times times;
  for (size_t n = 0; n < frames; ++n) {
    const Stopwatch watch;
    work(n);
    times.add(watch.elapsed_ms());
  }
  times.sort();
  return times;
}

void tell(const char* name, const Times& times) {
  std::printf("%-44s ms p50 %6.1f (%.1f to %.1f), n %zu\n", name, times.median(), times.min(), times.max(),
              times.size());
}

// The draws of a frame, of normally distributed logits: one of the talker's with its penalty, and its exponentials
// (the end's probability), then those of the predictor.
void tell_draws(const QwenModel& model, size_t frames) {
  const qwen_tts::Config& config = model.config();
  const qwen_tts::GenerationConfig& draws = model.generation();
  Rng rng(1);
  std::vector<float> logits(config.vocabulary), scratch(config.vocabulary);
  for (float& each : logits) each = rng.normal();
  std::vector<int32_t> seen;
  for (int32_t n = 0; n < 50; ++n) seen.push_back(7 * n);
  nn::Sampler talker(config.vocabulary), predictor(config.predictor_codes);
  const auto settings = [](const qwen_tts::DrawSettings& draw, float penalty) {
    return nn::SamplerSettings{
        .temperature = draw.temperature, .top_k = draw.top_k, .top_p = draw.top_p, .penalty = penalty};
  };
  std::vector<double> sums(kernels::exponential_blocks(config.codes()));
  std::vector<float> maxima(sums.size());
  const Times first = time(frames, [&](size_t n) {
    scratch = logits;
    const std::span<const float> codes(scratch.data(), config.codes());
    kernels::block_exponentials(codes, kernels::argmax(codes).value, 1.0f, sums, maxima);
    talker.draw(scratch, settings(draws.talker, draws.penalty), seen, {.frame = static_cast<uint32_t>(n)});
  });
  const Times others = time(frames, [&](size_t n) {
    for (size_t pass = 1; pass < config.codebooks; ++pass) {
      std::copy_n(logits.data() + pass, config.predictor_codes, scratch.data());
      predictor.draw({scratch.data(), config.predictor_codes}, settings(draws.predictor, 1), {},
                     {.frame = static_cast<uint32_t>(n), .codebook = static_cast<uint32_t>(pass)});
    }
  });
  std::printf("draws of a frame: us p50 %.0f of the talker, %.0f of the predictor\n", 1e3 * first.median(),
              1e3 * others.median());
}

int run(const char* folder, size_t frames, const char* cache) {
  ThreadTeam packers(2);
  const auto loaded = QwenModel::load(folder, {.precision = Precision::kInt8, .cache_folder = cache, .team = &packers});
  if (!loaded) return std::fprintf(stderr, "%s\n", loaded.error().message.c_str()), 1;
  const QwenModel& model = **loaded;
  tell_draws(model, 200);
  std::vector<std::vector<int32_t>> codes;
  double two_ms = 0, codec_two_ms = 0;
  {
    ThreadTeam team(2);
    nn::Runner runner(team);
    Frames generator(model, runner, frames);
    Sound sound(model, runner);
    two_ms = [&] {
      const Times times = time(frames, [&](size_t) { codes.push_back(generator.next()); });
      tell("talker and predictor, two threads", times);
      return times.median();
    }();
    const Times times = time(frames, [&](size_t n) { sound.decode(codes[n]); });
    tell("codec, two threads", times);
    codec_two_ms = times.median();
    const Times jobs = time(1000, [&](size_t) { team.run([](int) {}); });
    std::printf("an empty job of the team: us p50 %.2f\n", 1e3 * jobs.median());
    const Times barriers = time(1000, [&](size_t) {
      team.run([&](int) {
        for (int n = 0; n < 100; ++n) team.barrier();
      });
    });
    std::printf("a barrier of the team: us p50 %.2f\n", 10 * barriers.median());
  }
  ThreadTeam one(1), other(1);
  nn::Runner one_runner(one), other_runner(other);
  Sound sound(model, other_runner);
  tell("talker and predictor, one thread", [&] {
    Frames generator(model, one_runner, frames);
    return time(frames / 2, [&](size_t) { generator.next(); });
  }());
  tell("codec, one thread", time(frames / 2, [&](size_t n) { sound.decode(codes[n]); }));
  Frames generator(model, one_runner, frames);
  Times beside, codec;
  std::atomic<bool> ends{false};
  std::thread decoding([&] {
    for (size_t n = 0; !ends; ++n) {
      const Stopwatch watch;
      sound.decode(codes[n % codes.size()]);
      codec.add(watch.elapsed_ms());
    }
  });
  beside = time(frames / 2, [&](size_t) { generator.next(); });
  ends = true;
  decoding.join();
  codec.sort();
  tell("talker and predictor, one thread, beside codec", beside);
  tell("codec, one thread, beside talker", codec);
  const double joined_ms = codec.median() + (1 - codec.median() / beside.median()) * two_ms;
  std::printf("a frame in turns: %.1f ms; beside each other, then together: %.1f ms\n", two_ms + codec_two_ms,
              joined_ms);
  return 0;
}

}  // namespace
}  // namespace syrinx

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: qwen_beside MODEL [FRAMES [CACHE FOLDER]]\n"), 2;
  return syrinx::run(argv[1], argc > 2 ? static_cast<size_t>(std::atoi(argv[2])) : 60, argc > 3 ? argv[3] : "");
}
