// Whisper behind the recogniser's interface, with the tiny checkpoint of tests/data/whisper.
#include "engine/families/whisper/whisper_recogniser.h"
#include "engine/families/families.h"
#include "engine/families/whisper/whisper_family.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <thread>
#include <utility>

#include "engine/families/whisper/whisper_stream.h"
#include "tests/models/allocation_count.h"
#include "whisper_recognition.h"

namespace syrinx {
namespace {

namespace fs = std::filesystem;

// A window's results need memory, the same whenever they are the same: more the first time is what was not ready.
TEST_F(WhisperRecognition, ARecogniserThatIsReadyAllocatesNoMoreForTheFirstWindow) {
  const std::vector<float> samples = sound(32'000);
  for (const auto& [short_windows, beam] :
       {std::pair(false, size_t{0}), std::pair(true, size_t{0}), std::pair(false, whisper::kUsualBeam),
        std::pair(true, whisper::kUsualBeam)}) {
    SCOPED_TRACE(fmt::format("{} {}", short_windows, beam));
    whisper::TranscriberSettings settings;
    settings.short_windows = short_windows;
    settings.decode.beam = beam;
    const auto growth = [&](bool warm_up) {
      load("", warm_up);
      EXPECT_EQ(recogniser_->warm_up_ms() > 0, warm_up);
      size_t counts[2] = {};
      for (size_t& count : counts) {
        const size_t before = allocation_count();
        static_cast<WhisperRecogniser&>(*recogniser_)
            .with_transcriber(kNeverDue,
                              [&](whisper::Transcriber& transcriber) { transcriber.hear(samples, settings); });
        count = allocation_count() - before;
      }
      return counts[0] - std::min(counts[0], counts[1]);
    };
    EXPECT_EQ(growth(true), 0u);
    if (allocations_are_counted()) {
      EXPECT_GT(growth(false), 0u);
    }
  }
}

TEST_F(WhisperRecognition, TranscribesARecording) {
  EXPECT_EQ(recogniser_->name(), "tiny");
  EXPECT_EQ(recogniser_->threads(), 1);
  EXPECT_EQ(recogniser_->precision(), Precision::kF32);
  EXPECT_GT(recogniser_->load_ms(), 0.0);
  std::vector<double> done;
  const auto transcript = recogniser_->transcribe(sound(80'000), {.language = "FR", .words = true}, [&](double done_s) {
    done.push_back(done_s);
    return true;
  });
  ASSERT_TRUE(transcript.has_value()) << transcript.error().message;
  EXPECT_EQ(transcript->language, "fr");
  EXPECT_DOUBLE_EQ(transcript->audio_s, 5.0);
  ASSERT_FALSE(transcript->segments.empty());
  ASSERT_FALSE(done.empty());
  EXPECT_DOUBLE_EQ(done.back(), 5.0);
  EXPECT_TRUE(std::ranges::is_sorted(done));
  size_t words = 0;
  for (const TranscriptSegment& segment : transcript->segments) {
    EXPECT_LE(segment.start_s, segment.end_s);
    EXPECT_GT(segment.confidence, 0.0f);
    EXPECT_LE(segment.confidence, 1.0f);
    EXPECT_FALSE(segment.text.starts_with(' '));
    for (const int32_t token : segment.tokens) EXPECT_LT(token, 500);
    for (const TranscriptWord& word : segment.words) EXPECT_LE(word.start_s, word.end_s);
    words += segment.words.size();
  }
  EXPECT_GT(words, 0u);
}

TEST_F(WhisperRecognition, FindsTheLanguageAndHearsNothingInNothing) {
  const auto found = recogniser_->transcribe(sound(16'000), {}, {});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->language.size(), 2u);
  for (const size_t samples : {0u, 1u, 100u}) {
    const auto nothing = recogniser_->transcribe(sound(samples), {.language = "en"}, {});
    ASSERT_TRUE(nothing.has_value());
    EXPECT_TRUE(nothing->segments.empty());
  }
}

TEST_F(WhisperRecognition, RefusesUnsupportedOptions) {
  const auto error_of = [&](const TranscribeOptions& options) {
    const auto transcript = recogniser_->transcribe(sound(1600), options, {});
    EXPECT_FALSE(transcript.has_value());
    EXPECT_FALSE(recogniser_->start(options).has_value());
    return transcript ? Error{} : transcript.error();
  };
  EXPECT_EQ(error_of({.knobs = {{"boost", std::vector<std::string>{"syrinx"}}}}).code, Code::kUnsupported);
  EXPECT_EQ(error_of({.voice = {.threshold = 0.4}}).code, Code::kNotFound) << "there is no voice activity model";
  RecogniserOptions of_transducers{
      .files = {.family = &whisper_family()}, .threads = 1, .knobs = {{"look_ahead", 1.0}}};
  EXPECT_EQ(load_recogniser(of_transducers).error().code, Code::kUnsupported);
  of_transducers.knobs = {{"head", "ctc"}};
  EXPECT_EQ(load_recogniser(of_transducers).error().code, Code::kUnsupported);
  EXPECT_EQ(error_of({.language = "xx"}).message,
            "'tiny' does not know the language 'xx'; give a code such as en, de or zh, or leave it out");
  const auto stopped = recogniser_->transcribe(sound(16'000), {.language = "en"}, [](double) { return false; });
  ASSERT_FALSE(stopped.has_value());
  EXPECT_EQ(stopped.error().code, Code::kCancelled);
}

// A model that knows English alone: neither told nor found, and no other language, nor a translation.
TEST_F(WhisperRecognition, EnglishAlone) {
  const TempFolder folder;
  test::write_layout_weights(test::layout("english"), true, folder.path());
  test::write_layout_lines(test::layout("english"), folder.path());
  auto loaded = load_recogniser(
      {.files = {.name = "tiny.en", .family = &whisper_family(), .checkpoint = folder.file("model.bin")},
       .precision = Precision::kF32,
       .threads = 1});
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  recogniser_ = *loaded;
  std::vector<std::string> texts;
  for (const char* const language : {"", "en", "EN"}) {
    const auto transcript = recogniser_->transcribe(sound(32'000), {.language = language}, {});
    ASSERT_TRUE(transcript.has_value()) << transcript.error().message;
    EXPECT_EQ(transcript->language, "en");
    std::string text;
    for (const TranscriptSegment& segment : transcript->segments) text += segment.text;
    EXPECT_FALSE(text.empty());
    texts.push_back(text);
    auto stream = recogniser_->start({.language = language});
    ASSERT_TRUE(stream.has_value()) << stream.error().message;
    std::vector<RecognitionEvent> events;
    ASSERT_TRUE((*stream)->push(sound(12'000), events).has_value());
    ASSERT_TRUE((*stream)->finish(events).has_value());
    EXPECT_EQ((*stream)->language(), "en") << language;
  }
  EXPECT_EQ(texts, std::vector<std::string>(3, texts[0]));
  for (const TranscribeOptions& options : {TranscribeOptions{.language = "de"}, {.language = "xx"}}) {
    const std::string sentence = fmt::format(
        "'tiny.en' does not know the language '{}'; give a code such as en, or leave it out", options.language);
    EXPECT_EQ(recogniser_->transcribe(sound(1600), options, {}).error().message, sentence);
    EXPECT_EQ(recogniser_->start(options).error().message, sentence);
  }
  const std::string sentence = "'tiny.en' knows English alone and does not translate; use a multilingual Whisper";
  EXPECT_EQ(recogniser_->transcribe(sound(1600), {.knobs = {{"translate", 1.0}}}, {}).error().message, sentence);
  EXPECT_EQ(recogniser_->start({.knobs = {{"translate", 1.0}}}).error().message, sentence);
}

// Words of a segment make its text again, whatever is written without blanks.
TEST_F(WhisperRecognition, WordsJoinToTheText) {
  whisper::Tokens tokens;
  tokens.end_of_text = 500;
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {" a", " cold", "-hearted", " man,", " 3", ".5", " or", " 20", "%", " of", " it"},
           {"\u4f60", "\u597d", " hello", " world", "\u4e16"},
           {" one", " ", "two ", "three", ""}}) {
    whisper::Segment segment;
    int32_t id = 0;
    for (const std::string& word : words) {
      segment.text += word;
      segment.words.push_back({.text = word, .tokens = {id++}});
    }
    const TranscriptSegment result = transcript_segment(segment, tokens);
    std::string text;
    for (const TranscriptWord& word : result.words) append_word(text, word);
    EXPECT_EQ(text, result.text);
    EXPECT_EQ(result.words[1].tokens.size(), 1u);
  }
}

// Their texts make the word again, also where several spell one character; their times lie in it, in order.
TEST_F(WhisperRecognition, TokensOfWords) {
  const std::vector<float> samples = sound(80'000);
  const auto check = [](const TranscriptSegment& segment) {
    size_t shared = 0;
    for (const TranscriptWord& word : segment.words) {
      std::string text;
      double last_s = word.start_s;
      EXPECT_FALSE(word.timed_tokens.empty());
      for (const TranscriptToken& token : word.timed_tokens) {
        text += token.text;
        shared += token.text.empty() ? 1 : 0;
        EXPECT_GE(token.start_s, last_s - 1e-9);
        EXPECT_GE(token.end_s, token.start_s);
        EXPECT_LE(token.end_s, word.end_s + 1e-9);
        EXPECT_GE(token.confidence, 0.0f);
        EXPECT_LE(token.confidence, 1.0f);
        last_s = token.start_s;
      }
      EXPECT_EQ(text, word.text);
    }
    return shared;
  };
  for (const char* const language : {"fr", "ja"}) {
    const auto transcript = recogniser_->transcribe(samples, {.language = language, .tokens = true}, {});
    ASSERT_TRUE(transcript.has_value()) << transcript.error().message;
    size_t words = 0;
    for (const TranscriptSegment& segment : transcript->segments) {
      check(segment);
      words += segment.words.size();
    }
    EXPECT_GT(words, 0u);
  }
  auto started = recogniser_->start({.language = "en", .tokens = true});
  ASSERT_TRUE(started.has_value());
  std::vector<RecognitionEvent> events;
  ASSERT_TRUE((*started)->push(samples, events).has_value());
  ASSERT_TRUE((*started)->finish(events).has_value());
  ASSERT_FALSE(events.empty());
  for (const RecognitionEvent& event : events) check(event.result);

  const auto bpe = text::read_bpe_json(test::read_small("tokenizer.json"), "tokenizer.json");
  ASSERT_TRUE(bpe.has_value());
  const std::vector<int32_t> ids = *bpe->encode(" \u4f60\u597d!");
  ASSERT_GT(ids.size(), 3u) << "each character has several tokens";
  whisper::Segment spelt;
  spelt.text = " \u4f60\u597d!";
  spelt.tokens = ids;
  whisper::Word word{.text = spelt.text, .tokens = ids};
  word.token_times.resize(ids.size());
  spelt.words = {word};
  whisper::Tokens tokens;
  tokens.end_of_text = 500;
  EXPECT_GT(check(transcript_segment(spelt, tokens, &*bpe)), 0u);
}

// What each of a word's tokens adds to it.
std::vector<std::string> told_texts(const std::vector<int32_t>& ids, const text::ByteBpe& bpe) {
  whisper::Segment segment;
  segment.tokens = ids;
  segment.text = bpe.decode(segment.tokens);
  whisper::Word word{.text = segment.text, .tokens = segment.tokens};
  word.token_times.resize(segment.tokens.size());
  segment.words = {word};
  whisper::Tokens tokens;
  tokens.end_of_text = 500;
  const TranscriptSegment found = transcript_segment(segment, tokens, &bpe);
  std::vector<std::string> texts;
  for (const TranscriptWord& part : found.words)
    for (const TranscriptToken& token : part.timed_tokens) texts.push_back(token.text);
  return texts;
}

// A byte that belongs to no character keeps no other token's text from it.
TEST(WhisperTokens, StrayBytesHaveTheirPlace) {
  const auto bpe = text::read_bpe_json(test::read_small("tokenizer.json"), "tokenizer.json");
  ASSERT_TRUE(bpe.has_value());
  const int32_t stray = bpe->encode("\u4f60")->back(), a = bpe->encode("a")->front(), b = bpe->encode("b")->front();
  EXPECT_EQ(told_texts({stray, a, b}, *bpe), (std::vector<std::string>{"\uFFFD", "a", "b"}));
}

// A stray byte and the first of a character in one token: they come with the character.
TEST(WhisperTokens, StrayBytesHideNoCharacterBehindThem) {
  text::BpeVocabulary vocabulary;
  for (int byte = 0; byte < 256; ++byte)
    vocabulary.tokens.push_back({.bytes = std::string(1, static_cast<char>(byte))});
  vocabulary.tokens.push_back({.bytes = "\xA0\xE4"});
  vocabulary.tokens.push_back({.bytes = "\xBD\xA0"});
  const auto bpe = text::ByteBpe::make(std::move(vocabulary), "the test's");
  ASSERT_TRUE(bpe.has_value()) << bpe.error().message;
  EXPECT_EQ(told_texts({256, 257, 'a', 'b'}, *bpe), (std::vector<std::string>{"", "\uFFFD\u4f60", "a", "b"}));
  EXPECT_EQ(told_texts({'a', 256, 'b'}, *bpe), (std::vector<std::string>{"a", "\uFFFD\uFFFD", "b"}));
}

// Their sound is due 0.7 s after it came: once that was when the machine began, and once it is in an hour.
TEST_F(WhisperRecognition, StepsAreThoseOfStreams) {
  constexpr int64_t kSecond = 1'000'000'000;
  ASSERT_TRUE(recogniser_->transcribe(sound(16'000), {.language = "en"}, {}).has_value());
  EXPECT_EQ(recogniser_->steps().count(), 0u);
  std::vector<RecognitionEvent> events;
  for (const int64_t came_ns : {int64_t{1}, system_clock().now_ns() + 3600 * kSecond}) {
    auto stream = recogniser_->start({.language = "en"});
    ASSERT_TRUE(stream.has_value());
    (*stream)->sound_came(came_ns);
    ASSERT_TRUE((*stream)->push(sound(2 * WhisperStream::kPeriodSamples), events).has_value());
  }
  const StepFigures steps = recogniser_->steps();
  EXPECT_EQ(steps.count(), 4u);
  EXPECT_EQ(steps.late, 2u);
  EXPECT_GT(steps.took_ns, 0);
  EXPECT_EQ(recogniser_->waiting(), 0u);
}

// A recording was asked for first; the stream goes before it, and stands where its sound has come among those who wait.
TEST_F(WhisperRecognition, StreamsGoBeforeRecordingsInTheOrderOfTheirSound) {
  auto& recogniser = static_cast<WhisperRecogniser&>(*recogniser_);
  constexpr int64_t kSecond = 1'000'000'000;
  std::vector<uint64_t> left;  // those who wait or have their turn, at the beginning of each turn but the stream's
  const auto note = [&](whisper::Transcriber&) { left.push_back(recogniser.asking()); };
  std::vector<std::thread> threads;
  recogniser.with_transcriber(kDueAtOnce, [&](whisper::Transcriber&) {
    const auto add = [&](std::function<void()> body) {
      threads.emplace_back(std::move(body));
      while (recogniser.asking() < threads.size() + 1) std::this_thread::yield();
    };
    add([&] {
      bool first = true;
      EXPECT_TRUE(recogniser_->transcribe(sound(16'000), {.language = "en"}, [&](double) {
        if (std::exchange(first, false)) left.push_back(recogniser.asking());
        return true;
      }));
    });
    add([&] { recogniser.with_transcriber(20 * kSecond, note); });
    add([&] {
      auto stream = recogniser_->start({.language = "en"});
      (*stream)->sound_came(10 * kSecond);
      std::vector<RecognitionEvent> events;
      EXPECT_TRUE((*stream)->push(sound(WhisperStream::kPeriodSamples), events));
    });
    add([&] { recogniser.with_transcriber(5 * kSecond, note); });
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(left, (std::vector<uint64_t>{4, 2, 1}));
}

}  // namespace
}  // namespace syrinx
