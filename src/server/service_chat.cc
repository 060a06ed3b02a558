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
  auto offered = offer_to_new(ModuleKind::kChat, parsed->model);
  if (!offered) return not_offered(request, std::move(offered).error());
  request.free_body();
  if (!parsed->has_seed) parsed->chat.seed = any_seed();
  auto sink = std::make_unique<HttpChatSink>(*parsed, offered->module->plan.id, unix_time_s());
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
  if (auto closed = why_closed(/*to_new_work=*/true)) return tl::unexpected(std::move(*closed));
  auto offered = offer_now(ModuleKind::kChat, order.model);
  if (!offered) return tl::unexpected(std::move(offered).error());
  auto job = std::make_shared<ChatJob>(std::move(offered->models.chat), std::move(order), std::move(sink), reports());
  if (auto refused = start_job(offered->module->slots, job, SlotPool::Work::kLive))
    return tl::unexpected(std::move(*refused));
  return job;
}

}  // namespace syrinx::server
