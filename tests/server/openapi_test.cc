// openapi.json against what the router and the parsers do.
#include "server/openapi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <set>

#include "base/json.h"
#include "engine/families/default_models.h"
#include "server/decode/batch_request.h"
#include "server/openai/chat_request.h"
#include "server/openai/speech_request.h"
#include "server/openai/transcription_request.h"
#include "server/openai/voice_job.h"
#include "server/service.h"
#include "text/unicode.h"

namespace syrinx::server {
namespace {

const Json& description() {
  static const Json json = *parse_json(openapi_description(Service::policies()), "the description");
  return json;
}

// at(json, {"a", "b"}): the member b of the member a.
const Json& at(const Json& json, std::initializer_list<std::string_view> keys) {
  static const Json nothing;
  const Json* found = &json;
  for (const std::string_view key : keys)
    if (found != nullptr) found = found->find(key);
  return found == nullptr ? nothing : *found;
}

std::vector<std::string> keys_of(const Json& json) {
  std::vector<std::string> keys;
  if (json.object() != nullptr)
    for (const auto& [key, value] : *json.object()) keys.push_back(key);
  return keys;
}

TEST(OpenApi, DescribesEveryRouteAndNoOther) {
  std::set<std::string> routed, described;
  for (const RoutePolicy& route : Service::policies())
    routed.insert(text::ascii_lower(route.method) + " " + route.path);
  for (const auto& [path, operations] : *at(description(), {"paths"}).object())
    for (const std::string& method : keys_of(operations)) described.insert(method + " " + path);
  EXPECT_EQ(described, routed) << "src/server/openapi.json is to describe the table in Service::routes()";
}

TEST(OpenApi, EachOperationHasItsRoutesPolicy) {
  std::set<std::string> names;
  for (const RoutePolicy& route : Service::policies()) {
    SCOPED_TRACE(route.path);
    const Json& operation = at(description(), {"paths", route.path, text::ascii_lower(route.method)});
    const std::string* const name = at(operation, {"operationId"}).string();
    ASSERT_NE(name, nullptr);
    EXPECT_TRUE(names.insert(*name).second) << *name << " is there twice";
    EXPECT_NE(at(operation, {"summary"}).string(), nullptr);
    EXPECT_EQ(operation.find("requestBody") != nullptr, route.has_body);
    EXPECT_EQ(operation.find("security") == nullptr, route.needs_key);
    const std::vector<std::string> statuses = keys_of(at(operation, {"responses"}));
    EXPECT_EQ(std::count(statuses.begin(), statuses.end(), "401"), route.needs_key ? 1 : 0);
    for (const char* status : {"400", "403", "408", "413", "431", "500", "503"})
      EXPECT_EQ(std::count(statuses.begin(), statuses.end(), status), 1) << status;
    EXPECT_TRUE(std::any_of(statuses.begin(), statuses.end(), [](const auto& status) { return status < "300"; }));
    for (const std::string& status : statuses) {
      int number = 0;
      std::from_chars(status.data(), status.data() + status.size(), number);
      EXPECT_STRNE(status_phrase(number), "Unknown") << status;
    }
  }
}

// Every reference of the whole description leads somewhere.
void check_references(const Json& json) {
  if (const std::string* const reference = at(json, {"$ref"}).string()) {
    ASSERT_EQ(reference->substr(0, 13), "#/components/");
    const size_t slash = reference->find('/', 13);
    ASSERT_NE(slash, std::string::npos) << *reference;
    const Json& found =
        at(description(), {"components", reference->substr(13, slash - 13), reference->substr(slash + 1)});
    EXPECT_NE(found.object(), nullptr) << *reference;
  }
  if (json.object() != nullptr)
    for (const auto& [key, value] : *json.object()) check_references(value);
  if (json.array() != nullptr)
    for (const Json& value : *json.array()) check_references(value);
}

TEST(OpenApi, ReferencesLeadSomewhere) { check_references(description()); }

const Json& fields_of(const char* schema) { return at(description(), {"components", "schemas", schema, "properties"}); }

// Values at the schema's limits, and just beyond them.
struct Examples {
  Json::Array within, beyond;
};

Examples examples_of(const Json& schema);

void add_number_examples(const Json& schema, Examples& examples) {
  if (const Json* const least = schema.find("minimum")) {
    examples.within.push_back(*least);
    examples.beyond.push_back(least->whole() != nullptr ? Json(*least->whole() - 1) : Json(*least->real() - 0.01));
  }
  if (const Json* const most = schema.find("maximum")) {
    examples.within.push_back(*most);
    if (*most->natural() < UINT64_MAX) examples.beyond.push_back(*most->natural() + 1);
  }
}

void add_text_examples(const Json& schema, Examples& examples) {
  if (const Json* const longest = schema.find("maxLength")) {
    const auto bytes = static_cast<size_t>(*longest->whole());
    if (schema.find("examples") == nullptr) examples.within.push_back(std::string(bytes, 'x'));
    examples.beyond.push_back(std::string(bytes + 1, 'x'));
  }
  if (const Json* const shortest = schema.find("minLength")) {
    examples.within.push_back(std::string(static_cast<size_t>(*shortest->whole()), 'x'));
    examples.beyond.push_back(std::string(static_cast<size_t>(*shortest->whole() - 1), 'x'));
  }
  if (schema.find("pattern") != nullptr) examples.beyond.push_back("../x");
}

// Two of each, as samples have two bytes.
void add_list_examples(const Json& schema, Examples& examples) {
  const Examples items = examples_of(*schema.find("items"));
  for (const Json& item : items.within) examples.within.push_back(Json::Array(2, item));
  for (const Json& item : items.beyond) examples.beyond.push_back(Json::Array(2, item));
  if (const Json* const most = schema.find("maxItems")) {
    const auto count = static_cast<size_t>(*most->whole());
    examples.within.push_back(Json::Array(count, "x"));
    examples.beyond.push_back(Json::Array(count + 1, "x"));
  }
}

Examples examples_of(const Json& schema) {
  if (const Json* const values = schema.find("enum")) return {.within = *values->array(), .beyond = {"none of them"}};
  Examples examples;
  if (schema.find("default") != nullptr) examples.within.push_back(*schema.find("default"));
  if (const Json* const given = schema.find("examples")) examples.within = *given->array();
  add_number_examples(schema, examples);
  add_text_examples(schema, examples);
  if (schema.find("items") != nullptr) add_list_examples(schema, examples);
  return examples;
}

// `fault` is what the parser says of a good request with that value in the field; "": it takes it.
using Fault = std::function<std::string(const std::string& field, const Json& value)>;

void check_schema(const char* name, const std::vector<std::string>& known, const Fault& fault) {
  SCOPED_TRACE(name);
  const Json& fields = fields_of(name);
  EXPECT_THAT(keys_of(fields), testing::UnorderedElementsAreArray(known));
  EXPECT_EQ(at(description(), {"components", "schemas", name, "additionalProperties"}).dump(), "false");
  EXPECT_THAT(fault("no such field", "x"), testing::HasSubstr("there is no field 'no such field'"));
  for (const auto& [field, schema] : *fields.object()) {
    SCOPED_TRACE(field);
    const Examples examples = examples_of(schema);
    for (const Json& value : examples.within) EXPECT_EQ(fault(field, value), "") << value.dump();
    for (const Json& value : examples.beyond) EXPECT_NE(fault(field, value), "") << value.dump();
  }
}

std::string required_of(const char* name) {
  return at(description(), {"components", "schemas", name, "required"}).dump();
}

std::string speech_fault(const std::string& field, const Json& value, bool strict = false) {
  Json body;
  if (field != "input") body.set("input", "x");
  body.set(field, value);
  const auto request = parse_speech_request(body.dump(), {.strict = strict});
  return request ? "" : request.error().message;
}

TEST(OpenApi, SpeechRequestMatchesItsSchema) {
  check_schema("SpeechRequest", speech_fields(),
               [](const std::string& field, const Json& value) { return speech_fault(field, value); });
  EXPECT_EQ(required_of("SpeechRequest"), "[\"input\"]");
  for (const std::string& field : speech_fields()) {
    SCOPED_TRACE(field);
    EXPECT_EQ(speech_fault(field, Json()) == "", field != "input");
    const std::vector<std::string> ignored = unheeded_speech_fields();
    const bool is_ignored = std::count(ignored.begin(), ignored.end(), field) > 0;
    EXPECT_EQ(speech_fault(field, Json::Array()) == "", is_ignored);
  }
}

// A field of a form once for each member of a list; numbers and the like as they are written.
std::vector<std::string> contents_of(const Json& value) {
  std::vector<std::string> contents;
  if (value.array() != nullptr)
    for (const Json& each : *value.array()) contents.push_back(*each.string());
  else
    contents.push_back(value.string() != nullptr ? *value.string() : value.dump());
  return contents;
}

// `others` are what else the form must have.
std::vector<FormPart> parts_of(const std::string& field, const std::vector<std::string>& contents,
                               const std::vector<FormPart>& others) {
  std::vector<FormPart> parts;
  for (const FormPart& other : others)
    if (other.name != field) parts.push_back(other);
  for (const std::string& content : contents) parts.push_back({.name = field, .content = content});
  return parts;
}

std::string transcription_fault(const std::string& field, const Json& value, bool translated, bool strict = false) {
  std::vector<FormPart> others = {{.name = "file", .content = "sound"}};
  if (field == "timestamp_granularities[]") others.push_back({.name = "response_format", .content = "verbose_json"});
  const std::vector<std::string> contents = contents_of(value);
  const auto request =
      parse_transcription_request(parts_of(field, contents, others), {.translated = translated, .strict = strict});
  return request ? "" : request.error().message;
}

TEST(OpenApi, TranscriptionRequestsMatchTheirSchemas) {
  for (const bool translated : {false, true}) {
    const char* const name = translated ? "TranslationRequest" : "TranscriptionRequest";
    const auto fault = [&](const std::string& field, const Json& value) {
      return transcription_fault(field, value, translated);
    };
    check_schema(name, transcription_fields(translated), fault);
    EXPECT_EQ(required_of(name), "[\"file\"]");
    EXPECT_THAT(fault("model", "x"), "");
  }
  EXPECT_NE(transcription_fault("stream", "maybe", false), "");
  EXPECT_EQ(transcription_fault("stream", true, false), "");
}

TEST(OpenApi, VoiceRequestMatchesItsSchema) {
  const std::vector<FormPart> others = {{.name = "name", .content = "me"},
                                        {.name = "audio_sample", .content = "sound"}};
  const auto fault = [&](const std::string& field, const Json& value) -> std::string {
    const std::vector<std::string> contents = contents_of(value);
    const auto request = parse_voice_request(parts_of(field, contents, others));
    return request ? "" : request.error().message;
  };
  check_schema("VoiceRequest", voice_fields(), fault);
  EXPECT_EQ(required_of("VoiceRequest"), "[\"name\",\"audio_sample\"]");
  EXPECT_THAT(at(fields_of("VoiceRequest"), {"audio_sample", "description"}).dump(),
              testing::HasSubstr("also as `file`"));
  EXPECT_TRUE(parse_voice_request({others[0], {.name = "file", .content = "sound"}}));
}

TEST(OpenApi, BatchRequestMatchesItsSchema) {
  const auto fault = [](const std::string& field, const Json& value) -> std::string {
    Json body;
    if (field != "audio_buffer") body.set("audio_buffer", Json::Array(2, 0));
    body.set(field, value);
    const auto request = decode::parse_batch_request("application/json", body.dump(), 1);
    return request ? "" : request.error().message;
  };
  check_schema("DecodeRequest", decode::batch_fields(), fault);
  EXPECT_EQ(required_of("DecodeRequest"), "[\"audio_buffer\"]");
  for (const std::string& field : decode::batch_fields()) {
    SCOPED_TRACE(field);
    EXPECT_EQ(fault(field, Json()) == "", field != "audio_buffer");
    EXPECT_NE(fault(field, Json::Array()), "");
  }
  const Examples of_query = examples_of(at(description(), {"components", "parameters", "Opaque", "schema"}));
  ASSERT_FALSE(of_query.within.empty() || of_query.beyond.empty());
  for (const Json& value : of_query.within) EXPECT_TRUE(decode::parse_opaque(*value.string()));
  for (const Json& value : of_query.beyond) EXPECT_FALSE(decode::parse_opaque(*value.string()));
}

TEST(OpenApi, ChatRequestMatchesItsSchema) {
  const auto fault = [](const std::string& field, const Json& value) -> std::string {
    Json body, message;
    message.set("role", "user").set("content", "x");
    if (field != "messages") body.set("messages", Json::Array{message});
    body.set(field, value);
    const auto request = parse_chat_request(body.dump(), /*strict=*/false);
    return request ? "" : request.error().message;
  };
  check_schema("ChatRequest", chat_fields(), fault);
  EXPECT_EQ(required_of("ChatRequest"), "[\"messages\"]");
  for (const std::string& field : chat_fields()) EXPECT_EQ(fault(field, Json()) == "", field != "messages") << field;
  for (const std::string& field : unheeded_chat_fields())
    EXPECT_NE(fields_of("ChatRequest").find(field), nullptr) << field;
}

TEST(OpenApi, AnswersNameTheirIgnoredFields) {
  for (const char* const path :
       {"/v1/chat/completions", "/v1/audio/speech", "/v1/audio/transcriptions", "/v1/audio/translations"})
    EXPECT_NE(at(description(), {"paths", path, "post", "responses", "200", "headers", "X-Syrinx-Ignored"}).object(),
              nullptr)
        << path;
}

TEST(OpenApi, ExamplesAreModelsOfTheCatalogue) {
  const auto example = [](const char* name) {
    return at(description(), {"components", "parameters", name, "example"}).dump();
  };
  EXPECT_EQ(example("ModelId"), fmt::format("\"{}\"", kDefaultModel));
  EXPECT_EQ(example("RecogniserName"), "\"whisper-1\"");
}

TEST(OpenApi, UnheededFieldsAreRefusedWhenStrict) {
  for (const std::string& field : unheeded_speech_fields()) {
    EXPECT_NE(fields_of("SpeechRequest").find(field), nullptr) << field;
    EXPECT_THAT(speech_fault(field, "0.5", /*strict=*/true), testing::HasSubstr("is not supported")) << field;
  }
  for (const std::string& field : unheeded_transcription_fields()) {
    EXPECT_NE(fields_of("TranscriptionRequest").find(field), nullptr) << field;
    EXPECT_THAT(transcription_fault(field, "0.5", false, /*strict=*/true),
                testing::ContainsRegex("(is not supported|cannot be included)"))
        << field;
  }
}

}  // namespace
}  // namespace syrinx::server
