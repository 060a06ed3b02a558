// Small language models beside transformers' own classes (tools/checkpoints/llama.py).
#include "models/llama/language_model.h"

#include <cmath>

#include "allocation_count.h"
#include "models/llama/model.h"
#include "relative.h"
#include "safetensors_arrays.h"
#include "temp_folder.h"

namespace syrinx::llama {
namespace {

constexpr const char* kModels[] = {"llama3",      "llama_biased", "qwen2",     "qwen3",
                                   "smollm_gguf", "qwen2_gguf",   "qwen3_gguf"};

std::string folder_of(const std::string& name) { return std::string(SYRINX_TEST_DATA) + "/llama/" + name; }

std::shared_ptr<const Weights> load(const std::string& name, Precision precision = Precision::kF32,
                                    const std::string& cache = "") {
  const auto model = Model::load(folder_of(name), {.precision = precision, .cache_folder = cache});
  EXPECT_TRUE(model.has_value()) << (model ? "" : model.error().message);
  return model ? (*model)->weights() : nullptr;
}

struct Expected {
  std::vector<int32_t> ids;
  std::vector<float> logits;  // [ids, V]
};
Expected expected(const std::string& name) {
  const SafetensorsArrays file(folder_of(name) + "/expected.safetensors");
  return {file.get<int32_t>("ids"), file.get("logits")};
}

// A model with a team of its own.
struct Running {
  explicit Running(std::shared_ptr<const Weights> weights, int threads = 2, size_t streams = 4)
      : team(threads), runner(team), model(std::move(weights), runner, streams) {}
  nn::KvCache cache(size_t positions = 64) { return *model.make_cache(positions); }
  // The logits behind some more tokens of a conversation.
  std::vector<float> read(std::span<const int32_t> ids, nn::KvCache& to) {
    const LanguageModel::Tokens tokens{.ids = ids, .cache = &to};
    const View<float, 2> logits = model.read({&tokens, 1});
    return {logits.row(0), logits.row(0) + logits.extent(1)};
  }

