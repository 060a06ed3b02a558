// A client of a server of this machine, byte by byte.
#pragma once

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>

namespace syrinx::server {

// A socket with the request sent.
inline int connect_and_send(int port, const std::string& request) {
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(::send(client, request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
  return client;
}

// The server's answers until it closes the connection, without a reset.
inline std::string send_and_hear(int port, const std::string& requests) {
  const int client = connect_and_send(port, requests);
  std::string answers;
  char bytes[4096];
  ssize_t n = 0;
  while ((n = ::recv(client, bytes, sizeof(bytes), 0)) > 0) answers.append(bytes, static_cast<size_t>(n));
  EXPECT_EQ(n, 0) << requests;
  ::close(client);
  return answers;
}

}  // namespace syrinx::server
