// The events of OpenAI's realtime interface: one table with their names in both dialects, and the reader of what a
// client sends.  Pure, thread-safe.
//
// Names, fields and objects are those of OpenAI's published interface, as the types of its Python package have them;
// the beta names are those of its first version, which clients still use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "server/http/http_message.h"

namespace syrinx::server::realtime {

enum class Dialect : uint8_t { kReleased, kBeta };

enum class ClientEvent : uint8_t {
  kSessionUpdate,
  kTranscriptionSessionUpdate,
  kAudioAppend,
  kAudioCommit,
  kAudioClear,
  kItemCreate,
  kItemRetrieve,
  kItemTruncate,
  kItemDelete,
  kResponseCreate,
  kResponseCancel,
};

enum class ServerEvent : uint8_t {
  kSessionCreated,
  kTranscriptionSessionCreated,
  kSessionUpdated,
  kTranscriptionSessionUpdated,
  kError,
  kSpeechStarted,
  kSpeechStopped,
  kBufferCommitted,
  kBufferCleared,
  kTimeoutTriggered,
  kTranscriptionDelta,
  kTranscriptionCompleted,
  kTranscriptionFailed,
  kItemAdded,
  kItemDone,
  kItemRetrieved,
  kItemTruncated,
  kItemDeleted,
  kResponseCreated,
  kResponseDone,
  kOutputItemAdded,
  kOutputItemDone,
  kContentPartAdded,
  kContentPartDone,
  kAudioDelta,
  kAudioDone,
  kAudioTranscriptDelta,
  kAudioTranscriptDone,
  kTextDelta,
  kTextDone,
};

// Null: that dialect has no such event.
const char* event_name(ServerEvent event, Dialect dialect);

struct ClientMessage {
  ClientEvent event = ClientEvent::kSessionUpdate;
  std::string event_id = {};  // the client's own; may be empty
  Json fields = {};           // the whole object
};

// An error in an event, and the event's id.
struct EventFault {
  HttpError error = {};
  std::string event_id = {};
};

// Text of any length; its depth, its values, the blanks between them and the lengths of its names are bounded.
tl::expected<ClientMessage, EventFault> parse_client_event(std::string_view text);

// A mistake of the client's; `param`: the field that it is in, or nothing.
HttpError bad(const char* param, std::string message, std::string code = {});

// The fields of an `error` event.
Json error_json(const EventFault& fault);

}  // namespace syrinx::server::realtime
