#include "store/registry_source.h"

#include <algorithm>
#include <filesystem>

#include "base/scoped_file.h"
#include "store/archive_members.h"
#include "store/child_process.h"
#include "store/paths.h"

namespace syrinx {
namespace {

// Bytes that the registry client may write beyond the packages: its own cache and logs.
constexpr uint64_t kClientExtraBytes = 64 << 20;

uint64_t folder_bytes(const std::string& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;  // a client moves and removes files while we look
    const bool regular = it->is_regular_file(gone) && !it->is_symlink(gone);
    const uint64_t size = regular ? it->file_size(gone) : 0;
    if (!gone) bytes += size;
  }
  return bytes;
}

uint64_t total_size(const std::vector<const CataloguePackage*>& packages) {
  uint64_t bytes = 0;
  for (const auto* package : packages) bytes += package->size_bytes;
  return bytes;
}

// The last line that says something, for the error message.
std::string last_line(const std::string& output) {
  std::string line, kept;
  for (const char c : output + "\n") {
    if (c != '\n' && c != '\r') {
      line += c >= 0 && c < ' ' ? ' ' : c;
      continue;
    }
    if (line.find_first_not_of(' ') != std::string::npos) kept = line;
    line.clear();
  }
  return kept.size() > 300 ? kept.substr(0, 300) + "..." : kept;
}

Result<std::vector<std::string>> pip_arguments(const std::vector<const CataloguePackage*>& packages,
                                               const std::string& folder) {
  std::string list;  // pip takes hashes from a requirements file only
  for (const auto* package : packages) {
    list += fmt::format("{}=={} --hash=sha256:{}\n", package->name, package->version, package->sha256);
  }
  const std::string path = folder + "/requirements.txt";
  SYRINX_TRY(ScopedFile file, ScopedFile::create(path));
  SYRINX_TRY_VOID(file.write(list));
  SYRINX_TRY_VOID(file.commit());
  return std::vector<std::string>{"python3",
                                  "-m",
                                  "pip",
                                  "download",
                                  "--quiet",
                                  "--no-deps",
                                  "--no-input",
                                  "--no-cache-dir",
                                  "--progress-bar",
                                  "off",
                                  "--require-hashes",
                                  "--only-binary=:all:",
                                  "-r",
                                  path,
                                  "-d",
                                  folder};
}

std::vector<std::string> npm_arguments(const std::vector<const CataloguePackage*>& packages) {
  std::vector<std::string> arguments{"npm", "pack", "--silent", "--ignore-scripts"};
  for (const auto* package : packages) arguments.push_back(package->name + "@" + package->version);
  return arguments;
}

Status explain_failure(SourceKind kind, const ChildResult& result) {
  if (kind == SourceKind::kPip && result.output.find("No module named pip") != std::string::npos) {
    return fail(Code::kUnavailable, "python3 has no pip; on Debian `apt-get install python3-pip` brings it");
  }
  return fail(Code::kUnavailable, "{} failed with status {}: {}", kind == SourceKind::kPip ? "pip" : "npm",
              result.exit_status, last_line(result.output));
}

}  // namespace

RegistryFetcher::RegistryFetcher(RegistryOptions options) : options_(std::move(options)) {
  std::error_code ignored;
  std::filesystem::remove_all(options_.scratch_folder, ignored);
}

RegistryFetcher::~RegistryFetcher() {
  std::error_code ignored;
  std::filesystem::remove_all(options_.scratch_folder, ignored);
}

