// The heads of whole checkpoints beside the maker's: prediction network and joint network behind fixed labels, what
// greedy decoding finds and when, and the CTC head of a hybrid in place of its main one.
#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "../safetensors_arrays.h"
#include "../seen_stages.h"
#include "fixtures.h"
#include "models/transducer/encoder.h"
#include "models/transducer/head_decoder.h"
#include "models/transducer/joint.h"
#include "models/transducer/model.h"
#include "models/transducer/prediction.h"
#include "temp_folder.h"

namespace syrinx::transducer {
namespace {

constexpr size_t kSamples = 20800;  // as in tools/reference/transducer.py
constexpr double kBound = 1e-4;     // of a stage's largest value

struct Heads {
  explicit Heads(const std::string& name, const LoadOptions& options = {})
      : model(load(name, options)), reference(data(name + ".reference.safetensors")) {
    const std::vector<float> sound = noise(kSamples);
    mels.resize(model->features()->frames(kSamples) * model->config().features.mels);
    const size_t columns = model->config().features.mels;
    model->features()->compute(sound, {mels.data(), {mels.size() / columns, columns}}, team);
  }

  static std::shared_ptr<const Model> load(const std::string& name, const LoadOptions& options) {
    auto model = Model::load(data(name + ".nemo"), options);
    if (!model) {
      ADD_FAILURE() << model.error().message;
      std::abort();
    }
    return *model;
  }

  // In the encoder's frames of the noise.
  std::vector<Emission> found() {
    Encoder encoder(model->encoder(), runner);
    HeadDecoder decoder(model->decoder(), runner, {.confidence = {.measure = ConfidenceMeasure::kTsallisExp}}, 1, 16);
    HeadState state(*model->decoder());
    const size_t columns = model->config().features.mels;
    std::vector<Emission> out;
    const HeadDecoder::Job job{&state, encoder.encode({mels.data(), {mels.size() / columns, columns}}), &out};
    decoder.decode({&job, 1});
    EXPECT_EQ(state.faults(), 0u);
    return out;
  }

  std::vector<int32_t> ints(const std::string& name) const { return reference.get<int32_t>(name); }

