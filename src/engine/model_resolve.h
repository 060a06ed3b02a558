// What a user means by the name of a model, and what a configuration means by the places it names.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "engine/checkpoint_source.h"
#include "engine/model_store.h"

namespace syrinx {

// The folder or file of `model`: an installed model by its name ("kokoro", "pocket-tts", "pocket-tts:french_24l"); a
// configuration (.yaml, .yml) or another single file by hf:// or http(s)://, fetched if need be; else a path (it holds
// a
// '/' or a '.'), given back.  kNotFound says what to type; the others are those of CheckpointSource::get().
Result<std::string> resolve_model(const std::string& model, const ModelStore& store, CheckpointSource& source);

// The local file of each place that a configuration names at a hub or on the web, fetched if need be.  Once one has
// been refused (gated weights, no network), all further ones are, with the same sentence: a reader that would go on to
// weights of another kind must not do so behind the user's back.  Keeps `source`; one thread.
std::function<Result<std::string>(const std::string& place)> checkpoint_locator(
    std::shared_ptr<CheckpointSource> source);

}  // namespace syrinx
