// How a model of the settings is called to clients.  Pure, thread-safe.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/http_message.h"
#include "server/settings/settings.h"

namespace syrinx::server {

// `model` is what the operator calls it: an installed model's name stays, an alias becomes the catalogue's name, of a
// path only its last part does, without its ending, so that no folder of this machine is told to anybody.
std::string model_id(const std::string& model);

// All names that a request may give a model.
class ModelNames {
 public:
  // `model`: as model_id(); `use`: of foreign_names().
  ModelNames(const Settings& settings, const std::string& model, std::string_view use);
  const std::string& id() const { return id_; }
  bool has(std::string_view name) const;  // the id, or one that the operator gives
  // Also an empty one, an id of the same weights elsewhere, and OpenAI's, with a date or without.
  bool are_called(std::string_view name) const;

 private:
  const std::string id_;
  const std::vector<std::string> names_, aliases_;
  const std::string use_;
};

// Whether a sentence of the engine's names one of these paths; empty ones are none.
bool names_one_of(std::string_view sentence, std::initializer_list<std::string_view> paths);

// Whether `name` is one of OpenAI's names `known`, or one of its editions, which have a date behind the name:
// "gpt-4o-mini-tts-2025-03-20".
bool is_one_of(std::string_view name, std::span<const std::string_view> known);

// 404 for a model of another name, or where the operator has switched off all that does this ("speaks").
HttpError no_model(bool is_there, const char* does, std::string_view name);

}  // namespace syrinx::server
