// Times the codec of a Pocket TTS checkpoint, layer by layer, beside the f32 peak measured in the same run.
//
//   mimi_layers FOLDER [THREADS [FRAMES [SECONDS]]]      FOLDER holds config.yaml and model.safetensors
//
// A frame is decoded at a time, on the same team: `warm` right after another, `cold` after 64 MiB of other memory were
// read, as a language model's step does.  SECONDS of sound are encoded in one call.  Times are medians.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "base/mapped_file.h"
#include "kernels/limits.h"
#include "models/mimi/decoder.h"
#include "models/mimi/encoder.h"
#include "models/pocket_tts/config_file.h"
#include "tensor/safetensors.h"

namespace {

using namespace syrinx;
using Clock = std::chrono::steady_clock;

double milliseconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

template <class T>
T get(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "mimi_layers: %s\n", result.error().message.c_str());
  std::exit(1);
}

struct Checkpoint {
  explicit Checkpoint(const std::string& folder) : file(get(MappedFile::open(folder + "/model.safetensors"))) {
    const MappedFile yaml = get(MappedFile::open(folder + "/config.yaml"));
    const auto bytes = yaml.bytes();
    config = get(pocket::parse_config({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, folder)).config.mimi;
    tensors = get(Safetensors::parse(file.bytes(), folder));
  }
  MappedFile file;
  mimi::Config config;
  Safetensors tensors;
};

// Operations of a frame, by the names that the probe gives; a multiply-add counts as two.
using Work = std::map<std::string, double>;

std::string stage_name(std::string_view stage, size_t index) {
  return std::string(stage) + "." + std::to_string(index);
}

void add_transformer(Work& work, const nn::TransformerConfig& c, size_t rows) {
  const double weights =
      static_cast<double>(c.width * (2 * c.attention_width + 2 * c.key_width()) + 2 * c.width * c.hidden);
  const double attention = 2.0 * static_cast<double>(c.attention_width * c.window);
  for (size_t i = 0; i < c.layers; ++i)
    work[stage_name("transformer", i)] = 2.0 * static_cast<double>(rows) * (weights + attention);
}

Work decoder_work(const mimi::Config& config) {
  Work work;
  const mimi::SeanetConfig& s = config.decoder;
  size_t rows = config.resample_stride(), width = s.filters << s.ratios.size(), module = 0;
  work["quantizer.0"] = 2.0 * static_cast<double>(config.latent * config.outer_width);
  work["upsample.0"] = 4.0 * static_cast<double>(rows * config.outer_width);
  add_transformer(work, config.decoder_transformer, rows);
  work[stage_name("decoder", module)] = 2.0 * static_cast<double>(rows * s.width * width * s.kernel);
  for (const size_t ratio : s.ratios) {
    module += 2;
    work[stage_name("decoder", module)] = 2.0 * static_cast<double>(rows * width * width * ratio);
    width /= 2;
    rows *= ratio;
    for (size_t j = 0; j < s.residual_layers; ++j) {
      const size_t inner = width / s.compress;
      work[stage_name("decoder", ++module)] = 2.0 * static_cast<double>(rows * width * inner * (s.residual_kernel + 1));
    }
  }
  work[stage_name("decoder", module + 2)] = 2.0 * static_cast<double>(rows * width * s.last_kernel);
  return work;
}

Work encoder_work(const mimi::Config& config) {
  Work work;
  const mimi::SeanetConfig& s = config.encoder;
  size_t rows = config.frame_samples(), width = s.filters, module = 0;
  work[stage_name("encoder", module)] = 2.0 * static_cast<double>(rows * width * s.kernel);
  for (auto ratio = s.ratios.rbegin(); ratio != s.ratios.rend(); ++ratio) {
    for (size_t j = 0; j < s.residual_layers; ++j) {
      const size_t inner = width / s.compress;
      work[stage_name("encoder", ++module)] = 2.0 * static_cast<double>(rows * width * inner * (s.residual_kernel + 1));
    }
    rows /= *ratio;
    module += 2;
    work[stage_name("encoder", module)] = 2.0 * static_cast<double>(rows * width * 2 * width * 2 * *ratio);
    width *= 2;
  }
  work[stage_name("encoder", module + 2)] = 2.0 * static_cast<double>(rows * width * s.width * s.last_kernel);
  add_transformer(work, config.encoder_transformer, rows);
  work["latents.0"] = 2.0 * static_cast<double>(rows * 2 * s.width * config.inner_width);
  return work;
}

// Time since the last stage, of each stage.
class Stopwatch {
 public:
  void start() { last_ = Clock::now(); }
  mimi::Probe probe() {
    return [this](std::string_view stage, size_t index, View<const float, 2>) {
      const auto now = Clock::now();
      std::string name = stage_name(stage, index);
      if (times_.find(name) == times_.end()) order_.push_back(name);
      times_[std::move(name)].push_back(milliseconds(last_, now));
      last_ = now;
    };
  }
  // `work` is that of all passes together.
  void print(const Work& work, double peak) const {
    for (const std::string& name : order_) {
      const std::vector<double>& times = times_.at(name);
      const double operations = work.at(name) / static_cast<double>(times.size());
      const double ms = median(times), rate = operations / ms * 1e-6;
      std::printf("  %-16s %8.3f ms %8.2f MFLOP %7.1f GFLOP/s %4.0f %%\n", name.c_str(), ms, operations * 1e-6, rate,
                  100 * rate / peak);
    }
  }

