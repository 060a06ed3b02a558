// Whole checkpoints, from sound to labels: those of the maker, in every family.
#include "models/transducer/model.h"

#include <gtest/gtest.h>

#include <set>

#include "fixtures.h"
#include "models/transducer/encoder.h"
#include "models/transducer/head_decoder.h"
#include "safetensors_arrays.h"
#include "temp_folder.h"

namespace syrinx::transducer {
namespace {

constexpr size_t kSamples = 20800;  // as in tools/reference/transducer.py

std::vector<int32_t> heard(const Model& model) {
  ThreadTeam team(1);
  nn::Runner runner(team);
  Encoder encoder(model.encoder(), runner);
  HeadDecoder decoder(model.decoder(), runner, {}, 1, 16);
  nn::Plane mels;
  mels.prepare(model.features()->frames(kSamples), model.config().features.mels, kernels::Storage::kF32);
  model.features()->compute(noise(kSamples), mels.view(), team);
  HeadState state(*model.decoder());
  std::vector<Emission> found;
  const HeadDecoder::Job job{&state, encoder.encode(std::as_const(mels).view()), &found};
  decoder.decode({&job, 1});
  EXPECT_EQ(state.faults(), 0u);
  std::vector<int32_t> labels;
  for (const Emission& emission : found) labels.push_back(emission.label);
  return labels;
}

std::shared_ptr<const Model> load(const std::string& name, const LoadOptions& options = {}) {
  auto model = Model::load(data(name), options);
  if (!model) {
    ADD_FAILURE() << model.error().message;
    std::abort();
  }
  return *model;
}

TEST(TransducerModel, LabelsAreTheMakers) {
  for (const std::string name : {"rnnt", "tdt", "tdt_ctc", "hybrid_streaming", "eou", "unified", "prompt"}) {
    const SafetensorsArrays reference(data(name + ".reference.safetensors"));
    EXPECT_EQ(heard(*load(name + ".nemo")), reference.get<int32_t>("tokens")) << name;
  }
}

// Here the reference has several labels, so that the last one said counts; the last two models have some thousands.
TEST(TransducerModel, ChangingLabelsAreTheMakers) {
  for (const std::string name :
       {"small", "medium", "conformer_rnnt", "conformer_streaming", "tdt_v3", "prompt_multilingual"}) {
    SCOPED_TRACE(name);
    const SafetensorsArrays reference(data(name + ".reference.safetensors"));
    const std::vector<int32_t> labels = reference.get<int32_t>("tokens");
    const std::set<int32_t> different(labels.begin(), labels.end());
    EXPECT_GE(different.size(), 3u);
    const std::shared_ptr<const Model> model = load(name + ".nemo");
    EXPECT_EQ(heard(*model), labels);
    if (model->config().decoder.vocabulary > 1000) {
      EXPECT_GT(*different.rbegin(), 4096);
    }
  }
}

TEST(TransducerModel, OfACtcModelToo) {
  const SafetensorsArrays reference(data("conformer_ctc.reference.safetensors"));
  const std::vector<float> log_probs = reference.get("ctc.logprobs");
  const std::shared_ptr<const Model> model = load("conformer_ctc.nemo");
  const size_t labels = model->config().decoder.vocabulary + 1;
  std::vector<int32_t> want;
  int32_t last = -1;
  for (size_t t = 0; t < log_probs.size() / labels; ++t) {
    const auto* const row = &log_probs[t * labels];
    const auto best = static_cast<int32_t>(std::max_element(row, row + labels) - row);
    if (best != last && best != static_cast<int32_t>(labels) - 1) want.push_back(best);
    last = best;
  }
  EXPECT_EQ(heard(*model), want);
}

// Other output of torch: under state_dict beside an optimiser's tensors and settings, and a dictionary alone; and that
// of the maker's training, with its configuration in OmegaConf's own objects.
TEST(TransducerModel, OtherFilesOfTorchGiveTheSame) {
  const std::vector<int32_t> labels = heard(*load("small.nemo"));
  EXPECT_GT(labels.size(), 5u);
  for (const char* const name : {"torch/lightning.ckpt", "torch/trained.ckpt", "torch/plain.pt"})
    EXPECT_EQ(heard(*load(name)), labels) << name;
}

// A second load takes everything out of the cache that the first one wrote, and hears the same.
TEST(TransducerModel, PackedWeightsAreKept) {
  for (const Precision precision : {Precision::kF32, Precision::kInt8}) {
    const TempFolder folder;
    const LoadOptions kept{.precision = precision, .cache_folder = folder.path()};
    const std::vector<int32_t> plain = heard(*load("rnnt.nemo", {.precision = precision}));
    EXPECT_EQ(heard(*load("rnnt.nemo", kept)), plain);
    const std::shared_ptr<const Model> again = load("rnnt.nemo", kept);
    EXPECT_NE(again->decoder()->packed, nullptr);
    EXPECT_EQ(heard(*again), plain);
  }
  EXPECT_EQ(Model::load(data("rnnt.nemo"), {.precision = Precision::kInt4}).error().code, Code::kUnsupported);
  EXPECT_EQ(Model::load(data("none.nemo")).error().code, Code::kNotFound);
}

}  // namespace
}  // namespace syrinx::transducer