  std::shared_ptr<const Model> model;
  SafetensorsArrays reference;
  ThreadTeam team = ThreadTeam(1);
  nn::Runner runner = nn::Runner(team);
  std::vector<float> mels;
};

template <class F>
std::vector<int32_t> each(const std::vector<Emission>& found, F&& value) {
  std::vector<int32_t> out;
  for (const Emission& emission : found) out.push_back(static_cast<int32_t>(value(emission)));
  return out;
}

TEST(TransducerHeads, PredictionAndJointAreTheMakers) {
  for (const char* name : {"rnnt", "tdt", "tdt_ctc", "hybrid_streaming", "eou", "unified", "small", "medium",
                           "conformer_rnnt", "conformer_streaming", "rnnt_1_1b", "tdt_1_1b", "tdt_ctc_1_1b", "xxl",
                           "nemotron", "local_attention", "regular", "regular_streaming", "prompt"}) {
    SCOPED_TRACE(name);
    Heads heads(name);
    const bool told = heads.model->config().encoder.prompt.count > 0;
    const std::vector<float> encoded = heads.reference.get(told ? "prompted.auto" : "encoded");
    const std::vector<int32_t> frames = heads.ints("joint.frames");
    std::vector<int32_t> labels = heads.ints("pred.labels");
    labels.insert(labels.begin(), -1);
    ASSERT_EQ(labels.size(), frames.size());
    ASSERT_GE(labels.size(), 4u);
    const size_t width = heads.model->config().encoder.width, hidden = heads.model->config().decoder.width;
    Prediction prediction(heads.model->decoder(), heads.runner, 1);
    Joint joint(heads.model->decoder(), heads.runner, 1, 1);
    DecoderState state(*heads.model->decoder());
    DecoderState* const states[] = {&state};
    std::vector<float> rows, logits, frame(64);  // padded with zeros
    for (size_t i = 0; i < labels.size(); ++i) {
      state.head().label = labels[i];
      prediction.step(states);
      std::copy_n(&encoded[static_cast<size_t>(frames[i]) * width], width, frame.data());
      heads.team.run([&](int member) {
        const nn::Part part{.member = member, .rank = member, .size = 1};
        joint.encode(part, {frame.data(), {1, width}}, 0);
        joint.pair(0, joint.encoded(0), state.projection());
        joint.multiply(part, 1);
      });
      const std::span<const float> top = state.hidden(heads.model->decoder()->layers.size() - 1);
      rows.insert(rows.end(), top.begin(), top.begin() + static_cast<ptrdiff_t>(hidden));
      logits.insert(logits.end(), joint.logits(0).begin(), joint.logits(0).end());
    }
    EXPECT_LE(largest_difference(rows, heads.reference.get("pred.g")), kBound);
    EXPECT_LE(largest_difference(logits, heads.reference.get("joint.logits")), kBound);
  }
}

TEST(TransducerHeads, LabelsComeWhenTheMakersDo) {
  for (const char* name :
       {"small", "medium", "conformer_rnnt", "conformer_streaming", "tdt_v3", "rnnt_1_1b", "tdt_1_1b", "tdt_ctc_1_1b",
        "xxl", "nemotron", "local_attention", "regular", "regular_streaming", "prompt", "unified"}) {
    SCOPED_TRACE(name);
    Heads heads(name);
    const std::vector<Emission> found = heads.found();
    const std::vector<int32_t> labels = heads.ints("tokens");
    // So that the last one said counts: the checkpoint of `regular` knows two, and no other may become as poor.
    EXPECT_GE(std::set<int32_t>(labels.begin(), labels.end()).size(), std::string_view(name) == "regular" ? 2u : 3u);
    EXPECT_EQ(each(found, [](const Emission& e) { return e.label; }), labels);
    EXPECT_EQ(each(found, [](const Emission& e) { return e.frame; }), heads.ints("frames"));
    if (heads.model->config().decoder.kind == HeadKind::kTdt) {
      EXPECT_EQ(each(found, [](const Emission& e) { return e.duration; }), heads.ints("durations"));
    }
  }
}

// Labels, times and confidences of change_decoding_strategy(decoder_type='ctc') and of models that have no other head.
TEST(TransducerHeads, CtcIsTheMakers) {
  for (const char* name : {"tdt_ctc", "hybrid_streaming", "tdt_ctc_1_1b", "fastconformer_ctc"}) {
    SCOPED_TRACE(name);
    Heads heads(name, {.head = HeadChoice::kCtc});
    EXPECT_EQ(heads.model->config().decoder.kind, HeadKind::kCtc);
    const std::vector<Emission> found = heads.found();
    EXPECT_GE(found.size(), 3u);
    EXPECT_EQ(each(found, [](const Emission& e) { return e.label; }), heads.ints("ctc.tokens"));
    EXPECT_EQ(each(found, [](const Emission& e) { return e.frame; }), heads.ints("ctc.frames"));
    EXPECT_EQ(each(found, [](const Emission& e) { return e.frame + e.duration; }), heads.ints("ctc.ends"));
    const std::vector<float> sure = heads.reference.get("ctc.confidence");
    ASSERT_EQ(sure.size(), found.size());
    for (size_t i = 0; i < sure.size(); ++i) EXPECT_NEAR(found[i].confidence, sure[i], 1e-5) << i;
  }
}

TEST(TransducerHeads, AreThoseThatTheModelHas) {
  const auto code = [](const std::string& name, HeadChoice head) {
    const auto model = Model::load(data(name + ".nemo"), {.head = head});
    return model ? Code::kInternal : model.error().code;
  };
  EXPECT_EQ(code("tdt", HeadChoice::kCtc), Code::kUnsupported);
  EXPECT_EQ(code("fastconformer_ctc", HeadChoice::kTransducer), Code::kUnsupported);
  EXPECT_EQ(code("fastconformer_ctc", HeadChoice::kCtc), Code::kInternal);
  EXPECT_EQ(code("tdt_ctc", HeadChoice::kTransducer), Code::kInternal);
}

// Neither head's packed weights are taken for the other's.
TEST(TransducerHeads, AreKeptApart) {
  const TempFolder folder;
  for (int round = 0; round < 2; ++round) {
    for (const HeadChoice head : {HeadChoice::kTransducer, HeadChoice::kCtc}) {
      Heads heads("tdt_ctc", {.head = head, .cache_folder = folder.path()});
      EXPECT_NE(heads.model->decoder()->packed, nullptr);
      EXPECT_EQ(each(heads.found(), [](const Emission& e) { return e.label; }),
                heads.ints(head == HeadChoice::kCtc ? "ctc.tokens" : "tokens"));
    }
  }
}

}  // namespace
}  // namespace syrinx::transducer
