#include "bench/suite/random_qwen_files.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <vector>

#include "base/json.h"
#include "base/scoped_file.h"
#include "base/signals.h"
#include "bench/suite/random_files.h"
#include "bench/suite/spoken_texts.h"

namespace syrinx::bench {
namespace {

constexpr uint64_t kSeed = 28;
constexpr size_t kBlock = size_t{1} << 22;  // numbers that are written at once; a multiple of 4

// The published vocabulary.
constexpr size_t kPublishedEnd = 151643, kPublishedRows = 151936, kPublishedAssistant = 77091;
constexpr std::array<size_t, 5> kPublishedSpecial = {151644, 151645, 151671, 151672, 151673};

// Steele, Lea, Flood: "Fast splittable pseudorandom number generators".
uint64_t mixed(uint64_t value) {
  value += 0x9E3779B97F4A7C15U;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31);
}

// Round to nearest, ties to even; the numbers are finite.
uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}
void put(float value, uint16_t& place) { place = to_bf16(value); }
void put(float value, float& place) { place = value; }

size_t numbers_of(const RandomQwenTensor& tensor) {
  return std::accumulate(tensor.dims.begin(), tensor.dims.end(), size_t{1}, std::multiplies<>());
}

// Numbers of a tensor from `first` on, four of each draw, so that they depend on their places alone.
template <class T>
void fill(const RandomQwenTensor& tensor, uint64_t number, size_t first, std::span<T> values, ThreadTeam& team) {
  const float width = tensor.deviation * std::sqrt(12.0f), step = width / 65536.0f;
  const float least = tensor.centre - width / 2 + step / 2;
  const uint64_t key = mixed(kSeed + number);
  team.run([&](int member) {
    const Range own = split_range(values.size(), member, team.size(), 4);
    uint64_t draw = 0;
    for (size_t i = own.begin; i < own.end; ++i) {
      draw = i % 4 == 0 ? mixed(key ^ ((first + i) / 4)) : draw >> 16;
      put(least + step * static_cast<float>(draw & 0xFFFF), values[i]);
    }
  });
  if (tensor.zero_row == RandomQwenTensor::kNoRow) return;
  const size_t row = numbers_of(tensor) / tensor.dims[0], from = static_cast<size_t>(tensor.zero_row) * row;
  for (size_t i = std::max(from, first); i < std::min(from + row, first + values.size()); ++i) values[i - first] = T{};
}

template <class T>
Status write_numbers(ScopedFile& file, std::span<const RandomQwenTensor> tensors, ThreadTeam& team) {
  std::vector<T> block(kBlock);
  for (size_t n = 0; n < tensors.size(); ++n) {
    const size_t count = numbers_of(tensors[n]);
    for (size_t at = 0; at < count; at += kBlock) {
      if (cancel_requested())
        return fail(Code::kCancelled, "stopped while writing '{}', of which nothing stays", file.target());
      const std::span<T> values(block.data(), std::min(kBlock, count - at));
      fill(tensors[n], n, at, values, team);
      SYRINX_TRY_VOID(file.write(std::as_bytes(values)));
    }
  }
  return {};
}

std::string utf8(uint32_t character) {
  if (character < 0x80) return std::string(1, static_cast<char>(character));
  return {static_cast<char>(0xC0 | (character >> 6)), static_cast<char>(0x80 | (character & 0x3F))};
}

// Characters that stand for the bytes in files of byte-level BPE.
std::vector<std::string> byte_alphabet() {
  std::vector<std::string> alphabet(256);
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool is_plain = (byte >= 33 && byte < 127) || (byte >= 161 && byte < 173) || byte >= 174;
    alphabet[byte] = utf8(is_plain ? byte : next++);
  }
  return alphabet;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Words of the texts, each with what the tokenizer's expression leaves in front of it.
std::vector<std::string> words() {
  std::vector<std::string> found;
  for (const SpokenText& spoken : kSpokenTexts) {
    const std::string_view text = spoken.text;
    for (size_t at = 0; at < text.size();) {
      size_t end = at + (is_letter(text[at]) ? 0 : 1);
      while (end < text.size() && is_letter(text[end])) ++end;
      if (end - at > 1 || is_letter(text[at])) found.emplace_back(text.substr(at, end - at));
      at = end;
    }
  }
  // Last, since they begin within others.
  found.emplace_back("assistant");
  found.emplace_back("user");
  return found;
}

struct Merges {
  std::vector<std::string> made;  // in the order of their ranks
  std::string lines = "#version: 0.2\n";
};

