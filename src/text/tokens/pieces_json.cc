#include "text/tokens/pieces_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/json.h"

namespace syrinx::text {
namespace {

const std::string* text_of(const Json* value) { return value == nullptr ? nullptr : value->string(); }
bool is_true(const Json* value) { return value != nullptr && value->boolean() != nullptr && *value->boolean(); }

// Whether a pre-tokenizer or decoder is of the kind, or a sequence of which one is; sequences in sequences too, as deep
// as JSON is read.
bool has_kind(const Json* stage, std::string_view kind) {
  if (stage == nullptr) return false;
  if (const std::string* const type = text_of(stage->find("type")); type != nullptr && *type == kind) return true;
  for (const char* const list : {"pretokenizers", "decoders"}) {
    const Json* const found = stage->find(list);
    if (found == nullptr || found->array() == nullptr) continue;
    for (const Json& one : *found->array())
      if (has_kind(&one, kind)) return true;
  }
  return false;
}

class Reader {
 public:
  explicit Reader(const std::string& name) : name_(name) {}

  Result<StoredPieces> read(const Json& file) {
    const Json* const model = file.find("model");
    const std::string* const type = model == nullptr ? nullptr : text_of(model->find("type"));
    if (type == nullptr) return damaged("it has no model");
    if (*type != "BPE" && *type != "Unigram")
      return fail(Code::kUnsupported, "'{}' holds a model that is neither of the type BPE nor Unigram", name_);
    if (has_kind(file.find("pre_tokenizer"), "ByteLevel") || has_kind(file.find("decoder"), "ByteLevel"))
      return fail(Code::kUnsupported, "'{}' spells bytes, not pieces of SentencePiece", name_);
    out_.bpe = *type == "BPE";
    SYRINX_TRY_VOID(out_.bpe ? read_map(model->find("vocab")) : read_list(model->find("vocab")));
    if (is_true(model->find("byte_fallback")))
      for (StoredPiece& piece : out_.pieces)
        if (spelt_byte(piece.text) >= 0) piece.type = StoredPiece::kByte;
    if (out_.bpe) SYRINX_TRY_VOID(read_merges(model->find("merges")));
    SYRINX_TRY_VOID(read_added(file.find("added_tokens")));
    mark_unknown(*model);
    for (size_t id = 0; id < placed_.size(); ++id) {
      if (!placed_[id]) return damaged(fmt::format("no piece has the id {}", id));
      if (out_.pieces[id].text.size() > kMaxStoredPieceBytes)
        return fail(Code::kLimitExceeded, "'{}': piece {} has {} bytes, the limit is {}", name_, id,
                    out_.pieces[id].text.size(), kMaxStoredPieceBytes);
    }
    return std::move(out_);
  }

 private:
  tl::unexpected<Error> damaged(std::string_view what) const {
    return fail(Code::kDataLoss, "'{}' is not a readable tokenizer.json: {}", name_, what);
  }

  Result<StoredPiece*> place(const Json* id) {
    const int64_t* const whole = id == nullptr ? nullptr : id->whole();
    if (whole == nullptr || *whole < 0) return damaged("a piece has no id");
    if (static_cast<uint64_t>(*whole) >= UnigramTokenizer::kMaxPieces)
      return fail(Code::kLimitExceeded, "'{}' has a piece of the id {}; the limit is {}", name_, *whole,
                  UnigramTokenizer::kMaxPieces - 1);
    const auto index = static_cast<size_t>(*whole);
    if (index >= out_.pieces.size()) {
      out_.pieces.resize(index + 1);
      placed_.resize(index + 1);
    }
    placed_[index] = true;
    return &out_.pieces[index];
  }

  // {TEXT: ID, ...}
  Status read_map(const Json* value) {
    if (value == nullptr || value->object() == nullptr) return damaged("it has no vocabulary");
    for (const JsonMember& member : *value->object()) {
      SYRINX_TRY(StoredPiece* const piece, place(&member.value));
      piece->text = member.key;
    }
    const auto ids = std::count(placed_.begin(), placed_.end(), true);
    if (static_cast<size_t>(ids) != value->object()->size()) return damaged("two pieces have one id");
    return {};
  }

