// Zip archives of stored members written by hand, with each number open to spoiling.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace syrinx::test {

struct StoredZip {
  struct Member {
    std::string name = {}, data = {};
    std::string local_name = {};  // when it differs
    uint16_t flags = 0, method = 0;
    uint32_t claimed = 0;  // size in the directory, when it differs
    int64_t offset = -1;
    uint32_t crc = 0;
  };
  std::vector<Member> members = {};
  uint16_t disk = 0;
  uint32_t directory_offset_shift = 0;
  int64_t entries = -1;
  std::string comment = {};

  template <class T>
  static void put(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  std::string make() const {
    std::string out, directory;
    for (const Member& m : members) {
      const uint32_t offset = m.offset >= 0 ? static_cast<uint32_t>(m.offset) : static_cast<uint32_t>(out.size());
      const uint32_t size = m.claimed != 0 ? m.claimed : static_cast<uint32_t>(m.data.size());
      const std::string& local = m.local_name.empty() ? m.name : m.local_name;
      put<uint32_t>(out, 0x04034b50);
      out += std::string(22, '\0');
      put<uint16_t>(out, static_cast<uint16_t>(local.size()));
      put<uint16_t>(out, 0);
      out += local + m.data;
      put<uint32_t>(directory, 0x02014b50);
      directory += std::string(4, '\0');
      put<uint16_t>(directory, m.flags);
      put<uint16_t>(directory, m.method);
      put<uint32_t>(directory, 0);
      put<uint32_t>(directory, m.crc);
      put<uint32_t>(directory, m.method == 0 ? size : static_cast<uint32_t>(m.data.size()));
      put<uint32_t>(directory, size);
      put<uint16_t>(directory, static_cast<uint16_t>(m.name.size()));
      directory += std::string(12, '\0');
      put<uint32_t>(directory, offset);
      directory += m.name;
    }
    const auto at = static_cast<uint32_t>(out.size()) + directory_offset_shift;
    const auto count = static_cast<uint16_t>(entries >= 0 ? static_cast<size_t>(entries) : members.size());
    out += directory;
    put<uint32_t>(out, 0x06054b50);
    put<uint16_t>(out, disk);
    put<uint16_t>(out, disk);
    put<uint16_t>(out, count);
    put<uint16_t>(out, count);
    put<uint32_t>(out, static_cast<uint32_t>(directory.size()));
    put<uint32_t>(out, at);
    put<uint16_t>(out, static_cast<uint16_t>(comment.size()));
    return out + comment;
  }
};

}  // namespace syrinx::test
