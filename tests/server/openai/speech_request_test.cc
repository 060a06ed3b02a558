#include "server/openai/speech_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/families/kokoro/kokoro_family.h"
#include "engine/families/pocket_tts/pocket_family.h"

namespace syrinx::server {
namespace {

using testing::HasSubstr;

SpeechRequest good(std::string_view body, const SpeechLimits& limits = {}) {
  auto request = parse_speech_request(body, limits);
  EXPECT_TRUE(request) << body << ": " << request.error().message;
  return request ? *request : SpeechRequest{};
}

HttpError bad(std::string_view body, const SpeechLimits& limits = {}) {
  auto request = parse_speech_request(body, limits);
  EXPECT_FALSE(request) << body;
  return request ? HttpError{} : request.error();
}

TEST(SpeechRequest, DefaultsAreThoseOfOpenAi) {
  const SpeechRequest request = good(R"({"input": "Hello."})");
  EXPECT_EQ(request.input, "Hello.");
  EXPECT_EQ(request.model + request.voice, "");
  EXPECT_EQ(request.format, AudioFormat::kMp3);
  EXPECT_EQ(request.sample_rate_hz, 24000);
  EXPECT_TRUE(request.knobs.empty() && request.ignored.empty());
  EXPECT_FALSE(request.events || request.whole);
}

TEST(SpeechRequest, EveryField) {
  const SpeechRequest request = good(
      R"({"input": "Hi", "model": "m", "voice": {"id": "v"}, "language": "en-GB", "instructions": "", "response_format": "pcm",
               "speed": 2, "stream_format": "sse", "stream": true, "seed": 7, "sample_rate": 16000, "temperature": 0.5})");
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(request.voice, "v");
  EXPECT_EQ(request.language, "en-GB");
  EXPECT_EQ(request.format, AudioFormat::kPcm);
  EXPECT_EQ(request.knobs.number("speed"), 2);
  EXPECT_TRUE(request.events);
  EXPECT_EQ(request.seed, 7U);
  EXPECT_EQ(request.sample_rate_hz, 16000);
  EXPECT_EQ(request.knobs.number("temperature"), 0.5);
  EXPECT_TRUE(good(R"({"input": "Hi", "stream": false})").whole);
  EXPECT_EQ(good(R"({"input": "Hi", "seed": 18446744073709551615})").seed, UINT64_MAX);
  const SpeechRequest nulls = good(
      R"({"input": "Hi", "voice": null, "speed": null, "response_format": null, "stream": null, "seed": null,
          "stream_format": null, "sample_rate": null, "temperature": null, "instructions": null, "model": null})");
  EXPECT_EQ(nulls.format, AudioFormat::kMp3);
  EXPECT_FALSE(nulls.whole || !nulls.knobs.empty() || !nulls.ignored.empty());
}