  // [[TEXT, SCORE], ...]
  Status read_list(const Json* value) {
    if (value == nullptr || value->array() == nullptr) return damaged("it has no vocabulary");
    for (const Json& entry : *value->array()) {
      const Json::Array* const pair = entry.array();
      const bool is_pair = pair != nullptr && pair->size() == 2 && (*pair)[0].string() != nullptr;
      if (!is_pair || ((*pair)[1].whole() == nullptr && (*pair)[1].real() == nullptr))
        return damaged(fmt::format("piece {} is not a pair of text and score", out_.pieces.size()));
      const double* const real = (*pair)[1].real();
      const double score = real != nullptr ? *real : static_cast<double>(*(*pair)[1].whole());
      if (!(std::abs(score) <= static_cast<double>(std::numeric_limits<float>::max())))
        return damaged(fmt::format("the score of piece {} is not a finite number", out_.pieces.size()));
      const Json id(out_.pieces.size());
      SYRINX_TRY(StoredPiece* const piece, place(&id));
      piece->text = *(*pair)[0].string();
      piece->score = static_cast<float>(score);
    }
    return {};
  }

  // ["A B", ...], or [["A", "B"], ...]
  Status read_merges(const Json* value) {
    if (value == nullptr || value->array() == nullptr) return damaged("it has no merges");
    std::unordered_map<std::string_view, size_t> ids;
    for (size_t id = 0; id < out_.pieces.size(); ++id) ids.emplace(out_.pieces[id].text, id);
    std::vector<bool> ranked(out_.pieces.size());
    for (size_t rank = 0; rank < value->array()->size(); ++rank) {
      const std::optional<std::string> joint = joined((*value->array())[rank]);
      if (!joint) return damaged(fmt::format("merge {} is not a pair of texts", rank));
      const auto found = ids.find(*joint);
      if (found == ids.end()) return damaged(fmt::format("merge {} makes no piece", rank));
      if (ranked[found->second]) continue;
      ranked[found->second] = true;
      out_.pieces[found->second].score = -static_cast<float>(rank);
    }
    return {};
  }

  static std::optional<std::string> joined(const Json& merge) {
    if (const std::string* const text = merge.string(); text != nullptr) {
      const size_t blank = text->find(' ');
      if (blank == std::string::npos) return std::nullopt;
      return text->substr(0, blank) + text->substr(blank + 1);
    }
    const Json::Array* const pair = merge.array();
    if (pair == nullptr || pair->size() != 2 || (*pair)[0].string() == nullptr || (*pair)[1].string() == nullptr)
      return std::nullopt;
    return *(*pair)[0].string() + *(*pair)[1].string();
  }

  Status read_added(const Json* value) {
    if (value == nullptr || value->is_null()) return {};
    if (value->array() == nullptr) return damaged("added_tokens is not a list");
    for (const Json& token : *value->array()) {
      const std::string* const content = text_of(token.find("content"));
      if (content == nullptr) return damaged("an added token has no content");
      SYRINX_TRY(StoredPiece* const piece, place(token.find("id")));
      piece->text = *content;
      piece->type = is_true(token.find("special")) ? StoredPiece::kControl : StoredPiece::kUserDefined;
    }
    return {};
  }

  // By its text in BPE models, by its id in unigram ones.
  void mark_unknown(const Json& model) {
    const std::string* const text = text_of(model.find("unk_token"));
    const Json* const id = model.find("unk_id");
    for (size_t i = 0; i < out_.pieces.size(); ++i) {
      const bool named = text != nullptr && out_.pieces[i].text == *text;
      const bool counted = id != nullptr && id->whole() != nullptr && *id->whole() == static_cast<int64_t>(i);
      if (named || counted) out_.pieces[i].type = StoredPiece::kUnknown;
    }
  }

  const std::string& name_;
  StoredPieces out_;
  std::vector<bool> placed_;
};

}  // namespace

Result<StoredPieces> read_pieces_json(std::string_view json, const std::string& name) {
  SYRINX_TRY(const Json file, parse_json(json, name, {.max_bytes = kMaxTokenizerFileBytes}));
  return Reader(name).read(file);
}

}  // namespace syrinx::text
