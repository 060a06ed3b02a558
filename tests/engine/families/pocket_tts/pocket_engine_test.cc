// Pocket TTS behind the engine's interface: streams, turns, voices, and what is refused; with the small checkpoints.
#include "engine/families/pocket_tts/pocket_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <thread>
#include <tuple>

#include "engine/families/families.h"
#include "engine/families/find_speech_files.h"
#include "engine/families/pocket_tts/pocket_speaker.h"
#include "tests/base/temp_folder.h"
#include "tests/models/allocation_count.h"

namespace syrinx {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre, testing::HasSubstr;
const std::string kData = std::string(SYRINX_TEST_DATA) + "/pocket_tts/";
const std::string kEnglish = kData + "english";
const std::string kVoice = kEnglish + "/voice.safetensors";
const char* const kText =
    "Hello world, it costs 3.50 dollars. How are you today? I do not know, but she does. "
    "There is a second chunk of this text as well, and it is spoken after the first one.";

SpeechEngineOptions options_for(const std::string& model, int threads = 2) {
  SpeechEngineOptions options;
  auto files = find_speech_files(model, "/nowhere");
  EXPECT_TRUE(files.has_value()) << files.error().message;
  if (files) options.files = *files;
  options.threads = threads;
  return options;
}

std::shared_ptr<SpeechEngine> load(const std::string& model = kEnglish, int threads = 2) {
  auto engine = load_speech_engine(options_for(model, threads));
  if (!engine) ADD_FAILURE() << engine.error().message;
  return engine ? *engine : nullptr;
}

SpeakOptions with_voice(uint64_t seed = 0) {
  SpeakOptions options;
  options.voice = kVoice;
  options.seed = seed;
  return options;
}

std::unique_ptr<SpeechSession> start(SpeechEngine& engine, const SpeakOptions& options = with_voice()) {
  auto session = engine.start(options);
  if (!session) ADD_FAILURE() << session.error().message;
  return session ? std::move(*session) : nullptr;
}

struct Heard {
  std::vector<float> samples;
  Status status;
};

Heard hear(SpeechSession& session) {
  Heard heard;
  SpeechChunk chunk;
  for (;;) {
    const auto more = session.next(chunk);
    if (!more) heard.status = tl::unexpected(more.error());
    if (!more || !*more) return heard;
    EXPECT_NEAR(chunk.start_s, static_cast<double>(heard.samples.size()) / pocket::kSampleRateHz, 1e-9);
    heard.samples.insert(heard.samples.end(), chunk.samples.begin(), chunk.samples.end());
  }
}

Heard say(SpeechEngine& engine, std::string_view text, const SpeakOptions& options = with_voice()) {
  const auto session = start(engine, options);
  EXPECT_TRUE(session->speak(text));
  return hear(*session);
}

TEST(PocketEngine, SpeaksWhatTheSynthesizerComputes) {
  for (const Precision precision : kAllPrecisions) {
    SpeechEngineOptions options = options_for(kEnglish);
    options.precision = precision;
    const auto engine = load_speech_engine(std::move(options));
    ASSERT_TRUE(engine.has_value()) << engine.error().message;
    EXPECT_EQ((*engine)->precision(), precision);
    const Heard heard = say(**engine, kText, with_voice(3));
    ASSERT_TRUE(heard.status.has_value()) << heard.status.error().message;

    const auto model = pocket::Model::load(kEnglish, {.precision = precision});
    Scheduler scheduler;
    StepQueue queue(scheduler);
    ThreadTeam team(2);
    nn::Runner runner(team);
    const std::string bytes = read_text(kVoice);
    const auto file = pocket::parse_voice_file(std::as_bytes(std::span(bytes)), "voice", (*model)->config().flow_lm);
    const auto pool = pocket::Synthesizer::make_pool(**model, runner, queue, 1);
    auto speech = pocket::Synthesizer::create(*model, *pocket::make_voice(**model, *file, runner), {.seed = 3}, *pool);
    const auto chunks =
        pocket::split_text(kText, pocket::kDefaultMaxTokens, (*model)->config().text, (*model)->tokenizer());
    std::vector<float> expected, frame((*speech)->frame_samples());
    for (const pocket::Chunk& chunk : *chunks) {
      ASSERT_TRUE((*speech)->begin(chunk));
      while ((*speech)->next(frame)) expected.insert(expected.end(), frame.begin(), frame.end());
    }
    EXPECT_EQ(heard.samples, expected);
  }
}

TEST(PocketEngine, HandsOverTheFirstFrameAtOnce) {
  const auto engine = load();
  const auto session = start(*engine);
  std::string text;
  for (int i = 0; i < 200; ++i) text += "There is one more sentence of this text to be spoken here. ";
  ASSERT_TRUE(session->speak(text));
  SpeechChunk chunk;
  ASSERT_TRUE(*session->next(chunk));
  EXPECT_EQ(chunk.samples.size(), 1920u);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  // No further ahead than its queue.
  EXPECT_LE(session->statistics().audio_seconds, 0.08 * (PocketSpeaker::kFramesAhead + 2) + 1e-9);
  EXPECT_GT(session->statistics().first_audio_ms, 0);
}

TEST(PocketEngine, SessionsAtOnceSoundAsIfAlone) {
  const auto engine = load();
  SpeakOptions others = with_voice(1);
  others.voice = kEnglish + "/voice_older.safetensors";
  others.knobs.set("temperature", 0.5);
  const SpeakOptions all[] = {with_voice(), with_voice(1), others, with_voice(2)};
  std::vector<std::vector<float>> alone;
  for (const SpeakOptions& options : all) alone.push_back(say(*engine, kText, options).samples);
  EXPECT_NE(alone[0], alone[1]);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < std::size(all); ++i)
    threads.emplace_back([&, i] {
      const Heard heard = say(*engine, kText, all[i]);
      EXPECT_TRUE(heard.status.has_value());
      EXPECT_EQ(heard.samples, alone[i]) << i;
    });
  // Sessions that fail, or that nobody listens to, are no concern of the others.
  const auto silent = start(*engine);
  EXPECT_TRUE(silent->speak(kText));
  EXPECT_FALSE(say(*engine, "\xff").status.has_value());
  for (std::thread& thread : threads) thread.join();
}

