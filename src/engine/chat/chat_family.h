// A family of language models as the rest of the program knows it.  Each defines its own in engine/families/NAME; the
// table in engine/families/families.def lists them, one a line.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/chat/chat_engine.h"
#include "engine/file_description.h"
#include "engine/model_place.h"
#include "tensor/precision.h"

namespace syrinx {

struct ChatFamily {
  std::string_view kind;  // as in the catalogue and in manifests
  const char* title;
  const char* maker;
  const char* url;
  const char* files;  // what a folder needs to be recognised

  // Whether a place without a manifest holds a model of the family, by its content and not by a suffix alone.
  bool (*recognise)(const ModelPlace& place);
  Result<ChatFiles> (*find_files)(const ModelPlace& place);
  // options.threads has been chosen.
  Result<std::shared_ptr<ChatEngine>> (*load)(ChatEngineOptions options);
  // Describes a file of this family; false for others.  As SpeechFamily::describe.
  Result<bool> (*describe)(const InspectedFile& file, FileDescription& out);

  std::span<const Precision> precisions;  // the first is the default
};

// The table.  Defined in engine/families/families.cc; declared here, since a family's refusals name the others.
std::span<const ChatFamily* const> chat_families();

// kUnsupported for one that it is not computed in.
Status check_precision(const ChatFamily& family, Precision precision);

}  // namespace syrinx
