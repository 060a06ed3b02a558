// A search with several sequences at once by the maker's rules (openai/whisper, decoding.py: BeamSearchDecoder,
// MaximumLikelihoodRanker): which sequences go on, which are finished, which one is the result.  No network is in here:
// the caller gives the likeliest tokens behind each sequence.
//
// At each step all sequences with one more token are ranked by the sums of their log-probabilities.  From the top,
// those that end are finished and the others go on, until as many as the beam is wide go on.  The search is over when
// beam times patience are finished; if fewer than the beam are by then, those that go on count too.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace syrinx::whisper {

// The tokens of a hypothesis.
struct Sequence {
  std::vector<int32_t> ids;              // without the end of text
  std::vector<float> log_probabilities;  // of each
  double sum = 0;                        // with the end of text, where it has come
  bool ended = false;

  void reserve(size_t tokens);
};

// The sum by which sequences are compared: over the number of tokens, or over ((5 + tokens) / 6) ^ length_penalty.
// -infinity for one without tokens.
double score(const Sequence& sequence, std::optional<double> length_penalty);
// The first of those with the greatest score.
const Sequence& best_of(std::span<const Sequence> sequences, std::optional<double> length_penalty);

struct Candidate {
  int32_t token = 0;
  double log_probability = 0;  // -infinity: there is none
};

// The likeliest tokens, the first one first, with their log-probabilities; there may be fewer than there is room for.
// `logits` are overwritten.  Allocates nothing.
void find_candidates(std::span<float> logits, std::span<Candidate> candidates);

// One thread.
class BeamSearch {
 public:
  struct Settings {
    size_t beam = 5;  // 1 to kMaxBeam
    double patience = 1;
    size_t max_tokens = 224;  // of a sequence, for which there is room
    int32_t end_of_text = 0;
  };
  static constexpr size_t kMaxBeam = 16;
  static constexpr size_t kMaxCandidates = kMaxBeam + 1;  // of a sequence

  // Sequences that must be finished: beam times patience, rounded, halves to even numbers; 0: the search has no result.
  static size_t wanted(size_t beam, double patience);

  // One sequence without tokens goes on.  Allocates the first time, and for more of anything.
  void begin(const Settings& settings);
  // Candidates of each sequence: one more than the beam is wide, so that each step has as many that do not end.
  size_t candidates() const { return settings_.beam + 1; }
  // Those that go on, in falling order of their sums.
  std::span<const Sequence> live() const { return {live_.data(), live_count_}; }
  // One more token for each: [live(), candidates()].  False: the search is over.  Allocates nothing.
  bool extend(std::span<const Candidate> candidates);
  // Behind extend(): sequence i goes on from the sources()[i]-th of those before.
  std::span<const size_t> sources() const { return {sources_.data(), live_count_}; }
  // Tokens that the a-th and the b-th of those before begin with both.
  size_t common(size_t a, size_t b) const;
  // The best of all that are finished; ends the search.
  const Sequence& result(std::optional<double> length_penalty);

 private:
  struct Ranked {
    double sum = 0;
    size_t source = 0, candidate = 0;
  };
  void rank(std::span<const Candidate> candidates);
  static void append(const Sequence& from, const Candidate& candidate, double sum, Sequence& to);

  Settings settings_;
  size_t live_count_ = 0, before_count_ = 0, finished_count_ = 0;
  std::vector<Sequence> live_, before_;  // [beam]
  std::vector<Sequence> finished_;       // [wanted + beam]
  std::vector<size_t> sources_;
  std::vector<Ranked> ranked_;
};

// Which cache each sequence of a search has.  The first of the sequences that go on from another keeps its cache; each
// further one takes the cache of a sequence that does not go on, the one with the most tokens in common, and copies
// only the positions behind those.
class BeamCaches {
 public:
  // The first sequence has cache 0 of `count`.
  void begin(size_t count);
  size_t of(size_t sequence) const { return caches_[sequence]; }
  // Behind extend(): copy(from, to, same) has a cache hold what another one does, their first `same` tokens being
  // equal. Each cache holds `prompt` tokens and those of its sequence.  Allocates nothing.
  template <class Copy>
  void follow(const BeamSearch& search, size_t prompt, const Copy& copy) {
    plan(search);
    for (size_t i = 0; i < search.sources().size(); ++i) {
      const Move& move = moves_[i];
      if (move.from != move.to) copy(move.from, move.to, move.owned ? prompt + move.common : 0);
      caches_[i] = move.to;
    }
    for (size_t i = 0; i < search.sources().size(); ++i) owners_[caches_[i]] = i;
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  struct Move {
    size_t from = 0, to = kNone;
    size_t common = 0;   // tokens of the sequence that had the cache before
    bool owned = false;  // one had it
  };
  void plan(const BeamSearch& search);

  std::vector<size_t> caches_;  // of each sequence
  std::vector<size_t> owners_;  // of each cache the sequence that has it, or kNone
  std::vector<bool> taken_;     // each cache, by a sequence that goes on
  std::vector<Move> moves_;
};

}  // namespace syrinx::whisper
