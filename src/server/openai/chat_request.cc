#include "server/openai/chat_request.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "base/in_quotes.h"
#include "base/json.h"
#include "server/http/json_fields.h"
#include "server/openai/chat_messages.h"
#include "text/unicode.h"

namespace syrinx::server {
namespace {

constexpr size_t kMaxDepth = 16;  // a tool's schema, which is ignored
constexpr size_t kMaxValues = 1 << 16, kMaxBareBytes = 64 << 10;
constexpr double kMaxTokens = 1 << 30;

Checked take_whole(const Json& value, const char* field, double min, double max, double& number) {
  auto taken = take_number(value, field, min, max, number);
  if (taken && number != std::floor(number)) return refuse(field, "'{}' must be a whole number", field);
  return taken;
}

Checked take_sampling(const Json& value, const char* field, double min, double max, std::optional<float>& into) {
  double number = 0;
  auto taken = take_number(value, field, min, max, number);
  if (taken) into = static_cast<float>(number);
  return taken;
}

Checked take_temperature(const Json& value, CompletionRequest& request) {
  return take_sampling(value, "temperature", 0, ChatSampling::kMaxTemperature, request.chat.sampling.temperature);
}

// OpenAI's range begins with 0, with which only the likeliest token is left.
Checked take_top_p(const Json& value, CompletionRequest& request) {
  auto taken = take_sampling(value, "top_p", 0, 1, request.chat.sampling.top_p);
  if (taken) request.chat.sampling.top_p = std::max(*request.chat.sampling.top_p, std::numeric_limits<float>::min());
  return taken;
}

Checked take_min_p(const Json& value, CompletionRequest& request) {
  return take_sampling(value, "min_p", 0, 1, request.chat.sampling.min_p);
}

// -1 stands for all, as with vLLM.
Checked take_top_k(const Json& value, CompletionRequest& request) {
  double number = 0;
  auto taken = take_whole(value, "top_k", -1, ChatSampling::kMaxTopK, number);
  if (taken) request.chat.sampling.top_k = std::max(static_cast<int>(number), 0);
  return taken;
}

Checked take_penalty(const Json& value, const char* name, CompletionRequest& request) {
  return take_sampling(value, name, 1 / ChatSampling::kMaxPenalty, ChatSampling::kMaxPenalty,
                       request.chat.sampling.repetition_penalty);
}

// Also one that is written as a real number.
std::optional<uint64_t> seed_in(const Json& value) {
  if (const auto seed = value.natural()) return seed;
  if (value.whole() != nullptr) return static_cast<uint64_t>(*value.whole());
  if (value.real() == nullptr || *value.real() != std::floor(*value.real())) return std::nullopt;
  const double number = *value.real();
  if (number < -0x1p63 || number >= 0x1p64) return std::nullopt;
  return number < 0 ? static_cast<uint64_t>(static_cast<int64_t>(number)) : static_cast<uint64_t>(number);
}

Checked take_seed(const Json& value, CompletionRequest& request) {
  const auto seed = seed_in(value);
  if (!seed) return refuse("seed", "'seed' must be a whole number from -2^63 to 2^64 - 1");
  request.chat.seed = *seed;
  request.has_seed = true;
  return {};
}

Checked take_stop(const Json& value, CompletionRequest& request) {
  const Json::Array one = {value};
  const Json::Array& stops = value.array() != nullptr ? *value.array() : one;
  if (stops.size() > ChatRequest::kMaxStops)
    return refuse("stop", "'stop' has {} texts; give at most {}", stops.size(), ChatRequest::kMaxStops);
  for (const Json& stop : stops) {
    if (stop.string() == nullptr) return refuse("stop", "'stop' must be a text or a list of texts");
    if (stop.string()->empty() || stop.string()->size() > ChatRequest::kMaxStopBytes)
      return refuse("stop", "a text of 'stop' has {} bytes; give 1 to {}", stop.string()->size(),
                    ChatRequest::kMaxStopBytes);
    request.chat.stops.push_back(*stop.string());
  }
  return {};
}

// The smaller one of two limits holds.  -1 stands for none, as with llama.cpp and Ollama.
Checked take_limit(const Json& value, const char* field, CompletionRequest& request) {
  double number = 0;
  if (take_number(value, field, -1, -1, number)) return {};
  auto taken = take_whole(value, field, 1, kMaxTokens, number);
  const auto tokens = static_cast<size_t>(number);
  size_t& limit = request.chat.max_tokens;
  if (taken) limit = limit == 0 ? tokens : std::min(limit, tokens);
  return taken;
}

Checked take_n(const Json& value, CompletionRequest& /*request*/) {
  double number = 0;
  if (!take_number(value, "n", 1, 1, number))
    return refuse("n", "'n' must be 1; ask several times for several answers");
  return {};
}

Checked take_stream_options(const Json& value, CompletionRequest& request) {
  if (value.object() == nullptr) return refuse("stream_options", "'stream_options' must be an object");
  const Json* const usage = value.find("include_usage");
  return usage != nullptr ? take_flag(*usage, "stream_options", request.includes_usage) : Checked();
}

struct Field {
  const char* name;
  Checked (*take)(const Json& value, CompletionRequest& request);
};
constexpr std::array kFields = {
    Field{"messages", [](const Json& value, auto& request) { return take_messages(value, request.chat.messages); }},
    Field{"model", [](const Json& value, auto& request) { return take_text(value, "model", request.model); }},
    Field{"temperature", take_temperature},
    Field{"top_p", take_top_p},
    Field{"top_k", take_top_k},
    Field{"min_p", take_min_p},
    Field{"repetition_penalty",
          [](const Json& value, auto& request) { return take_penalty(value, "repetition_penalty", request); }},
    Field{"repeat_penalty",
          [](const Json& value, auto& request) { return take_penalty(value, "repeat_penalty", request); }},
    Field{"seed", take_seed},
    Field{"stop", take_stop},
    Field{"max_tokens", [](const Json& value, auto& request) { return take_limit(value, "max_tokens", request); }},
    Field{"max_completion_tokens",
          [](const Json& value, auto& request) { return take_limit(value, "max_completion_tokens", request); }},
    Field{"n", take_n},
    Field{"stream", [](const Json& value, auto& request) { return take_flag(value, "stream", request.stream); }},
    Field{"stream_options", take_stream_options},
};

// Fields of other servers that no model here has.  One with a range is checked all the same, and asks for nothing at
// its neutral value.
struct ForeignField {
  const char *name, *reason;
  double min = 0, max = -1, neutral = 0;
  bool is_ranged() const { return min <= max; }
};
constexpr const char* kOneWay = "the repetition_penalty is the only one";
constexpr const char* kNoTools = "no model of this server calls tools";
constexpr const char* kPlainText = "answers are plain text";
constexpr std::array kForeignFields = {
    ForeignField{"presence_penalty", kOneWay, -2, 2},
    ForeignField{"frequency_penalty", kOneWay, -2, 2},
    ForeignField{"logit_bias", "tokens are drawn as the model weighs them"},
    ForeignField{"logprobs", "answers come without probabilities"},
    ForeignField{"top_logprobs", "answers come without probabilities", 0, 20},
    ForeignField{"tools", kNoTools},
    ForeignField{"tool_choice", kNoTools},
    ForeignField{"parallel_tool_calls", kNoTools},
    ForeignField{"functions", kNoTools},
    ForeignField{"function_call", kNoTools},
    ForeignField{"response_format", kPlainText},
    ForeignField{"modalities", kPlainText},
    ForeignField{"audio", kPlainText},
    ForeignField{"prediction", "no answer is known before it is made"},
    ForeignField{"web_search_options", "nothing is looked up"},
    ForeignField{"reasoning_effort", "no model of this server thinks before it answers"},
    ForeignField{"verbosity", "the model decides how long it answers"},
    ForeignField{"chat_template_kwargs", "the template of the model takes none"},
};

// They concern how an answer is billed, kept or cached, and change nothing of it.
constexpr std::array<std::string_view, 10> kPassedOver = {"user",
                                                          "safety_identifier",
                                                          "metadata",
                                                          "store",
                                                          "service_tier",
                                                          "prompt_cache_key",
                                                          "prompt_cache_retention",
                                                          "cache_prompt",
                                                          "keep_alive",
                                                          "id_slot"};

bool is_passed_over(std::string_view name) {
  return std::find(kPassedOver.begin(), kPassedOver.end(), name) != kPassedOver.end();
}

// Asks for what happens anyway.
bool is_off(std::string_view name, const Json& value) {
  if (value.boolean() != nullptr) return !*value.boolean() || name == "parallel_tool_calls";
  if (value.string() != nullptr)
    return name == "tool_choice" && (*value.string() == "none" || *value.string() == "auto");
  if (name == "response_format") {
    const Json* const type = value.find("type");
    return type != nullptr && type->string() != nullptr && *type->string() == "text";
  }
  if (value.array() != nullptr && name == "modalities")
    return std::all_of(value.array()->begin(), value.array()->end(),
                       [](const Json& each) { return each.string() != nullptr && *each.string() == "text"; });
  return (value.array() != nullptr && value.array()->empty()) || (value.object() != nullptr && value.object()->empty());
}

Checked take_foreign(const ForeignField& field, const Json& value, bool strict, CompletionRequest& request) {
  if (field.is_ranged()) {
    double number = 0;
    if (auto taken = take_number(value, field.name, field.min, field.max, number); !taken) return taken;
    if (number == field.neutral) return {};
  } else if (is_off(field.name, value)) {
    return {};
  }
  if (strict) return refuse(field.name, "'{}' is not supported: {}; leave it out", field.name, field.reason);
  request.ignored.emplace_back(field.name);
  return {};
}

std::string taken_names() {
  std::string names;
  for (const Field& field : kFields) names += (names.empty() ? "" : ", ") + std::string(field.name);
  return names;
}

Checked take_field(const JsonMember& member, bool strict, CompletionRequest& request) {
  const bool is_absent = member.value.is_null() || (member.value.string() != nullptr && member.value.string()->empty());
  if (is_absent || is_passed_over(member.key)) return {};
  const auto is_it = [&](const auto& known) { return known.name == member.key; };
  if (const auto field = std::find_if(kFields.begin(), kFields.end(), is_it); field != kFields.end())
    return field->take(member.value, request);
  const auto foreign = std::find_if(kForeignFields.begin(), kForeignFields.end(), is_it);
  if (foreign != kForeignFields.end()) return take_foreign(*foreign, member.value, strict, request);
  return tl::unexpected(HttpError{
      .status = 400,
      .message = fmt::format("there is no field {}; a request may have {}", in_quotes(member.key), taken_names()),
      .param = shortened(member.key),
      .code = "unknown_parameter"});
}

tl::unexpected<HttpError> no_json(std::string message) {
  return tl::unexpected(HttpError{.status = 400, .message = std::move(message), .code = "invalid_json"});
}

}  // namespace

CompletionRequestOrError parse_chat_request(std::string_view body, bool strict) {
  if (const auto at = text::find_invalid(body))
    return no_json(fmt::format("byte {} of the body is not UTF-8; a text may have been cut within a character", *at));
  const auto json = parse_json(body, "the body",
                               {.max_bytes = body.size(),
                                .max_depth = kMaxDepth,
                                .max_values = kMaxValues,
                                .max_bare_bytes = kMaxBareBytes,
                                .drops_lone_surrogates = true});
  if (!json) return no_json(json.error().message + "; give a JSON object");
  if (json->object() == nullptr) return no_json("the body must be a JSON object");
  CompletionRequest request;
  for (const JsonMember& member : *json->object())
    if (auto taken = take_field(member, strict, request); !taken) return tl::unexpected(std::move(taken).error());
  if (request.chat.messages.empty())
    return refuse("messages", "'messages' is missing or empty; give the conversation that is to be answered");
  if (const Status checked = check_chat_request(request.chat); !checked)
    return refuse("messages", "{}", checked.error().message);
  return request;
}

std::vector<std::string> chat_fields() {
  std::vector<std::string> names;
  names.reserve(std::size(kFields) + std::size(kForeignFields) + std::size(kPassedOver));
  for (const Field& field : kFields) names.emplace_back(field.name);
  for (const ForeignField& field : kForeignFields) names.emplace_back(field.name);
  for (const std::string_view name : kPassedOver) names.emplace_back(name);
  return names;
}

std::vector<std::string> unheeded_chat_fields() {
  std::vector<std::string> names;
  names.reserve(std::size(kForeignFields));
  for (const ForeignField& field : kForeignFields) names.emplace_back(field.name);
  return names;
}

}  // namespace syrinx::server
