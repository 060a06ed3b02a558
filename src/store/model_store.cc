#include "store/model_store.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "store/model_lock.h"
#include "store/model_pull.h"

namespace syrinx {
namespace {

constexpr uint64_t kSpareBytes = 16 << 20;  // left free after a pull

double megabytes(uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

uint64_t folder_bytes(const std::string& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    const uint64_t size = it->is_regular_file(gone) ? it->file_size(gone) : 0;
    if (!gone) bytes += size;
  }
  return bytes;
}

// Every voice that is asked for must be one that can be picked.
Status check_voices(const CatalogueEntry& entry, const std::vector<std::string>& voices) {
  if (voices.empty()) return {};
  std::set<std::string> known;
  for (const auto& group : entry.groups) {
    for (const auto& file : group.files) {
      if (!group.pick.empty()) known.insert(std::filesystem::path(file.name).stem().string());
    }
  }
  if (known.empty())
    return fail(Code::kInvalidArgument, "'{}' comes with all its voices; leave --voices out", entry.name);
  for (const auto& voice : voices) {
    if (voice != "all" && known.count(voice) == 0)
      return fail(Code::kNotFound, "'{}' has no voice '{}'; it has: {}", entry.name, voice.substr(0, 64),
                  fmt::join(known, ", "));
  }
  return {};
}

Status remove_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  if (error) return fail(Code::kIo, "cannot remove '{}': {}", folder, error.message());
  return {};
}

}  // namespace

const char* model_state_name(ModelState state) {
  switch (state) {
    case ModelState::kInstalled: return "installed";
    case ModelState::kPartial: return "partial";
    case ModelState::kAbsent: return "absent";
  }
  return "absent";
}

ModelStore::ModelStore(UserPaths paths, Catalogue catalogue)
    : paths_(std::move(paths)), catalogue_(std::move(catalogue)) {}

Result<ModelStore> ModelStore::open() {
  SYRINX_TRY(auto paths, user_paths());
  SYRINX_TRY(auto catalogue, Catalogue::built_in());
  return ModelStore(std::move(paths), std::move(catalogue));
}

std::string ModelStore::full_name(const std::string& name) const {
  const auto entry = catalogue_.find(name);
  if (!entry) return name;
  // A model of another catalogue may be called like an alias of this one.
  std::error_code error;
  const bool has_folder =
      is_model_name(name) && std::filesystem::exists(paths_.data + "/models/" + model_folder_name(name), error);
  return has_folder && catalogue_.find_alias(name) != nullptr ? name : (*entry)->name;
}

std::string ModelStore::model_folder(const std::string& name) const {
  return paths_.data + "/models/" + model_folder_name(full_name(name));
}

std::string ModelStore::cache_folder(const std::string& name) const {
  return paths_.cache + "/packed/" + model_folder_name(full_name(name));
}

Status ModelStore::pull(const std::string& name, const PullOptions& options) {
  SYRINX_TRY(const auto entries, catalogue_.closure(name));
  SYRINX_TRY_VOID(check_voices(*entries.back(), options.voices));
  const auto report = [&options](const PullEvent& event) {
    if (options.on_event) options.on_event(event);
  };
  // Locks are taken in the order of names, so that two pulls of overlapping sets cannot wait for each other.
  std::set<std::string> names;
  for (const auto* entry : entries) names.insert(entry->name);
  std::vector<ModelLock> locks;
  locks.reserve(names.size());
  for (const auto& held : names) {
    const std::string path = paths_.data + "/locks/" + model_folder_name(held);
    SYRINX_TRY(auto lock, ModelLock::acquire(path, options.cancel, [&report, &held] {
                 PullEvent event;
                 event.kind = PullEvent::Kind::kWaiting;
                 event.model = held;
                 report(event);
               }));
    locks.push_back(std::move(lock));
  }
  SYRINX_TRY(const uint64_t free, free_bytes(paths_.data));
  std::vector<ModelPull> pulls;
  pulls.reserve(entries.size());
  uint64_t missing = 0, needed = 0;
  bool absent = false;  // something of it is not on this machine
  for (const auto* entry : entries) {
    pulls.emplace_back(*entry, model_folder(entry->name), options);
    SYRINX_TRY_VOID(pulls.back().check());
    SYRINX_TRY_VOID(pulls.back().ask_hub());
    absent = absent || pulls.back().needs_network();
    missing += pulls.back().missing_bytes();
    needed += pulls.back().needed_bytes();
    PullEvent event;
    event.kind = PullEvent::Kind::kPlan;
    event.model = entry->name;
    event.text = entry->description;
    event.licence = entry->licence;
    event.folder = model_folder(entry->name);
    event.total_bytes = pulls.back().total_bytes();
    event.missing_bytes = pulls.back().missing_bytes();
    event.free_bytes = free;
    report(event);
    if (const size_t left = pulls.back().voices_left(); left > 0) {
      PullEvent more;
      more.model = entry->name;
      more.text = fmt::format("{} more voices can be had: --voices NAME,... or --voices all", left);
      report(more);
    }
  }
  if (absent && options.offline) {
    return fail(Code::kUnavailable,
                "{:.1f} MB of '{}' are not here and the network is switched off; run `syrinx pull {}` "
                "without --offline",
                megabytes(missing), name, name);
  }
  if (missing > 0 && needed + kSpareBytes > free) {
    return fail(Code::kIo,
                "'{}' needs up to {:.0f} MB while it is fetched and '{}' has {:.0f} MB free; make room or "
                "set SYRINX_HOME to a folder on another disk",
                name, megabytes(needed + kSpareBytes), paths_.data, megabytes(free));
  }
  for (size_t i = 0; i < pulls.size(); ++i) {
    SYRINX_TRY_VOID(pulls[i].fetch());
    SYRINX_TRY_VOID(pulls[i].install());
    PullEvent event;
    event.kind = PullEvent::Kind::kDone;
    event.model = entries[i]->name;
    event.folder = model_folder(entries[i]->name);
    event.total_bytes = pulls[i].total_bytes();
    report(event);
  }
  return {};
}

