// Tells systemd's service manager the state of the server (sd_notify(3)): one datagram to the socket in NOTIFY_SOCKET,
// a path or, behind '@', an abstract name.
#pragma once

#include <atomic>
#include <chrono>
#include <string_view>

namespace syrinx::server {

// "READY=1", "STOPPING=1", with further assignments on lines of their own.  Nothing happens where NOTIFY_SOCKET is not
// set; that nobody hears is logged, and the server goes on.  Waits so long for room in the manager's queue, and no
// longer once `given_up` is set.
void notify_manager(std::string_view state, std::chrono::milliseconds patience, const std::atomic<bool>& given_up);

}  // namespace syrinx::server
