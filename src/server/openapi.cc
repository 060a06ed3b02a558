#include "server/openapi.h"

#include <array>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/json.h"
#include "server/openapi_source.h"
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

}  // namespace

std::string openapi_description(std::span<const RoutePolicy> routes) {
  auto description = parse_json(kOpenApiSource, "openapi.json");
  SYRINX_CHECK(description.has_value());
  for (const auto& [source, name] :
       {std::pair(kOpenApiVoices, "openapi_voices.json"), std::pair(kOpenApiDecode, "openapi_decode.json")}) {
    const auto more = parse_json(source, name);
    SYRINX_CHECK(more.has_value());
    add_members(*description, *more);
  }
  Json* const paths = member(*description, "paths");
  SYRINX_CHECK(paths != nullptr);
  for (const RoutePolicy& route : routes) {
    Json* const path = member(*paths, route.path);
    Json* const operation = path == nullptr ? nullptr : member(*path, text::ascii_lower(route.method));
    if (operation != nullptr) complete(*operation, route);
  }
  return description->dump();
}

}  // namespace syrinx::server
