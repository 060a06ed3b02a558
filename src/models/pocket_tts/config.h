// Configuration of a Pocket TTS checkpoint: every dimension and setting of its YAML file (spec pocket-tts.md, section
// 1.2; the maker's pocket_tts/utils/config.py and pocket_tts/config/*.yaml).  No code knows a dimension from elsewhere.
//
// Defaults are the maker's.  Values that may be null in the file are resolved here: attention_width, key_heads, hidden,
// the decoder's sections, inner_width and outer_width always hold the number that counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/mimi/config.h"

namespace syrinx::pocket {

// How noise becomes a latent (section 3.3).
enum class HeadType : uint8_t { kLsd, kFlowMatching, kDrifting, kPointwise };
enum class TokenizerKind : uint8_t { kSentencePiece, kJson };

using nn::TransformerConfig;
using MimiConfig = mimi::Config;
using mimi::SeanetConfig;

struct FlowLmConfig {
  TransformerConfig transformer;
  HeadType head = HeadType::kLsd;
  size_t head_depth = 0, head_width = 0;
  size_t condition = 0;            // what the heads read: z_dim, or the transformer's width
  bool project_condition = false;  // z_dim is given: there is a z_proj
  size_t text_bins = 0;            // tokens; the table has one row more
  size_t text_rank = 0;            // width of the table where it is low-rank, else 0
  bool bos_before_voice = false;
  TokenizerKind tokenizer = TokenizerKind::kJson;
  std::string tokenizer_path;  // as written: a path, hf:// or http(s)://
};

// How a text is made ready (section 2.2).
struct TextConfig {
  bool pad_short = false;  // pad_with_spaces_for_short_inputs
  bool remove_semicolons = false;
  bool terminal_punctuation = true;
  bool capitalize = true;
  std::vector<std::pair<char32_t, std::u32string>> replace;  // replace_characters, in the file's order
};

struct Config {
  FlowLmConfig flow_lm;
  MimiConfig mimi;
  TextConfig text;
  float temperature = 0.3f;
  float eos_threshold = -4.0f;
  std::optional<size_t> frames_after_eos;                        // model_recommended_frames_after_eos
  std::string weights_path, weights_path_without_voice_cloning;  // as written; empty: not given
  std::string flow_lm_weights_path;                              // of training: the language model alone
  std::string mimi_weights_path;                                 // replaces every mimi.* tensor of weights_path
};

}  // namespace syrinx::pocket
