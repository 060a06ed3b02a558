// Hugging Face's hub, as its own tools find it: its address, its cache on this disk, the user's token.
//
//   HF_ENDPOINT                    another hub with the same interface; https://huggingface.co
//   HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE   1, ON, YES or TRUE: no network
//   HF_HOME                        $XDG_CACHE_HOME/huggingface, ~/.cache/huggingface
//   HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE    $HF_HOME/hub
//   HF_TOKEN, HUGGING_FACE_HUB_TOKEN, then the file HF_TOKEN_PATH, $HF_HOME/token
//
// Files in the maker's own cache (~/.cache/pocket_tts/<SHA-256 of the address><suffix>) are found too.  Both caches are
// only read.  Sources: huggingface_hub's constants.py, utils/_auth.py and file_download.py; pocket_tts' utils/utils.py.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "store/checkpoint_reference.h"
#include "store/download.h"

namespace syrinx {

struct HubSettings {
  std::string endpoint = "https://huggingface.co";  // no slash at its end
  bool offline = false;
  std::string offline_by = "HF_HUB_OFFLINE";  // what messages say switched the network off
  std::string cache;                          // folder of models--OWNER--REPO; may be missing
  std::string maker_cache;                    // folder of pocket_tts; may be missing
  std::string token;                          // empty: there is none
  std::string token_place;                    // what messages call it: "HF_TOKEN", a file

  // kInvalidArgument for an HF_ENDPOINT that is no address, and for a token that no header can carry.
  static Result<HubSettings> from_environment();
};

// Where a copy of the file lies in the hub's or the maker's cache, or nothing.  A branch or a tag means what the hub's
// tools last saw it mean.  Looks at names alone.
std::string find_in_caches(const CheckpointReference& reference, const HubSettings& settings);

// The hash that the hub's cache vouches for: the name of the blob that `path` links to, a SHA-256 of 64 digits, or for
// a small file git's name of its content, 40 (sha1.h).  Empty for others.
std::string cached_hash(const std::string& path);

// A file that a server is ready to give.  At most one of the hashes is known.
struct RemoteFile {
  RemoteAddress address;
  uint64_t size_bytes = 0;
  std::string sha256;    // empty: nobody says
  std::string git_blob;  // git's name of a small file's content; empty: nobody says
  std::string commit;    // kHub: what the revision means now
};

// Asks the hub, or the server of an address.  The token is sent to the hub alone, and only where it refuses without;
// never in the clear, but to this machine itself.
// kNotFound: no such repository, revision or file; kUnavailable: refused (the sentence says how to get in, and ends in
// `hint` if it is not empty), or cannot be reached; kLimitExceeded: larger than `max_bytes`; kUnsupported: a server
// that does not say how long the file is.
Result<RemoteFile> ask_server(const CheckpointReference& reference, const HubSettings& settings, uint64_t max_bytes,
                              const std::string& hint, Downloader& downloader);

}  // namespace syrinx
