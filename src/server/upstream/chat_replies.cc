#include "server/upstream/chat_replies.h"

#include <utility>

#include "server/upstream/capped_reply.h"

namespace syrinx::server::upstream {
namespace {

class ChatReply final : public realtime::Reply {
 public:
  explicit ChatReply(std::unique_ptr<Chat> chat) : chat_(std::move(chat)) {}

  Result<bool> take(std::string& text) override { return chat_->take(text); }
  const char* cut_short() const override { return chat_->cut_short(); }

 private:
  const std::unique_ptr<Chat> chat_;
};

}  // namespace

ChatReplies::ChatReplies(Upstream upstream, std::unique_ptr<ChatClient> client)
    : upstream_(std::move(upstream)), client_(std::move(client)) {}

Result<std::shared_ptr<ChatReplies>> ChatReplies::start(Upstream upstream) {
  SYRINX_TRY(auto client, ChatClient::start(upstream.endpoint));
  return std::shared_ptr<ChatReplies>(new ChatReplies(std::move(upstream), std::move(client)));
}

Result<std::unique_ptr<realtime::Reply>> ChatReplies::start(realtime::Prompt prompt, std::function<void()> wake) {
  if (!asks_something(prompt)) return tl::unexpected(nothing_asked());
  auto answer = std::make_unique<ChatReply>(client_->ask(chat_body(prompt, upstream_.form), std::move(wake)));
  return std::make_unique<CappedReply>(std::move(answer), upstream_.max_characters);
}

}  // namespace syrinx::server::upstream