TEST(SpeechRequest, MisusesNameFieldAndAllowedValues) {
  const struct {
    const char *field, *body, *words;
  } cases[] = {
      {"input", R"({})", "is missing or empty"},
      {"input", R"({"input": ""})", "is missing or empty"},
      {"input", R"({"input": 3})", "must be the text"},
      {"input", R"({"input": null})", "is missing or empty"},
      {"volume_multiplier", R"({"input": "x", "volume_multiplier": 10.5})", "a number from 0 to 10"},
      {"model", R"({"input": "x", "model": 3})", "must be a text"},
      {"voice", R"({"input": "x", "voice": {"name": "v"}})", "an 'id' and nothing else"},
      {"voice", R"({"input": "x", "voice": {"id": "v", "x": 1}})", "an 'id' and nothing else"},
      {"voice", R"({"input": "x", "voice": []})", "must be a text"},
      {"response_format", R"({"input": "x", "response_format": "aiff"})", "choose mp3, opus, aac, flac, wav or pcm"},
      {"speed", R"({"input": "x", "speed": 0.2})", "a number from 0.25 to 4"},
      {"speed", R"({"input": "x", "speed": "fast"})", "a number from 0.25 to 4"},
      {"stream_format", R"({"input": "x", "stream_format": "ws"})", "choose audio or sse"},
      {"stream", R"({"input": "x", "stream": 1})", "true or false"},
      {"stream", R"({"input": "x", "stream": false, "stream_format": "sse"})", "exclude each other"},
      {"seed", R"({"input": "x", "seed": -1})", "a whole number from 0 to 18446744073709551615"},
      {"seed", R"({"input": "x", "seed": 1.5})", "a whole number from 0 to 18446744073709551615"},
      {"seed", R"({"input": "x", "seed": 18446744073709551616})", "a whole number from 0 to 18446744073709551615"},
      {"sample_rate", R"({"input": "x", "sample_rate": 11025})", "must be 8000"},
      {"sample_rate", R"({"input": "x", "sample_rate": 44100, "response_format": "opus"})", "opus has no 44100"},
      {"temperature", R"({"input": "x", "temperature": 101})", "a number from 0 to 100"},
      {"max_tokens", R"({"input": "x", "max_tokens": 2.5})", "a whole number from 1 to 200"},
      {"noise", R"({"input": "x", "noise": 1})", "true or false"},
      {"language", R"({"input": "x", "language": 1})", "must be a text"},
      {"pitch", R"({"input": "x", "pitch": 3})", "there is no field 'pitch'; a request may have input"},
  };
  for (const auto& each : cases) {
    const HttpError error = bad(each.body);
    EXPECT_EQ(error.status, 400) << each.body;
    EXPECT_EQ(error.param, each.field) << each.body;
    EXPECT_THAT(error.message, HasSubstr(each.words)) << each.body;
  }
}

TEST(SpeechRequest, ForeignFieldsAreIgnoredOrRefused) {
  std::vector<std::string> ignored;
  std::string body = R"({"input": "x")";
  for (const std::string& field : unheeded_speech_fields()) {
    ignored.push_back(field);
    body += fmt::format(R"(, "{}": "Base")", field);
    const std::string begin = fmt::format(R"({{"input": "x", "{}": )", field);
    const HttpError error = bad(begin + "50}", {.strict = true});
    EXPECT_EQ(error.param, field);
    EXPECT_THAT(error.message, HasSubstr(fmt::format("'{}' is not supported: ", field)));
    EXPECT_THAT(error.message, HasSubstr("leave it out"));
    for (const char* const empty : {"null}", R"(""})"})
      EXPECT_THAT(good(begin + empty, {.strict = true}).ignored, testing::IsEmpty());
  }
  EXPECT_THAT(ignored,
              testing::UnorderedElementsAre("max_new_tokens", "ref_audio", "ref_text", "task_type", "lang_code",
                                            "return_download_link", "download_format", "normalization_options"));
  EXPECT_THAT(good(body + "}").ignored, testing::UnorderedElementsAreArray(ignored));
}

TEST(SpeechRequest, EmptyFieldIsAbsent) {
  for (const std::string& field : speech_fields()) {
    if (field == "input") continue;
    for (const char* const empty : {"null", R"("")"}) {
      const SpeechRequest request = good(fmt::format(R"({{"input": "x", "{}": {}}})", field, empty), {.strict = true});
      EXPECT_TRUE(request.knobs.empty() && request.ignored.empty()) << field;
      EXPECT_EQ(request.format, AudioFormat::kMp3) << field;
    }
  }
  good(R"({"input": "x", "unknown": null})");
  EXPECT_EQ(good(R"({"input": "x", "voice": {"id": ""}})").voice, "");
}

TEST(SpeechRequest, FieldsOfKokoroFastApiAreTaken) {
  const SpeechRequest request = good(
      R"-({"input": "x", "voice": "af_bella(2)+af_sky(1)", "stream": true, "download_format": "mp3",
           "return_download_link": false, "lang_code": "a", "volume_multiplier": 0.5,
           "normalization_options": {"normalize": true, "unit_normalization": false}})-");
  EXPECT_EQ(request.voice, "af_bella(2)+af_sky(1)");
  EXPECT_EQ(request.volume, 0.5);
  EXPECT_THAT(request.ignored, testing::ElementsAre("download_format", "lang_code", "normalization_options"));
  EXPECT_THAT(good(R"({"input": "x", "normalization_options": {}, "return_download_link": false})").ignored,
              testing::IsEmpty());
}

