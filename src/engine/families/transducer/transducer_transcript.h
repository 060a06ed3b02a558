// From a transducer's labels to the segments of a transcript.  Pure functions.
#pragma once

#include <span>
#include <vector>

#include "engine/recognition/piece_times.h"
#include "engine/recognition/transcript.h"
#include "models/transducer/words.h"

namespace syrinx {

struct TranscriptRules {
  double frame_s = 0.08;                           // of a frame of the model
  double offset_s = 0;                             // of its first frame in the recording
  bool words = false;                              // times of words go into the segments
  const transducer::Vocabulary* tokens = nullptr;  // the labels': times of tokens go into the words; null: they do not
  double gap_s = 1.0;                              // a longer silence between two words ends a segment
  std::vector<bool> follow_pauses = {};            // of each word: whether a pause that was left out ends one before it
};

// The tokens behind those marks that end or divide a sentence (. , ! ? : ; and their kin) which all of them begin with.
// The point of ".5" stays.
std::span<const transducer::TokenTime> behind_marks(const transducer::Vocabulary& vocabulary,
                                                    std::span<const transducer::TokenTime> tokens);

// The words' times in a piece, as PieceTimes takes them.
std::vector<PieceTimes::Word> piece_words(std::span<const transducer::WordTime> words, double frame_s);

// One segment of all words; its confidence is the mean of its labels'.  Without words it has neither text nor times.
TranscriptSegment transcript_segment(std::span<const transducer::TokenTime> tokens,
                                     std::span<const transducer::WordTime> words, const TranscriptRules& rules);

// The same cut where a sentence ends (a word with . ? or ! behind it, closing quotation marks and brackets aside) and
// at silences.
std::vector<TranscriptSegment> transcript_segments(std::span<const transducer::TokenTime> tokens,
                                                   std::span<const transducer::WordTime> words,
                                                   const TranscriptRules& rules);

}  // namespace syrinx
