// The models of this user: pulling them by the catalogue, listing, finding, removing.
//
//   <data>/models/NAME/            the files, `installed` (model_manifest.h), licences/; *.part while one is fetched
//   <data>/locks/NAME              one process at a time changes a model; others wait
//   <cache>/packed/NAME/           what the loader packs from it; may be removed at any time
//
// Only pull() uses the network.  A store may be used from one thread at a time; several processes may share the
// folders.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/catalogue.h"
#include "engine/model_manifest.h"
#include "engine/paths.h"
#include "engine/pull_event.h"

namespace syrinx {

struct PullOptions {
  bool offline = false;  // no network: fails with kUnavailable if anything is missing
  bool verify = false;   // hash every file, also those that look unchanged
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(const PullEvent&)> on_event;
};

enum class ModelState { kInstalled, kPartial, kAbsent };
const char* model_state_name(ModelState state);

struct ModelStatus {
  std::string name;
  std::string kind;
  std::string description;
  std::string licence;
  std::string folder;
  ModelState state = ModelState::kAbsent;
  uint64_t total_bytes = 0;    // when whole
  uint64_t on_disk_bytes = 0;  // .part files included
};

class ModelStore {
 public:
  ModelStore(UserPaths paths, Catalogue catalogue);
  // The user's folders and the built-in catalogue.
  static Result<ModelStore> open();

  const Catalogue& catalogue() const { return catalogue_; }
  std::string model_folder(const std::string& name) const;
  std::string cache_folder(const std::string& name) const;

  // Fetches the model and what it needs, as far as it is not there whole.  Stopped or failed, it can be run again and
  // goes on from what came.  Errors: kNotFound (unknown name), kUnavailable (offline, no source answers), kDataLoss
  // (every source gave wrong bytes), kIo (disk), kCancelled.
  Status pull(const std::string& name, const PullOptions& options);
  // Everything the catalogue has and everything installed, by name.
  std::vector<ModelStatus> list() const;
  // The model's files.  kNotFound when it is not installed, kDataLoss when a file is missing or has another size; both
  // say what to type.  Reads no file's content, so it is quick enough for every start.
  Result<InstalledModel> find(const std::string& name) const;
  // Removes the model and its packed cache.  kInvalidArgument while another installed model needs it.
  Status remove(const std::string& name, const std::atomic<bool>* cancel = nullptr);

 private:
  UserPaths paths_;
  Catalogue catalogue_;
};

}  // namespace syrinx
