// Tokens a second of a language model: a prompt of 512 tokens, steps behind 16 and behind 512 tokens, and steps of four
// conversations at once.  bench/race/llama.py runs it beside llama.cpp.
//
//   llama_speed MODEL PRECISION THREADS RUNS      a JSON object; of each figure [least, median, most] of the runs
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "base/json.h"
#include "models/llama/language_model.h"
#include "models/llama/model.h"

namespace syrinx::llama {
namespace {

constexpr size_t kPrompt = 512, kShort = 16, kSteps = 128, kConversations = 4;

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

class Speed {
 public:
  explicit Speed(LanguageModel& model) : model_(model) {
    for (size_t n = 0; n < kConversations; ++n) caches_.push_back(*model.make_cache(kPrompt + kSteps));
    ids_.resize(kPrompt);
    std::iota(ids_.begin(), ids_.end(), 100);
  }

  // The logits of the last token are wanted, as they choose the first one of an answer.
  double prompt() {
    caches_[0].truncate(0);
    const double begun = now_s();
    read(kPrompt - 1, 0);
    step(1);
    return kPrompt / (now_s() - begun);
  }
  // Tokens a second of all conversations together, each behind so many tokens.
  double steps(size_t behind, size_t conversations) {
    for (size_t n = 0; n < conversations; ++n) {
      caches_[n].truncate(0);
      read(behind, n);
    }
    const double begun = now_s();
    for (size_t i = 0; i < kSteps; ++i) step(conversations);
    return static_cast<double>(kSteps * conversations) / (now_s() - begun);
  }

 private:
  void read(size_t tokens, size_t conversation) {
    const Status status = model_.prompt(std::span(ids_).first(tokens), caches_[conversation]);
    SYRINX_CHECK(status.has_value(), "{}", status.error().message);
  }
  void step(size_t conversations) {
    LanguageModel::Tokens streams[kConversations];
    for (size_t n = 0; n < conversations; ++n)
      streams[n] = {.ids = std::span(ids_).subspan(n, 1), .cache = &caches_[n]};
    model_.read({streams, conversations});
  }

  LanguageModel& model_;
  std::vector<nn::KvCache> caches_;
  std::vector<int32_t> ids_;
};

template <class Measure>
Json spread_of(int runs, const Measure& measure) {
  std::vector<double> values;
  for (int i = 0; i < runs; ++i) values.push_back(measure());
  std::sort(values.begin(), values.end());
  return Json(Json::Array{values.front(), values[values.size() / 2], values.back()});
}

Result<Json> run(const std::string& path, const std::string& precision_name, int threads, int runs) {
  SYRINX_TRY(const Precision precision, parse_precision(precision_name));
  ThreadTeam team(threads);
  SYRINX_TRY(const std::shared_ptr<const Model> model, Model::load(path, {.precision = precision, .team = &team}));
  nn::Runner runner(team);
  LanguageModel language(model->weights(), runner, kConversations);
  Speed speed(language);
  speed.prompt();
  Json out;
  out.set("precision", precision_name);
  out.set("threads", threads);
  out.set("prompt", spread_of(runs, [&] { return speed.prompt(); }));
  out.set("steps_behind_16", spread_of(runs, [&] { return speed.steps(kShort, 1); }));
  out.set("steps_behind_512", spread_of(runs, [&] { return speed.steps(kPrompt, 1); }));
  out.set("four_conversations", spread_of(runs, [&] { return speed.steps(kShort, kConversations); }));
  return out;
}

}  // namespace
}  // namespace syrinx::llama

int main(int count, char** words) {
  if (count != 5) {
    std::fputs("usage: llama_speed MODEL PRECISION THREADS RUNS\n", stderr);
    return 2;
  }
  const auto out = syrinx::llama::run(words[1], words[2], std::atoi(words[3]), std::atoi(words[4]));
  if (!out) {
    std::fprintf(stderr, "llama_speed: %s\n", out.error().message.c_str());
    return 1;
  }
  std::printf("%s\n", out->dump().c_str());
  return 0;
}
