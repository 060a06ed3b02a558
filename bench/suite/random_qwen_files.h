// Files of a random checkpoint of Qwen3-TTS (random_qwen_tts.h): its vocabulary, and tensors of numbers.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "base/thread_team.h"
#include "bench/suite/random_qwen_tts.h"

namespace syrinx::bench {

struct RandomQwenId {
  const char* name;
  int id;
  const char* dialect = nullptr;
};
inline constexpr std::array<RandomQwenId, 12> kRandomQwenLanguages = {{{"chinese", 2055},
                                                                       {"english", 2050},
                                                                       {"german", 2053},
                                                                       {"italian", 2070},
                                                                       {"portuguese", 2071},
                                                                       {"spanish", 2054},
                                                                       {"japanese", 2058},
                                                                       {"korean", 2064},
                                                                       {"french", 2061},
                                                                       {"russian", 2069},
                                                                       {"beijing_dialect", 2074},
                                                                       {"sichuan_dialect", 2062}}};
inline constexpr std::array<RandomQwenId, 9> kRandomQwenSpeakers = {{{"serena", 3066},
                                                                     {"vivian", 3065},
                                                                     {"uncle_fu", 3010},
                                                                     {"ryan", 3061},
                                                                     {"aiden", 2861},
                                                                     {"ono_anna", 2873},
                                                                     {"sohee", 2864},
                                                                     {"eric", 2875, "sichuan_dialect"},
                                                                     {"dylan", 2878, "beijing_dialect"}}};

// Tokens that are no text: their keys in config.json.
struct RandomQwenSpecial {
  const char* key;
  const char* token;
};
inline constexpr std::array<RandomQwenSpecial, 5> kRandomQwenSpecial = {{{"im_start_token_id", "<|im_start|>"},
                                                                         {"im_end_token_id", "<|im_end|>"},
                                                                         {"tts_pad_token_id", "<tts_pad>"},
                                                                         {"tts_bos_token_id", "<tts_text_bos>"},
                                                                         {"tts_eos_token_id", "<tts_text_eod>"}}};

// The vocabulary: bytes, the words of spoken_texts.h and of the templates; at published size as many more as it has,
// which no text reaches.
struct RandomQwenText {
  size_t vocabulary = 0;            // rows of the text embedding
  std::array<size_t, 5> special{};  // ids in the order of kRandomQwenSpecial
  size_t assistant = 0;
  std::string vocab_json, merges, tokenizer_json;
};
RandomQwenText random_qwen_text(bool is_published_size);

enum class RandomNumbers : uint8_t { kBf16, kF32 };
uint64_t random_bytes(std::span<const RandomQwenTensor> tensors, RandomNumbers type);  // of their numbers
// kIo: `needed` bytes for the checkpoint's folder are more than are free.
Status check_room(const std::string& folder, uint64_t needed, uint64_t free);
// A safetensors file, whole or not at all.  kIo; kCancelled after a signal.
Status write_random_tensors(const std::string& path, std::span<const RandomQwenTensor> tensors, RandomNumbers type,
                            ThreadTeam& team);

}  // namespace syrinx::bench
