// A checkpoint of Qwen3-TTS with its codec as one constant object: what a QwenEngine speaks with.  Load time only.
#pragma once

#include <memory>
#include <string>

#include "base/thread_team.h"
#include "models/qwen_tts/checkpoint.h"
#include "models/qwen_tts/codec_weights.h"
#include "models/qwen_tts/tokenizer.h"
#include "models/qwen_tts/weights.h"

namespace syrinx {

// The configuration alone, of a checkpoint's folder or a file in it.  Errors of qwen_tts::read_config().
Result<qwen_tts::Config> read_qwen_config(const std::string& path);

class QwenModel {
 public:
  static constexpr int kSampleRateHz = 24000;  // of every published codec

  struct Options {
    Precision precision = Precision::kF32;
    std::string cache_folder = {};  // where packed weights are kept for the next start; empty: nowhere
    ThreadTeam* team = nullptr;     // packs the weights, borrowed; null: the calling thread alone
  };
  // Errors of qwen_tts::Checkpoint, Tokenizer, find_codec() and the readers of weights; kUnsupported where the codec is
  // not the talker's.
  static Result<std::shared_ptr<const QwenModel>> load(const std::string& path, const Options& options);

  const qwen_tts::Checkpoint& checkpoint() const { return checkpoint_; }
  const qwen_tts::Config& config() const { return checkpoint_.config(); }
  const qwen_tts::GenerationConfig& generation() const { return checkpoint_.generation(); }
  const qwen_tts::Tokenizer& tokenizer() const { return tokenizer_; }
  const std::shared_ptr<const qwen_tts::Weights>& weights() const { return weights_; }
  const std::shared_ptr<const qwen_tts::CodecDecoderWeights>& codec() const { return codec_; }
  const std::string& codec_folder() const { return codec_folder_; }
  const qwen_tts::CodecConfig& codec_config() const { return codec_config_; }

 private:
  QwenModel(qwen_tts::Checkpoint checkpoint, qwen_tts::Tokenizer tokenizer)
      : checkpoint_(std::move(checkpoint)), tokenizer_(std::move(tokenizer)) {}
  Status load_codec(const Options& options);
  Status check_codec() const;

  qwen_tts::Checkpoint checkpoint_;
  qwen_tts::Tokenizer tokenizer_;
  std::shared_ptr<const qwen_tts::Weights> weights_;
  std::string codec_folder_;
  qwen_tts::CodecConfig codec_config_;
  std::shared_ptr<const qwen_tts::CodecDecoderWeights> codec_;
};

}  // namespace syrinx