TEST(PocketEngine, SpeaksTextAsItArrives) {
  const auto engine = load();
  SpeakOptions options = with_voice();
  options.knobs.set("eos_threshold", -1e6);  // six frames a chunk, so that two fit the queue
  options.knobs.set("frames_after_eos", 0.0);
  const auto session = start(*engine, options);
  // Would wait for ever if a sentence were held back.
  const auto wait_for_pieces = [&](size_t pieces) {
    while (session->statistics().pieces < pieces) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  ASSERT_TRUE(session->write("This is all of it for now."));
  wait_for_pieces(1);
  ASSERT_TRUE(session->write(" And that is mo"));
  ASSERT_TRUE(session->write("re of it. "));
  wait_for_pieces(2);
  session->finish();
  const Heard heard = hear(*session);
  EXPECT_TRUE(heard.status.has_value());
  EXPECT_EQ(heard.samples.size(), size_t{12} * 1920);
  EXPECT_EQ(session->statistics().pieces, 2u);
}

TEST(PocketEngine, SpeaksTextOfAnyLength) {
  const auto engine = load();
  std::string sentences;
  while (sentences.size() < 1000000) sentences += "It is said again and again. ";
  for (const std::string& text : {sentences, std::string(1000000, 'a'), std::string(500000, '\n') + "Yes."}) {
    const auto session = start(*engine);
    ASSERT_TRUE(session->speak(text));
    SpeechChunk chunk;
    const auto more = session->next(chunk);
    ASSERT_TRUE(more.has_value()) << more.error().message;
    EXPECT_TRUE(*more);
    session->cancel();
    EXPECT_EQ(session->next(chunk).error().code, Code::kCancelled);
  }
}

TEST(PocketEngine, SaysWhatItCannotSpeak) {
  const auto engine = load();
  for (const char* text : {"", "  \n\n ", "😀 🎉", "... !?", "\x01\x02", "这是一个句子。"}) {
    const Heard heard = say(*engine, text);
    ASSERT_FALSE(heard.status.has_value()) << text;
    EXPECT_EQ(heard.status.error().code, Code::kInvalidArgument);
    EXPECT_THAT(heard.status.error().message, HasSubstr("nothing to say"));
    EXPECT_TRUE(heard.samples.empty());
  }
  const auto session = start(*engine);
  ASSERT_TRUE(session->speak("Hello.\n\n😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀."));
  ASSERT_TRUE(hear(*session).status.has_value());
  EXPECT_GE(session->statistics().dropped_characters, 20u);
}

// Without noise each part sounds as by itself.
TEST(PocketEngine, MarksPauseAndChangeTheVoice) {
  const auto engine = load();
  const std::string recording = read_text(kData + "voice.wav");
  ASSERT_TRUE(engine->add_voice("bob", std::as_bytes(std::span(recording))));
  SpeakOptions first = with_voice(), bob = with_voice();
  first.knobs.set("temperature", 0.0);
  bob.knobs.set("temperature", 0.0);
  bob.voice = "bob";
  std::vector<float> expected = say(*engine, "Hello there.", first).samples;
  const auto append = [&](const std::vector<float>& more) {
    expected.insert(expected.end(), more.begin(), more.end());
  };
  append(std::vector<float>(pocket::kSampleRateHz / 4));
  append(say(*engine, "How are you?", bob).samples);
  append(say(*engine, "I am well.", first).samples);
  const Heard heard = say(*engine, "Hello there. [pause:250ms]\n[voice: bob] How are you?\n[voice:] I am well.", first);
  ASSERT_TRUE(heard.status.has_value()) << heard.status.error().message;
  EXPECT_EQ(heard.samples, expected);
  EXPECT_NE(say(*engine, "How are you?", first).samples, say(*engine, "How are you?", bob).samples);
}

TEST(PocketEngine, ATextOpensNoFilesAndItsVoicesAreThere) {
  const auto engine = load();
  for (const char* place : {"./x.wav", "hf://a/b/c.wav", "voice.safetensors", "/etc/passwd"}) {
    const Heard heard = say(*engine, fmt::format("Hello.\n[voice: {}] There.", place));
    ASSERT_FALSE(heard.status.has_value()) << place;
    EXPECT_EQ(heard.status.error().code, Code::kInvalidArgument);
    EXPECT_THAT(heard.status.error().message, HasSubstr("line 2 of the text"));
    EXPECT_THAT(heard.status.error().message, HasSubstr("opens no files"));
    EXPECT_FALSE(heard.samples.empty());
  }
  const Heard missing = say(*engine, "[voice: bob] Hello.");
  EXPECT_EQ(missing.status.error().code, Code::kNotFound);
  EXPECT_THAT(missing.status.error().message, HasSubstr("--cast bob=FILE"));
  EXPECT_THAT(missing.status.error().message, testing::Not(HasSubstr("--voice")));
}

TEST(PocketEngine, CountsWhatItSpoke) {
  const auto engine = load();
  SpeakOptions options = with_voice();
  options.knobs.set("eos_threshold", 1e6);
  const auto session = start(*engine, options);
  ASSERT_TRUE(session->speak("Hello there."));
  const Heard heard = hear(*session);
  ASSERT_TRUE(heard.status.has_value());
  const SpeechStatistics statistics = session->statistics();
  EXPECT_EQ(statistics.pieces, 1u);
  EXPECT_EQ(statistics.finished.cut(), 1u);
  EXPECT_NEAR(statistics.audio_seconds, static_cast<double>(heard.samples.size()) / pocket::kSampleRateHz, 1e-9);
  EXPECT_GT(statistics.compute_ms, 0);
  EXPECT_LT(statistics.waiting_ms, statistics.compute_ms) << "nobody else speaks";
  EXPECT_GE(statistics.total_ms, statistics.first_audio_ms);
}

TEST(PocketEngine, AllocatesNothingInAFrameOnceItRuns) {
  const auto engine = load();
  SpeakOptions options = with_voice();
  options.knobs.set("eos_threshold", 1e6);  // some 200 frames a chunk
  const auto session = start(*engine, options);
  ASSERT_TRUE(session->speak("Hello world, it costs 3.50 dollars. How are you today? I do not know, but she does."));
  SpeechChunk chunk;
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(*session->next(chunk));
  const size_t before = allocation_count();
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(*session->next(chunk));
  EXPECT_EQ(allocation_count() - before, 0u);
}

TEST(PocketEngine, EndsInTheMiddleOfAChunk) {
  const auto engine = load();
  auto session = start(*engine);
  ASSERT_TRUE(session->speak(kText));
  SpeechChunk chunk;
  ASSERT_TRUE(*session->next(chunk));
  session->cancel();
  EXPECT_EQ(session->next(chunk).error().code, Code::kCancelled);
  session.reset();
  EXPECT_TRUE(say(*engine, "Hello.").status.has_value()) << "the engine is as good as before";
}

// The folder of a checkpoint with voices.
class VoicesFolder {
 public:
  VoicesFolder() {
    fs::copy(kEnglish + "/model.safetensors", folder_.file("model.safetensors"));
    std::string yaml = read_text(kEnglish + "/config.yaml");
    const std::string up = "../tokenizer.json";
    write_text(folder_.file("config.yaml"), yaml.replace(yaml.find(up), up.size(), kData + "tokenizer.json"));
    fs::create_directory(folder_.file("voices"));
  }
  void add(const std::string& from, const std::string& name) {
    fs::copy(from, folder_.file("voices/" + name), fs::copy_options::overwrite_existing);
  }
  std::string path() const { return folder_.path(); }
  std::string file(const std::string& name) const { return folder_.file(name); }

 private:
  TempFolder folder_;
};

TEST(PocketVoices, AreFoundByNamePathOrDefault) {
  VoicesFolder folder;
  folder.add(kVoice, "maria.safetensors");
  const std::vector<float> expected = say(*load(folder.path()), kText).samples;
  SpeakOptions options;  // the only voice there is
  EXPECT_EQ(say(*load(folder.path()), kText, options).samples, expected);
  folder.add(kData + "voice.wav", "alba.wav");
  folder.add(kData + "voice.wav", "maria.wav");
  options.voice = "maria";
  const auto engine = load(folder.path());
  EXPECT_EQ(engine->default_voice(), "alba");
  EXPECT_EQ(say(*engine, kText, options).samples, expected) << "an exported voice goes before a recording";
  options.voice = "";
  EXPECT_NE(say(*engine, kText, options).samples, expected);
  options.voice = "bob";
  const auto missing = engine->start(options);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr("alba, maria"));
  options.voice = "./bob.wav";
  EXPECT_EQ(engine->start(options).error().code, Code::kNotFound);
}

