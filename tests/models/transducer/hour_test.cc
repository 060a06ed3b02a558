// A stream of one hour (spec transducer-asr.md, section 9.3, test 8): nothing is allocated, memory stays, times are
// right at the end, and what is said there does not depend on what was said an hour ago.
#include <gtest/gtest.h>

#include "../allocation_count.h"
#include "../seen_stages.h"
#include "base/memory.h"
#include "fixtures.h"
#include "models/transducer/head_decoder.h"
#include "models/transducer/model.h"
#include "models/transducer/stream_encoder.h"

namespace syrinx::transducer {
namespace {

constexpr size_t kChunk = 2560;  // samples that a stream with a look-ahead of one frame takes at once
constexpr size_t kHour = size_t{3600} * 16000, kChunks = kHour / kChunk, kTail = 125, kWarm = 100;
static_assert(kChunk * kChunks == kHour);
static_assert(sizeof(Emission::frame) == 8);

// Noise whose level changes with each chunk; any chunk can be had again.
void fill(size_t chunk, std::span<float> samples) {
  auto state = static_cast<uint32_t>(chunk) * 2654435761U + 1;
  for (float& sample : samples) {
    state = state * 1664525U + 1013904223U;
    sample =
        static_cast<float>(static_cast<int32_t>(state >> 16) - 32768) / (32768.0f * static_cast<float>(2 + chunk % 7));
  }
}

class Stream {
 public:
  explicit Stream(std::shared_ptr<const Model> model)
      : model_(std::move(model)),
        context_(model_->encoder()->config.contexts.front()),
        encoder_(model_->encoder(), runner_, context_, 1),
        state_(encoder_.config(), context_, StreamMode::kExact),
        decoder_(model_->decoder(), runner_, {}, 1, 16),
        head_(*model_->decoder()),
        features_(model_->features()),
        columns_(encoder_.config().mels),
        mels_(2 * chunk_mels(encoder_.config(), context_) * columns_) {
    emissions.reserve(64);
  }

  // Frames of encoder that became whole; what was recognised is in `emissions`.
  View<const float, 2> push(std::span<const float> samples) {
    const FeatureStream::Taken taken = features_.push(samples, room());
    EXPECT_EQ(taken.samples, samples.size());
    held_ += taken.rows;
    const size_t wanted =
        state_.started() ? chunk_mels(encoder_.config(), context_) : first_chunk_mels(encoder_.config(), context_);
    emissions.clear();
    return held_ < wanted ? View<const float, 2>(mels_.data(), {0, encoder_.config().width}) : step(wanted, false);
  }
  View<const float, 2> finish() {
    held_ += features_.finish(room());
    emissions.clear();
    return step(held_, true);
  }
  size_t frames() const { return state_.frames(); }
  uint32_t faults() const { return head_.faults(); }

  std::vector<Emission> emissions;

 private:
  View<float, 2> room() { return {mels_.data() + held_ * columns_, {mels_.size() / columns_ - held_, columns_}}; }
  View<const float, 2> step(size_t count, bool last) {
    const StreamEncoder::Input input{&state_, {mels_.data(), {count, columns_}}, last};
    StreamEncoder::Output output;
    const View<const float, 2> frames = encoder_.step({&input, 1}, {&output, 1});
    const HeadDecoder::Job job{&head_, frames, &emissions};
    decoder_.decode({&job, 1});
    held_ -= count;
    std::copy_n(mels_.data() + count * columns_, held_ * columns_, mels_.data());
    return frames;
  }

  std::shared_ptr<const Model> model_;
  ThreadTeam team_{1};
  nn::Runner runner_{team_};
  AttentionContext context_;
  StreamEncoder encoder_;
  EncoderState state_;
  HeadDecoder decoder_;
  HeadState head_;
  FeatureStream features_;
  size_t columns_, held_ = 0;
  std::vector<float> mels_;
};

TEST(TransducerHour, AStreamStaysAsItIs) {
  auto loaded = Model::load(data("hybrid_streaming.nemo"));
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  Stream stream(*loaded), fresh(*loaded);
  std::vector<float> samples(kChunk), late, early;
  late.reserve(kTail * 2 * 16 + 1000);
  early.reserve(kTail * 2 * 16 + 1000);
  const auto keep = [](std::vector<float>& to, View<const float, 2> rows) {
    for (size_t t = 0; t < rows.extent(0); ++t) to.insert(to.end(), rows.row(t), rows.row(t) + rows.extent(1));
  };
  size_t allocations = 0, labels = 0, jumps_back = 0;
  uint64_t resident = 0;
  int64_t last_frame = -1;
  const auto count = [&] {
    for (const Emission& emission : stream.emissions) {
      jumps_back += emission.frame < last_frame ? 1 : 0;
      last_frame = emission.frame;
      ++labels;
    }
  };
  for (size_t chunk = 0; chunk < kChunks; ++chunk) {
    if (chunk == kWarm) {
      allocations = allocation_count();
      resident = current_rss_bytes();
    }
    fill(chunk, samples);
    const View<const float, 2> frames = stream.push(samples);
    count();
    if (chunk + kTail < kChunks) continue;
    keep(late, frames);
    keep(early, fresh.push(samples));
  }
  EXPECT_EQ(allocation_count(), allocations);
  EXPECT_LE(current_rss_bytes(), resident + (uint64_t{1} << 20));
  keep(late, stream.finish());
  keep(early, fresh.finish());
  count();
  // 360000 frames of features at 10 ms: one of 80 ms more than an eighth of them.
  EXPECT_EQ(stream.frames(), 45001u);
  EXPECT_EQ(jumps_back, 0u);
  EXPECT_GT(labels, 10000u);
  EXPECT_GT(last_frame, 44900);
  EXPECT_LE(last_frame, 45000);
  EXPECT_EQ(stream.faults(), 0u);
  // Both layers see six frames and the eight of a convolution back: 50 frames behind its beginning nothing is left of
  // it.
  const size_t width = (*loaded)->encoder()->config.width, reach = 50 * width;
  ASSERT_GT(early.size(), 2 * reach);
  ASSERT_GE(late.size(), early.size());
  const std::span<const float> now(late.data() + late.size() - early.size() + reach, early.size() - reach);
  EXPECT_LE(largest_difference(now, std::span<const float>(early).subspan(reach)), 1e-5);
}

}  // namespace
}  // namespace syrinx::transducer
