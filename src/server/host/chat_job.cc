#include "server/host/chat_job.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/json.h"

namespace syrinx::server {
namespace {

using Messages = std::vector<text::ChatMessage>;

constexpr size_t kAnswerTokens = 512;

bool is_turn(const text::ChatMessage& message) { return message.role != text::ChatRole::kSystem; }

}  // namespace

ChatJob::ChatJob(std::shared_ptr<const ChatModel> model, ChatOrder order, std::unique_ptr<ChatSink> sink,
                 JobReports reports)
    : SlotJob(reports), model_(std::move(model)), order_(std::move(order)), sink_(std::move(sink)) {
  order_.request.is_wanted = [reply = sink_->reply()] { return !reply->cancelled(); };
  // More than fits into any conversation is no limit.
  if (order_.request.max_tokens >= model_->engine().context()) order_.request.max_tokens = 0;
}

Status ChatJob::work(SlotWatch& watch) {
  const Stopwatch took;
  const EngineWait wait(watch);
  SYRINX_TRY(const std::unique_ptr<ChatAnswer> answer, start());
  Status sent = send(*answer, watch);
  took_ms_ = took.elapsed_ms();
  usage_ = answer->usage();
  return sent;
}

Result<std::unique_ptr<ChatAnswer>> ChatJob::start() {
  for (;;) {
    if (!order_.drops_oldest) return model_->engine().start(std::move(order_.request));
    auto started = model_->engine().start(order_.request);
    const bool fits =
        started ? has_answer_room((*started)->usage().prompt_tokens) : started.error().code != Code::kLimitExceeded;
    if (fits || !drop_oldest()) return started;
  }
}

// In a talk that grows: an answer of a few words is none.
bool ChatJob::has_answer_room(size_t prompt_tokens) const {
  const size_t context = model_->engine().context();
  const size_t most = order_.request.max_tokens > 0 ? order_.request.max_tokens : kAnswerTokens;
  return prompt_tokens + std::min(most, std::min(kAnswerTokens, context / 4)) <= context;
}

// A quarter of the turns at once, as each of them has to be counted again; what is left begins with a question, unless
// none is left.  False: there is but one turn.
bool ChatJob::drop_oldest() {
  Messages& messages = order_.request.messages;
  const auto turns = std::count_if(messages.begin(), messages.end(), is_turn);
  if (turns < 2) return false;
  auto left = std::max<std::ptrdiff_t>(turns / 4, 1);
  const auto first = std::find_if(messages.begin(), messages.end(), is_turn);
  auto end = first;
  for (; end + 1 != messages.end() && (left > 0 || end->role == text::ChatRole::kAssistant); ++end)
    if (is_turn(*end)) --left;
  messages.erase(std::remove_if(first, end, is_turn), end);
  return true;
}

Status ChatJob::send(ChatAnswer& answer, SlotWatch& watch) {
  std::string text;
  for (bool goes_on = true; goes_on;) {
    text.clear();
    watch.wait_goes_on();
    SYRINX_TRY(goes_on, answer.next(text));
    watch.wait_ends();  // while the client takes it
    if (reply()->cancelled()) return fail(Code::kCancelled, "the client has left");
    if (!first_token_s_) {
      note_first_token();
      SYRINX_TRY_VOID(sink_->begin());
    }
    if (!text.empty()) SYRINX_TRY_VOID(sink_->take(text));
  }
  end_ = answer.end();
  return sink_->finish(end_, answer.usage());
}

void ChatJob::note_first_token() {
  first_token_s_ = static_cast<double>(system_clock().now_ns() - order_.arrived_ns) * 1e-9;
  metrics().observe("syrinx_time_to_first_token_seconds", {{"model", model_->id()}}, *first_token_s_);
}

// All fields but the messages have been checked, so that the engine speaks of these.
HttpError ChatJob::told(const Error& error) const {
  if (model_->names_its_files(error.message)) return http_error({Code::kInternal, error.message});
  if (error.code == Code::kLimitExceeded)
    return {.status = 400, .message = error.message, .param = "messages", .code = "context_length_exceeded"};
  return http_error(error, error.code == Code::kInvalidArgument ? "messages" : "");
}

const char* ChatJob::reason() const {
  const std::string_view outcome = this->outcome();
  if (outcome == "error") return fault().empty() ? "refused" : "error";
  if (outcome != "done") return this->outcome();
  return is_whole(end_) ? "stop" : "length";
}

void ChatJob::report() const {
  const std::string& id = model_->id();
  metrics().add("syrinx_answers_total", {{"model", id}, {"reason", reason()}});
  metrics().add("syrinx_tokens_total", {{"model", id}, {"kind", "prompt"}}, static_cast<double>(usage_.prompt_tokens));
  metrics().add("syrinx_tokens_total", {{"model", id}, {"kind", "cached"}}, static_cast<double>(usage_.cached_tokens));
  metrics().add("syrinx_tokens_total", {{"model", id}, {"kind", "answer"}}, static_cast<double>(usage_.answer_tokens));
  auto line = log_line(order_.event, order_.id, id, reason());
  if (!line) return;
  line->set("prompt_tokens", usage_.prompt_tokens);
  line->set("cached_tokens", usage_.cached_tokens);
  line->set("answer_tokens", usage_.answer_tokens);
  line->set("first_token_ms", first_token_s_ ? Json(milliseconds(*first_token_s_)) : Json());
  line->set("took_ms", milliseconds(took_ms_ / 1000));
  if (!order_.ignored.empty()) line->set("ignored", Json::Array(order_.ignored.begin(), order_.ignored.end()));
  log(*line);
}

}  // namespace syrinx::server
