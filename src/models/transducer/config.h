// Configuration of a FastConformer or Conformer checkpoint, in plain numbers (spec transducer-asr.md, sections 1.1 and
// 1.2; the maker's names stand in config_file.cc).  Every dimension comes from the checkpoint's configuration.
//
// One frame of the encoder is `factor` frames of features: 80 ms at the published sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace syrinx::transducer {

// How the main head turns frames into labels.
enum class HeadKind : uint8_t { kCtc, kRnnt, kTdt };

// Frames that a frame sees before and behind itself; -1: all of them.  With a chunk, of kChunkedLimitedWithRc: before
// and behind its chunk of so many frames.
struct AttentionContext {
  ptrdiff_t left = -1, right = -1;
  ptrdiff_t chunk = 0;
  bool operator==(const AttentionContext&) const = default;
};

// kRegular: those frames of each frame.  kChunkedLimited: whole chunks of right + 1 frames, each seeing itself and
// left / (right + 1) chunks before it.  kChunkedLimitedWithRc: whole recordings, or chunks with frames before and
// behind them (section 3.8).
enum class ContextStyle : uint8_t { kRegular, kChunkedLimited, kChunkedLimitedWithRc };

struct FeatureConfig {
  size_t rate_hz = 16000;
  size_t mels = 80;
  size_t fft = 512;
  size_t window = 400, hop = 160;  // samples; the hop is at most half a window
  bool per_feature = true;         // each mel's mean and deviation over the recording become 0 and 1; else none
  float preemphasis = 0.97f;       // 0: none
  double low_hz = 0, high_hz = 8000;
  float log_guard = 0x1p-24f;  // above 0, added before the logarithm

  // Samples of a window that lie before its frame's multiple of the hop: the window is centred in the transform, which
  // begins fft / 2 samples before it.
  size_t before() const { return fft / 2 - (fft - window) / 2; }
};

// Frames that the windows of a model with chunks and frames behind them may have, as it was trained.
struct WindowMenu {
  std::vector<size_t> left, chunk, right;

  // The longest past, the middle of the chunks (the upper one of two), and the look-ahead nearest to it: 70, 7 and 7 as
  // published.  None of the menus is empty.
  AttentionContext usual() const;
};

// Models that are told a language: a row of the table beside each frame, and two linear layers (the maker's
// prompt_kernel).
struct PromptConfig {
  struct Language {
    std::string name;  // "en-US", "auto"
    size_t index = 0;
  };
  size_t count = 0;  // rows; 0: no such model
  size_t hidden = 0;
  std::vector<Language> languages;
  size_t fallback = 0;  // the row where no language is asked for

  // A language by its name, or, of a code without a country, by the first name that begins with it; capitals do not
  // matter.  Null for one that the model was not taught.
  const Language* find(std::string_view name) const;
};

struct EncoderConfig {
  size_t width = 0;   // d
  size_t layers = 0;  // N
  size_t heads = 0;   // H
  size_t hidden = 0;  // of the feed-forward modules
  size_t mels = 0;
  size_t channels = 0;    // C, of the subsampling convolutions
  size_t factor = 8;      // a power of two
  bool striding = false;  // the subsampling convolutions are full ones (old Conformer), not depthwise
  bool causal_downsampling = false;
  bool use_bias = true;
  bool xscaling = true;     // what the subsampling gives is multiplied by sqrt(d)
  bool layer_norm = false;  // in the convolution module; else batch norm
  size_t kernel = 9;
  size_t conv_left = 4;  // frames before its own that a convolution reads; kernel - 1 - conv_left behind
  ContextStyle style = ContextStyle::kRegular;
  std::vector<AttentionContext> contexts;  // at least one; the first is the default
  std::optional<WindowMenu> menu;          // of kChunkedLimitedWithRc, where the configuration has it
  PromptConfig prompt;

  // Strided convolutions, each halving time and mels.
  size_t stages() const {
    size_t count = 0;
    while (size_t{1} << count < factor) ++count;
    return count;
  }
  // Rows (or columns) that a stage makes of so many.
  size_t halved(size_t count) const { return causal_downsampling ? count / 2 + 1 : (count + 1) / 2; }
  // Frames that so many frames of features give.  None give none.
  size_t frames(size_t features) const {
    if (features == 0) return 0;
    for (size_t i = 0; i < stages(); ++i) features = halved(features);
    return features;
  }
  size_t subsampled_mels() const {  // F
    size_t count = mels;
    for (size_t i = 0; i < stages(); ++i) count = halved(count);
    return count;
  }
  size_t padded_channels() const { return (channels + 31) / 32 * 32; }  // C as rows hold it
  size_t head_size() const { return width / heads; }
  // Whether a stream's frames depend on no more of what comes after them than attention sees.
  bool cache_aware() const {
    return causal_downsampling && conv_left + 1 == kernel && style != ContextStyle::kChunkedLimitedWithRc;
  }
};

struct DecoderConfig {
  HeadKind kind = HeadKind::kRnnt;  // of the main head
  bool ctc = false;                 // the checkpoint has a CTC head, beside another one or alone
  size_t vocabulary = 0;            // V, without the blank, whose id is V
  size_t width = 0;                 // P, of the prediction network; 0 with a CTC head alone
  size_t layers = 0;                // of its LSTM
  size_t joint = 0;                 // J
  std::vector<size_t> durations;    // frames, TDT only
  size_t max_symbols = 10;          // labels at one frame
};

struct Config {
  std::string target;        // the maker's class, without its module
  std::string nemo_version;  // may be empty
  FeatureConfig features;
  EncoderConfig encoder;
  DecoderConfig decoder;
  std::string tokenizer;            // member of the archive with the SentencePiece model; may be empty
  std::vector<std::string> labels;  // of the vocabulary, as the configuration lists them; may be empty
  bool character_model = false;     // the labels are characters, not pieces

  double frame_s() const {
    return static_cast<double>(features.hop * encoder.factor) / static_cast<double>(features.rate_hz);
  }
};

}  // namespace syrinx::transducer
