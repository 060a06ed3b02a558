// Which stretch of text is synthesised at a time.  A piece is Kokoro's unit of exactness, so a short first one is what
// makes the first sound come early.  Specification: Kokoro, sections 7.4 and 8.5.
//
// Pure functions of phonemised sentences: no model, no clock.  Source ranges of words are carried along.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "models/g2p/english.h"

namespace syrinx::kokoro {

struct PiecePolicy {
  // Policy for speech at `speed` (0.25 to 4): the slower it is, the fewer phonemes make as much audio.
  static PiecePolicy at_speed(float speed);

  // Longest piece, some 11 s of audio (with a joined short one: most_joined()): the model takes 510, but other requests
  // wait while a piece is computed.
  size_t max_ids = 200;
  size_t first_ids = 40;     // the first piece ends at the last clause end within so many phonemes, or soon after
  size_t packed_ids = 200;   // later sentences are packed together up to so many
  size_t shortest_ids = 10;  // a piece of fewer phonemes sounds clipped: it joins a neighbour
  size_t growth = 4;         // a piece is at most so many times the one before: it is made while that one plays

  // Longest piece of a short one and its neighbour, which may be of any length: "He said:" and the quotation.
  size_t most_joined() const;
};

// Cuts where a piece is longer than max_ids: after the last of ! . ? … that fits, else : ; else , — (a closing bracket
// or quotation goes with it), else between words, into parts of about the same length, else anywhere.  One code point
// is one id.
std::vector<g2p::Phonemized> split_for_model(const g2p::Phonemized& text, size_t max_ids = 510);

// Hands out pieces while sentences still arrive.
class PiecePlanner {
 public:
  explicit PiecePlanner(const PiecePolicy& policy = {}) : policy_(policy) {}
  void add(const g2p::Phonemized& sentence);
  // The next piece.  Waits (nothing) when packing could still add to it, unless `now` asks for what there is: the
  // player is about to run dry, or the text has ended.  Never returns a piece without a word.
  std::optional<g2p::Phonemized> next(bool now);

 private:
  std::optional<g2p::Phonemized> opening(size_t limit);

  PiecePolicy policy_;
  std::vector<g2p::Phonemized> waiting_;  // in order; each at most most_joined()
  size_t given_ = 0;                      // pieces
  size_t last_ids_ = 0;                   // length of the last of them
};

// All pieces of a text whose sentences are known.
std::vector<g2p::Phonemized> plan_pieces(const std::vector<g2p::Phonemized>& sentences, const PiecePolicy& policy = {});

}  // namespace syrinx::kokoro
