// The models of this user: pulling them by the catalogue, listing, finding, removing.
//
//   <data>/models/NAME/            ('@' for ':') the files, `installed` (model_manifest.h), licences/; *.part while one
//   is fetched <data>/locks/NAME              one process at a time changes a model; others wait <cache>/packed/NAME/
//   what the loader packs from it; may be removed at any time
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
#include "store/catalogue.h"
#include "store/model_manifest.h"
#include "store/paths.h"
#include "store/pull_event.h"

namespace syrinx {

// Form of weights that come in two (catalogue.h).  kAsInstalled: the form that is there, else with cloning.
enum class CloningWish { kAsInstalled, kWith, kWithout };

struct PullOptions {
  bool offline = false;             // no network: fails with kUnavailable if anything is missing
  bool verify = false;              // hash every file, also those that look unchanged
  std::vector<std::string> voices;  // besides those that come by default and those that are there; "all": every one
  CloningWish cloning = CloningWish::kAsInstalled;
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
  // A family's name becomes its default member's, "pocket-tts:english" for "pocket-tts", and an alias its entry's
  // name, unless a model of that very name is installed.  Others stay.
  std::string full_name(const std::string& name) const;
  std::string model_folder(const std::string& name) const;
  std::string cache_folder(const std::string& name) const;

  // Fetches the model and what it needs, as far as it is not there whole.  Stopped or failed, it can be run again and
  // goes on from what came.  Errors: kNotFound (unknown name or voice), kUnavailable (offline, no source answers, the
  // hub wants its terms accepted), kDataLoss (every source gave wrong bytes), kIo (disk), kCancelled.
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
