// Forms, and the recordings in them: what is taken of each, and what is refused how.
#include "server/http/multipart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/families/transducer/transducer_family.h"
#include "engine/families/whisper/whisper_family.h"
#include "server/host/upload_room.h"
#include "server/openai/transcription_request.h"

namespace syrinx::server {
namespace {

using testing::HasSubstr;

constexpr const char* kType = "multipart/form-data; boundary=b";

std::string field(std::string_view name, std::string_view content, std::string_view more = "") {
  return fmt::format("--b\r\nContent-Disposition: form-data; name=\"{}\"{}\r\n\r\n{}\r\n", name, more, content);
}

std::string fault(std::string_view body, const char* type = kType) {
  const auto parts = parse_multipart(type, body);
  return parts ? "" : parts.error().message;
}

TEST(Multipart, FieldsAndFilesInTheirOrder) {
  const std::string body =
      "preamble\r\n" + field("file", "\r\n--\x00 \xff--b", "; filename=\"a \\\"b\\\" c:\\d.wav\"") +
      "--b  \r\ncontent-type: text/plain\r\nCONTENT-DISPOSITION:form-data;name=plain\r\n\r\n\r\n--b--";
  const std::string with_more = body + "epilogue";  // which the parts look into
  const auto parts = parse_multipart("Multipart/Form-Data; charset=x; boundary=\"b\"", with_more);
  ASSERT_TRUE(parts) << parts.error().message;
  ASSERT_EQ(parts->size(), 2U);
  EXPECT_EQ((*parts)[0].name, "file");
  EXPECT_EQ((*parts)[0].file_name, "a \"b\" c:\\d.wav");
  EXPECT_EQ((*parts)[0].content, std::string_view("\r\n--\x00 \xff--b", 9).substr(0, 4));
  EXPECT_EQ((*parts)[1].name, "plain");
  EXPECT_EQ((*parts)[1].content, "");
  EXPECT_TRUE(parse_multipart(kType, "--b--")->empty());
  const auto path = parse_multipart(
      kType, "--b\r\nContent-Disposition: form-data; filename=\"C:\\dir\\\"; name=\"file\"\r\n\r\nx\r\n--b--");
  ASSERT_TRUE(path) << path.error().message;
  EXPECT_EQ((*path)[0].name, "file");
  EXPECT_EQ((*path)[0].file_name, "C:\\dir\\");
}

TEST(Multipart, FaultyFormsAreNamed) {
  EXPECT_EQ(parse_multipart("application/json", "{}").error().status, 415);
  EXPECT_THAT(fault("", "multipart/form-data"), HasSubstr("no boundary of 1 to 70 bytes"));
  EXPECT_THAT(fault("", ("multipart/form-data; boundary=" + std::string(71, 'x')).c_str()), HasSubstr("no boundary"));
  EXPECT_THAT(fault("hello"), HasSubstr("the body holds no boundary"));
  EXPECT_THAT(fault("--bb\r\n"), HasSubstr("followed by something else"));
  EXPECT_THAT(fault("--b\r\nX: y"), HasSubstr("does not end within 4096 bytes"));
  EXPECT_THAT(fault("--b\r\nX: y\r\n\r\nz\r\n--b--"), HasSubstr("has no name"));
  EXPECT_THAT(fault("--b\r\nContent-Disposition: attachment; name=x\r\n\r\nz\r\n--b--"),
              HasSubstr("not a field of a form"));
  EXPECT_THAT(fault(field("model", "tiny").substr(0, 60)), HasSubstr("cut off in the field 'model'"));
  EXPECT_THAT(fault(field(std::string(300, 'n'), "") + "--b--"), HasSubstr("has 300 bytes, more than 256"));
  std::string many;
  for (size_t i = 0; i <= FormLimits::kMaxParts; ++i) many += field("x", "");
  EXPECT_THAT(fault(many + "--b--"), HasSubstr("more than 64 parts"));
}

using Fields = std::vector<std::pair<std::string, std::string>>;

TranscriptionRequestOrError parse(const Fields& fields, bool translated = false, bool strict = false) {
  std::vector<FormPart> parts;
  for (const auto& [name, content] : fields) parts.push_back({.name = name, .content = content});
  return parse_transcription_request(parts, {.translated = translated, .strict = strict});
}

TEST(TranscriptionRequest, EveryField) {
  const Fields fields = {
      {"file", "sound"},
      {"model", "whisper-1"},
      {"language", "en"},
      {"prompt", ""},
      {"response_format", "verbose_json"},
      {"temperature", "0.0"},
      {"timestamp_granularities[]", "word"},
      {"timestamp_granularities[]", "segment"},
      {"stream", "false"},
      {"keywords[]", "Syrinx"},
      {"chunking_strategy",
       R"({"type": "server_vad", "threshold": 0.6, "prefix_padding_ms": 100, "silence_duration_ms": 300})"}};
  const auto request = parse(fields);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->file, "sound");
  EXPECT_EQ(request->model, "whisper-1");
  EXPECT_EQ(request->format, TranscriptionFormat::kVerboseJson);
  EXPECT_EQ(request->options.language, "en");
  EXPECT_TRUE(request->options.words && request->segments && !request->events &&
              !request->options.knobs.flag("translate"));
  EXPECT_EQ(request->options.knobs.texts("boost"), std::vector<std::string>{"Syrinx"});
  EXPECT_EQ(request->options.voice.threshold, 0.6);
  EXPECT_EQ(request->options.voice.speech_pad_ms, 100);
  EXPECT_EQ(request->options.voice.min_silence_ms, 300);
  EXPECT_TRUE(parse({{"file", "x"}}, true)->options.knobs.flag("translate"));
  EXPECT_TRUE(parse({{"file", "x"}, {"stream", "true"}, {"chunking_strategy", "auto"}})->events);
  EXPECT_FALSE(parse({{"file", "x"}})->options.voice.any());
  EXPECT_TRUE(request->options.segment_times);
  for (const char* const format : {"json", "text"})  // which tell no times
    EXPECT_FALSE(parse({{"file", "x"}, {"response_format", format}})->options.segment_times);
  EXPECT_TRUE(parse({{"file", "x"}, {"channels", "separate"}})->options.segment_times);
  EXPECT_TRUE(parse({{"file", "x"}, {"response_format", "srt"}})->options.segment_times);
  const auto apart = parse({{"file", "x"},
                            {"chunking_strategy[type]", "server_vad"},
                            {"chunking_strategy[threshold]", "0.6"},
                            {"chunking_strategy[prefix_padding_ms]", "100"},
                            {"chunking_strategy[silence_duration_ms]", "300"}});
  ASSERT_TRUE(apart) << apart.error().message;
  EXPECT_EQ(apart->options.voice.threshold, 0.6);
  EXPECT_EQ(apart->options.voice.speech_pad_ms, 100);
  EXPECT_EQ(apart->options.voice.min_silence_ms, 300);
}

// LiveKit's client names its one language so.
TEST(TranscriptionRequest, OneExpectedLanguageIsTheLanguage) {
  const auto language = [](Fields fields) {
    fields.emplace_back("file", "x");
    const auto request = parse(fields);
    return request ? request->options.language : request.error().message;
  };
  for (const char* name : {"languages[]", "languages"}) {
    EXPECT_EQ(language({{name, "en"}}), "en");
    EXPECT_EQ(language({{name, ""}, {name, "de"}}), "de");
    EXPECT_EQ(language({{name, "en"}, {name, "de"}}), "");
    EXPECT_EQ(language({{name, "en"}, {"language", "de"}}), "de");
  }
}

TEST(TranscriptionRequest, UnheededHintsAreIgnoredAndNamed) {
  const std::string prompt(300, 'x');
  const std::vector<FormPart> hints = {{.name = "file", .content = "x"},
                                       {.name = "prompt", .content = prompt},
                                       {.name = "temperature", .content = "0.7"},
                                       {.name = "keywords[]", .content = "Syrinx"}};
  const auto request = parse_transcription_request(hints, {.family = &transducer_family()});
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->options.knobs.texts("boost"), std::vector<std::string>{"Syrinx"});
  EXPECT_EQ(request->ignored, (std::vector<std::string>{"prompt", "temperature"}));
  EXPECT_FALSE(request->options.knobs.has("prompt") || request->options.knobs.has("temperature"));
  const std::vector<FormPart> words = {{.name = "file", .content = "x"}, {.name = "keywords[]", .content = "Syrinx"}};
  EXPECT_EQ(parse_transcription_request(words, {.takes_keywords = false})->ignored,
            std::vector<std::string>{"keywords"});
  const std::vector<FormPart> beam = {{.name = "file", .content = "x"}, {.name = "beam", .content = "4"}};
  const std::vector<std::string> lacking = {"beam"};
  const auto narrow = parse_transcription_request(beam, {.family = &transducer_family(), .unheeded = lacking});
  ASSERT_TRUE(narrow) << narrow.error().message;
  EXPECT_EQ(narrow->ignored, lacking);
  EXPECT_FALSE(narrow->options.knobs.has("beam"));
  EXPECT_EQ(parse_transcription_request(beam, {.family = &transducer_family()})->options.knobs.number("beam"), 4);
  EXPECT_TRUE(parse({{"file", "x"}, {"prompt", "x"}}, /*translated=*/true));
  EXPECT_EQ(parse({{"file", "x"}, {"temperature", "7"}}).error().param, "temperature");
  // An answer may lack them, by its type.
  for (const char* name : {"include[]", "include"}) EXPECT_TRUE(parse({{"file", "x"}, {name, "logprobs"}}));
}

