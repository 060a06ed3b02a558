// Whisper's stages beside a maker's arrays, in f32: the spectrum, each encoder block, the logits behind forced tokens.
//
//   whisper_parity MODEL REFERENCE.safetensors        bench/parity/whisper.py writes the second and runs this
//
// Prints a line a stage, the largest difference in parts of the stage's largest value (of the spectrum: as it is), and
// ends with status 1 where one is beyond its bound.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "models/whisper/decoder.h"
#include "models/whisper/encoder.h"
#include "models/whisper/features.h"
#include "seen_stages.h"
#include "tensor/safetensors.h"

namespace syrinx::whisper {
namespace {

// The spectrum: f32 transforms differ where a band is 8 powers of ten below the greatest (the maker's own is 9e-6 from
// f64).
constexpr double kMelBound = 5e-5, kEncoderBound = 1e-4, kLogitBound = 1e-3;

struct Stages {
  std::map<std::string, std::vector<float>> values;
  void add(const std::string& name, View<const float, 2> rows) {
    std::vector<float>& to = values[name];
    for (size_t n = 0; n < rows.extent(0); ++n) to.insert(to.end(), rows.row(n), rows.row(n) + rows.extent(1));
  }
};

Result<Stages> run(const std::shared_ptr<const Model>& model, const Safetensors& reference) {
  const Config& c = model->config();
  SYRINX_TRY(const std::vector<float> sound, f32_array(reference, "sound"));
  SYRINX_TRY(const std::vector<int32_t> tokens, i32_array(reference, "tokens"));
  SYRINX_TRY(const LogMel log_mel, LogMel::create(c.mels));
  ThreadTeam team(1);
  Stages stages;
  const size_t window = c.audio_positions * kFramesPerPosition * kHopSamples;
  std::vector<float> mel = log_mel_of(log_mel, sound, window, team);
  const View<float, 2> frames(mel.data(), {mel.size() / c.mels, c.mels});
  normalise(frames, peak(frames), frames);
  stages.add("mel", frames);
  AudioState audio = AudioState::make(*model);
  Encoder encoder(model, team);
  encoder.set_probe([&](std::string_view stage, size_t layer, View<const float, 2> rows) {
    stages.add(stage == "block" ? fmt::format("block.{:02}", layer) : std::string(stage), rows);
  });
  encoder.encode(frames, audio);
  Decoder decoder(model, team, 1);
  SYRINX_TRY(DecoderState state, DecoderState::make(*model, 1));
  for (const int32_t token : tokens) {
    const DecoderInput input{0, token, &audio};
    stages.add("logits", decoder.step({&input, 1}, state));
  }
  return stages;
}

double most_absolute(const std::vector<float>& ours, const std::vector<float>& theirs) {
  double worst = ours.size() == theirs.size() ? 0 : 1e9;
  for (size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i)
    worst = std::max(worst, std::fabs(static_cast<double>(ours[i]) - theirs[i]));
  return worst;
}

Result<bool> compare(const char* path, const char* reference_path) {
  SYRINX_TRY(const auto model, Model::load(path));
  SYRINX_TRY(const MappedFile file, MappedFile::open(reference_path));
  SYRINX_TRY(const Safetensors reference, Safetensors::parse(file.bytes(), reference_path));
  SYRINX_TRY(const Stages stages, run(model, reference));
  bool good = true;
  for (const auto& [name, ours] : stages.values) {
    SYRINX_TRY(const std::vector<float> theirs, f32_array(reference, name));
    const bool mel = name == "mel";
    const double bound = mel ? kMelBound : name == "logits" ? kLogitBound : kEncoderBound;
    const double away = mel ? most_absolute(ours, theirs) : largest_difference(ours, theirs);
    std::printf("%-10s %.2e%s\n", name.c_str(), away, away <= bound ? "" : "  beyond the bound");
    good = good && away <= bound;
  }
  return good;
}

}  // namespace
}  // namespace syrinx::whisper

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: whisper_parity MODEL REFERENCE.safetensors\n");
    return 2;
  }
  const auto good = syrinx::whisper::compare(arguments[1], arguments[2]);
  if (!good) std::fprintf(stderr, "%s\n", good.error().message.c_str());
  return good && *good ? 0 : 1;
}