 private:
  Clock::time_point last_;
  std::vector<std::string> order_;
  std::map<std::string, std::vector<double>> times_;
};

Work times_of(Work work, size_t frames) {
  for (auto& [name, operations] : work) operations *= static_cast<double>(frames);
  return work;
}

double total(const Work& work) {
  double sum = 0;
  for (const auto& [name, operations] : work) sum += operations;
  return sum;
}

void print_total(const char* what, const std::vector<double>& times, double operations, double peak) {
  const double ms = median(times), least = *std::min_element(times.begin(), times.end());
  std::printf("%s: %.3f ms (least %.3f), %.1f MFLOP, %.1f GFLOP/s, %.2f x the floor of %.3f ms\n", what, ms, least,
              operations * 1e-6, operations / ms * 1e-6, ms * 1e6 * peak / operations, operations / peak * 1e-6);
}

// Values as a language model's latents have them: near unit size, without a pattern.
std::vector<float> numbers(size_t count) {
  std::vector<float> values(count);
  uint32_t state = 12345;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) / 8388608.0f - 1.0f;
  }
  return values;
}

void time_decoder(const Checkpoint& checkpoint, nn::Runner& runner, size_t frames, double peak) {
  const mimi::Config& config = checkpoint.config;
  const auto weights = std::make_shared<const mimi::DecoderWeights>(
      get(mimi::DecoderWeights::load(checkpoint.tensors, "the checkpoint", config)));
  mimi::Decoder decoder(weights, runner);
  mimi::DecoderState state = decoder.make_state();
  const std::vector<float> latents = numbers(frames * config.latent);
  std::vector<float> samples(config.frame_samples());
  const std::vector<float> other = numbers(size_t{16} << 20);
  float sum = 0;
  const Work work = decoder_work(config);
  for (const bool cold : {false, true}) {
    Stopwatch stopwatch;
    std::vector<double> times;
    for (const bool probed : {false, true}) {
      decoder.set_probe(probed ? stopwatch.probe() : mimi::Probe());
      for (size_t i = 0; i < frames; ++i) {
        for (size_t j = 0; cold && j < other.size(); j += 16) sum += other[j];
        const auto start = Clock::now();
        stopwatch.start();
        decoder.decode(state, {latents.data() + i * config.latent, {1, config.latent}}, samples);
        if (!probed) times.push_back(milliseconds(start, Clock::now()));
      }
    }
    print_total(cold ? "decoder, a cold frame" : "decoder, a warm frame", times, total(work), peak);
    stopwatch.print(times_of(work, frames), peak);
  }
  if (sum == 1.0f) std::printf("\n");  // nobody may leave the reading out
}

void time_encoder(const Checkpoint& checkpoint, nn::Runner& runner, double seconds, double peak) {
  const mimi::Config& config = checkpoint.config;
  const auto weights = std::make_shared<const mimi::EncoderWeights>(
      get(mimi::EncoderWeights::load(checkpoint.tensors, "the checkpoint", config)));
  mimi::Encoder encoder(weights, runner);
  mimi::EncoderState state = encoder.make_state();
  const std::vector<float> samples = numbers(static_cast<size_t>(seconds * static_cast<double>(config.sample_rate)));
  const size_t frames = encoder.frames(samples.size());
  std::vector<float> latents(frames * config.inner_width);
  const View<float, 2> out{latents.data(), {frames, config.inner_width}};
  Stopwatch stopwatch;
  std::vector<double> times;
  for (int run = 0; run < 3; ++run) {
    mimi::Encoder::reset(state);
    const auto start = Clock::now();
    encoder.encode(state, samples, out);
    times.push_back(milliseconds(start, Clock::now()));
  }
  encoder.set_probe(stopwatch.probe());
  mimi::Encoder::reset(state);
  stopwatch.start();
  encoder.encode(state, samples, out);
  const Work work = encoder_work(config);
  print_total("encoder, the whole", times, total(work) * static_cast<double>(frames), peak);
  std::printf("a pass of it:\n");
  stopwatch.print(times_of(work, frames), peak);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "mimi_layers FOLDER [THREADS [FRAMES [SECONDS]]]\n");
    return 1;
  }
  const int threads = argc > 2 ? std::atoi(argv[2]) : 1;
  const int frames = argc > 3 ? std::atoi(argv[3]) : 100;
  const double seconds = argc > 4 ? std::atof(argv[4]) : 11.0;
  const Checkpoint checkpoint(argv[1]);
  ThreadTeam team(std::max(threads, 1));
  nn::Runner runner(team);
  const double peak = kernels::measure_limits(team).f32_gop_per_s.all_threads;
  std::printf("%s, %d threads, f32 peak %.1f GFLOP/s\n", argv[1], team.size(), peak);
  if (frames > 0) time_decoder(checkpoint, runner, static_cast<size_t>(frames), peak);
  if (seconds > 0) time_encoder(checkpoint, runner, seconds, peak);
  return 0;
}
