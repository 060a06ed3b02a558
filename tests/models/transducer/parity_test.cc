// Features and the encoder beside the maker's own classes, on small checkpoints of every family.
#include <gtest/gtest.h>

#include "../safetensors_arrays.h"
#include "../seen_stages.h"
#include "fixtures.h"
#include "models/transducer/encoder.h"
#include "models/transducer/features.h"
#include "models/transducer/stream_encoder.h"

namespace syrinx::transducer {
namespace {

constexpr double kBound = 1e-4;  // of a stage's largest value
constexpr size_t kSamples = 20800;

const char* const kFamilies[] = {"tdt",
                                 "tdt_ctc",
                                 "rnnt",
                                 "hybrid_streaming",
                                 "eou",
                                 "conformer_ctc",
                                 "unified",
                                 "small",
                                 "medium",
                                 "conformer_rnnt",
                                 "conformer_streaming",
                                 "tdt_v3",
                                 "rnnt_1_1b",
                                 "tdt_1_1b",
                                 "tdt_ctc_1_1b",
                                 "xxl",
                                 "nemotron",
                                 "fastconformer_ctc",
                                 "local_attention",
                                 "regular",
                                 "regular_streaming"};

// And those whose blocks' frames are told a language.
std::vector<const char*> families_and_prompts() {
  std::vector<const char*> out(std::begin(kFamilies), std::end(kFamilies));
  out.insert(out.end(), {"prompt", "prompt_multilingual"});
  return out;
}

struct Family {
  explicit Family(const std::string& name, Precision precision = Precision::kF32)
      : loaded(name + ".nemo", precision), reference(data(name + ".reference.safetensors")) {}

  // The encoder's frames for the first samples of the noise.
  std::vector<float> encoded(Encoder& encoder, size_t samples, AttentionContext context) {
    const std::vector<float> mels = loaded.mels(samples);
    const size_t columns = loaded.checkpoint.config().encoder.mels;
    const View<const float, 2> frames = encoder.encode({mels.data(), {mels.size() / columns, columns}}, context);
    return flat(frames);
  }

