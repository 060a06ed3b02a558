#include "engine/recognition/recognition_family.h"

#include <vector>

namespace syrinx {
namespace {

KnobHolder holder_of(const RecognitionFamily& family) { return {family.title, family.kind, family.knobs}; }

}  // namespace

bool has_knob(const RecognitionFamily& family, std::string_view name) {
  return find_knob(family.knobs, name) != nullptr;
}

std::vector<KnobHolder> recognition_knobs() {
  std::vector<KnobHolder> all;
  for (const RecognitionFamily* const each : recognition_families()) all.push_back(holder_of(*each));
  return all;
}

Status check_knobs(const Knobs& knobs, const RecognitionFamily& family, KnobNames names) {
  return check_knobs(knobs, holder_of(family), recognition_knobs(), names);
}

Status check_precision(const RecognitionFamily& family, Precision precision) {
  return check_precision(precision, family.precisions, family.title);
}

std::string model_type(const Json& config) {
  const Json* const kind = config.find("model_type");
  return kind != nullptr && kind->string() != nullptr ? *kind->string() : "";
}

}  // namespace syrinx
