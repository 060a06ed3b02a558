// Cache-aware streams: beside the whole recording, the maker's own steps, and each other.
#include <gtest/gtest.h>

#include "../allocation_count.h"
#include "../safetensors_arrays.h"
#include "../seen_stages.h"
#include "fixtures.h"
#include "models/transducer/encoder.h"
#include "models/transducer/stream_encoder.h"

namespace syrinx::transducer {
namespace {

constexpr size_t kSamples = 20800;

const char* const kStreaming[] = {"hybrid_streaming.nemo",    "eou.nemo",      "conformer_streaming.nemo",
                                  "prompt_multilingual.nemo", "nemotron.nemo", "regular_streaming.nemo"};

struct Streamed {
  std::vector<float> frames;  // whole chunks
  std::vector<float> tail;    // what the end gave
};

// All features through a stream of its own, chunk by chunk, and what it holds behind them.
Streamed streamed(StreamEncoder& encoder, EncoderState& state, const std::vector<float>& mels) {
  const size_t columns = encoder.config().mels, count = mels.size() / columns;
  Streamed out;
  for (size_t at = 0;;) {
    const size_t wanted = state.started() ? chunk_mels(encoder.config(), encoder.context())
                                          : first_chunk_mels(encoder.config(), encoder.context());
    const bool last = count - at < wanted;
    const size_t more = last ? count - at : wanted;
    const StreamEncoder::Input input{&state, {mels.data() + at * columns, {more, columns}}, last};
    StreamEncoder::Output output;
    const std::vector<float> frames = flat(encoder.step({&input, 1}, {&output, 1}));
    EXPECT_EQ(frames.size(), output.rows * encoder.config().width);
    std::vector<float>& to = last ? out.tail : out.frames;
    to.insert(to.end(), frames.begin(), frames.end());
    at += more;
    if (state.finished()) return out;
  }
}

TEST(TransducerStream, ExactIsTheWholeRecording) {
  for (const char* name : kStreaming) {
    Loaded loaded(name, Precision::kF32);
    Encoder whole(loaded.encoder, loaded.runner);
    for (const AttentionContext context : whole.config().contexts) {
      StreamEncoder encoder(loaded.encoder, loaded.runner, context, 1);
      EncoderState state(encoder.config(), context, StreamMode::kExact);
      for (const size_t samples : {kSamples, kSamples + 160, kSamples + 7 * 160, size_t{160}, size_t{9 * 160}}) {
        SCOPED_TRACE(fmt::format("{} look-ahead {} of {}", name, context.right, samples));
        const std::vector<float> mels = loaded.mels(samples);
        const size_t columns = encoder.config().mels;
        const std::vector<float> theirs = flat(whole.encode({mels.data(), {mels.size() / columns, columns}}, context));
        state.reset();
        Streamed ours = streamed(encoder, state, mels);
        ours.frames.insert(ours.frames.end(), ours.tail.begin(), ours.tail.end());
        ASSERT_EQ(ours.frames.size(), theirs.size());
        EXPECT_LE(largest_difference(ours.frames, theirs), 1e-5);
        EXPECT_EQ(state.frames() * encoder.config().width, theirs.size());
      }
    }
  }
}

// However many frames of features are left behind the last whole chunk: 0 to 8 R + 8, so many as a chunk has.
TEST(TransducerStream, ExactIsTheWholeRecordingWithAnyTail) {
  for (const char* name : kStreaming) {
    Loaded loaded(name, Precision::kF32);
    Encoder whole(loaded.encoder, loaded.runner);
    const EncoderConfig& config = whole.config();
    for (const AttentionContext context : config.contexts) {
      StreamEncoder encoder(loaded.encoder, loaded.runner, context, 1);
      EncoderState state(config, context, StreamMode::kExact);
      const size_t chunks = first_chunk_mels(config, context) + chunk_mels(config, context);
      const size_t longest = config.factor * static_cast<size_t>(context.right) + config.factor;
      const std::vector<float> mels = loaded.mels(160 * (chunks + longest));
      for (size_t tail = 0; tail <= longest; ++tail) {
        SCOPED_TRACE(fmt::format("{} look-ahead {} tail {}", name, context.right, tail));
        const size_t rows = chunks + tail;
        const std::vector<float> some(mels.begin(), mels.begin() + static_cast<ptrdiff_t>(rows * config.mels));
        const std::vector<float> theirs = flat(whole.encode({some.data(), {rows, config.mels}}, context));
        state.reset();
        Streamed ours = streamed(encoder, state, some);
        ours.frames.insert(ours.frames.end(), ours.tail.begin(), ours.tail.end());
        ASSERT_EQ(ours.frames.size(), config.frames(rows) * config.width);
        EXPECT_LE(largest_difference(ours.frames, theirs), 1e-5);
      }
    }
  }
}

// Long enough for the rows that the convolutions read to be moved to the front more than once.
TEST(TransducerStream, ExactIsTheWholeOfALongRecording) {
  Loaded loaded("hybrid_streaming.nemo", Precision::kF32);
  Encoder whole(loaded.encoder, loaded.runner);
  const AttentionContext context = whole.config().contexts.front();
  StreamEncoder encoder(loaded.encoder, loaded.runner, context, 1);
  EncoderState state(encoder.config(), context, StreamMode::kExact);
  const std::vector<float> mels = loaded.mels(1600 * 160);
  const size_t columns = encoder.config().mels;
  const std::vector<float> theirs = flat(whole.encode({mels.data(), {mels.size() / columns, columns}}, context));
  Streamed ours = streamed(encoder, state, mels);
  ours.frames.insert(ours.frames.end(), ours.tail.begin(), ours.tail.end());
  ASSERT_EQ(ours.frames.size(), theirs.size());
  EXPECT_EQ(state.frames(), 201u);
  EXPECT_LE(largest_difference(ours.frames, theirs), 1e-5);
}

TEST(TransducerStream, CompatIsTheMakersSteps) {
  for (const char* name : {"hybrid_streaming", "eou", "conformer_streaming", "nemotron", "regular_streaming"}) {
    Loaded loaded(std::string(name) + ".nemo", Precision::kF32);
    const SafetensorsArrays reference(data(std::string(name) + ".reference.safetensors"));
    const std::vector<AttentionContext>& contexts = loaded.checkpoint.config().encoder.contexts;
    for (size_t i = 0; i < contexts.size(); ++i) {
      const std::string stage = fmt::format("stream.context{}", i);
      if (!reference.has(stage)) continue;  // the maker's steps where blocks see ahead follow below
      SCOPED_TRACE(fmt::format("{} context {}", name, i));
      StreamEncoder encoder(loaded.encoder, loaded.runner, contexts[i], 1);
      EncoderState state(encoder.config(), contexts[i], StreamMode::kNemoCompat);
      const Streamed ours = streamed(encoder, state, loaded.mels(kSamples));
      const std::vector<float> theirs = reference.get(stage);
      ASSERT_EQ(ours.frames.size(), theirs.size());
      EXPECT_LE(largest_difference(ours.frames, theirs), 1e-4);
    }
  }
}

// The maker takes each frame ahead through all blocks again in every step and drops what it gives; ours compute it
// once.
TEST(TransducerStream, BlocksThatSeeAheadGiveTheMakersSteps) {
  Loaded loaded("regular_streaming.nemo", Precision::kF32);
  const SafetensorsArrays reference(data("regular_streaming.reference.safetensors"));
  const EncoderConfig& config = loaded.checkpoint.config().encoder;
  ASSERT_EQ(config.contexts.size(), 3u);
  for (size_t i = 0; i < config.contexts.size(); ++i) {
    SCOPED_TRACE(i);
    StreamEncoder encoder(loaded.encoder, loaded.runner, config.contexts[i], 1);
    EncoderState state(config, config.contexts[i], StreamMode::kExact);
    Streamed ours = streamed(encoder, state, loaded.mels(kSamples));
    ours.frames.insert(ours.frames.end(), ours.tail.begin(), ours.tail.end());
    const std::vector<float> theirs = reference.get(fmt::format("steps.context{}", i));
    const size_t ahead = static_cast<size_t>(config.contexts[i].right) * config.layers;
    ASSERT_EQ(ours.frames.size() - theirs.size(), ahead * config.width);  // their last step ends with the sound
    ours.frames.resize(theirs.size());
    EXPECT_LE(largest_difference(ours.frames, theirs), 1e-4);
  }
}

// Streams that begin and end at different times, in one batch and each alone.
void compare_batch(const std::string& name, size_t which, Precision precision, int threads) {
  SCOPED_TRACE(fmt::format("{} context {}, {}, {} threads", name, which, precision_name(precision), threads));
  Loaded loaded(name, precision, threads);
  const AttentionContext context = loaded.checkpoint.config().encoder.contexts[which];
  const size_t columns = 80, streams = 5;
  const std::vector<float> mels = loaded.mels(3 * kSamples);
  StreamEncoder encoder(loaded.encoder, loaded.runner, context, streams);
  std::vector<std::unique_ptr<EncoderState>> together, alone;
  std::vector<size_t> at(streams);
  for (size_t n = 0; n < streams; ++n) {
    for (auto* states : {&together, &alone})
      states->push_back(std::make_unique<EncoderState>(encoder.config(), context, StreamMode::kExact));
    at[n] = 8 * n;
  }
  std::vector<StreamEncoder::Output> outputs(streams);
  for (size_t round = 0; round < 12; ++round) {
    std::vector<StreamEncoder::Input> inputs;
    std::vector<size_t> who;
    for (size_t n = 0; n < streams; ++n) {
      if (round < n || (round + n) % 3 == 2) continue;  // not yet, or nothing has come
      const bool last = n % 2 == 0 && round >= 8;
      const size_t chunk = chunk_mels(encoder.config(), context);
      const size_t first = first_chunk_mels(encoder.config(), context);
      const size_t count = last ? 0 : together[n]->started() ? chunk : first;
      inputs.push_back({together[n].get(), {mels.data() + at[n] * columns, {count, columns}}, last});
      who.push_back(n);
      at[n] += count;
    }
    const std::vector<float> batch = flat(encoder.step(inputs, outputs));
    for (size_t i = 0; i < inputs.size(); ++i) {
      StreamEncoder::Input input = inputs[i];
      input.state = alone[who[i]].get();
      StreamEncoder::Output output;
      const std::vector<float> single = flat(encoder.step({&input, 1}, {&output, 1}));
      const auto first = batch.begin() + static_cast<ptrdiff_t>(outputs[i].first_row * 16);
      ASSERT_EQ(output.rows, outputs[i].rows);
      EXPECT_EQ(single, std::vector<float>(first, first + static_cast<ptrdiff_t>(outputs[i].rows * 16)));
    }
    std::fill(outputs.begin(), outputs.end(), StreamEncoder::Output{});
  }
}

TEST(TransducerStream, BatchEqualsEachAlone) {
  for (const Precision precision : {Precision::kF32, Precision::kBf16, Precision::kInt8})
    for (const int threads : {1, 3})
      for (const size_t context : {size_t{0}, size_t{1}})
        compare_batch(context == 0 ? "hybrid_streaming.nemo" : "regular_streaming.nemo", context, precision, threads);
}

TEST(TransducerStream, ResetIsAFreshStreamAndStepsAllocateNothing) {
  struct Case {
    const char* name;
    StreamMode mode;
    size_t context = 0;
  };
  for (const auto& [name, mode, which] :
       {Case{"hybrid_streaming.nemo", StreamMode::kExact}, Case{"hybrid_streaming.nemo", StreamMode::kNemoCompat},
        Case{"regular_streaming.nemo", StreamMode::kExact, 1}}) {
    SCOPED_TRACE(fmt::format("{} {}", name, static_cast<int>(mode)));
    Loaded loaded(name, Precision::kInt8, 2);
    const EncoderConfig& config = loaded.checkpoint.config().encoder;
    const AttentionContext context = config.contexts[which];
    const size_t first = first_chunk_mels(config, context), more = chunk_mels(config, context);
    StreamEncoder encoder(loaded.encoder, loaded.runner, context, 1);
    EncoderState state(encoder.config(), context, mode), fresh(encoder.config(), context, mode);
    const std::vector<float> mels = loaded.mels(kSamples);
    streamed(encoder, state, loaded.mels(9000));
    state.reset();
    const Streamed again = streamed(encoder, state, mels), once = streamed(encoder, fresh, mels);
    EXPECT_EQ(again.frames, once.frames);
    EXPECT_EQ(again.tail, once.tail);
    state.reset();
    StreamEncoder::Input input{&state, {mels.data(), {first, 80}}, false};
    StreamEncoder::Output output;
    encoder.step({&input, 1}, {&output, 1});
    input.mels = {mels.data() + first * 80, {more, 80}};
    const size_t before = allocation_count();
    for (size_t i = 0; i < 100; ++i) encoder.step({&input, 1}, {&output, 1});
    EXPECT_EQ(allocation_count(), before);
    const size_t ahead = which == 0 ? 0 : config.layers * static_cast<size_t>(context.right);
    EXPECT_EQ(state.heard(), 101 * (static_cast<size_t>(context.right) + 1));
    EXPECT_EQ(state.frames(), state.heard() - ahead);
  }
}

TEST(TransducerStream, RefusesContextsThatCannotStream) {
  const Checkpoint whole = opened("tdt.nemo"), causal = opened("hybrid_streaming.nemo");
  EXPECT_EQ(check_streaming(whole.config().encoder, {}).error().code, Code::kUnsupported);
  EXPECT_EQ(check_streaming(causal.config().encoder, {6, 5}).error().code, Code::kInvalidArgument);
  EXPECT_TRUE(check_streaming(causal.config().encoder, {6, 2}).has_value());
}

}  // namespace
}  // namespace syrinx::transducer
