// A module as it is loaded: the server's settings with the module's values in the places of the short form.
#pragma once

#include <string>
#include <vector>

#include "server/settings/modules.h"
#include "server/settings/settings.h"

namespace syrinx::server {

struct ModulePlan {
  ModuleKind kind = ModuleKind::kSpeech;
  std::string id;     // for clients
  std::string place;  // where it is set: "'speech_model'", "[[module]] 2"
  bool loads_at_first_use = false;
  double keep_alive_s = -1;  // negative: it stays
  Settings settings;         // its own: of the other kinds the models are empty, as is Settings::modules
};

// The short form's modules, then the file's, in their order; the first of a kind answers requests that name none.
std::vector<ModulePlan> module_plans(const Settings& settings);

std::vector<ModulePlan> plans_of(const Settings& settings, ModuleKind kind);

// There is one at least, each is valid by itself, and clients can tell them apart.
Status check_modules(const Settings& settings);

size_t slots_of(const ModulePlan& plan);
const std::string& model_of(const ModulePlan& plan);  // name of an installed one, or path

}  // namespace syrinx::server
