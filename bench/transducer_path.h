// A stream of noise through a cache-aware transducer: as the program does it, and with the decoder in other forms, one
// for each principle of the hot path that shows there (spec transducer-asr.md, section 5.6).
#pragma once

#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

#include "engine/families/transducer/transducer_frames.h"
#include "engine/schedule/heartbeat.h"
#include "models/transducer/head_decoder.h"
#include "state_layout.h"
#include "target_lookup.h"

namespace syrinx::bench {

// The decoder that asks for the kind of head at every decision.
class AskingDecoder final : public transducer::GreedyDecoder {
 public:
  AskingDecoder(std::shared_ptr<const transducer::DecoderWeights> weights, nn::Runner& runner)
      : GreedyDecoder(std::move(weights), runner, {}, 1, kBlock) {}
  static constexpr size_t kBlock = 16;

 private:
  bool decide(Lane& lane, std::span<float> logits) override {
    transducer::DecoderState::Head& head = lane.state->head();
    const size_t labels = weights_->config.vocabulary + 1;
    const int32_t label = choose(head, logits.first(labels));
    size_t ahead = 0;
    if (weights_->config.kind == transducer::HeadKind::kTdt)
      ahead = weights_->config.durations[kernels::argmax(logits.subspan(labels)).index];
    const bool durations = weights_->config.kind == transducer::HeadKind::kTdt;
    return take(lane, label, ahead, durations ? static_cast<uint32_t>(ahead) : 1, logits.first(labels));
  }
};

// How a chunk is heard.  The first with features, the others from features on; the two of the fourth principle find a
// label in each frame (state_layout.h), the others what the weights say.
enum class Form {
  kChunk,
  kProgram,
  kCheckEachFrame,
  kAskForKind,
  kNewScratch,
  kOneBlock,
  kScattered,
  kLookUpTargets,
};
struct FormName {
  Form form;
  const char* key;  // in files
  const char* name;
};
inline constexpr FormName kForms[] = {
    {Form::kChunk, "chunk", "features too"},
    {Form::kProgram, "program", "as the program does it"},
    {Form::kCheckEachFrame, "each_frame", "1 faults looked for after every frame"},
    {Form::kAskForKind, "ask_kind", "2 asks for the kind at each decision"},
    {Form::kNewScratch, "new_scratch", "6 scratch made anew for each chunk"},
    {Form::kOneBlock, "one_block", "4 a label a frame, state in one block"},
    {Form::kScattered, "scattered", "4 a label a frame, state scattered"},
    {Form::kLookUpTargets, "look_up", "5 target looked up at every call"},
};
inline std::optional<Form> find_form(std::string_view key) {
  for (const FormName& form : kForms)
    if (key == form.key) return form.form;
  return std::nullopt;
}

// Streams whose chunks go through the encoder one after the other and whose frames are decoded in some form, and one
// stream of sound as the program hears it.  One thread.
class Path {
 public:
  Path(std::shared_ptr<const transducer::Model> model, transducer::AttentionContext context, int threads,
       size_t streams)
      : model_(std::move(model)),
        config_(model_->config().encoder),
        team_(threads),
        runner_(team_),
        pool_(*model_, runner_, queue_, context, {}, 1),
        track_(*model_->decoder()),
        source_(*model_, pool_, track_),
        chunk_(chunk_mels(config_, pool_.context()) * model_->config().features.hop),
        sound_(kSoundChunks * chunk_),
        encoder_(model_->encoder(), runner_, pool_.context(), 1),
        decoder_(transducer::GreedyDecoder::make(model_->decoder(), runner_, {}, 1, kBlock)),
        asking_(model_->decoder(), runner_),
        block_decoder_(model_->decoder(), runner_, kBlock),
        scattered_decoder_(model_->decoder(), runner_, kBlock),
        mels_(chunk_mels(config_, pool_.context()) * config_.mels),
        beat_encoder_(model_->encoder(), runner_),
        beat_decoder_(model_->decoder(), runner_, {}, 1, kBlock) {
    std::mt19937 random(1);
    std::normal_distribution<float> sample(0.0f, 0.1f), mel(-8, 3);
    for (float& value : sound_) value = sample(random);
    for (float& value : mels_) value = mel(random);
    for (size_t n = 0; n < streams; ++n) streams_.push_back(std::make_unique<Stream>(*model_, pool_.context(), random));
    frames_.prepare(pool_.chunk_frames(), config_.width, kernels::Storage::kF32);
    track_.found.reserve(kReserved);
    found_.reserve(kReserved);
    labels_.reserve(kReserved);
  }

  // As the program does it where somebody waits until it is ready.
  void warm_up() { pool_.warm_up(*model_); }

