// Text that arrives while it is spoken, with the small checkpoints: samples do not depend on when it comes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/families/families.h"
#include "engine/families/find_speech_files.h"
#include "engine/families/qwen_tts/qwen_speaker.h"
#include "engine/speech/speech_session.h"
#include "pool_fixture.h"
#include "tests/base/temp_folder.h"

namespace syrinx::qwen_tts {
namespace {

namespace fs = std::filesystem;
const std::string kData = std::string(SYRINX_TEST_DATA) + "/qwen_tts/";
constexpr size_t kSamples = 1920;
const std::string kText =
    "Well, it's late; the river had risen overnight. Nobody knew why? The old man waited by the bridge for a word "
    "from town, and in the end it came: all was well. Good.";

// Bytes of a text, or its words.  A part that ends a sentence goes on with the next one, since a text that rests there
// may be spoken without it.
std::vector<std::string> parts_of(const std::string& text, bool by_words) {
  std::vector<std::string> parts = {""};
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t end = text.find_last_not_of(" \"", i == 0 ? 0 : i - 1);
    const bool follows_end = i > 0 && std::string_view(".?").find(text[end]) != std::string_view::npos;
    if (!follows_end && (!by_words || text[i] == ' ')) parts.emplace_back();
    parts.back() += text[i];
  }
  return parts;
}

struct Heard {
  std::vector<float> samples = {};
  SpeechStatistics statistics = {};
};

void take(SpeechSession& session, Heard& heard) {
  for (SpeechChunk chunk;;) {
    const auto more = session.next(chunk);
    EXPECT_TRUE(more) << more.error().message;
    heard.statistics = session.statistics();
    if (!more || !*more) return;
    heard.samples.insert(heard.samples.end(), chunk.samples.begin(), chunk.samples.end());
  }
}

Heard say(SpeechEngine& engine, const SpeakOptions& options, const std::vector<std::string>& parts,
          bool waits = false) {
  auto session = engine.start(options);
  EXPECT_TRUE(session) << session.error().message;
  std::thread writer([&] {
    for (const std::string& part : parts) {
      EXPECT_TRUE((*session)->write(part));
      if (waits) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    (*session)->finish();
  });
  Heard heard;
  take(**session, heard);
  writer.join();
  return heard;
}

std::shared_ptr<SpeechEngine> load(const std::string& folder, Precision precision) {
  const auto files = find_speech_files(folder, "/nowhere");
  EXPECT_TRUE(files) << files.error().message;
  auto engine = load_speech_engine({.files = *files, .precision = precision, .threads = 2});
  EXPECT_TRUE(engine) << engine.error().message;
  return engine.value_or(nullptr);
}

// A WAV file of 16 bits at 24 kHz.
std::string recording(uint32_t samples) {
  constexpr uint32_t kRate = 24000;
  std::string wav = "RIFF";
  const auto put = [&](uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) wav += static_cast<char>(value >> (8 * i));
  };
  put(36 + 2 * samples, 4);
  wav += "WAVEfmt ";
  for (const auto& [value, bytes] :
       {std::pair(16u, 4), {1u, 2}, {1u, 2}, {kRate, 4}, {2 * kRate, 4}, {2u, 2}, {16u, 2}})
    put(value, bytes);
  wav += "data";
  put(2 * samples, 4);
  for (uint32_t i = 0; i < samples; ++i)
    put(static_cast<uint32_t>(static_cast<int>(9000 * std::sin(i * 0.05) * std::sin(i * 0.0007))), 2);
  return wav;
}

SpeakOptions streaming(const std::string& voice) {
  SpeakOptions options;
  options.seed = 3;
  options.voice = voice;
  options.knobs = {{"max_seconds", 3.0}, {"max_tokens", 60.0}};
  options.knobs.set("text_layout", "streaming");
  return options;
}

void expect_same_samples(SpeechEngine& engine, const SpeakOptions& options) {
  const Heard whole = say(engine, options, {kText});
  EXPECT_GT(whole.statistics.pieces, 1u);
  EXPECT_GT(whole.samples.size(), 30 * kSamples);
  for (const bool by_words : {false, true})
    for (const bool waits : {false, true}) {
      Heard parted;
      // Text that a busy machine has made rest or slow has other pieces.
      for (int tries = 0; parted.statistics.pieces != whole.statistics.pieces && tries < (waits ? 20 : 1); ++tries)
        parted = say(engine, options, parts_of(kText, by_words), waits);
      EXPECT_EQ(parted.samples, whole.samples) << by_words << waits;
      EXPECT_EQ(parted.statistics.pieces, whole.statistics.pieces);
    }
}

TEST(TextArrival, EveryPrecisionGivesTheSameSamples) {
  for (const Precision precision : kAllPrecisions)
    expect_same_samples(*load(kData + "custom_voice", precision), streaming("ryan"));
}

TEST(TextArrival, ClonedVoicesGiveTheSameSamples) {
  const TempFolder folder;
  fs::copy(kData + "base", folder.path() + "/model");
  fs::copy(kData + "speech_tokenizer", folder.path() + "/speech_tokenizer");
  fs::create_directory(folder.path() + "/model/voices");
  for (const char* const name : {"ann", "bob", "eve"})
    write_text(folder.path() + "/model/voices/" + name + ".wav", recording(36000));
  write_text(folder.path() + "/model/voices/bob.txt", "Hm.");  // part of the text stands beside the recording
  write_text(folder.path() + "/model/voices/eve.txt", "A transcript of more tokens than the recording has frames.");
  const auto engine = load(folder.path() + "/model", Precision::kInt8);
  ASSERT_NE(engine, nullptr);
  for (const char* const name : {"ann", "bob", "eve"}) {
    SCOPED_TRACE(name);
    expect_same_samples(*engine, streaming(name));
  }
}

// Speaks with scripts of codes instead of draws.
class ScriptedArrival : public PoolFixture {
 protected:
  ScriptedArrival() : PoolFixture("custom_voice") {}
  std::vector<int32_t> script(size_t frames, size_t period = 1000) const {
    return changing_codes(*model_, frames, period);
  }
  std::unique_ptr<SpeechSession> start(std::function<std::span<const int32_t>(uint32_t)> forced,
                                       const Clock& clock = system_clock()) {
    auto lease = pool_->lease();
    EXPECT_TRUE(lease);
    const auto voice = std::make_shared<QwenVoice>();
    voice->speaker = "ryan";
    QwenSettings settings{.draws = model_->generation(), .text_first = false, .piece_tokens = kDefaultPieceTokens};
    settings.forced = std::move(forced);
    const auto no_voice = [](const std::string&) -> Result<std::shared_ptr<const QwenVoice>> {
      return fail(Code::kNotFound, "no voice");
    };
    return std::make_unique<SpeechSession>(
        std::make_unique<QwenSpeaker>(no_voice, model_, std::move(*lease), voice, settings, std::vector<int32_t>(),
                                      SpeakOptions()),
        clock);
  }
  // Sound of so many frames, and no more; the text has not ended.
  static void hear_frames(SpeechSession& session, size_t frames) {
    size_t samples = 0;
    for (SpeechChunk chunk; samples < frames * kSamples; samples += chunk.samples.size())
      ASSERT_TRUE(*session.next(chunk));
    EXPECT_EQ(samples, frames * kSamples);
  }
};

// A second passes whenever the time is read.
class HastyClock final : public Clock {
 public:
  int64_t now_ns() const override { return seconds_.fetch_add(1) * 1'000'000'000; }

 private:
  mutable std::atomic<int64_t> seconds_{1};
};

// Text rests behind a line that is read as a whole: it is spoken to its end without more of it.
TEST_F(ScriptedArrival, RestBehindALineEndsThePiece) {
  const std::vector<int32_t> codes = script(60);
  const auto session = start([&](uint32_t) -> std::span<const int32_t> { return codes; });
  ASSERT_TRUE(session->write("The river had risen overnight, they said.\n"));
  hear_frames(*session, 60);
  session->finish();
}

// Text rests within a sentence: the one before is spoken to its end, whether its piece has begun or is too short to.
TEST_F(ScriptedArrival, RestWithinSentenceEndsThePieceBeforeIt) {
  const std::vector<int32_t> codes = script(60);
  for (const std::string begin : {"So. I", "The river had risen overnight, they said. And", "So. - "}) {
    SCOPED_TRACE(begin);
    const auto session = start([&](uint32_t) -> std::span<const int32_t> { return codes; });
    ASSERT_TRUE(session->write(begin));
    hear_frames(*session, 60);
    ASSERT_TRUE(session->write(" more of it came."));
    session->finish();
    Heard rest;
    take(*session, rest);
    EXPECT_EQ(rest.samples.size(), 60 * kSamples);
    EXPECT_EQ(rest.statistics.pieces, 2u);
  }
}

// Words of the next sentence have come: none of them is in use, so that the rest ends the piece before them.
TEST_F(ScriptedArrival, RestEndsThePieceBeforeWordsThatCame) {
  const std::vector<int32_t> codes = script(60);
  const auto session = start([&](uint32_t) -> std::span<const int32_t> { return codes; });
  ASSERT_TRUE(session->write("The river had risen overnight, they said. And so"));
  SpeechChunk first;
  ASSERT_TRUE(*session->next(first));
  ASSERT_TRUE(session->write(" we"));  // makes the words before it certain
  hear_frames(*session, 60 - first.samples.size() / kSamples);
  ASSERT_TRUE(session->write(" went on."));
  session->finish();
  Heard rest;
  take(*session, rest);
  EXPECT_EQ(rest.statistics.pieces, 2u);
}

// Sentences of slow text are not withheld for those behind them; what has come as a whole is joined again.
TEST_F(ScriptedArrival, SlowTextIsSpokenBySentences) {
  const std::vector<int32_t> codes = script(10);
  const HastyClock clock;
  const auto session = start([&](uint32_t) -> std::span<const int32_t> { return codes; }, clock);
  ASSERT_TRUE(session->write("So. We"));
  hear_frames(*session, 10);
  ASSERT_TRUE(session->write(" went on. All"));
  hear_frames(*session, 10);
  std::string rest = " of us did. ";
  for (int n = 0; n < 12; ++n) rest += "We went on. ";
  ASSERT_TRUE(session->write(rest));
  session->finish();
  Heard heard;
  take(*session, heard);
  EXPECT_LE(heard.statistics.pieces, 6u);
}

TEST_F(ScriptedArrival, CancelEndsTheWaitForText) {
  const std::vector<int32_t> codes = script(60);
  const auto session = start([&](uint32_t) -> std::span<const int32_t> { return codes; });
  ASSERT_TRUE(session->write("The river had risen"));
  hear_frames(*session, model_->tokenizer().encode("The river had")->size());
  session->cancel();
  SpeechChunk chunk;
  const auto more = session->next(chunk);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Code::kCancelled);
}

// Sound comes before the sentence ends; its frames end with its text, while another stream goes on.
TEST_F(ScriptedArrival, StreamWaitsForItsText) {
  const std::vector<int32_t> codes = script(60), others = script(20);
  const auto forced = [&](uint32_t) -> std::span<const int32_t> { return codes; };
  const auto waiting = start(forced), whole = start(forced);
  const std::string begin = "The river had risen", end = " overnight, they said.";
  const auto tokens = [&](const std::string& text) { return model_->tokenizer().encode(text)->size(); };
  ASSERT_GE(tokens("The river had"), QwenSpeaker::kBegunTokens);
  ASSERT_TRUE(waiting->write(begin));
  Heard first;
  SpeechChunk chunk;
  // The last word may go on; the frame behind the last token is the last that can be made.
  while (first.samples.size() < tokens("The river had") * kSamples) {
    ASSERT_TRUE(*waiting->next(chunk));
    first.samples.insert(first.samples.end(), chunk.samples.begin(), chunk.samples.end());
  }
  EXPECT_EQ(first.samples.size(), tokens("The river had") * kSamples);
  const auto other = start([&](uint32_t) -> std::span<const int32_t> { return others; });
  ASSERT_TRUE(other->speak("Meanwhile."));
  Heard heard;
  take(*other, heard);
  EXPECT_EQ(heard.samples.size(), 20 * kSamples);
  EXPECT_FALSE(waiting->is_ready());
  ASSERT_TRUE(waiting->write(end));
  waiting->finish();
  take(*waiting, first);
  EXPECT_EQ(first.statistics.finished.of(FinishReason::kSpoken), 1u);
  ASSERT_TRUE(whole->speak(begin + end));
  Heard all;
  take(*whole, all);
  EXPECT_EQ(all.samples.size(), 60 * kSamples);
  EXPECT_EQ(first.samples, all.samples);
}

// The model ends before the text has come: the rest of the sentence is not said, and the next one is a new piece.
TEST_F(ScriptedArrival, EarlyEndWaitsForTheNextPiece) {
  const std::vector<int32_t> codes = script(4);
  const auto session = start([&](uint32_t) -> std::span<const int32_t> { return codes; });
  ASSERT_TRUE(session->write("The river had risen overnight"));
  Heard heard;
  SpeechChunk chunk;
  while (heard.samples.size() < 4 * kSamples) {
    ASSERT_TRUE(*session->next(chunk));
    heard.samples.insert(heard.samples.end(), chunk.samples.begin(), chunk.samples.end());
  }
  ASSERT_TRUE(
      session->write(", they said. It was an old story that had been told a hundred times before, in the town "
                     "and on the farms below it. The second piece."));
  session->finish();
  take(*session, heard);
  EXPECT_EQ(heard.statistics.pieces, 2u);
  EXPECT_EQ(heard.samples.size(), 8 * kSamples);
}

// A piece that is cut before its text has ended is tried again when it has.
TEST_F(ScriptedArrival, RetryDoesNotDependOnArrival) {
  const std::vector<int32_t> loop = script(200, 1), good = script(30);
  const auto forced = [&](uint32_t number) -> std::span<const int32_t> { return number == 0 ? loop : good; };
  const std::string text =
      "The river had risen overnight and nobody in the town knew why it had done so or where the water came from.";
  const auto whole = start(forced), parted = start(forced);
  ASSERT_TRUE(whole->speak(text));
  Heard all, parts;
  take(*whole, all);
  EXPECT_EQ(all.statistics.retried_pieces, 1u);
  EXPECT_EQ(all.samples.size(), (SpeechGuard::kFirstSuspect + 30) * kSamples);
  ASSERT_TRUE(parted->write(text.substr(0, 70)));
  SpeechChunk chunk;
  while (parts.samples.size() < SpeechGuard::kFirstSuspect * kSamples) {
    ASSERT_TRUE(*parted->next(chunk));
    parts.samples.insert(parts.samples.end(), chunk.samples.begin(), chunk.samples.end());
  }
  ASSERT_TRUE(parted->write(text.substr(70)));
  parted->finish();
  take(*parted, parts);
  EXPECT_EQ(parts.samples, all.samples);
  EXPECT_EQ(parts.statistics.retried_pieces, 1u);
}

}  // namespace
}  // namespace syrinx::qwen_tts
