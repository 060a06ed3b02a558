// Figures of a speech as the C interface tells them.
#pragma once

#include "engine/speech/speech_session.h"
#include "syrinx/syrinx.h"

namespace syrinx {

inline syrinx_statistics statistics_facts(const SpeechStatistics& from) {
  using enum FinishReason;
  syrinx_statistics facts{};
  facts.struct_size = sizeof facts;
  facts.first_audio_ms = from.first_audio_ms;
  facts.total_ms = from.total_ms;
  facts.compute_ms = from.compute_ms;
  facts.audio_seconds = from.audio_seconds;
  facts.rtf = from.rtf();
  facts.pieces = from.pieces;
  facts.dropped_characters = from.dropped_characters;
  facts.unknown_phonemes = from.unknown_phonemes;
  facts.limited_pieces = from.finished.of(kLength);
  facts.waiting_ms = from.waiting_ms;
  facts.silent_pieces = from.finished.of(kSilence);
  facts.repeating_pieces = from.finished.of(kRepeats);
  facts.retried_pieces = from.retried_pieces;
  facts.measured_pieces = from.spread.pieces;
  facts.uneven_rate_pieces = from.spread.uneven_rate;
  facts.uneven_loudness_pieces = from.spread.uneven_loudness;
  facts.least_rate = from.spread.least_rate;
  facts.greatest_rate = from.spread.greatest_rate;
  facts.least_loudness_db = from.spread.least_loudness_db;
  facts.greatest_loudness_db = from.spread.greatest_loudness_db;
  return facts;
}

}  // namespace syrinx
