#include "engine/recognition/transcript_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/columns.h"

namespace syrinx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Transcript example() {
  Transcript transcript;
  transcript.language = "en";
  transcript.audio_s = 3725.5;
  transcript.segments = {{.text = "She sells <sea> shells & more.",
                          .start_s = 0.5,
                          .end_s = 2.25,
                          .confidence = 0.9f,
                          .tokens = {5, 17},
                          .words = {{"She", 0.5, 0.75, 0.99f},
                                    {"sells", 0.75, 1.0, 0.5f},
                                    {"<sea>", 1.0, 1.25, 1},
                                    {"shells", 1.25, 1.5, 1},
                                    {"&", 1.5, 1.75, 1},
                                    {"more.", 2.0, 2.25, 0.25f}}},
                         {.text = "Über den Fluss.",
                          .start_s = 3723.0004,
                          .end_s = 3725.4996,
                          .confidence = 0.5f,
                          .tokens = {},
                          .words = {}}};
  return transcript;
}

TEST(TranscriptFormat, Text) {
  EXPECT_EQ(format_transcript(example(), TranscriptFormat::kText, TranscriptTimes::kNone),
            "She sells <sea> shells & more. Über den Fluss.\n");
  EXPECT_EQ(format_transcript(example(), TranscriptFormat::kText, TranscriptTimes::kSegment),
            "[00:00:00.500 --> 00:00:02.250] She sells <sea> shells & more.\n"
            "[01:02:03.000 --> 01:02:05.500] Über den Fluss.\n");
  EXPECT_THAT(format_transcript(example(), TranscriptFormat::kText, TranscriptTimes::kWord),
              HasSubstr("[00:00:00.750 --> 00:00:01.000] sells\n[00:00:01.000 --> 00:00:01.250] <sea>\n"));
}

TEST(TranscriptFormat, SubRip) {
  EXPECT_EQ(format_transcript(example(), TranscriptFormat::kSrt, TranscriptTimes::kSegment),
            "1\n00:00:00,500 --> 00:00:02,250\nShe sells <sea> shells & more.\n\n"
            "2\n01:02:03,000 --> 01:02:05,500\nÜber den Fluss.\n\n");
  EXPECT_THAT(format_transcript(example(), TranscriptFormat::kSrt, TranscriptTimes::kWord),
              HasSubstr("2\n00:00:00,750 --> 00:00:01,000\nsells\n\n3\n"));
}

TEST(TranscriptFormat, WebVtt) {
  EXPECT_EQ(format_transcript(example(), TranscriptFormat::kVtt, TranscriptTimes::kSegment),
            "WEBVTT\n\n"
            "00:00:00.500 --> 00:00:02.250\nShe sells &lt;sea&gt; shells &amp; more.\n\n"
            "01:02:03.000 --> 01:02:05.500\nÜber den Fluss.\n\n");
}

TEST(TranscriptFormat, Json) {
  EXPECT_EQ(
      format_transcript(example(), TranscriptFormat::kJson, TranscriptTimes::kWord),
      R"({"language":"en","audio_seconds":3725.5,"text":"She sells <sea> shells & more. Über den Fluss.","segments":[)"
      R"({"text":"She sells <sea> shells & more.","start_s":0.5,"end_s":2.25,"confidence":0.9,"tokens":[5,17],"words":[)"
      R"({"word":"She","start_s":0.5,"end_s":0.75,"confidence":0.99},)"
      R"({"word":"sells","start_s":0.75,"end_s":1.0,"confidence":0.5},)"
      R"({"word":"<sea>","start_s":1.0,"end_s":1.25,"confidence":1.0},)"
      R"({"word":"shells","start_s":1.25,"end_s":1.5,"confidence":1.0},)"
      R"({"word":"&","start_s":1.5,"end_s":1.75,"confidence":1.0},)"
      R"({"word":"more.","start_s":2.0,"end_s":2.25,"confidence":0.25}]},)"
      R"({"text":"Über den Fluss.","start_s":3723.0,"end_s":3725.5,"confidence":0.5,"tokens":[],"words":[]}]})"
      "\n");
  const RecognitionEvent event{
      .segment = 3,
      .is_final = true,
      .result = {.text = "Yes.", .start_s = 1, .end_s = 2, .confidence = 1, .tokens = {}, .words = {}},
      .stable_bytes = 4,
      .latency_ms = 12.3456,
      .reason = EndpointReason::kEndOfUtterance};
  EXPECT_EQ(
      to_json(event, TranscriptTimes::kSegment).dump(),
      R"({"segment":3,"final":true,"reason":"eou","stable_bytes":4,"latency_ms":12.346,"text":"Yes.","start_s":1.0,"end_s":2.0,)"
      R"("confidence":1.0,"tokens":[]})");
}

