// A loaded language model: answers conversations.  Each family of models has an engine of its own behind this
// interface, loaded by engine/families/families.h.
//
// Thread-safe: answers of several threads take turns at the process's team of threads (schedule/compute.h), and tokens
// that are asked for at the same time are one step, so that the weights are read once for all of them.  Answers that
// somebody waits for go behind live sound and before batch work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/step_counts.h"
#include "engine/chat/chat_files.h"
#include "tensor/precision.h"
#include "text/chat/chat_message.h"

namespace syrinx {

class Compute;

// How tokens are drawn; what is absent is the model's own (ChatEngine::sampling()).
struct ChatSampling {
  static constexpr float kMaxTemperature = 2, kMaxPenalty = 2;
  static constexpr int kMaxTopK = 1 << 20;

  std::optional<float> temperature = {};         // 0 to kMaxTemperature; 0: always the likeliest token
  std::optional<float> top_p = {};               // above 0, at most 1
  std::optional<float> min_p = {};               // 0 to 1
  std::optional<int> top_k = {};                 // 0 to kMaxTopK; 0: all
  std::optional<float> repetition_penalty = {};  // 1 / kMaxPenalty to kMaxPenalty; 1: none
};
// kInvalidArgument names the option and what is allowed.
Status check_chat_sampling(const ChatSampling& sampling);

struct ChatRequest {
  static constexpr size_t kMaxMessages = 1024;
  static constexpr size_t kMaxContentBytes = 2 << 20;  // of all messages together
  static constexpr size_t kMaxStops = 4, kMaxStopBytes = 256;

  std::vector<text::ChatMessage> messages;  // UTF-8
  ChatSampling sampling = {};
  uint64_t seed = 0;
  std::vector<std::string> stops = {};   // texts that end the answer and are not part of it; none is empty
  size_t max_tokens = 0;                 // of the answer; 0: as many as fit
  bool is_batch = false;                 // nobody waits for it
  std::function<bool()> is_wanted = {};  // polled while it waits for its turn; empty: always.  Must neither
                                         // wait nor throw; any thread.  Once it says no, next() is kCancelled
};

enum class ChatEnd : uint8_t {
  kOpen,       // it goes on
  kStop,       // the model has ended it
  kStopText,   // one of ChatRequest::stops has come
  kMaxTokens,  // ChatRequest::max_tokens
  kContext,    // the conversation has no room for more
  kLoop,       // it only repeats itself (answer_loop.h)
};

struct ChatUsage {
  size_t prompt_tokens = 0;
  size_t cached_tokens = 0;  // of them: those that were known from before
  size_t answer_tokens = 0;  // the one that ends it among them
};

// kInvalidArgument or kLimitExceeded, for everything but tokens.
Status check_chat_request(const ChatRequest& request);

// An answer as it is made; destroying it breaks it off.  One thread at a time; does not outlive the engine.
class ChatAnswer {
 public:
  virtual ~ChatAnswer() = default;

  // Makes one more token, with the first call after the prompt has been read, and appends what has become known of the
  // text: whole characters, perhaps none, and nothing that may belong to a stop text.  False: that was the last of it.
  // kCancelled: it is not wanted any more.
  virtual Result<bool> next(std::string& text) = 0;
  virtual ChatEnd end() const = 0;
  virtual ChatUsage usage() const = 0;  // prompt_tokens: from the beginning
};

struct ChatEngineOptions {
  ChatFiles files = {};                     // of find_chat_files()
  std::optional<Precision> precision = {};  // absent: the family's default
  int threads = 0;                          // 1 to 64; 0: default_threads()
  std::string cache_folder = {};            // for packed weights; empty: none is kept
  size_t context = 0;        // tokens of a conversation, with its answer; 0: kDefaultContext or what the model knows
  size_t conversations = 1;  // answered at once, 1 to kMaxConversations; each has memory for its context
  std::shared_ptr<Compute> compute = {};  // whose team and scheduler it uses; null: the process's

  static constexpr size_t kDefaultContext = 4096, kMaxConversations = 64;
};

class ChatEngine {
 public:
  virtual ~ChatEngine() = default;

  // kInvalidArgument for the request; kLimitExceeded: the conversation leaves no room for an answer in
  // context() tokens; kUnavailable: conversations() are answered already.
  virtual Result<std::unique_ptr<ChatAnswer>> start(ChatRequest request) = 0;

  virtual const std::string& name() const = 0;
  virtual Precision precision() const = 0;
  virtual int threads() const = 0;
  virtual double load_ms() const = 0;
  virtual size_t context() const = 0;         // tokens
  virtual size_t conversations() const = 0;   // at once
  virtual ChatSampling sampling() const = 0;  // where a request says nothing: all of them
  // The steps since it was loaded, and how many wait for theirs at this moment.  Any thread.
  virtual StepFigures steps() const = 0;
  virtual size_t waiting() const = 0;
};

}  // namespace syrinx
