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

Result<std::unique_ptr<Reply>> ReadAloud::start(Prompt prompt, std::function<void()> /*wake*/) {
  std::string text;
  for (const Turn& turn : prompt.turns) {
    if (turn.is_answered || turn.role == "system" || turn.text.empty()) continue;
    text += (text.empty() ? "" : "\n") + turn.text;
  }
  if (text.empty())
    return fail(Code::kInvalidArgument,
                "there is no text to be spoken, and no language model behind this server; add a message by "
                "conversation.item.create, or to 'response.input'");
  return std::make_unique<WholeReply>(std::move(text));
}

}  // namespace syrinx::server::realtime
