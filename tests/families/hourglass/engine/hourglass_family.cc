#include "engine/families/hourglass/hourglass_family.h"

#include "engine/families/hourglass/hourglass_recogniser.h"

namespace syrinx {
namespace {

constexpr Precision kPrecisions[] = {Precision::kF32};
constexpr const char* kUnits[] = {"seconds", "minutes"};

constexpr Knob kKnobs[] = {
    {.name = "unit", .kind = Knob::Kind::kText, .help = "of the duration; seconds by default", .choices = kUnits},
};

bool recognise(const std::string& /*checkpoint*/, const Json* config) {
  return config != nullptr && model_type(*config) == "hourglass";
}

}  // namespace

const RecognitionFamily& hourglass_family() {
  static const RecognitionFamily family{
      .kind = "hourglass",
      .title = "Hourglass",
      .maker = "Syrinx",
      .url = "",
      .files = "model.safetensors of Hourglass",
      .recognise = recognise,
      .load = [](RecogniserOptions options) { return HourglassRecogniser::load(std::move(options)); },
      .describe = [](const InspectedFile&, FileDescription&) -> Result<bool> { return false; },
      .precisions = kPrecisions,
      .knobs = kKnobs};
  return family;
}

}  // namespace syrinx
