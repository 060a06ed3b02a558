// How a checkpoint's file is named: a path, `hf://owner/repo/path@revision` (the revision may be left out: main), or an
// address that begins with http:// or https:// (spec pocket-tts.md, section 1.1; the maker's utils/utils.py).  What is
// accepted becomes folders and addresses, so every part is checked here.  Pure, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace syrinx {

struct CheckpointReference {
  enum class Kind : uint8_t { kPath, kHub, kUrl };
  Kind kind = Kind::kPath;
  std::string text;        // in its one spelling; of kPath and kUrl as given
  std::string repository;  // kHub: "owner/repo"
  std::string path;        // kHub: below the repository's root; kPath: as given
  std::string revision;    // kHub: a commit, a branch or a tag
};

// kInvalidArgument says which part is wrong.  Another scheme (file://, ftp://, s3://) is none of the three.
Result<CheckpointReference> parse_reference(std::string_view text);

// Whether the revision is a whole commit, whose files never change.
bool is_commit(std::string_view revision);

// Scheme, host and port of an http(s) address: "https://example.org:8443"; empty where there is no host.
std::string_view origin_of(std::string_view url);

// The ending of the address's last path component with its dot (".wav"), or nothing; letters and digits only, at most
// 16 of them, since it becomes part of a file's name.
std::string url_suffix(std::string_view url);

}  // namespace syrinx
