// Whom the limits of one address count as one client.  Pure, thread-safe.
#pragma once

#include <boost/asio/ip/address.hpp>

#include <algorithm>
#include <cstddef>

namespace syrinx::server {

// An IPv6 address counts as its network of 64 bits, in which a customer may choose any address; an IPv4 address counts
// whole, also where a socket of IPv6 shows it as ::ffff:a.b.c.d.
inline boost::asio::ip::address counted_as(const boost::asio::ip::address& address) {
  namespace ip = boost::asio::ip;
  constexpr size_t kNetworkBytes = 8;
  if (address.is_v4()) return address;
  const ip::address_v6 six = address.to_v6();
  if (six.is_v4_mapped()) return ip::make_address_v4(ip::v4_mapped, six);
  ip::address_v6::bytes_type bytes = six.to_bytes();
  std::fill(bytes.begin() + kNetworkBytes, bytes.end(), 0);
  return ip::address_v6(bytes, six.scope_id());
}

}  // namespace syrinx::server
