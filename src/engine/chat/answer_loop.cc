#include "engine/chat/answer_loop.h"

#include <algorithm>

namespace syrinx {

bool AnswerLoop::push(int32_t token) {
  bool loops = false;
  for (size_t period = 1; period <= std::min(kMostPeriod, tokens_); ++period) {
    size_t& repeats = repeats_[period - 1];
    repeats = last_[(tokens_ - period) % kMostPeriod] == token ? repeats + 1 : 0;
    loops |= repeats >= kTokens;
  }
  last_[tokens_++ % kMostPeriod] = token;
  return loops;
}

}  // namespace syrinx
