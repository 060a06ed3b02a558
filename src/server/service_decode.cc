// The transducer profile, /v2/decode/...: as clients of the AMIRA server ask.
#include <memory>
#include <utility>

#include "server/decode/batch_job.h"
#include "server/decode/stream_session.h"
#include "server/realtime/handshake.h"
#include "server/service.h"
#include "server/settings/model_id.h"

namespace syrinx::server {

// The module that the path names.
tl::expected<Module*, HttpError> Service::decoding_module(const HttpRequest& request) {
  const std::string name = decode::named_model(request.path);
  Module* const module = name.empty() ? nullptr : modules_.find(ModuleKind::kRecognition, name);
  if (module == nullptr) return tl::unexpected(no_module(ModuleKind::kRecognition, name));
  return module;
}

// It holds its slot from the handshake on: during speech it would be too late to tell that there is none.
HttpReply Service::decode_stream(HttpRequest& request) {
  if (const auto fault = realtime::handshake_fault(request)) return realtime::refused_handshake(*fault);
  if (const auto closed = why_closed(/*to_new_work=*/true)) return error_reply(*closed);
  const auto module = decoding_module(request);
  if (!module) return error_reply(module.error());
  auto offered = offer(ModuleKind::kRecognition, (*module)->plan.id);
  if (!offered) return std::move(offered).error();
  auto opaque = decode::parse_opaque(request.query_value("opaque"));
  if (!opaque) return error_reply(opaque.error());
  const auto session = std::make_shared<decode::StreamSession>(
      decode::StreamOrder{.model = std::move(offered->models.recognition),
                          .opaque = std::move(*opaque),
                          .id = request.id,
                          .end_byte = static_cast<uint8_t>(settings_.decode_end_byte),
                          .keepalive_byte = static_cast<uint8_t>(settings_.decode_keepalive_byte),
                          .messages_per_s = static_cast<double>(settings_.decode_messages_per_s),
                          .max_backlog_s = settings_.max_backlog_s,
                          .max_session_s = settings_.max_session_s,
                          .idle_s = settings_.decode_idle_s},
      reports());
  const auto refused = start_live(
      **module, [session](SlotWatch& watch) { session->run(watch); }, [session] { session->end(); });
  if (refused) return error_reply(*refused);
  give_room(*session->messages(), request);
  HttpReply reply{.messages = session->messages()};
  if (const std::string protocol = realtime::chosen_protocol(request); !protocol.empty())
    reply.headers.push_back({"Sec-WebSocket-Protocol", protocol});
  return reply;
}

// Refusals that need no body.
std::optional<HttpError> Service::decode_misuse(const HttpRequest& head) {
  if (auto closed = why_closed(/*to_new_work=*/true)) return closed;
  const auto module = decoding_module(head);
  if (!module) return module.error();
  if (auto fault = decode::batch_type_fault(head.header("Content-Type"))) return fault;
  const auto opaque = decode::parse_opaque(head.query_value("opaque"));
  if (!opaque) return opaque.error();
  constexpr auto kWork = SlotPool::Work::kBatch;
  if ((*module)->slots.free(kWork) == 0) return all_busy((*module)->slots, kWork);
  return modules_.ask(**module, /*waits=*/false).refusal;  // it is loaded while the body comes
}

// The body is read on the slot, too: it may be long.  One that was admitted before the server began to end is work
// under way.
HttpReply Service::decode_batch(HttpRequest& request) {
  const auto module = decoding_module(request);
  if (!module) return error_reply(module.error());
  auto offered = offer(ModuleKind::kRecognition, (*module)->plan.id);
  if (!offered) return std::move(offered).error();
  auto opaque = decode::parse_opaque(request.query_value("opaque"));
  if (!opaque) return error_reply(opaque.error());
  decode::BatchOrder order{.type = std::string(request.header("Content-Type")),
                           .body = std::move(request.body),
                           .hold = std::move(request.hold),
                           .opaque = std::move(*opaque),
                           .max_s = settings_.decode_max_batch_s,
                           .id = request.id,
                           .arrived_ns = request.arrived_ns};
  const auto job =
      std::make_shared<decode::BatchJob>(std::move(offered->models.recognition), std::move(order), reports());
  if (const auto refused = start_job((*module)->slots, job, SlotPool::Work::kBatch)) return error_reply(*refused);
  return {.stream = job->reply()};
}

}  // namespace syrinx::server
