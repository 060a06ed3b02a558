#include "engine/speech/speech_family.h"

namespace syrinx {
namespace {

KnobHolder holder_of(const SpeechFamily& family) { return {family.title, family.kind, family.knobs}; }

}  // namespace

std::vector<KnobHolder> speech_knobs() {
  std::vector<KnobHolder> all;
  for (const SpeechFamily* const each : speech_families()) all.push_back(holder_of(*each));
  return all;
}

Status check_knobs(const Knobs& knobs, const SpeechFamily& family, KnobNames names) {
  return check_knobs(knobs, holder_of(family), speech_knobs(), names);
}

bool has_knob(const SpeechFamily& family, std::string_view name) { return find_knob(family.knobs, name) != nullptr; }

Status check_precision(const SpeechFamily& family, Precision precision) {
  return check_precision(precision, family.traits.precisions, family.title);
}

Status check_load_options(const SpeechEngineOptions& options) {
  Knobs given;
  if (!options.dictionary.empty()) given.set("dictionary", options.dictionary);
  if (!options.files.lexicon.empty()) given.set("lexicon", options.files.lexicon);
  if (options.first_is_phonemes) given.set("phonemes", 1.0);
  SYRINX_TRY_VOID(check_knobs(given, *options.files.family));
  return options.precision ? check_precision(*options.files.family, *options.precision) : Status();
}

}  // namespace syrinx
