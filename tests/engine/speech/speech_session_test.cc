#include "engine/speech/speech_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "engine/families/kokoro/kokoro_speaker.h"
#include "engine/speech/sentence_speaker.h"
#include "models/kokoro/vocabulary.h"
#include "spelling_speech.h"

namespace syrinx {
namespace {

constexpr int kSpeechRateHz = 24000;
using testing::HasSubstr;

TEST(SpeechSession, SpeaksAndTellsWhenEachWordIsHeard) {
  const Heard heard = speak("hello there, world.");
  ASSERT_TRUE(heard.status);
  ASSERT_EQ(heard.words.size(), 3u);
  EXPECT_EQ(heard.words[0].text, "hello");
  EXPECT_EQ(heard.words[1].text, "there");
  EXPECT_EQ(heard.words[2].text, "world");
  EXPECT_EQ(heard.words[2].source_begin, 13u);
  for (const WordTime& word : heard.words)
    EXPECT_NEAR(word.end_s - word.start_s, 5 * kFrames * 0.025, 1e-6) << word.text;
  EXPECT_LT(heard.words[0].start_s, 0.06);
  EXPECT_GE(heard.words[1].start_s, heard.words[0].end_s);
  EXPECT_LT(heard.words[2].end_s, static_cast<double>(heard.samples.size()) / 24000.0);
}

TEST(SpeechSession, LongSentencesAreSpokenInParts) {
  const auto log = std::make_shared<Log>();
  log->most_ids = 7;
  auto speech = session(log);
  ASSERT_TRUE(speech->speak("one two three four, five six seven eight incomparably."));
  const Heard heard = hear(*speech);
  ASSERT_TRUE(heard.status) << heard.status.error().message;
  EXPECT_GT(heard.chunks, 5u);
  std::string words;
  for (const WordTime& word : heard.words) {
    if (!words.ends_with(word.text)) words += " " + word.text;  // the last one is in parts
  }
  EXPECT_EQ(words, " one two three four five six seven eight incomparably");
  log->most_ids = 0;
  auto never = session(log);
  ASSERT_TRUE(never->speak("one."));
  EXPECT_EQ(hear(*never).status.error().code, Code::kLimitExceeded);
}

TEST(SpeechSession, GivesTheSameSoundForTheSameTextAndSeed) {
  const std::string text = "one two three. four five six seven eight nine ten. eleven twelve thirteen.";
  SpeakOptions options;
  options.seed = 3;
  const Heard first = speak(text, options);
  const Heard second = speak(text, options);
  ASSERT_TRUE(first.status);
  EXPECT_EQ(first.samples, second.samples);
  options.seed = 4;
  EXPECT_NE(speak(text, options).samples, first.samples);
}

TEST(SpeechSession, TakesTextInAnyParts) {
  const std::string text = "one two three four. five six seven eight nine. ten eleven, twelve thirteen. the end of it.";
  const Heard whole = speak(text);
  for (const size_t step : {size_t{1}, size_t{7}, size_t{30}}) {
    auto speech = session();
    std::thread writer([&] {
      for (size_t at = 0; at < text.size(); at += step)
        EXPECT_TRUE(speech->write(std::string_view(text).substr(at, step)));
      speech->finish();
    });
    const Heard parts = hear(*speech);
    writer.join();
    ASSERT_TRUE(parts.status);
    EXPECT_EQ(parts.words.size(), whole.words.size());
    for (size_t i = 0; i < parts.words.size(); ++i) {
      EXPECT_EQ(parts.words[i].text, whole.words[i].text);
      EXPECT_EQ(parts.words[i].source_begin, whole.words[i].source_begin);
    }
  }
}

TEST(SpeechSession, SpeaksASentenceThatIsFollowedByNothingYet) {
  auto speech = session();
  ASSERT_TRUE(speech->write("this is the first of them. And this"));
  const auto chunk = speech->next();  // would wait for ever if the sentence were held back
  ASSERT_TRUE(chunk);
  ASSERT_TRUE(*chunk);
  EXPECT_EQ((*chunk)->words.front().text, "this");
  speech->finish();
  EXPECT_TRUE(hear(*speech, static_cast<double>((*chunk)->samples.size()) / 24000.0).status);
}

TEST(SpeechSession, PauseSpeaksCompleteSentences) {
  SpeakOptions phonemes;
  phonemes.knobs.set("phonemes", 1.0);
  for (const SpeakOptions& options : {SpeakOptions(), phonemes}) {
    auto speech = session(std::make_shared<Log>(), options);
    double heard_s = 0;
    for (const char* text : {"this is all of it for now.", " and that is more of it. "}) {
      ASSERT_TRUE(speech->write(text));
      const auto chunk = speech->next();  // would wait for ever if the sentence were held back
      ASSERT_TRUE(chunk);
      ASSERT_TRUE(*chunk);
      EXPECT_EQ((*chunk)->words.front().text, heard_s == 0 ? "this" : "and");
      heard_s += static_cast<double>((*chunk)->samples.size()) / 24000.0;
    }
    speech->finish();
    EXPECT_TRUE(hear(*speech, heard_s).status);
  }
}

TEST(SpeechSession, HoldsBackHalfASentence) {
  const auto log = std::make_shared<Log>();
  auto speech = session(log);
  ASSERT_TRUE(speech->write("this is half of it for Dr. "));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_EQ(log->phonemized, 0);
  ASSERT_TRUE(speech->write("Smith."));
  speech->finish();
  EXPECT_TRUE(hear(*speech).status);
  EXPECT_EQ(log->phonemized, 1);
}

TEST(SpeechSession, SaysWhenThereIsNothingToSay) {
  for (const char* text : {"", "  \n\n ", "#emoji.", "#a #b", " , . "}) {
    const Heard heard = speak(text);
    ASSERT_FALSE(heard.status) << text;
    EXPECT_EQ(heard.status.error().code, Code::kInvalidArgument);
    EXPECT_THAT(heard.status.error().message, HasSubstr("nothing to say"));
  }
}

TEST(SpeechSession, IsSilentForNothingToSayWhereThatIsAskedFor) {
  SpeakOptions options;
  options.silence_for_nothing = true;
  for (const char* text : {"#emoji.", " , . "}) {
    const Heard heard = speak(text, options);
    ASSERT_TRUE(heard.status) << text << heard.status.error().message;
    EXPECT_EQ(heard.samples, std::vector<float>(kSilenceForNothingMs * 24));
  }
  EXPECT_EQ(speak("hello.", options).samples, speak("hello.").samples);
}

TEST(SpeechSession, CountsDroppedCharacters) {
  auto speech = session();
  ASSERT_TRUE(speech->speak("hello #x world gg."));
  ASSERT_TRUE(hear(*speech).status);
  const SpeechStatistics statistics = speech->statistics();
  EXPECT_EQ(statistics.dropped_characters, 1u);
  EXPECT_EQ(statistics.unknown_phonemes, 2u);  // ASCII g is not in the alphabet
  EXPECT_GE(statistics.pieces, 1u);
  EXPECT_GT(statistics.audio_seconds, 1);
  EXPECT_GT(statistics.first_audio_ms, 0);
  EXPECT_GE(statistics.total_ms, statistics.first_audio_ms);
  EXPECT_GT(statistics.rtf(), 0);
}

TEST(SpeechSession, CountsWaitingForOthersApart) {
  const auto log = std::make_shared<Log>();
  log->hold = true;
  auto speech = session(log);
  ASSERT_TRUE(speech->speak("hello there."));
  while (!log->asked) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  log->hold = false;
  ASSERT_TRUE(hear(*speech).status);
  const SpeechStatistics statistics = speech->statistics();
  EXPECT_GE(statistics.waiting_ms, 199);
  EXPECT_LE(statistics.compute_ms + statistics.waiting_ms, statistics.total_ms);
}

TEST(SpeechSession, ErrorComesBehindEarlierAudio) {
  auto speech = session();
  ASSERT_TRUE(speech->write("a first sentence that is fine. And then"));
  const auto chunk = speech->next();
  ASSERT_TRUE(chunk);
  ASSERT_TRUE(*chunk);
  ASSERT_TRUE(speech->write(" comes one to fail. More."));
  speech->finish();
  const Heard heard = hear(*speech, static_cast<double>((*chunk)->samples.size()) / 24000.0);
  ASSERT_FALSE(heard.status);
  EXPECT_EQ(heard.status.error().code, Code::kDataLoss);
  EXPECT_EQ(speech->write("more").error().code, Code::kDataLoss);
}

TEST(SpeechSession, PausesWhereTheTextSaysSo) {
  const std::string text = "hello there. [pause:1500ms] world.";
  const Heard heard = speak(text);
  ASSERT_TRUE(heard.status) << heard.status.error().message;
  const std::vector<float> before = speak("hello there.").samples;
  const size_t after = speak("world.").samples.size(), silence = 36000;
  ASSERT_EQ(heard.samples.size(), before.size() + silence + after);
  const auto pause = heard.samples.begin() + static_cast<std::ptrdiff_t>(before.size());
  EXPECT_TRUE(std::equal(before.begin(), before.end(), heard.samples.begin()));
  EXPECT_TRUE(std::all_of(pause, pause + silence, [](float sample) { return sample == 0.0f; }));
  ASSERT_EQ(heard.words.size(), 3u);
  EXPECT_EQ(heard.words[2].source_begin, text.find("world"));
  EXPECT_GE(heard.words[2].start_s, static_cast<double>(before.size() + silence) / 24000);
}

TEST(SpeechSession, ChangesTheVoiceWhereTheTextSaysSo) {
  const Heard heard = speak("one.\n[voice: b] two.\n[voice:] three.");
  ASSERT_TRUE(heard.status) << heard.status.error().message;
  ASSERT_EQ(heard.words.size(), 3u);
  const auto level = [&](size_t word) {
    return heard.samples[static_cast<size_t>((heard.words[word].start_s + heard.words[word].end_s) / 2 * 24000)];
  };
  EXPECT_NEAR(level(1), 0.1 + 0.01 * 'b', 0.1);  // and up to 0.1 of the seed
  EXPECT_LT(level(0), 0.21);
  EXPECT_LT(level(2), 0.21);
  const Heard missing = speak("one.\n\n[voice: bob] two.");
  ASSERT_FALSE(missing.status);
  EXPECT_EQ(missing.status.error().code, Code::kNotFound);
  EXPECT_EQ(missing.status.error().message, "line 3 of the text: there is no voice 'bob'");
  EXPECT_EQ(missing.samples, speak("one.").samples) << "what stands before the mark is heard";
}

TEST(SpeechSession, TextBeforeInvalidMarkIsSpoken) {
  for (const char* text : {"hello there. [pause:1h] x", "hello there. [voice: b"}) {
    const Heard heard = speak(text);
    ASSERT_FALSE(heard.status) << text;
    EXPECT_EQ(heard.status.error().code, Code::kInvalidArgument);
    EXPECT_EQ(heard.samples, speak("hello there.").samples);
  }
}

TEST(SpeechSession, PausesOfATextAreBoundedAllTogether) {
  std::string text = "one.\n";
  for (int i = 0; i < 60; ++i) text += "[pause:60s]";
  const size_t spoken = speak("one.").samples.size(), silence = SentenceSpeaker::kMaxSilenceS * kSpeechRateHz;
  EXPECT_TRUE(speak(text).status);
  const Heard heard = speak(text + "[pause:1ms]");
  ASSERT_FALSE(heard.status);
  EXPECT_EQ(heard.status.error().code, Code::kLimitExceeded);
  EXPECT_THAT(heard.status.error().message, HasSubstr("line 2 of the text: its pauses add up"));
  EXPECT_EQ(heard.samples.size(), spoken + silence);
  EXPECT_THAT(speak("[pause:10ms]").status.error().message, HasSubstr("nothing to say"));
}

TEST(SpeechSession, MarksAreReadOutWhereTheyAreEscapedOrThereAreNone) {
  SpeakOptions plain;
  plain.plain = true;
  const Heard read_out = speak("one [pause:1s] two.", plain);
  ASSERT_TRUE(read_out.status) << read_out.status.error().message;
  ASSERT_EQ(read_out.words.size(), 3u);
  EXPECT_EQ(read_out.words[1].text, "[pause:1s]");
  const Heard escaped = speak("one \\[pause:1s] two.");
  ASSERT_TRUE(escaped.status) << escaped.status.error().message;
  ASSERT_EQ(escaped.words.size(), 3u);
  EXPECT_EQ(escaped.words[1].text, "[pause:1s]");
  EXPECT_EQ(escaped.words[1].source_begin, 5u) << "bytes keep their places";
}

TEST(SpeechSession, RefusesMalformedText) {
  const Heard heard = speak("hello \xff\xfe world.");
  ASSERT_FALSE(heard.status);
  EXPECT_EQ(heard.status.error().code, Code::kInvalidArgument);
}

TEST(SpeechSession, BoundsTheTextItTakes) {
  auto speech = session();
  EXPECT_EQ(speech->speak(std::string(SpeechSession::kMaxWaitingText + 1, 'a')).error().code, Code::kLimitExceeded);
  ASSERT_TRUE(speech->speak("hello there."));
  EXPECT_EQ(speech->speak("again.").error().code, Code::kInvalidArgument);
  EXPECT_EQ(speech->write("again.").error().code, Code::kInvalidArgument);
}

// Makes no sound: counts the sentences that it is given, and takes none while `hold` is set.
struct Counts {
  std::atomic<size_t> begun{0}, sentences{0};
  std::atomic<bool> hold{true};
};
class SentenceCounter final : public SentenceSpeaker {
 public:
  explicit SentenceCounter(std::shared_ptr<Counts> counts)
      : SentenceSpeaker(SpeakOptions()), counts_(std::move(counts)) {}
  size_t chunks_ahead() const override { return 1; }
  int rate_hz() const override { return 24000; }

