// How long the result of a chunk takes in a cache-aware transducer, from its last sample to its labels, and what each
// principle of the hot path is worth there (spec transducer-asr.md, section 5.6).
//
//   transducer_latency FILE [PRECISION [THREADS [CHUNKS]]]     FILE as Checkpoint::open() takes it
//
// A row gives p50, p99 and p99.9 in microseconds of CHUNKS chunks, each begun as soon as the one before is done. "first
// chunk" is one measurement after SECONDS of sleep, the median of a few.  Under each principle stands what the program
// does, then what it does without it, measured in turns.  An empty loop of the same length stands beside the chunk:
// what the machine itself adds.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string_view>
#include <thread>

#include "engine/transducer_frames.h"
#include "kernels/argmax.h"
#include "models/transducer/head_decoder.h"

namespace {

using namespace syrinx;
using transducer::Emission;
using Clock = std::chrono::steady_clock;

double microseconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

template <class Body>
double timed(const Body& body) {
  const Clock::time_point from = Clock::now();
  body();
  return microseconds(from, Clock::now());
}

void print_row(const char* name, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    const auto index = static_cast<size_t>(std::ceil(share * static_cast<double>(times.size())));
    return times[std::min(times.size() - 1, index == 0 ? 0 : index - 1)];
  };
  std::printf("  %-46s %9.1f %9.1f %9.1f   %5.2f %5.2f\n", name, at(0.5), at(0.99), at(0.999), at(0.99) / at(0.5),
              at(0.999) / at(0.5));
}

// What the program does beside what it does without a principle, chunk by chunk in turns, so that both meet the same
// machine.
void compare(const char* with, const std::function<void()>& one, const char* without,
             const std::function<void()>& other, size_t chunks) {
  std::vector<double> a, b;
  for (size_t i = 0; i < chunks; ++i) {
    a.push_back(timed(one));
    b.push_back(timed(other));
  }
  print_row(with, a);
  print_row(without, b);
}

// The decoder that asks for the kind of head at every decision.
class AskingDecoder final : public transducer::GreedyDecoder {
 public:
  AskingDecoder(std::shared_ptr<const transducer::DecoderWeights> weights, nn::Runner& runner)
      : GreedyDecoder(std::move(weights), runner, {}, 1, kBlock) {}
  static constexpr size_t kBlock = 16;

 private:
  bool decide(Lane& lane, std::span<float> logits) override {
    transducer::DecoderState::Head& head = lane.state->head();
    const size_t labels = weights_->config.vocabulary + 1;
    const int32_t label = choose(head, logits.first(labels));
    size_t ahead = 0;
    if (weights_->config.kind == transducer::HeadKind::kTdt)
      ahead = weights_->config.durations[kernels::argmax(logits.subspan(labels)).index];
    if (label == weights_->blank()) {
      head.frame += static_cast<int64_t>(std::max(ahead, size_t{1}));
      head.emissions = 0;
      return false;
    }
    const bool durations = weights_->config.kind == transducer::HeadKind::kTdt;
    emit(lane, label, durations ? static_cast<uint32_t>(ahead) : 1, logits.first(labels));
    head.emissions = ahead > 0 ? 0 : head.emissions + 1;
    if (head.emissions >= weights_->config.max_symbols) {
      ahead = 1;
      head.emissions = 0;
    }
    head.frame += static_cast<int64_t>(ahead);
    return true;
  }
};

// A stream of noise through the whole path.
class Path {
 public:
  Path(std::shared_ptr<const transducer::Model> model, int threads)
      : model_(std::move(model)),
        team_(threads),
        runner_(team_),
        pool_(*model_, runner_, turns_, model_->config().encoder.contexts.front(), {}, 1),
        decoder_(transducer::GreedyDecoder::make(model_->decoder(), runner_, {}, 1, AskingDecoder::kBlock)),
        asking_(model_->decoder(), runner_),
        track_(*model_->decoder()),
        state_(*track_.state.transducer),
        found_(track_.found),
        source_(*model_, pool_, track_),
        chunk_(chunk_mels(model_->config().encoder, pool_.context()) * model_->config().features.hop),
        sound_(64 * chunk_) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0.0f, 0.1f);
    for (float& sample : sound_) sample = normal(random);
    found_.reserve(1 << 20);
  }

  // The next chunk, whole.
  void chunk() {
    const std::span<const float> samples = std::span(sound_).subspan(next_ * chunk_, chunk_);
    next_ = (next_ + 1) % 64;
    if (found_.size() + 64 > found_.capacity()) found_.clear();
    source_.push(samples, [](View<const float, 2>) {});
  }
  // The decoder alone on the frames of some chunk.
  void decode_again(transducer::GreedyDecoder& decoder) {
    if (found_.size() + 64 > found_.capacity()) found_.clear();
    decode(decoder, {kept_.data(), {rows_, width_}});
  }
  // The same, and after each frame whether everything is finite.
  void decode_checked() {
    for (size_t row = 0; row < rows_; ++row) {
      decode(*decoder_, {kept_.data() + row * width_, {1, width_}});
      bool finite = state_.head().faults == 0;
      for (const float value : state_.projection()) finite = finite && std::isfinite(value);
      for (size_t layer = 0; layer < model_->decoder()->layers.size(); ++layer)
        for (const float value : state_.hidden(layer)) finite = finite && std::isfinite(value);
      if (!finite) std::abort();
    }
  }
  void decode_with_new_scratch() {
    const auto decoder = transducer::GreedyDecoder::make(model_->decoder(), runner_, {}, 1, AskingDecoder::kBlock);
    decode(*decoder, {kept_.data(), {rows_, width_}});
  }
  void keep_frames() {
    const std::span<const float> samples = std::span(sound_).first(chunk_);
    for (int i = 0; i < 3; ++i) {
      source_.push(samples, [&](View<const float, 2> frames) {
        rows_ = frames.extent(0);
        width_ = frames.extent(1);
        kept_.assign(frames.data(), frames.data() + rows_ * frames.stride(0));
      });
    }
  }
  transducer::GreedyDecoder& compiled() { return *decoder_; }
  transducer::GreedyDecoder& asking() { return asking_; }
  double chunk_ms() const { return static_cast<double>(chunk_) / 16.0; }
  size_t labels() const { return found_.size(); }

 private:
  void decode(transducer::GreedyDecoder& decoder, View<const float, 2> frames) {
    const transducer::GreedyDecoder::Job job{&state_, frames, &found_};
    decoder.decode({&job, 1});
  }

  std::shared_ptr<const transducer::Model> model_;
  ThreadTeam team_;
  nn::Runner runner_;
  Turns turns_;
  ChunkPool pool_;
  std::unique_ptr<transducer::GreedyDecoder> decoder_;
  AskingDecoder asking_;
  LabelTrack track_;
  transducer::DecoderState& state_;
  std::vector<Emission>& found_;
  ChunkedFrames source_;
  size_t chunk_, next_ = 0;
  std::vector<float> sound_;
  std::vector<float> kept_;  // frames of a chunk
  size_t rows_ = 0, width_ = 0;
};

