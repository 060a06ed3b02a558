// The codec's decoder of Qwen3-TTS in its narrow form beside f32: the error of each stage and of the sound.
//
//   qwen_codec_distortion FOLDER [FRAMES [FACTOR]]
//
// FOLDER holds a codec's config.json and model.safetensors.  Random codes go through both forms three times, with the
// latents (the rows that the upsampling makes, by the weights that read them) times 1, 0.1 and 0.01, and with them the
// biases behind, so that the sound falls as it does in pauses.  FACTOR multiplies
// the second convolutions of residual units and the last one: 0.25 keeps random weights within the range of samples,
// as it does in the tests.  Prints a JSON object a line: decibels by which the error is below the f32 rows of each
// stage, below the sound, and below the sound from 1 to 12 kHz, in all and in that tenth of its frames which is lost
// most; and the part of the samples at full scale.  SYRINX_CPU lowers the target: SSE4 has bf16 in place of int16.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/mapped_file.h"
#include "kernels/dispatch.h"
#include "kernels/fft.h"
#include "models/qwen_tts/codec_decoder.h"
#include "tensor/safetensors.h"

namespace syrinx::qwen_tts {
namespace {

constexpr size_t kPass = 4, kWindow = 1920, kRate = 24000, kLowest = 1000;
constexpr std::string_view kLatentReader = "decoder.decoder.0.conv.weight";

using Stages = std::map<std::string, std::vector<float>>;

// The file's tensors, some of them multiplied.
class Tensors {
 public:
  Tensors(const Safetensors& file, float latents, float branches)
      : file_(file), latents_(latents), branches_(branches) {}
  const TensorRef* find(std::string_view name) {
    const TensorRef* const ref = file_.find(name);
    const float factor = factor_of(name);
    if (ref == nullptr || factor == 1.0f) return ref;
    std::vector<float>& values = values_[std::string(name)];
    values = to_f32(ref->bytes, ref->dtype);
    for (float& value : values) value *= factor;
    TensorRef& given = given_[std::string(name)];
    given = *ref;
    given.dtype = DType::kF32;
    given.bytes = std::as_bytes(std::span(values));
    return &given;
  }

 private:
  float factor_of(std::string_view name) const {
    if (name == kLatentReader) return latents_;
    if (name.starts_with("decoder.decoder.") && name.ends_with(".bias"))
      return name.starts_with("decoder.decoder.6.") ? latents_ * branches_ : latents_;
    if (name.starts_with("decoder.decoder.6.") || name.ends_with("conv2.conv.weight")) return branches_;
    return 1.0f;
  }
  const Safetensors& file_;
  float latents_, branches_;
  std::map<std::string, std::vector<float>> values_;
  std::map<std::string, TensorRef> given_;
};

struct Codec {
  CodecConfig config;
  MappedFile file;
  Safetensors tensors;

