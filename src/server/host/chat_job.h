// One conversation's way to its answer, on a slot's thread: engine, sink.
#pragma once

#include <memory>
#include <optional>

#include "server/host/chat_model.h"
#include "server/host/chat_order.h"
#include "server/host/chat_sink.h"
#include "server/host/slot_job.h"

namespace syrinx::server {

class ChatJob final : public SlotJob {
 public:
  ChatJob(std::shared_ptr<const ChatModel> model, ChatOrder order, std::unique_ptr<ChatSink> sink, JobReports reports);

  const std::shared_ptr<ReplyStream>& reply() const override { return sink_->reply(); }

 private:
  Status work(SlotWatch& watch) override;
  const char* what() const override { return "an answer"; }
  HttpError told(const Error& error) const override;
  bool fail_answer(const HttpError& error) override { return sink_->fail(error); }
  void end_answer(bool complete) override { sink_->end(complete); }
  void report() const override;

  Result<std::unique_ptr<ChatAnswer>> start();
  bool drop_oldest();
  bool has_answer_room(size_t prompt_tokens) const;
  Status send(ChatAnswer& answer, SlotWatch& watch);
  void note_first_token();
  const char* reason() const;

  const std::shared_ptr<const ChatModel> model_;
  ChatOrder order_;
  const std::unique_ptr<ChatSink> sink_;

  ChatEnd end_ = ChatEnd::kOpen;
  ChatUsage usage_ = {};
  std::optional<double> first_token_s_;
  double took_ms_ = 0;
};

}  // namespace syrinx::server
