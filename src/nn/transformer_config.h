// The dimensions of a causal pre-norm transformer with rotary positions (spec pocket-tts.md, sections 3.2 and 4.1).
#pragma once

#include <cstddef>

namespace syrinx::nn {

struct TransformerConfig {
  size_t width = 0;  // d_model
  size_t layers = 0;
  size_t heads = 0;            // query heads
  size_t key_heads = 0;        // key and value heads; divides `heads`
  size_t attention_width = 0;  // all query heads together; the head size is attention_width / heads
  size_t hidden = 0;           // feed-forward width
  float max_period = 10000.0f;
  size_t window = 0;         // keys seen, the position itself included; 0: all.  Codec only
  bool layer_scale = false;  // codec only
  bool gelu_erf = false;     // GELU as version 2.1.0 computed it; no file says so

  size_t head_size() const { return attention_width / heads; }
  size_t key_width() const { return key_heads * head_size(); }
};

}  // namespace syrinx::nn