  static Result<Codec> open(const std::string& folder) {
    SYRINX_TRY(const MappedFile text, MappedFile::open(folder + "/config.json"));
    SYRINX_TRY(CodecConfig config,
               read_codec_config({reinterpret_cast<const char*>(text.bytes().data()), text.bytes().size()}, folder));
    SYRINX_TRY(MappedFile file, MappedFile::open(folder + "/model.safetensors"));
    SYRINX_TRY(Safetensors tensors, Safetensors::parse(file.bytes(), folder));
    return Codec{std::move(config), std::move(file), std::move(tensors)};
  }
};

Result<Stages> decode(const Codec& codec, Tensors& tensors, Precision precision, const std::vector<int32_t>& codes,
                      ThreadTeam& team) {
  SYRINX_TRY(
      CodecDecoderWeights weights,
      CodecDecoderWeights::load({.find = [&](std::string_view name) { return tensors.find(name); }, .team = &team},
                                "model.safetensors", codec.config, precision));
  nn::Runner runner(team);
  CodecDecoder decoder(std::make_shared<const CodecDecoderWeights>(std::move(weights)), runner, 1, kPass);
  Stages stages;
  decoder.set_probe([&](std::string_view stage, size_t index, View<const float, 2> rows) {
    if (stage == "samples") return;
    std::vector<float>& all = stages[fmt::format("{}.{}", stage, index)];
    for (size_t n = 0; n < rows.extent(0); ++n) all.insert(all.end(), rows.row(n), rows.row(n) + rows.extent(1));
  });
  CodecDecoderState state = decoder.make_state();
  const size_t books = decoder.config().codebooks, frames = codes.size() / books;
  std::vector<float>& samples = stages["sound"];
  samples.resize(frames * decoder.config().frame_samples());
  decoder.decode(state, {codes.data(), {frames, books}}, samples);
  if (state.faulty()) return fail(Code::kDataLoss, "samples that are not numbers");
  return stages;
}

double decibels(double signal, double error) { return 10 * std::log10(signal / std::max(error, 1e-30)); }

double distance_db(const std::vector<float>& got, const std::vector<float>& want) {
  double signal = 0, error = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    signal += double{want[i]} * want[i];
    error += (double{got[i]} - want[i]) * (double{got[i]} - want[i]);
  }
  return decibels(signal, error);
}

// Energy from 1 to 12 kHz of each Hann window.
Result<std::vector<double>> energies(const std::vector<float>& samples) {
  SYRINX_TRY(const kernels::RealFft fft, kernels::RealFft::create(kWindow));
  std::vector<float> frame(kWindow), re(fft.bins()), im(fft.bins()), scratch(fft.scratch_size());
  std::vector<double> all;
  for (size_t first = 0; first + kWindow <= samples.size(); first += kWindow / 2) {
    for (size_t i = 0; i < kWindow; ++i)
      frame[i] =
          samples[first + i] * static_cast<float>(0.5 - 0.5 * std::cos(2 * M_PI * static_cast<double>(i) / kWindow));
    fft.forward({frame.data(), {1, kWindow}}, {re.data(), {1, re.size()}}, {im.data(), {1, im.size()}}, scratch);
    double energy = 0;
    for (size_t k = kLowest * kWindow / kRate; k < fft.bins(); ++k)
      energy += double{re[k]} * re[k] + double{im[k]} * im[k];
    all.push_back(energy);
  }
  return all;
}

Status set_band(const std::vector<float>& got, const std::vector<float>& want, Json& line) {
  std::vector<float> away(want.size());
  for (size_t i = 0; i < want.size(); ++i) away[i] = got[i] - want[i];
  SYRINX_TRY(const std::vector<double> signal, energies(want));
  SYRINX_TRY(const std::vector<double> error, energies(away));
  double signals = 0, errors = 0;
  std::vector<double> frames;
  for (size_t i = 0; i < signal.size(); ++i) {
    signals += signal[i];
    errors += error[i];
    frames.push_back(decibels(std::max(signal[i], 1e-30), error[i]));
  }
  std::sort(frames.begin(), frames.end());
  line.set("band_db", decibels(signals, errors)).set("band_db_worst_tenth", frames[frames.size() / 10]);
  return {};
}

Status compare(const Codec& codec, float latents, float branches, size_t frames, ThreadTeam& team) {
  std::mt19937 random(1);
  std::vector<int32_t> codes(frames * codec.config.decoder.codebooks);
  for (int32_t& code : codes) code = static_cast<int32_t>(random() % codec.config.decoder.codebook_size);
  Tensors tensors(codec.tensors, latents, branches);
  SYRINX_TRY(const Stages f32, decode(codec, tensors, Precision::kF32, codes, team));
  SYRINX_TRY(const Stages narrow, decode(codec, tensors, Precision::kBf16, codes, team));
  Json line, stages;
  for (const auto& [stage, rows] : f32)
    if (stage != "sound") stages.set(stage, distance_db(narrow.at(stage), rows));
  const std::vector<float>& sound = f32.at("sound");
  const auto full = std::count_if(sound.begin(), sound.end(), [](float v) { return std::fabs(v) >= 1.0f; });
  double squares = 0;
  for (const float sample : sound) squares += double{sample} * sample;
  const auto count = static_cast<double>(sound.size());
  line.set("latents", double{latents}).set("rms", std::sqrt(squares / count));
  line.set("full_scale", static_cast<double>(full) / count);
  line.set("sound_db", distance_db(narrow.at("sound"), sound));
  SYRINX_TRY_VOID(set_band(narrow.at("sound"), sound, line));
  line.set("stages", std::move(stages));
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
  return {};
}

Status run(std::span<char*> words) {
  const long frames = words.size() > 1 ? std::atol(words[1]) : 25;
  const double branches = words.size() > 2 ? std::atof(words[2]) : 1.0;
  if (frames < 1 || !(branches > 0))
    return fail(Code::kInvalidArgument, "frames must be 1 or more, the factor above 0");
  SYRINX_TRY(const Codec codec, Codec::open(words[0]));
  ThreadTeam team(2);
  for (const float latents : {1.0f, 0.1f, 0.01f})
    SYRINX_TRY_VOID(compare(codec, latents, static_cast<float>(branches), static_cast<size_t>(frames), team));
  return {};
}

}  // namespace
}  // namespace syrinx::qwen_tts

int main(int count, char** words) {
  if (count < 2) {
    std::fputs("usage: qwen_codec_distortion FOLDER [FRAMES [FACTOR]]\n", stderr);
    return 2;
  }
  if (const auto limit = syrinx::kernels::limit_cpu_from_environment(); !limit) {
    std::fprintf(stderr, "qwen_codec_distortion: %s\n", limit.error().message.c_str());
    return 1;
  }
  const auto done = syrinx::qwen_tts::run({words + 1, words + count});
  if (done) return 0;
  std::fprintf(stderr, "qwen_codec_distortion: %s\n", done.error().message.c_str());
  return 1;
}
