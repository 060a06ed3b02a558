// Whisper's network against transformers' on the small checkpoint in all its forms, stage by stage; then the rules of a
// step.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "../../base/temp_folder.h"
#include "../allocation_count.h"
#include "fixtures.h"

namespace syrinx::whisper {
namespace {

constexpr double kParity = 1e-4;
constexpr const char* kForms[] = {"ct2", "transformers", "openai"};

std::vector<DecoderInput> inputs_of(std::span<const size_t> hypotheses, std::span<const int32_t> tokens,
                                    const AudioState& audio) {
  std::vector<DecoderInput> inputs;
  for (size_t i = 0; i < hypotheses.size(); ++i) inputs.push_back({hypotheses[i], tokens[i], &audio});
  return inputs;
}

// Feeds tokens one by one to hypothesis `at`: the logits behind each, [tokens, V].
std::vector<float> step_by_step(const Encoded& window, std::span<const int32_t> tokens, size_t hypotheses, size_t at) {
  ThreadTeam team(1);
  Decoder decoder(window.model, team, hypotheses);
  auto state = DecoderState::make(*window.model, hypotheses);
  std::vector<float> logits;
  for (const int32_t token : tokens) {
    const DecoderInput input{at, token, &window.audio};
    const std::vector<float> row = values_of(decoder.step({&input, 1}, *state));
    logits.insert(logits.end(), row.begin(), row.end());
  }
  return logits;
}

TEST(WhisperNetwork, HearsTheMakersMel) {
  const Arrays reference;
  std::vector<float> sound;
  for (const int32_t sample : reference.get<int32_t>("sound")) sound.push_back(static_cast<float>(sample) / 32768.0f);
  const auto log_mel = LogMel::create(80);
  ASSERT_TRUE(log_mel.has_value());
  for (const int threads : {1, 3}) {
    ThreadTeam team(threads);
    std::vector<float> values = log_mel_of(*log_mel, sound, sound.size(), team);
    const View<float, 2> frames(values.data(), {values.size() / 80, 80});
    normalise(frames, peak(frames), frames);
    EXPECT_LE(relative(values, reference.get("mel")), 2e-5);
  }
  // Zeros behind the sound are silence, whether they are there or only counted; what is no number is silence too.
  ThreadTeam team(1);
  std::vector<float> padded = sound, strange = sound;
  padded.resize(sound.size() + 1600);
  strange[100] = std::nanf("");
  std::vector<float> without = sound;
  without[100] = 0.0f;
  EXPECT_EQ(log_mel_of(*log_mel, sound, padded.size(), team), log_mel_of(*log_mel, padded, padded.size(), team));
  EXPECT_EQ(log_mel_of(*log_mel, strange, sound.size(), team), log_mel_of(*log_mel, without, sound.size(), team));
  EXPECT_FALSE(LogMel::create(0).has_value());
}

// The same bits in one job of the team and in many.
TEST(WhisperNetwork, JobsChangeNoBits) {
  for (const Precision precision : {Precision::kF32, Precision::kInt8}) {
    for (const int threads : {1, 2}) {
      Encoded window(load(kForms[0], precision), threads);
      const std::vector<float> whole = values_of(window.encoder->output());
      const AudioState cross = std::move(window.audio);
      window.audio = AudioState::make(*window.model);
      int jobs = 0;
      window.encoder->encode(window.frames(), window.audio, [&] { ++jobs; });
      EXPECT_GT(jobs, 8);
      EXPECT_EQ(values_of(window.encoder->output()), whole);
      const size_t row = cross.head_size * dtype_size(cross.type) * cross.positions;
      for (size_t head = 0; head < cross.layers * cross.heads; ++head) {
        const size_t at = head * cross.room * cross.head_size * dtype_size(cross.type);
        EXPECT_EQ(std::memcmp(cross.keys.data() + at, window.audio.keys.data() + at, row), 0);
        EXPECT_EQ(std::memcmp(cross.values.data() + at, window.audio.values.data() + at, row), 0);
      }
    }
  }
}

TEST(WhisperNetwork, EncodesAsItsMaker) {
  const Arrays reference;
  for (const char* form : kForms) {
    Encoded window(load(form));
    std::map<std::string, std::vector<float>> seen;
    window.encoder->set_probe([&](std::string_view stage, size_t layer, View<const float, 2> rows) {
      const std::string name(stage);
      seen[stage == "block" ? fmt::format("block.{}", layer) : name] = values_of(rows);
    });
    window.encoder->encode(window.frames(), window.audio);
    EXPECT_EQ(seen.size(), 4u);
    for (const auto& [name, values] : seen) EXPECT_LE(relative(values, reference.get(name)), kParity) << form << name;
    const Config& c = window.model->config();
    for (size_t layer = 0; layer < c.decoder_layers; ++layer) {
      std::vector<float> keys(window.audio.positions * c.width), values = keys;
      for (size_t p = 0; p < window.audio.positions; ++p) {
        for (size_t i = 0; i < c.width; ++i) {
          const size_t head = i / window.audio.head_size, at = i % window.audio.head_size;
          keys[p * c.width + i] = window.audio.head_keys<float>(layer, head)(p, at);
          values[p * c.width + i] = window.audio.head_values<float>(layer, head)(p, at);
        }
      }
      EXPECT_LE(relative(keys, reference.get(fmt::format("cross_keys.{}", layer))), kParity) << form;
      EXPECT_LE(relative(values, reference.get(fmt::format("cross_values.{}", layer))), kParity) << form;
    }
  }
}

TEST(WhisperNetwork, DecodesAsItsMaker) {
  const Arrays reference;
  const auto tokens = reference.get<int32_t>("tokens");
  const std::vector<float> theirs = reference.get("logits");
  const size_t known = theirs.size() / tokens.size();  // the other forms have the first rows of the vocabulary only
  for (const char* form : kForms) {
    const Encoded window(load(form));
    const size_t vocabulary = window.model->config().vocabulary;
    const std::vector<float> ours = step_by_step(window, tokens, 1, 0);
    const View<const float, 2> rows(ours.data(), {tokens.size(), known}, {vocabulary, 1});
    EXPECT_LE(relative(values_of(rows), theirs), kParity) << form;

    ThreadTeam team(2);
    Decoder decoder(window.model, team, 1);
    auto state = DecoderState::make(*window.model, 1);
    const auto prompt = decoder.prefill(0, tokens, window.audio, *state);
    EXPECT_LE(relative({prompt.begin(), prompt.begin() + static_cast<ptrdiff_t>(known)},
                       {theirs.end() - static_cast<ptrdiff_t>(known), theirs.end()}),
              kParity);
    EXPECT_EQ(state->position(0), tokens.size());
  }
}

// The same weights in OpenAI's container: the same token follows each, to the last bit of what it is chosen by.
TEST(WhisperNetwork, SaysTheSameFromOpenAisFile) {
  const auto tokens = Arrays().get<int32_t>("tokens");
  const Encoded theirs(load("transformers")), ours(load("openai"));
  const size_t vocabulary = theirs.model->config().vocabulary;
  const std::vector<float> logits = step_by_step(theirs, tokens, 1, 0);
  EXPECT_EQ(step_by_step(ours, tokens, 1, 0), logits);
  std::set<ptrdiff_t> said;
  for (auto row = logits.begin(); row != logits.end(); row += static_cast<ptrdiff_t>(vocabulary))
    said.insert(std::max_element(row, row + static_cast<ptrdiff_t>(vocabulary)) - row);
  EXPECT_GT(said.size(), 3u) << "it says one thing alone";
}

TEST(WhisperNetwork, AlignsAsItsMaker) {
  const Arrays reference;
  const auto tokens = reference.get<int32_t>("tokens");
  const std::vector<float> logits = reference.get("logits"), theirs = reference.get("weights");
  const Encoded window(load("transformers"));
  const Config& c = window.model->config();
  std::vector<AlignmentHead> heads;
  for (size_t layer = 0; layer < c.decoder_layers; ++layer)
    for (size_t head = 0; head < c.decoder_heads; ++head) heads.push_back({layer, head});
  ThreadTeam team(2);
  Decoder decoder(window.model, team, 1);
  auto state = DecoderState::make(*window.model, 1);
  std::vector<float> weights, probabilities;
  constexpr size_t kText = 100;
  decoder.align(0, tokens, window.audio, heads, kText, *state, weights, probabilities);
  EXPECT_LE(relative(weights, theirs), kParity);
  ASSERT_EQ(probabilities.size(), tokens.size() - 1);
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    double sum = 0;
    for (size_t v = 0; v < kText; ++v) sum += std::exp(static_cast<double>(logits[i * c.vocabulary + v]));
    const double expected = logits[i * c.vocabulary + static_cast<size_t>(tokens[i + 1])] - std::log(sum);
    EXPECT_NEAR(probabilities[i], expected, 1e-3);
  }
}

// Logits, weights and probabilities; one pass of 24 tokens becomes three.
TEST(WhisperNetwork, CutPromptsGiveTheSameBits) {
  constexpr size_t kText = 100;
  for (const Precision precision : {Precision::kF32, Precision::kInt8}) {
    for (const int threads : {1, 2}) {
      const Encoded window(load(kForms[0], precision), threads);
      std::vector<int32_t> tokens(std::min<size_t>(24, window.model->config().text_positions));
      for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * 7 % kText);
      const AlignmentHead head = {0, 0};
      ThreadTeam team(threads);
      Decoder whole(window.model, team, 1), cut(window.model, team, 1);
      int jobs = 0;
      cut.set_between([&jobs] { ++jobs; }, 1);
      auto state = DecoderState::make(*window.model, 1);
      std::vector<float> weights[2], probabilities[2], logits[2];
      for (Decoder* const decoder : {&whole, &cut}) {
        const size_t i = decoder == &cut ? 1 : 0;
        state->reset(0);
        const std::span<const float> last = decoder->prefill(0, tokens, window.audio, *state);
        logits[i].assign(last.begin(), last.end());
        state->reset(0);
        decoder->align(0, tokens, window.audio, {&head, 1}, kText, *state, weights[i], probabilities[i]);
      }
      EXPECT_GT(jobs, 6);
      EXPECT_EQ(logits[1], logits[0]);
      EXPECT_EQ(weights[1], weights[0]);
      EXPECT_EQ(probabilities[1], probabilities[0]);
    }
  }
}