// Without a default, the text may name the voice that begins.
TEST(PocketVoices, TheFirstOneIsFoundWhenItIsNeeded) {
  const auto engine = load();
  const std::string content = read_text(kVoice);
  ASSERT_TRUE(engine->add_voice("ann", std::as_bytes(std::span(content))));
  const std::vector<float> expected = say(*engine, "Hello there.").samples;
  const Heard named = say(*engine, "\n[voice: ann] Hello there.", {});
  ASSERT_TRUE(named.status.has_value()) << named.status.error().message;
  EXPECT_EQ(named.samples, expected);
  const Heard nameless = say(*engine, "Hello there. [voice: ann] Hello there.", {});
  ASSERT_FALSE(nameless.status.has_value());
  EXPECT_EQ(nameless.status.error().code, Code::kNotFound);
  EXPECT_THAT(nameless.status.error().message, HasSubstr("no voice was named"));
  EXPECT_TRUE(nameless.samples.empty());
  const Heard back = say(*engine, "[voice: ann] Hello there. [voice:] Hello.", {});
  ASSERT_FALSE(back.status.has_value());
  EXPECT_THAT(back.status.error().message, HasSubstr("line 1 of the text: no voice was named"));
  EXPECT_EQ(back.samples, expected);
}

// Cloning takes seconds, and other voices may be all that is asked for.
TEST(PocketVoices, ARecordingIsClonedWhenItIsAskedFor) {
  VoicesFolder folder;
  folder.add(kData + "voice.wav", "alba.wav");
  SpeechEngineOptions named = options_for(folder.path());
  named.first_voice = "alba";
  const auto ready = load_speech_engine(std::move(named)), waiting = load_speech_engine(options_for(folder.path()));
  ASSERT_TRUE(ready.has_value() && waiting.has_value());
  fs::remove(folder.file("voices/alba.wav"));
  EXPECT_TRUE(say(**ready, "Hello.", {}).status.has_value());
  EXPECT_EQ((*waiting)->start({}).error().code, Code::kNotFound);
}