// By their names in the families' lists.
TEST(TranscriptionRequest, OptionsOfTheFamilyAreFields) {
  const std::string prompt(16'384, 'x');
  for (const bool translated : {false, true}) {
    const std::vector<FormPart> options = {{.name = "file", .content = "x"},
                                           {.name = "prompt", .content = prompt},
                                           {.name = "temperature", .content = "0.4"},
                                           {.name = "beam", .content = "3"},
                                           {.name = "best_of", .content = "2"},
                                           {.name = "patience", .content = "1.5"},
                                           {.name = "length_penalty", .content = "0.6"}};
    const auto request =
        parse_transcription_request(options, {.translated = translated, .family = &whisper_family(), .strict = true});
    ASSERT_TRUE(request) << request.error().message;
    EXPECT_TRUE(request->ignored.empty());
    const Knobs& knobs = request->options.knobs;
    EXPECT_EQ(knobs.text("prompt")->size(), 16'384u);
    EXPECT_EQ(knobs.number("temperature"), 0.4);
    EXPECT_EQ(knobs.number("beam"), 3);
    EXPECT_EQ(knobs.number("best_of"), 2);
    EXPECT_EQ(knobs.number("patience"), 1.5);
    EXPECT_EQ(knobs.number("length_penalty"), 0.6);
  }
  EXPECT_FALSE(parse({{"file", "x"}, {"temperature", "0"}})->options.knobs.has("temperature"));
}

TEST(TranscriptionRequest, EmptyFieldIsAbsent) {
  for (const bool translated : {false, true}) {
    for (const std::string& name : transcription_fields(translated)) {
      if (name == "file") continue;
      const auto request = parse({{"file", "x"}, {name, ""}, {name, ""}}, translated, /*strict=*/true);
      ASSERT_TRUE(request) << name << ": " << request.error().message;
      EXPECT_TRUE(request->ignored.empty() && request->keywords.empty()) << name;
      EXPECT_EQ(request->format, TranscriptionFormat::kJson) << name;
    }
  }
  EXPECT_EQ(parse({{"file", "x"}, {"language", ""}, {"language", "de"}})->options.language, "de");
  EXPECT_TRUE(parse({{"file", "x"}, {"unknown", ""}}));
  EXPECT_EQ(parse({{"file", "x"}, {"language", "en"}, {"language", "de"}}).error().param, "language");
}

TEST(TranscriptionRequest, KnownSpeakersAreIgnoredAndNamed) {
  const auto request = parse({{"file", "x"}, {"known_speaker_names[]", "ann"}, {"known_speaker_names[]", "bob"}});
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->ignored, std::vector<std::string>{"known_speaker_names"});
}

TEST(TranscriptionRequest, MisusesNameTheField) {
  const auto check = [](Fields fields, const char* param, const char* words, bool translated = false) {
    fields.emplace_back("file", "sound");
    const auto request = parse(fields, translated, /*strict=*/true);
    ASSERT_FALSE(request) << param;
    EXPECT_EQ(request.error().status, 400);
    EXPECT_EQ(request.error().param, param);
    EXPECT_THAT(request.error().message, HasSubstr(words));
  };
  EXPECT_EQ(parse({}).error().param, "file");
  EXPECT_EQ(parse({{"file", ""}}).error().param, "file");
  check({{"file", "a"}}, "file", "given twice");
  check({{"response_format", "docx"}}, "response_format", "choose json, text, srt, vtt or verbose_json");
  check({{"response_format", "diarized_json"}}, "response_format", "tells speakers apart");
  const std::string is_long(300, 'x');  // shorter it would be refused, too: the reason is another one
  check({{"prompt", std::string(16'385, 'x')}}, "prompt", "has 16385 bytes; give at most 16384");
  for (const char* bad : {"17", "-1", "2.5"}) check({{"beam", bad}}, "beam", "a whole number from 0 to 16");
  check({{"best_of", "0"}}, "best_of", "from 1 to 16", /*translated=*/true);
  check({{"patience", "9"}}, "patience", "from 0.1 to 8");
  check({{"length_penalty", "1.1"}}, "length_penalty", "from 0 to 1");
  check({{"beam", "2"}, {"beam", "2"}}, "beam", "given twice");
  check({{"include[]", is_long}}, "include[]", "cannot be included");
  check({{"known_speaker_references[]", is_long}}, "known_speaker_references", "tells speakers apart");
  for (const char* bad : {"x", "1.5", "-1", "nan", "0 "}) check({{"temperature", bad}}, "temperature", "from 0 to 1");
  const std::vector<FormPart> hot = {{.name = "file", .content = "x"}, {.name = "temperature", .content = "0.5"}};
  const auto lacking = parse_transcription_request(hot, {.family = &transducer_family(), .strict = true});
  ASSERT_FALSE(lacking);
  EXPECT_EQ(lacking.error().param, "temperature");
  EXPECT_THAT(lacking.error().message, HasSubstr("leave it out, or have the operator switch strict off"));
  check({{"timestamp_granularities[]", "letter"}}, "timestamp_granularities[]", "word or segment");
  check({{"timestamp_granularities[]", "word"}}, "timestamp_granularities[]", "needs the response_format verbose_json");
  check({{"stream", "maybe"}}, "stream", "true or false");
  check({{"stream", "true"}, {"response_format", "srt"}}, "stream", "in place of srt");
  check({{"known_speaker_names[]", "ann"}}, "known_speaker_names", "tells speakers apart");
  check({{"model", std::string(300, 'm')}}, "model", "has 300 bytes");
  for (const char* bad : {"loud", "{}", "[]", R"({"type": "semantic_vad"})"})
    check({{"chunking_strategy", bad}}, "chunking_strategy", "must be auto");
  check({{"chunking_strategy", R"({"type": "server_vad", "eagerness": 1})"}}, "chunking_strategy",
        "has no 'eagerness'");
  check({{"chunking_strategy", R"({"type": "server_vad", "threshold": "x"})"}}, "chunking_strategy",
        "must be a number");
  check({{"chunking_strategy[type]", "semantic_vad"}}, "chunking_strategy", "must be server_vad");
  for (const char* bad : {"x", "\"1\"", "[1]"})
    check({{"chunking_strategy[threshold]", bad}}, "chunking_strategy", "'threshold' of 'chunking_strategy' must be");
  check({{"chunking_strategy[eagerness]", "1"}}, "chunking_strategy[eagerness]", "there is no field");
  check({{"pitch", "1"}}, "pitch", "there is no field 'pitch'");
  check({{"language", "en"}}, "language", "a request may have file, model, prompt", /*translated=*/true);
  Fields many;
  for (int i = 0; i < 33; ++i) many.emplace_back("keywords[]", "word");
  check(many, "keywords", "more than 32 words");
}

TEST(UploadRoom, GrowsWithBytesAndFollowsHolder) {
  auto room = std::make_unique<UploadRoom>(100, 60);
  auto first = room->begin("a");
  EXPECT_EQ(room->held(), 0U);  // who brings nothing holds nothing
  EXPECT_TRUE(first->fits(60));
  EXPECT_TRUE(first->grow_to(10));
  EXPECT_TRUE(first->grow_to(50));
  EXPECT_TRUE(first->grow_to(20));  // it stays as large
  EXPECT_EQ(room->held(), 50U);
  const auto beside = room->begin("a");
  EXPECT_FALSE(beside->grow_to(11));  // an address's share
  EXPECT_TRUE(beside->grow_to(10));
  const auto second = room->begin("b");
  EXPECT_FALSE(second->fits(41));
  EXPECT_FALSE(second->grow_to(41));
  EXPECT_TRUE(second->grow_to(40));
  EXPECT_EQ(room->held(), 100U);
  first.reset();
  EXPECT_EQ(room->held(), 50U);
  EXPECT_TRUE(beside->grow_to(60));
  room.reset();  // who holds some may live longer
}

}  // namespace
}  // namespace syrinx::server
