#include "server/realtime/events.h"

#include <array>
#include <utility>

#include "base/in_quotes.h"

namespace syrinx::server::realtime {
namespace {

constexpr size_t kMaxDepth = 24;        // of schemas of tools, which nothing here reads
constexpr size_t kMaxValues = 8192;     // as many as a hundred such tools have
constexpr size_t kMaxBareBytes = 4096;  // blanks and numbers; sound is a long text
constexpr size_t kMaxEventIdBytes = 512;

struct ClientName {
  ClientEvent event;
  const char* name;
};
constexpr std::array kClientNames = {
    ClientName{ClientEvent::kSessionUpdate, "session.update"},
    ClientName{ClientEvent::kTranscriptionSessionUpdate, "transcription_session.update"},
    ClientName{ClientEvent::kAudioAppend, "input_audio_buffer.append"},
    ClientName{ClientEvent::kAudioCommit, "input_audio_buffer.commit"},
    ClientName{ClientEvent::kAudioClear, "input_audio_buffer.clear"},
    ClientName{ClientEvent::kItemCreate, "conversation.item.create"},
    ClientName{ClientEvent::kItemRetrieve, "conversation.item.retrieve"},
    ClientName{ClientEvent::kItemTruncate, "conversation.item.truncate"},
    ClientName{ClientEvent::kItemDelete, "conversation.item.delete"},
    ClientName{ClientEvent::kResponseCreate, "response.create"},
    ClientName{ClientEvent::kResponseCancel, "response.cancel"},
};

struct ServerName {
  ServerEvent event;
  const char* released;
  const char* beta;
};
constexpr std::array kServerNames = {
    ServerName{ServerEvent::kSessionCreated, "session.created", "session.created"},
    ServerName{ServerEvent::kTranscriptionSessionCreated, "session.created", "transcription_session.created"},
    ServerName{ServerEvent::kSessionUpdated, "session.updated", "session.updated"},
    ServerName{ServerEvent::kTranscriptionSessionUpdated, "session.updated", "transcription_session.updated"},
    ServerName{ServerEvent::kError, "error", "error"},
    ServerName{ServerEvent::kSpeechStarted, "input_audio_buffer.speech_started", "input_audio_buffer.speech_started"},
    ServerName{ServerEvent::kSpeechStopped, "input_audio_buffer.speech_stopped", "input_audio_buffer.speech_stopped"},
    ServerName{ServerEvent::kBufferCommitted, "input_audio_buffer.committed", "input_audio_buffer.committed"},
    ServerName{ServerEvent::kBufferCleared, "input_audio_buffer.cleared", "input_audio_buffer.cleared"},
    ServerName{ServerEvent::kTimeoutTriggered, "input_audio_buffer.timeout_triggered",
               "input_audio_buffer.timeout_triggered"},
    ServerName{ServerEvent::kTranscriptionDelta, "conversation.item.input_audio_transcription.delta",
               "conversation.item.input_audio_transcription.delta"},
    ServerName{ServerEvent::kTranscriptionCompleted, "conversation.item.input_audio_transcription.completed",
               "conversation.item.input_audio_transcription.completed"},
    ServerName{ServerEvent::kTranscriptionFailed, "conversation.item.input_audio_transcription.failed",
               "conversation.item.input_audio_transcription.failed"},
    ServerName{ServerEvent::kItemAdded, "conversation.item.added", "conversation.item.created"},
    ServerName{ServerEvent::kItemDone, "conversation.item.done", nullptr},
    ServerName{ServerEvent::kItemRetrieved, "conversation.item.retrieved", "conversation.item.retrieved"},
    ServerName{ServerEvent::kItemTruncated, "conversation.item.truncated", "conversation.item.truncated"},
    ServerName{ServerEvent::kItemDeleted, "conversation.item.deleted", "conversation.item.deleted"},
    ServerName{ServerEvent::kResponseCreated, "response.created", "response.created"},
    ServerName{ServerEvent::kResponseDone, "response.done", "response.done"},
    ServerName{ServerEvent::kOutputItemAdded, "response.output_item.added", "response.output_item.added"},
    ServerName{ServerEvent::kOutputItemDone, "response.output_item.done", "response.output_item.done"},
    ServerName{ServerEvent::kContentPartAdded, "response.content_part.added", "response.content_part.added"},
    ServerName{ServerEvent::kContentPartDone, "response.content_part.done", "response.content_part.done"},
    ServerName{ServerEvent::kAudioDelta, "response.output_audio.delta", "response.audio.delta"},
    ServerName{ServerEvent::kAudioDone, "response.output_audio.done", "response.audio.done"},
    ServerName{ServerEvent::kAudioTranscriptDelta, "response.output_audio_transcript.delta",
               "response.audio_transcript.delta"},
    ServerName{ServerEvent::kAudioTranscriptDone, "response.output_audio_transcript.done",
               "response.audio_transcript.done"},
    ServerName{ServerEvent::kTextDelta, "response.output_text.delta", "response.text.delta"},
    ServerName{ServerEvent::kTextDone, "response.output_text.done", "response.text.done"},
};

EventFault fault(std::string event_id, std::string param, std::string code, std::string message) {
  return {.error = {.status = 400, .message = std::move(message), .param = std::move(param), .code = std::move(code)},
          .event_id = std::move(event_id)};
}

std::string known_events() {
  std::string names;
  for (const ClientName& each : kClientNames) names += (names.empty() ? "" : ", ") + std::string(each.name);
  return names;
}

}  // namespace

const char* event_name(ServerEvent event, Dialect dialect) {
  for (const ServerName& each : kServerNames)
    if (each.event == event) return dialect == Dialect::kReleased ? each.released : each.beta;
  return nullptr;
}

tl::expected<ClientMessage, EventFault> parse_client_event(std::string_view text) {
  auto json = parse_json(text, "the event",
                         {.max_bytes = text.size(),
                          .max_depth = kMaxDepth,
                          .max_values = kMaxValues,
                          .max_bare_bytes = kMaxBareBytes,
                          .takes_lone_surrogates = true});
  if (!json) return tl::unexpected(fault("", "", "invalid_json", json.error().message + "; send a JSON object"));
  if (json->object() == nullptr)
    return tl::unexpected(fault("", "", "invalid_json", "the event is not a JSON object; send one with a 'type'"));
  ClientMessage message;
  if (const Json* const id = json->find("event_id"); id != nullptr && !id->is_null()) {
    if (id->string() == nullptr || id->string()->size() > kMaxEventIdBytes)
      return tl::unexpected(fault("", "event_id", "invalid_event_id",
                                  fmt::format("'event_id' must be a text of at most {} bytes", kMaxEventIdBytes)));
    message.event_id = *id->string();
  }
  const Json* const type = json->find("type");
  if (type == nullptr || type->string() == nullptr)
    return tl::unexpected(fault(message.event_id, "type", "missing_required_parameter",
                                "the event has no 'type'; send one of " + known_events()));
  for (const ClientName& each : kClientNames) {
    if (*type->string() != each.name) continue;
    message.event = each.event;
    message.fields = std::move(*json);
    return message;
  }
  return tl::unexpected(
      fault(message.event_id, "type", "invalid_event_type",
            fmt::format("there is no event {}; send one of {}", in_quotes(*type->string()), known_events())));
}

HttpError bad(const char* param, std::string message, std::string code) {
  return {.status = 400, .message = std::move(message), .param = param, .code = std::move(code)};
}

Json error_json(const EventFault& fault) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  Json json;
  json.set("type", error_type(fault.error.status));
  json.set("code", or_null(fault.error.code));
  json.set("message", fault.error.message);
  json.set("param", or_null(fault.error.param));
  return json.set("event_id", or_null(fault.event_id));
}

}  // namespace syrinx::server::realtime