TEST(PocketVoices, TheDefaultOneIsMadeReadyAtLoad) {
  VoicesFolder folder;
  folder.add(kVoice, "alba.safetensors");
  const auto engine = load(folder.path());
  fs::remove(folder.file("voices/alba.safetensors"));
  EXPECT_TRUE(say(*engine, "Hello.", {}).status.has_value());
  // A damaged one keeps nobody from speaking with another.
  write_text(folder.file("voices/alba.safetensors"), "nothing");
  EXPECT_TRUE(say(*load(folder.path()), "Hello.").status.has_value());
}

TEST(PocketVoices, ARecordingSpeaksAsItsExportedVoice) {
  const auto engine = load();
  SpeakOptions options = with_voice();
  options.voice = kData + "voice.wav";
  const Heard cloned = say(*engine, kText, options);
  ASSERT_TRUE(cloned.status.has_value()) << cloned.status.error().message;
  const auto exported = engine->export_voice(options.voice);
  ASSERT_TRUE(exported.has_value());
  const std::string wav = read_text(options.voice);
  ASSERT_TRUE(engine->add_voice("exported", std::as_bytes(std::span(*exported))));
  ASSERT_TRUE(engine->add_voice("recorded", std::as_bytes(std::span(wav))));
  for (const char* name : {"exported", "recorded"}) {
    options.voice = name;
    EXPECT_EQ(say(*engine, kText, options).samples, cloned.samples) << name;
  }
  EXPECT_EQ(engine->add_voice("../x", std::as_bytes(std::span(wav))).error().code, Code::kInvalidArgument);
  EXPECT_EQ(engine->export_voice("nobody").error().code, Code::kNotFound);
}

