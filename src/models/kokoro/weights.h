// Kokoro's weights in packed form, bound to a PackedFile that is mapped and shared.  Names are the maker's.
// Specification: Kokoro, sections 3 to 5; shapes come from the checkpoint, so that small random ones load too.
#pragma once

#include <array>
#include <span>
#include <string>

#include "base/result.h"
#include "models/kokoro/checkpoint.h"
#include "models/kokoro/model.h"
#include "nn/lstm.h"
#include "tensor/packed_file.h"
#include "tensor/packed_matrix.h"

namespace syrinx::kokoro {

struct Config {
  uint32_t tokens = 0;     // 178 phoneme ids
  uint32_t embedding = 0;  // 128, PLBERT's token embedding
  uint32_t bert = 0;       // 768, heads of 64
  uint32_t bert_ffn = 0;   // 2048
  uint32_t positions = 0;  // 512
  uint32_t hidden = 0;     // 512, a direction of an LSTM is half of it
  uint32_t style = 0;      // 128, half a row of a voice
  uint32_t durations = 0;  // 50 sigmoids
  uint32_t decoder = 0;    // 1024
  uint32_t asr_res = 0;    // 64
  uint32_t generator = 0;  // 512; 256 after the first upsampling, 128 after the second

  static Result<Config> from(const Checkpoint& checkpoint);
  Status validate() const;  // every number within its bounds and its neighbours'
};
inline constexpr size_t kBertLayers = 12, kBertHead = 64;
inline constexpr std::array<size_t, 2> kUpsample{10, 6};  // rates, at kernels of twice that
inline constexpr std::array<size_t, 2> kNoiseKernel{12, 1}, kNoiseStride{6, 1}, kNoisePad{3, 0}, kNoiseResKernel{7, 11};
inline constexpr std::array<size_t, 3> kResKernel{3, 7, 11}, kResDilation{1, 3, 5};
inline constexpr size_t kHarmonics = 9, kSpectrum = 22;  // 11 magnitudes, 11 angles

struct Affine {  // layer norm, [C] each
  const float* gamma = nullptr;
  const float* beta = nullptr;
};

// AdainResBlk1d (4.1).
struct ResBlock {
  size_t in = 0, out = 0;
  bool upsample = false;
  PackedMatrix norm1, norm2;  // style -> gamma, beta
  PackedMatrix conv1, conv2;
  PackedMatrix shortcut;        // 1 x 1 without bias, absent (columns 0) when in == out
  const float* pool = nullptr;  // [3, padded in], tap-major
  const float* pool_bias = nullptr;
};

// ResBlock of the generator (5.2).
struct SnakeBlock {
  size_t channels = 0, kernel = 0;
  std::array<PackedMatrix, 3> norm1, norm2, conv1, conv2;
  std::array<const float*, 3> alpha1{}, alpha2{};  // [2, padded]: alpha / pi, then 1 / alpha
};

struct Weights {
  Config config;
  Precision precision = Precision::kInt8;
  PackedFile file;

  // PLBERT (3, step 1)
  const float *word = nullptr, *position = nullptr, *token_type = nullptr;
  Affine embedding_norm, attention_norm, full_norm;
  PackedMatrix bert_in, qkv, attention_out, ffn_in, ffn_out, bert_encoder;
  // Durations (steps 2 and 3)
  std::array<nn::Lstm, 3> duration_lstm;
  std::array<PackedMatrix, 3> duration_norm;
  nn::Lstm duration_out;
  PackedMatrix duration_proj;
  // F0 and energy (step 5)
  nn::Lstm shared;
  std::array<ResBlock, 3> f0, energy;
  PackedMatrix f0_proj, energy_proj;
  // Text encoder (step 6)
  const float* text_embedding = nullptr;
  std::array<PackedMatrix, 3> text_conv;
  std::array<Affine, 3> text_norm;
  nn::Lstm text_lstm;
  // Decoder front (4.2)
  const float *f0_conv = nullptr, *energy_conv = nullptr;  // three taps and the bias
  PackedMatrix asr_res;
  ResBlock encode;
  std::array<ResBlock, 4> decode;
  // Generator (5)
  const float* source = nullptr;  // nine weights and the bias
  std::array<PackedMatrix, 2> noise_conv, up;
  std::array<SnakeBlock, 2> noise_res;
  std::array<SnakeBlock, 6> resblocks;
  PackedMatrix conv_post;

  // Packs from a checkpoint into `path` (empty: memory), or binds what was packed before under the same key.
  static Result<std::unique_ptr<Weights>> pack(const Checkpoint& checkpoint, Precision precision,
                                               const std::string& path, const std::string& key);
  static Result<std::unique_ptr<Weights>> bind(PackedFile file, Precision precision);

  // Lets everything but the generator's weights leave memory until it is read again.
  void release_all_but_generator() const;

 private:
  // Visits every weight once, in file order; the archive packs it or binds it.
  template <class Archive>
  void each(Archive& archive);
};

}  // namespace syrinx::kokoro