TEST(SpeechRequest, OptionsOfOtherFamiliesAreIgnoredOrRefused) {
  const std::string body = R"({"input": "x", "speed": 2, "temperature": 0.5})";
  const SpeechRequest taken = good(body, {.family = &pocket_tts_family()});
  EXPECT_THAT(taken.ignored, testing::ElementsAre("speed"));
  EXPECT_FALSE(taken.knobs.has("speed"));
  EXPECT_EQ(taken.knobs.number("temperature"), 0.5);
  const HttpError error = bad(body, {.family = &kokoro_family(), .strict = true});
  EXPECT_EQ(error.param, "temperature");
  EXPECT_EQ(
      error.message,
      "'temperature' is not supported: Kokoro has no 'temperature'; leave it out, or take pocket-tts or qwen-tts");
  // A value that changes nothing is accepted; one out of range is refused, whichever family would take it.
  EXPECT_THAT(good(R"({"input": "x", "speed": 1.0})", {.family = &pocket_tts_family(), .strict = true}).ignored,
              testing::IsEmpty());
  EXPECT_EQ(bad(R"({"input": "x", "speed": 5})", {.family = &pocket_tts_family()}).param, "speed");
}

TEST(SpeechRequest, BodiesThatAreNone) {
  for (const char* body : {"", "[", "[1]", "3", "{\"input\": \"\xff\"}", "{\"input\": \"x\", \"input\": \"y\"}",
                           R"({"voice": [[[[[[[[[[1]]]]]]]]]]})"}) {
    const HttpError error = bad(body);
    EXPECT_EQ(error.status, 400);
    EXPECT_EQ(error.code, "invalid_json") << body;
  }
  std::string many = R"({"extra": [1)";
  for (int i = 0; i < 1024; ++i) many += ",1";
  EXPECT_THAT(bad(many + "]}").message, HasSubstr("more than 1024 values"));
  EXPECT_THAT(bad(std::string(65537, '\n') + "x").message, HasSubstr("blanks of more than 65536 bytes"));
}

// JavaScript writes half of a pair of surrogates where a text was cut within an emoji.
TEST(SpeechRequest, HalfACharacterIsLeftOut) {
  EXPECT_EQ(good(R"({"input": "Hello there. \ud83d"})").input, "Hello there. ");
  EXPECT_EQ(good(R"({"input": "\ude00 Hello \ud83d\ude00"})").input, " Hello \U0001F600");
  EXPECT_EQ(good(R"({"input": "\ud83d"})").input, "\uFFFD");
  EXPECT_EQ(bad("{\"input\": \"Hello \xf0\x9f\"}").message,
            "byte 17 of the body is not UTF-8; a text may have been cut within a character");
}

TEST(SpeechRequest, LimitsAreThoseOfTheSettings) {
  const SpeechLimits limits{.max_text_characters = 3};
  EXPECT_EQ(good("{\"input\": \"\xc3\xa4\xc3\xb6\xc3\xbc\", \"instructions\": \"sing\"}", limits).input.size(), 6U);
  const HttpError error = bad(R"({"input": "four"})", limits);
  EXPECT_EQ(error.code, "string_above_max_length");
  EXPECT_EQ(error.param, "input");
  EXPECT_THAT(error.message, HasSubstr("4 characters; give at most 3"));
  EXPECT_THAT(bad(R"({"input": "x", "model": ")" + std::string(257, 'm') + "\"}").message, HasSubstr("at most 256"));
}

TEST(HttpMessage, ErrorsAreOpenAiObjects) {
  EXPECT_EQ(
      error_body({.status = 404, .message = "no \"x\"", .param = "model", .code = "model_not_found"}),
      R"({"error":{"message":"no \"x\"","type":"invalid_request_error","param":"model","code":"model_not_found"}})");
  EXPECT_EQ(error_body({.status = 500, .message = "m"}),
            R"({"error":{"message":"m","type":"server_error","param":null,"code":null}})");
  const HttpReply busy = error_reply(http_error({Code::kUnavailable, "full"}));
  EXPECT_EQ(busy.status, 503);
  ASSERT_EQ(busy.headers.size(), 1U);
  EXPECT_EQ(busy.headers[0].name, "Retry-After");
  const std::pair<Code, int> statuses[] = {
      {Code::kInvalidArgument, 400}, {Code::kNotFound, 404},  {Code::kUnsupported, 400}, {Code::kLimitExceeded, 413},
      {Code::kDataLoss, 500},        {Code::kCancelled, 499}, {Code::kIo, 500},          {Code::kInternal, 500}};
  for (const auto& [code, status] : statuses) EXPECT_EQ(http_error({code, "m"}).status, status);
}

