// Finds the files of a recognising model, of whichever family.
#pragma once

#include <string>

#include "base/result.h"
#include "engine/recognition/recognition_files.h"

namespace syrinx {

// `model` is the name of an installed model, a folder that holds a checkpoint, or a checkpoint file: what holds a '/',
// or a '.' and is no installed model, is a path.  Empty: kDefaultRecogniser.  A manifest's kind decides the
// family; without one the file's kind does, and of .safetensors the config.json beside it, at most 1 MiB.  kNotFound
// says what is missing and how to get it; kUnsupported for a config.json of something else; kInvalidArgument asks which
// of several checkpoints of one kind is meant, where none of them has the name that the families' own readers look for.
Result<RecognitionFiles> find_recognition_files(const std::string& model, const std::string& models_folder);

}  // namespace syrinx