  ThreadTeam team;
  nn::Runner runner;
  LanguageModel model;
};

TEST(LanguageModel, LogitsMatchTransformers) {
  for (const char* const name : kModels) {
    SCOPED_TRACE(name);
    Running run(load(name));
    const Expected want = expected(name);
    nn::KvCache cache = run.cache();
    std::vector<float> got;
    for (const int32_t id : want.ids) {
      const std::vector<float> logits = run.read({&id, 1}, cache);
      got.insert(got.end(), logits.begin(), logits.end());
    }
    EXPECT_LE(relative(got, want.logits), 2e-6);
  }
}

TEST(LanguageModel, PromptInOnePassGivesSameLogits) {
  for (const char* const name : kModels) {
    SCOPED_TRACE(name);
    Running run(load(name));
    const Expected want = expected(name);
    nn::KvCache cache = run.cache();
    const std::vector<float> got = run.read(want.ids, cache);
    EXPECT_LE(relative(got, {want.logits.end() - static_cast<ptrdiff_t>(got.size()), want.logits.end()}), 2e-6);
  }
}

// The error of all logits behind every token, over their size: one logit alone is at the mercy of chance.
double relative_size(std::span<const float> got, std::span<const float> want) {
  double error = 0, size = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double away = double{got[i]} - want[i];
    error += away * away;
    size += double{want[i]} * want[i];
  }
  return std::sqrt(error / size);
}

TEST(LanguageModel, NarrowPrecisionsStayNear) {
  struct Bound {
    Precision precision;
    double relative;
  };
  for (const Bound& bound :
       {Bound{Precision::kBf16, 0.01}, Bound{Precision::kInt8, 0.035}, Bound{Precision::kInt4, 0.26}}) {
    for (const char* const name : kModels) {
      SCOPED_TRACE(std::string(name) + " " + precision_name(bound.precision));
      Running run(load(name, bound.precision));
      const Expected want = expected(name);
      nn::KvCache cache = run.cache();
      std::vector<float> got;
      for (const int32_t id : want.ids) {
        const std::vector<float> logits = run.read({&id, 1}, cache);
        got.insert(got.end(), logits.begin(), logits.end());
      }
      EXPECT_LE(relative_size(got, want.logits), bound.relative);
    }
  }
}

// int4 holds the blocks of ggml's Q4_1 as they are: what is lost is lost by activations, as in int8.
TEST(LanguageModel, Int4LosesNothingOfQ41) {
  Running run(load("smollm_gguf", Precision::kInt4));
  const Expected want = expected("smollm_gguf");
  nn::KvCache cache = run.cache();
  const std::vector<float> got = run.read(want.ids, cache);
  EXPECT_LE(relative(got, {want.logits.end() - static_cast<ptrdiff_t>(got.size()), want.logits.end()}), 0.05);
}

// A conversation gets the same bits alone and beside others, whose rows are more.
TEST(LanguageModel, ConversationsDoNotTouchEachOther) {
  for (const Precision precision : {Precision::kBf16, Precision::kInt8}) {
    Running run(load("smollm_gguf", precision));
    const std::vector<int32_t> ids = expected("smollm_gguf").ids;
    const std::span<const int32_t> all(ids);
    std::vector<std::vector<float>> alone;
    for (size_t n = 0; n < 3; ++n) {
      nn::KvCache cache = run.cache();
      ASSERT_TRUE(run.model.prompt(all.first(4 + n), cache).has_value());
      alone.push_back(run.read(all.subspan(10 + n, 1), cache));
    }
    std::vector<nn::KvCache> caches;
    for (size_t n = 0; n < 3; ++n) caches.push_back(run.cache());
    std::vector<LanguageModel::Tokens> together;
    for (size_t n = 0; n < 3; ++n) {
      ASSERT_TRUE(run.model.prompt(all.first(4 + n), caches[n]).has_value());
      together.push_back({.ids = all.subspan(10 + n, 1), .cache = &caches[n]});
    }
    const View<float, 2> logits = run.model.read(together);
    for (size_t n = 0; n < 3; ++n)
      EXPECT_EQ(alone[n], std::vector<float>(logits.row(n), logits.row(n) + logits.extent(1))) << n;
  }
}

TEST(LanguageModel, CutPassGivesTheSameBits) {
  const auto weights = load("smollm_gguf", Precision::kInt8);
  const std::vector<int32_t> ids = expected("smollm_gguf").ids;
  Running run(weights);
  nn::KvCache whole = run.cache(), cut = run.cache();
  const std::vector<float> want = run.read(ids, whole);
  size_t cuts = 0;
  const LanguageModel::Tokens tokens{.ids = ids, .cache = &cut};
  const View<float, 2> got = run.model.read({&tokens, 1}, true, {.between = [&] { ++cuts; }, .layers = 1});
  EXPECT_EQ(want, std::vector<float>(got.row(0), got.row(0) + got.extent(1)));
  EXPECT_EQ(cuts, weights->config.layers - 1);
}

TEST(LanguageModel, ThreadsDoNotChangeNumbers) {
  const auto weights = load("qwen2_gguf", Precision::kInt8);
  const std::vector<int32_t> ids = expected("qwen2_gguf").ids;
  Running one(weights, 1), three(weights, 3);
  nn::KvCache a = one.cache(), b = three.cache();
  EXPECT_EQ(one.read(ids, a), three.read(ids, b));
}

TEST(LanguageModel, PromptOfSeveralPassesContinues) {
  Running run(load("llama3", Precision::kBf16));
  const std::vector<int32_t> some = expected("llama3").ids;
  std::vector<int32_t> ids;
  while (ids.size() < LanguageModel::kPassRows + 40) ids.insert(ids.end(), some.begin(), some.end());
  nn::KvCache whole = run.cache(256), parts = run.cache(256);
  ASSERT_TRUE(run.model.prompt(ids, whole).has_value());
  for (size_t first = 0; first < ids.size(); first += 50)
    ASSERT_TRUE(
        run.model.prompt(std::span(ids).subspan(first, std::min<size_t>(50, ids.size() - first)), parts).has_value());
  EXPECT_EQ(whole.position, ids.size());
  const int32_t next = 7;
  EXPECT_LE(relative(run.read({&next, 1}, parts), run.read({&next, 1}, whole)), 0.01);
}

TEST(LanguageModel, TokensThatDoNotFitAreRefused) {
  Running run(load("smollm_gguf"));
  nn::KvCache cache = run.cache(4);
  const std::vector<int32_t> ids = {5, 6, 7};
  ASSERT_TRUE(run.model.prompt(ids, cache).has_value());
  const Status status = run.model.prompt(ids, cache);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Code::kLimitExceeded);
  EXPECT_EQ(status.error().message, "3 tokens more after position 3 of a conversation that has room for 4");
  cache.truncate(0);
  for (const int32_t id : {-1, 64}) {
    const Status wrong = run.model.prompt({&id, 1}, cache);
    ASSERT_FALSE(wrong.has_value());
    EXPECT_EQ(wrong.error().code, Code::kInvalidArgument);
  }
}

TEST(LanguageModel, CacheBeyondContextIsRefused) {
  const Running run(load("smollm_gguf"));
  EXPECT_TRUE(run.model.make_cache(256).has_value());
  for (const size_t positions : {size_t{257}, ~size_t{0} / 2}) {
    const auto cache = run.model.make_cache(positions);
    ASSERT_FALSE(cache.has_value());
    EXPECT_EQ(cache.error().code, Code::kLimitExceeded);
    EXPECT_NE(cache.error().message.find("the limit of this model is 256"), std::string::npos);
  }
}

TEST(LanguageModel, PassAllocatesNothingWhenWarm) {
  Running run(load("qwen3_gguf", Precision::kInt8), 1);
  const std::vector<int32_t> ids = expected("qwen3_gguf").ids;
  nn::KvCache cache = run.cache();
  const LanguageModel::Tokens prompt{.ids = std::span(ids).first(8), .cache = &cache};
  run.model.read({&prompt, 1});
  const size_t before = allocation_count();
  for (const int32_t id : std::span(ids).subspan(8)) {
    const LanguageModel::Tokens step{.ids = {&id, 1}, .cache = &cache};
    run.model.read({&step, 1});
  }
  EXPECT_EQ(allocation_count(), before);
}

TEST(LanguageModel, KeptWeightsGiveSameBits) {
  const TempFolder kept;
  for (const char* const name : {"smollm_gguf", "llama3"}) {
    const std::vector<int32_t> ids = expected(name).ids;
    std::vector<std::vector<float>> got;
    for (const std::string& folder : {std::string(), kept.path(), kept.path()}) {
      Running run(load(name, Precision::kInt8, folder));
      nn::KvCache conversation = run.cache();
      got.push_back(run.read(ids, conversation));
    }
    EXPECT_EQ(got[0], got[1]);
    EXPECT_EQ(got[0], got[2]);
  }
}

}  // namespace
}  // namespace syrinx::llama