// A line, or an object in its word, for each token; subtitles have a cue a word.
TEST(TranscriptFormat, Tokens) {
  Transcript transcript;
  transcript.segments = {{.text = "Hello.",
                          .start_s = 0.5,
                          .end_s = 1,
                          .confidence = 0.5f,
                          .tokens = {7, 8},
                          .words = {{.text = "Hello.",
                                     .start_s = 0.5,
                                     .end_s = 1,
                                     .confidence = 0.25f,
                                     .timed_tokens = {{7, "Hello", 0.5, 0.75, 0.25f}, {8, ".", 0.7504, 1, 0.75f}}}}}};
  EXPECT_EQ(format_transcript(transcript, TranscriptFormat::kText, TranscriptTimes::kToken),
            "[00:00:00.500 --> 00:00:00.750] Hello\n[00:00:00.750 --> 00:00:01.000] .\n");
  EXPECT_EQ(to_json(transcript.segments[0].words[0]).dump(),
            R"({"word":"Hello.","start_s":0.5,"end_s":1.0,"confidence":0.25,"tokens":[)"
            R"({"id":7,"text":"Hello","start_s":0.5,"end_s":0.75,"confidence":0.25},)"
            R"({"id":8,"text":".","start_s":0.75,"end_s":1.0,"confidence":0.75}]})");
  EXPECT_EQ(make_cues(transcript.segments[0], TranscriptTimes::kToken).size(), 1u);
}

// Where a piece of a recording maps to two places, nothing ends before it begins, and tokens stay in their words.
TEST(Transcript, TimesAreMappedAll) {
  TranscriptSegment segment{.text = "a", .start_s = 1, .end_s = 3, .tokens = {}, .words = {}};
  segment.words = {{.text = "a", .start_s = 1, .end_s = 2, .timed_tokens = {{1, "a", 2, 2, 1}}}};
  map_times(
      segment, [](double s) { return s >= 2 ? s + 10 : s; }, [](double s) { return s > 2 ? s + 10 : s; });
  EXPECT_EQ(segment.end_s, 13);
  EXPECT_EQ(segment.words[0].end_s, 2);
  EXPECT_EQ(segment.words[0].timed_tokens[0].start_s, 2);
  EXPECT_EQ(segment.words[0].timed_tokens[0].end_s, 2);
}

TEST(TranscriptFormat, NothingHeard) {
  const Transcript nothing;
  EXPECT_EQ(format_transcript(nothing, TranscriptFormat::kText, TranscriptTimes::kNone), "\n");
  EXPECT_EQ(format_transcript(nothing, TranscriptFormat::kSrt, TranscriptTimes::kSegment), "");
  EXPECT_EQ(format_transcript(nothing, TranscriptFormat::kVtt, TranscriptTimes::kSegment), "WEBVTT\n\n");
  EXPECT_EQ(format_transcript(nothing, TranscriptFormat::kJson, TranscriptTimes::kNone),
            "{\"language\":\"\",\"audio_seconds\":0.0,\"text\":\"\",\"segments\":[]}\n");
}

Transcript words_at(const std::vector<std::pair<double, double>>& times, double audio_s) {
  Transcript transcript{.language = "en", .audio_s = audio_s, .segments = {}};
  for (const auto& [start_s, end_s] : times)
    transcript.segments.push_back(
        {.text = "a", .start_s = start_s, .end_s = end_s, .tokens = {}, .words = {{"a", start_s, end_s, 1}}});
  return transcript;
}

// Speakers may speak at once: cues of one move none of the other.
TEST(TranscriptFormat, ChannelsAreNamed) {
  Transcript call = words_at({{1, 3}, {2, 2.5}}, 5);
  call.segments[0].channel = 0;
  call.segments[1].channel = 1;
  EXPECT_EQ(format_transcript(call, TranscriptFormat::kText, TranscriptTimes::kNone), "channel 0: a\nchannel 1: a\n");
  EXPECT_EQ(format_transcript(call, TranscriptFormat::kVtt, TranscriptTimes::kNone),
            "WEBVTT\n\n00:00:01.000 --> 00:00:03.000\n<v channel 0>a\n\n"
            "00:00:02.000 --> 00:00:02.500\n<v channel 1>a\n\n");
  EXPECT_THAT(format_transcript(call, TranscriptFormat::kSrt, TranscriptTimes::kNone), HasSubstr("\n[1] a\n"));
  EXPECT_THAT(to_json(call.segments[1], TranscriptTimes::kNone).dump(), HasSubstr(R"("channel":1)"));
}

TEST(TranscriptFormat, WarningsAreInJsonAlone) {
  const Transcript cut{.language = "en", .audio_s = 1, .segments = {}, .warnings = {"'me' is cut off"}};
  EXPECT_THAT(format_transcript(cut, TranscriptFormat::kJson, TranscriptTimes::kNone),
              HasSubstr(R"("segments":[],"warnings":["'me' is cut off"]})"));
  EXPECT_EQ(format_transcript(cut, TranscriptFormat::kText, TranscriptTimes::kNone), "\n");
}

