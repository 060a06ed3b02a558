// The codec's decoder of Qwen3-TTS in narrow forms beside f32: the error of each part and of the sound.
//
//   qwen_codec_distortion FOLDER [FRAMES [FACTOR [FORM...]]]
//
// FOLDER holds a codec's config.json and model.safetensors.  Random codes go through each form three times, with the
// latents (the rows that the upsampling makes, by the weights that read them) times 1, 0.1 and 0.01, and with them the
// biases behind, so that the sound falls as it does in pauses.  FACTOR multiplies
// the second convolutions of residual units and the last one: 0.25 keeps random weights within the range of samples,
// as it does in the tests.  A FORM is one of qwen_codec_chain.h, with other ones for some parts behind it:
// int16,transformer=int8,upsampling=int8_weights.
//
// Prints a JSON object a line: decibels by which the error is below the f32 sound, and below it from 1 to 12 kHz, in
// all and in that tenth of its frames which is lost most; and of each part below its f32 rows when all parts up to it
// are narrow, when it alone is, and below the sound from 1 to 12 kHz then.  The form "product" is that of the decoder
// itself; its f32 and int16 must be those of the chain to the bit.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/mapped_file.h"
#include "bench/parity/qwen_codec_chain.h"
#include "kernels/dispatch.h"
#include "kernels/fft.h"
#include "models/qwen_tts/codec_decoder.h"
#include "tensor/safetensors.h"

namespace syrinx::qwen_tts {
namespace {

constexpr size_t kPass = 4, kWindow = 1920, kRate = 24000, kLowest = 1000;
constexpr std::string_view kLatentReader = "decoder.decoder.0.conv.weight";

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

using Samples = std::vector<float>;

Result<CodecDecoderWeights> load(const Codec& codec, Tensors& tensors, Precision precision, ThreadTeam& team) {
  return CodecDecoderWeights::load({.find = [&](std::string_view name) { return tensors.find(name); }, .team = &team},
                                   "model.safetensors", codec.config, precision);
}

Result<Samples> decode(std::shared_ptr<const CodecDecoderWeights> weights, const std::vector<int32_t>& codes,
                       ThreadTeam& team) {
  nn::Runner runner(team);
  CodecDecoder decoder(std::move(weights), runner, 1, kPass);
  CodecDecoderState state = decoder.make_state();
  const size_t books = decoder.config().codebooks, frames = codes.size() / books;
  Samples samples(frames * decoder.config().frame_samples());
  decoder.decode(state, {codes.data(), {frames, books}}, samples);
  if (state.faulty()) return fail(Code::kDataLoss, "samples that are not numbers");
  return samples;
}

// To a tenth.
double decibels(double signal, double error) {
  return std::round(100 * std::log10(signal / std::max(error, 1e-30))) / 10;
}

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

struct FormOfParts {
  std::string name;
  CodecForm form = CodecForm::kF32;
  std::map<std::string, CodecForm> others;

  CodecForm of(const std::string& part) const {
    const auto other = others.find(part);
    if (other != others.end()) return other->second;
    return part == "output" ? CodecForm::kF32 : form;
  }
  static Result<FormOfParts> read(const std::string& text) {
    const auto form_named = [](const std::string& name) -> Result<CodecForm> {
      for (size_t i = 0; i < std::size(kCodecForms); ++i)
        if (kCodecForms[i] == name) return static_cast<CodecForm>(i);
      return fail(Code::kInvalidArgument, "no form of a codec is named '{}'", name);
    };
    size_t end = std::min(text.find(','), text.size());
    SYRINX_TRY(const CodecForm form, form_named(text.substr(0, end)));
    FormOfParts made{.name = text, .form = form, .others = {}};
    while (end < text.size()) {
      const size_t first = end + 1, equals = std::min(text.find('=', first), text.size());
      end = std::min(text.find(',', first), text.size());
      if (equals >= end) return fail(Code::kInvalidArgument, "'{}' lacks a PART=FORM behind its comma", text);
      SYRINX_TRY(made.others[text.substr(first, equals - first)],
                 form_named(text.substr(equals + 1, end - equals - 1)));
    }
    return made;
  }
};

// One level of latents.
class Level {
 public:
  static Result<std::unique_ptr<Level>> make(const Codec& codec, float latents, float branches, size_t frames,
                                             ThreadTeam& team);
  Status compare_product();
  Status compare(const FormOfParts& form);