std::vector<ModelStatus> ModelStore::list() const {
  std::vector<ModelStatus> all;
  std::set<std::string> listed;
  for (const auto& entry : catalogue_.entries()) {
    ModelStatus status;
    status.name = entry.name;
    status.kind = entry.kind;
    status.description = entry.description;
    status.licence = entry.licence;
    status.total_bytes = entry.total_bytes();
    listed.insert(entry.name);
    all.push_back(std::move(status));
  }
  // Models of an older or another catalogue are still there and can be removed.
  std::error_code error;
  for (std::filesystem::directory_iterator it(paths_.data + "/models", error), end; !error && it != end;
       it.increment(error)) {
    const auto model = read_manifest(it->path().string());
    if (!model || it->path().filename() != model_folder_name(model->name) || listed.count(model->name) != 0) continue;
    ModelStatus status;
    status.name = model->name;
    status.kind = model->kind;
    status.description = model->description;
    status.licence = model->licence;
    status.total_bytes = model->total_bytes();
    all.push_back(std::move(status));
  }
  for (auto& status : all) {
    status.folder = model_folder(status.name);
    status.on_disk_bytes = folder_bytes(status.folder);
    status.state = status.on_disk_bytes > 0 ? ModelState::kPartial : ModelState::kAbsent;
    if (const auto model = find(status.name)) {
      status.state = ModelState::kInstalled;
      status.total_bytes = model->total_bytes();
    }
  }
  std::sort(all.begin(), all.end(), [](const ModelStatus& a, const ModelStatus& b) { return a.name < b.name; });
  return all;
}

Result<InstalledModel> ModelStore::find(const std::string& name) const {
  if (!is_model_name(full_name(name))) {
    return fail(Code::kInvalidArgument, "'{}' is not the name of a model; `syrinx list` shows them",
                name.substr(0, 64));
  }
  auto model = read_manifest(model_folder(name));
  if (!model && model.error().code == Code::kNotFound) {
    SYRINX_TRY_VOID(catalogue_.find(name));
    return fail(Code::kNotFound, "the model '{}' is not installed; `syrinx pull {}` fetches it", name, name);
  }
  if (!model) return model;
  for (const auto& file : model->files) {
    struct stat info {};
    const bool there = ::stat(file.path.c_str(), &info) == 0;
    if (there && static_cast<uint64_t>(info.st_size) == file.size_bytes) continue;
    return fail(Code::kDataLoss, "the model '{}' is damaged: '{}' {}; `syrinx pull {}` repairs it", name, file.path,
                there ? "has the wrong size" : "is missing", name);
  }
  return model;
}

Status ModelStore::remove(const std::string& name, const std::atomic<bool>* cancel) {
  if (!is_model_name(full_name(name))) {
    return fail(Code::kInvalidArgument, "'{}' is not the name of a model; `syrinx list` shows them",
                name.substr(0, 64));
  }
  // Once the folder is gone, the name may be an alias of another model.
  const std::string full = full_name(name), folder = model_folder(name), cache = cache_folder(name);
  // First the lock: a process that installs a model that needs this one holds it too.
  SYRINX_TRY(const auto lock, ModelLock::acquire(paths_.data + "/locks/" + model_folder_name(full), cancel, nullptr));
  for (const auto& other : list()) {
    if (other.state != ModelState::kInstalled) continue;
    const auto model = read_manifest(other.folder);
    if (!model || std::find(model->needs.begin(), model->needs.end(), full) == model->needs.end()) continue;
    return fail(Code::kInvalidArgument, "'{}' needs '{}'; remove '{}' first", other.name, name, other.name);
  }
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) {
    return fail(Code::kNotFound, "the model '{}' is not installed; `syrinx list` shows those that are", name);
  }
  // The list goes first: a removal that is cut off leaves a model that is plainly not installed.
  SYRINX_TRY_VOID(remove_folder(folder + "/installed"));
  SYRINX_TRY_VOID(remove_folder(folder));
  return remove_folder(cache);
}

}  // namespace syrinx