// A word grows letter by letter from its beginning.
Merges merges(const std::vector<std::string>& alphabet) {
  Merges merges;
  std::set<std::string> known;
  for (const std::string& word : words()) {
    std::string prefix = alphabet[static_cast<uint8_t>(word[0])];
    for (size_t i = 1; i < word.size(); ++i) {
      const std::string& letter = alphabet[static_cast<uint8_t>(word[i])];
      const std::string grown = prefix + letter;
      if (known.insert(grown).second) {
        merges.made.push_back(grown);
        merges.lines += fmt::format("{} {}\n", prefix, letter);
      }
      prefix = grown;
    }
  }
  return merges;
}

// By hand, as an object of so many members is slow to build.
std::string vocab_json(const std::vector<std::string>& tokens, size_t assistant) {
  std::string json = "{";
  size_t id = 0;
  const auto add = [&](const std::string& token) {
    json += fmt::format("{}{}: {}", id > 0 ? ", " : "", Json(token).dump(), id);
    ++id;
  };
  for (const std::string& token : tokens) {
    if (id == assistant) add("assistant");
    add(token);
  }
  if (id == assistant) add("assistant");
  return json + "}\n";
}

std::string tokenizer_json(const RandomQwenText& text, size_t first) {
  Json added = Json::Object(), json;
  for (size_t id = first; id <= text.special.back(); ++id) {
    const auto* const named = std::find(text.special.begin(), text.special.end(), id);
    Json token;
    token.set("content", named != text.special.end()
                             ? std::string(kRandomQwenSpecial[static_cast<size_t>(named - text.special.begin())].token)
                             : fmt::format("<|reserved {}|>", id));
    for (const char* const key : {"lstrip", "rstrip", "single_word", "normalized"}) token.set(key, false);
    token.set("special", true);
    added.set(std::to_string(id), std::move(token));
  }
  json.set("tokenizer_class", "Qwen2Tokenizer").set("added_tokens_decoder", std::move(added));
  json.set("eos_token", "<|im_end|>").set("pad_token", "<|im_end|>").set("errors", "replace");
  json.set("model_max_length", 131072).set("add_prefix_space", false);
  return json.dump() + "\n";
}

}  // namespace

RandomQwenText random_qwen_text(bool is_published_size) {
  std::vector<std::string> tokens = byte_alphabet();
  Merges made = merges(tokens);
  for (std::string& token : made.made)
    if (token != "assistant") tokens.push_back(std::move(token));
  RandomQwenText text;
  text.merges = std::move(made.lines);
  text.assistant = is_published_size ? kPublishedAssistant : tokens.size();
  if (is_published_size)
    while (tokens.size() + 1 < kPublishedEnd) tokens.push_back(fmt::format("unused{}", tokens.size()));
  const size_t end = tokens.size() + 1;
  if (is_published_size)
    text.special = kPublishedSpecial;
  else
    std::iota(text.special.begin(), text.special.end(), end);
  text.vocabulary = is_published_size ? kPublishedRows : text.special.back() + 1;
  text.vocab_json = vocab_json(tokens, text.assistant);
  text.tokenizer_json = tokenizer_json(text, end);
  return text;
}

uint64_t random_bytes(std::span<const RandomQwenTensor> tensors, RandomNumbers type) {
  uint64_t numbers = 0;
  for (const RandomQwenTensor& tensor : tensors) numbers += numbers_of(tensor);
  return (type == RandomNumbers::kBf16 ? 2 : 4) * numbers;
}

Status check_room(const std::string& folder, uint64_t needed, uint64_t free) {
  if (needed <= free) return {};
  return fail(Code::kIo,
              "a random checkpoint in '{}' needs {:.1f} MB and {:.1f} MB are free there; make room, set SYRINX_HOME to "
              "a folder on another disk, or give a checkpoint with --model",
              folder, static_cast<double>(needed) * 1e-6, static_cast<double>(free) * 1e-6);
}

Status write_random_tensors(const std::string& path, std::span<const RandomQwenTensor> tensors, RandomNumbers type,
                            ThreadTeam& team) {
  const bool is_bf16 = type == RandomNumbers::kBf16;
  SYRINX_TRY(ScopedFile file, ScopedFile::create(path));
  SYRINX_TRY_VOID(write_tensor_header(file, tensors, is_bf16 ? "BF16" : "F32", is_bf16 ? 2 : 4));
  SYRINX_TRY_VOID(is_bf16 ? write_numbers<uint16_t>(file, tensors, team) : write_numbers<float>(file, tensors, team));
  return file.commit();
}

}  // namespace syrinx::bench
