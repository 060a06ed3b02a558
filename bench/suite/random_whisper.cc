#include "bench/suite/random_whisper.h"

#include <cmath>
#include <filesystem>
#include <span>

#include "base/rng.h"
#include "base/scoped_file.h"

namespace syrinx::bench {
namespace {

constexpr uint64_t kSeed = 5;
constexpr size_t kAudioPositions = 1500, kTextPositions = 448, kConvTaps = 3;
constexpr uint8_t kI16 = 2, kF16 = 4;  // types of the format

struct Size {
  const char* name;
  size_t width, encoder_layers, decoder_layers, heads, mels, vocabulary;
};
constexpr Size kSizes[] = {{"base", 512, 6, 6, 8, 80, 51865},       {"tiny", 384, 4, 4, 6, 80, 51865},
                           {"tiny.en", 384, 4, 4, 6, 80, 51864},    {"small", 768, 12, 12, 12, 80, 51865},
                           {"medium", 1024, 24, 24, 16, 80, 51865}, {"large-v3", 1280, 32, 32, 20, 128, 51866},
                           {"turbo", 1280, 32, 4, 20, 128, 51866}};

// The normal numbers of F16, rounded towards zero: what is smaller becomes zero, and nothing here is larger.
uint16_t f16(float value) {
  constexpr uint32_t kLeast = 0x38800000;  // 2^-14
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint32_t size = bits & 0x7FFFFFFF, sign = bits >> 16 & 0x8000;
  return static_cast<uint16_t>(size < kLeast ? sign : sign | ((size - 0x38000000) >> 13));
}

// The variables of a file, collected, then written one at a time.
class Writer {
 public:
  void linear(const std::string& name, size_t out, size_t in) {
    add(name + "/weight", {out, in}, 0.0f, 1.0f / std::sqrt(static_cast<float>(in)));
    add(name + "/bias", {out}, 0.0f, 0.1f);
  }
  void conv(const std::string& name, size_t out, size_t in) {
    add(name + "/weight", {out, in, kConvTaps}, 0.0f, 1.0f / std::sqrt(static_cast<float>(in * kConvTaps)));
    add(name + "/bias", {out}, 0.0f, 0.1f);
  }
  void norm(const std::string& name, size_t width) {
    add(name + "/gamma", {width}, 1.0f, 0.1f);
    add(name + "/beta", {width}, 0.0f, 0.1f);
  }
  void add(std::string name, std::vector<size_t> dims, float centre, float deviation) {
    variables_.push_back({std::move(name), std::move(dims), centre, deviation, kF16});
  }
  void number(std::string name, size_t value) {
    variables_.push_back({std::move(name), {}, static_cast<float>(value), 0.0f, kI16});
  }
  Status write(const std::string& path) const;

 private:
  struct Variable {
    std::string name;
    std::vector<size_t> dims;
    float centre, deviation;
    uint8_t type;
  };
  static void put_text(std::string& to, const std::string& text) {
    put(to, static_cast<uint16_t>(text.size() + 1));
    to.append(text.c_str(), text.size() + 1);
  }
  template <class T>
  static void put(std::string& to, T value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  std::vector<Variable> variables_;
};

Status Writer::write(const std::string& path) const {
  SYRINX_TRY(ScopedFile file, ScopedFile::create(path));
  std::string head;
  put<uint32_t>(head, 6);
  put_text(head, "WhisperSpec");
  put<uint32_t>(head, 3);
  put(head, static_cast<uint32_t>(variables_.size()));
  std::vector<uint16_t> values;
  for (size_t i = 0; i < variables_.size(); ++i) {
    const Variable& variable = variables_[i];
    size_t count = 1;
    put_text(head, variable.name);
    put(head, static_cast<uint8_t>(variable.dims.size()));
    for (const size_t dim : variable.dims) {
      put(head, static_cast<uint32_t>(dim));
      count *= dim;
    }
    put(head, variable.type);
    put(head, static_cast<uint32_t>(2 * count));
    SYRINX_TRY_VOID(file.write(head));
    head.clear();
    Rng rng(kSeed, i);
    values.resize(count);
    const float spread = variable.deviation * std::sqrt(12.0f);
    for (uint16_t& value : values) {
      value = variable.type == kI16 ? static_cast<uint16_t>(variable.centre)
                                    : f16(variable.centre + spread * (rng.uniform() - 0.5f));
    }
    SYRINX_TRY_VOID(file.write(std::as_bytes(std::span(values))));
  }
  put<uint32_t>(head, 0);  // aliases
  SYRINX_TRY_VOID(file.write(head));
  return file.commit();
}

void add_side(Writer& w, const std::string& side, const Size& size, size_t layers, size_t positions) {
  const size_t d = size.width;
  w.number(side + "/num_heads", size.heads);
  w.add(side + "/position_encodings/encodings", {positions, d}, 0.0f, 0.5f);
  w.norm(side + "/layer_norm", d);
  for (size_t i = 0; i < layers; ++i) {
    const std::string layer = fmt::format("{}/layer_{}", side, i);
    w.norm(layer + "/self_attention/layer_norm", d);
    w.linear(layer + "/self_attention/linear_0", 3 * d, d);
    w.linear(layer + "/self_attention/linear_1", d, d);
    if (side == "decoder") {
      w.norm(layer + "/attention/layer_norm", d);
      w.linear(layer + "/attention/linear_0", d, d);
      w.linear(layer + "/attention/linear_1", 2 * d, d);
      w.linear(layer + "/attention/linear_2", d, d);
    }
    w.norm(layer + "/ffn/layer_norm", d);
    w.linear(layer + "/ffn/linear_0", 4 * d, d);
    w.linear(layer + "/ffn/linear_1", d, 4 * d);
  }
}

}  // namespace

std::vector<std::string> random_whisper_names() {
  std::vector<std::string> names;
  for (const Size& size : kSizes) names.emplace_back(size.name);
  return names;
}

Status make_random_whisper(const std::string& folder, std::string_view name) {
  const std::string path = folder + "/model.bin";
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) return {};
  for (const Size& size : kSizes) {
    if (name != size.name) continue;
    std::filesystem::create_directories(folder, error);  // what cannot be made cannot be written either
    Writer w;
    w.conv("encoder/conv1", size.width, size.mels);
    w.conv("encoder/conv2", size.width, size.width);
    add_side(w, "encoder", size, size.encoder_layers, kAudioPositions);
    add_side(w, "decoder", size, size.decoder_layers, kTextPositions);
    w.add("decoder/embeddings/weight", {size.vocabulary, size.width}, 0.0f, 0.05f);
    return w.write(path);
  }
  return fail(Code::kInvalidArgument, "there is no size '{}' of Whisper; give one of {}", name,
              fmt::join(random_whisper_names(), ", "));
}

}  // namespace syrinx::bench
