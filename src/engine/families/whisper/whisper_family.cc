#include "engine/families/whisper/whisper_family.h"

#include <cstring>
#include <filesystem>
#include <utility>

#include "engine/families/whisper/whisper_recogniser.h"
#include "store/paths.h"
#include "tensor/ct2_file.h"

namespace syrinx {
namespace {

using Bytes = std::span<const std::byte>;

constexpr Precision kPrecisions[] = {WhisperRecogniser::kDefaultPrecision, Precision::kBf16, Precision::kF32};

constexpr Knob kKnobs[] = {
    {.name = "translate", .kind = Knob::Kind::kFlag, .help = "into English, with multilingual models"},
    {.name = "prompt",
     .kind = Knob::Kind::kText,
     .most = WhisperRecogniser::kMaxPromptBytes,
     .type = "TEXT",
     .help =
         "text as if it had been said before, with names and the spelling that is wanted; its last 223 tokens count"},
    {.name = "temperature",
     .kind = Knob::Kind::kNumber,
     .least = 0,
     .most = 1,
     .help = "of the first attempt; those after it are hotter by 0.2 each, up to 1; 0",
     .initial = 0},
    {.name = "beam",
     .kind = Knob::Kind::kWhole,
     .least = 0,
     .most = whisper::BeamSearch::kMaxBeam,
     .type = "N",
     .help = "hypotheses of the search at temperature 0, 1 to 16, or 0 for greedy; 5 for recordings, 0 for streams"},
    {.name = "best_of",
     .kind = Knob::Kind::kWhole,
     .least = 1,
     .most = whisper::kMaxBestOf,
     .type = "N",
     .help = "samples at each temperature above 0, 1 to 16; 5"},
    {.name = "patience",
     .kind = Knob::Kind::kNumber,
     .least = 0.1,
     .most = 8,
     .help = "the beam search ends when beam times patience hypotheses are finished; 1"},
    {.name = "length_penalty",
     .kind = Knob::Kind::kNumber,
     .least = 0,
     .most = 1,
     .help = "exponent of the length by which finished hypotheses compare, 0 to 1; by default by their mean"},
};

bool recognise(const std::string& checkpoint, const Json* config) {
  if (config != nullptr) return model_type(*config) == "whisper";
  const std::filesystem::path path(checkpoint);
  const std::string suffix = path.extension().string();
  return suffix == ".bin" || (suffix == ".pt" && !is_there(path.parent_path() / "model_config.yaml"));
}

bool begins_with(Bytes bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

// Version 6, then the length of the specification's name and the name, of which all end in "Spec".
constexpr std::string_view kCt2Version("\6\0\0\0", 4);
bool looks_like_ct2(Bytes bytes) {
  constexpr size_t kLongestName = 64;
  if (!begins_with(bytes, kCt2Version) || bytes.size() < 8) return false;
  const size_t size = std::to_integer<size_t>(bytes[4]) | std::to_integer<size_t>(bytes[5]) << 8;
  if (size < 6 || size > kLongestName || bytes.size() < 6 + size) return false;
  return begins_with(bytes.subspan(6 + size - 5), std::string_view("Spec\0", 5));
}

Result<bool> describe(const InspectedFile& file, FileDescription& out) {
  if (!out.kind.empty() || !looks_like_ct2(file.bytes)) return false;
  out.kind = "ctranslate2";
  SYRINX_TRY(const Ct2File content, Ct2File::parse(file.bytes, file.path));
  for (const TensorRef& tensor : content.variables())
    out.tensors.push_back({tensor.name, dtype_name(tensor.dtype), tensor.dims, tensor.bytes.size()});
  out.facts = {{"specification", content.specification()}, {"revision", std::to_string(content.revision())}};
  if (content.specification() == "WhisperSpec") out.model = "whisper";
  return true;
}

}  // namespace

const RecognitionFamily& whisper_family() {
  static const RecognitionFamily family{
      .kind = "whisper",
      .title = "Whisper",
      .maker = "OpenAI",
      .url = "https://github.com/openai/whisper",
      .files = "model.bin, .safetensors or .pt of Whisper",
      .recognise = recognise,
      .load =
          [](RecogniserOptions options) {  // NOLINT(performance-unnecessary-value-param): one type for all families
            return WhisperRecogniser::load(options);
          },
      .describe = describe,
      .precisions = kPrecisions,
      .knobs = kKnobs};
  return family;
}

}  // namespace syrinx