TEST(WhisperNetwork, ReadsTheFilesTokenSettings) {
  const auto ct2 = load("ct2"), transformers = load("transformers");
  EXPECT_EQ(ct2->config().language_ids.front(), 502);
  EXPECT_EQ(transformers->config().language_ids, (std::vector<int32_t>{5, 6}));
  for (const auto& model : {ct2, transformers}) {
    EXPECT_EQ(model->config().alignment_heads.size(), 2u);
    EXPECT_EQ(model->config().alignment_heads.back().layer, 1u);
    EXPECT_EQ(model->config().suppress_ids.front(), 1);
    EXPECT_EQ(model->config().suppress_ids_begin.front(), 3);
    EXPECT_EQ(model->config().encoder_heads, 2u);
    EXPECT_EQ(model->config().audio_positions, 50u);
  }
}

// The narrow precisions stay near f32: 3 % of the largest logit in bf16, 8 % in int8, of a network as narrow as this.
TEST(WhisperNetwork, StaysNearInNarrowPrecisions) {
  const Arrays reference;
  const auto tokens = reference.get<int32_t>("tokens");
  const Encoded exact(load("ct2"));
  const std::vector<float> theirs = step_by_step(exact, tokens, 1, 0);
  for (const auto& [precision, bound] : {std::pair(Precision::kBf16, 0.03), std::pair(Precision::kInt8, 0.08)}) {
    const Encoded window(load("ct2", precision));
    const double away = relative(step_by_step(window, tokens, 1, 0), theirs);
    EXPECT_LE(away, bound) << precision_name(precision);
    EXPECT_GT(away, 1e-5) << precision_name(precision);
  }
  EXPECT_EQ(Model::load(data("ct2"), {.precision = Precision::kInt4}).error().code, Code::kUnsupported);
}

