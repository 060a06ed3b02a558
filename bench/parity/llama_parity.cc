// A language model beside what tools' reference holds of it; bench/parity/llama.py runs it.
//
//   llama_parity MODEL PRECISION THREADS REFERENCE.safetensors
//
// prompt.N [P], ids.N [T], logits.N [T, V]: a prompt, the tokens that the maker's code chose greedily behind it, and
// the logits that it chose them by.  text [W, N]: windows of tokens whose perplexity is told.  Prints a JSON object.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "base/json.h"
#include "base/mapped_file.h"
#include "models/llama/language_model.h"
#include "models/llama/model.h"
#include "tensor/safetensors.h"

namespace syrinx::llama {
namespace {

template <class T>
std::vector<T> values_of(const TensorRef& tensor) {
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

class Parity {
 public:
  Parity(LanguageModel& model, const Safetensors& reference)
      : model_(model), reference_(reference), cache_(*model.make_cache(nn::kMaxPositions)) {}

  // The maker's tokens are told to the model, so that every row is compared.
  Json prompts() {
    size_t tokens = 0, same = 0, whole = 0, count = 0;
    double worst = 0;
    for (; const TensorRef* prompt = find("prompt", count); ++count) {
      const std::vector<int32_t> before = values_of<int32_t>(*prompt), ids = values_of<int32_t>(*find("ids", count));
      const std::vector<float> logits = values_of<float>(*find("logits", count));
      cache_.truncate(0);
      model_.prompt(std::span(before).first(before.size() - 1), cache_);
      size_t equal = 0;
      int32_t last = before.back();
      for (size_t i = 0; i < ids.size(); ++i) {
        const std::span<const float> got = step(last);
        const std::span<const float> want = std::span(logits).subspan(i * got.size(), got.size());
        worst = std::max(worst, difference(got, want));
        equal += std::max_element(got.begin(), got.end()) - got.begin() == ids[i] ? 1 : 0;
        last = ids[i];
      }
      tokens += ids.size();
      same += equal;
      whole += equal == ids.size() ? 1 : 0;
    }
    Json out;
    out.set("prompts", count);
    out.set("same_prompts", whole);
    out.set("tokens", tokens);
    out.set("same_tokens", same);
    out.set("worst_relative", worst);
    return out;
  }

  double perplexity() {
    const TensorRef* const text = reference_.find("text");
    if (text == nullptr) return 0;
    const std::vector<int32_t> ids = values_of<int32_t>(*text);
    const size_t window = text->dims[1];
    double sum = 0;
    for (size_t first = 0; first < ids.size(); first += window) {
      cache_.truncate(0);
      for (size_t i = 0; i + 1 < window; ++i) sum -= log_probability(step(ids[first + i]), ids[first + i + 1]);
    }
    return std::exp(sum / static_cast<double>(ids.size() - ids.size() / window));
  }

 private:
  const TensorRef* find(const char* name, size_t n) const { return reference_.find(fmt::format("{}.{}", name, n)); }
  std::span<const float> step(int32_t id) {
    const LanguageModel::Tokens tokens{.ids = {&id, 1}, .cache = &cache_};
    const View<float, 2> logits = model_.read({&tokens, 1});
    return {logits.row(0), logits.extent(1)};
  }
  static double difference(std::span<const float> got, std::span<const float> want) {
    double worst = 0, largest = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      worst = std::max(worst, std::fabs(double{got[i]} - want[i]));
      largest = std::max(largest, std::fabs(double{want[i]}));
    }
    return worst / largest;
  }
  static double log_probability(std::span<const float> logits, int32_t id) {
    const double most = *std::max_element(logits.begin(), logits.end());
    const double sum = std::accumulate(logits.begin(), logits.end(), 0.0,
                                       [&](double total, float logit) { return total + std::exp(logit - most); });
    return logits[static_cast<size_t>(id)] - most - std::log(sum);
  }

  LanguageModel& model_;
  const Safetensors& reference_;
  nn::KvCache cache_;
};

Result<Json> run(const std::string& path, const std::string& precision_name, int threads,
                 const std::string& reference) {
  SYRINX_TRY(const Precision precision, parse_precision(precision_name));
  SYRINX_TRY(const MappedFile file, MappedFile::open(reference));
  SYRINX_TRY(const Safetensors tensors, Safetensors::parse(file.bytes(), reference));
  ThreadTeam team(threads);
  SYRINX_TRY(const std::shared_ptr<const Model> model, Model::load(path, {.precision = precision, .team = &team}));
  nn::Runner runner(team);
  LanguageModel language(model->weights(), runner);
  Parity parity(language, tensors);
  Json out = parity.prompts();
  out.set("precision", precision_name);
  out.set("perplexity", parity.perplexity());
  return out;
}

}  // namespace
}  // namespace syrinx::llama

int main(int count, char** words) {
  if (count != 5) {
    std::fputs("usage: llama_parity MODEL PRECISION THREADS REFERENCE.safetensors\n", stderr);
    return 2;
  }
  const auto out = syrinx::llama::run(words[1], words[2], std::atoi(words[3]), words[4]);
  if (!out) {
    std::fprintf(stderr, "llama_parity: %s\n", out.error().message.c_str());
    return 1;
  }
  std::printf("%s\n", out->dump().c_str());
  return 0;
}
