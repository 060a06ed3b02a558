// An answer of which no more is spoken than a number of characters.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/realtime/reply_source.h"

namespace syrinx::server::upstream {

// Ends at the limit, without waiting for the rest, as one that was cut short: the answer is destroyed then.
class CappedReply final : public realtime::Reply {
 public:
  CappedReply(std::unique_ptr<realtime::Reply> answer, size_t max_characters)
      : answer_(std::move(answer)), left_(max_characters) {}

  Result<bool> take(std::string& text) override;
  const char* cut_short() const override { return cut_short_; }
  std::optional<std::chrono::nanoseconds> looks_again_in() const override;

 private:
  std::unique_ptr<realtime::Reply> answer_;  // null: it has ended
  size_t left_;                              // characters
  const char* cut_short_ = nullptr;
  std::optional<Error> fault_;
};

// The refusal of a prompt without words: kInvalidArgument.
Error nothing_asked();

}  // namespace syrinx::server::upstream
