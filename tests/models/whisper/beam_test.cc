// The beam search beside openai-whisper's (tools/reference/whisper_beams.py): on drawn logits, with the tiny
// checkpoint, and in whole transcriptions.
#include "models/whisper/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "../allocation_count.h"
#include "fixtures.h"
#include "transcripts.h"

namespace syrinx::whisper {
namespace {

using namespace test;

constexpr size_t kVocabulary = 23;  // of the drawn logits
constexpr int32_t kEnd = 7;

const Json& beams() {
  static const auto kFile = parse_json(read_small("beams.json"), "beams.json");
  EXPECT_TRUE(kFile.has_value());
  return *kFile;
}

std::optional<double> penalty_of(const Json& row) {
  const Json& value = *row.find("penalty");
  return value.is_null() ? std::nullopt : std::optional(number(value));
}

void expect_sum(double sum, const Json& row) {
  const double expected = number(row, "sum");
  EXPECT_NEAR(sum, expected, 1e-4 * std::abs(expected));
}

// As the script draws them: by the sequence alone.
std::vector<float> drawn_logits(uint32_t seed, std::span<const int32_t> ids, double lift) {
  for (const int32_t id : ids) seed = seed * 31 + static_cast<uint32_t>(id) + 1;
  std::vector<float> logits = Draws(seed).floats(kVocabulary, -2, 2);
  logits[kEnd] += static_cast<float>(lift);
  if (ids.empty()) logits[kEnd] = -std::numeric_limits<float>::infinity();
  return logits;
}

// Candidates of each sequence that goes on.
std::vector<Candidate> drawn_candidates(const BeamSearch& search, uint32_t seed, double lift) {
  std::vector<Candidate> candidates(search.live().size() * search.candidates());
  for (size_t i = 0; i < search.live().size(); ++i) {
    std::vector<float> logits = drawn_logits(seed, search.live()[i].ids, lift);
    find_candidates(logits, std::span(candidates).subspan(i * search.candidates(), search.candidates()));
  }
  return candidates;
}

TEST(WhisperBeam, SearchesAsTheMaker) {
  size_t early = 0;
  BeamSearch search;
  for (const Json& row : list(beams(), "searches")) {
    SCOPED_TRACE(row.dump());
    const auto seed = static_cast<uint32_t>(whole(row, "seed"));
    const size_t steps = whole(row, "steps");
    search.begin(
        {.beam = whole(row, "beam"), .patience = number(row, "patience"), .max_tokens = steps, .end_of_text = kEnd});
    std::vector<std::vector<size_t>> sources;
    bool goes_on = true;
    for (size_t step = 0; goes_on && step < steps; ++step) {
      goes_on = search.extend(drawn_candidates(search, seed, number(row, "lift")));
      sources.emplace_back(search.sources().begin(), search.sources().end());
    }
    const Json::Array& expected = list(row, "sources");
    ASSERT_EQ(sources.size(), expected.size() + 1);
    for (size_t i = 0; i < expected.size(); ++i) {
      const std::vector<int32_t> ids = ids_of(expected[i]);
      EXPECT_TRUE(std::ranges::equal(sources[i + 1], ids)) << "step " << i + 1;
    }
    const Sequence& result = search.result(penalty_of(row));
    EXPECT_EQ(result.ids, ids_of(row, "ids"));
    expect_sum(result.sum, row);
    ASSERT_EQ(result.log_probabilities.size(), result.ids.size());
    double sum = 0;
    for (const float part : result.log_probabilities) sum += part;
    EXPECT_EQ(result.ended, sum - result.sum > 1e-5) << "what ends has the end's log-probability besides";
    early += result.ended ? 1 : 0;
  }
  EXPECT_GT(early, 30u);
}

TEST(WhisperBeam, PatienceRoundsAsTheMakers) {
  EXPECT_EQ(BeamSearch::wanted(5, 1), 5u);
  EXPECT_EQ(BeamSearch::wanted(5, 2), 10u);
  EXPECT_EQ(BeamSearch::wanted(5, 0.5), 2u);
  EXPECT_EQ(BeamSearch::wanted(3, 0.5), 2u);
  EXPECT_EQ(BeamSearch::wanted(1, 0.5), 0u);
}

TEST(WhisperBeam, CandidatesAreTheGreatestLogits) {
  std::mt19937 random(5);
  for (const size_t vocabulary : {1u, 5u, 64u, 200u, 5000u}) {
    for (const bool coarse : {false, true}) {  // with many equal ones
      std::vector<float> logits(vocabulary);
      for (float& logit : logits)
        logit = coarse ? static_cast<float>(random() % 9) : static_cast<float>(random() % 1'000'000) * 1e-5f;
      std::vector<size_t> order(vocabulary);
      for (size_t i = 0; i < vocabulary; ++i) order[i] = i;
      std::ranges::stable_sort(order, [&](size_t a, size_t b) { return logits[a] > logits[b]; });
      const double log_sum = log_sum_exp(logits);
      std::vector<Candidate> found(6);
      std::vector<float> used = logits;
      find_candidates(used, found);
      for (size_t i = 0; i < found.size(); ++i) {
        if (i >= vocabulary) {
          EXPECT_EQ(found[i].log_probability, -std::numeric_limits<double>::infinity());
          continue;
        }
        EXPECT_EQ(found[i].token, static_cast<int32_t>(order[i]));
        EXPECT_NEAR(found[i].log_probability, logits[order[i]] - log_sum, 1e-5);
      }
    }
  }
}

// A broken model ends the search; it neither runs on nor has no result.
TEST(WhisperBeam, NoNumbersEndTheSearch) {
  for (const float value : {std::nanf(""), -std::numeric_limits<float>::infinity()}) {
    BeamSearch search;
    search.begin({.beam = 2, .patience = 1, .max_tokens = 4, .end_of_text = kEnd});
    ASSERT_TRUE(search.extend(drawn_candidates(search, 1, 0)));
    const std::vector<int32_t> first = search.live().front().ids;
    std::vector<Candidate> candidates(search.live().size() * search.candidates());
    for (size_t i = 0; i < search.live().size(); ++i) {
      std::vector<float> logits(kVocabulary, value);
      find_candidates(logits, std::span(candidates).subspan(i * search.candidates(), search.candidates()));
    }
    EXPECT_FALSE(search.extend(candidates));
    EXPECT_TRUE(search.live().empty());
    EXPECT_EQ(search.result({}).ids, first);
  }
}

// The twin copies nothing: its tokens are read anew, one by one and alone.
TEST(WhisperBeam, CachesFollowTheirSequences) {
  constexpr int32_t kPrompt[] = {1, 2, 3};
  constexpr size_t kBeam = 5, kSteps = 9;
  for (const Precision precision : {Precision::kF32, Precision::kInt8}) {
    const Encoded window(load("ct2", precision));
    const size_t vocabulary = window.model->config().vocabulary;
    ThreadTeam team(2);
    Decoder decoder(window.model, team, kBeam), alone(window.model, team, 1);
    auto state = DecoderState::make(*window.model, kBeam), fresh = DecoderState::make(*window.model, 1);
    BeamSearch search;
    BeamCaches caches;
    search.begin({.beam = kBeam, .patience = 4, .max_tokens = kSteps, .end_of_text = kEnd});
    caches.begin(kBeam);
    for (const int32_t token : kPrompt) {
      const DecoderInput input{0, token, &window.audio};
      decoder.step({&input, 1}, *state);
    }
    size_t copies = 0, copied = 0, held = 0;
    for (size_t step = 0; step < kSteps && search.extend(drawn_candidates(search, 11, -2)); ++step) {
      caches.follow(search, std::size(kPrompt), [&](size_t from, size_t to, size_t same) {
        state->copy(from, to, same);
        ++copies;
        copied += state->position(from) - same;
        held += state->position(from);
      });
      std::vector<DecoderInput> inputs;
      for (size_t i = 0; i < search.live().size(); ++i)
        inputs.push_back({caches.of(i), search.live()[i].ids.back(), &window.audio});
      const auto logits = decoder.step(inputs, *state);
      for (size_t i = 0; i < search.live().size(); ++i) {
        std::vector<int32_t> ids(std::begin(kPrompt), std::end(kPrompt));
        ids.insert(ids.end(), search.live()[i].ids.begin(), search.live()[i].ids.end());
        fresh->reset(0);
        std::vector<float> expected;
        for (const int32_t token : ids) {
          const DecoderInput input{0, token, &window.audio};
          expected = values_of(alone.step({&input, 1}, *fresh));
        }
        EXPECT_EQ(values_of({logits.row(i), {1, vocabulary}}), expected) << step << " " << i;
      }
    }
    EXPECT_GT(copies, 2 * kBeam);
    EXPECT_LT(2 * copied, held) << "common tokens are copied";
  }
}

TEST(WhisperBeam, AllocatesNothingWhenWarm) {
  constexpr size_t kBeam = 5, kSteps = 12;
  Encoded window(load("ct2", Precision::kInt8), 2);
  Decoder decoder(window.model, window.team, kBeam);
  auto state = DecoderState::make(*window.model, kBeam);
  BeamSearch search;
  BeamCaches caches;
  std::vector<DecoderInput> inputs;
  std::vector<Candidate> candidates;
  std::vector<float> row(window.model->config().vocabulary);
  inputs.reserve(kBeam);
  candidates.reserve(kBeam * BeamSearch::kMaxCandidates);
  for (const bool warm : {false, true}) {
    const size_t before = allocation_count();
    search.begin({.beam = kBeam, .patience = 2, .max_tokens = kSteps, .end_of_text = small_tokens().end_of_text});
    caches.begin(kBeam);
    state->reset(0);
    const int32_t prompt = 1;
    std::ranges::copy(decoder.prefill(0, {&prompt, 1}, window.audio, *state), row.begin());
    candidates.resize(search.candidates());
    find_candidates(row, candidates);
    for (size_t step = 0; step < kSteps && search.extend(candidates); ++step) {
      caches.follow(search, 1, [&](size_t from, size_t to, size_t same) { state->copy(from, to, same); });
      inputs.clear();
      for (size_t i = 0; i < search.live().size(); ++i)
        inputs.push_back({caches.of(i), search.live()[i].ids.back(), &window.audio});
      const auto logits = decoder.step(inputs, *state);
      candidates.resize(inputs.size() * search.candidates());
      for (size_t i = 0; i < inputs.size(); ++i) {
        std::ranges::copy(std::span(logits.row(i), row.size()), row.begin());
        find_candidates(row, std::span(candidates).subspan(i * search.candidates(), search.candidates()));
      }
    }
    search.result({});
    if (warm) {
      EXPECT_EQ(allocation_count(), before);
    }
  }
}

// The first second of a drawn sound, encoded.
Encoded drawn_window(const std::shared_ptr<const Model>& model, const Json& row, int threads) {
  const auto log_mel = LogMel::create(model->config().mels);
  EXPECT_TRUE(log_mel.has_value());
  const std::vector<float> samples = sound(static_cast<uint32_t>(whole(row, "seed")), 16'000);
  ThreadTeam team(1);
  std::vector<float> mel = log_mel_of(*log_mel, samples, samples.size(), team);
  const View<float, 2> frames(mel.data(), {mel.size() / 80, 80});
  normalise(frames, peak(frames), frames);
  return Encoded(model, std::move(mel), threads);
}

// The same bits on one thread and on three.
TEST(WhisperBeam, WindowsAreTheMakers) {
  const auto model = load("ct2");
  for (const Json& row : list(beams(), "windows")) {
    SCOPED_TRACE(row.dump());
    DecodeSettings settings;
    settings.temperatures = {0};
    settings.stop_loops = false;
    settings.beam = whole(row, "beam");
    settings.patience = number(row, "patience");
    settings.length_penalty = penalty_of(row);
    WindowPrompt prompt = {.previous = {},
                           .language = small_tokens().find_language("en"),
                           .translate = false,
                           .timestamps = truth(row, "timed")};
    if (!string_of(row, "prompt").empty()) prompt.previous = *small_bpe().encode(" " + string_of(row, "prompt"));
    std::vector<DecodedWindow> decoded;
    for (const int threads : {1, 3}) {
      Encoded window = drawn_window(model, row, threads);
      const auto decoder = WindowDecoder::create(model, small_bpe(), small_tokens(), window.team);
      ASSERT_TRUE(decoder.has_value());
      decoded.push_back((*decoder)->decode(window.audio, prompt, settings, 0));
    }
    const DecodedWindow& first = decoded.front();
    EXPECT_EQ(first.tokens, ids_of(row, "ids"));
    expect_sum(first.mean_log_probability * static_cast<double>(first.tokens.size() + 1), row);
    EXPECT_NEAR(first.no_speech, number(row, "no_speech"), 1e-6);
    EXPECT_NEAR(first.compression_ratio, number(row, "ratio"), 1e-5);
    EXPECT_EQ(first.log_probabilities.size(), first.tokens.size());
    EXPECT_EQ(decoded[1].tokens, first.tokens);
    EXPECT_EQ(decoded[1].log_probabilities, first.log_probabilities);
    EXPECT_EQ(decoded[1].mean_log_probability, first.mean_log_probability);
  }
}

// A beam that is wider than any before needs more caches; the results do not depend on what was before.
TEST(WhisperBeam, WiderBeamsGetTheirMemory) {
  const auto model = load("ct2");
  const Json& row = list(beams(), "windows").front();
  Encoded window = drawn_window(model, row, 1);
  const WindowPrompt prompt = {
      .previous = {}, .language = small_tokens().find_language("en"), .translate = false, .timestamps = true};
  const auto decoded = [&](WindowDecoder& decoder, size_t beam, size_t best_of, float temperature) {
    DecodeSettings settings;
    settings.temperatures = {temperature};
    settings.beam = beam;
    settings.best_of = best_of;
    return decoder.decode(window.audio, prompt, settings, 0);
  };
  const auto make = [&] { return *WindowDecoder::create(model, small_bpe(), small_tokens(), window.team); };
  const auto one = make(), other = make();
  const DecodedWindow narrow = decoded(*one, 3, 5, 0), wide = decoded(*one, BeamSearch::kMaxBeam, 5, 0);
  EXPECT_EQ(decoded(*other, BeamSearch::kMaxBeam, 5, 0).tokens, wide.tokens);
  EXPECT_EQ(decoded(*other, 3, 5, 0).tokens, narrow.tokens);
  EXPECT_GE(wide.mean_log_probability, narrow.mean_log_probability - 0.5f);
  const DecodedWindow many = decoded(*make(), 0, kMaxBestOf, 0.8f);
  EXPECT_EQ(decoded(*one, 0, kMaxBestOf, 0.8f).tokens, many.tokens);
}

// Whichever allocation of it.
TEST(WhisperBeam, RefusedMemoryLeavesTheDecoderWhole) {
  if (!allocations_are_counted()) return;  // a sanitizer has operators of its own
  const auto model = load("ct2");
  const Json& row = list(beams(), "windows").front();
  Encoded window = drawn_window(model, row, 1);
  const WindowPrompt prompt = {
      .previous = {}, .language = small_tokens().find_language("en"), .translate = false, .timestamps = true};
  DecodeSettings settings;
  settings.temperatures = {0};
  settings.beam = BeamSearch::kMaxBeam;
  const auto make = [&] { return *WindowDecoder::create(model, small_bpe(), small_tokens(), window.team); };
  const auto expected = make()->decode(window.audio, prompt, settings, 0).tokens;
  size_t refused = 0;
  for (size_t n = 1;; ++n) {
    const auto decoder = make();
    refuse_allocation(n);
    try {
      EXPECT_EQ(decoder->decode(window.audio, prompt, settings, 0).tokens, expected);
    } catch (const std::bad_alloc&) {
      ++refused;
    }
    if (refuses_allocation()) break;
    EXPECT_EQ(decoder->decode(window.audio, prompt, settings, 0).tokens, expected) << n;
  }
  refuse_allocation(0);
  EXPECT_GT(refused, 5u);
}

TEST(WhisperBeam, TranscriptsAreTheMakers) {
  const auto model = load("ct2");
  ThreadTeam team(2);
  auto bpe = text::read_bpe_json(read_small("tokenizer.json"), "tokenizer.json");
  ASSERT_TRUE(bpe.has_value());
  const auto vocabulary = std::make_shared<const Vocabulary>(Vocabulary{std::move(*bpe), small_tokens()});
  const auto transcriber = Transcriber::create(model, vocabulary, team);
  ASSERT_TRUE(transcriber.has_value()) << transcriber.error().message;
  size_t tokens = 0, words = 0;
  for (const Json& row : list(beams(), "transcripts")) {
    SCOPED_TRACE(whole(row, "seed"));
    TranscriberSettings settings;
    settings.decode.beam = whole(row, "beam");
    settings.decode.patience = number(row, "patience");
    settings.decode.length_penalty = penalty_of(row);
    if (!string_of(row, "prompt").empty())
      settings.long_form.prompt = *small_bpe().encode(" " + string_of(row, "prompt"));
    const HeardCounts counts = expect_row(**transcriber, row, std::move(settings));
    tokens += counts.tokens;
    words += counts.words;
  }
  EXPECT_GT(tokens, 100u);
  EXPECT_GT(words, 30u);
}

TEST(WhisperBeam, LoopsAreStopped) {
  const auto model = load("ct2");
  const Json& row = list(beams(), "windows").front();
  Encoded window = drawn_window(model, row, 1);
  const auto decoder = WindowDecoder::create(model, small_bpe(), small_tokens(), window.team);
  const WindowPrompt prompt = {
      .previous = {}, .language = small_tokens().find_language("en"), .translate = false, .timestamps = true};
  DecodeSettings settings;
  settings.temperatures = {0};
  settings.beam = 5;
  settings.log_probability_threshold = -1000;
  settings.stop_loops = false;
  const DecodedWindow whole_one = (*decoder)->decode(window.audio, prompt, settings, 0);
  settings.stop_loops = true;
  const DecodedWindow cut = (*decoder)->decode(window.audio, prompt, settings, 0);
  EXPECT_LT(cut.tokens.size(), whole_one.tokens.size());
  EXPECT_TRUE(has_failed(cut, settings)) << "it would not be decoded again";
}

}  // namespace
}  // namespace syrinx::whisper
