// One model's share of a pull: what is missing, and fetching it.  Part of ModelStore::pull; the caller holds the lock.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/hub_pull.h"
#include "store/model_store.h"

namespace syrinx {

class ModelPull {
 public:
  ModelPull(const CatalogueEntry& entry, std::string folder, const PullOptions& options);

  // Looks at every file: there, unchanged since it was verified, or else of the right hash?
  Status check();
  // Looks for what is missing and comes from a hub, in the hub's cache, then at the hub: sizes and hashes.  Gated
  // weights end the pull here, and what the cache has not when the network is switched off.
  Status ask_hub();
  bool needs_network() const;    // for what is missing; after ask_hub()
  uint64_t total_bytes() const;  // of all files that are wanted; rough where the hub was not asked
  uint64_t missing_bytes() const;
  size_t voices_left() const;  // that could be asked for too
  // The most disk space that fetching takes: files, and the packages that they come in.
  uint64_t needed_bytes() const;
  Status fetch();
  // Writes the list of what is there; without it the model does not count as installed.
  Status install() const;

 private:
  struct Missing {
    const CatalogueGroup* group;
    std::vector<const CatalogueFile*> files;
    std::vector<HubFile> located;  // by ask_hub(), one for each file; empty for other sources
  };
  bool wants(const CatalogueGroup& group) const;
  bool wants(const CatalogueGroup& group, const CatalogueFile& file) const;
  void choose_cloning();
  Status fetch_missing();
  // Sizes and times of the files that are listed as installed and will be replaced.
  std::vector<std::pair<uint64_t, int64_t>> stamps_of_replaced() const;
  static uint64_t missing_bytes(const Missing& missing);
  Result<bool> is_whole(const CatalogueGroup& group, const CatalogueFile& file);
  Status write_texts(const Missing& missing);
  Status fetch_from_hub(const Missing& missing, Downloader& downloader);
  Status fetch_group(const Missing& missing, class Downloader& downloader, class RegistryFetcher& registry);
  Status fetch_from_url(const CatalogueGroup& group, const CatalogueSource& source, Downloader& downloader,
                        std::vector<const CatalogueFile*>& files);
  Status fetch_from_registry(const CatalogueGroup& group, const CatalogueSource& source, RegistryFetcher& registry,
                             std::vector<const CatalogueFile*>& files);
  std::string path_of(const CatalogueGroup& group, const CatalogueFile& file) const;
  void go_on_without(const CatalogueGroup& group, const std::vector<const CatalogueFile*>& files,
                     const std::string& why);
  void report(PullEvent event) const;
  void notice(const std::string& text) const;
  void progress(uint64_t done_bytes, uint64_t total_bytes) const;

  const CatalogueEntry& entry_;
  std::string folder_;
  const PullOptions& options_;
  InstalledModel known_;  // what the list in the folder says
  bool without_cloning_ = false;
  std::vector<Missing> missing_;
  std::map<std::string, std::string> hashes_;  // of files of the hub that came or were found whole, by path
  std::set<std::string> left_out_;             // paths of optional files that are not whole and could not be had
  bool listed_ = false;                        // the list in the folder says what is there, to the last time stamp
  uint64_t base_bytes_ = 0;                    // of the group's files that came before the present one
  uint64_t share_bytes_ = 0;                   // of all files asked of the present source
};

}  // namespace syrinx
