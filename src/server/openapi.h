// Answer to GET /openapi.json: openapi.json beside this file, which describes each route, with the parts that a route's
// policy adds to each operation.
#pragma once

#include <span>
#include <string>

namespace syrinx::server {

// Properties of a route besides its handler.
struct RoutePolicy {
  const char* method;  // "GET"
  const char* path;    // "/v1/models"
  bool needs_key, has_body;
};

// In OpenAPI 3.1.  A route that openapi.json does not describe stays out of it: tests/server/openapi_test.cc fails
// then.
std::string openapi_description(std::span<const RoutePolicy> routes);

}  // namespace syrinx::server
