#include "models/transducer/transformers_config.h"

#include <bit>

#include "base/in_quotes.h"
#include "models/transducer/config_limits.h"
#include "models/transducer/config_prompt.h"

namespace syrinx::transducer {
namespace {

// Its `pad_token_id` in CTC models, `blank_token_id` in the others, is the last label.
size_t read_vocabulary_size(Section& top, const char* blank) {
  const size_t size = top.whole("vocab_size", 2, kMaxVocabulary + 1);
  top.require(top.whole(blank, 0, kMaxVocabulary) + 1 == size, Code::kUnsupported, blank,
              fmt::format("is not the last of {} labels, where the blank is in models that can be run", size));
  return size - 1;
}

void require_word(Section& section, const char* key, const std::string& known) {
  const std::string word = section.word_or(key, known);
  section.require(word == known, Code::kUnsupported, key,
                  fmt::format("is {}; only '{}' can be run", in_quotes(word), known));
}

// processor_config.json holds them in a section, preprocessor_config.json bare.
FeatureConfig read_features(Section section) {
  FeatureConfig out;
  out.mels = section.whole_or("feature_size", 80, 1, kMaxMels);
  out.rate_hz = section.whole_or("sampling_rate", 16000, 1, 384000);
  section.require(out.rate_hz == 16000, Code::kUnsupported, "sampling_rate",
                  fmt::format("is {}; models of 16000 Hz can be run", out.rate_hz));
  out.window = section.whole_or("win_length", 400, 2, 65536);
  out.hop = section.whole_or("hop_length", 160, 1, 65536);
  section.require(
      out.hop <= out.window / 2, Code::kUnsupported, "hop_length",
      fmt::format("makes steps of {} samples; at most half of the window's {} can be run", out.hop, out.window));
  out.fft = section.whole_or("n_fft", 512, 16, 65536);
  section.require(std::has_single_bit(out.fft) && out.fft >= out.window, Code::kUnsupported, "n_fft",
                  fmt::format("is {}; a power of two not below the window's {} can be run", out.fft, out.window));
  out.preemphasis = static_cast<float>(section.real_or("preemphasis", section.is_null("preemphasis") ? 0 : 0.97, 0, 1));
  out.high_hz = static_cast<double>(out.rate_hz) / 2;
  require_word(section, "mel_filters_dtype", "float32");
  return out;
}

// Its left chunks are whole ones: sliding_window counts the frame itself and what is before it.  Null is no number to
// its class either; read as the default, it would limit what the file does not.
void read_chunks(Section& section, Section& processor, EncoderConfig& out) {
  for (const char* const key : {"sliding_window", "default_num_lookahead_tokens"})
    section.require(!section.is_null(key), Code::kUnsupported, key, "is null; a number of frames can be run");
  const size_t window = section.whole_or("sliding_window", 71, 1, kMaxContext + 1);
  std::vector<size_t> ahead = {section.whole_or("default_num_lookahead_tokens", 13, 0, kMaxContext)};
  if (processor.has("supported_num_lookahead_tokens"))
    for (const size_t count : processor.wholes("supported_num_lookahead_tokens", kMaxContexts, 0, kMaxContext))
      if (count != ahead.front()) ahead.push_back(count);
  for (const size_t count : ahead)
    out.contexts.push_back({.left = static_cast<ptrdiff_t>((window - 1) / (count + 1) * (count + 1)),
                            .right = static_cast<ptrdiff_t>(count)});
}

EncoderConfig read_encoder(Section section, Section& processor, bool streaming) {
  EncoderConfig out;
  out.width = section.whole_or("hidden_size", 1024, 1, kMaxWidth);
  out.layers = section.whole_or("num_hidden_layers", 24, 1, kMaxLayers);
  out.heads = section.whole_or("num_attention_heads", 8, 1, kMaxHeads);
  section.require(out.width % out.heads == 0 && out.width % 2 == 0, Code::kDataLoss, "num_attention_heads",
                  fmt::format("is {}, which does not cut a width of {}", out.heads, out.width));
  section.require(section.whole_or("num_key_value_heads", out.heads, 1, kMaxHeads) == out.heads, Code::kUnsupported,
                  "num_key_value_heads", "differs from num_attention_heads");
  out.hidden = section.whole_or("intermediate_size", 4096, 1, 16 * kMaxWidth);
  out.mels = section.whole_or("num_mel_bins", 80, 1, kMaxMels);
  out.channels = section.whole_or("subsampling_conv_channels", 256, 1, kMaxChannels);
  out.factor = section.whole_or("subsampling_factor", 8, 2, kMaxFactor);
  section.require(std::has_single_bit(out.factor), Code::kDataLoss, "subsampling_factor", "is not a power of two");
  for (const auto& [key, known] :
       {std::pair{"subsampling_conv_kernel_size", size_t{3}}, {"subsampling_conv_stride", 2}})
    section.require(section.whole_or(key, known, 1, kMaxKernel) == known, Code::kUnsupported, key,
                    fmt::format("is not {}", known));
  require_word(section, "hidden_act", "silu");
  out.use_bias = section.flag_or("attention_bias", true);
  section.require(section.flag_or("convolution_bias", true) == out.use_bias, Code::kUnsupported, "convolution_bias",
                  "differs from attention_bias");
  out.xscaling = section.flag_or("scale_input", true);
  out.kernel = section.whole_or("conv_kernel_size", 9, 1, kMaxKernel);
  section.require(out.kernel % 2 == 1, Code::kDataLoss, "conv_kernel_size", "is even");
  out.causal_downsampling = out.layer_norm = streaming;
  out.conv_left = streaming ? out.kernel - 1 : (out.kernel - 1) / 2;
  out.style = streaming ? ContextStyle::kChunkedLimited : ContextStyle::kRegular;
  if (streaming) {
    read_chunks(section, processor, out);
    check_stream_sizes(section, "sliding_window", out);
  } else {
    out.contexts.push_back({});
  }
  return out;
}

void read_transducer(Section& top, bool durations, DecoderConfig& out) {
  out.vocabulary = read_vocabulary_size(top, "blank_token_id");
  out.width = out.joint = top.whole_or("decoder_hidden_size", 640, 1, kMaxWidth);
  out.layers = top.whole_or("num_decoder_layers", 2, 1, kMaxLstmLayers);
  out.max_symbols = top.whole_or("max_symbols_per_step", 10, 1, kMaxSymbols);
  require_word(top, "hidden_act", "relu");
  out.kind = durations ? HeadKind::kTdt : HeadKind::kRnnt;
  if (durations) out.durations = top.wholes("durations", kMaxDurations, 0, kMaxDuration);
}

// The model's configuration says how many rows there are and which is usual, the processor's what they are called.
void read_prompt(Section& top, Section& processor, PromptConfig& out) {
  out.count = top.whole_or("num_prompts", 128, 1, kMaxPrompts);
  out.hidden = top.whole_or("prompt_intermediate_size", 2048, 1, 2 * kMaxWidth);
  out.fallback = top.whole_or("default_prompt_id", 101, 0, kMaxPrompts - 1);
  const bool counted = out.fallback < out.count;
  top.require(counted, Code::kDataLoss, "default_prompt_id",
              fmt::format("is {}, but there are {} prompts", out.fallback, out.count));
  top.require(processor.has("prompt_dictionary"), Code::kDataLoss, "num_prompts",
              "counts languages, but no prompt_dictionary names them; put the model's processor_config.json, which has "
              "one, beside the weights");
  if (counted && processor.has("prompt_dictionary")) read_languages(processor, out);
}

}  // namespace

// Converters leave the maker's tree without its class, but may add a model_type of their own.
bool is_transformers_config(const Section& top) {
  const bool makers = top.has("preprocessor") && top.has("encoder") && !top.has("encoder_config");
  return !top.has("target") && top.has("model_type") && !makers;
}

Config read_transformers_config(Section top, Section processor) {
  Config out;
  out.target = top.word("model_type");
  const bool ctc = out.target == "parakeet_ctc", tdt = out.target == "parakeet_tdt";
  const bool prompted = out.target == "nemotron3_5_asr";
  const bool streaming = out.target == "nemotron_asr_streaming" || prompted;
  top.require(ctc || tdt || streaming || out.target == "parakeet_rnnt", Code::kUnsupported, "model_type",
              fmt::format("is {}; of transformers' models parakeet_ctc, parakeet_rnnt, parakeet_tdt, "
                          "nemotron_asr_streaming and nemotron3_5_asr can be run",
                          in_quotes(out.target)));
  out.encoder = read_encoder(top.section("encoder_config"), processor, streaming);
  out.features = read_features(processor.has("feature_extractor") ? processor.section("feature_extractor") : processor);
  out.features.per_feature = !streaming;
  if (ctc) {
    out.decoder.kind = HeadKind::kCtc;
    out.decoder.ctc = true;
    out.decoder.vocabulary = read_vocabulary_size(top, "pad_token_id");
  } else {
    read_transducer(top, tdt, out.decoder);
  }
  if (prompted) read_prompt(top, processor, out.encoder.prompt);
  return out;
}

}  // namespace syrinx::transducer
