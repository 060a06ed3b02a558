#include "models/pocket_tts/chunk_planner.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "text/unicode.h"

namespace syrinx::pocket {
namespace {

constexpr size_t kMostTokensPerCharacter = 4;  // its bytes, where no piece covers it

// Ranges of words, spaces left out; what is longer than `max_characters` is cut into several.
std::vector<text::Range> words_of(std::string_view text, size_t max_characters) {
  std::vector<text::Range> words;
  size_t begin = 0, characters = 0;
  const auto close = [&](size_t end) {
    if (end > begin) words.push_back({begin, end});
    characters = 0;
  };
  for (size_t at = 0; at < text.size();) {
    size_t after = at;
    const bool space = text::is_space(text::decode(text, after));
    if (space || characters == max_characters) {
      close(at);
      begin = space ? after : at;
    }
    if (!space) ++characters;
    at = after;
  }
  close(text.size());
  return words;
}

}  // namespace

ChunkPlanner::ChunkPlanner(std::shared_ptr<const Model> model, size_t max_tokens, size_t max_chunk_tokens)
    : model_(std::move(model)), max_tokens_(max_tokens), max_chunk_tokens_(0) {
  SYRINX_CHECK(max_tokens_ >= 1);
  set_max_chunk_tokens(max_chunk_tokens);
}

void ChunkPlanner::set_max_chunk_tokens(size_t max_chunk_tokens) {
  SYRINX_CHECK(max_chunk_tokens >= kMostTokensPerCharacter, "{}", max_chunk_tokens);
  max_chunk_tokens_ = max_chunk_tokens;
}

void ChunkPlanner::add(std::string_view sentence, size_t offset) {
  // Sentences of scripts without spaces follow each other at once.
  if (!pending_.empty() && offset != pending_end_) pending_ += ' ';
  pending_ += sentence;
  pending_end_ = offset + sentence.size();
}

Result<std::optional<Chunk>> ChunkPlanner::next(bool now) {
  while (ready_.empty() && !pending_.empty() && (now || pending_.size() >= kBlockBytes)) {
    const size_t before = pending_.size();
    SYRINX_TRY_VOID(split(now));
    if (pending_.size() >= before) break;  // one chunk, which may still grow
  }
  if (ready_.empty()) return std::optional<Chunk>();
  std::optional<Chunk> chunk = std::move(ready_.front());
  ready_.pop_front();
  return chunk;
}

Status ChunkPlanner::split(bool now) {
  const std::string text = std::exchange(pending_, {});
  Result<std::vector<Chunk>> chunks = split_text(text, max_tokens_, model_->config().text, model_->tokenizer(), !now);
  // The text is UTF-8, so this is one in which the configuration's replacements leave nothing.
  if (!chunks && chunks.error().code == Code::kInvalidArgument) {
    left_out_ += text::count_code_points(text);
    return {};
  }
  if (!chunks) return tl::unexpected(std::move(chunks).error());
  // A chunk that is full, a part that no mark divides, takes in nothing more.
  if (!now && chunks->back().ids.size() <= max_tokens_) {
    pending_ = chunks->size() > 1 ? chunks->back().text : text;
    chunks->pop_back();
  }
  for (Chunk& chunk : *chunks) SYRINX_TRY_VOID(take(std::move(chunk)));
  return {};
}

Status ChunkPlanner::take(Chunk chunk) {
  if (!can_be_spoken(chunk)) {
    left_out_ += text::count_code_points(chunk.text);
    return {};
  }
  if (chunk.ids.size() > max_chunk_tokens_) return take_in_parts(chunk.prepared);
  ready_.push_back(std::move(chunk));
  return {};
}

// Words are counted one by one, which is at most a token too many for each.
Status ChunkPlanner::take_in_parts(std::string_view text) {
  text::Range part;
  size_t tokens = 0;
  for (const text::Range word : words_of(text, max_chunk_tokens_ / kMostTokensPerCharacter)) {
    SYRINX_TRY(const std::vector<int32_t> ids, model_->tokenizer().encode(text.substr(word.begin, word.size())));
    if (tokens > 0 && tokens + ids.size() > max_tokens_) {
      SYRINX_TRY_VOID(take_part(text.substr(part.begin, part.size())));
      part.begin = word.begin;
      tokens = 0;
    }
    part.end = word.end;
    tokens += ids.size();
  }
  return take_part(text.substr(part.begin, part.size()));
}

Status ChunkPlanner::take_part(std::string_view text) {
  Result<PreparedText> prepared = prepare_text(text, model_->config().text);
  if (!prepared && prepared.error().code == Code::kInvalidArgument) {  // as in split()
    left_out_ += text::count_code_points(text);
    return {};
  }
  if (!prepared) return tl::unexpected(std::move(prepared).error());
  Chunk chunk;
  chunk.text = std::string(text);
  chunk.prepared = std::move(prepared->text);
  chunk.frames_guess = prepared->frames_guess;
  SYRINX_TRY(chunk.ids, model_->tokenizer().encode(chunk.prepared));
  if (!can_be_spoken(chunk)) {
    left_out_ += text::count_code_points(text);
    return {};
  }
  ready_.push_back(std::move(chunk));
  return {};
}

// Tokens that are no bytes must spell a letter or a digit.
bool ChunkPlanner::can_be_spoken(const Chunk& chunk) const {
  const text::UnigramTokenizer& tokenizer = model_->tokenizer();
  std::vector<int32_t> spelt;
  for (const int32_t id : chunk.ids)
    if (tokenizer.byte_of(id) < 0) spelt.push_back(id);
  const std::string text = tokenizer.decode(spelt);
  for (size_t at = 0; at < text.size();) {
    const char32_t c = text::decode(text, at);
    if (text::is_letter(c) || text::digit_value(c) >= 0) return true;
  }
  return false;
}

}  // namespace syrinx::pocket
