// Segments of a window of 30 s, cut at its times, and where the next window begins (spec whisper.md, section 6;
// openai/whisper, transcribe.py).  Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/whisper/tokens.h"

namespace syrinx::whisper {

inline constexpr size_t kFramesPerTime = 2;  // of mel, 10 ms each
inline constexpr double kSecondsPerFrame = 0.01;

// A token on its own, by the same alignment as its word.
struct TokenTime {
  double start_s = 0, end_s = 0;
  float probability = 0;
};

struct Word {
  std::string text;  // with the space before it, where there is one
  std::vector<int32_t> tokens;
  double start_s = 0, end_s = 0;
  float probability = 0;                 // mean of its tokens'
  std::vector<TokenTime> token_times{};  // of each of them, where the word has been timed
};

struct Segment {
  double start_s = 0, end_s = 0;  // of the sound
  std::vector<int32_t> tokens;    // with its times
  std::string text;
  float mean_log_probability = 0;  // of its tokens
  float no_speech = 0;             // probability that its window holds none
  float temperature = 0;           // at which its window was decoded
  float compression_ratio = 0;     // of its window's text
  std::vector<Word> words;         // where they were asked for
};

struct WindowCut {
  struct Piece {
    size_t begin = 0, end = 0;      // of the window's tokens
    double start_s = 0, end_s = 0;  // from the beginning of the window
  };
  std::vector<Piece> pieces;
  size_t frames = 0;            // to go on
  bool ends_with_time = false;  // a single time closes the window: nothing is said behind it
};

// `ids` without the end of text; the window holds `frames` of mel.
WindowCut cut_window(const Tokens& tokens, std::span<const int32_t> ids, size_t frames);

}  // namespace syrinx::whisper