TEST(TranscriptFormat, TimesRoundAndNeverGoBelowZero) {
  EXPECT_EQ(srt_time(0), "00:00:00,000");
  EXPECT_EQ(srt_time(-1), "00:00:00,000");
  EXPECT_EQ(srt_time(59.9996), "00:01:00,000");
  EXPECT_EQ(vtt_time(3600 * 123 + 60 * 4 + 5.0625), "123:04:05.063");
}

// Words without a blank between them stay together in a cue; with a cue a word each stands alone.
TEST(TranscriptFormat, WordsWithoutABlankStayTogether) {
  TranscriptSegment segment;
  segment.text = "An ill-disposed man.";
  segment.words = {{.text = "An", .start_s = 0, .end_s = 0.5},
                   {.text = "ill", .start_s = 0.5, .end_s = 1},
                   {.text = "-disposed", .start_s = 1, .end_s = 1.5, .spaced = false},
                   {.text = "man.", .start_s = 1.5, .end_s = 2}};
  const std::vector<Cue> whole = make_cues(segment, TranscriptTimes::kSegment, {});
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].lines, (std::vector<std::string>{"An ill-disposed man."}));
  EXPECT_EQ(make_cues(segment, TranscriptTimes::kWord, {}).size(), 4u);
}

// Two lines of 42 columns, seven seconds; a cue rather ends with a phrase, its lines are alike.
TEST(TranscriptFormat, LongSegmentsBecomeSeveralCues) {
  TranscriptSegment segment;
  segment.text =
      "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, "
      "it "
      "was the epoch of belief, it was the epoch of incredulity";
  segment.start_s = 10;
  segment.end_s = 26.4;  // 0.1 s a letter
  const std::vector<Cue> cues = make_cues(segment, TranscriptTimes::kSegment);
  std::string all;
  for (size_t i = 0; i < cues.size(); ++i) {
    EXPECT_LE(cues[i].lines.size(), 2u);
    EXPECT_LE(cues[i].end_s - cues[i].start_s, 7.0);
    EXPECT_GE(cues[i].start_s, i == 0 ? 10 : cues[i - 1].end_s);
    EXPECT_LT(cues[i].start_s, cues[i].end_s);
    for (const std::string& line : cues[i].lines) {
      EXPECT_LE(text::columns(line), 42u);
      all += (all.empty() ? "" : " ") + line;
    }
    EXPECT_TRUE(i + 1 == cues.size() || cues[i].lines.back().ends_with(","));
  }
  EXPECT_EQ(all, segment.text);
  EXPECT_THAT(cues.front().lines, ElementsAre("It was the best of times,", "it was the worst of times,"));
  EXPECT_DOUBLE_EQ(cues.front().start_s, 10);
  EXPECT_NEAR(cues.back().end_s, 26.4, 1e-9);
}

// Their times are those of the words, and no cue lasts through a pause.
TEST(TranscriptFormat, CuesEndAtPauses) {
  TranscriptSegment segment{
      .text = "Yes, I think so.", .start_s = 1, .end_s = 30, .confidence = 1, .tokens = {}, .words = {}};
  segment.words = {{"Yes,", 1, 1.5, 1}, {"I", 24, 24.2, 1}, {"think", 25.2, 25.5, 1}, {"so.", 25.5, 26, 1}};
  const std::vector<Cue> cues = make_cues(segment, TranscriptTimes::kNone);
  ASSERT_EQ(cues.size(), 2u);
  EXPECT_EQ(cues[0], (Cue{1, 1.5, {"Yes,"}}));
  EXPECT_EQ(cues[1], (Cue{24, 26, {"I think so."}}));
  for (TranscriptWord& word : segment.words) word.spaced = false;  // as of a language without blanks
  EXPECT_EQ(make_cues(segment, TranscriptTimes::kNone).front().end_s, 1.5);
}

