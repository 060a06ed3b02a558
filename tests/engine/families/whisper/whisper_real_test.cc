// The installed Whisper base on the recordings of Debian's pocketsphinx-testdata: openai-whisper's tokens in f32
// (tools/reference/whisper_tokens.py), and the default recogniser with voice activity, whole and as a stream.
// The models: $SYRINX_TEST_MODELS, else where `syrinx pull` puts them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "base/mapped_file.h"
#include "engine/families/families.h"
#include "engine/families/find_recognition_files.h"
#include "engine/families/whisper/whisper_recogniser.h"
#include "tests/models/whisper/small.h"

namespace syrinx {
namespace {

constexpr const char* kRecordings = "/usr/share/pocketsphinx/test/data/";

std::string models_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (const std::string folder = variable("SYRINX_TEST_MODELS"); !folder.empty()) return folder;
  if (const std::string home = variable("SYRINX_HOME"); !home.empty()) return home + "/data/models";
  if (const std::string data = variable("XDG_DATA_HOME"); !data.empty()) return data + "/syrinx/models";
  return variable("HOME") + "/.local/share/syrinx/models";
}

// 16 bit, 16 kHz, one channel: a .raw, or a .wav with a header of 44 bytes.
std::vector<float> recording(const std::string& name) {
  const char* const folder = name.starts_with("sense") ? "librivox/" : name.ends_with(".wav") ? "cards/" : "";
  const auto file = MappedFile::open(kRecordings + std::string(folder) + name);
  EXPECT_TRUE(file.has_value()) << file.error().message << " (install pocketsphinx-testdata)";
  if (!file) return {};
  std::span<const std::byte> bytes = file->bytes();
  if (name.ends_with(".wav")) bytes = bytes.subspan(44);
  std::vector<float> samples(bytes.size() / 2);
  for (size_t i = 0; i < samples.size(); ++i) {
    const int value = std::to_integer<int>(bytes[2 * i]) | std::to_integer<int>(bytes[2 * i + 1]) << 8;
    samples[i] = static_cast<float>(value < 32768 ? value : value - 65536) / 32768.0f;
  }
  return samples;
}

// Letters and digits in lower case, a space between words.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

std::shared_ptr<Recogniser> load(std::optional<Precision> precision) {
  const auto files = find_recognition_files("whisper-base", models_folder());
  EXPECT_TRUE(files.has_value()) << files.error().message;
  if (!files) return nullptr;
  auto loaded = load_recogniser({.files = *files, .precision = precision});
  EXPECT_TRUE(loaded.has_value()) << loaded.error().message;
  return loaded ? *loaded : nullptr;
}

const Json::Array& references() {
  static const auto kFile = parse_json(test::read_small("real_tokens.json"), "real_tokens.json");
  EXPECT_TRUE(kFile.has_value());
  return *kFile->array();
}

TEST(RealWhisper, GivesTheMakersTokensInF32) {
  const auto recogniser = std::dynamic_pointer_cast<WhisperRecogniser>(load(Precision::kF32));
  ASSERT_NE(recogniser, nullptr);
  ASSERT_GE(references().size(), 12u);
  for (const Json& row : references()) {
    const std::string& name = test::string_of(row, "name");
    SCOPED_TRACE(name);
    const std::vector<float> samples = recording(name);
    recogniser->with_transcriber(kNeverDue, [&](whisper::Transcriber& transcriber) {
      whisper::TranscriberSettings settings;
      settings.language = transcriber.vocabulary().tokens.find_language("en");
      settings.words = true;
      settings.decode.temperatures = {0};
      settings.decode.stop_loops = false;
      const auto segments = transcriber.transcribe(samples, settings);
      ASSERT_TRUE(segments.has_value());
      std::vector<int32_t> ids;
      std::vector<whisper::Word> words;
      for (const whisper::Segment& segment : *segments) {
        ids.insert(ids.end(), segment.tokens.begin(), segment.tokens.end());
        words.insert(words.end(), segment.words.begin(), segment.words.end());
      }
      EXPECT_EQ(ids, test::ids_of(row, "ids"));
      const Json::Array& expected = test::list(row, "words");
      ASSERT_EQ(words.size(), expected.size());
      for (size_t i = 0; i < words.size(); ++i) {
        const Json::Array& word = *expected[i].array();
        EXPECT_EQ(words[i].text, *word[0].string());
        EXPECT_NEAR(words[i].start_s, test::number(word[1]), 0.021) << words[i].text;
        EXPECT_NEAR(words[i].end_s, test::number(word[2]), 0.021) << words[i].text;
      }
    });
  }
}

TEST(RealWhisper, GivesTheMakersTokensByABeam) {
  const auto recogniser = std::dynamic_pointer_cast<WhisperRecogniser>(load(Precision::kF32));
  ASSERT_NE(recogniser, nullptr);
  const auto file = parse_json(test::read_small("real_beams.json"), "real_beams.json");
  ASSERT_TRUE(file.has_value());
  ASSERT_GE(file->array()->size(), 12u);
  for (const Json& row : *file->array()) {
    const std::string& name = test::string_of(row, "name");
    SCOPED_TRACE(name);
    recogniser->with_transcriber(kNeverDue, [&](whisper::Transcriber& transcriber) {
      whisper::TranscriberSettings settings;
      settings.language = transcriber.vocabulary().tokens.find_language("en");
      settings.decode.temperatures = {0};
      settings.decode.beam = 5;
      settings.decode.stop_loops = false;
      const auto segments = transcriber.transcribe(recording(name), settings);
      ASSERT_TRUE(segments.has_value());
      std::vector<int32_t> ids;
      for (const whisper::Segment& segment : *segments)
        ids.insert(ids.end(), segment.tokens.begin(), segment.tokens.end());
      EXPECT_EQ(ids, test::ids_of(row, "ids"));
    });
  }
}

TEST(RealWhisper, TheTokenizerIsTheMakers) {
  const auto recogniser = std::dynamic_pointer_cast<WhisperRecogniser>(load({}));
  ASSERT_NE(recogniser, nullptr);
  const auto texts = parse_json(test::read_small("texts.json"), "texts.json");
  ASSERT_TRUE(texts.has_value());
  recogniser->with_transcriber(kNeverDue, [&](whisper::Transcriber& transcriber) {
    for (const Json& row : test::list(*texts, "texts")) {
      const std::string& text = test::string_of(row, "text");
      const auto ids = transcriber.vocabulary().bpe.encode(text);
      ASSERT_TRUE(ids.has_value());
      EXPECT_EQ(*ids, test::ids_of(row, "multilingual")) << text;
    }
    const whisper::Tokens& tokens = transcriber.vocabulary().tokens;
    EXPECT_EQ(tokens.first_time, 50364);
    EXPECT_EQ(tokens.languages.size(), 99u);
    EXPECT_EQ(whisper::suppressed_tokens(transcriber.vocabulary().bpe, tokens).size(), 88u);
  });
}

TEST(RealWhisper, HearsSentencesWholeAndAsAStream) {
  const auto recogniser = load({});
  ASSERT_NE(recogniser, nullptr);
  const std::string said = "he might even have been made amiable himself";
  std::vector<float> samples(8000);
  const std::vector<float> clip = recording("sense_and_sensibility_01_austen_64kb-0930.wav");
  samples.insert(samples.end(), clip.begin(), clip.end());
  samples.resize(samples.size() + 24'000);
  const auto transcript = recogniser->transcribe(samples, {.words = true}, {});
  ASSERT_TRUE(transcript.has_value()) << transcript.error().message;
  EXPECT_EQ(transcript->language, "en");
  EXPECT_EQ(plain(transcript->text()), said);
  ASSERT_FALSE(transcript->segments.empty());
  ASSERT_FALSE(transcript->segments[0].words.empty());
  EXPECT_GT(transcript->segments[0].words[0].start_s, 0.3);

  auto stream = recogniser->start({});
  ASSERT_TRUE(stream.has_value());
  std::vector<RecognitionEvent> events;
  for (size_t begin = 0; begin < samples.size(); begin += 1600)
    ASSERT_TRUE(
        (*stream)->push(std::span(samples).subspan(begin, std::min<size_t>(1600, samples.size() - begin)), events));
  ASSERT_TRUE((*stream)->finish(events).has_value());
  std::string heard;
  for (const RecognitionEvent& event : events)
    if (event.is_final) heard += event.result.text + " ";
  EXPECT_EQ(plain(heard), said);
  EXPECT_GT(events.size(), 2u);
  EXPECT_EQ((*stream)->language(), "en");
}

// Blanks and signs of a stream are those of the file.
TEST(RealWhisper, StreamWritesTheFilesText) {
  const auto recogniser = load({});
  ASSERT_NE(recogniser, nullptr);
  std::vector<float> samples = recording("sense_and_sensibility_01_austen_64kb-0890.wav");
  samples.resize(samples.size() + 24'000);
  const auto transcript = recogniser->transcribe(samples, {.language = "en"}, {});
  ASSERT_TRUE(transcript.has_value()) << transcript.error().message;
  EXPECT_NE(transcript->text().find("cold-hearted"), std::string::npos);
  auto stream = recogniser->start({.language = "en"});
  ASSERT_TRUE(stream.has_value());
  std::vector<RecognitionEvent> events;
  ASSERT_TRUE((*stream)->push(samples, events).has_value());
  ASSERT_TRUE((*stream)->finish(events).has_value());
  Transcript heard;
  for (const RecognitionEvent& event : events)
    if (event.is_final) heard.segments.push_back(event.result);
  EXPECT_EQ(heard.text(), transcript->text());
}

TEST(RealWhisper, SilenceSaysNothing) {
  const auto recogniser = load({});
  ASSERT_NE(recogniser, nullptr);
  const auto transcript = recogniser->transcribe(std::vector<float>(160'000), {}, {});
  ASSERT_TRUE(transcript.has_value());
  EXPECT_EQ(transcript->text(), "");
}

// With all sound, too: of digital silence, and of a step up and down as dither or a cheap converter leave it.
TEST(RealWhisper, DigitalSilenceSaysNothing) {
  const auto recogniser = load({});
  ASSERT_NE(recogniser, nullptr);
  std::vector<float> samples(480'000);
  for (const bool dithered : {false, true}) {
    for (size_t i = 0; dithered && i < samples.size(); ++i) samples[i] = static_cast<float>(i * 7919 % 3) / 32768;
    const auto transcript = recogniser->transcribe(samples, {.voice_activity = false}, {});
    ASSERT_TRUE(transcript.has_value());
    EXPECT_EQ(transcript->text(), "");
  }
}

// A pause of 20 s: segments, words and subtitles begin where they are spoken; the text is as without words.
TEST(RealWhisper, PausesMoveNoTimes) {
  const auto recogniser = load({});
  ASSERT_NE(recogniser, nullptr);
  std::vector<float> samples = recording("sense_and_sensibility_01_austen_64kb-0880.wav");
  const double pause_begin_s = static_cast<double>(samples.size()) / 16000;
  samples.resize(samples.size() + 320'000);
  const double pause_end_s = static_cast<double>(samples.size()) / 16000;
  const std::vector<float> second = recording("sense_and_sensibility_01_austen_64kb-0930.wav");
  samples.insert(samples.end(), second.begin(), second.end());
  const auto plain_one = recogniser->transcribe(samples, {}, {});
  const auto subtitles = recogniser->transcribe(samples, {.subtitles = true}, {});
  const auto words = recogniser->transcribe(samples, {.words = true}, {});
  const auto text_alone = recogniser->transcribe(samples, {.segment_times = false}, {});
  ASSERT_TRUE(plain_one.has_value() && subtitles.has_value() && words.has_value() && text_alone.has_value());
  EXPECT_EQ(subtitles->text(), plain_one->text());
  EXPECT_EQ(text_alone->text(), plain_one->text());
  const auto is_in_pause = [&](double start_s, double end_s) {
    return start_s < pause_end_s - 0.5 && end_s > pause_begin_s + 0.5;
  };
  size_t timed = 0;
  for (const auto* const transcript : {&*plain_one, &*subtitles, &*words}) {
    for (const TranscriptSegment& segment : transcript->segments) {
      EXPECT_FALSE(is_in_pause(segment.start_s, segment.end_s)) << segment.text << " " << segment.start_s;
      for (const TranscriptWord& word : segment.words)
        EXPECT_FALSE(is_in_pause(word.start_s, word.end_s)) << word.text << " " << word.start_s;
      timed += segment.words.size();
    }
  }
  EXPECT_GT(timed, 10u);
  EXPECT_GE(plain_one->segments.size(), 2u);
}

// A far microphone: voice activity hears as much as at the level of the recording.
TEST(RealWhisper, VeryQuietSpeechIsHeard) {
  const auto recogniser = load({});
  ASSERT_NE(recogniser, nullptr);
  for (const float gain : {0.01f, 0.004f}) {
    std::vector<float> samples = recording("sense_and_sensibility_01_austen_64kb-0870.wav");
    for (float& sample : samples) sample = std::nearbyint(sample * gain * 32768) / 32768;
    const auto transcript = recogniser->transcribe(samples, {.language = "en"}, {});
    ASSERT_TRUE(transcript.has_value());
    EXPECT_NE(plain(transcript->text()).find("mr john"), std::string::npos) << transcript->text();
  }
}

}  // namespace
}  // namespace syrinx
