#include "text/tokens/sentencepiece_file.h"

#include <cmath>

#include "base/protobuf.h"
#include "text/unicode.h"

namespace syrinx::text {
namespace {

constexpr uint64_t kUnigram = 1, kBpe = 2;  // TrainerSpec.ModelType

class Reader {
 public:
  explicit Reader(const std::string& name) : name_(name) {
    model_.squeeze_spaces = true;  // the defaults of a file that does not say
    model_.unknown_surface = " \xE2\x81\x87 ";
  }

  Result<UnigramModel> read(std::span<const std::byte> bytes) {
    SYRINX_TRY_VOID(each(bytes, [&](const ProtoField& field) -> Status {
      if (!field.is_bytes()) return {};
      switch (field.number) {
        case 1: return piece(field.bytes);
        case 2: return trainer(field.bytes);
        case 3: return normalizer(field.bytes);
        case 5: return denormalizer(field.bytes);
        default: return {};
      }
    }));
    if (model_.pieces.empty()) return damaged("it has no pieces");
    return std::move(model_);
  }

 private:
  tl::unexpected<Error> damaged(std::string_view what) const {
    return fail(Code::kDataLoss, "'{}' is not a SentencePiece model, or is damaged or truncated: {}", name_, what);
  }
  tl::unexpected<Error> unsupported(std::string_view what) const {
    return fail(Code::kUnsupported, "'{}' {}; only unigram models with plain pieces can be used", name_, what);
  }

  template <class Handler>
  Status each(std::span<const std::byte> message, Handler&& handle) {
    return each_field(message, handle, [this] { return damaged("a field does not fit"); });
  }

  Status piece(std::span<const std::byte> bytes) {
    if (model_.pieces.size() >= UnigramTokenizer::kMaxPieces)
      return fail(Code::kLimitExceeded, "'{}' has more than {} pieces", name_, UnigramTokenizer::kMaxPieces);
    Piece piece;
    uint64_t type = 1;
    SYRINX_TRY_VOID(each(bytes, [&](const ProtoField& field) -> Status {
      if (field.number == 1 && field.is_bytes()) piece.text = field.text();
      if (field.number == 2 && field.wire == ProtoField::kFixed32) {
        float score = 0;
        std::memcpy(&score, field.bytes.data(), sizeof(score));
        piece.score = score;
      }
      if (field.number == 3 && field.is_varint()) type = field.varint;
      return {};
    }));
    switch (type) {
      case 1: piece.kind = Piece::kNormal; break;
      case 2: piece.kind = Piece::kUnknown; break;
      case 3: piece.kind = Piece::kControl; break;
      case 4: return unsupported(fmt::format("has user-defined pieces (piece {})", model_.pieces.size()));
      case 5: piece.kind = Piece::kUnused; break;
      case 6: piece.kind = Piece::kByte; break;
      default: return damaged(fmt::format("piece {} is of the unknown type {}", model_.pieces.size(), type));
    }
    piece.matched = piece.kind == Piece::kNormal;  // text that spells a control piece stays text
    model_.pieces.push_back(std::move(piece));
    return {};
  }

  Status trainer(std::span<const std::byte> bytes) {
    return each(bytes, [&](const ProtoField& field) -> Status {
      if (field.number == 3 && field.is_varint() && field.varint != kUnigram)
        return unsupported("is a model of another type (BPE, words or characters)");
      if (field.number == 24 && field.is_varint() && field.varint != 0)
        return unsupported("puts spaces after words, not before them");
      if (field.number == 35 && field.is_varint()) model_.byte_fallback = field.varint != 0;
      if (field.number == 44 && field.is_bytes()) model_.unknown_surface = field.text();
      return {};
    });
  }

  Status normalizer(std::span<const std::byte> bytes) {
    return each(bytes, [&](const ProtoField& field) -> Status {
      if (field.number == 2 && field.is_bytes()) {
        SYRINX_TRY(model_.map, CharacterMap::parse(field.text(), name_));
      }
      if (!field.is_varint()) return {};
      if (field.number == 3) model_.dummy_prefix = field.varint != 0;
      if (field.number == 4) model_.squeeze_spaces = field.varint != 0;
      if (field.number == 5) model_.escape_spaces = field.varint != 0;
      return {};
    });
  }