Status RegistryFetcher::run_client(SourceKind kind, const std::vector<const CataloguePackage*>& packages,
                                   const std::string& folder) {
  ChildProcess child;
  child.folder = folder;
  child.timeout_ms = options_.timeout_ms;
  child.cancel = options_.cancel;
  if (kind == SourceKind::kPip) {
    SYRINX_TRY(child.arguments, pip_arguments(packages, folder));
  } else {
    child.arguments = npm_arguments(packages);
  }
  // Its temporary files count as progress and must not fill another disk; it asks the network for nothing else.
  const std::string temporary = folder + "/tmp";
  SYRINX_TRY_VOID(make_folders(temporary));
  child.environment = {{"TMPDIR", temporary},
                       {"PIP_DISABLE_PIP_VERSION_CHECK", "1"},
                       {"PIP_REQUIRE_VIRTUALENV", "0"},
                       {"npm_config_cache", temporary + "/npm"},
                       {"npm_config_update_notifier", "false"},
                       {"npm_config_audit", "false"},
                       {"npm_config_fund", "false"}};
  const uint64_t total_bytes = total_size(packages);
  child.on_tick = [&]() -> Status {
    const uint64_t bytes = folder_bytes(folder);
    // npm keeps a copy in its cache, pip one while it checks: twice the packages is the most that is honest.
    if (bytes > 2 * total_bytes + kClientExtraBytes) {
      return fail(Code::kDataLoss, "{} fetched more than the {} bytes that the catalogue says", child.arguments[0],
                  total_bytes);
    }
    if (options_.on_progress) options_.on_progress(std::min(bytes, total_bytes), total_bytes);
    return {};
  };
  const auto result = run_child(child);
  if (!result && result.error().code == Code::kNotFound) {
    return fail(Code::kUnavailable, "{}; on Debian `apt-get install {}` brings it", result.error().message,
                kind == SourceKind::kPip ? "python3 python3-pip" : "npm");
  }
  if (!result) return tl::unexpected(result.error());
  if (result->exit_status != 0) return explain_failure(kind, *result);
  if (options_.on_progress) options_.on_progress(total_bytes, total_bytes);
  return {};
}

// Which fetched file is which package is decided by its hash, not by how the client named it.
Status RegistryFetcher::collect(const std::vector<const CataloguePackage*>& packages, const std::string& folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code unreadable;
    if (!it->is_regular_file(unreadable) || it->is_symlink(unreadable)) continue;
    SYRINX_TRY(const std::string sha256, sha256_of_file(it->path().string(), options_.cancel));
    archives_[sha256] = it->path().string();
  }
  for (const auto* package : packages) {
    if (archives_.count(package->sha256) == 0) {
      return fail(Code::kDataLoss, "the package {} {} that came is not the one the catalogue knows (sha256 {})",
                  package->name, package->version, package->sha256);
    }
  }
  return {};
}

Status RegistryFetcher::fetch_packages(SourceKind kind, const std::vector<const CataloguePackage*>& packages) {
  std::vector<const CataloguePackage*> missing;
  for (const auto* package : packages) {
    if (archives_.count(package->sha256) == 0) missing.push_back(package);
  }
  if (missing.empty()) return {};
  const std::string folder = fmt::format("{}/{}", options_.scratch_folder, calls_++);
  SYRINX_TRY_VOID(make_folders(folder));
  SYRINX_TRY_VOID(run_client(kind, missing, folder));
  std::error_code ignored;
  std::filesystem::remove_all(folder + "/tmp", ignored);
  return collect(missing, folder);
}

Status RegistryFetcher::fetch(const CatalogueSource& source, const std::vector<RegistryFile>& files) {
  std::vector<const CataloguePackage*> packages;
  for (const auto& package : source.packages) packages.push_back(&package);
  SYRINX_TRY_VOID(fetch_packages(source.kind, packages));
  for (const auto& file : files) SYRINX_TRY_VOID(file.part->restart());
  for (const auto* package : packages) {
    std::vector<WantedMember> wanted;
    for (const auto& file : files) {
      PartFile* const part = file.part;
      wanted.push_back(WantedMember{expand_name(package->member, file.file->name),
                                    [part](std::span<const std::byte> bytes) { return part->append(bytes); }});
    }
    SYRINX_TRY_VOID(extract_members(archives_[package->sha256], wanted, options_.cancel));
  }
  for (const auto& file : files) SYRINX_TRY_VOID(file.part->finish());
  return {};
}

}  // namespace syrinx
