// One file of a catalogue's entry that a hub gives out: how large it is, and fetching it.  Part of ModelPull.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "store/download.h"
#include "store/hub.h"
#include "store/part_file.h"

namespace syrinx {

struct HubFile {
  std::string cached;  // where the hub's own cache has it; empty: `remote` is asked
  RemoteFile remote;
  uint64_t size_bytes = 0;
  std::string sha256;    // empty: nobody says
  std::string git_blob;  // as RemoteFile's
  const std::string& right_hash() const { return sha256.empty() ? git_blob : sha256; }
};

// Looks into the hub's cache, then asks the hub.  Errors are those of ask_server().
Result<HubFile> locate_hub_file(const CheckpointReference& reference, const HubSettings& settings,
                                const std::string& hint, Downloader& downloader, const std::atomic<bool>* cancel);

// Fills and finishes the part.
Status fetch_hub_file(const HubFile& file, PartFile& part, Downloader& downloader, const std::atomic<bool>* cancel);

}  // namespace syrinx