 private:
  Status read(const Sentence& /*sentence*/, SpeechStream& /*stream*/) override {
    ++counts_->begun;
    while (counts_->hold) std::this_thread::yield();
    ++counts_->sentences;
    return {};
  }
  Result<bool> say(bool /*now*/, SpeechStream& /*stream*/) override { return false; }
  Status end() override { return {}; }
  Status use_voice(const std::string& /*name*/) override { return {}; }
  void be_silent(size_t /*samples*/) override {}

  std::shared_ptr<Counts> counts_;
};

TEST(SpeechSession, TakesTextOfAnyLengthWhileItSpeaks) {
  const auto counts = std::make_shared<Counts>();
  SpeechSession speech(std::make_unique<SentenceCounter>(counts));
  ASSERT_TRUE(speech.write("One comes first. Two"));
  while (counts->begun == 0) std::this_thread::yield();
  const std::string_view sentence = " is said again, and at some length. Two";
  std::string text;
  size_t sentences = 0;
  for (; text.size() < SpeechSession::kMaxWaitingText * 3 / 2; ++sentences) text += sentence;
  std::thread writer([&] {
    EXPECT_TRUE(speech.write(text));
    EXPECT_TRUE(speech.write(text));
    speech.finish();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until as much waits as may
  counts->hold = false;
  const Heard heard = hear(speech);
  writer.join();
  EXPECT_TRUE(heard.status) << heard.status.error().message;
  EXPECT_EQ(counts->sentences, 1 + 2 * sentences + 1);
}

// Makes frames as long as it is asked to, and counts those that came without memory.
struct Frames {
  static constexpr size_t kAhead = 5, kAll = 100;
  std::atomic<size_t> begun{0}, fresh{0};
};
class FrameMaker final : public Speaker {
 public:
  explicit FrameMaker(std::shared_ptr<Frames> frames) : frames_(std::move(frames)) {}
  size_t chunks_ahead() const override { return Frames::kAhead; }
  int rate_hz() const override { return 24000; }
  Status speak(SpeechStream& stream) override {
    for (size_t i = 0; i < Frames::kAll; ++i) {
      SpeechChunk frame = stream.spare();
      EXPECT_TRUE(frame.samples.empty());
      if (frame.samples.capacity() == 0) ++frames_->fresh;
      frame.samples.resize(1920);
      ++frames_->begun;
      SYRINX_TRY_VOID(stream.hand_over(std::move(frame)));
    }
    return {};
  }

 private:
  std::shared_ptr<Frames> frames_;
};

TEST(SpeechSession, UsesTheMemoryOfChunksAgainThoughItsQueueIsFull) {
  const auto frames = std::make_shared<Frames>();
  SpeechSession speech(std::make_unique<FrameMaker>(frames));
  SpeechChunk chunk;
  for (size_t heard = 0; heard < Frames::kAll; ++heard) {
    // The queue is full, and one more frame waits for room.
    while (frames->begun < std::min(heard + Frames::kAhead + 1, Frames::kAll)) std::this_thread::yield();
    ASSERT_TRUE(*speech.next(chunk));
    EXPECT_EQ(chunk.samples.size(), 1920u);
  }
  EXPECT_FALSE(*speech.next(chunk));
  // The queue, the frame that waits, the listener's, and the one between them.
  EXPECT_LE(frames->fresh, Frames::kAhead + 3);
}

TEST(SpeechSession, RunsNoFurtherAheadThanItsQueue) {
  const auto log = std::make_shared<Log>();
  auto speech = session(log);
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += "a sentence of some length that stands for itself and fills a piece of its own, so to speak. ";
  ASSERT_TRUE(speech->speak(text));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LE(log->synthesized, static_cast<int>(KokoroSpeaker::kPiecesAhead) + 1);
  EXPECT_GE(hear(*speech).chunks, 6u);
}

TEST(SpeechSession, IsCancelledWhileItWaits) {
  const auto log = std::make_shared<Log>();
  auto speech = session(log);  // no text ever comes
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    speech->cancel();
  });
  const auto chunk = speech->next();
  canceller.join();
  ASSERT_FALSE(chunk);
  EXPECT_EQ(chunk.error().code, Code::kCancelled);
  EXPECT_EQ(speech->write("x").error().code, Code::kCancelled);
}

TEST(SpeechSession, EndsInTheMiddleOfAPiece) {
  const auto log = std::make_shared<Log>();
  log->hold = true;
  auto speech = session(log);
  ASSERT_TRUE(speech->speak("one two three. four five six."));
  speech->cancel();
  EXPECT_EQ(speech->next().error().code, Code::kCancelled);
  log->hold = false;
  speech.reset();
  EXPECT_LE(log->synthesized, 1);
}

TEST(SpeechSession, SpeaksPhonemes) {
  SpeakOptions options;
  options.knobs.set("phonemes", 1.0);
  const Heard heard = speak("həlˈO wˈɜɹld, ðɪs ɪz ɐ tˈɛst.", options);
  ASSERT_TRUE(heard.status);
  ASSERT_EQ(heard.words.size(), 6u);
  EXPECT_EQ(heard.words[0].text, "həlˈO");
  EXPECT_EQ(heard.words[5].text, "tˈɛst");
  EXPECT_FALSE(speak(". , !", options).status);
}

}  // namespace
}  // namespace syrinx
