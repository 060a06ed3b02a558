#include "text/tokens/tokenizer_json.h"

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "base/json.h"

namespace syrinx::text {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

bool is_text(const Json* value, std::string_view wanted) {
  return value != nullptr && value->string() != nullptr && *value->string() == wanted;
}
bool is_whole(const Json* value, int64_t wanted) {
  return value != nullptr && value->whole() != nullptr && *value->whole() == wanted;
}
bool is_step(const Json& step, std::string_view type) { return is_text(step.find("type"), type); }

// {"type": "Replace", "pattern": {"String": FROM}, "content": TO}
bool replaces(const Json& step, std::string_view from, std::string_view to) {
  const Json* const pattern = step.find("pattern");
  return is_step(step, "Replace") && pattern != nullptr && is_text(pattern->find("String"), from) &&
         is_text(step.find("content"), to);
}

// The steps of a normaliser or decoder: of a sequence, the one that is none, or none.
std::vector<const Json*> steps(const Json* value, const char* list) {
  std::vector<const Json*> found;
  if (value == nullptr || value->is_null()) return found;
  const Json* const inner = is_step(*value, "Sequence") ? value->find(list) : nullptr;
  if (inner == nullptr || inner->array() == nullptr) return {value};
  for (const Json& step : *inner->array()) found.push_back(&step);
  return found;
}

// RFC 4648, section 4, with its padding; nothing for anything else.
std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string out;
  uint32_t bits = 0;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool padded = i + padding >= text.size();
    const int digit = padded                 ? 0
                      : c >= 'A' && c <= 'Z' ? c - 'A'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 26
                      : c >= '0' && c <= '9' ? c - '0' + 52
                      : c == '+'             ? 62
                      : c == '/'             ? 63
                                             : -1;
    if (digit < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if (i % 4 == 3)
      for (const int shift : {16, 8, 0}) out += static_cast<char>(bits >> shift & 0xFF);
  }
  out.resize(out.size() - padding);
  return out;
}

class Reader {
 public:
  explicit Reader(const std::string& name) : name_(name) { model_.form = TokenizerForm::kJson; }

  Result<UnigramModel> read(const Json& file) {
    for (const char* const part : {"truncation", "padding", "pre_tokenizer", "post_processor"}) {
      const Json* const value = file.find(part);
      if (value != nullptr && !value->is_null()) return unsupported(part);
    }
    const Json* const model = file.find("model");
    if (model == nullptr) return damaged("it has no model");
    if (!is_step(*model, "Unigram"))
      return fail(Code::kUnsupported, "'{}' holds a model that is not of the type Unigram, which alone can be used",
                  name_);
    const Json* const fallback = model->find("byte_fallback");
    model_.byte_fallback = fallback != nullptr && fallback->boolean() != nullptr && *fallback->boolean();
    SYRINX_TRY_VOID(normalizer(file.find("normalizer")));
    SYRINX_TRY_VOID(decoder(file.find("decoder")));
    SYRINX_TRY_VOID(vocabulary(model->find("vocab")));
    SYRINX_TRY_VOID(unknown(model->find("unk_id")));
    SYRINX_TRY_VOID(added_tokens(file.find("added_tokens")));
    return std::move(model_);
  }

 private:
  tl::unexpected<Error> damaged(std::string_view what) const {
    return fail(Code::kDataLoss, "'{}' is not a readable tokenizer.json: {}", name_, what);
  }
  tl::unexpected<Error> unsupported(std::string_view part) const {
    return fail(Code::kUnsupported,
                "'{}' asks for something in its {} that we have not; use the tokenizer.model of the same vocabulary",
                name_, part);
  }

  Status normalizer(const Json* value) {
    model_.dummy_prefix = false;
    model_.escape_spaces = false;
    for (const Json* const step : steps(value, "normalizers")) {
      if (is_step(*step, "Precompiled") && !model_.dummy_prefix && !model_.escape_spaces && model_.map.empty())
        SYRINX_TRY_VOID(character_map(step->find("precompiled_charsmap")));
      else if (is_step(*step, "Prepend") && is_text(step->find("prepend"), kSpaceMark) && !model_.dummy_prefix)
        model_.dummy_prefix = true;
      else if (replaces(*step, " ", kSpaceMark))
        model_.escape_spaces = true;
      else
        return unsupported("normalizer");
    }
    // A mark before spaces that are none to the pieces: nobody publishes that.
    return model_.dummy_prefix && !model_.escape_spaces ? Status(unsupported("normalizer")) : Status{};
  }

