// Times the codec of a Pocket TTS checkpoint, layer by layer, beside the f32 and bf16 peaks measured in the same run.
//
//   mimi_layers FOLDER [THREADS [FRAMES [SECONDS [PRECISION]]]]     FOLDER holds config.yaml and model.safetensors
//
// PRECISION is f32, or bf16, which stands for int8 and int4 too: the codec is the same in all three.
// SYRINX_CPU lowers the target, as everywhere.  A frame is decoded at a time, on the same team: `warm` right after
// another, `cold` after 64 MiB of other memory were read, as a language model's step does.  SECONDS of sound are
// encoded in one call.  Times are medians.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "base/mapped_file.h"
#include "kernels/dispatch.h"
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

// Peak rates of this machine, GFLOP/s by name.
using Peaks = std::vector<std::pair<const char*, double>>;

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
  void print(const Work& work, const Peaks& peaks) const {
    for (const std::string& name : order_) {
      const std::vector<double>& times = times_.at(name);
      const double operations = work.at(name) / static_cast<double>(times.size());
      const double ms = median(times), rate = operations / ms * 1e-6;
      std::printf("  %-16s %8.3f ms %8.2f MFLOP %7.1f GFLOP/s", name.c_str(), ms, operations * 1e-6, rate);
      for (const auto& [name, peak] : peaks) std::printf(" %4.0f %% of %s", 100 * rate / peak, name);
      std::printf("\n");
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

void print_total(const char* what, const std::vector<double>& times, double operations, const Peaks& peaks) {
  const double ms = median(times), least = *std::min_element(times.begin(), times.end());
  std::printf("%s: %.3f ms (least %.3f), %.1f MFLOP, %.1f GFLOP/s", what, ms, least, operations * 1e-6,
              operations / ms * 1e-6);
  for (const auto& [name, peak] : peaks)
    std::printf(", %.2f x the %s floor of %.3f ms", ms * 1e6 * peak / operations, name, operations / peak * 1e-6);
  std::printf("\n");
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

std::shared_ptr<const mimi::DecoderWeights> decoder_weights(const Checkpoint& c, Precision precision) {
  return std::make_shared<const mimi::DecoderWeights>(
      get(mimi::DecoderWeights::load(c.tensors, "the checkpoint", c.config, precision)));
}
std::shared_ptr<const mimi::EncoderWeights> encoder_weights(const Checkpoint& c, Precision precision) {
  return std::make_shared<const mimi::EncoderWeights>(
      get(mimi::EncoderWeights::load(c.tensors, "the checkpoint", c.config, precision)));
}

// How far the narrow precision's numbers are from those of f32.
void print_error(const char* what, const std::vector<float>& narrow, const std::vector<float>& f32) {
  double signal = 0, noise = 0, most = 0, worst = 0;
  for (size_t i = 0; i < f32.size(); ++i) {
    const double value = f32[i], error = std::abs(narrow[i] - value);
    signal += value * value;
    noise += error * error;
    most = std::max(most, std::abs(value));
    worst = std::max(worst, error);
  }
  std::printf("%s beside f32: SNR %.1f dB, worst %.1e of the largest\n", what, 10 * std::log10(signal / noise),
              worst / most);
}

void time_decoder(const Checkpoint& checkpoint, nn::Runner& runner, size_t frames, Precision precision,
                  const Peaks& peaks) {
  const mimi::Config& config = checkpoint.config;
  const auto weights = decoder_weights(checkpoint, precision);
  mimi::Decoder decoder(weights, runner);
  mimi::DecoderState state = decoder.make_state();
  const std::vector<float> latents = numbers(frames * config.latent);
  if (precision != Precision::kF32) {
    const auto decode = [&](Precision p) {
      mimi::Decoder one(decoder_weights(checkpoint, p), runner);
      mimi::DecoderState from_start = one.make_state();
      std::vector<float> all(frames * config.frame_samples());
      one.decode(from_start, {latents.data(), {frames, config.latent}}, all);
      return all;
    };
    print_error("samples", decode(precision), decode(Precision::kF32));
  }
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
    print_total(cold ? "decoder, a cold frame" : "decoder, a warm frame", times, total(work), peaks);
    stopwatch.print(times_of(work, frames), peaks);
  }
  if (sum == 1.0f) std::printf("\n");  // nobody may leave the reading out
}

void time_encoder(const Checkpoint& checkpoint, nn::Runner& runner, double seconds, Precision precision,
                  const Peaks& peaks) {
  const mimi::Config& config = checkpoint.config;
  const auto weights = encoder_weights(checkpoint, precision);
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
  if (precision != Precision::kF32) {
    mimi::Encoder wide(encoder_weights(checkpoint, Precision::kF32), runner);
    mimi::EncoderState from_start = wide.make_state();
    std::vector<float> f32(latents.size());
    wide.encode(from_start, samples, {f32.data(), {frames, config.inner_width}});
    print_error("latents", latents, f32);
  }
  encoder.set_probe(stopwatch.probe());
  mimi::Encoder::reset(state);
  stopwatch.start();
  encoder.encode(state, samples, out);
  const Work work = encoder_work(config);
  print_total("encoder, the whole", times, total(work) * static_cast<double>(frames), peaks);
  std::printf("a pass of it:\n");
  stopwatch.print(times_of(work, frames), peaks);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "mimi_layers FOLDER [THREADS [FRAMES [SECONDS [PRECISION]]]]\n");
    return 1;
  }
  if (const Status status = kernels::limit_cpu_from_environment(); !status) {
    std::fprintf(stderr, "mimi_layers: %s\n", status.error().message.c_str());
    return 1;
  }
  const int threads = argc > 2 ? std::atoi(argv[2]) : 1;
  const int frames = argc > 3 ? std::atoi(argv[3]) : 100;
  const double seconds = argc > 4 ? std::atof(argv[4]) : 11.0;
  const Checkpoint checkpoint(argv[1]);
  ThreadTeam team(std::max(threads, 1));
  nn::Runner runner(team);
  const Precision precision = argc > 5 ? get(parse_precision(argv[5])) : Precision::kF32;
  const kernels::MachineLimits limits = kernels::measure_limits(team);
  Peaks peaks{{"f32", limits.f32_gop_per_s.all_threads}};
  if (limits.bf16_gop_per_s.all_threads > 0) peaks.emplace_back("bf16", limits.bf16_gop_per_s.all_threads);
  std::printf("%s, %s, %d threads", argv[1], precision_name(precision), team.size());
  for (const auto& [name, peak] : peaks) std::printf(", %s peak %.1f GFLOP/s", name, peak);
  std::printf("\n");
  if (frames > 0) time_decoder(checkpoint, runner, static_cast<size_t>(frames), precision, peaks);
  if (seconds > 0) time_encoder(checkpoint, runner, seconds, precision, peaks);
  return 0;
}
