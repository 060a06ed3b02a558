#include "server/upstream/capped_reply.h"

#include "text/unicode.h"

namespace syrinx::server::upstream {
namespace {

constexpr const char* kTooLong = "max_output_tokens";  // as OpenAI's interface calls it

}  // namespace

Result<bool> CappedReply::take(std::string& text) {
  if (fault_) return tl::unexpected(*fault_);
  if (!answer_) return false;
  std::string more;
  const Result<bool> taken = answer_->take(more);
  if (!taken && more.empty()) return tl::unexpected(taken.error());
  if (!taken) fault_ = taken.error();  // told behind what came before it
  const bool goes_on = !taken || *taken;
  size_t at = 0;
  for (; at < more.size() && left_ > 0; --left_) text::decode(more, at);
  text.append(more, 0, at);
  if (at == more.size() && goes_on) return true;
  cut_short_ = at < more.size() ? kTooLong : answer_->cut_short();
  answer_.reset();
  return false;
}

// A fault that is told behind the text has come with it, and nobody wakes for it again.
std::optional<std::chrono::nanoseconds> CappedReply::looks_again_in() const {
  if (fault_) return std::chrono::nanoseconds(0);
  return answer_ ? answer_->looks_again_in() : std::nullopt;
}

Error nothing_asked() {
  return {Code::kInvalidArgument,
          "there is nothing to be answered: no word has been said or written; add a message by "
          "conversation.item.create, or to 'response.input'"};
}

}  // namespace syrinx::server::upstream
