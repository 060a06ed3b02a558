#include "models/whisper/config.h"

#include <algorithm>
#include <limits>

#include "base/json.h"

namespace syrinx::whisper {
namespace {

// Far above what is published (1280 wide, 32 layers, 51866 tokens), far below where a product could overflow.
constexpr size_t kMaxWidth = 8192, kMaxHidden = 32768, kMaxLayers = 128, kMaxMels = 512, kMaxVocabulary = 1 << 20;
constexpr size_t kMaxPositions = 8192;
constexpr size_t kMinTextPositions = 16;  // a prompt of 5, and half of all for text, must find room
constexpr size_t kWidthUnit = 32;         // rows of activations are whole panels, so nothing has to be padded
constexpr JsonLimits kJsonLimits{.max_bytes = size_t{16} << 20, .max_depth = 16};
constexpr size_t kMaxIds = 1 << 16;

// A whole number that fits an id or a count.
const int64_t* small(const Json& value) {
  const int64_t* const whole = value.whole();
  return whole != nullptr && *whole >= 0 && *whole <= std::numeric_limits<int32_t>::max() ? whole : nullptr;
}

tl::unexpected<Error> wrong(const std::string& name, const char* key, const char* kind) {
  return fail(Code::kDataLoss, "'{}': {} is not {}; take the file that belongs to the weights", name, key, kind);
}

Status read_ids(const Json& root, const char* key, const std::string& name, std::vector<int32_t>& to) {
  const Json* const value = root.find(key);
  if (value == nullptr || value->is_null()) return {};
  const Json::Array* const items = value->array();
  if (items == nullptr || items->size() > kMaxIds) return wrong(name, key, "a list of ids");
  std::vector<int32_t> ids;
  for (const Json& item : *items) {
    const int64_t* const id = small(item);
    if (id == nullptr) return wrong(name, key, "a list of ids");
    ids.push_back(static_cast<int32_t>(*id));
  }
  to = std::move(ids);
  return {};
}

Status read_count(const Json& root, const char* key, const std::string& name, size_t& to) {
  const Json* const value = root.find(key);
  if (value == nullptr || value->is_null()) return {};
  const int64_t* const whole = small(*value);
  if (whole == nullptr) return wrong(name, key, "a number of heads");
  to = static_cast<size_t>(*whole);
  return {};
}

Status read_alignment_heads(const Json& root, const std::string& name, std::vector<AlignmentHead>& to) {
  constexpr const char *kKey = "alignment_heads", *kKind = "a list of pairs of layer and head";
  const Json* const value = root.find(kKey);
  if (value == nullptr || value->is_null()) return {};
  const Json::Array* const items = value->array();
  if (items == nullptr || items->size() > kMaxIds) return wrong(name, kKey, kKind);
  std::vector<AlignmentHead> heads;
  for (const Json& item : *items) {
    const Json::Array* const pair = item.array();
    if (pair == nullptr || pair->size() != 2) return wrong(name, kKey, kKind);
    const int64_t *const layer = small((*pair)[0]), *const head = small((*pair)[1]);
    if (layer == nullptr || head == nullptr) return wrong(name, kKey, kKind);
    heads.push_back({static_cast<size_t>(*layer), static_cast<size_t>(*head)});
  }
  to = std::move(heads);
  return {};
}

// Each once: what aligns by them grows with their number.
Status check_alignment_heads(const Config& c, const std::string& name) {
  std::vector<bool> aligns(c.decoder_layers * c.decoder_heads);
  for (const AlignmentHead& head : c.alignment_heads) {
    if (head.layer >= c.decoder_layers || head.head >= c.decoder_heads)
      return fail(Code::kDataLoss,
                  "'{}' aligns by head {} of layer {}, but has {} of {}; its files do not belong together", name,
                  head.head, head.layer, c.decoder_heads, c.decoder_layers);
    const size_t at = head.layer * c.decoder_heads + head.head;
    if (aligns[at])
      return fail(Code::kDataLoss, "'{}' names head {} of layer {} twice among its alignment_heads; name each once",
                  name, head.head, head.layer);
    aligns[at] = true;
  }
  return {};
}

// {"<|en|>": 50259, ...}
Status read_languages(const Json& root, const std::string& name, std::vector<int32_t>& to) {
  const Json* const value = root.find("lang_to_id");
  if (value == nullptr || value->is_null()) return {};
  if (value->object() == nullptr || value->object()->size() > kMaxIds)
    return wrong(name, "lang_to_id", "an object of ids");
  std::vector<int32_t> ids;
  for (const JsonMember& member : *value->object()) {
    const int64_t* const id = small(member.value);
    if (id == nullptr) return wrong(name, "lang_to_id", "an object of ids");
    ids.push_back(static_cast<int32_t>(*id));
  }
  std::sort(ids.begin(), ids.end());
  to = std::move(ids);
  return {};
}

}  // namespace

Status add_json(std::string_view text, const std::string& name, Config& config) {
  SYRINX_TRY(const Json root, parse_json(text, name, kJsonLimits));
  if (root.object() == nullptr) return fail(Code::kDataLoss, "'{}' is not a JSON object", name);
  const Json* const activation = root.find("activation_function");
  if (activation != nullptr && (activation->string() == nullptr || *activation->string() != "gelu"))
    return fail(Code::kUnsupported, "'{}' asks for another activation_function than gelu, the only one of Whisper's",
                name);
  SYRINX_TRY_VOID(read_count(root, "encoder_attention_heads", name, config.encoder_heads));
  SYRINX_TRY_VOID(read_count(root, "decoder_attention_heads", name, config.decoder_heads));
  SYRINX_TRY_VOID(read_ids(root, "suppress_ids", name, config.suppress_ids));
  SYRINX_TRY_VOID(read_ids(root, "suppress_tokens", name, config.suppress_ids));
  SYRINX_TRY_VOID(read_ids(root, "suppress_ids_begin", name, config.suppress_ids_begin));
  SYRINX_TRY_VOID(read_ids(root, "begin_suppress_tokens", name, config.suppress_ids_begin));
  SYRINX_TRY_VOID(read_ids(root, "lang_ids", name, config.language_ids));
  SYRINX_TRY_VOID(read_languages(root, name, config.language_ids));
  return read_alignment_heads(root, name, config.alignment_heads);
}

Status check_config(const Config& c, const std::string& name) {
  struct Dimension {
    const char* name;
    size_t value, limit;
  };
  const Dimension dimensions[] = {{"width", c.width, kMaxWidth},
                                  {"number of encoder layers", c.encoder_layers, kMaxLayers},
                                  {"number of decoder layers", c.decoder_layers, kMaxLayers},
                                  {"number of encoder heads", c.encoder_heads, kMaxWidth},
                                  {"number of decoder heads", c.decoder_heads, kMaxWidth},
                                  {"encoder's feed-forward width", c.encoder_hidden, kMaxHidden},
                                  {"decoder's feed-forward width", c.decoder_hidden, kMaxHidden},
                                  {"number of mel bands", c.mels, kMaxMels},
                                  {"number of tokens", c.vocabulary, kMaxVocabulary},
                                  {"number of text positions", c.text_positions, kMaxPositions},
                                  {"number of audio positions", c.audio_positions, kMaxPositions}};
  for (const Dimension& d : dimensions) {
    if (d.value == 0) return fail(Code::kDataLoss, "'{}' is not a Whisper model: its {} is 0", name, d.name);
    if (d.value > d.limit)
      return fail(Code::kLimitExceeded, "'{}' has a {} of {}, the limit is {}", name, d.name, d.value, d.limit);
  }
  if (c.text_positions < kMinTextPositions)
    return fail(Code::kDataLoss, "'{}' is not a Whisper model: it has {} text positions, at least {} are needed", name,
                c.text_positions, kMinTextPositions);
  for (const size_t width : {c.width, c.encoder_hidden, c.decoder_hidden}) {
    if (width % kWidthUnit != 0)
      return fail(Code::kUnsupported, "'{}' has layers of {} numbers, only multiples of {} are computed", name, width,
                  kWidthUnit);
  }
  for (const size_t heads : {c.encoder_heads, c.decoder_heads}) {
    if (c.width % heads != 0)
      return fail(Code::kDataLoss, "'{}' has {} heads over a width of {}; its files do not belong together", name,
                  heads, c.width);
  }
  SYRINX_TRY_VOID(check_alignment_heads(c, name));
  for (const auto* ids : {&c.suppress_ids, &c.suppress_ids_begin, &c.language_ids}) {
    for (const int32_t id : *ids) {
      if (static_cast<size_t>(id) >= c.vocabulary)
        return fail(Code::kDataLoss, "'{}' speaks of token {}, but has {}; its files do not belong together", name, id,
                    c.vocabulary);
    }
  }
  return {};
}

}  // namespace syrinx::whisper