  Status denormalizer(std::span<const std::byte> bytes) {
    return each(bytes, [&](const ProtoField& field) -> Status {
      if (field.number == 2 && field.is_bytes() && !field.bytes.empty())
        return unsupported("has rules for decoded text");
      return {};
    });
  }

  const std::string& name_;
  UnigramModel model_;
};

// The fields that pieces need, whatever the rest says.
class PieceReader {
 public:
  explicit PieceReader(const std::string& name) : name_(name) {}

  Result<StoredPieces> read(std::span<const std::byte> bytes) {
    SYRINX_TRY_VOID(each(bytes, [&](const ProtoField& field) -> Status {
      if (field.number == 1 && field.is_bytes()) return piece(field.bytes);
      return field.number == 2 && field.is_bytes() ? trainer(field.bytes) : Status();
    }));
    if (out_.pieces.empty()) return damaged("it has no pieces");
    return std::move(out_);
  }

 private:
  tl::unexpected<Error> damaged(std::string_view what) const {
    return fail(Code::kDataLoss, "'{}' is not a SentencePiece model, or is damaged or truncated: {}", name_, what);
  }
  template <class Handler>
  Status each(std::span<const std::byte> message, Handler&& handle) {
    return each_field(message, handle, [this] { return damaged("a field does not fit"); });
  }

  Status piece(std::span<const std::byte> bytes) {
    if (out_.pieces.size() >= UnigramTokenizer::kMaxPieces)
      return fail(Code::kLimitExceeded, "'{}' has more than {} pieces", name_, UnigramTokenizer::kMaxPieces);
    StoredPiece piece;
    uint64_t type = StoredPiece::kNormal;
    SYRINX_TRY_VOID(each(bytes, [&](const ProtoField& field) -> Status {
      if (field.number == 1 && field.is_bytes()) piece.text = field.text();
      if (field.number == 2 && field.wire == ProtoField::kFixed32)
        std::memcpy(&piece.score, field.bytes.data(), sizeof(piece.score));
      if (field.number == 3 && field.is_varint()) type = field.varint;
      return {};
    }));
    const size_t id = out_.pieces.size();
    if (piece.text.empty() || find_invalid(piece.text))
      return damaged(fmt::format("piece {} is empty or not UTF-8", id));
    if (piece.text.size() > kMaxStoredPieceBytes)
      return fail(Code::kLimitExceeded, "'{}': piece {} has {} bytes, the limit is {}", name_, id, piece.text.size(),
                  kMaxStoredPieceBytes);
    if (!std::isfinite(piece.score)) return damaged(fmt::format("the score of piece {} is not a finite number", id));
    if (type < StoredPiece::kNormal || type > StoredPiece::kByte)
      return damaged(fmt::format("piece {} is of the unknown type {}", id, type));
    piece.type = static_cast<StoredPiece::Type>(type);
    out_.pieces.push_back(std::move(piece));
    return {};
  }

  Status trainer(std::span<const std::byte> bytes) {
    return each(bytes, [&](const ProtoField& field) -> Status {
      if (field.number != 3 || !field.is_varint()) return {};
      if (field.varint != kUnigram && field.varint != kBpe)
        return fail(Code::kUnsupported, "'{}' is a SentencePiece model of words or characters; only pieces are read",
                    name_);
      out_.bpe = field.varint == kBpe;
      return {};
    });
  }

  const std::string& name_;
  StoredPieces out_;
};

Status check_size(std::span<const std::byte> bytes, const std::string& name) {
  if (bytes.size() <= kMaxTokenizerFileBytes) return {};
  return fail(Code::kLimitExceeded, "'{}' has {} bytes, the limit for a tokenizer is {}", name, bytes.size(),
              kMaxTokenizerFileBytes);
}

}  // namespace

Result<UnigramTokenizer> read_sentencepiece(std::span<const std::byte> bytes, const std::string& name) {
  SYRINX_TRY_VOID(check_size(bytes, name));
  SYRINX_TRY(UnigramModel model, Reader(name).read(bytes));
  return UnigramTokenizer::make(std::move(model), name);
}

Result<StoredPieces> read_sentencepiece_pieces(std::span<const std::byte> bytes, const std::string& name) {
  SYRINX_TRY_VOID(check_size(bytes, name));
  return PieceReader(name).read(bytes);
}

}  // namespace syrinx::text