// Adds up in registers for about so long.
void spin(double us) {
  const Clock::time_point from = Clock::now();
  while (microseconds(from, Clock::now()) < us) {
  }
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The first chunk after sleep; with `beat`, a chunk of the decoder every 50 ms meanwhile.
void first_after(Path& path, double seconds, int rounds, bool beat) {
  std::vector<double> first;
  for (int round = 0; round < rounds; ++round) {
    const Clock::time_point until = Clock::now() + std::chrono::microseconds(static_cast<int64_t>(seconds * 1e6));
    while (Clock::now() < until) {
      std::this_thread::sleep_until(beat ? std::min(until, Clock::now() + std::chrono::milliseconds(50)) : until);
      if (beat) path.decode_again(path.compiled());
    }
    first.push_back(timed([&] { path.chunk(); }));
    for (int i = 0; i < 20; ++i) path.chunk();
  }
  std::printf("  first chunk after %4.0f s of sleep%-14s %9.1f\n", seconds, beat ? ", heartbeat" : "", median(first));
}

void measure(Path& path, size_t chunks) {
  std::vector<double> times, empty;
  for (size_t i = 0; i < chunks; ++i) times.push_back(timed([&] { path.chunk(); }));
  const double length = median(times);
  for (size_t i = 0; i < chunks; ++i) empty.push_back(timed([&] { spin(length); }));
  print_row("chunk: features, encoder, decoder", times);
  print_row("empty loop of the same length", empty);
  path.keep_frames();
  const auto plain = [&] { path.decode_again(path.compiled()); };
  for (int i = 0; i < 50; ++i) plain();
  std::printf("the decoder alone on a chunk's frames\n");
  const size_t rounds = 5 * chunks;
  compare(
      "1 faults gathered, looked at once", plain, "  looked for after every frame", [&] { path.decode_checked(); },
      rounds);
  compare(
      "2 compiled for its kind of head", plain, "  asks for the kind at each decision",
      [&] { path.decode_again(path.asking()); }, rounds);
  compare(
      "6 scratch made once", plain, "  made anew for each chunk", [&] { path.decode_with_new_scratch(); }, rounds);
  constexpr int kCalls = 1000000;
  const float one = 1.0f;
  size_t sum = 0;
  const double calls = timed([&] {
    for (int i = 0; i < kCalls; ++i) sum += kernels::argmax({&one, 1}).index;
  });
  std::printf("5 a call through the table of targets: %.2f ns%s\n", calls * 1e3 / kCalls, sum == 0 ? "" : "?");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr,
                 "usage: transducer_latency FILE [PRECISION [THREADS [CHUNKS | idle SECONDS [ROUNDS [beat]]]]]\n");
    return 2;
  }
  const auto precision = parse_precision(argc > 2 ? argv[2] : "int8");
  const int threads = argc > 3 ? std::atoi(argv[3]) : 2;
  const bool idle = argc > 5 && std::string_view(argv[4]) == "idle";
  if (!precision || threads < 1) return 2;
  const auto model = transducer::Model::load(argv[1], {.precision = *precision});
  if (!model) {
    std::fprintf(stderr, "transducer_latency: %s\n", model.error().message.c_str());
    return 1;
  }
  if (!ChunkedFrames::fits(**model)) {
    std::fprintf(stderr, "transducer_latency: '%s' is not cache-aware\n", argv[1]);
    return 1;
  }
  Path path(*model, threads);
  std::vector<double> begin;
  for (int i = 0; i < 3; ++i) begin.push_back(timed([&] { path.chunk(); }));
  std::printf("%s, %d threads, chunks of %.0f ms; us: p50 p99 p99.9, p99 / p50, p99.9 / p50\n",
              precision_name(*precision), threads, path.chunk_ms());
  std::printf("  first, second, third chunk without warm-up     %9.1f %9.1f %9.1f\n", begin[0], begin[1], begin[2]);
  if (idle) {
    for (int i = 0; i < 50; ++i) path.chunk();
    path.keep_frames();
    first_after(path, std::atof(argv[5]), argc > 6 ? std::max(1, std::atoi(argv[6])) : 3, argc > 7);
  } else {
    measure(path, argc > 4 ? static_cast<size_t>(std::max(10, std::atoi(argv[4]))) : 2000);
  }
  return 0;
}
