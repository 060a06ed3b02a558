// Makes frames of codes for some streams at once (spec qwen3-tts.md, sections 2.5 and 4; the maker's generate()): the
// talker gives a frame's first code, the code predictor the others, and their embeddings with the next token of the
// text are what the talker reads next.  Weights are read once for all streams of a step, and each stream gets, to the
// last bit, what it gets alone, whatever goes on beside it and on how many threads.
//
//   FrameStream stream = *generator.make_stream(positions);       memory is planned here
//   generator.begin(stream, prompt, settings);
//   while (!generator.read_prompt(stream)) {}                      a slice a call, between steps of others
//   generator.step({&pointer, 1});  if (stream.end() == End::kNone) use stream.codes(); ...
//
// A generator has scratch of its own and does one thing at a time; a stream belongs to one generator's weights.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "models/qwen_tts/code_predictor.h"
#include "models/qwen_tts/embedder.h"
#include "models/qwen_tts/prompt.h"
#include "models/qwen_tts/talker.h"

namespace syrinx::qwen_tts {

enum class End : uint8_t {
  kNone,    // more frames may follow
  kSpoken,  // the model ended its speech
  kLength,  // as many frames as were asked for; or the stream is full, as FrameStream::is_full() tells
  kFault,   // numbers were not finite
};

struct SpeechSettings {
  GenerationConfig draws;
  uint64_t seed = 0;
  uint32_t number = 0;                   // of the stream, for its draws (nn::DrawPlace)
  std::span<const int32_t> forced = {};  // [frames, codebooks]: taken instead of the first draws, borrowed; for tests
};

// The beginning of a prompt that its text does not change, read once for all streams that begin alike.  Immutable.
struct PromptPrefix {
  static constexpr size_t kLeastPositions = 16;  // fewer are read sooner than looked for

  std::vector<PromptPosition> positions;
  std::vector<float> voice;
  std::vector<int32_t> codes;
  nn::KvCache cache;

  // So many positions a prefix of the prompt has; 0: there is none.
  static size_t positions_of(const Prompt& prompt);
  bool begins(const Prompt& prompt) const;
  size_t bytes() const {
    return cache.bytes() + positions.size() * sizeof(PromptPosition) + voice.size() * sizeof(float) +
           codes.size() * sizeof(int32_t);
  }
};

class FrameStream {
 public:
  static constexpr size_t kAheadRows = 16;  // tokens of the text that are projected at once

  End end() const { return end_; }
  std::span<const int32_t> codes() const { return codes_; }  // [codebooks], of the frame that step() has made
  size_t frames() const { return frames_; }                  // made so far
  // How likely the end was at the last draw of a first code: its part of the softmax over the codes and the end, of the
  // talker's logits as they are, without penalty and temperature; also where the end was not allowed, or a code forced.
  float end_probability() const { return end_probability_; }
  bool reads_prompt() const { return state_ == State::kPrompt; }
  // The next step needs a token of the text that has not come yet: add_text() first.
  bool needs_text() const { return !prompt_.ends && state_ == State::kNext && frames_ > prompt_.trailing.size(); }
  const Prompt& prompt() const { return prompt_; }
  size_t prompt_read() const { return read_ - cache_.shared(); }  // positions, without a prefix
  size_t positions() const { return cache_.capacity; }
  // It ended with kLength because it has no room for the last frame, fewer than were asked for.
  bool is_full() const { return is_full_; }
  size_t bytes() const { return cache_.bytes(); }

 private:
  friend class FrameGenerator;
  // kFirst: the talker has read the prompt, kNext: it has still to read the last frame.
  enum class State : uint8_t { kIdle, kPrompt, kFirst, kNext };

  State state_ = State::kIdle;
  End end_ = End::kNone;
  float end_probability_ = 0;
  bool is_full_ = false;
  nn::KvCache cache_;
  Prompt prompt_;
  SpeechSettings settings_;
  size_t read_ = 0, frames_ = 0;        // positions of the prompt, frames made
  std::vector<float> hidden_, logits_;  // [D], [V], behind the last position
  std::vector<int32_t> codes_;          // [codebooks]
  std::vector<int32_t> seen_;           // first codes that were made, each once
  std::vector<uint8_t> is_seen_;        // [codes]
  nn::Plane ahead_;                     // [kAheadRows, D], of trailing tokens
  size_t ahead_from_ = 0, ahead_count_ = 0;
};

class FrameGenerator {
 public:
  // The runner is borrowed and must outlive this.  Steps take up to `streams`, 1 to kMaxStreams.  Errors of
  // CodePredictor::make().
  static Result<std::unique_ptr<FrameGenerator>> make(std::shared_ptr<const Weights> weights, nn::Runner& runner,
                                                      size_t streams = 1);