TEST(HttpMessage, TargetMayHoldTheHost) {
  const struct {
    const char *target, *host, *path, *query;
  } cases[] = {
      {"/v1/models?a=b", "", "/v1/models", "a=b"},
      {"http://a.example:80/v1/models?a=b", "a.example:80", "/v1/models", "a=b"},
      {"HTTPS://a.example", "a.example", "/", ""},
      {"http://a.example?slots=1", "a.example", "/", "slots=1"},
      {"http://[::1]:8080/ready", "[::1]:8080", "/ready", ""},
      {"/http://a.example/", "", "/http://a.example/", ""},
      {"*", "", "*", ""},
  };
  for (const auto& each : cases) {
    HttpRequest request;
    request.headers = {{"Host", "usual"}};
    EXPECT_TRUE(request.take_target(each.target)) << each.target;
    EXPECT_EQ(request.header("Host"), *each.host == '\0' ? "usual" : each.host) << each.target;
    EXPECT_EQ(request.path, each.path) << each.target;
    EXPECT_EQ(request.query, each.query) << each.target;
  }
}

TEST(HttpMessage, HostMustBePlain) {
  for (const char* target :
       {"http:///health", "http://", "http://@/health", "http://user:word@[::1]:8080/ready",
        "http://a@localhost/health", "http://evil.example#@localhost/health", "http://evil.example\\@localhost/health",
        "http://evil%2eexample/health", "http://a b/health", "http://a,b/health", "http://\xC3\xA4/"})
    EXPECT_FALSE(HttpRequest().take_target(target)) << target;
}

TEST(HttpMessage, PathsAreNormalised) {
  const std::pair<const char*, const char*> cases[] = {{"/v1/%6dodels", "/v1/models"},
                                                       {"/%76%31/models/a%2Fb%2fc", "/v1/models/a%2Fb%2fc"},
                                                       {"/a%2541", "/a%2541"},
                                                       {"/%2E%2e/%7E%5f%2D", "/../~_-"},
                                                       {"/a%20b%c3%a4", "/a%20b%c3%a4"},
                                                       {"/%", "/%25"},
                                                       {"/%6", "/%256"},
                                                       {"/v1/models/%%36%35nglish", "/v1/models/%2565nglish"},
                                                       {"/%2%46", "/%252F"},
                                                       {"/%6g%zz", "/%256g%25zz"}};
  for (const auto& [target, path] : cases) {
    HttpRequest request;
    EXPECT_TRUE(request.take_target(target));
    EXPECT_EQ(request.path, path) << target;
  }
}

TEST(HttpMessage, HeadersAndQueriesAreFoundByName) {
  HttpRequest request;
  request.headers = {{"content-TYPE", "a"}, {"X", "1"}, {"x", "2"}};
  EXPECT_EQ(request.header("Content-Type"), "a");
  EXPECT_EQ(request.header("x"), "1");
  EXPECT_EQ(request.header("Y"), "");
  request.query = "a=1&slots=1&b&=c&&d=";
  EXPECT_EQ(request.query_value("slots"), "1");
  EXPECT_EQ(request.query_value("a"), "1");
  EXPECT_EQ(request.query_value("b"), "");
  EXPECT_EQ(request.query_value("lots"), "");
}

TEST(HttpMessage, PartsOfAnAddressAreDecoded) {
  EXPECT_EQ(percent_decoded("meta%2Fllama3.2%3a1b+x", true), "meta/llama3.2:1b x");
  EXPECT_EQ(percent_decoded("a+b", false), "a+b");
  for (const char* const coded : {"%", "a%2", "%2x", "%x2"}) EXPECT_FALSE(percent_decoded(coded, true)) << coded;
}

}  // namespace
}  // namespace syrinx::server
