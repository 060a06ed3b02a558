// Conversations with the language model.
#include <sys/random.h>

#include <chrono>
#include <memory>
#include <utility>

#include "base/check.h"
#include "server/openai/chat_request.h"
#include "server/openai/http_chat_sink.h"
#include "server/service.h"
#include "server/settings/model_id.h"

namespace syrinx::server {
namespace {

uint64_t any_seed() {
  uint64_t seed = 0;
  // So few bytes always come at once, without a signal in between.
  SYRINX_CHECK(::getrandom(&seed, sizeof(seed), 0) == static_cast<ssize_t>(sizeof(seed)));
  return seed;
}

int64_t unix_time_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

HttpReply Service::chat(HttpRequest& request) {
  auto parsed = parse_chat_request(request.body, settings_.strict);
  if (!parsed) return error_reply(parsed.error());
  request.free_body();
  if (!parsed->has_seed) parsed->chat.seed = any_seed();
  const auto chat = chat_model();
  auto sink = std::make_unique<HttpChatSink>(*parsed, chat ? chat->id() : "", unix_time_s());
  const StartedChat job = start_chat({.model = std::move(parsed->model),
                                      .request = std::move(parsed->chat),
                                      .ignored = std::move(parsed->ignored),
                                      .id = request.id,
                                      .arrived_ns = request.arrived_ns},
                                     std::move(sink));
  if (!job) return error_reply(job.error());
  return {.stream = (*job)->reply()};
}

Host::StartedChat Service::start_chat(ChatOrder order, std::unique_ptr<ChatSink> sink) {
  auto models = serving_models();
  if (!models) return tl::unexpected(std::move(models).error());
  auto chat = std::move(models->chat);
  if (!chat || !chat->is_called(order.model))
    return tl::unexpected(no_model(chat != nullptr, "answers conversations", order.model));
  auto job = std::make_shared<ChatJob>(std::move(chat), std::move(order), std::move(sink), reports());
  if (auto refused = start_job(chat_slots_, job, SlotPool::Work::kLive)) return tl::unexpected(std::move(*refused));
  return job;
}

void Service::begin_chat_counters(const std::string& id) {
  for (const char* reason : {"cancelled", "error", "length", "refused", "stop"})
    metrics_.begin("syrinx_answers_total", {{"model", id}, {"reason", reason}});
  for (const char* kind : {"answer", "cached", "prompt"})
    metrics_.begin("syrinx_tokens_total", {{"model", id}, {"kind", kind}});
  metrics_.begin("syrinx_time_to_first_token_seconds", {{"model", id}});
}

}  // namespace syrinx::server