// Bits, not tolerances: alone or in a batch, on one thread or three, after a copy or a reset.
TEST(WhisperNetwork, SameBitsAloneAndTogether) {
  const Arrays reference;
  const auto tokens = reference.get<int32_t>("tokens");
  for (const Precision precision : {Precision::kF32, Precision::kBf16, Precision::kInt8}) {
    const Encoded window(load("ct2", precision)), other(load("ct2", precision), 3);
    EXPECT_EQ(values_of(window.encoder->output()), values_of(other.encoder->output()));
    const std::vector<float> alone = step_by_step(window, tokens, 1, 0);
    const size_t vocabulary = window.model->config().vocabulary;
    ThreadTeam team(3);
    Decoder decoder(window.model, team, 5);
    auto state = DecoderState::make(*window.model, 5);
    const size_t all[] = {4, 2, 0, 1, 3};
    for (size_t t = 0; t < 6; ++t) {
      int32_t own[] = {3, 4, 5, 6, 7};
      own[2] = tokens[t];
      auto inputs = inputs_of(all, own, window.audio);
      for (size_t i = 3; i < inputs.size(); ++i) inputs[i].audio = t % 2 == 0 ? &window.audio : &other.audio;
      const auto logits = decoder.step(inputs, *state);
      EXPECT_EQ(values_of({logits.row(2), {1, vocabulary}}),
                std::vector<float>(alone.begin() + static_cast<ptrdiff_t>(t * vocabulary),
                                   alone.begin() + static_cast<ptrdiff_t>((t + 1) * vocabulary)));
    }
    state->reset(1);
    state->copy(0, 1);
    const DecoderInput next{1, tokens[6], &window.audio};
    const auto logits = decoder.step({&next, 1}, *state);
    EXPECT_EQ(values_of(logits), std::vector<float>(alone.begin() + static_cast<ptrdiff_t>(6 * vocabulary),
                                                    alone.begin() + static_cast<ptrdiff_t>(7 * vocabulary)));
  }
}

