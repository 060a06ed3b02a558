#include "server/openapi.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/json.h"
#include "engine/families/default_models.h"
#include "engine/recognition/recognition_family.h"
#include "engine/speech/speech_family.h"
#include "server/openapi_source.h"
#include "store/foreign_names.h"
#include "text/unicode.h"

namespace syrinx::server {
namespace {

struct SharedResponse {
  const char *status, *name;
};
// The transport and Service::admit() give these to any request.
constexpr std::array kOfEveryRoute = {SharedResponse{"400", "BadRequest"},    SharedResponse{"403", "Forbidden"},
                                      SharedResponse{"408", "TooLate"},       SharedResponse{"413", "TooLong"},
                                      SharedResponse{"431", "HeaderTooLong"}, SharedResponse{"500", "Fault"},
                                      SharedResponse{"503", "Unavailable"}};
constexpr SharedResponse kOfAKey = {"401", "NoKey"};

Json* member(Json& json, std::string_view key) {
  if (json.object() == nullptr) return nullptr;
  for (auto& [name, value] : *json.object())
    if (name == key) return &value;
  return nullptr;
}

// Part of the description, which is there.
Json& at(Json& json, std::initializer_list<std::string_view> keys) {
  Json* found = &json;
  for (const std::string_view key : keys) {
    found = member(*found, key);
    SYRINX_CHECK(found != nullptr);
  }
  return *found;
}

// A member that both have is an object in both.
void add_members(Json& json, const Json& more) {
  for (const auto& [key, value] : *more.object()) {
    if (Json* const own = member(json, key))
      add_members(*own, value);
    else
      json.set(key, value);
  }
}

// Unless the operation has one of its own.
void add_response(Json& responses, const SharedResponse& response) {
  if (responses.find(response.status) != nullptr) return;
  Json reference;
  reference.set("$ref", std::string("#/components/responses/") + response.name);
  responses.set(response.status, std::move(reference));
}

void complete(Json& operation, const RoutePolicy& route) {
  if (!route.needs_key) operation.set("security", Json::Array());
  Json* const responses = member(operation, "responses");
  SYRINX_CHECK(responses != nullptr);
  for (const SharedResponse& response : kOfEveryRoute) add_response(*responses, response);
  if (route.needs_key) add_response(*responses, kOfAKey);
}

// An option of a family as a field of a request.
Json option_schema(const Knob& knob, const char* title, bool nullable) {
  Json schema;
  const bool is_number = knob.kind == Knob::Kind::kNumber || knob.kind == Knob::Kind::kWhole;
  const char* const type = knob.kind == Knob::Kind::kFlag    ? "boolean"
                           : knob.kind == Knob::Kind::kWhole ? "integer"
                           : is_number                       ? "number"
                                                             : "string";
  schema.set("type", nullable ? Json(Json::Array{type, "null"}) : Json(std::string(type)));
  const auto set_limit = [&](const char* key, double limit) {
    if (!is_number) return;
    if (limit == std::floor(limit))
      schema.set(key, static_cast<int64_t>(limit));
    else
      schema.set(key, limit);
  };
  set_limit("minimum", knob.least);
  set_limit("maximum", knob.most);
  if (knob.kind == Knob::Kind::kText && knob.most > 0) schema.set("maxLength", static_cast<int64_t>(knob.most));
  schema.set("description", fmt::format("{}: {}; ignored with other families", title, knob.help));
  return schema;
}

void add_options(Json& fields) {
  for (const KnobHolder& family : speech_knobs())
    for (const Knob& knob : family.knobs)
      if (knob.use == Knob::Use::kRequest && fields.find(knob.name) == nullptr)
        fields.set(knob.name, option_schema(knob, family.title, /*nullable=*/true));
}

void add_transcription_options(Json& fields) {
  for (const KnobHolder& family : recognition_knobs())
    for (const Knob& knob : family.knobs)
      if (fits_form(knob) && fields.find(knob.name) == nullptr)
        fields.set(knob.name, option_schema(knob, family.title, /*nullable=*/false));
}

}  // namespace

std::string openapi_description(std::span<const RoutePolicy> routes) {
  auto description = parse_json(kOpenApiSource, "openapi.json");
  SYRINX_CHECK(description.has_value());
  for (const auto& [source, name] :
       {std::pair(kOpenApiVoices, "openapi_voices.json"), std::pair(kOpenApiDecode, "openapi_decode.json"),
        std::pair(kOpenApiChat, "openapi_chat.json")}) {
    const auto more = parse_json(source, name);
    SYRINX_CHECK(more.has_value());
    add_members(*description, *more);
  }
  add_options(at(*description, {"components", "schemas", "SpeechRequest", "properties"}));
  for (const char* const request : {"TranscriptionRequest", "TranslationRequest"})
    add_transcription_options(at(*description, {"components", "schemas", request, "properties"}));
  Json& parameters = at(*description, {"components", "parameters"});
  at(parameters, {"ModelId"}).set("example", kDefaultModel);
  at(parameters, {"RecogniserName"}).set("example", std::string(foreign_names("transcription").front()));
  Json& paths = at(*description, {"paths"});
  for (const RoutePolicy& route : routes) {
    Json* const path = member(paths, route.path);
    Json* const operation = path == nullptr ? nullptr : member(*path, text::ascii_lower(route.method));
    if (operation != nullptr) complete(*operation, route);
  }
  return description->dump();
}

}  // namespace syrinx::server
