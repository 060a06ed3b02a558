// The rules that make segments and events, against the maker's own code on random sequences
// (tools/reference/silero_segments.py made the file), and what we add to them.
#include "models/silero/segments.h"

#include "base/json.h"
#include "base/rng.h"
#include "container_writer.h"
#include "models/silero/speech_detector.h"

namespace syrinx::silero {
namespace {

using Kind = SpeechEvent::Kind;

struct Case {
  SegmentOptions options;
  uint64_t samples = 0;
  std::vector<float> probabilities;
  std::vector<SpeechSpan> segments;
  std::vector<std::pair<SpeechEvent, size_t>> events;  // with the window that tells
};

double number(const Json& json) {
  if (const int64_t* const whole = json.whole()) return static_cast<double>(*whole);
  return json.real() == nullptr ? -1 : *json.real();
}

Case read_case(const Json& json) {
  Case c;
  const auto given = [&json](const char* key) { return number(*json.find(key)); };
  c.options.threshold = given("threshold");
  if (!json.find("negative")->is_null()) c.options.negative_threshold = given("negative");
  c.options.min_speech_ms = given("min_speech");
  if (!json.find("max_speech")->is_null()) c.options.max_speech_s = given("max_speech");
  c.options.min_silence_ms = given("min_silence");
  c.options.speech_pad_ms = given("pad");
  c.options.min_silence_at_max_speech_ms = given("min_silence_at_max");
  c.samples = static_cast<uint64_t>(given("samples"));
  for (const char level : *json.find("levels")->string())
    c.probabilities.push_back(static_cast<float>(level - 48) / 64);
  const auto item = [](const Json& list, size_t i) { return static_cast<uint64_t>(number((*list.array())[i])); };
  for (const Json& span : *json.find("segments")->array()) c.segments.push_back({item(span, 0), item(span, 1)});
  for (const Json& event : *json.find("events")->array())
    c.events.push_back({{item(event, 0) == 1 ? Kind::kStart : Kind::kEnd, item(event, 1)}, item(event, 2)});
  return c;
}

std::vector<Case> maker_cases() {
  std::ifstream file(SYRINX_TEST_DATA "/silero/segments.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto json = parse_json(text, "segments.json");
  EXPECT_TRUE(json) << json.error().message;
  std::vector<Case> cases;
  for (const Json& one : *json->array()) cases.push_back(read_case(one));
  return cases;
}

std::string shown(const std::vector<SpeechSpan>& spans) {
  std::string text;
  for (const SpeechSpan& span : spans) text += fmt::format(" [{}, {}]", span.begin, span.end);
  return text;
}

TEST(SileroSegments, WholeRecordingsEqualTheMakers) {
  const std::vector<Case> cases = maker_cases();
  ASSERT_EQ(cases.size(), 160u);
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto found = speech_segments(cases[i].probabilities, cases[i].samples, cases[i].options);
    EXPECT_EQ(found, cases[i].segments) << i << ":" << shown(found) << " instead of" << shown(cases[i].segments);
  }
}

TEST(SileroSegments, StreamsEqualTheMakers) {
  for (const Case& c : maker_cases()) {
    SegmentOptions options = c.options;  // the maker's iterator knows neither of these
    options.max_speech_s = std::numeric_limits<double>::infinity();
    options.negative_threshold.reset();
    SpeechIterator iterator(options);
    std::vector<std::pair<SpeechEvent, size_t>> found;
    for (size_t i = 0; i < c.probabilities.size(); ++i) {
      std::vector<SpeechEvent> events;
      iterator.push(c.probabilities[i], events);
      for (const SpeechEvent& event : events) found.push_back({event, i});
    }
    EXPECT_EQ(found, c.events);
  }
}

// 0 is silence, 1 speech, '-' between the thresholds.
std::vector<float> levels(std::string_view pattern) {
  std::vector<float> probabilities;
  for (const char c : pattern) probabilities.push_back(c == '1' ? 0.9f : c == '-' ? 0.4f : 0.1f);
  return probabilities;
}

std::vector<SpeechEvent> stream(std::string_view pattern, const SegmentOptions& options, uint64_t samples) {
  SpeechIterator iterator(options);
  std::vector<SpeechEvent> events;
  for (const float p : levels(pattern)) iterator.push(p, events);
  iterator.flush(samples, events);
  EXPECT_FALSE(iterator.in_speech());
  return events;
}

TEST(SileroSegments, AStreamThatStopsEndsItsSegment) {
  const SegmentOptions plain{.speech_pad_ms = 0};
  const std::vector<SpeechEvent> expected{{Kind::kStart, 512}, {Kind::kEnd, 2000}};
  EXPECT_EQ(stream("0111", plain, 2000), expected);
  EXPECT_EQ(stream("01-0", plain, 2000), expected);
  EXPECT_TRUE(stream("0000", plain, 2000).empty());
}

TEST(SileroSegments, AStreamIsCutAsARecordingIs) {
  // At most 16 windows; the longer of two silences is where it is cut, then it goes on to the end.
  const SegmentOptions gaps{.max_speech_s = 16 * 0.032, .min_silence_ms = 320, .speech_pad_ms = 0};
  const std::string pattern = "11000011000001111111111";
  const std::vector<SpeechEvent> events = stream(pattern, gaps, 512 * pattern.size());
  const std::vector<SpeechEvent> expected{
      {Kind::kStart, 0}, {Kind::kEnd, 8 * 512}, {Kind::kStart, 13 * 512}, {Kind::kEnd, 512 * pattern.size()}};
  EXPECT_EQ(events, expected);
  SegmentOptions whole = gaps;
  whole.min_speech_ms = 0;
  EXPECT_EQ(speech_segments(levels(pattern), 512 * pattern.size(), whole),
            (std::vector<SpeechSpan>{{0, 8 * 512}, {13 * 512, 512 * pattern.size()}}));
  // Without a silence it is cut where it stands, and what follows is the next segment.
  const std::vector<SpeechEvent> solid =
      stream("11111111111111111111", {.max_speech_s = 10 * 0.032, .speech_pad_ms = 0}, 10240);
  EXPECT_EQ(solid, (std::vector<SpeechEvent>{
                       {Kind::kStart, 0}, {Kind::kEnd, 5120}, {Kind::kStart, 11 * 512}, {Kind::kEnd, 10240}}));
  // Padding does not take back what has been told: at most 8 windows besides it.
  const std::vector<SpeechEvent> padded =
      stream("111111111111111", {.max_speech_s = 34 * 0.032, .speech_pad_ms = 400}, 7680);
  EXPECT_EQ(padded, (std::vector<SpeechEvent>{
                        {Kind::kStart, 0}, {Kind::kEnd, 9 * 512}, {Kind::kStart, 9 * 512}, {Kind::kEnd, 7680}}));
}

TEST(SileroSegments, KnowsWhenSpeechWasLastHeard) {
  SpeechIterator iterator({.min_speech_ms = 90});
  std::vector<SpeechEvent> events;
  for (const float p : levels("011000000")) iterator.push(p, events);  // too short to count
  EXPECT_EQ(events.size(), 2u);
  EXPECT_EQ(iterator.last_speech(), 0u);
  for (const float p : levels("11-1")) iterator.push(p, events);
  EXPECT_EQ(iterator.last_speech(), 13u * 512);
  for (const float p : levels("-0")) iterator.push(p, events);
  EXPECT_EQ(iterator.last_speech(), 13u * 512);
  EXPECT_EQ(iterator.samples(), 15u * 512);
}

TEST(SileroSegments, OptionsAreChecked) {
  EXPECT_TRUE(validate({}).has_value());
  EXPECT_TRUE(validate({.max_speech_s = 30}).has_value());
  for (const SegmentOptions& wrong :
       {SegmentOptions{.threshold = 1.5}, SegmentOptions{.threshold = std::nan("")},
        SegmentOptions{.negative_threshold = -0.1}, SegmentOptions{.min_speech_ms = -1},
        SegmentOptions{.max_speech_s = 0.05}, SegmentOptions{.max_speech_s = std::nan("")},
        SegmentOptions{.min_silence_ms = 1e9}, SegmentOptions{.speech_pad_ms = std::nan("")}}) {
    EXPECT_EQ(validate(wrong).error().code, Code::kInvalidArgument);
  }
}

// A network of random weights whose threshold lies in the middle of what it says, so that segments come and go.
TEST(SpeechDetector, HowTheSoundIsCutChangesNothing) {
  const auto vad = std::make_shared<const SileroVad>(random_tensors(5));
  Rng rng(3);
  std::vector<float> sound(50 * kWindowSamples + 77);
  for (size_t i = 0; i < sound.size(); ++i) sound[i] = rng.normal() * (i / 6000 % 2 == 0 ? 0.4f : 0.01f);
  std::vector<float> probabilities = speech_probabilities(*vad, sound);
  SegmentOptions options{.min_silence_ms = 32, .speech_pad_ms = 0};
  std::vector<float> sorted = probabilities;
  std::sort(sorted.begin(), sorted.end());
  options.threshold = sorted[sorted.size() / 2];
  options.negative_threshold = options.threshold;
  SpeechIterator iterator(options);
  std::vector<SpeechEvent> expected;
  for (const float p : probabilities) iterator.push(p, expected);
  iterator.flush(sound.size(), expected);
  ASSERT_GT(expected.size(), 3u);

  VadScratch scratch;
  SpeechDetector detector(vad, options);
  for (const size_t piece : {1u, 333u, 511u, 512u, 513u, 5000u, 100000u}) {
    std::vector<SpeechEvent> found;
    for (size_t i = 0; i < sound.size(); i += piece)
      detector.push(std::span(sound).subspan(i, std::min<size_t>(piece, sound.size() - i)), scratch, found);
    EXPECT_EQ(detector.samples(), sound.size());
    EXPECT_EQ(detector.judged(), 50u * kWindowSamples);
    detector.flush(scratch, found);
    EXPECT_EQ(detector.probability(), probabilities.back());
    EXPECT_EQ(found, expected) << "pieces of " << piece;
    detector.reset();
    EXPECT_EQ(detector.samples(), 0u);
  }
}

}  // namespace
}  // namespace syrinx::silero