TEST(PocketVoices, ThatWereAddedAreExported) {
  const auto engine = load();
  const std::string content = read_text(kVoice);
  ASSERT_TRUE(engine->add_voice("me", std::as_bytes(std::span(content))));
  const auto exported = engine->export_voice("me");
  ASSERT_TRUE(exported.has_value()) << exported.error().message;
  EXPECT_EQ(*exported, *engine->export_voice(kVoice));
}

TEST(PocketVoices, ThatAreRemovedSpeakOnlyWhereTheySpeakAlready) {
  const auto engine = load();
  const std::string content = read_text(kVoice);
  ASSERT_TRUE(engine->add_voice("me", std::as_bytes(std::span(content))));
  SpeakOptions options = with_voice();
  options.voice = "me";
  const auto session = engine->start(options);
  ASSERT_TRUE(session.has_value());
  engine->remove_voice("me");
  engine->remove_voice("nobody");
  EXPECT_EQ(engine->start(options).error().code, Code::kNotFound);
  EXPECT_EQ(engine->export_voice("me").error().code, Code::kNotFound);
  ASSERT_TRUE((*session)->speak("Hello."));
  SpeechChunk chunk;
  const auto more = (*session)->next(chunk);
  ASSERT_TRUE(more.has_value()) << more.error().message;
  EXPECT_TRUE(*more && !chunk.samples.empty());
  EXPECT_TRUE(engine->clones());
}

TEST(PocketVoices, AreAddedUpToALimit) {
  const std::string content = read_text(kVoice);
  const auto bytes = std::as_bytes(std::span(content));
  const auto engine = PocketEngine::load(options_for(kEnglish), 4 * content.size());
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  size_t added = 0;
  Status status;
  while (added < 100 && (status = (*engine)->add_voice(fmt::format("voice{}", added), bytes))) ++added;
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Code::kLimitExceeded);
  ASSERT_GE(added, 1u);
  EXPECT_TRUE((*engine)->add_voice("voice0", bytes)) << "it takes its own place";
  EXPECT_TRUE(say(**engine, "Hello.").status.has_value()) << "voices of files are spoken with all the same";
}

