#include "engine/chat/chat_engine.h"

#include <cmath>

#include "text/unicode.h"

namespace syrinx {
namespace {

tl::unexpected<Error> out_of_range(const char* name, float value, const char* allowed) {
  return fail(Code::kInvalidArgument, "'{}' is {}; give {}", name, value, allowed);
}

}  // namespace

Status check_chat_sampling(const ChatSampling& s) {
  const auto within = [](float value, float least, float most) { return value >= least && value <= most; };
  if (s.temperature && !within(*s.temperature, 0, ChatSampling::kMaxTemperature))
    return out_of_range("temperature", *s.temperature, "0 to 2");
  if (s.top_p && !(*s.top_p > 0 && *s.top_p <= 1)) return out_of_range("top_p", *s.top_p, "more than 0, at most 1");
  if (s.min_p && !within(*s.min_p, 0, 1)) return out_of_range("min_p", *s.min_p, "0 to 1");
  if (s.top_k && (*s.top_k < 0 || *s.top_k > ChatSampling::kMaxTopK))
    return fail(Code::kInvalidArgument, "'top_k' is {}; give 0 to {}, 0 for all", *s.top_k, ChatSampling::kMaxTopK);
  if (s.repetition_penalty && !within(*s.repetition_penalty, 1 / ChatSampling::kMaxPenalty, ChatSampling::kMaxPenalty))
    return out_of_range("repetition_penalty", *s.repetition_penalty, "0.5 to 2");
  return {};
}

Status check_chat_request(const ChatRequest& request) {
  SYRINX_TRY_VOID(check_chat_sampling(request.sampling));
  if (request.messages.empty()) return fail(Code::kInvalidArgument, "a conversation needs one message at least");
  if (request.messages.size() > ChatRequest::kMaxMessages)
    return fail(Code::kLimitExceeded, "{} messages, the limit is {}; leave older ones out", request.messages.size(),
                ChatRequest::kMaxMessages);
  size_t bytes = 0;
  for (const text::ChatMessage& message : request.messages) bytes += message.content.size();
  if (bytes > ChatRequest::kMaxContentBytes)
    return fail(Code::kLimitExceeded, "messages of {} bytes in all, the limit is {}; leave older ones out", bytes,
                ChatRequest::kMaxContentBytes);
  for (size_t n = 0; n < request.messages.size(); ++n)
    if (text::find_invalid(request.messages[n].content))
      return fail(Code::kInvalidArgument, "message {} is not valid UTF-8; give text", n + 1);
  if (request.stops.size() > ChatRequest::kMaxStops)
    return fail(Code::kInvalidArgument, "{} texts to stop at; give {} at most", request.stops.size(),
                ChatRequest::kMaxStops);
  for (const std::string& stop : request.stops)
    if (stop.empty() || stop.size() > ChatRequest::kMaxStopBytes || text::find_invalid(stop))
      return fail(Code::kInvalidArgument, "a text to stop at has {} bytes; give 1 to {}, of UTF-8", stop.size(),
                  ChatRequest::kMaxStopBytes);
  return {};
}

}  // namespace syrinx
