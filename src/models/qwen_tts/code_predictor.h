// The code predictor (spec qwen3-tts.md, section 3.4; the maker's Qwen3TTSTalkerCodePredictorModel): from the talker's
// state and a frame's first code it draws the others one from another, in a pass for each: the first of two rows, the
// state and the first code, the others of one, the code that was drawn last.  Its memory begins anew with every frame,
// and is this object's.
//
// Weights are shared and constant; scratch is its own: one call at a time.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "models/qwen_tts/talker.h"
#include "models/qwen_tts/weights.h"
#include "nn/decoder_pass.h"
#include "nn/row_norm.h"
#include "nn/sampler.h"

namespace syrinx::qwen_tts {

class CodePredictor {
 public:
  // The runner is borrowed and must outlive this; its scratch grows here to what a pass needs.  For up to `streams`,
  // 1 to kMaxStreams.  kLimitExceeded: the memories of all are larger than nn::kMaxCacheBytes.
  static Result<std::unique_ptr<CodePredictor>> make(std::shared_ptr<const Weights> weights, nn::Runner& runner,
                                                     size_t streams);

  // A frame of one stream.
  struct Frame {
    const float* hidden = nullptr;  // [D], the talker's final norm
    std::span<int32_t> codes;       // [codebooks]; the first is given, the others are drawn
    nn::SamplerSettings settings;
    nn::DrawPlace place;                // its codebook is set here
    std::span<const int32_t> forced{};  // [codebooks]: what is taken instead of what is drawn; or none
  };
  // False: of some frame a logit was not finite, and its codes are not to be used; `codes` has kFault there.  Each
  // frame gets what it gets alone, to the last bit.  Allocates nothing.
  static constexpr int32_t kFault = nn::Sampler::kNone;
  bool predict(std::span<Frame> frames, const nn::PassCut& cut = {});

  // Called in each pass with the "hidden" rows [frames, P], which the head reads, and the "logits" [frames, C]; for
  // tests.
  using Probe = std::function<void(std::string_view stage, size_t pass, View<const float, 2> rows)>;
  void set_probe(Probe probe) { probe_ = std::move(probe); }

 private:
  CodePredictor(std::shared_ptr<const Weights> weights, nn::Runner& runner, size_t streams);
  void put_inputs(std::span<const Frame> frames, size_t pass);
  void run(size_t frames, size_t pass, const nn::PassCut& cut);
  bool draw(std::span<Frame> frames, size_t pass);

  std::shared_ptr<const Weights> weights_;
  nn::Runner& runner_;
  nn::Crew crew_;
  nn::Decoder decoder_;
  nn::RowNorm norm_;
  nn::Sampler sampler_;
  nn::Plane inputs_, hidden_, logits_;  // [2 streams, D], [streams, P], [streams, C]
  std::vector<nn::KvCache> caches_;     // of `codebooks` positions each
  std::vector<nn::Decoder::Rows> rows_;
  Probe probe_;
};

}  // namespace syrinx::qwen_tts
