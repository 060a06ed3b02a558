#include "server/upstream/chat_replies.h"

#include <optional>
#include <utility>

#include "text/unicode.h"

namespace syrinx::server::upstream {
namespace {

constexpr const char* kTooLong = "max_output_tokens";  // as OpenAI's interface calls it

// Ends at the limit of spoken characters, without waiting for the rest.
class ChatReply final : public realtime::Reply {
 public:
  ChatReply(std::unique_ptr<Chat> chat, size_t max_characters) : chat_(std::move(chat)), left_(max_characters) {}

  Result<bool> take(std::string& text) override {
    if (fault_) return tl::unexpected(*fault_);
    if (!chat_) return false;
    std::string more;
    const Result<bool> taken = chat_->take(more);
    if (!taken && more.empty()) return tl::unexpected(taken.error());
    if (!taken) fault_ = taken.error();  // told behind what came before it
    const bool goes_on = !taken || *taken;
    size_t at = 0;
    for (; at < more.size() && left_ > 0; --left_) text::decode(more, at);
    text.append(more, 0, at);
    if (at == more.size() && goes_on) return true;
    cut_short_ = at < more.size() ? kTooLong : chat_->cut_short();
    chat_.reset();
    return false;
  }
  const char* cut_short() const override { return cut_short_; }

 private:
  std::unique_ptr<Chat> chat_;  // null: it has ended
  size_t left_;                 // characters
  const char* cut_short_ = nullptr;
  std::optional<Error> fault_;
};

}  // namespace

ChatReplies::ChatReplies(Upstream upstream, std::unique_ptr<ChatClient> client)
    : upstream_(std::move(upstream)), client_(std::move(client)) {}

Result<std::shared_ptr<ChatReplies>> ChatReplies::start(Upstream upstream) {
  SYRINX_TRY(auto client, ChatClient::start(upstream.endpoint));
  return std::shared_ptr<ChatReplies>(new ChatReplies(std::move(upstream), std::move(client)));
}

Result<std::unique_ptr<realtime::Reply>> ChatReplies::start(realtime::Prompt prompt, std::function<void()> wake) {
  if (!asks_something(prompt))
    return fail(Code::kInvalidArgument,
                "there is nothing to be answered: no word has been said or written; add a message by "
                "conversation.item.create, or to 'response.input'");
  return std::make_unique<ChatReply>(client_->ask(chat_body(prompt, upstream_.form), std::move(wake)),
                                     upstream_.max_characters);
}

}  // namespace syrinx::server::upstream
