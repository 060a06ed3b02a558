// The maker's names of tensors that transformers calls otherwise (transformers 5.23, models/parakeet/
// modeling_parakeet.py, models/nemotron_asr_streaming/modeling_nemotron_asr_streaming.py,
// models/nemotron3_5_asr/modeling_nemotron3_5_asr.py; spec transducer-asr.md, section 1.4).  Shapes and layouts are the
// same.
#pragma once

#include <string>
#include <string_view>

namespace syrinx::transducer {

// Whether a model with this tensor is named so.
inline constexpr std::string_view kTransformersTensor = "encoder.subsampling.linear.weight";

// The name as it is where it has no other.  Pure.
std::string maker_name(std::string_view name);

}  // namespace syrinx::transducer
