// Texts of the benchmark of a published port of Qwen3-TTS (spec qwen3-tts.md, section 8.1).
#pragma once

#include <array>
#include <cstddef>

namespace syrinx::bench {

struct SpokenText {
  const char* name;
  size_t words;
  const char* text;
};

inline constexpr std::array<SpokenText, 3> kSpokenTexts = {{
    {"short", 13, "The quick brown fox jumps over the lazy dog near the river bank."},
    {"medium", 53,
     "In a quiet village nestled between rolling hills and dense forests, there lived an old clockmaker who spent his "
     "days repairing timepieces from centuries past. His workshop, filled with the gentle ticking of a hundred clocks, "
     "was a place where time itself seemed to slow down and the outside world faded into silence."},
    {"long", 115,
     "The development of artificial intelligence has been one of the most transformative technological advances of the "
     "twenty-first century. From natural language processing to computer vision, machine learning models have achieved "
     "remarkable performance across a wide range of tasks that were once considered the exclusive domain of human "
     "intelligence. Speech synthesis, in particular, has seen dramatic improvements with the introduction of neural "
     "network architectures that can generate high-fidelity audio from text input. These systems learn complex "
     "patterns of prosody, intonation, and rhythm from large datasets of recorded speech, producing output that is "
     "increasingly difficult to distinguish from natural human speech. The implications of this technology extend "
     "across many fields, including accessibility, entertainment, education, and human-computer interaction."},
}};

}  // namespace syrinx::bench