 private:
  using Rows = CodecChain::Rows;
  Level(const Codec& codec, float latents, float branches, ThreadTeam& team)
      : codec_(codec), tensors_(codec.tensors, latents, branches), team_(team), latents_(latents) {}
  Status prepare(size_t frames);
  Samples sound(std::vector<float> samples) const;
  Json line(const std::string& form) const;
  Status print(Json line, const Samples& narrow) const;
  Result<double> band_of_one(size_t part, const Rows& rows);

  const Codec& codec_;
  Tensors tensors_;
  ThreadTeam& team_;
  float latents_;
  std::vector<int32_t> codes_;
  std::shared_ptr<const CodecDecoderWeights> weights_;
  std::optional<CodecChain> chain_;
  std::vector<CodecChain::Weights> f32_;  // of each part
  std::vector<float> first_;              // rows that the first part reads
  std::vector<Rows> rows_;                // of each part in f32
  Samples sound_;
};

Result<std::unique_ptr<Level>> Level::make(const Codec& codec, float latents, float branches, size_t frames,
                                           ThreadTeam& team) {
  std::unique_ptr<Level> level(new Level(codec, latents, branches, team));
  SYRINX_TRY_VOID(level->prepare(frames));
  return level;
}

Status Level::prepare(size_t frames) {
  const CodecDecoderConfig& c = codec_.config.decoder;
  std::mt19937 random(1);
  codes_.resize(frames * c.codebooks);
  for (int32_t& code : codes_) code = static_cast<int32_t>(random() % c.codebook_size);
  SYRINX_TRY(CodecDecoderWeights weights, load(codec_, tensors_, Precision::kF32, team_));
  weights_ = std::make_shared<const CodecDecoderWeights>(std::move(weights));
  chain_.emplace(*weights_, team_);
  first_ = chain_->quantise(codes_);
  for (size_t part = 0; part < chain_->parts().size(); ++part) {
    f32_.push_back(chain_->weights(part, CodecForm::kF32));
    rows_.push_back(chain_->run(part, f32_[part], part == 0 ? first_ : rows_[part - 1].ready));
  }
  sound_ = sound(rows_.back().made);
  SYRINX_TRY(const Samples product, decode(weights_, codes_, team_));
  if (product != sound_) return fail(Code::kInternal, "the chain in f32 gives other samples than the decoder");
  return {};
}

Samples Level::sound(std::vector<float> samples) const {
  for (float& sample : samples) sample = std::clamp(sample, -1.0f, 1.0f);
  return samples;
}

Json Level::line(const std::string& form) const {
  const auto full = std::count_if(sound_.begin(), sound_.end(), [](float v) { return std::fabs(v) >= 1.0f; });
  double squares = 0;
  for (const float sample : sound_) squares += double{sample} * sample;
  const auto count = static_cast<double>(sound_.size());
  Json line;
  line.set("latents", double{latents_}).set("form", form).set("rms", std::sqrt(squares / count));
  return line.set("full_scale", static_cast<double>(full) / count);
}

Status Level::print(Json line, const Samples& narrow) const {
  line.set("sound_db", distance_db(narrow, sound_));
  SYRINX_TRY_VOID(set_band(narrow, sound_, line));
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
  return {};
}

Status Level::compare_product() {
  SYRINX_TRY(CodecDecoderWeights weights, load(codec_, tensors_, Precision::kBf16, team_));
  const bool is_int16 = reads_int16(weights);
  SYRINX_TRY(const Samples narrow,
             decode(std::make_shared<const CodecDecoderWeights>(std::move(weights)), codes_, team_));
  if (is_int16) {
    Rows rows{.made = {}, .ready = first_};
    for (size_t part = 0; part + 1 < chain_->parts().size(); ++part)
      rows = chain_->run(part, chain_->weights(part, CodecForm::kInt16), std::move(rows.ready));
    rows = chain_->run(f32_.size() - 1, f32_.back(), std::move(rows.ready));
    if (sound(rows.made) != narrow)
      return fail(Code::kInternal, "the chain in int16 gives other samples than the decoder");
  }
  return print(line("product"), narrow);
}

// The sound with `rows` as those of a part and all behind it in f32.
Result<double> Level::band_of_one(size_t part, const Rows& rows) {
  Rows now = rows;
  for (size_t next = part + 1; next < f32_.size(); ++next) now = chain_->run(next, f32_[next], std::move(now.ready));
  Json line;
  SYRINX_TRY_VOID(set_band(sound(std::move(now.made)), sound_, line));
  return *line.find("band_db")->real();
}

Status Level::compare(const FormOfParts& form) {
  Json line = this->line(form.name), parts;
  Rows so_far{.made = {}, .ready = first_};
  for (size_t part = 0; part < chain_->parts().size(); ++part) {
    const std::string& name = chain_->parts()[part].name;
    const bool is_last = part + 1 == chain_->parts().size();
    const bool stays = form.form == CodecForm::kF32 || (is_last && form.form <= CodecForm::kInt16);
    Json of_part;
    if (form.others.empty() && !stays) {
      const auto narrow = chain_->weights(part, form.form);
      const Rows alone = chain_->run(part, narrow, part == 0 ? first_ : rows_[part - 1].ready);
      SYRINX_TRY(const double band, band_of_one(part, alone));
      of_part.set("alone_db", distance_db(alone.made, rows_[part].made)).set("sound_band_db", band);
      if (form.of(name) == form.form) so_far = chain_->run(part, narrow, std::move(so_far.ready));
    }
    if (!form.others.empty() || form.of(name) == CodecForm::kF32)
      so_far = chain_->run(part, chain_->weights(part, form.of(name)), std::move(so_far.ready));
    of_part.set("so_far_db", distance_db(so_far.made, rows_[part].made));
    parts.set(name, std::move(of_part));
  }
  line.set("parts", std::move(parts));
  return print(std::move(line), sound(std::move(so_far.made)));
}

Status run(std::span<char*> words) {
  const long frames = words.size() > 1 ? std::atol(words[1]) : 25;
  const double branches = words.size() > 2 ? std::atof(words[2]) : 1.0;
  if (frames < 1 || !(branches > 0))
    return fail(Code::kInvalidArgument, "frames must be 1 or more, the factor above 0");
  std::vector<FormOfParts> forms;
  for (size_t i = 3; i < words.size(); ++i) {
    SYRINX_TRY(FormOfParts form, FormOfParts::read(words[i]));
    forms.push_back(std::move(form));
  }
  for (const char* const form : {"bf16", "int16", "int8", "int8_groups"}) {
    if (words.size() > 3) break;
    SYRINX_TRY(FormOfParts made, FormOfParts::read(form));
    forms.push_back(std::move(made));
  }
  SYRINX_TRY(const Codec codec, Codec::open(words[0]));
  ThreadTeam team(2);
  for (const float latents : {1.0f, 0.1f, 0.01f}) {
    SYRINX_TRY(const auto level,
               Level::make(codec, latents, static_cast<float>(branches), static_cast<size_t>(frames), team));
    SYRINX_TRY_VOID(level->compare_product());
    for (const FormOfParts& form : forms) SYRINX_TRY_VOID(level->compare(form));
  }
  return {};
}

}  // namespace
}  // namespace syrinx::qwen_tts

int main(int count, char** words) {
  if (count < 2) {
    std::fputs("usage: qwen_codec_distortion FOLDER [FRAMES [FACTOR [FORM...]]]\n", stderr);
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
