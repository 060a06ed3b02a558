// Recordings of each kind that FFmpeg's libraries decode for us, made by the installed ffmpeg.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <string>

#include "tests/audio/ffmpeg_tools.h"
#include "tests/audio/sound_tools.h"

namespace syrinx {

// ffmpeg's words after the input, a WAV of one channel at the rate.
struct ContainerKind {
  const char* name;
  const char* words;
  const char* ending;
  int rate_hz;
  int channels = 1;
};

// The file announces its length.
inline const ContainerKind kWholeKinds[] = {
    {"opus", "-c:a libopus", "webm", 48000},
    {"vorbis_stereo", "-c:a libvorbis -af 'pan=stereo|c0=c0|c1=0.5*c0'", "webm", 44100, 2},
    {"aac_stereo", "-c:a aac -b:a 128k -af 'pan=stereo|c0=c0|c1=0.5*c0'", "m4a", 44100, 2},
    {"aac_of_a_phone", "-c:a aac -b:a 64k -movflags +faststart", "mp4", 16000},
    {"aac_with_video", "-f lavfi -i testsrc=duration=2:size=64x48:rate=5 -map 1 -map 0 -c:v mpeg4 -c:a aac", "mp4",
     48000},
    {"alac_24", "-c:a alac -sample_fmt s32p", "m4a", 44100},
    {"alac_16", "-c:a alac -sample_fmt s16p", "m4a", 22050},
    {"mp3", "-c:a libmp3lame -b:a 96k", "mp4", 24000},
    {"flac", "-c:a flac", "mka", 16000},
    {"pcm_8_channels", "-c:a pcm_s24le -ac 8", "mov", 32000, 8},
    {"pcm_floats", "-c:a pcm_f32le", "mkv", 96000},
    {"pcm_doubles", "-c:a pcm_f64le", "mkv", 8000},
    {"pcm_bytes", "-c:a pcm_u8", "mkv", 8000},
    {"mulaw", "-c:a pcm_mulaw", "mov", 8000},
    {"aac_of_quicktime", "-c:a aac -b:a 64k -metadata title=Notes -metadata artist=me", "mov", 44100},
    {"aac_of_a_film", "-f lavfi -i testsrc=duration=2:size=64x48:rate=50 -map 1 -map 0 -c:v mpeg4 -bf 2 -c:a aac",
     "mov", 48000},
    {"wma", "-c:a wmav2 -b:a 64k", "wma", 44100},
    {"wma_1", "-c:a wmav1 -b:a 64k", "wma", 22050}};
// The file announces no length, as from browsers, phones and broadcasts.
inline const ContainerKind kLiveKinds[] = {
    {"adts", "-c:a aac -b:a 96k", "aac", 24000},
    {"live_opus", "-c:a libopus -live 1 -cluster_time_limit 200", "webm", 48000},
    {"fragments", "-c:a aac -frag_duration 200000 -movflags +empty_moov+default_base_moof", "mp4", 48000},
    {"segments", "-c:a aac -frag_duration 200000 -movflags +dash+empty_moov+default_base_moof", "mp4", 44100},
    {"amr", "", "amr", 8000},
    {"amr_wide", "", "awb", 16000}};

inline std::string kind_name(const testing::TestParamInfo<ContainerKind>& info) { return info.param.name; }

// Ten packets of eight channels, so many seconds apart.
inline std::string gaps_words(int rate_hz, int gap_s) {
  return fmt::format(
      "-af 'aformat=sample_rates={}:channel_layouts=7.1:sample_fmts=u8,asetnsamples=n=64:p=0,"
      "asetpts=floor(N/64)*{}/TB' -frames:a 10 -c:a pcm_u8",
      rate_hz, gap_s);
}

// Frames of the highest rate with random bits: nobody here has an encoder.
inline void write_amr(const std::string& path, double seconds, bool is_wide) {
  std::mt19937 random(1);
  std::string file = is_wide ? "#!AMR-WB\n" : "#!AMR\n";
  for (int frame = 0; frame < static_cast<int>(seconds * 50); ++frame) {
    file += is_wide ? '\x44' : '\x3C';
    for (int i = 0; i < (is_wide ? 60 : 31); ++i) file += static_cast<char>(random() & 0xFF);
  }
  std::ofstream(path, std::ios::binary) << file;
}

// The path of a file of that kind.
inline std::string make_container(const TempFolder& folder, const ContainerKind& kind, double seconds) {
  std::string path = folder.file(std::string("sound.") + kind.ending);
  if (const std::string ending = kind.ending; ending == "amr" || ending == "awb") {
    write_amr(path, seconds, ending == "awb");
    return path;
  }
  write_wav_file(folder.file("in.wav"), voice_like(static_cast<size_t>(seconds * kind.rate_hz), kind.rate_hz),
                 kind.rate_hz);
  run_ffmpeg("-i " + folder.file("in.wav") + " " + kind.words + " -fflags +bitexact " + path);
  return path;
}

}  // namespace syrinx
