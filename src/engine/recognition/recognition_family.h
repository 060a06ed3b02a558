// A family of recognising models as the rest of the program knows it.  Each defines its own in engine/families/NAME;
// the table in engine/families/families.def lists them, one a line.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "engine/file_description.h"
#include "engine/knobs.h"
#include "engine/recognition/recogniser.h"
#include "tensor/precision.h"

namespace syrinx {

struct RecognitionFamily {
  std::string_view kind;  // as in the catalogue and in manifests
  const char* title;      // "Whisper"
  const char* maker;
  const char* url;
  const char* files;  // "model.bin of Whisper": what a folder needs to be recognised

  // Whether a checkpoint without a manifest is of the family: by the config.json beside .safetensors (else null), by
  // suffixes elsewhere.
  bool (*recognise)(const std::string& checkpoint, const Json* config);
  // options.threads has been chosen and options.knobs have been checked.
  Result<std::shared_ptr<Recogniser>> (*load)(RecogniserOptions options);
  // Describes a file of this family; false for others.  As SpeechFamily::describe.
  Result<bool> (*describe)(const InspectedFile& file, FileDescription& out);

  std::span<const Precision> precisions;  // the first is the default
  std::span<const Knob> knobs;
};

// The table.  Defined in engine/families/families.cc; declared here, since a family's refusals name the others.
std::span<const RecognitionFamily* const> recognition_families();

bool has_knob(const RecognitionFamily& family, std::string_view name);
std::vector<KnobHolder> recognition_knobs();  // of all families, in the order of the table
// kUnsupported for options that the family lacks, with the families that have them; kInvalidArgument for values.
Status check_knobs(const Knobs& knobs, const RecognitionFamily& family, KnobNames names = KnobNames::kFields);
// kUnsupported for one that it is not computed in.
Status check_precision(const RecognitionFamily& family, Precision precision);
// `model_type` of a config.json; empty where there is none.
std::string model_type(const Json& config);

}  // namespace syrinx
