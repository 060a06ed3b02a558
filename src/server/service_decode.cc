// The transducer profile, /v2/decode/...: as clients of the AMIRA server ask.
#include <memory>
#include <utility>

#include "server/decode/batch_job.h"
#include "server/decode/stream_session.h"
#include "server/realtime/handshake.h"
#include "server/service.h"
#include "server/settings/model_id.h"

namespace syrinx::server {

// The model that the path names, among those that are serving.
tl::expected<std::shared_ptr<const RecognitionModel>, HttpError> Service::decoding_model(
    tl::expected<Models, HttpError> models, const HttpRequest& request) {
  if (!models) return tl::unexpected(std::move(models).error());
  const std::string name = decode::named_model(request.path);
  if (name.empty() || !models->recognition || !models->recognition->is_called(name))
    return tl::unexpected(no_model(models->recognition != nullptr, "recognises speech", name));
  return std::move(models->recognition);
}

// It holds its slot from the handshake on: during speech it would be too late to tell that there is none.
HttpReply Service::decode_stream(HttpRequest& request) {
  if (const auto fault = realtime::handshake_fault(request)) return realtime::refused_handshake(*fault);
  auto model = decoding_model(serving_models(), request);
  if (!model) return error_reply(model.error());
  auto opaque = decode::parse_opaque(request.query_value("opaque"));
  if (!opaque) return error_reply(opaque.error());
  const auto session = std::make_shared<decode::StreamSession>(
      decode::StreamOrder{.model = std::move(*model),
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
      recognition_slots_, [session](SlotWatch& watch) { session->run(watch); }, [session] { session->end(); });
  if (refused) return error_reply(*refused);
  give_room(*session->messages(), request);
  HttpReply reply{.messages = session->messages()};
  if (const std::string protocol = realtime::chosen_protocol(request); !protocol.empty())
    reply.headers.push_back({"Sec-WebSocket-Protocol", protocol});
  return reply;
}

// Refusals that need no body.
std::optional<HttpError> Service::decode_misuse(const HttpRequest& head) {
  const auto model = decoding_model(serving_models(), head);
  if (!model) return model.error();
  if (auto fault = decode::batch_type_fault(head.header("Content-Type"))) return fault;
  const auto opaque = decode::parse_opaque(head.query_value("opaque"));
  if (!opaque) return opaque.error();
  constexpr auto kWork = SlotPool::Work::kBatch;
  if (recognition_slots_.free(kWork) == 0) return all_busy(recognition_slots_, kWork);
  return std::nullopt;
}

// The body is read on the slot, too: it may be long.  One that was admitted before the server began to end is work
// under way.
HttpReply Service::decode_batch(HttpRequest& request) {
  auto model = decoding_model(loaded_models(), request);
  if (!model) return error_reply(model.error());
  auto opaque = decode::parse_opaque(request.query_value("opaque"));
  if (!opaque) return error_reply(opaque.error());
  decode::BatchOrder order{.type = std::string(request.header("Content-Type")),
                           .body = std::move(request.body),
                           .hold = std::move(request.hold),
                           .opaque = std::move(*opaque),
                           .max_s = settings_.decode_max_batch_s,
                           .id = request.id,
                           .arrived_ns = request.arrived_ns};
  const auto job = std::make_shared<decode::BatchJob>(std::move(*model), std::move(order), reports());
  if (const auto refused = start_job(recognition_slots_, job, SlotPool::Work::kBatch)) return error_reply(*refused);
  return {.stream = job->reply()};
}

}  // namespace syrinx::server