  Loaded loaded;
  SafetensorsArrays reference;
};

TEST(TransducerParity, Features) {
  for (const char* name : families_and_prompts()) {
    Family family(name);
    for (const size_t samples : {size_t{200}, size_t{400}, size_t{4000}}) {
      SCOPED_TRACE(fmt::format("{} {}", name, samples));
      const std::vector<float> ours = family.loaded.mels(samples);
      const std::vector<float> theirs = family.reference.get(fmt::format("mel.{}", samples));
      ASSERT_EQ(ours.size(), theirs.size());
      // Nothing but zeros: a single frame has no deviation.
      const bool zeros = std::all_of(theirs.begin(), theirs.end(), [](float v) { return v == 0.0f; });
      if (zeros) {
        EXPECT_EQ(ours, theirs);
      } else {
        EXPECT_LE(largest_difference(ours, theirs), kBound);
      }
    }
  }
}

// A window of 401 samples is centred one sample before its multiple of the hop, as torch.stft lays it; one of 320 is as
// short as a hop of 160 allows.  In both, a stream gives the rows of the whole recording.
TEST(TransducerFeatures, OddAndShortWindows) {
  const Checkpoint checkpoint = opened("tdt_mlx");  // stores no window of its own
  ThreadTeam team(1);
  for (const size_t window : {401, 320}) {
    SCOPED_TRACE(window);
    FeatureConfig config = checkpoint.config().features;
    config.window = window;
    config.preemphasis = 0;
    config.per_feature = false;
    WeightReader reader(checkpoint, Precision::kF32);
    auto made = Features::make(reader, config);
    ASSERT_TRUE(made.has_value()) << made.error().message;
    const auto features = std::make_shared<const Features>(std::move(*made));
    const auto mels = [&](const std::vector<float>& sound) {
      std::vector<float> out(features->frames(sound.size()) * config.mels);
      features->compute(sound, {out.data(), {features->frames(sound.size()), config.mels}}, team);
      return out;
    };
    // Two impulses that lie alike in the window of frame 10, one before its centre and one behind.
    std::vector<std::vector<float>> rows;
    for (const size_t at : {size_t{1500} - window % 2, size_t{1699}}) {
      std::vector<float> impulse(3200);
      impulse[at] = 1;
      const std::vector<float> all = mels(impulse);
      rows.emplace_back(all.begin() + static_cast<ptrdiff_t>(10 * config.mels),
                        all.begin() + static_cast<ptrdiff_t>(11 * config.mels));
    }
    EXPECT_LE(largest_difference(rows[0], rows[1]), 1e-4);
    const std::vector<float> sound = noise(8180), whole = mels(sound);
    FeatureStream stream(features);
    std::vector<float> streamed(whole.size() + config.mels);
    const size_t room = streamed.size() / config.mels;
    size_t given = stream.push(sound, {streamed.data(), {room, config.mels}}).rows;
    given += stream.finish({streamed.data() + given * config.mels, {room - given, config.mels}});
    ASSERT_EQ(given * config.mels, whole.size());
    streamed.resize(whole.size());
    EXPECT_LE(largest_difference(streamed, whole), 1e-5);
  }
}

TEST(TransducerParity, EncoderStages) {
  for (const char* name : families_and_prompts()) {
    SCOPED_TRACE(name);
    Family family(name);
    Encoder encoder(family.loaded.encoder, family.loaded.runner);
    std::map<std::string, std::vector<float>> seen;
    encoder.set_probe([&](const std::string& stage, View<const float, 2> x) { seen["stage." + stage] = flat(x); });
    const AttentionContext context = encoder.config().contexts.front();
    const std::vector<float> ours = family.encoded(encoder, kSamples, context);
    const bool told = encoder.config().prompt.count > 0;
    EXPECT_LE(largest_difference(ours, family.reference.get(told ? "prompted.auto" : "encoded")), kBound);
    size_t compared = 0;
    for (const auto& [stage, values] : seen) {
      SCOPED_TRACE(stage);
      EXPECT_LE(largest_difference(values, family.reference.get(stage == "stage.pre" ? "stage.input" : stage)), kBound);
      ++compared;
    }
    EXPECT_EQ(compared, 4 + encoder.config().layers);
  }
}

TEST(TransducerParity, EncoderLengthsAndContexts) {
  for (const char* name : kFamilies) {
    Family family(name);
    Encoder encoder(family.loaded.encoder, family.loaded.runner);
    const std::vector<AttentionContext>& contexts = encoder.config().contexts;
    for (const size_t frames : {size_t{1}, size_t{2}, size_t{7}, size_t{8}, size_t{9}, size_t{17}}) {
      SCOPED_TRACE(fmt::format("{} {}", name, frames));
      const std::vector<float> ours = family.encoded(encoder, 160 * frames, contexts.front());
      const std::vector<float> theirs = family.reference.get(fmt::format("encoded.{}", frames));
      ASSERT_EQ(ours.size(), theirs.size());
      EXPECT_LE(largest_difference(ours, theirs), kBound);
    }
    for (size_t i = 0; contexts.size() > 1 && i < contexts.size(); ++i) {
      SCOPED_TRACE(fmt::format("{} context {}", name, i));
      const std::vector<float> ours = family.encoded(encoder, kSamples, contexts[i]);
      EXPECT_LE(largest_difference(ours, family.reference.get(fmt::format("encoded.context{}", i))), kBound);
    }
  }
}

// Chunks with frames before and behind them, in the maker's mask of a window (spec section 3.8).
TEST(TransducerParity, WindowsOfTheMenus) {
  Family family("unified");
  Encoder encoder(family.loaded.encoder, family.loaded.runner);
  ASSERT_TRUE(encoder.config().menu.has_value());
  for (const AttentionContext context : {AttentionContext{6, 2, 3}, {6, 0, 1}, {6, 1, 2}}) {
    const std::string name = fmt::format("window.{}.{}.{}", context.left, context.chunk, context.right);
    SCOPED_TRACE(name);
    EXPECT_LE(largest_difference(family.encoded(encoder, kSamples, context), family.reference.get(name)), kBound);
  }
  EXPECT_EQ(encoder.config().menu->usual(), (AttentionContext{6, 2, 2}));
  EXPECT_EQ((WindowMenu{{70}, {1, 2, 7, 13}, {0, 1, 2, 3, 4, 7, 13}}).usual(), (AttentionContext{70, 7, 7}));
}

// A language that the model is told: frames of recordings, and those of streams in one batch, chunk by chunk, which are
// given back in the order of the languages.
std::vector<std::vector<float>> compare_prompts(const std::string& name) {
  SCOPED_TRACE(name);
  Family family(name);
  Encoder encoder(family.loaded.encoder, family.loaded.runner);
  const EncoderConfig& config = encoder.config();
  const AttentionContext context = config.contexts.front();
  const size_t count = config.prompt.languages.size();
  EXPECT_EQ(family.encoded(encoder, kSamples, context).size(), family.reference.get("prompted.auto").size());
  EXPECT_LE(largest_difference(family.encoded(encoder, kSamples, context), family.reference.get("prompted.auto")),
            kBound);
  const std::vector<float> mels = family.loaded.mels(kSamples);
  StreamEncoder streams(family.loaded.encoder, family.loaded.runner, context, count);
  std::vector<std::unique_ptr<EncoderState>> states;
  std::vector<std::vector<float>> streamed(count);
  for (const PromptConfig::Language& language : config.prompt.languages) {
    SCOPED_TRACE(language.name);
    encoder.set_prompt(language.index);
    EXPECT_LE(largest_difference(family.encoded(encoder, kSamples, context),
                                 family.reference.get("prompted." + language.name)),
              kBound);
    states.push_back(std::make_unique<EncoderState>(config, context, StreamMode::kExact));
    states.back()->set_prompt(language.index);
  }
  for (size_t at = 0; at * config.mels < mels.size();) {
    const size_t wanted = states[0]->started() ? chunk_mels(config, context) : first_chunk_mels(config, context);
    const size_t more = std::min(wanted, mels.size() / config.mels - at);
    std::vector<StreamEncoder::Input> inputs;
    for (const auto& state : states)
      inputs.push_back({state.get(), {mels.data() + at * config.mels, {more, config.mels}}, more < wanted});
    std::vector<StreamEncoder::Output> outputs(count);
    const View<const float, 2> frames = streams.step(inputs, outputs);
    for (size_t n = 0; n < count; ++n)
      for (size_t t = 0; t < outputs[n].rows; ++t)
        streamed[n].insert(streamed[n].end(), frames.row(outputs[n].first_row + t),
                           frames.row(outputs[n].first_row + t) + config.width);
    at += more;
  }
  for (size_t n = 0; n < count; ++n)
    EXPECT_LE(largest_difference(streamed[n], family.reference.get("prompted." + config.prompt.languages[n].name)),
              kBound);
  return streamed;
}

TEST(TransducerParity, FramesOfAPrompt) {
  const std::vector<std::vector<float>> streamed = compare_prompts("prompt");
  ASSERT_EQ(streamed.size(), 4u);
  EXPECT_EQ(streamed[2], streamed[3]);  // "en" and "en-US" are one row of the table
  EXPECT_NE(streamed[0], streamed[2]);
  const std::vector<std::vector<float>> more = compare_prompts("prompt_multilingual");
  ASSERT_EQ(more.size(), 2u);
  EXPECT_NE(more[0], more[1]);
}

TEST(TransducerParity, OtherContainerGivesTheSame) {
  Loaded maker("tdt.nemo", Precision::kF32), other("tdt_mlx", Precision::kF32);
  const std::vector<float> mels = maker.mels(kSamples);
  EXPECT_EQ(mels, other.mels(kSamples));
  Encoder first(maker.encoder, maker.runner), second(other.encoder, other.runner);
  const View<const float, 2> features(mels.data(), {mels.size() / 128, 128});
  EXPECT_EQ(flat(first.encode(features)), flat(second.encode(features)));
}

void compare_narrow(const std::string& name) {
  for (const Precision precision : {Precision::kBf16, Precision::kInt8}) {
    SCOPED_TRACE(fmt::format("{} {}", name, precision_name(precision)));
    Family family(name, precision);
    Encoder encoder(family.loaded.encoder, family.loaded.runner);
    const std::vector<float> ours = family.encoded(encoder, kSamples, {}), theirs = family.reference.get("encoded");
    ASSERT_EQ(ours.size(), theirs.size());
    double product = 0, own = 0, other = 0;
    for (size_t i = 0; i < ours.size(); ++i) {
      product += double{ours[i]} * double{theirs[i]};
      own += double{ours[i]} * double{ours[i]};
      other += double{theirs[i]} * double{theirs[i]};
    }
    EXPECT_GE(product / std::sqrt(own * other), 0.999);
  }
}

TEST(TransducerParity, NarrowPrecisionsStayClose) {
  for (const char* name : {"rnnt", "small", "medium"}) compare_narrow(name);
}

// Nor does how the team shares the work: 17 frames share out weights, 47 are tiles of rows for one thread alone, and
// 157 are for three, more than one tile for each; nor that it is cut into jobs.
TEST(TransducerEncoder, ThreadsChangeNothing) {
  const auto compare = [](const std::string& name, Precision precision) {
    SCOPED_TRACE(fmt::format("{} {}", name, precision_name(precision)));
    Loaded one(name, precision), three(name, precision, 3);
    const size_t columns = one.checkpoint.config().encoder.mels;
    Encoder first(one.encoder, one.runner), second(three.encoder, three.runner);
    for (const size_t samples : {kSamples, size_t{60000}, size_t{200000}}) {
      const std::vector<float> mels = one.mels(samples);
      EXPECT_EQ(mels, three.mels(samples));
      const View<const float, 2> features(mels.data(), {mels.size() / columns, columns});
      const std::vector<float> alone = flat(first.encode(features));
      EXPECT_EQ(alone, flat(second.encode(features)));
      // Probes make members wait for each other; they change nothing either, and see the end.
      std::vector<float> last;
      second.set_probe([&](const std::string&, View<const float, 2> x) { last = flat(x); });
      EXPECT_EQ(alone, flat(second.encode(features)));
      EXPECT_EQ(alone, last);
      second.set_probe({});
      int jobs = 0;
      const auto context = second.config().contexts.front();
      EXPECT_EQ(alone, flat(first.encode(features, context, [&jobs] { ++jobs; })));
      EXPECT_EQ(alone, flat(second.encode(features, context, [&jobs] { ++jobs; })));
      EXPECT_GT(jobs, 2);
    }
  };
  for (const Precision precision : {Precision::kF32, Precision::kBf16, Precision::kInt8})
    compare("tdt_ctc.nemo", precision);
  compare("hybrid_streaming.nemo", Precision::kF32);
  // Four heads of three numbers, and convolutions over 31 frames.
  for (const char* name : {"small.nemo", "conformer_rnnt.nemo"})
    for (const Precision precision : {Precision::kF32, Precision::kInt8}) compare(name, precision);
}

TEST(TransducerEncoder, VisibleKeysFollowTheContext) {
  const auto range = [](ContextStyle style, AttentionContext context, size_t i) {
    const kernels::KeyRange keys = visible_keys(10, style, context)[i];
    return std::pair<uint32_t, uint32_t>{keys.begin, keys.end};
  };
  using Pair = std::pair<uint32_t, uint32_t>;
  EXPECT_EQ(range(ContextStyle::kRegular, {}, 4), (Pair{0, 10}));
  EXPECT_EQ(range(ContextStyle::kRegular, {3, 2}, 4), (Pair{1, 7}));
  EXPECT_EQ(range(ContextStyle::kRegular, {3, 2}, 9), (Pair{6, 10}));
  EXPECT_EQ(range(ContextStyle::kChunkedLimited, {3, 2}, 4), (Pair{0, 6}));
  EXPECT_EQ(range(ContextStyle::kChunkedLimited, {3, 2}, 9), (Pair{6, 10}));
  EXPECT_EQ(range(ContextStyle::kChunkedLimited, {-1, 2}, 7), (Pair{0, 9}));
  EXPECT_EQ(range(ContextStyle::kChunkedLimitedWithRc, {}, 4), (Pair{0, 10}));
  EXPECT_EQ(range(ContextStyle::kChunkedLimitedWithRc, {3, 1, 2}, 4), (Pair{1, 7}));
  EXPECT_EQ(range(ContextStyle::kChunkedLimitedWithRc, {3, 1, 2}, 5), (Pair{1, 7}));
  EXPECT_EQ(range(ContextStyle::kChunkedLimitedWithRc, {3, 1, 2}, 9), (Pair{5, 10}));
}

TEST(TransducerFeatures, StreamsAnyPieces) {
  Loaded loaded("hybrid_streaming.nemo", Precision::kF32);
  const std::vector<float> whole = loaded.mels(kSamples + 77), samples = noise(kSamples + 77);
  for (const size_t piece : {size_t{1}, size_t{159}, size_t{1280}, size_t{50000}}) {
    FeatureStream stream(loaded.features);
    std::vector<float> rows, room(7 * 80);
    const View<float, 2> view(room.data(), {7, 80});
    for (size_t at = 0; at < samples.size(); at += piece) {
      std::span<const float> more(samples.data() + at, std::min(piece, samples.size() - at));
      while (!more.empty()) {
        const FeatureStream::Taken taken = stream.push(more, view);
        rows.insert(rows.end(), room.begin(), room.begin() + static_cast<ptrdiff_t>(taken.rows * 80));
        more = more.subspan(taken.samples);
      }
    }
    for (size_t count = 1; count > 0;) {
      count = stream.finish(view);
      rows.insert(rows.end(), room.begin(), room.begin() + static_cast<ptrdiff_t>(count * 80));
    }
    EXPECT_EQ(rows, whole) << piece;
  }
}

}  // namespace
}  // namespace syrinx::transducer
