// The operator's settings for the language model behind the server.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "server/settings/settings.h"
#include "server/upstream/chat_client.h"
#include "server/upstream/chat_request.h"

namespace syrinx::server::upstream {

struct Upstream {
  Endpoint endpoint = {};
  ChatForm form = {};
  size_t max_characters = 0;  // of an answer; what is more is not spoken
};

// 'upstream' is "local:" and a name: the language model of this process answers.
bool is_local(const Settings& settings);
struct LocalUpstream {
  std::string model = {};  // as 'upstream' names it; empty: the only one
  ChatForm form = {};
  size_t max_characters = 0;  // of an answer; what is more is not spoken
};
LocalUpstream local_upstream(const Settings& settings);

// Checks that need no file: the URL, and that nothing is set without it.  kInvalidArgument.
Status check_upstream(const Settings& settings);
// With the files, of at most 4 kB (the key) and 1 MB; 'upstream' is not empty.  kInvalidArgument, kNotFound, kIo,
// kLimitExceeded, kDataLoss; no message holds the key.
Result<Upstream> load_upstream(const Settings& settings);

}  // namespace syrinx::server::upstream
