// Finds the files of a speaking model, of whichever family.
#pragma once

#include <string>

#include "base/result.h"
#include "engine/speech/speech_files.h"

namespace syrinx {

// `model` is the name of an installed model ("kokoro", "pocket-tts:french"), a folder that holds a checkpoint, or a
// checkpoint file: names_path() tells a path, and hf:// or http(s):// a configuration or a file that is
// fetched unless it is here (remote_files.h).  Kokoro: voices are looked for in voices/ beside the checkpoint; the
// lexicon in g2p/ or english-g2p/ there, beside it, and among the installed models below `models_folder`.  Reads
// directories only. kNotFound says what is missing and how to get it, kInvalidArgument asks which of several
// checkpoints is meant; for places elsewhere the errors of fetch().
Result<SpeechFiles> find_speech_files(const std::string& model, const std::string& models_folder);

// The files of such a model's front end, for load_text_reader().  A model of the catalogue need not be
// installed, and nothing is fetched: kInvalidArgument for a place elsewhere.  kUnsupported: the model takes text as it
// is written.
Result<SpeechFiles> find_reader_files(const std::string& model, const std::string& models_folder);

}  // namespace syrinx
