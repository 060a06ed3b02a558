// FastConformer models with a transducer's or a CTC head as a family of recognising models.
#pragma once

#include <optional>

#include "engine/recognition/recognition_family.h"
#include "models/transducer/model.h"

namespace syrinx {

const RecognitionFamily& transducer_family();

// The options for loading; absent: the model's own.
struct TransducerChoices {
  std::optional<transducer::HeadChoice> head = {};
  std::optional<int> look_ahead = {};       // of a cache-aware model: frames, one of its own
  std::optional<StreamWindow> window = {};  // of the others; chunk_s > 0, the others >= 0
};
// kInvalidArgument for a window that is no three numbers.
Result<TransducerChoices> transducer_choices(const Knobs& knobs);

}  // namespace syrinx
