// openapi.json against what the router and the parsers do.
#include "server/openapi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/json.h"
#include "server/service.h"
#include "server/speech_request.h"
#include "text/unicode.h"

namespace syrinx::server {
namespace {

const Json& description() {
  static const Json json = *parse_json(openapi_description(Service::policies()), "the description");
  return json;
}

// Of "a/b": the member b of the member a.
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

// What the parser says of `{"input": "x", FIELD: VALUE}`; "": it takes it.
std::string fault(const std::string& field, const Json& value) {
  Json body;
  if (field != "input") body.set("input", "x");
  body.set(field, value);
  const auto request = parse_speech_request(body.dump(), {});
  return request ? "" : request.error().message;
}

const Json& speech_fields_described() {
  return at(description(), {"components", "schemas", "SpeechRequest", "properties"});
}

TEST(OpenApi, HasTheFieldsOfASpeechRequest) {
  EXPECT_THAT(keys_of(speech_fields_described()), testing::UnorderedElementsAreArray(speech_fields()));
  EXPECT_EQ(at(description(), {"components", "schemas", "SpeechRequest", "required"}).dump(), "[\"input\"]");
}

// Values at the schema's limits, and just beyond them.
struct Examples {
  Json::Array within, beyond;
};

Examples examples_of(const Json& schema) {
  if (const Json* const values = schema.find("enum")) return {.within = *values->array(), .beyond = {"none of them"}};
  Examples examples{.within = {}, .beyond = {Json::Array()}};
  if (schema.find("default") != nullptr) examples.within.push_back(*schema.find("default"));
  if (const Json* const least = schema.find("minimum")) {
    examples.within.push_back(*least);
    examples.beyond.push_back(least->whole() != nullptr ? Json(*least->whole() - 1) : Json(*least->real() - 0.01));
  }
  if (const Json* const most = schema.find("maximum")) {
    examples.within.push_back(*most);
    if (*most->whole() < INT64_MAX) examples.beyond.push_back(*most->whole() + 1);
  }
  if (const Json* const longest = schema.find("maxLength")) {
    const auto bytes = static_cast<size_t>(*longest->whole());
    examples.within.push_back(std::string(bytes, 'x'));
    examples.beyond.push_back(std::string(bytes + 1, 'x'));
  }
  return examples;
}

TEST(OpenApi, TheSpeechRequestTakesWhatIsDescribed) {
  for (const auto& [field, schema] : *speech_fields_described().object()) {
    SCOPED_TRACE(field);
    const Examples examples = examples_of(schema);
    for (const Json& value : examples.within) EXPECT_EQ(fault(field, value), "") << value.dump();
    for (const Json& value : examples.beyond) EXPECT_NE(fault(field, value), "") << value.dump();
    EXPECT_EQ(fault(field, Json()) == "", field != "input");
  }
}

}  // namespace
}  // namespace syrinx::server
