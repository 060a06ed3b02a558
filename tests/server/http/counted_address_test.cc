#include "server/http/counted_address.h"

#include <gtest/gtest.h>

#include <string>

namespace syrinx::server {
namespace {

std::string counted(const char* address) { return counted_as(boost::asio::ip::make_address(address)).to_string(); }

TEST(CountedAddress, AnAddressOfIPv4IsOneClient) {
  EXPECT_EQ(counted("192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(counted("::ffff:192.0.2.1"), "192.0.2.1");
}

TEST(CountedAddress, ANetworkOfIPv6IsOneClient) {
  EXPECT_EQ(counted("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
  EXPECT_EQ(counted("2001:db8:1:2:ffff:ffff:ffff:ffff"), "2001:db8:1:2::");
  EXPECT_EQ(counted("2001:db8:1:3::1"), "2001:db8:1:3::");
  EXPECT_EQ(counted("::1"), "::");
}

// The same addresses are others' on another link.
TEST(CountedAddress, ALinkOfItsOwnIsAnotherNetwork) {
  EXPECT_EQ(counted("fe80::1%1"), counted("fe80::2%1"));
  EXPECT_NE(counted("fe80::1%1"), counted("fe80::1%2"));
}

}  // namespace
}  // namespace syrinx::server
