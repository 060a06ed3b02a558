#include "server/openai/http_chat_sink.h"

#include <utility>

#include "server/http/reply_events.h"
#include "server/http/request_id.h"
#include "server/openai/ignored_fields.h"

namespace syrinx::server {
namespace {

constexpr const char* kChunk = "chat.completion.chunk";

const char* finish_reason(ChatEnd end) { return is_whole(end) ? "stop" : "length"; }

Json usage_json(const ChatUsage& usage) {
  Json details, json;
  details.set("cached_tokens", usage.cached_tokens);
  json.set("prompt_tokens", usage.prompt_tokens).set("completion_tokens", usage.answer_tokens);
  json.set("total_tokens", usage.prompt_tokens + usage.answer_tokens);
  return json.set("prompt_tokens_details", std::move(details));
}

}  // namespace

HttpChatSink::HttpChatSink(const CompletionRequest& request, std::string model, int64_t created_s)
    : id_("chatcmpl-" + new_request_id()),
      model_(std::move(model)),
      created_s_(created_s),
      is_stream_(request.stream),
      includes_usage_(request.includes_usage),
      ignored_(request.ignored) {}

Json HttpChatSink::head(const char* object) const {
  Json json;
  json.set("id", id_).set("object", object).set("created", created_s_).set("model", model_);
  return json.set("system_fingerprint", Json());
}

std::string HttpChatSink::chunk(Json delta, const char* finish_reason) const {
  Json choice, json = head(kChunk);
  choice.set("index", 0).set("delta", std::move(delta)).set("logprobs", Json());
  choice.set("finish_reason", finish_reason != nullptr ? Json(finish_reason) : Json());
  json.set("choices", Json::Array{std::move(choice)});
  if (includes_usage_) json.set("usage", Json());
  return event_text(json);
}

Status HttpChatSink::begin() {
  if (!is_stream_) return {};
  reply()->begin(naming_ignored(event_head(), ignored_), /*whole=*/false);
  Json delta;
  return reply()->write(chunk(delta.set("role", "assistant").set("content", ""), nullptr));
}

Status HttpChatSink::take(std::string_view text) {
  if (!is_stream_) {
    text_ += text;
    return {};
  }
  Json delta;
  return reply()->write(chunk(delta.set("content", text), nullptr));
}

// A client that has heard the end of a stream may ask at once: it comes when the slot is free.
Status HttpChatSink::finish(ChatEnd end, const ChatUsage& usage) {
  if (is_stream_) {
    last_ = chunk(Json(Json::Object()), finish_reason(end));
    if (includes_usage_) {
      Json json = head(kChunk);
      last_ += event_text(json.set("choices", Json::Array()).set("usage", usage_json(usage)));
    }
    last_ += "data: [DONE]\n\n";
    return {};
  }
  Json message, choice, json = head("chat.completion");
  message.set("role", "assistant").set("content", std::move(text_)).set("refusal", Json());
  choice.set("index", 0).set("message", std::move(message)).set("logprobs", Json());
  choice.set("finish_reason", finish_reason(end));
  json.set("choices", Json::Array{std::move(choice)}).set("usage", usage_json(usage));
  reply()->begin(naming_ignored({.body = json.dump()}, ignored_), /*whole=*/true);
  return {};
}

bool HttpChatSink::fail(const HttpError& error) { return tell_failure(*reply(), error, is_stream_); }

void HttpChatSink::end(bool complete) {
  if (complete && !last_.empty()) return reply()->finish(last_);
  end_reply(*reply(), complete, "the answer");
}

}  // namespace syrinx::server
