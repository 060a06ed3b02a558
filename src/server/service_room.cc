// Room for what clients send: bodies and long messages, before they are read whole.
#include <charconv>
#include <memory>
#include <utility>

#include "server/decode/batch_request.h"
#include "server/http/message_stream.h"
#include "server/http/multipart.h"
#include "server/service.h"
#include "server/settings/model_id.h"

namespace syrinx::server {
namespace {

constexpr size_t kMegabyte = size_t{1} << 20;
constexpr size_t kShortBody = size_t{64} << 10;  // of JSON, above which it needs room

std::unique_ptr<HttpReply> refusal(const HttpError& error) { return std::make_unique<HttpReply>(error_reply(error)); }

}  // namespace

void Service::admit_json(const HttpRequest& head, Admission& admission) {
  admission.max_body_bytes = static_cast<size_t>(settings_.max_body_kb) * 1024;
  admission.body_setting = "max_body_kb";
  if (const size_t share = upload_share_bytes(settings_); share < admission.max_body_bytes) {
    admission.max_body_bytes = share;  // more would never find room
    admission.body_setting = "max_uploads_mb";
  }
  auto hold = upload_room_.begin(head.address);
  admission.grow = [this, hold](size_t arrived) {
    return arrived <= kShortBody || hold->grow_to(arrived) ? nullptr : refusal(uploads_full(arrived));
  };
  admission.hold = std::move(hold);
}

// Refuses as much as possible before the body, so that it is not sent for nothing.  Room is taken as the bytes arrive:
// an announced length keeps no one out.
void Service::admit_upload(const HttpRequest& head, Body body, Admission& admission) {
  admission.max_body_bytes = static_cast<size_t>(settings_.max_upload_mb) * kMegabyte;
  admission.body_setting = "max_upload_mb";
  const std::string_view type = head.header("Content-Type");
  if (const size_t most = decode::max_body_bytes(type, settings_.decode_max_batch_s);
      body == Body::kSound && most < admission.max_body_bytes) {
    admission.max_body_bytes = most;
    admission.body_setting = most < decode::kMaxBatchBytes ? "decode_max_batch_s" : "";
  }
  admission.body_timeout_s = settings_.upload_timeout_s;
  const std::string_view length = head.header("Content-Length");
  size_t bytes = 0;
  std::from_chars(length.data(), length.data() + length.size(), bytes);
  if (bytes > admission.max_body_bytes) return;  // the transport refuses it
  if (const auto misuse = upload_misuse(head, body)) {
    admission.refusal = refusal(*misuse);
    return;
  }
  auto hold = upload_room_.begin(head.address);
  if (!hold->fits(bytes)) admission.refusal = refusal(uploads_full(bytes));
  admission.grow = [this, hold](size_t arrived) {
    return hold->grow_to(arrived) ? nullptr : refusal(uploads_full(arrived));
  };
  admission.hold = std::move(hold);
}

std::optional<HttpError> Service::upload_misuse(const HttpRequest& head, Body body) {
  if (body == Body::kSound) return decode_misuse(head);
  if (auto closed = why_closed(/*to_new_work=*/true)) return closed;
  const auto kind = body == Body::kUpload ? ModuleKind::kRecognition : ModuleKind::kSpeech;
  Module* const first = modules_.first(kind);
  if (body == Body::kUpload && first == nullptr) return no_module(kind, "");
  const bool is_alone = modules_.count(kind) == 1;  // which of several is wanted the form tells
  if (body == Body::kVoice && modules_.count(kind) < 2) {
    const Models models = first != nullptr ? modules_.loaded(*first) : Models();
    const bool comes_later = first != nullptr && !models.speech;
    if (auto misuse = voice_misuse(models.speech.get()); misuse && !comes_later) return misuse;
  }
  if (const auto boundary = form_boundary(head.header("Content-Type")); !boundary) return boundary.error();
  const auto work = body == Body::kVoice ? SlotPool::Work::kLive : SlotPool::Work::kBatch;
  const SlotPool* const slots = body == Body::kVoice ? &voice_slot_ : is_alone ? &first->slots : nullptr;
  if (slots != nullptr && slots->free(work) == 0) return all_busy(*slots, work);
  // It is loaded while the body comes.
  return is_alone ? modules_.ask(*first, /*waits=*/false).refusal : std::nullopt;
}

HttpError Service::uploads_full(size_t bytes) {
  return unavailable("uploads_full",
                     fmt::format("there is no room for a body of {} bytes beside others; ask again in a "
                                 "second, or another server",
                                 bytes));
}

void Service::give_room(MessageStream& messages, const HttpRequest& request) {
  messages.set_room([this, address = request.address]() -> MessageStream::Room {
    return [hold = upload_room_.begin(address)](size_t bytes) { return hold->grow_to(bytes); };
  });
}

}  // namespace syrinx::server
