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

struct Streamed {
  std::vector<float> frames;  // whole chunks
  std::vector<float> tail;    // what the end gave
};

// All features through a stream of its own, chunk by chunk.
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
    if (last) return out;
  }
}

TEST(TransducerStream, ExactIsTheWholeRecording) {
  for (const char* name :
       {"hybrid_streaming.nemo", "eou.nemo", "conformer_streaming.nemo", "prompt_multilingual.nemo"}) {
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
  for (const char* name : {"hybrid_streaming", "eou", "conformer_streaming"}) {
    Loaded loaded(std::string(name) + ".nemo", Precision::kF32);
    const SafetensorsArrays reference(data(std::string(name) + ".reference.safetensors"));
    const std::vector<AttentionContext>& contexts = loaded.checkpoint.config().encoder.contexts;
    for (size_t i = 0; i < contexts.size(); ++i) {
      SCOPED_TRACE(fmt::format("{} context {}", name, i));
      StreamEncoder encoder(loaded.encoder, loaded.runner, contexts[i], 1);
      EncoderState state(encoder.config(), contexts[i], StreamMode::kNemoCompat);
      const Streamed ours = streamed(encoder, state, loaded.mels(kSamples));
      const std::vector<float> theirs = reference.get(fmt::format("stream.context{}", i));
      ASSERT_EQ(ours.frames.size(), theirs.size());
      EXPECT_LE(largest_difference(ours.frames, theirs), 1e-4);
    }
  }
}

// Streams that begin at different times, in one batch and each alone.
void compare_batch(Precision precision, int threads) {
  SCOPED_TRACE(fmt::format("{}, {} threads", precision_name(precision), threads));
  Loaded loaded("hybrid_streaming.nemo", precision, threads);
  const AttentionContext context = loaded.checkpoint.config().encoder.contexts.front();
  const size_t columns = 80, streams = 5;
  const std::vector<float> mels = loaded.mels(kSamples + 5 * 1280);
  StreamEncoder encoder(loaded.encoder, loaded.runner, context, streams);
  std::vector<std::unique_ptr<EncoderState>> together, alone;
  std::vector<size_t> at(streams);
  for (size_t n = 0; n < streams; ++n) {
    for (auto* states : {&together, &alone})
      states->push_back(std::make_unique<EncoderState>(encoder.config(), context, StreamMode::kExact));
    at[n] = 8 * n;
  }
  std::vector<StreamEncoder::Output> outputs(streams);
  for (size_t round = 0; round < 8; ++round) {
    std::vector<StreamEncoder::Input> inputs;
    std::vector<size_t> who;
    for (size_t n = 0; n < streams; ++n) {
      if (round < n || (round + n) % 3 == 2) continue;  // not yet, or nothing has come
      const size_t count = together[n]->started() ? 16 : 9;
      inputs.push_back({together[n].get(), {mels.data() + at[n] * columns, {count, columns}}, false});
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
    for (const int threads : {1, 3}) compare_batch(precision, threads);
}

TEST(TransducerStream, ResetIsAFreshStreamAndStepsAllocateNothing) {
  Loaded loaded("hybrid_streaming.nemo", Precision::kInt8, 2);
  for (const StreamMode mode : {StreamMode::kExact, StreamMode::kNemoCompat}) {
    const AttentionContext context = loaded.checkpoint.config().encoder.contexts.front();
    StreamEncoder encoder(loaded.encoder, loaded.runner, context, 1);
    EncoderState state(encoder.config(), context, mode), fresh(encoder.config(), context, mode);
    const std::vector<float> mels = loaded.mels(kSamples);
    streamed(encoder, state, loaded.mels(9000));
    state.reset();
    const Streamed again = streamed(encoder, state, mels), once = streamed(encoder, fresh, mels);
    EXPECT_EQ(again.frames, once.frames);
    EXPECT_EQ(again.tail, once.tail);
    state.reset();
    StreamEncoder::Input input{&state, {mels.data(), {9, 80}}, false};
    StreamEncoder::Output output;
    encoder.step({&input, 1}, {&output, 1});
    input.mels = {mels.data() + 9 * 80, {16, 80}};
    const size_t before = allocation_count();
    for (size_t i = 0; i < 100; ++i) encoder.step({&input, 1}, {&output, 1});
    EXPECT_EQ(allocation_count(), before);
    EXPECT_EQ(state.frames(), 202u);
  }
}

TEST(TransducerStream, SaysWhatCannotBeStreamed) {
  const Checkpoint whole = opened("tdt.nemo"), causal = opened("hybrid_streaming.nemo");
  EXPECT_EQ(check_streaming(whole.config().encoder, {}).error().code, Code::kUnsupported);
  EXPECT_EQ(check_streaming(causal.config().encoder, {6, 5}).error().code, Code::kInvalidArgument);
  EXPECT_TRUE(check_streaming(causal.config().encoder, {6, 2}).has_value());
}

}  // namespace
}  // namespace syrinx::transducer