  // Bytes in base 64; null or none: a map that changes nothing.
  Status character_map(const Json* value) {
    if (value == nullptr || value->is_null()) return {};
    const std::optional<std::string> bytes =
        value->string() != nullptr ? decode_base64(*value->string()) : std::nullopt;
    if (!bytes) return damaged("its character map is not in base 64");
    SYRINX_TRY(model_.map, CharacterMap::parse(*bytes, name_));
    return {};
  }

  // It must undo what the normaliser does.
  Status decoder(const Json* value) {
    const std::vector<const Json*> found = steps(value, "decoders");
    size_t next = 0;
    if (model_.escape_spaces && !(next < found.size() && replaces(*found[next++], kSpaceMark, " ")))
      return unsupported("decoder");
    if (model_.byte_fallback && !(next < found.size() && is_step(*found[next++], "ByteFallback")))
      return unsupported("decoder");
    if (!(next < found.size() && is_step(*found[next++], "Fuse"))) return unsupported("decoder");
    if (model_.dummy_prefix) {
      if (next >= found.size()) return unsupported("decoder");
      const Json& strip = *found[next++];
      if (!is_step(strip, "Strip") || !is_text(strip.find("content"), " ") || !is_whole(strip.find("start"), 1) ||
          !is_whole(strip.find("stop"), 0))
        return unsupported("decoder");
    }
    return next == found.size() ? Status{} : Status(unsupported("decoder"));
  }

  Status vocabulary(const Json* value) {
    if (value == nullptr || value->array() == nullptr) return damaged("it has no vocabulary");
    if (value->array()->size() > UnigramTokenizer::kMaxPieces)
      return fail(Code::kLimitExceeded, "'{}' has {} pieces, the limit is {}", name_, value->array()->size(),
                  UnigramTokenizer::kMaxPieces);
    for (const Json& entry : *value->array()) {
      const Json::Array* const pair = entry.array();
      const bool is_pair = pair != nullptr && pair->size() == 2 && (*pair)[0].string() != nullptr;
      if (!is_pair || ((*pair)[1].whole() == nullptr && (*pair)[1].real() == nullptr))
        return damaged(fmt::format("piece {} is not a pair of text and score", model_.pieces.size()));
      Piece piece;
      piece.text = *(*pair)[0].string();
      piece.score = (*pair)[1].real() != nullptr ? *(*pair)[1].real() : static_cast<double>(*(*pair)[1].whole());
      if (model_.byte_fallback && spelt_byte(piece.text) >= 0) piece.kind = Piece::kByte;
      model_.pieces.push_back(std::move(piece));
    }
    return {};
  }

  Status unknown(const Json* value) {
    const int64_t* const id = value == nullptr ? nullptr : value->whole();
    if (id == nullptr || *id < 0 || static_cast<uint64_t>(*id) >= model_.pieces.size())
      return damaged("unk_id names no piece");
    Piece& piece = model_.pieces[static_cast<size_t>(*id)];
    if (piece.kind == Piece::kByte) return damaged("unk_id names the piece of a byte");
    piece.kind = Piece::kUnknown;
    model_.unknown_surface = piece.text;
    return {};
  }

  Status added_tokens(const Json* value) {
    if (value == nullptr || value->is_null()) return {};
    if (value->array() == nullptr) return damaged("added_tokens is not a list");
    for (const Json& token : *value->array()) {
      const Json* const id = token.find("id");
      const Json* const content = token.find("content");
      if (id == nullptr || id->whole() == nullptr || content == nullptr || content->string() == nullptr)
        return damaged("an added token has no id or no content");
      if (*id->whole() < 0 || static_cast<uint64_t>(*id->whole()) >= model_.pieces.size())
        return unsupported("added_tokens");
      Piece& piece = model_.pieces[static_cast<size_t>(*id->whole())];
      if (piece.text != *content->string()) return damaged("an added token differs from the piece of its id");
      const Json* const special = token.find("special");
      if (special == nullptr || special->boolean() == nullptr || !*special->boolean()) continue;
      piece.matched = false;
      if (piece.kind == Piece::kUnknown)
        model_.unknown_surface.clear();
      else
        piece.kind = Piece::kControl;
    }
    return {};
  }

  const std::string& name_;
  UnigramModel model_;
};

}  // namespace

Result<UnigramTokenizer> read_tokenizer_json(std::string_view json, const std::string& name) {
  SYRINX_TRY(const Json file, parse_json(json, name, {.max_bytes = kMaxTokenizerFileBytes}));
  SYRINX_TRY(UnigramModel model, Reader(name).read(file));
  return UnigramTokenizer::make(std::move(model), name);
}

}  // namespace syrinx::text
