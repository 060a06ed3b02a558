#include "models/qwen_tts/config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "base/in_quotes.h"
#include "base/json.h"
#include "models/qwen_tts/json_section.h"

namespace syrinx::qwen_tts {
namespace {

// Several times what any published checkpoint has (2048 wide, 28 layers, 151936 tokens), far below where a product
// could overflow.
constexpr size_t kMaxWidth = 16384, kMaxHidden = 1 << 16, kMaxLayers = 256, kMaxHeads = 256, kMaxHeadSize = 512;
constexpr size_t kMaxTextVocabulary = 1 << 20, kMaxVocabulary = 1 << 16, kMaxCodebooks = 32, kMaxContext = 1 << 30;
constexpr size_t kMaxNames = 4096, kMaxNameBytes = 256;
constexpr size_t kMaxChannels = 16384, kMaxKernel = 63, kMaxDilation = 64, kMaxBlocks = 16, kMaxMels = 512;
constexpr size_t kMaxFrames = 1 << 20, kMaxSampleRate = 384000;
constexpr size_t kAnyWhole = std::numeric_limits<size_t>::max();
constexpr float kMaxNumber = 100.0f;  // of temperatures and penalties
constexpr JsonLimits kJsonLimits{.max_bytes = size_t{1} << 20, .max_depth = 16};

struct KindName {
  Kind kind;
  const char* name;
};
constexpr KindName kKinds[] = {
    {Kind::kBase, "base"}, {Kind::kCustomVoice, "custom_voice"}, {Kind::kVoiceDesign, "voice_design"}};

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

template <class T>
const T* named(const std::vector<T>& all, std::string_view name) {
  const std::string lower = lower_case(name);
  const auto found = std::find_if(all.begin(), all.end(), [&](const T& one) { return one.name == lower; });
  return found == all.end() ? nullptr : &*found;
}

// Scalings of positions: all three axes of the talker's rotary embedding have one position in speech, so that its
// sections change nothing.
Status check_rotary(const JsonSection& section) {
  SYRINX_TRY(const auto scaling, section.optional_section("rope_scaling"));
  if (!scaling) return {};
  for (const char* const key : {"rope_type", "type"}) {
    SYRINX_TRY(const std::string type, scaling->word_or(key, "default"));
    if (type != "default")
      return scaling->refuse(Code::kUnsupported, key, fmt::format("is {}; only default is known", in_quotes(type)));
  }
  return {};
}

Status check_attention(const JsonSection& section) {
  SYRINX_TRY(const std::string act, section.word("hidden_act"));
  if (act != "silu")
    return section.refuse(Code::kUnsupported, "hidden_act", fmt::format("is {}; only silu is known", in_quotes(act)));
  for (const char* const key : {"attention_bias", "use_sliding_window"}) {
    SYRINX_TRY(const bool asked, section.flag_or(key, false));
    if (asked) return section.refuse(Code::kUnsupported, key, "is true, which no published model has");
  }
  const Json* const types = section.find("layer_types");
  if (types == nullptr || types->is_null()) return {};
  if (types->array() == nullptr) return section.refuse(Code::kDataLoss, "layer_types", "is not a list");
  for (const Json& type : *types->array())
    if (type.string() == nullptr || *type.string() != "full_attention")
      return section.refuse(Code::kUnsupported, "layer_types", "has another type than full_attention");
  return {};
}

Result<TransformerConfig> read_transformer(const JsonSection& section) {
  TransformerConfig c;
  SYRINX_TRY(c.width, section.whole("hidden_size", 1, kMaxWidth));
  SYRINX_TRY(c.hidden, section.whole("intermediate_size", 1, kMaxHidden));
  SYRINX_TRY(c.layers, section.whole("num_hidden_layers", 1, kMaxLayers));
  SYRINX_TRY(c.heads, section.whole("num_attention_heads", 1, kMaxHeads));
  SYRINX_TRY(c.key_heads, section.whole("num_key_value_heads", 1, kMaxHeads));
  SYRINX_TRY(c.head_size, section.whole("head_dim", 2, kMaxHeadSize));
  SYRINX_TRY(c.context, section.whole("max_position_embeddings", 1, kMaxContext));
  SYRINX_TRY(c.epsilon, section.number("rms_norm_eps", 1e-12f, 0.1f));
  SYRINX_TRY(c.period, section.number("rope_theta", 2.0f, 1e12f));
  constexpr size_t kUnit = 32;  // rows of heads are whole panels
  if (c.heads % c.key_heads != 0 || c.head_size % 2 != 0 || c.heads * c.head_size % kUnit != 0 ||
      c.key_heads * c.head_size % kUnit != 0)
    return section.refuse(Code::kUnsupported, "num_attention_heads",
                          fmt::format("is {} of {} numbers on {} key heads; heads must share keys evenly and make "
                                      "widths of multiples of {}",
                                      c.heads, c.head_size, c.key_heads, kUnit));
  SYRINX_TRY_VOID(check_attention(section));
  SYRINX_TRY_VOID(check_rotary(section));
  return c;
}

Result<int32_t> read_id(const JsonSection& section, const char* key, size_t vocabulary) {
  SYRINX_TRY(const size_t id, section.whole(key, 0, vocabulary - 1, Code::kDataLoss));
  return static_cast<int32_t>(id);
}

Result<TextIds> read_text_ids(const JsonSection& section, size_t vocabulary) {
  TextIds ids;
  SYRINX_TRY(ids.im_start, read_id(section, "im_start_token_id", vocabulary));
  SYRINX_TRY(ids.im_end, read_id(section, "im_end_token_id", vocabulary));
  SYRINX_TRY(ids.pad, read_id(section, "tts_pad_token_id", vocabulary));
  SYRINX_TRY(ids.bos, read_id(section, "tts_bos_token_id", vocabulary));
  SYRINX_TRY(ids.eos, read_id(section, "tts_eos_token_id", vocabulary));
  return ids;
}

Result<CodecIds> read_codec_ids(const JsonSection& section, size_t vocabulary) {
  CodecIds ids;
  SYRINX_TRY(ids.pad, read_id(section, "codec_pad_id", vocabulary));
  SYRINX_TRY(ids.bos, read_id(section, "codec_bos_id", vocabulary));
  SYRINX_TRY(ids.eos, read_id(section, "codec_eos_token_id", vocabulary));
  SYRINX_TRY(ids.think, read_id(section, "codec_think_id", vocabulary));
  SYRINX_TRY(ids.no_think, read_id(section, "codec_nothink_id", vocabulary));
  SYRINX_TRY(ids.think_begin, read_id(section, "codec_think_bos_id", vocabulary));
  SYRINX_TRY(ids.think_end, read_id(section, "codec_think_eos_id", vocabulary));
  if (static_cast<size_t>(ids.eos) < vocabulary - Config::kControlTokens)
    return section.refuse(
        Code::kDataLoss, "codec_eos_token_id",
        fmt::format("is {}, which is a code: those end at {}", ids.eos, vocabulary - Config::kControlTokens - 1));
  return ids;
}

// {name: id}; of speakers an id may be a list of one.  One absent map is an empty one.
struct NamedId {
  std::string name;
  int32_t id = 0;
};
Result<std::vector<NamedId>> read_ids(const JsonSection& section, const char* key, size_t vocabulary) {
  std::vector<NamedId> ids;
  const Json* const map = section.find(key);
  if (map == nullptr || map->is_null()) return ids;
  if (map->object() == nullptr) return section.refuse(Code::kDataLoss, key, "is not an object");
  if (map->object()->size() > kMaxNames)
    return section.refuse(Code::kUnsupported, key, fmt::format("has more than {} members", kMaxNames));
  for (const JsonMember& member : *map->object()) {
    const Json::Array* const list = member.value.array();
    const Json& value = list != nullptr && list->size() == 1 ? list->front() : member.value;
    const int64_t* const id = value.whole();
    std::string name = lower_case(member.key);
    if (name.empty() || name.size() > kMaxNameBytes || id == nullptr || *id < 0 ||
        static_cast<size_t>(*id) >= vocabulary)
      return section.refuse(Code::kDataLoss, key,
                            fmt::format("has no id from 0 to {} for {}", vocabulary - 1, in_quotes(member.key)));
    const auto same = std::find_if(ids.begin(), ids.end(), [&](const NamedId& one) { return one.name == name; });
    if (same != ids.end())
      return section.refuse(Code::kDataLoss, key, fmt::format("has the name {} twice", in_quotes(name)));
    ids.push_back({.name = std::move(name), .id = static_cast<int32_t>(*id)});
  }
  return ids;
}

Result<std::vector<Language>> read_languages(const JsonSection& section, size_t vocabulary) {
  SYRINX_TRY(std::vector<NamedId> ids, read_ids(section, "codec_language_id", vocabulary));
  std::vector<Language> languages;
  languages.reserve(ids.size());
  for (NamedId& one : ids) languages.push_back({.name = std::move(one.name), .id = one.id});
  return languages;
}

// spk_is_dialect: false, or the name of a language.
Result<std::vector<Speaker>> read_speakers(const JsonSection& section, const Config& config) {
  SYRINX_TRY(std::vector<NamedId> ids, read_ids(section, "spk_id", config.vocabulary));
  std::vector<Speaker> speakers;
  speakers.reserve(ids.size());
  for (NamedId& one : ids) speakers.push_back({.name = std::move(one.name), .id = one.id, .dialect = ""});
  const Json* const dialects = section.find("spk_is_dialect");
  if (dialects == nullptr || dialects->is_null()) return speakers;
  if (dialects->object() == nullptr) return section.refuse(Code::kDataLoss, "spk_is_dialect", "is not an object");
  for (const JsonMember& member : *dialects->object()) {
    const std::string name = lower_case(member.key);
    const auto speaker =
        std::find_if(speakers.begin(), speakers.end(), [&](const Speaker& one) { return one.name == name; });
    if (speaker == speakers.end()) continue;
    if (const bool* const flag = member.value.boolean(); flag != nullptr && !*flag) continue;
    const std::string* const dialect = member.value.string();
    const Language* const language = dialect == nullptr ? nullptr : config.language(*dialect);
    if (language == nullptr)
      return section.refuse(Code::kDataLoss, "spk_is_dialect",
                            fmt::format("has neither false nor a language for {}", in_quotes(member.key)));
    speaker->dialect = language->name;
  }
  return speakers;
}

Result<SpeakerEncoderConfig> read_speaker_encoder(const JsonSection& section, size_t talker_width) {
  SpeakerEncoderConfig c;
  SYRINX_TRY(c.mels, section.whole_or("mel_dim", c.mels, 1, kMaxMels));
  SYRINX_TRY(c.width, section.whole("enc_dim", 1, kMaxWidth));
  SYRINX_TRY(c.sample_rate, section.whole_or("sample_rate", c.sample_rate, 1, kMaxSampleRate));
  SYRINX_TRY(c.channels, section.wholes_or("enc_channels", c.channels, kMaxBlocks, kMaxChannels));
  SYRINX_TRY(c.kernels, section.wholes_or("enc_kernel_sizes", c.kernels, kMaxBlocks, kMaxKernel));
  SYRINX_TRY(c.dilations, section.wholes_or("enc_dilations", c.dilations, kMaxBlocks, kMaxDilation));
  SYRINX_TRY(c.attention_channels, section.whole_or("enc_attention_channels", c.attention_channels, 1, kMaxChannels));
  SYRINX_TRY(c.res2net_scale, section.whole_or("enc_res2net_scale", c.res2net_scale, 2, kMaxChannels));
  SYRINX_TRY(c.se_channels, section.whole_or("enc_se_channels", c.se_channels, 1, kMaxChannels));
  const size_t blocks = c.channels.size();
  if (blocks < 3 || c.kernels.size() != blocks || c.dilations.size() != blocks)
    return section.refuse(Code::kDataLoss, "enc_channels",
                          fmt::format("tells of {} blocks, enc_kernel_sizes of {}, enc_dilations of {}; they must be "
                                      "as many, and three at least",
                                      blocks, c.kernels.size(), c.dilations.size()));
  for (size_t i = 0; i < blocks; ++i) {
    // Reflected edges keep the length, so a kernel has a middle; the blocks' outputs lie side by side in the last.
    if (c.kernels[i] % 2 == 0)
      return section.refuse(Code::kUnsupported, "enc_kernel_sizes", fmt::format("has {}, an even one", c.kernels[i]));
    if (i > 0 && i + 1 < blocks && (c.channels[i] != c.channels[0] || c.channels[i] % c.res2net_scale != 0))
      return section.refuse(Code::kUnsupported, "enc_channels",
                            fmt::format("has {}; the inner ones must be as many as the first, and a multiple of {}",
                                        c.channels[i], c.res2net_scale));
  }
  if (c.channels.back() != (blocks - 2) * c.channels[0])
    return section.refuse(Code::kUnsupported, "enc_channels",
                          fmt::format("ends with {}; that must be the sum of the inner ones, {}", c.channels.back(),
                                      (blocks - 2) * c.channels[0]));
  if (c.width != talker_width)
    return section.refuse(Code::kDataLoss, "enc_dim",
                          fmt::format("is {}, the talker's width {}; they must be equal", c.width, talker_width));
  return c;
}

// Transformers 4.57.3, asked for fix_mistral_regex, then puts Tekken's expression in place of the tokenizer's own.  A
// file without a version counts as new, and 5.0.0rc1 lies before 5.0.0.
bool is_patched(std::string_view version) {
  std::array<unsigned, 3> parts{};
  const char *at = version.data(), *const end = at + version.size();
  for (size_t i = 0; i < parts.size() && at != end; ++i) {
    const bool has_dot = i > 0 && *at == '.';
    if (i > 0 && !has_dot) break;
    const auto [next, fault] = std::from_chars(at + (has_dot ? 1 : 0), end, parts[i]);
    if (fault != std::errc()) break;
    at = next;
  }
  const std::string_view rest(at, static_cast<size_t>(end - at));
  const bool is_early =
      rest.starts_with('a') || rest.starts_with('b') || rest.starts_with("rc") || rest.starts_with(".dev");
  constexpr std::array<unsigned, 3> kOld = {4, 57, 2}, kNew = {5, 0, 0};
  return version.empty() || (parts > kOld && (parts < kNew || (parts == kNew && is_early)));
}

Result<Kind> read_kind(const JsonSection& root) {
  SYRINX_TRY(const std::string type, root.word("model_type"));
  if (type != "qwen3_tts")
    return root.refuse(Code::kUnsupported, "model_type", fmt::format("is {}, not qwen3_tts", in_quotes(type)));
  SYRINX_TRY(const std::string tokenizer, root.word("tokenizer_type"));
  if (tokenizer != "qwen3_tts_tokenizer_12hz")
    return root.refuse(Code::kUnsupported, "tokenizer_type",
                       fmt::format("is {}; only the codec qwen3_tts_tokenizer_12hz can be run", in_quotes(tokenizer)));
  SYRINX_TRY(const std::string kind, root.word("tts_model_type"));
  for (const KindName& known : kKinds)
    if (known.name == kind) return known.kind;
  return root.refuse(Code::kUnsupported, "tts_model_type",
                     fmt::format("is {}; base, custom_voice and voice_design are known", in_quotes(kind)));
}

Status read_vocabularies(const JsonSection& talker, const JsonSection& predictor, Config& config) {
  SYRINX_TRY(config.text_vocabulary, talker.whole("text_vocab_size", 1, kMaxTextVocabulary));
  SYRINX_TRY(config.text_width, talker.whole("text_hidden_size", 1, kMaxWidth));
  SYRINX_TRY(config.vocabulary, talker.whole("vocab_size", Config::kControlTokens + 1, kMaxVocabulary));
  SYRINX_TRY(config.codebooks, talker.whole("num_code_groups", 2, kMaxCodebooks));
  SYRINX_TRY(config.predictor_codes, predictor.whole("vocab_size", 1, kMaxVocabulary));
  SYRINX_TRY(const size_t groups, predictor.whole("num_code_groups", 2, kMaxCodebooks));
  if (groups != config.codebooks)
    return predictor.refuse(Code::kDataLoss, "num_code_groups",
                            fmt::format("is {}, the talker's {}; they must be equal", groups, config.codebooks));
  if (config.predictor.context < config.codebooks)
    return predictor.refuse(
        Code::kDataLoss, "max_position_embeddings",
        fmt::format("is {}, less than the {} positions of a frame", config.predictor.context, config.codebooks));
  return {};
}

Result<DrawSettings> read_draws(const JsonSection& root, const std::string& prefix, const char* samples) {
  DrawSettings draws;
  SYRINX_TRY(draws.samples, root.flag_or(samples, draws.samples));
  constexpr float kAny = std::numeric_limits<float>::max();
  SYRINX_TRY(const float temperature, root.number_or(prefix + "temperature", draws.temperature,
                                                     draws.samples ? 1e-3f : -kAny, draws.samples ? kMaxNumber : kAny));
  if (draws.samples) draws.temperature = temperature;
  SYRINX_TRY(const size_t top_k, root.whole_or(prefix + "top_k", draws.top_k, 0, kAnyWhole));
  draws.top_k = std::min(top_k, kMaxVocabulary);
  SYRINX_TRY(draws.top_p, root.number_or(prefix + "top_p", draws.top_p, 1e-6f, 1.0f));
  return draws;
}

}  // namespace

const char* kind_name(Kind kind) {
  for (const KindName& known : kKinds)
    if (known.kind == kind) return known.name;
  return "";
}

nn::DecoderConfig decoder_shape(const TransformerConfig& c, DType cache) {
  return {.width = c.width,
          .layers = c.layers,
          .heads = c.heads,
          .key_heads = c.key_heads,
          .head_size = c.head_size,
          .hidden = c.hidden,
          .norm = nn::Norm::kRms,
          .epsilon = c.epsilon,
          .rotary = nn::Rotary::kInterleaved,
          .period = c.period,
          .mlp = nn::Mlp::kSwiGlu,
          .head_norm = true,
          .cache = cache};
}

const Language* Config::language(std::string_view name) const { return named(languages, name); }
const Speaker* Config::speaker(std::string_view name) const { return named(speakers, name); }

Result<Config> read_config(std::string_view json, const std::string& name) {
  SYRINX_TRY(const Json parsed, parse_json(json, name, kJsonLimits));
  SYRINX_TRY(const JsonSection root, JsonSection::root(parsed, name));
  Config config;
  SYRINX_TRY(config.kind, read_kind(root));
  SYRINX_TRY(config.size, root.word_or("tts_model_size", ""));
  SYRINX_TRY(const std::string transformers, root.word_or("transformers_version", ""));
  config.cuts_by_case = is_patched(transformers);
  SYRINX_TRY(const JsonSection talker, root.section("talker_config"));
  SYRINX_TRY(const JsonSection predictor, talker.section("code_predictor_config"));
  SYRINX_TRY(config.talker, read_transformer(talker));
  SYRINX_TRY(config.predictor, read_transformer(predictor));
  SYRINX_TRY_VOID(read_vocabularies(talker, predictor, config));
  SYRINX_TRY(config.text, read_text_ids(root, config.text_vocabulary));
  SYRINX_TRY(config.codec, read_codec_ids(talker, config.vocabulary));
  SYRINX_TRY(config.languages, read_languages(talker, config.vocabulary));
  SYRINX_TRY(config.speakers, read_speakers(talker, config));
  if (config.kind == Kind::kBase) {
    SYRINX_TRY(const JsonSection encoder, root.section("speaker_encoder_config"));
    SYRINX_TRY(config.speaker_encoder, read_speaker_encoder(encoder, config.talker.width));
  }
  return config;
}

Result<GenerationConfig> read_generation_config(std::string_view json, const std::string& name) {
  SYRINX_TRY(const Json parsed, parse_json(json, name, kJsonLimits));
  SYRINX_TRY(const JsonSection root, JsonSection::root(parsed, name));
  GenerationConfig config;
  SYRINX_TRY(config.talker, read_draws(root, "", "do_sample"));
  SYRINX_TRY(config.predictor, read_draws(root, "subtalker_", "subtalker_dosample"));
  SYRINX_TRY(config.penalty, root.number_or("repetition_penalty", config.penalty, 1e-3f, kMaxNumber));
  SYRINX_TRY(const size_t frames, root.whole_or("max_new_tokens", config.max_frames, 1, kAnyWhole));
  config.max_frames = std::min(frames, kMaxFrames);
  return config;
}

}  // namespace syrinx::qwen_tts
