// Chunks while text arrives, and streams of speech: seeds, turns, settings, limits.
#include "engine/families/pocket_tts/synthesizer.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "models/pocket_tts/chunk_planner.h"
#include "tests/models/allocation_count.h"
#include "tests/models/pocket_tts/fixtures.h"
#include "text/speech/split.h"

namespace syrinx::pocket {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::shared_ptr<const Model> load_model(const std::string& name) {
  auto model = Model::load(data(name));
  if (!model) {
    ADD_FAILURE() << model.error().message;
    return nullptr;
  }
  return *model;
}

// All chunks of a text that is there at once, as a session feeds it.
std::vector<Chunk> plan(const std::shared_ptr<const Model>& model, const std::string& text, size_t* left_out = nullptr,
                        size_t max_chunk_tokens = kMaxChunkTokens) {
  text::SentenceStream sentences;
  EXPECT_TRUE(sentences.feed(text).has_value());
  EXPECT_TRUE(sentences.finish().has_value());
  ChunkPlanner planner(model, kDefaultMaxTokens, max_chunk_tokens);
  std::vector<Chunk> chunks;
  const auto take = [&](bool now) {
    for (;;) {
      auto chunk = planner.next(now);
      ASSERT_TRUE(chunk.has_value()) << chunk.error().message;
      if (!*chunk) return;
      chunks.push_back(std::move(**chunk));
    }
  };
  while (const auto sentence = sentences.next()) {
    planner.add(*sentence, sentences.sentence_offset());
    take(false);
  }
  take(true);
  if (left_out != nullptr) *left_out = planner.left_out();
  return chunks;
}

std::vector<std::string> prepared(const std::vector<Chunk>& chunks) {
  std::vector<std::string> texts;
  for (const Chunk& chunk : chunks) texts.push_back(chunk.prepared);
  return texts;
}

std::vector<std::string> split_whole(const Model& model, const std::string& text) {
  const auto chunks = split_text(text, kDefaultMaxTokens, model.config().text, model.tokenizer());
  EXPECT_TRUE(chunks.has_value());
  return chunks ? prepared(*chunks) : std::vector<std::string>();
}

std::vector<std::string> maker_texts() {
  const auto json = parse_json(file_text("text.json"), "text.json");
  EXPECT_TRUE(json.has_value());
  std::vector<std::string> texts;
  for (const Json& item : *json->find("split")->array()) texts.push_back(*item.find("text")->string());
  return texts;
}

TEST(PocketChunkPlanner, CutsATextThatIsThereAtOnceAsAWhole) {
  const auto model = load_model("english");
  ASSERT_NE(model, nullptr);
  size_t compared = 0;
  for (const std::string& text : maker_texts()) {
    size_t left_out = 0;
    const std::vector<std::string> ours = prepared(plan(model, text, &left_out));
    if (left_out > 0 || text.size() > ChunkPlanner::kBlockBytes) continue;
    EXPECT_EQ(ours, split_whole(*model, text)) << text;
    ++compared;
  }
  EXPECT_GE(compared, 10u);
}

TEST(PocketChunkPlanner, CutsALongTextInBlocksAndLosesNothing) {
  const auto model = load_model("english");
  ASSERT_NE(model, nullptr);
  std::string text;
  for (int i = 0; text.size() < 10 * ChunkPlanner::kBlockBytes; ++i)
    text += fmt::format("Number {} is said here, and then some more is said of it. Is that so? ", i % 37);
  EXPECT_EQ(prepared(plan(model, text)), split_whole(*model, text));
}

TEST(PocketChunkPlanner, HoldsBackWhatCouldStillGrowUnlessAsked) {
  ChunkPlanner planner(load_model("english"), kDefaultMaxTokens, kMaxChunkTokens);
  planner.add("Hello there.", 0);
  EXPECT_FALSE(planner.next(false)->has_value());
  planner.add("And you?", 13);
  const auto both = planner.next(true);
  ASSERT_TRUE(both.has_value() && both->has_value());
  EXPECT_EQ((*both)->prepared, "Hello there. And you?");
  EXPECT_FALSE(planner.next(true)->has_value());
}

TEST(PocketChunkPlanner, LeavesOutWhatTheVocabularyCannotSpell) {
  const auto model = load_model("english");
  size_t left_out = 0;
  EXPECT_THAT(plan(model, "😀😀 🎉!", &left_out), SizeIs(0));
  EXPECT_EQ(left_out, 5u);
  EXPECT_THAT(plan(model, "这是一个句子。", &left_out), SizeIs(0));
  EXPECT_GE(left_out, 7u);
  EXPECT_THAT(plan(model, "\x01\x02\x7f", &left_out), SizeIs(0));
  EXPECT_THAT(plan(model, "... !? —", &left_out), SizeIs(0));
  EXPECT_GT(left_out, 0u);
  EXPECT_THAT(prepared(plan(model, "It is a 😀 day.", &left_out)), ElementsAre("It is a 😀 day."));
  EXPECT_EQ(left_out, 0u);
}

TEST(PocketChunkPlanner, CutsWhatNoMarkDividesBetweenWords) {
  const auto model = load_model("english");
  std::string words, letters(50000, 'a');
  for (int i = 0; i < 5000; ++i) words += "something ";
  for (const std::string& text : {words, letters}) {
    const std::vector<Chunk> chunks = plan(model, text);
    ASSERT_GT(chunks.size(), 50u);
    size_t characters = 0;
    for (const Chunk& chunk : chunks) {
      EXPECT_LE(chunk.ids.size(), kMaxChunkTokens);
      characters += chunk.prepared.size() - 1;  // without its full stop
    }
    EXPECT_GE(characters + chunks.size(), text.size() - 1) << "a word is missing";
  }
  std::string hundred;
  for (int i = 0; i < 30; ++i) hundred += "something ";
  EXPECT_THAT(plan(model, hundred), SizeIs(1)) << "what the maker speaks in one go";
}

TEST(PocketChunkPlanner, TakesUnmarkedLinesAsTheyCome) {
  const auto model = load_model("english");
  ChunkPlanner planner(model, kDefaultMaxTokens, kMaxChunkTokens);
  size_t characters = 0, held = 0, offset = 0, words = 0, lines = 0;
  const auto take = [&](bool now) {
    for (;;) {
      const auto chunk = planner.next(now);
      ASSERT_TRUE(chunk.has_value()) << chunk.error().message;
      if (!*chunk) return;
      EXPECT_LE((*chunk)->ids.size(), kMaxChunkTokens);
      words += static_cast<size_t>(std::count((*chunk)->text.begin(), (*chunk)->text.end(), 'L'));
      characters += (*chunk)->text.size() + 1;
    }
  };
  for (; offset < 5 * ChunkPlanner::kBlockBytes; ++lines) {
    const std::string line = fmt::format("Line number {} of some names", lines);
    planner.add(line, offset);
    offset += line.size() + 1;
    take(false);
    held = std::max(held, offset - std::min(offset, characters));
  }
  EXPECT_LE(held, ChunkPlanner::kBlockBytes + 100) << "nothing is said before the end";
  take(true);
  EXPECT_EQ(words, lines);
}

TEST(PocketChunkPlanner, AddsNoMarkWhereABlockEnds) {
  const auto model = load_model("english");
  std::string text;
  for (int i = 0; text.size() < 10 * ChunkPlanner::kBlockBytes; ++i)
    text += fmt::format("Rose {} is red,\nViolets are blue,\n", i);
  const std::vector<Chunk> chunks = plan(model, text);
  ASSERT_GT(chunks.size(), 20u);
  for (size_t i = 0; i < chunks.size(); ++i) {
    const size_t mark = chunks[i].prepared.find('.');
    EXPECT_EQ(mark, chunks[i].prepared.size() - 1) << chunks[i].prepared;
  }
  EXPECT_EQ(prepared(chunks), split_whole(*model, text));
}

TEST(PocketChunkPlanner, CountsThePartsThatItLeavesOut) {
  const auto model = load_model("english");
  std::string text = "Hello there ";
  constexpr size_t kSymbols = 600;
  for (size_t i = 0; i < kSymbols; ++i) text += "😀 ";
  size_t left_out = 0, taken = 0;
  for (const Chunk& chunk : plan(model, text, &left_out))
    for (size_t at = 0; (at = chunk.text.find("😀", at)) != std::string::npos; ++at) ++taken;
  EXPECT_GT(left_out, kSymbols);
  EXPECT_GE(left_out + 2 * taken, 2 * kSymbols - 100);  // each with its space, but for those at a part's end
}

struct Stream {
  Stream(const std::string& name, int threads, const SpeechSettings& settings = {})
      : model(load_model(name)), team(threads), runner(team), pool(Synthesizer::make_pool(*model, runner, queue, 3)) {
    const std::string bytes = file_text(name + "/voice.safetensors");
    const auto file = parse_voice_file(std::as_bytes(std::span(bytes)), name, model->config().flow_lm);
    voice = *make_voice(*model, *file, runner);
    speech = make(settings);
  }
  std::unique_ptr<Synthesizer> make(const SpeechSettings& settings) {
    auto made = Synthesizer::create(model, voice, settings, *pool);
    if (!made) ADD_FAILURE() << made.error().message;
    return made ? std::move(*made) : nullptr;
  }

