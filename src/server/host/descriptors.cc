#include "server/host/descriptors.h"

#include <sys/resource.h>

#include <algorithm>

namespace syrinx::server {
namespace {

constexpr size_t kOwn = 128;  // without clients: some twenty, and what is opened for a moment

}  // namespace

size_t raise_descriptor_limit(size_t wanted) {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t before = limit.rlim_cur;
  if (before >= wanted) return before;
  limit.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
}

Status make_room_for(size_t connections, size_t sessions) {
  const size_t wanted = connections + sessions + kOwn, limit = raise_descriptor_limit(wanted);
  if (limit >= wanted) return {};
  return fail(Code::kLimitExceeded,
              "'max_connections' is {}, for which the server needs {} open files, and it may have {}; raise that limit "
              "(LimitNOFILE of systemd, `ulimit -n`), or set 'max_connections' to {} at most",
              connections, wanted, limit, limit > sessions + kOwn ? limit - sessions - kOwn : 1);
}

}  // namespace syrinx::server
