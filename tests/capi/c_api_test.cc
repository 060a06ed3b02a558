// The installed interface, with the small random checkpoint.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "syrinx/engine.hpp"
#include "tests/base/temp_folder.h"

namespace {

using testing::HasSubstr;

const std::string kModel = SYRINX_TEST_DATA "/kokoro/tiny.onnx";
const std::string kVoice = SYRINX_TEST_DATA "/kokoro/tiny_voice.bin";
constexpr const char* kPhonemes = "həlˈO wˈɜɹld, ðɪs ɪz ɐ tˈɛst.";

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

syrinx::LoadOptions tiny() {
  syrinx::LoadOptions options;
  options.model = kModel.c_str();
  options.threads = 2;
  options.phonemes_only = 1;
  options.without_cache = 1;
  return options;
}

syrinx::VoiceOptions phonemes() {
  syrinx::VoiceOptions options;
  options.voice = kVoice.c_str();
  options.phonemes = 1;
  return options;
}

std::vector<float> say(syrinx::Engine& engine, const syrinx::VoiceOptions& options,
                       syrinx::Statistics* statistics = nullptr) {
  std::vector<float> samples;
  const auto hear = [&](const syrinx_chunk& chunk) {
    samples.insert(samples.end(), chunk.samples, chunk.samples + chunk.sample_count);
    return true;
  };
  EXPECT_EQ(engine.speak(kPhonemes, options, hear, statistics), SYRINX_OK) << engine.error();
  return samples;
}

TEST(CApi, SpeaksFromAPathADescriptorAndMemory) {
  syrinx::Engine by_path;
  ASSERT_EQ(by_path.load(tiny()), SYRINX_OK) << by_path.error();
  syrinx::Statistics statistics;
  const std::vector<float> samples = say(by_path, phonemes(), &statistics);
  EXPECT_NEAR(static_cast<double>(samples.size()) / SYRINX_SAMPLE_RATE_HZ, statistics.audio_seconds, 1e-9);
  EXPECT_GT(statistics.rtf, 0);
  EXPECT_GE(statistics.pieces, 1u);

  syrinx::Engine by_descriptor;
  syrinx::LoadOptions options = tiny();
  options.model = nullptr;
  options.model_descriptor = ::open(kModel.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(options.model_descriptor, 0);
  EXPECT_EQ(by_descriptor.load(options), SYRINX_OK) << by_descriptor.error();
  ::close(options.model_descriptor);
  EXPECT_EQ(say(by_descriptor, phonemes()), samples);

  const std::string bytes = content(kModel);
  syrinx::Engine by_memory;
  options = tiny();
  options.model = nullptr;
  options.model_data = bytes.data();
  options.model_size = bytes.size();
  EXPECT_EQ(by_memory.load(options), SYRINX_OK) << by_memory.error();
  EXPECT_EQ(say(by_memory, phonemes()), samples);
}

TEST(CApi, TakesAVoiceFromMemory) {
  syrinx::Engine engine;
  ASSERT_EQ(engine.load(tiny()), SYRINX_OK);
  EXPECT_EQ(engine.add_voice("mine", content(kVoice)), SYRINX_OK) << engine.error();
  syrinx::VoiceOptions options = phonemes();
  const std::vector<float> from_file = say(engine, options);
  options.voice = "mine";
  EXPECT_EQ(say(engine, options), from_file);
  EXPECT_EQ(engine.add_voice("short", "abc"), SYRINX_DATA_LOSS);
  EXPECT_EQ(engine.add_voice("../x", content(kVoice)), SYRINX_INVALID_ARGUMENT);
}

TEST(CApi, KokoroChangesTheVoiceWhereTheTextSaysSo) {
  syrinx::Engine engine;
  ASSERT_EQ(engine.load(tiny()), SYRINX_OK);
  // Another voice: the same rows in the other order.
  const std::string rows = content(kVoice);
  std::string other;
  const size_t row = rows.size() / 510;
  for (size_t i = 510; i-- > 0;) other += rows.substr(i * row, row);
  ASSERT_EQ(engine.add_voice("other", other), SYRINX_OK) << engine.error();
  const auto hear = [&](const std::string& text, const char* voice, syrinx_code expected = SYRINX_OK) {
    syrinx::VoiceOptions options = phonemes();
    options.voice = voice;
    std::vector<float> samples;
    const auto take = [&](const syrinx_chunk& chunk) {
      samples.insert(samples.end(), chunk.samples, chunk.samples + chunk.sample_count);
      return true;
    };
    EXPECT_EQ(engine.speak(text, options, take), expected) << engine.error();
    return samples;
  };
  const std::vector<float> first = hear(kPhonemes, kVoice.c_str()), second = hear(kPhonemes, "other");
  EXPECT_NE(first, second);
  EXPECT_EQ(hear(std::string("[voice: other] ") + kPhonemes, kVoice.c_str()), second);
  EXPECT_EQ(hear(std::string("[voice: other] [voice:]") + kPhonemes, kVoice.c_str()), first);
  EXPECT_EQ(hear(std::string("[voice: other:0.5+other:0.5] ") + kPhonemes, kVoice.c_str(), SYRINX_NOT_FOUND).size(), 0u)
      << "a blend is of installed voices";
  hear("[voice: " + kVoice + "] " + kPhonemes, kVoice.c_str(), SYRINX_INVALID_ARGUMENT);
  EXPECT_THAT(engine.error(), HasSubstr("opens no files"));
}

TEST(CApi, GivesCodesAndSentences) {
  syrinx::Engine engine;
  EXPECT_STREQ(engine.error(), "");
  EXPECT_EQ(engine.speak("x", phonemes(), [](const syrinx_chunk&) { return true; }), SYRINX_INVALID_ARGUMENT);
  EXPECT_THAT(engine.error(), HasSubstr("not been loaded"));
  syrinx::LoadOptions options = tiny();
  options.model = "/nowhere/at.all";
  EXPECT_EQ(engine.load(options), SYRINX_NOT_FOUND);
  EXPECT_THAT(engine.error(), HasSubstr("/nowhere/at.all"));
  options = tiny();
  options.threads = 1000;
  EXPECT_EQ(engine.load(options), SYRINX_INVALID_ARGUMENT);
  EXPECT_EQ(engine.load(tiny()), SYRINX_OK);
  EXPECT_EQ(engine.load(tiny()), SYRINX_INVALID_ARGUMENT);
  EXPECT_STREQ(engine.facts().precision, "int8");
  EXPECT_EQ(engine.facts().threads, 2);

  syrinx::VoiceOptions voice = phonemes();
  voice.speed = 100;
  syrinx::Session session;
  EXPECT_EQ(engine.start(voice, session), SYRINX_INVALID_ARGUMENT);
  EXPECT_FALSE(session);
  EXPECT_STREQ(session.error(), "there is no session");
  EXPECT_STREQ(syrinx_code_name(SYRINX_NOT_FOUND), "not_found");
  EXPECT_STREQ(syrinx_code_name(static_cast<syrinx_code>(15)), "unknown");
  EXPECT_THAT(syrinx_version(), HasSubstr("."));
}

TEST(CApi, RefusesNullsWithoutHarm) {
  syrinx_chunk chunk;
  syrinx_statistics statistics;
  syrinx_statistics_init(&statistics);
  EXPECT_EQ(syrinx_engine_load(nullptr, nullptr), SYRINX_INVALID_ARGUMENT);
  EXPECT_EQ(syrinx_session_next(nullptr, &chunk), SYRINX_INVALID_ARGUMENT);
  EXPECT_EQ(syrinx_session_write(nullptr, "x", 1), SYRINX_INVALID_ARGUMENT);
  EXPECT_EQ(syrinx_session_speak(nullptr, "x", 1), SYRINX_INVALID_ARGUMENT);
  EXPECT_EQ(syrinx_session_finish(nullptr), SYRINX_INVALID_ARGUMENT);
  EXPECT_EQ(syrinx_session_get_statistics(nullptr, &statistics), SYRINX_INVALID_ARGUMENT);
  EXPECT_EQ(syrinx_engine_get_facts(nullptr, nullptr), SYRINX_INVALID_ARGUMENT);
  EXPECT_EQ(syrinx_engine_add_voice(nullptr, "x", "x", 1), SYRINX_INVALID_ARGUMENT);
  EXPECT_EQ(syrinx_speak(nullptr, "x", 1, nullptr, nullptr, nullptr, nullptr), SYRINX_INVALID_ARGUMENT);
  EXPECT_EQ(syrinx_read(nullptr, "x", 1, nullptr, nullptr, nullptr), SYRINX_INVALID_ARGUMENT);
  EXPECT_STREQ(syrinx_engine_error(nullptr), "there is no engine");
  syrinx_session_cancel(nullptr);
  syrinx_session_free(nullptr);
  syrinx_engine_free(nullptr);
}

TEST(CApi, StopsWhenTheListenerSaysSo) {
  syrinx::Engine engine;
  ASSERT_EQ(engine.load(tiny()), SYRINX_OK);
  int calls = 0;
  EXPECT_EQ(engine.speak(kPhonemes, phonemes(), [&](const syrinx_chunk&) { return ++calls < 1; }), SYRINX_CANCELLED);
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(say(engine, phonemes()).empty());  // the engine is as good as before
}

TEST(CApi, ServesSeveralSessionsAtOnce) {
  auto engine = std::make_unique<syrinx::Engine>();
  ASSERT_EQ(engine->load(tiny()), SYRINX_OK);
  const std::vector<float> alone = say(*engine, phonemes());
  std::vector<syrinx::Session> sessions(3);
  for (syrinx::Session& session : sessions) ASSERT_EQ(engine->start(phonemes(), session), SYRINX_OK);
  engine.reset();  // sessions outlive the handle
  std::vector<std::thread> threads;
  for (syrinx::Session& session : sessions) {
    threads.emplace_back([&] {
      EXPECT_EQ(session.speak(kPhonemes), SYRINX_OK);
      std::vector<float> samples;
      syrinx_chunk chunk;
      while (session.next(chunk) == SYRINX_OK && chunk.samples != nullptr) {
        samples.insert(samples.end(), chunk.samples, chunk.samples + chunk.sample_count);
        EXPECT_GE(chunk.word_count, 1u);
      }
      EXPECT_EQ(samples, alone);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

const std::string kPocket = SYRINX_TEST_DATA "/pocket_tts/english";
const std::string kPocketVoice = kPocket + "/voice.safetensors";

syrinx::LoadOptions pocket() {
  syrinx::LoadOptions options;
  options.model = kPocket.c_str();
  options.threads = 2;
  return options;
}

syrinx::VoiceOptions pocket_voice() {
  syrinx::VoiceOptions options;
  options.voice = kPocketVoice.c_str();
  return options;
}

TEST(CApi, SpeaksWithPocketTts) {
  syrinx::Engine engine;
  ASSERT_EQ(engine.load(pocket()), SYRINX_OK) << engine.error();
  EXPECT_STREQ(engine.facts().precision, "int8");
  EXPECT_STREQ(engine.facts().default_voice, "");
  syrinx::Statistics statistics;
  const auto hello = [&](const syrinx::VoiceOptions& options) {
    std::vector<float> samples;
    const auto hear = [&](const syrinx_chunk& chunk) {
      EXPECT_EQ(chunk.sample_count, 1920u);
      EXPECT_EQ(chunk.word_count, 0u);
      samples.insert(samples.end(), chunk.samples, chunk.samples + chunk.sample_count);
      return true;
    };
    EXPECT_EQ(engine.speak("Hello there. How are you?", options, hear, &statistics), SYRINX_OK) << engine.error();
    return samples;
  };
  const std::vector<float> samples = hello(pocket_voice());
  EXPECT_EQ(hello(pocket_voice()), samples);
  EXPECT_EQ(statistics.pieces, 1u);
  EXPECT_EQ(statistics.limited_pieces, 0u);
  syrinx::VoiceOptions options = pocket_voice();
  options.temperature = 0;
  EXPECT_NE(hello(options), samples);
  options = pocket_voice();
  options.eos_threshold = -1e6f;
  options.frames_after_eos = 0;
  EXPECT_EQ(hello(options).size(), 6u * 1920);
  options.eos_threshold = 1e6f;
  hello(options);
  EXPECT_EQ(statistics.limited_pieces, 1u);
  EXPECT_EQ(statistics.silent_pieces + statistics.repeating_pieces + statistics.retried_pieces, 0u);
  EXPECT_EQ(statistics.measured_pieces + statistics.uneven_rate_pieces + statistics.uneven_loudness_pieces, 0u);
  EXPECT_EQ(statistics.greatest_rate, 0);

  // By name, which goes before the field; the family's ranges and names hold.
  options = pocket_voice();
  options.eos_threshold = 1e6f;
  EXPECT_EQ(options.set_option("eos_threshold", -1e6), SYRINX_OK);
  EXPECT_EQ(options.set_option("frames_after_eos", 7), SYRINX_OK);
  EXPECT_EQ(options.set_option("frames_after_eos", 0.0), SYRINX_OK);
  EXPECT_EQ(hello(options).size(), 6u * 1920);

  // A program compiled before these options existed gives a shorter structure.
  options = pocket_voice();
  options.temperature = 50;
  options.struct_size = offsetof(syrinx_speak_options, temperature);
  EXPECT_EQ(hello(options), samples);
}

// Each session speaks with the voice that it is given, and a text with those that its marks name.
TEST(CApi, SpeaksEachTextWithItsVoices) {
  syrinx::Engine engine;
  ASSERT_EQ(engine.load(pocket()), SYRINX_OK) << engine.error();
  ASSERT_EQ(engine.add_voice("bob", content(SYRINX_TEST_DATA "/pocket_tts/voice.wav")), SYRINX_OK) << engine.error();
  const auto say_in = [&](const char* text, const char* voice, int plain = 0) {
    syrinx::VoiceOptions options = pocket_voice();
    options.temperature = 0;
    options.plain = plain;
    if (voice != nullptr) options.voice = voice;
    std::vector<float> samples;
    const auto hear = [&](const syrinx_chunk& chunk) {
      samples.insert(samples.end(), chunk.samples, chunk.samples + chunk.sample_count);
      return true;
    };
    EXPECT_EQ(engine.speak(text, options, hear), SYRINX_OK) << engine.error();
    return samples;
  };
  const std::vector<float> ann = say_in("Hello there.", nullptr), bob = say_in("Hello there.", "bob");
  EXPECT_NE(ann, bob);
  EXPECT_EQ(say_in("Hello there.", nullptr), ann);
  EXPECT_EQ(say_in("[voice: bob] Hello there.", nullptr), bob);
  EXPECT_EQ(say_in("[voice: bob] [voice:] Hello there.", nullptr), ann);
  std::vector<float> later(2400);
  later.insert(later.end(), ann.begin(), ann.end());
  EXPECT_EQ(say_in("[pause:100ms] Hello there.", nullptr), later);
  EXPECT_GT(say_in("[pause:100ms] Hello there.", nullptr, 1).size(), ann.size());

  syrinx::Session session;
  ASSERT_EQ(engine.start(pocket_voice(), session), SYRINX_OK);
  EXPECT_EQ(session.speak("Hello.\n[voice: nobody] Hello."), SYRINX_OK);
  syrinx_chunk chunk;
  syrinx_code code = SYRINX_OK;
  do code = session.next(chunk);
  while (code == SYRINX_OK && chunk.samples != nullptr);
  EXPECT_EQ(code, SYRINX_NOT_FOUND);
  EXPECT_THAT(session.error(), HasSubstr("line 2 of the text"));
}

TEST(CApi, OptionsForLoadingAreRefusedAtTheStart) {
  syrinx::Engine engine;
  ASSERT_EQ(engine.load(tiny()), SYRINX_OK) << engine.error();
  for (const char* const name : {"dictionary", "lexicon"}) {
    syrinx::VoiceOptions options = phonemes();
    EXPECT_EQ(options.set_option(name, "words.txt"), SYRINX_OK);
    syrinx::Session session;
    EXPECT_EQ(engine.start(options, session), SYRINX_INVALID_ARGUMENT);
    EXPECT_THAT(engine.error(), HasSubstr(std::string("'") + name + "' is an option for loading"));
    EXPECT_EQ(engine.speak(kPhonemes, options, [](const syrinx_chunk&) { return true; }), SYRINX_INVALID_ARGUMENT);
  }
}

TEST(CApi, NumbersOfAnyTypeSetOptions) {
  syrinx::VoiceOptions options = phonemes();
  EXPECT_EQ(options.set_option("noise", 0), SYRINX_OK);
  EXPECT_EQ(options.set_option("noise", true), SYRINX_OK);
  EXPECT_EQ(options.set_option("speed", 0.5f), SYRINX_OK);
  EXPECT_EQ(options.set_option("speed", size_t{2}), SYRINX_OK);
  ASSERT_EQ(options.set_count, 2u);
  EXPECT_EQ(options.set[0].number, 1);
  EXPECT_EQ(options.set[1].number, 2);
}

// As a program that was compiled before a field was added, and one that was compiled after a later one was.
TEST(CApi, SizesOfOtherVersionsAreHeeded) {
  struct Later {
    syrinx_speak_options known;
    double added;
  };
  constexpr unsigned char kUntouched = 0xA5;
  syrinx_speak_options earlier;
  std::memset(static_cast<void*>(&earlier), kUntouched, sizeof earlier);
  const size_t size = offsetof(syrinx_speak_options, temperature);
  syrinx_speak_options_init_sized(&earlier, size);
  EXPECT_EQ(earlier.struct_size, size);
  EXPECT_EQ(earlier.speed, 1);
  for (size_t i = size; i < sizeof earlier; ++i)
    ASSERT_EQ(reinterpret_cast<const unsigned char*>(&earlier)[i], kUntouched) << i;
  Later later;
  std::memset(static_cast<void*>(&later), kUntouched, sizeof later);
  syrinx_speak_options_init_sized(&later.known, sizeof later);
  EXPECT_EQ(later.known.struct_size, sizeof later);
  EXPECT_EQ(later.added, 0);

  syrinx_engine* const engine = syrinx_engine_new();
  const syrinx::LoadOptions load = tiny();
  ASSERT_EQ(syrinx_engine_load(engine, &load), SYRINX_OK);
  const auto speak = [&](syrinx_speak_options& options) {
    options.voice = kVoice.c_str();
    options.phonemes = 1;
    const auto hear = [](const syrinx_chunk*, void*) { return 0; };
    return syrinx_speak(engine, kPhonemes, std::strlen(kPhonemes), &options, hear, nullptr, nullptr);
  };
  EXPECT_EQ(speak(earlier), SYRINX_OK);
  EXPECT_EQ(syrinx_set(&later.known, "speed", 2), SYRINX_OK);
  EXPECT_EQ(speak(later.known), SYRINX_OK);
  syrinx_engine_free(engine);
}

TEST(CApi, OptionsByNameAreCheckedAtTheStart) {
  syrinx::Engine engine;
  ASSERT_EQ(engine.load(pocket()), SYRINX_OK) << engine.error();
  const auto start = [&](const char* name, double value) {
    syrinx::VoiceOptions options = pocket_voice();
    EXPECT_EQ(options.set_option(name, value), SYRINX_OK);
    syrinx::Session session;
    return engine.start(options, session);
  };
  EXPECT_EQ(start("max_tokens", 50), SYRINX_OK);
  EXPECT_EQ(start("max_tokens", 2.5), SYRINX_INVALID_ARGUMENT);
  EXPECT_THAT(engine.error(), HasSubstr("'max_tokens' is 2.5; give a whole number from 1 to 200"));
  EXPECT_EQ(start("speed", 2), SYRINX_UNSUPPORTED);
  EXPECT_THAT(engine.error(), HasSubstr("Pocket TTS has no 'speed'; leave it out, or take kokoro"));
  EXPECT_EQ(start("mood", 50), SYRINX_UNSUPPORTED);
  EXPECT_THAT(engine.error(), HasSubstr("no family of models has 'mood'"));
  syrinx::VoiceOptions many = pocket_voice();
  std::vector<std::string> names;
  for (int i = 0; i <= SYRINX_MOST_OPTIONS; ++i) names.push_back("option" + std::to_string(i));
  for (int i = 0; i < SYRINX_MOST_OPTIONS; ++i) EXPECT_EQ(many.set_option(names[i].c_str(), 1.0), SYRINX_OK);
  EXPECT_EQ(many.set_option(names.back().c_str(), 1.0), SYRINX_LIMIT_EXCEEDED);
  many.struct_size = offsetof(syrinx_speak_options, set);
  EXPECT_EQ(many.set_option("speed", 1.0), SYRINX_INVALID_ARGUMENT);
}

// A sentence is heard while it is written, and the same samples come as of its whole text.
TEST(CApi, SpeaksTextThatArrives) {
  const std::string folder = SYRINX_TEST_DATA "/qwen_tts/custom_voice";
  syrinx::LoadOptions load = pocket();
  load.model = folder.c_str();
  syrinx::Engine engine;
  ASSERT_EQ(engine.load(load), SYRINX_OK) << engine.error();
  syrinx::VoiceOptions options;
  ASSERT_EQ(options.set_option("text_layout", "streaming"), SYRINX_OK);
  ASSERT_EQ(options.set_option("max_seconds", 3.0), SYRINX_OK);
  std::vector<float> parted, whole;
  syrinx_chunk chunk = {};
  {
    syrinx::Session session;
    ASSERT_EQ(engine.start(options, session), SYRINX_OK) << engine.error();
    ASSERT_EQ(session.write("The river had risen overnight and nobody "), SYRINX_OK);
    ASSERT_EQ(session.next(chunk), SYRINX_OK);  // waits for ever, if it waits for the sentence's end
    parted.assign(chunk.samples, chunk.samples + chunk.sample_count);
    ASSERT_EQ(session.write("knew why."), SYRINX_OK);
    ASSERT_EQ(session.finish(), SYRINX_OK);
    while (session.next(chunk) == SYRINX_OK && chunk.samples != nullptr)
      parted.insert(parted.end(), chunk.samples, chunk.samples + chunk.sample_count);
  }
  const auto hear = [&](const syrinx_chunk& more) {
    whole.insert(whole.end(), more.samples, more.samples + more.sample_count);
    return true;
  };
  ASSERT_EQ(engine.speak("The river had risen overnight and nobody knew why.", options, hear), SYRINX_OK);
  EXPECT_EQ(parted, whole);
  ASSERT_EQ(options.set_option("carry_seconds", 8.0), SYRINX_OK);  // has no codes to carry
  syrinx::Session session;
  EXPECT_EQ(engine.start(options, session), SYRINX_UNSUPPORTED);
}

TEST(CApi, PocketTtsRefusesOptionsOfOthers) {
  syrinx::Engine engine;
  syrinx::LoadOptions load = pocket();
  load.dictionary = "words.txt";
  EXPECT_EQ(engine.load(load), SYRINX_UNSUPPORTED);
  load = pocket();
  load.phonemes_only = 1;
  EXPECT_EQ(engine.load(load), SYRINX_UNSUPPORTED);
  load = pocket();
  load.precision = static_cast<syrinx_precision>(77);
  EXPECT_EQ(engine.load(load), SYRINX_INVALID_ARGUMENT);
  ASSERT_EQ(engine.load(pocket()), SYRINX_OK) << engine.error();
  syrinx::Session session;
  syrinx::VoiceOptions options = pocket_voice();
  options.speed = 2;
  EXPECT_EQ(engine.start(options, session), SYRINX_UNSUPPORTED);
  options = pocket_voice();
  options.max_tokens = -3;
  EXPECT_EQ(engine.start(options, session), SYRINX_INVALID_ARGUMENT);
  options = pocket_voice();
  options.decode_steps = 1000;
  EXPECT_EQ(engine.start(options, session), SYRINX_INVALID_ARGUMENT);
  options.voice = nullptr;
  options.decode_steps = 0;
  ASSERT_EQ(engine.start(options, session), SYRINX_OK) << "the text may name one";
  EXPECT_EQ(session.speak("Hello."), SYRINX_OK);
  syrinx_chunk chunk;
  EXPECT_EQ(session.next(chunk), SYRINX_NOT_FOUND);
  EXPECT_THAT(session.error(), HasSubstr("no voice was named"));
}

TEST(CApi, ExportsAVoiceWholeOrNotAtAll) {
  syrinx::Engine engine;
  ASSERT_EQ(engine.load(pocket()), SYRINX_OK) << engine.error();
  const std::string recording = SYRINX_TEST_DATA "/pocket_tts/voice.wav";
  const syrinx::TempFolder folder;
  const std::string file = folder.file("voice.safetensors");
  ASSERT_EQ(engine.export_voice(recording.c_str(), file.c_str()), SYRINX_OK) << engine.error();
  const auto hear = [](const syrinx_chunk&) { return true; };
  syrinx::VoiceOptions options;
  options.voice = file.c_str();
  EXPECT_EQ(engine.speak("Hello.", options, hear), SYRINX_OK) << engine.error();
  ::unlink(file.c_str());
  EXPECT_EQ(engine.export_voice("nobody", file.c_str()), SYRINX_NOT_FOUND);
  EXPECT_NE(::access(file.c_str(), F_OK), 0);
  EXPECT_EQ(engine.export_voice(recording.c_str(), "/dev/full"), SYRINX_IO);
  EXPECT_EQ(syrinx_engine_export_voice(nullptr, "a", "b"), SYRINX_INVALID_ARGUMENT);
}

}  // namespace