  // A chunk of the first stream, all of the way.
  void hear(Form form) {
    if (form == Form::kChunk) return chunk();
    const TargetLookup lookup(form == Form::kLookUpTargets);
    const StepQueue::Turn turn(queue_);
    encode(0);
    decode(0, form);
  }
  // The next chunk of sound, as the program does it: features, encoder, decoder.
  void chunk() {
    const std::span<const float> samples = std::span(sound_).subspan(next_ * chunk_, chunk_);
    next_ = (next_ + 1) % kSoundChunks;
    if (track_.found.size() + kBlock * 16 > track_.found.capacity()) track_.found.clear();
    source_.push(samples, [](View<const float, 2>) {});
  }
  // A chunk of features of a stream through the encoder.
  void encode(size_t stream) {
    transducer::EncoderState& state = streams_[stream]->encoder;
    const size_t rows =
        state.started() ? chunk_mels(config_, pool_.context()) : first_chunk_mels(config_, pool_.context());
    const transducer::StreamEncoder::Input input{&state, {mels_.data(), {rows, config_.mels}}, false};
    transducer::StreamEncoder::Output output;
    const View<const float, 2> all = encoder_.step({&input, 1}, {&output, 1});
    rows_ = output.rows;
    for (size_t t = 0; t < rows_; ++t) std::copy_n(all.row(output.first_row + t), config_.width, frames_.f32(t));
  }
  // The frames of the last chunk that was encoded, by the decoder of whichever stream.
  void decode(size_t stream, Form form) {
    Stream& own = *streams_[stream];
    transducer::DecoderState& state = own.greedy[static_cast<size_t>(form)];
    if (found_.size() + kBlock * 16 > found_.capacity()) found_.clear();
    if (labels_.size() + kBlock > labels_.capacity()) labels_.clear();
    switch (form) {
      case Form::kChunk:
      case Form::kLookUpTargets:
      case Form::kProgram: greedy(*decoder_, state, frames(0, rows_)); break;
      case Form::kCheckEachFrame: checked(state); break;
      case Form::kAskForKind: greedy(asking_, state, frames(0, rows_)); break;
      case Form::kNewScratch:
        greedy(*transducer::GreedyDecoder::make(model_->decoder(), runner_, {}, 1, kBlock), state, frames(0, rows_));
        break;
      case Form::kOneBlock: block_decoder_.decode(own.block, frames(0, rows_), labels_); break;
      case Form::kScattered: scattered_decoder_.decode(own.scattered, frames(0, rows_), labels_); break;
    }
  }
  // Keeps the program awake while it is idle, for engine/schedule/heartbeat.h.
  double beat() { return hear_silence(*model_, {queue_, runner_, beat_encoder_, beat_decoder_, beat_room_}); }
  // Whether the states of both layouts hold the same bits.
  bool layouts_agree() {
    const auto same = [](std::span<const float> a, std::span<const float> b) { return std::ranges::equal(a, b); };
    bool equal = true;
    for (const auto& own : streams_) {
      equal = equal && own->block.label() == own->scattered.label() && own->block.frame() == own->scattered.frame() &&
              same(own->block.projection(), own->scattered.projection());
      for (size_t layer = 0; layer < model_->decoder()->layers.size(); ++layer)
        equal = equal && same(own->block.hidden(layer), own->scattered.hidden(layer)) &&
                same(own->block.cell(layer), own->scattered.cell(layer));
    }
    return equal;
  }
  size_t streams() const { return streams_.size(); }
  double chunk_ms() const { return 1000.0 * static_cast<double>(chunk_) / model_->config().features.rate_hz; }

 private:
  static constexpr size_t kBlock = AskingDecoder::kBlock, kSoundChunks = 64, kReserved = 1 << 20;

  struct Stream {
    Stream(const transducer::Model& model, transducer::AttentionContext context, std::mt19937& random)
        : encoder(model.config().encoder, context, transducer::StreamMode::kExact),
          block(*model.decoder()),
          scattered(*model.decoder(), random) {
      for (size_t form = 0; form < std::size(kForms); ++form) greedy.emplace_back(*model.decoder());
    }
    transducer::EncoderState encoder;
    BlockState block;
    ScatteredState scattered;
    // One a form, as the remaining work depends on the durations found before.
    std::vector<transducer::DecoderState> greedy;
  };

  View<const float, 2> frames(size_t first, size_t count) {
    return {frames_.f32(first), {count, config_.width}, {frames_.stride(), 1}};
  }
  void greedy(transducer::GreedyDecoder& decoder, transducer::DecoderState& state, View<const float, 2> frames) {
    const transducer::GreedyDecoder::Job job{&state, frames, &found_};
    decoder.decode({&job, 1});
  }
  // After each frame, whether everything is finite.
  void checked(transducer::DecoderState& state) {
    for (size_t row = 0; row < rows_; ++row) {
      greedy(*decoder_, state, frames(row, 1));
      const auto finite = [](float value) { return std::isfinite(value); };
      bool good = state.head().faults == 0 && std::ranges::all_of(state.projection(), finite);
      for (size_t layer = 0; layer < model_->decoder()->layers.size(); ++layer)
        good = good && std::ranges::all_of(state.hidden(layer), finite);
      if (!good) std::abort();
    }
  }

  const std::shared_ptr<const transducer::Model> model_;
  const transducer::EncoderConfig& config_;
  ThreadTeam team_;
  nn::Runner runner_;
  Scheduler scheduler_;
  StepQueue queue_{scheduler_};
  ChunkPool pool_;
  LabelTrack track_;
  ChunkedFrames source_;
  const size_t chunk_;  // samples
  size_t next_ = 0;
  std::vector<float> sound_;
  transducer::StreamEncoder encoder_;
  std::unique_ptr<transducer::GreedyDecoder> decoder_;
  AskingDecoder asking_;
  LayoutDecoder<BlockState> block_decoder_;
  LayoutDecoder<ScatteredState> scattered_decoder_;
  std::vector<float> mels_;  // of a chunk
  std::vector<std::unique_ptr<Stream>> streams_;
  transducer::Encoder beat_encoder_;
  transducer::HeadDecoder beat_decoder_;
  SoundRoom beat_room_;
  nn::Plane frames_;  // of the chunk that was encoded last
  size_t rows_ = 0;
  std::vector<transducer::Emission> found_;
  std::vector<int32_t> labels_;
};

}  // namespace syrinx::bench