  std::shared_ptr<const Model> model;
  ThreadTeam team;
  nn::Runner runner;
  Scheduler scheduler;
  StepQueue queue{scheduler};
  std::unique_ptr<StreamPool> pool;
  VoiceState voice;
  std::unique_ptr<Synthesizer> speech;
};

const char* const kText =
    "Hello world, it costs 3.50 dollars. How are you today? I do not know, but she does. "
    "There is a second chunk of this text as well, and it is spoken after the first one.";

std::vector<float> say(Synthesizer& speech, const std::vector<Chunk>& chunks) {
  std::vector<float> sound, frame(speech.frame_samples());
  for (const Chunk& chunk : chunks) {
    EXPECT_TRUE(speech.begin(chunk).has_value());
    while (speech.next(frame)) sound.insert(sound.end(), frame.begin(), frame.end());
  }
  EXPECT_FALSE(speech.faulty());
  return sound;
}

class EveryModel : public ::testing::TestWithParam<TestModel> {};
INSTANTIATE_TEST_SUITE_P(All, EveryModel, ::testing::ValuesIn(test_models()), name_of);

TEST_P(EveryModel, SpeaksTheSameForTheSameSeed) {
  Stream stream(GetParam().name, 1);
  const std::vector<Chunk> chunks = plan(stream.model, kText);
  ASSERT_GE(chunks.size(), 2u);
  const std::vector<float> first = say(*stream.speech, chunks);
  EXPECT_GE(first.size(), 12 * stream.speech->frame_samples());
  EXPECT_EQ(say(*stream.make({}), chunks), first);
  EXPECT_NE(say(*stream.make({.seed = 1}), chunks), first);
}

TEST(PocketSynthesizer, StreamsThatTakeTurnsSoundAsIfAlone) {
  Stream stream("english", 2);
  const std::vector<Chunk> chunks = plan(stream.model, kText);
  const std::vector<float> alone[] = {say(*stream.make({.seed = 1}), chunks), say(*stream.make({.seed = 2}), chunks)};
  std::unique_ptr<Synthesizer> turns[] = {stream.make({.seed = 1}), stream.make({.seed = 2})};
  std::vector<float> sound[2], frame(stream.speech->frame_samples());
  size_t chunk[2] = {0, 0};
  for (bool any = true; any;) {
    any = false;
    for (size_t i = 0; i < 2; ++i) {
      while (!turns[i]->next(frame) && chunk[i] < chunks.size()) ASSERT_TRUE(turns[i]->begin(chunks[chunk[i]++]));
      if (chunk[i] == chunks.size() && !turns[i]->end().goes_on()) continue;
      sound[i].insert(sound[i].end(), frame.begin(), frame.end());
      any = true;
    }
  }
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(sound[i], alone[i]);
}

// What the header says of the draws.
TEST(PocketSynthesizer, DrawsOneSequenceOfBlocks) {
  Stream stream("english", 1, {.seed = 7});
  const std::vector<Chunk> chunks = plan(stream.model, kText);
  ChunkSpeaker speaker(stream.model->flow_lm(), stream.model->decoder(), *make_schedule(*stream.model->flow_lm(), 1),
                       stream.runner);
  Rng rng(7);
  std::vector<float> block(speaker.latent()), frame(speaker.frame_samples()), sound;
  for (const Chunk& chunk : chunks) {
    ASSERT_TRUE(
        speaker.begin(0, stream.voice, chunk.ids, stream.model->config().eos_threshold, chunk.frames_guess + 2));
    while (speaker.end(0).goes_on()) {
      rng.fill_normal(block);
      for (float& value : block)
        value = static_cast<float>(static_cast<double>(value) * std::sqrt(static_cast<double>(0.3f)));
      if (speaker.next(0, block, frame)) sound.insert(sound.end(), frame.begin(), frame.end());
    }
  }
  EXPECT_LE(relative(say(*stream.speech, chunks), sound), 1e-5);
}

TEST(PocketSynthesizer, HeedsItsSettings) {
  Stream stream("english", 1);
  const std::vector<Chunk> chunks = plan(stream.model, "Hello world.");
  ASSERT_THAT(chunks, SizeIs(1));
  const size_t frame = stream.speech->frame_samples();
  EXPECT_EQ(say(*stream.make({.temperature = 0.0f, .seed = 1}), chunks),
            say(*stream.make({.temperature = 0.0f, .seed = 2}), chunks));
  EXPECT_NE(say(*stream.make({.temperature = 0.9f}), chunks), say(*stream.speech, chunks));
  EXPECT_NE(say(*stream.make({.noise_clamp = 0.1f}), chunks), say(*stream.speech, chunks));
  EXPECT_NE(say(*stream.make({.decode_steps = 3}), chunks), say(*stream.speech, chunks));
  // An end at every logit: the first that counts is at step 6.
  EXPECT_EQ(say(*stream.make({.eos_threshold = -1e6f, .frames_after_eos = 2}), chunks).size(), 8 * frame);
  const auto endless = stream.make({.eos_threshold = 1e6f});
  EXPECT_EQ(say(*endless, chunks).size(), max_steps(chunks[0].ids.size()) * frame);
  EXPECT_TRUE(endless->end().limited());
}

TEST(PocketSynthesizer, RefusesSettingsOutOfRange) {
  Stream stream("english", 1);
  const SpeechSettings wrong[] = {{.temperature = -1.0f},      {.temperature = std::nanf("")}, {.noise_clamp = 0.0f},
                                  {.eos_threshold = INFINITY}, {.frames_after_eos = 5000},     {.decode_steps = 0},
                                  {.decode_steps = 1000}};
  for (size_t i = 0; i < std::size(wrong); ++i) {
    const auto made = Synthesizer::create(stream.model, stream.voice, wrong[i], *stream.pool);
    ASSERT_FALSE(made.has_value()) << i;
    EXPECT_EQ(made.error().code, Code::kInvalidArgument) << i;
  }
  Stream other("english_7m", 1);
  const auto voice_of_another = Synthesizer::create(stream.model, other.voice, {}, *stream.pool);
  ASSERT_FALSE(voice_of_another.has_value());
  EXPECT_THAT(voice_of_another.error().message, HasSubstr("another model's"));
  // As many numbers, in heads of another size: rows lie elsewhere.
  FlowLmState regrouped = *FlowLmState::make(*stream.model->flow_lm(), 8);
  regrouped.key_heads *= 2;
  regrouped.head_size /= 2;
  const auto other_heads = std::make_shared<const FlowLmState>(std::move(regrouped));
  const auto of_other_heads = Synthesizer::create(stream.model, other_heads, {}, *stream.pool);
  ASSERT_FALSE(of_other_heads.has_value());
  EXPECT_EQ(of_other_heads.error().code, Code::kInvalidArgument);
  EXPECT_THAT(of_other_heads.error().message, HasSubstr("another model's"));
  const auto narrow = Model::load(data("english"), {.precision = Precision::kInt8});
  ASSERT_TRUE(narrow.has_value()) << narrow.error().message;
  auto state = FlowLmState::make(*(*narrow)->flow_lm(), 8);
  ASSERT_TRUE(state.has_value());
  const auto narrow_voice = std::make_shared<const FlowLmState>(std::move(*state));
  const auto of_another_type = Synthesizer::create(stream.model, narrow_voice, {}, *stream.pool);
  ASSERT_FALSE(of_another_type.has_value());
  EXPECT_EQ(of_another_type.error().code, Code::kInvalidArgument);
  EXPECT_EQ(of_another_type.error().message,
            "the voice is in bf16, the model in f32; make it under the model's precision");
}

TEST(PocketSynthesizer, KeepsRoomToSpeakAfterALongVoice) {
  Stream stream("english", 1);
  const auto of_length = [&](size_t positions) {
    FlowLmState state = *FlowLmState::make(*stream.model->flow_lm(), positions);
    state.position = positions;
    return Synthesizer::create(stream.model, std::make_shared<const FlowLmState>(std::move(state)), {}, *stream.pool);
  };
  const auto made = of_length(7600);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_LT((*made)->max_chunk_tokens(), kMaxChunkTokens);
  const std::vector<Chunk> chunks = plan(stream.model, std::string(2000, 'a'), nullptr, (*made)->max_chunk_tokens());
  EXPECT_TRUE((*made)->begin(chunks.front()).has_value());
  const auto full = of_length(kMaxPositions);
  ASSERT_FALSE(full.has_value());
  EXPECT_EQ(full.error().code, Code::kLimitExceeded);
}

TEST(PocketSynthesizer, AllocatesNothingInAFrame) {
  Stream stream("english", 2, {.eos_threshold = 1e6f});
  const std::vector<Chunk> chunks = plan(stream.model, kText);
  ASSERT_TRUE(stream.speech->begin(chunks[0]));
  std::vector<float> frame(stream.speech->frame_samples());
  const size_t before = allocation_count();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(stream.speech->next(frame));
  EXPECT_EQ(allocation_count() - before, 0u);
}

}  // namespace
}  // namespace syrinx::pocket
