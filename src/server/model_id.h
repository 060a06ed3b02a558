// How a model of the settings is called to clients.  Pure, thread-safe.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace syrinx::server {

// `model` is what the operator calls it: an installed model's name stays, of a path only its last part does, without
// its ending, so that no folder of this machine is told to anybody.
std::string model_id(const std::string& model);

// Whether a sentence of the engine's names one of these paths; empty ones are none.
bool names_one_of(std::string_view sentence, std::initializer_list<std::string_view> paths);

}  // namespace syrinx::server
