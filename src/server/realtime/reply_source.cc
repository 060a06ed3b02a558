#include "server/realtime/reply_source.h"

#include <utility>

namespace syrinx::server::realtime {
namespace {

class WholeReply final : public Reply {
 public:
  explicit WholeReply(std::string text) : text_(std::move(text)) {}
  Result<bool> take(std::string& text) override {
    text += std::exchange(text_, {});
    return false;
  }

 private:
  std::string text_;
};

}  // namespace

Result<bool> LateReply::take(std::string& text) {
  if (!begun_) {
    SYRINX_TRY(begun_, start_());
    if (!begun_) return true;
  }
  return begun_->take(text);
}

Result<bool> SpokenReply::take(std::string& text) {
  std::string more;
  SYRINX_TRY(const bool goes_on, written_->take(more));
  reader_.push(more, text);
  if (!goes_on) reader_.finish(text);
  return goes_on;
}

Result<std::unique_ptr<Reply>> ReadAloud::start(Prompt prompt, std::function<void()> /*wake*/) {
  std::string text;
  for (const Turn& turn : prompt.turns) {
    if (turn.is_answered || turn.is_heard || turn.role == "system" || turn.text.empty()) continue;
    text += (text.empty() ? "" : "\n") + turn.text;
  }
  if (text.empty())
    return fail(Code::kInvalidArgument,
                "there is no text to be spoken, and no language model behind this server; add a message by "
                "conversation.item.create, or to 'response.input'");
  return std::make_unique<WholeReply>(std::move(text));
}

}  // namespace syrinx::server::realtime
