// All of a transducer's checkpoint, made ready to run: configuration, labels, features, encoder and heads.
// Immutable, thread-safe; shared by all that recognise with it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/thread_team.h"
#include "models/transducer/decoder_weights.h"
#include "models/transducer/encoder_weights.h"
#include "models/transducer/features.h"
#include "models/transducer/vocabulary.h"
#include "tensor/precision.h"

namespace syrinx::transducer {

// Which head of a hybrid turns frames into labels.
enum class HeadChoice : uint8_t { kTransducer, kCtc };

struct LoadOptions {
  Precision precision = Precision::kF32;  // kInt4 has no panels here: kUnsupported
  std::optional<HeadChoice> head = {};    // absent: the main one; kUnsupported for one that the checkpoint lacks
  std::string cache_folder = {};          // for packed weights; empty: none is kept
  ThreadTeam* team = nullptr;             // packs them, borrowed; null: the calling thread alone
};

class Model {
 public:
  // `path` as Checkpoint::open() takes it.  Errors: its own, and WeightReader::finish()'s.  With the CTC head of a
  // hybrid the other one is not read, and config() speaks of a CTC model.
  static Result<std::shared_ptr<const Model>> load(const std::string& path, const LoadOptions& options = {});

  const Config& config() const { return config_; }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  const std::shared_ptr<const Features>& features() const { return features_; }
  const std::shared_ptr<const EncoderWeights>& encoder() const { return encoder_; }
  const std::shared_ptr<const DecoderWeights>& decoder() const { return decoder_; }
  Precision precision() const { return precision_; }

 private:
  Model(const Checkpoint& checkpoint, Precision precision)
      : config_(checkpoint.config()), vocabulary_(checkpoint.vocabulary()), precision_(precision) {}
  Status choose_head(std::optional<HeadChoice> head, const std::string& name);
  Status read(const Checkpoint& checkpoint, const LoadOptions& options);

  Config config_;
  Vocabulary vocabulary_;
  Precision precision_;
  std::shared_ptr<const Features> features_;
  std::shared_ptr<const EncoderWeights> encoder_;
  std::shared_ptr<const DecoderWeights> decoder_;
};

}  // namespace syrinx::transducer
