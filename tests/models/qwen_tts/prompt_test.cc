#include "models/qwen_tts/prompt.h"

#include "talker_cases.h"

namespace syrinx::qwen_tts {
namespace {

using namespace test;
using Row = std::array<int32_t, 3>;  // text, codec, frame
constexpr int32_t kNone = PromptPosition::kNone, kVoice = PromptPosition::kVoice;

Config config_of(const std::string& kind) {
  const auto checkpoint = Checkpoint::open(data_folder(kind));
  EXPECT_TRUE(checkpoint.has_value());
  return checkpoint ? checkpoint->config() : Config{};
}

constexpr int32_t kRole[] = {275, 262, 198}, kText[] = {10, 11, 12}, kPast[] = {20, 21};
constexpr int32_t kPad = 277, kBos = 278, kEos = 279;  // of the text side
constexpr int32_t kCodecPad = 32, kCodecBos = 33;      // of the codec side
constexpr int32_t kThink = 38, kNoThink = 39, kBegin = 40, kEnd = 41;

std::vector<Row> rows_of(const Result<Prompt>& prompt) {
  EXPECT_TRUE(prompt.has_value()) << (prompt ? "" : prompt.error().message);
  std::vector<Row> rows;
  if (!prompt) return rows;
  for (const PromptPosition& one : prompt->positions) rows.push_back({one.text, one.codec, one.frame});
  return rows;
}

// Role and control of a codec prefix without its last token.
std::vector<Row> opening(std::vector<int32_t> control) {
  std::vector<Row> rows;
  for (const int32_t id : kRole) rows.push_back({id, kNone, kNone});
  for (size_t i = 0; i < control.size(); ++i) rows.push_back({i + 1 < control.size() ? kPad : kBos, control[i], kNone});
  return rows;
}
std::vector<Row> joined(std::vector<Row> first, const std::vector<Row>& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

PromptRequest request(const char* language = "auto", const char* speaker = "", bool text_first = true) {
  return {.role = kRole, .text = kText, .language = language, .speaker = speaker, .text_first = text_first};
}

TEST(QwenTtsPrompt, TextStandsInFront) {
  const Config config = config_of("custom_voice");
  EXPECT_EQ(rows_of(make_prompt(config, request("English", "Ryan"))),
            joined(opening({kThink, kBegin, 65, kEnd, 99, kCodecPad}), {{10, kCodecPad, kNone},
                                                                        {11, kCodecPad, kNone},
                                                                        {12, kCodecPad, kNone},
                                                                        {kEos, kCodecPad, kNone},
                                                                        {kPad, kCodecBos, kNone}}));
  EXPECT_EQ(rows_of(make_prompt(config, request())).size(), 3u + 4 + 5);
  EXPECT_EQ(make_prompt(config, request())->shared, 3u + 4);
}

TEST(QwenTtsPrompt, TextRunsBeside) {
  const auto prompt = make_prompt(config_of("custom_voice"), request("auto", "", false));
  EXPECT_EQ(rows_of(prompt), joined(opening({kNoThink, kBegin, kEnd, kCodecPad}), {{10, kCodecBos, kNone}}));
  EXPECT_EQ(prompt->trailing, (std::vector<int32_t>{11, 12, kEos}));
  EXPECT_EQ(prompt->shared + 1, prompt->positions.size());
}

TEST(QwenTtsPrompt, TextThatGoesOnHasNoEnd) {
  PromptRequest asked = request("auto", "", false);
  asked.text_ends = false;
  const auto prompt = make_prompt(config_of("custom_voice"), asked);
  EXPECT_FALSE(prompt->ends);
  EXPECT_EQ(prompt->trailing, (std::vector<int32_t>{11, 12}));
  EXPECT_TRUE(make_prompt(config_of("custom_voice"), request("auto", "", false))->ends);
  const std::vector<float> voice(32);
  std::vector<int32_t> codes(3 * 16, 1);
  asked.voice = voice;
  asked.reference_text = kPast;
  asked.reference_codes = codes;
  EXPECT_EQ(least_text(3, 2), 2u);
  EXPECT_EQ(least_text(3, 4), 1u);
  EXPECT_EQ(least_text(0, 0), 1u);
  EXPECT_EQ(make_prompt(config_of("base"), asked)->trailing, std::vector<int32_t>{12});
}

TEST(QwenTtsPrompt, DialectTakesPlaceOfChinese) {
  const Config config = config_of("custom_voice");
  for (const char* const language : {"auto", "Chinese"})
    EXPECT_EQ(rows_of(make_prompt(config, request(language, "eric")))[5][1], 75) << language;
  EXPECT_EQ(rows_of(make_prompt(config, request("english", "eric")))[5][1], 65);
  EXPECT_EQ(rows_of(make_prompt(config, request("chinese", "ryan")))[5][1], 64);
}

TEST(QwenTtsPrompt, InstructionComesFirst) {
  PromptRequest asked = request();
  constexpr int32_t kInstruction[] = {275, 5, 276, 198};
  asked.instruction = kInstruction;
  const std::vector<Row> rows = rows_of(make_prompt(config_of("voice_design"), asked));
  EXPECT_EQ(rows[1], (Row{5, kNone, kNone}));
  EXPECT_EQ(rows[4], (Row{275, kNone, kNone}));
}

TEST(QwenTtsPrompt, ReferenceStandsBesideTexts) {
  const Config config = config_of("base");
  const std::vector<float> voice(32);
  std::vector<int32_t> codes(2 * 16, 1);
  PromptRequest asked = request("auto", "", false);
  asked.voice = voice;
  const std::vector<Row> front = opening({kNoThink, kBegin, kEnd, kVoice, kCodecPad});
  EXPECT_EQ(rows_of(make_prompt(config, asked)), joined(front, {{10, kCodecBos, kNone}}));
  asked.reference_text = kPast;
  asked.reference_codes = codes;
  const auto longer = make_prompt(config, asked);
  EXPECT_EQ(longer->shared, front.size() + 2);
  EXPECT_EQ(rows_of(longer), joined(front, {{20, kCodecBos, kNone}, {21, kNone, 0}, {10, kNone, 1}}));
  EXPECT_EQ(longer->trailing, (std::vector<int32_t>{11, 12, kEos}));
  codes.resize(6 * 16, 2);
  asked.reference_codes = codes;
  const auto shorter = make_prompt(config, asked);
  EXPECT_EQ(rows_of(shorter), joined(front, {{20, kCodecBos, kNone},
                                             {21, kNone, 0},
                                             {10, kNone, 1},
                                             {11, kNone, 2},
                                             {12, kNone, 3},
                                             {kEos, kNone, 4},
                                             {kPad, kNone, 5}}));
  EXPECT_TRUE(shorter->trailing.empty());
  asked.text_first = true;
  const std::vector<Row> first = rows_of(make_prompt(config, asked));
  EXPECT_EQ(make_prompt(config, asked)->shared, front.size() + 2);
  EXPECT_EQ(first.size(), front.size() + 6 + 7);
  EXPECT_EQ(first[front.size() + 5], (Row{kEos, kCodecPad, kNone}));
  EXPECT_EQ(first[front.size() + 6], (Row{kPad, kCodecBos, kNone}));
  EXPECT_EQ(first.back(), (Row{kPad, kNone, 5}));
}

void expect_error(const Config& config, const PromptRequest& asked, Code code, const std::string& words) {
  const auto prompt = make_prompt(config, asked);
  ASSERT_FALSE(prompt.has_value()) << words;
  EXPECT_EQ(prompt.error().code, code) << prompt.error().message;
  EXPECT_NE(prompt.error().message.find(words), std::string::npos) << prompt.error().message;
}

TEST(QwenTtsPrompt, UnknownNamesAreRefused) {
  const Config custom = config_of("custom_voice");
  expect_error(custom, request("klingon"), Code::kInvalidArgument,
               "no language 'klingon'; it has auto, chinese, english");
  expect_error(custom, request("sichuan_dialect"), Code::kInvalidArgument, "no language");
  expect_error(custom, request("auto", "bob"), Code::kInvalidArgument, "no speaker 'bob'; it has serena");
  expect_error(config_of("voice_design"), request("auto", "ryan"), Code::kUnsupported, "has no speakers");
}

TEST(QwenTtsPrompt, ErrorsListThirtyNames) {
  Config custom = config_of("custom_voice");
  custom.speakers.clear();
  custom.languages.clear();
  for (int i = 0; i < 4096; ++i) {
    custom.speakers.push_back({.name = fmt::format("s{}", i), .id = 0, .dialect = ""});
    custom.languages.push_back({.name = fmt::format("l{}", i), .id = 0});
  }
  expect_error(custom, request("auto", "bob"), Code::kInvalidArgument, "it has s0, s1, ");
  expect_error(custom, request("auto", "bob"), Code::kInvalidArgument, "s28, s29 and 4066 more");
  expect_error(custom, request("klingon"), Code::kInvalidArgument, "l27, l28 and 4067 more");
}

TEST(QwenTtsPrompt, TooLittleOfTextThatGoesOnIsRefused) {
  PromptRequest asked = request();
  asked.text_ends = false;
  expect_error(config_of("custom_voice"), asked, Code::kInvalidArgument, "cannot stand before the sound");
  asked.text_first = false;
  const std::vector<float> voice(32);
  const std::vector<int32_t> codes(6 * 16, 1);
  asked.voice = voice;
  asked.reference_text = kPast;
  asked.reference_codes = codes;
  expect_error(config_of("base"), asked, Code::kInvalidArgument, "begins with 5 tokens, not 3");
}

TEST(QwenTtsPrompt, PartsThatDoNotFitAreRefused) {
  const Config custom = config_of("custom_voice"), base = config_of("base");
  const std::vector<float> voice(32);
  const std::vector<int32_t> codes(16, 1), bad(16, 32), strange = {352};
  PromptRequest asked = request();
  asked.text = {};
  expect_error(custom, asked, Code::kInvalidArgument, "no text");
  asked.text = strange;
  expect_error(custom, asked, Code::kInvalidArgument, "tokens that the model, which knows 352");
  asked = request();
  asked.instruction = kText;
  expect_error(custom, asked, Code::kUnsupported, "(custom_voice, 0b6) takes no instruction");
  asked = request();
  asked.voice = voice;
  expect_error(custom, asked, Code::kUnsupported, "no recorded voice");
  expect_error(base, request(), Code::kInvalidArgument, "a voice of 32 numbers, not 0");
  asked.reference_codes = codes;
  expect_error(base, asked, Code::kInvalidArgument, "both its transcript and its codes");
  asked.reference_text = kPast;
  asked.reference_codes = std::span(codes).first(15);
  expect_error(base, asked, Code::kInvalidArgument, "no whole frames of 16");
  asked.reference_codes = bad;
  expect_error(base, asked, Code::kInvalidArgument, "the code 32 where the model knows 32");
}

}  // namespace
}  // namespace syrinx::qwen_tts