TEST(PocketVoices, OfFilesAreKeptHoweverManyAreAdded) {
  VoicesFolder folder;
  folder.add(kData + "voice.wav", "alba.wav");
  const std::string voice = read_text(kVoice);
  const auto bytes = std::as_bytes(std::span(voice));
  const auto engine = PocketEngine::load(options_for(folder.path()), 8 * voice.size());
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  for (int i = 0; i < 100; ++i) (void)(*engine)->add_voice(fmt::format("voice{}", i), bytes);
  ASSERT_FALSE((*engine)->add_voice("another", bytes)) << "there is room for more";
  ASSERT_TRUE(say(**engine, "Hello.", {}).status.has_value());
  ASSERT_TRUE((*engine)->add_voice("voice0", bytes));
  fs::remove(folder.file("voices/alba.wav"));
  EXPECT_TRUE((*engine)->start({}).has_value());
}

TEST(PocketVoices, OfAnotherModelOrOfNoSoundAreRefused) {
  const auto engine = load();
  SpeakOptions options = with_voice();
  options.voice = kData + "english_7m/voice.safetensors";
  EXPECT_EQ(engine->start(options).error().code, Code::kUnsupported);
  options.voice = kEnglish + "/config.yaml";
  EXPECT_EQ(engine->start(options).error().code, Code::kUnsupported);
  EXPECT_EQ(engine->add_voice("empty", {}).error().code, Code::kDataLoss);
}

TEST(PocketOptions, ForeignOptionsAreRefused) {
  const auto engine = load();
  const std::tuple<const char*, double, Code> cases[] = {{"speed", 1.5, Code::kUnsupported},
                                                         {"phonemes", 1, Code::kUnsupported},
                                                         {"noise", 1, Code::kUnsupported},
                                                         {"max_tokens", 0, Code::kInvalidArgument},
                                                         {"temperature", -1, Code::kInvalidArgument}};
  for (const auto& [name, value, code] : cases) {
    SpeakOptions options = with_voice();
    options.knobs.set(name, value);
    EXPECT_EQ(engine->start(options).error().code, code) << name;
  }

  SpeechEngineOptions load_options = options_for(kEnglish);
  load_options.dictionary = "words.txt";
  EXPECT_EQ(load_speech_engine(std::move(load_options)).error().code, Code::kUnsupported);
  load_options = options_for(kEnglish);
  load_options.threads = 1000;
  EXPECT_EQ(load_speech_engine(std::move(load_options)).error().code, Code::kInvalidArgument);
  load_options = options_for(kEnglish);
  load_options.first_voice = "nobody";
  EXPECT_EQ(load_speech_engine(std::move(load_options)).error().code, Code::kNotFound);

  SpeechEngineOptions kokoro = options_for(std::string(SYRINX_TEST_DATA) + "/kokoro/tiny.onnx");
  kokoro.first_is_phonemes = true;
  kokoro.precision = Precision::kInt4;
  EXPECT_EQ(load_speech_engine(std::move(kokoro)).error().code, Code::kUnsupported);
  kokoro = options_for(std::string(SYRINX_TEST_DATA) + "/kokoro/tiny.onnx");
  kokoro.first_is_phonemes = true;
  const auto other = load_speech_engine(std::move(kokoro));
  ASSERT_TRUE(other.has_value()) << other.error().message;
  SpeakOptions phonemes{.voice = std::string(SYRINX_TEST_DATA) + "/kokoro/tiny_voice.bin",
                        .knobs = {{"phonemes", 1.0}}};
  EXPECT_TRUE((*other)->start(phonemes).has_value());
  phonemes.knobs.set("temperature", 0.5);
  EXPECT_EQ((*other)->start(phonemes).error().code, Code::kUnsupported);
  EXPECT_EQ((*other)->export_voice("af_heart").error().code, Code::kUnsupported);
}

}  // namespace
}  // namespace syrinx
