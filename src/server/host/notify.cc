#include "server/host/notify.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/clock.h"
#include "base/log.h"

namespace syrinx::server {
namespace {

constexpr timeval kTick{0, 100000};  // how soon it is heeded that the wait is given up

// The error of the first call that fails; 0: it was sent.
int send_datagram(std::string_view name, std::string_view text, std::chrono::milliseconds patience,
                  const std::atomic<bool>& given_up) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (name.size() >= sizeof(address.sun_path)) return ENAMETOOLONG;
  name.copy(address.sun_path, name.size());
  if (name.front() == '@') address.sun_path[0] = '\0';  // an abstract name ends where its length says
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  const int descriptor = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return errno;
  int error = 0;
  if (::setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &kTick, sizeof(kTick)) != 0) error = errno;
  const Stopwatch waited;
  for (bool sent = false; !sent && error == 0;) {
    sent = ::sendto(descriptor, text.data(), text.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
                    length) >= 0;
    if (sent || errno == EINTR) continue;
    const bool may_wait = waited.elapsed_ms() < static_cast<double>(patience.count()) && !given_up;
    if (errno != EAGAIN || !may_wait) error = errno;
  }
  ::close(descriptor);
  return error;
}

}  // namespace

void notify_manager(std::string_view state, std::chrono::milliseconds patience, const std::atomic<bool>& given_up) {
  const char* const name = std::getenv("NOTIFY_SOCKET");
  if (name == nullptr || *name == '\0') return;
  if (const int error = send_datagram(name, state, patience, given_up); error != 0)
    log_error("the service manager at NOTIFY_SOCKET does not hear: {}", std::strerror(error));
}

}  // namespace syrinx::server
