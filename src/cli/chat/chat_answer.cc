#include "cli/chat/chat_answer.h"

#include <utility>

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/signals.h"
#include "tensor/precision.h"

namespace syrinx::cli {
namespace {

const char* end_name(ChatEnd end) {
  switch (end) {
    case ChatEnd::kOpen: return "open";
    case ChatEnd::kStop: return "stop";
    case ChatEnd::kStopText: return "stop_text";
    case ChatEnd::kMaxTokens: return "max_tokens";
    case ChatEnd::kContext: return "context";
    case ChatEnd::kLoop: break;
  }
  return "loop";
}

struct AnswerTimes {
  double first_token_ms = 0;
  double total_ms = 0;
};

double per_second(size_t count, double ms) { return ms > 0 ? static_cast<double>(count) * 1e3 / ms : 0; }

std::string figures(const ChatEngine& engine, const ChatAnswer& answer, const AnswerTimes& times) {
  const ChatUsage usage = answer.usage();
  const size_t read = usage.prompt_tokens - usage.cached_tokens;
  const size_t later = usage.answer_tokens > 0 ? usage.answer_tokens - 1 : 0;  // than the first one
  Json json;
  json.set("end", end_name(answer.end()));
  json.set("model", engine.name());
  json.set("precision", precision_name(engine.precision()));
  json.set("threads", engine.threads());
  json.set("context", engine.context());
  json.set("prompt_tokens", usage.prompt_tokens);
  json.set("cached_tokens", usage.cached_tokens);
  json.set("answer_tokens", usage.answer_tokens);
  json.set("load_ms", engine.load_ms());
  json.set("first_token_ms", times.first_token_ms);
  json.set("total_ms", times.total_ms);
  json.set("prompt_tokens_per_second", per_second(read, times.first_token_ms));
  json.set("answer_tokens_per_second", per_second(later, times.total_ms - times.first_token_ms));
  json.set("peak_rss_bytes", static_cast<int64_t>(peak_rss_bytes()));
  return json.dump() + "\n";
}

Status write_piece(const ChatTask& task, std::string_view piece, const ChatWriter& write) {
  if (piece.empty()) return {};
  if (!task.json) return write(piece);
  Json line;
  line.set("text", piece);
  return write(line.dump() + "\n");
}

Status write_pieces(const ChatTask& task, ChatAnswer& answer, const ChatWriter& write, AnswerTimes& times,
                    std::string& text) {
  const Stopwatch watch;
  for (bool is_open = true, is_first = true; is_open; is_first = false) {
    if (cancel_requested()) return fail(Code::kCancelled, "stopped while answering");
    std::string piece;
    SYRINX_TRY(is_open, answer.next(piece));
    if (is_first) times.first_token_ms = watch.elapsed_ms();
    text += piece;
    SYRINX_TRY_VOID(write_piece(task, piece, write));
  }
  times.total_ms = watch.elapsed_ms();
  return {};
}

}  // namespace

ChatRequest request_of(const ChatTask& task, std::vector<text::ChatMessage> messages, uint64_t number) {
  ChatRequest request;
  request.messages = std::move(messages);
  request.sampling = task.sampling;
  request.seed = task.seed + number;
  request.stops = task.stops;
  request.max_tokens = task.max_tokens;
  request.is_wanted = [] { return !cancel_requested(); };
  return request;
}

Status write_answer(const ChatTask& task, const ChatEngine& engine, ChatAnswer& answer, const ChatWriter& write,
                    std::string& text) {
  AnswerTimes times;
  text.clear();
  Status status = write_pieces(task, answer, write, times, text);
  if (status && task.json) return write(figures(engine, answer, times));
  if (status) return text.ends_with('\n') ? status : write("\n");
  // An error follows on a line of its own.
  const bool is_cut_line = !task.json && !text.empty() && !text.ends_with('\n');
  if (is_cut_line && status.error().code != Code::kIo) SYRINX_TRY_VOID(write("\n"));
  return status;
}

std::string describe_end(ChatEnd end, const ChatEngine& engine) {
  if (end == ChatEnd::kContext)
    return fmt::format("the answer ends here, since the context of {} tokens is full", engine.context());
  if (end == ChatEnd::kLoop) return "the answer ends here, since it only repeats itself";
  return {};
}

}  // namespace syrinx::cli