  // For the prompt and all frames that are asked for, the last of which is never read, but at most those that a stream
  // may have (Talker::most_positions()).  The published limit of 8192 frames exceeds them, so that such a stream may
  // end full.
  size_t positions_for(const Prompt& prompt, const SpeechSettings& settings) const;
  // Room for prompts and frames of so many positions together.  kLimitExceeded: more than one may have.
  Result<FrameStream> make_stream(size_t positions) const;
  // Forgets all that the stream was.  kLimitExceeded: the prompt leaves no room for a frame.  kInvalidArgument, and the
  // stream stays as it is: a prompt without positions or whose voice is not of the model's width, a temperature or
  // penalty that is no number of its range (from 0 on, above 0), a top_p outside 0 to 1.
  // `prefix` begins the prompt, and is shared, not read; null: there is none.
  Status begin(FrameStream& stream, Prompt prompt, const SpeechSettings& settings,
               std::shared_ptr<const PromptPrefix> prefix = nullptr) const;
  // More of a text that goes on, tokens of the model; and its end, with the limit of frames for all of it.
  void add_text(FrameStream& stream, std::span<const int32_t> tokens) const;
  void end_text(FrameStream& stream, size_t max_frames) const;
  // A copy of what the stream has read, which others may begin behind; null: its prompt has no prefix, or one whose
  // cache would be larger than `max_bytes`; it began behind one itself, or has not read it yet.
  std::shared_ptr<const PromptPrefix> prefix_of(const FrameStream& stream, size_t max_bytes) const;
  // Reads the next slice of the prompt, Talker::kPassRows at most: true when it was the last.  However a prompt is
  // sliced, its stream gets the same frames.
  bool read_prompt(FrameStream& stream, const nn::PassCut& cut = {});
  // A frame of each stream, or its end.  Streams differ, have read their prompts, need no text, and have not ended.
  // Allocates nothing.
  void step(std::span<FrameStream* const> streams, const nn::PassCut& cut = {}) { step(streams, {}, cut); }
  // The same, and in the talker's pass, for which the weights are read anyhow (f32: once for each stream), the next
  // positions of a prompt: about `rows`, as far as the pass has room for them.  Behind the last one the first frame is
  // made too.
  struct PromptSlice {
    FrameStream* stream = nullptr;  // another one; null: none
    size_t rows = Talker::kPassRows;
  };
  void step(std::span<FrameStream* const> streams, const PromptSlice& slice, const nn::PassCut& cut = {});

  const Weights& weights() const { return *weights_; }
  size_t most_streams() const { return most_streams_; }

  // Called with what is made on the way, for tests: "prompt" and "next" [n, D], rows that the talker reads; "hidden"
  // and "logits" [n, D] and [n, V] that it gives; "scores" [1, V], logits as the first code is drawn from them.
  using Probe = std::function<void(std::string_view stage, View<const float, 2> rows)>;
  void set_probe(Probe probe) { probe_ = std::move(probe); }
  Talker& talker() { return talker_; }
  CodePredictor& predictor() { return *predictor_; }

 private:
  FrameGenerator(std::shared_ptr<const Weights> weights, nn::Runner& runner, size_t streams,
                 std::unique_ptr<CodePredictor> predictor);
  void read(std::span<FrameStream* const> streams, const PromptSlice& slice, const nn::PassCut& cut);
  void put_rows(const PromptSlice& slice, size_t count);
  static void note_limit(FrameStream& stream);
  void begin_frame(FrameStream& stream);
  void put_next(FrameStream& stream, float* row);
  const float* next_text(FrameStream& stream);
  void keep(const Talker::Read& read, size_t row, FrameStream& stream) const;
  void draw_first(FrameStream& stream);
  float end_probability(std::span<const float> logits);
  void suppress(const FrameStream& stream, std::span<float> logits) const;
  std::span<const int32_t> forced(const FrameStream& stream) const;
  void note(std::string_view stage, View<const float, 2> rows) const {
    if (probe_) probe_(stage, rows);
  }

  std::shared_ptr<const Weights> weights_;
  size_t most_streams_;
  Embedder embedder_;
  Talker talker_;
  std::unique_ptr<CodePredictor> predictor_;
  nn::Sampler sampler_;
  Probe probe_;
  std::vector<FrameStream*> ready_;  // with a frame to read, or to finish
  std::vector<Talker::Stream> rows_;
  std::vector<CodePredictor::Frame> frames_;
  std::vector<double> sums_;   // of exponentials [blocks of codes]
  std::vector<float> maxima_;  // [blocks of codes]
};

}  // namespace syrinx::qwen_tts
