// Changes a file while this process reads it.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>

namespace syrinx {

// Makes the file `bytes` long once it is mapped; one that is not mapped while this lives stays as it is.
class ResizeWhenMapped {
 public:
  ResizeWhenMapped(const std::string& path, size_t bytes)
      : thread_([this, path = std::filesystem::canonical(path).string(), bytes] {
          while (!ending_) {
            if (!is_mapped(path)) continue;
            std::error_code error;
            std::filesystem::resize_file(path, bytes, error);
            EXPECT_FALSE(error) << path << ": " << error.message();
            return;
          }
        }) {}
  ~ResizeWhenMapped() {
    ending_ = true;
    thread_.join();
  }
  ResizeWhenMapped(const ResizeWhenMapped&) = delete;
  ResizeWhenMapped& operator=(const ResizeWhenMapped&) = delete;

 private:
  static bool is_mapped(const std::string& path) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
      if (line.ends_with(path)) return true;
    return false;
  }

  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace syrinx
