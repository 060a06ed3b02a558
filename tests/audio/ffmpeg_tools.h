// The real ffmpeg, which makes the files that we read and judges those that we write.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "../base/temp_folder.h"
#include "audio/encode/encoder.h"
#include "base/scoped_file.h"

namespace syrinx {

// `arguments` are words for a shell.
inline void run_ffmpeg(const std::string& arguments) {
  const std::string command = "ffmpeg -nostdin -v error -y " + arguments;
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

inline void write_wav_file(const std::string& path, std::span<const float> sound, int rate_hz) {
  auto file = ScopedFile::create(path);
  ASSERT_TRUE(file);
  auto encoder = AudioEncoder::create(AudioFormat::kWav, {.rate_hz = rate_hz}, file_sink(*file));
  ASSERT_TRUE(encoder && (*encoder)->write(sound) && (*encoder)->finish() && file->commit());
}

// Samples decoded by ffmpeg, the mean of its `channels`; empty where it refuses.
inline std::vector<float> decode_by_ffmpeg(const TempFolder& folder, const std::string& path, int channels) {
  const std::string raw = folder.file("decoded.f32");
  run_ffmpeg("-i " + path + " -map 0:a:0 -f f32le " + raw);
  const std::string bytes = read_text(raw);
  std::vector<float> all(bytes.size() / sizeof(float)), mono;
  std::memcpy(all.data(), bytes.data(), all.size() * sizeof(float));
  for (size_t i = 0; i + static_cast<size_t>(channels) <= all.size(); i += static_cast<size_t>(channels)) {
    float sum = 0;
    for (size_t c = 0; c < static_cast<size_t>(channels); ++c) sum += all[i + c];
    mono.push_back(sum / static_cast<float>(channels));
  }
  return mono;
}

}  // namespace syrinx