TEST(WhisperNetwork, AllocatesNothing) {
  for (const Precision precision : {Precision::kF32, Precision::kInt8}) {
    Encoded window(load("ct2", precision), 2);
    Decoder decoder(window.model, window.team, 5);
    auto state = DecoderState::make(*window.model, 5);
    const int32_t prompt[] = {1, 2, 3}, tokens[] = {4, 5};
    const size_t hypotheses[] = {0, 3};
    const auto inputs = inputs_of(hypotheses, tokens, window.audio);
    const size_t before = allocation_count();
    window.encoder->encode(window.frames(), window.audio);
    decoder.prefill(0, prompt, window.audio, *state);
    state->copy(0, 3);
    for (int i = 0; i < 20; ++i) decoder.step(inputs, *state);
    EXPECT_EQ(allocation_count(), before);
  }
}

// Fewer positions than the model's: another window, whose keys are fewer.
TEST(WhisperNetwork, TakesAShorterWindow) {
  Encoded window(load("ct2"));
  const View<const float, 2> frames = window.frames();
  const View<const float, 2> half(frames.data(), {50, frames.extent(1)});
  AudioState small = AudioState::make(*window.model, 25);
  window.encoder->encode(half, small);
  EXPECT_EQ(small.positions, 25u);
  const std::vector<float> first = values_of(window.encoder->output());
  window.encoder->encode(frames, window.audio);
  window.encoder->encode(half, window.audio);
  EXPECT_EQ(values_of(window.encoder->output()), first);
  EXPECT_EQ(window.audio.positions, 25u);
}

TEST(WhisperNetwork, MapsItsPackedWeights) {
  const TempFolder folder;
  const Arrays reference;
  const auto tokens = reference.get<int32_t>("tokens");
  const Encoded plain(load("ct2", Precision::kInt8)), made(load("ct2", Precision::kInt8, folder.path())),
      mapped(load("ct2", Precision::kInt8, folder.path()));
  EXPECT_EQ(plain.model->weights().packed, nullptr);
  EXPECT_NE(mapped.model->weights().packed, nullptr);
  const std::vector<float> expected = step_by_step(plain, tokens, 1, 0);
  EXPECT_EQ(step_by_step(made, tokens, 1, 0), expected);
  EXPECT_EQ(step_by_step(mapped, tokens, 1, 0), expected);
}

TEST(WhisperNetwork, RefusesTooManyHypotheses) {
  const auto model = load("ct2");
  EXPECT_EQ(DecoderState::make(*model, 0).error().code, Code::kLimitExceeded);
  EXPECT_EQ(DecoderState::make(*model, kMaxHypotheses + 1).error().code, Code::kLimitExceeded);
}

}  // namespace
}  // namespace syrinx::whisper
