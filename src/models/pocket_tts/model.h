// A Pocket TTS checkpoint as one constant object: configuration, tokenizer, language model and codec (spec
// pocket-tts.md, section 1; the maker's pocket_tts/models/tts_model.py and utils/weights_loading.py).
//
// A checkpoint is a configuration and the files that it names: weights, tokenizer, and perhaps the codec's own weights.
// A path in it counts from the configuration's folder.  What it names at a hub or on the web is looked for under its
// last name in that folder, then by the caller (LoadOptions::locate); nothing is downloaded here.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "models/mimi/weights.h"
#include "models/pocket_tts/config.h"
#include "models/pocket_tts/flow_lm_weights.h"
#include "tensor/precision.h"
#include "tensor/safetensors.h"
#include "text/tokens/unigram_tokenizer.h"

namespace syrinx::pocket {

inline constexpr int kSampleRateHz = 24000;  // of every published codec, and the only one that is loaded

// Where a checkpoint begins.
struct CheckpointPath {
  std::string config;
  std::string weights;  // instead of those that the configuration names; empty: those
};

// `path` is a configuration (.yaml, .yml), a folder with config.yaml or one other configuration, or weights
// (.safetensors) with such a one beside them, first of all one of the same name.  Looks into folders only.  kNotFound
// says what is missing; kInvalidArgument: several configurations, none of them called config.yaml; another kind of
// file.
Result<CheckpointPath> find_checkpoint(const std::string& path);

struct LoadOptions {
  // The local file of a place such as hf://owner/repo/file@revision that is not beside the configuration, or an error
  // that ends the load.  Empty: there is none.
  std::function<Result<std::string>(const std::string& place)> locate = {};
  // The folder where packed weights are kept, so that the next start maps them; made if need be.  Empty: nowhere.
  std::string cache_dir = {};
  // flow_lm_weights.h says what it means for the language model, mimi/weights.h for the codec.
  Precision precision = Precision::kF32;
  ThreadTeam* team = nullptr;  // packs the weights, borrowed; null: the calling thread alone
};

class Model {
 public:
  // kNotFound: a file that the configuration names is not there.  kUnsupported: another architecture, another rate than
  // kSampleRateHz, training files.  kDataLoss: parts that do not belong together.  Errors of parse_config, the
  // tokenizers' readers, Safetensors, read_flow_lm and DecoderWeights.
  static Result<std::shared_ptr<const Model>> load(const std::string& path, const LoadOptions& options = {});

  const Config& config() const { return config_; }
  const text::UnigramTokenizer& tokenizer() const { return *tokenizer_; }
  std::shared_ptr<const FlowLmWeights> flow_lm() const { return flow_lm_; }
  std::shared_ptr<const mimi::DecoderWeights> decoder() const { return decoder_; }
  // The encoder that turns a recording into a voice: read anew by every call, since few programs clone a voice and
  // fewer a second one.  Any thread.  kUnsupported: these are the weights without voice cloning.
  Result<std::shared_ptr<const mimi::EncoderWeights>> load_encoder() const;
  bool has_encoder() const { return !without_cloning_; }

  const std::string& config_path() const { return config_path_; }
  const std::string& weights_path() const { return weights_.file.path(); }
  const std::vector<std::string>& warnings() const { return warnings_; }  // one sentence each, of the configuration

 private:
  struct Tensors {
    MappedFile file;
    Safetensors tensors;
  };
  static Result<Tensors> open(const std::string& path);

  Model() = default;
  Status load_weights(const CheckpointPath& path, const LoadOptions& options);
  struct PackedPlace {
    std::string path, key;  // empty: nothing is kept
  };
  PackedPlace packed_place(const LoadOptions& options) const;
  Status load_tokenizer(const LoadOptions& options);
  const Tensors& codec() const { return codec_ ? *codec_ : weights_; }

  std::string config_path_;
  Config config_;
  std::vector<std::string> warnings_;
  Precision precision_ = Precision::kF32;
  bool without_cloning_ = false;
  Tensors weights_;
  std::optional<Tensors> codec_;  // only where the configuration has weights of the codec alone
  std::optional<text::UnigramTokenizer> tokenizer_;
  std::shared_ptr<const FlowLmWeights> flow_lm_;
  std::shared_ptr<const mimi::DecoderWeights> decoder_;
};

}  // namespace syrinx::pocket
