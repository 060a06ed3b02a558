// Entry of a service with one model in GET /v1/models, and a check that openapi.json describes it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/json.h"
#include "server/service.h"

namespace syrinx::server {

inline std::vector<std::string> texts_of(const Json& list) {
  std::vector<std::string> texts;
  for (const Json& each : *list.array()) texts.push_back(*each.string());
  return texts;
}

inline Json answer_of(Service& service, const std::string& path) {
  HttpRequest request;
  request.method = "GET";
  request.path = path;
  return *parse_json(service.answer(request).body, path);
}

inline Json listed_model(Service& service) {
  const Json answer = answer_of(service, "/v1/models");
  EXPECT_EQ(answer.find("data")->array()->size(), 1U);
  Json model = answer.find("data")->array()->front();
  EXPECT_EQ(answer_of(service, "/v1/models/" + *model.find("id")->string()).dump(), model.dump());
  const Json description = answer_of(service, "/openapi.json");
  const Json* schema = &description;
  for (const char* key : {"components", "schemas", "Model"}) schema = schema->find(key);
  std::vector<std::string> fields;
  for (const auto& [key, value] : *model.object()) {
    fields.push_back(key);
    EXPECT_NE(schema->find("properties")->find(key), nullptr) << key;
  }
  EXPECT_THAT(texts_of(*schema->find("required")), testing::UnorderedElementsAreArray(fields));
  return model;
}

}  // namespace syrinx::server
