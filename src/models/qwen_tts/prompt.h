// The layout of a prompt (spec qwen3-tts.md, sections 2.3 and 2.4; the maker's generate() and generate_icl_prompt()): a
// list of positions, each the sum of a token of the text side and of what stands at it on the codec side.  embedder.h
// makes numbers of it.  Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "models/qwen_tts/config.h"

namespace syrinx::qwen_tts {

struct PromptPosition {
  static constexpr int32_t kNone = -1;
  static constexpr int32_t kVoice = -2;  // the x-vector

  int32_t text = kNone;   // a token
  int32_t codec = kNone;  // a token, or kVoice
  int32_t frame = kNone;  // of the reference, all of whose codes are added

  bool operator==(const PromptPosition&) const = default;
};

struct Prompt {
  std::vector<PromptPosition> positions;
  // Text that is added to the frames as they are made, one token each; behind its end tts_pad is.
  std::vector<int32_t> trailing;
  bool ends = true;            // else more of it follows (FrameGenerator::add_text())
  std::vector<float> voice;    // [D] or none
  std::vector<int32_t> codes;  // of the reference, [frames, codebooks]
  size_t shared = 0;           // first positions, which the text does not change
};

struct PromptRequest {
  std::span<const int32_t> role = {};         // Tokenizer::role()
  std::span<const int32_t> text = {};         // Tokenizer::encode() of the target
  std::span<const int32_t> instruction = {};  // Tokenizer::encode_instruction(), or none
  std::string_view language = "auto";         // or one of the file that is no dialect; in any case
  std::string_view speaker = {};              // of kCustomVoice, in any case, or none
  std::span<const float> voice = {};          // the x-vector [D], of kBase alone, which needs it
  // A recording whose continuation is asked for, of kBase: Tokenizer::encode() of its transcript and its codes
  // [frames, codebooks]; both or none.
  std::span<const int32_t> reference_text = {};
  std::span<const int32_t> reference_codes = {};
  // True: all text stands before the first frame; false: it runs beside the frames, a token each.  The maker's wrapper
  // takes true but for kBase.
  bool text_first = true;
  // False: more of the text follows as it comes; it runs beside the frames, and least_text() of it is there.
  bool text_ends = true;
};

// Tokens of a text that runs beside the frames which stand in the prompt, behind a reference of so many frames and
// tokens; 1 without one.
size_t least_text(size_t reference_frames, size_t reference_tokens);

// kInvalidArgument: no text, or too little of one that goes on, a language or speaker that the model does not have, a
// voice of another width, ids that are none, half a reference.  kUnsupported: what the kind of the model does not take.
Result<Prompt> make_prompt(const Config& config, const PromptRequest& request);

}  // namespace syrinx::qwen_tts