// WebVTT wants an end behind the start; neighbours are moved where there is no room, those that last stay.
TEST(TranscriptFormat, CuesLastAndDoNotOverlap) {
  const auto expect = [](const Transcript& transcript, const std::vector<std::pair<double, double>>& times) {
    std::string expected = "WEBVTT\n\n";
    for (const auto& [start_s, end_s] : times)
      expected += fmt::format("{} --> {}\na\n\n", vtt_time(start_s), vtt_time(end_s));
    EXPECT_EQ(format_transcript(transcript, TranscriptFormat::kVtt, TranscriptTimes::kWord), expected);
  };
  expect(words_at({{1, 1.5}, {1.5, 1.5}, {2, 2.01}}, 5), {{1, 1.5}, {1.5, 1.6}, {2, 2.01}});
  expect(words_at({{1, 1}, {1.06, 1.5}}, 5), {{1, 1.06}, {1.06, 1.5}});
  expect(words_at({{1, 1}, {1, 1}, {1, 1.5}}, 5), {{1, 1.1}, {1.1, 1.2}, {1.2, 1.5}});
  expect(words_at({{1, 1}, {1.01, 1.5}}, 5), {{1, 1.1}, {1.1, 1.5}});
  expect(words_at({{1, 1.0004}, {2, 3}}, 5), {{1, 1.1}, {2, 3}});
  // None ends behind the sound.
  expect(words_at({{4, 5}, {5, 5}, {5, 5}}, 5), {{4, 4.8}, {4.8, 4.9}, {4.9, 5}});
  expect(words_at({{0.002, 0.002}, {0.002, 0.002}}, 0.002), {{0, 0.001}, {0.001, 0.002}});
  std::vector<Cue> next = {{.start_s = 2, .end_s = 2, .lines = {"a"}}};
  make_cues_last(next, 2.5, 9);  // of a stream
  EXPECT_EQ(next[0].start_s, 2.5);
  EXPECT_EQ(next[0].end_s, 2.6);
}

TEST(TranscriptFormat, CuesWithoutRoomKeepTheirOrder) {
  const auto last = [](std::vector<std::pair<double, double>> times, double from_s, double until_s) {
    std::vector<Cue> cues;
    for (const auto& [start_s, end_s] : times) cues.push_back({.start_s = start_s, .end_s = end_s, .lines = {"a"}});
    make_cues_last(cues, from_s, until_s);
    for (size_t i = 0; i < cues.size(); ++i) times[i] = {cues[i].start_s, cues[i].end_s};
    return times;
  };
  using Times = std::vector<std::pair<double, double>>;
  EXPECT_EQ(last({{1, 1}, {1, 1}}, 1, 1), (Times{{1, 1.001}, {1.001, 1.002}}));
  EXPECT_EQ(last({{0, 0}, {0, 0}, {0, 0}}, 0, 0.001), (Times{{0, 0.001}, {0.001, 0.002}, {0.002, 0.003}}));
  EXPECT_EQ(last({{2, 3}}, 4, 3), (Times{{4, 4.001}}));  // a stream's, behind its last one
}

TEST(TranscriptFormat, NoCueIsLeftWithAWord) {
  TranscriptSegment segment;
  for (int i = 0; i < 18; ++i) segment.text += "letters ";  // one more than two lines hold
  segment.text += "end";
  segment.end_s = 8;
  const std::vector<Cue> cues = make_cues(segment, TranscriptTimes::kSegment);
  ASSERT_EQ(cues.size(), 2u);
  EXPECT_GE(cues[1].end_s - cues[1].start_s, 3.0);
}

TEST(TranscriptFormat, TextWithoutBlanksIsCutByItsColumns) {
  TranscriptSegment segment;
  for (int i = 0; i < 60; ++i) segment.text += "語";
  segment.end_s = 6;
  const std::vector<Cue> cues = make_cues(segment, TranscriptTimes::kSegment);
  ASSERT_EQ(cues.size(), 2u);
  size_t columns = 0;
  for (const Cue& cue : cues)
    for (const std::string& line : cue.lines) {
      EXPECT_LE(text::columns(line), 42u);
      columns += text::columns(line);
    }
  EXPECT_EQ(columns, 120u);
  EXPECT_DOUBLE_EQ(cues[1].start_s, cues[0].end_s);
}

TEST(Columns, CountsTerminalColumns) {
  EXPECT_EQ(text::columns("plain"), 5u);
  EXPECT_EQ(text::columns("Ünïcode"), 7u);
  EXPECT_EQ(text::columns("e\xcc\x81"), 1u);  // a letter and its accent
  EXPECT_EQ(text::columns("日本"), 4u);
  EXPECT_EQ(text::tail_within("日本語", 5), "本語");
  EXPECT_EQ(text::bytes_within("日本語", 5), 6u);
  EXPECT_EQ(text::tail_within("short", 80), "short");
  EXPECT_EQ(text::tail_within("short", 0), "");
  EXPECT_THAT(text::words_within(" two  wonderful\nwords ", 6), ElementsAre("two", "wonder", "ful", "words"));
}

TEST(TranscriptFormat, Names) {
  for (const char* name : {"text", "json", "srt", "vtt"}) EXPECT_TRUE(parse_transcript_format(name));
  EXPECT_EQ(parse_transcript_format("doc").error().code, Code::kInvalidArgument);
  EXPECT_EQ(*parse_transcript_times("word"), TranscriptTimes::kWord);
  EXPECT_EQ(*parse_transcript_times("token"), TranscriptTimes::kToken);
  EXPECT_EQ(parse_transcript_times("letter").error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace syrinx
