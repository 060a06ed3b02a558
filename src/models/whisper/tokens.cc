#include "models/whisper/tokens.h"

#include <algorithm>

namespace syrinx::whisper {
namespace {

constexpr int32_t kGpt2EndOfText = 50256;
// The tables of English models, of multilingual ones, and from large-v3 on.
constexpr size_t kPublishedTables[] = {51864, 51865, 51866};

// openai/whisper, tokenizer.py: signs that stand for no speech, alone or after a space, where they are one token;
// of the notes, which may take several, the first token.
constexpr std::string_view kSigns[] = {"\"",  "#",  "(",  ")",   "*",   "+",   "/",   ":",  ";",   "<",  "=",  ">",
                                       "@",   "[",  "\\", "]",   "^",   "_",   "`",   "{",  "|",   "}",  "~",  "「",
                                       "」",  "『", "』", "<<",  ">>",  "<<<", ">>>", "--", "---", "-(", "-[", "('",
                                       "(\"", "((", "))", "(((", ")))", "[[",  "]]",  "{{", "}}",  "♪♪", "♪♪♪"};
constexpr std::string_view kNotes[] = {"♩", "♪", "♫", "♬", "♭", "♮", "♯"};

class Finder {
 public:
  Finder(const text::ByteBpe& bpe, const std::string& name) : bpe_(bpe), name_(name) {}

  Result<int32_t> find(std::string_view token) const {
    const auto id = bpe_.find_special(token);
    if (!id) return fail(Code::kDataLoss, "'{}' is not a vocabulary of Whisper: it has no token '{}'", name_, token);
    return *id;
  }

 private:
  const text::ByteBpe& bpe_;
  const std::string& name_;
};

}  // namespace

const Language* Tokens::find_language(std::string_view code) const {
  const auto found = std::ranges::find(languages, code, &Language::code);
  return found == languages.end() ? nullptr : &*found;
}

std::vector<int32_t> Tokens::prompt(const Language* language, bool translated, bool timestamps) const {
  std::vector<int32_t> ids = {start_of_transcript};
  if (multilingual && language != nullptr) ids.push_back(language->token);
  if (multilingual) ids.push_back(translated ? translate : transcribe);
  if (!timestamps) ids.push_back(no_timestamps);
  return ids;
}

Result<Tokens> find_tokens(const text::ByteBpe& bpe, size_t vocabulary, const std::string& name) {
  const Finder finder(bpe, name);
  Tokens tokens;
  SYRINX_TRY(tokens.end_of_text, finder.find("<|endoftext|>"));
  SYRINX_TRY(tokens.start_of_transcript, finder.find("<|startoftranscript|>"));
  SYRINX_TRY(tokens.translate, finder.find("<|translate|>"));
  SYRINX_TRY(tokens.transcribe, finder.find("<|transcribe|>"));
  SYRINX_TRY(tokens.start_of_lm, finder.find("<|startoflm|>"));
  SYRINX_TRY(tokens.start_of_previous, finder.find("<|startofprev|>"));
  SYRINX_TRY(tokens.no_speech, finder.find(bpe.find_special("<|nospeech|>") ? "<|nospeech|>" : "<|nocaptions|>"));
  SYRINX_TRY(tokens.no_timestamps, finder.find("<|notimestamps|>"));
  tokens.first_time = tokens.no_timestamps + 1;
  tokens.multilingual = tokens.end_of_text != kGpt2EndOfText;
  const int32_t order[] = {tokens.end_of_text, tokens.start_of_transcript, tokens.translate, tokens.transcribe,
                           tokens.start_of_lm, tokens.start_of_previous,   tokens.no_speech, tokens.no_timestamps};
  if (!std::ranges::is_sorted(order)) return fail(Code::kDataLoss, "the special tokens of '{}' are out of order", name);
  if (static_cast<size_t>(tokens.first_time + kTimeTokens) > vocabulary)
    return fail(Code::kDataLoss, "the times of '{}' end with the token {}, the model's table has {} rows", name,
                tokens.first_time + kTimeTokens - 1, vocabulary);
  const auto count = static_cast<size_t>(tokens.first_time + kTimeTokens);
  if (count != vocabulary && std::ranges::find(kPublishedTables, vocabulary) != std::end(kPublishedTables))
    return fail(Code::kDataLoss,
                "'{}' makes {} tokens, the model's table has {} rows; take the file that belongs to it", name, count,
                vocabulary);
  if (bpe.size() > vocabulary)
    return fail(Code::kDataLoss, "'{}' has a token {}, the model's table has {} rows; take the file that belongs to it",
                name, bpe.size() - 1, vocabulary);
  for (int32_t id = tokens.start_of_transcript + 1; id < tokens.translate; ++id) {
    const std::string_view spelt = bpe.special_name(id);
    if (spelt.size() < 6 || spelt.size() > 16 || !spelt.starts_with("<|") || !spelt.ends_with("|>"))
      return fail(Code::kDataLoss, "token {} of '{}' is listed as a language and is not one", id, name);
    tokens.languages.push_back({std::string(spelt.substr(2, spelt.size() - 4)), id});
  }
  if (tokens.languages.empty()) return fail(Code::kDataLoss, "'{}' names no language", name);
  return tokens;
}

std::vector<int32_t> suppressed_tokens(const text::ByteBpe& bpe, const Tokens& tokens) {
  std::vector<int32_t> ids = {tokens.transcribe,        tokens.translate,   tokens.start_of_transcript,
                              tokens.start_of_previous, tokens.start_of_lm, tokens.no_speech};
  const auto add = [&](const std::string& spelt, bool whole) {
    const auto encoded = bpe.encode(spelt);
    if (encoded && !encoded->empty() && (!whole || encoded->size() == 1)) ids.push_back(encoded->front());
  };
  // Hyphens and quotes stand inside words, not at their beginning.
  add(" -", false);
  add(" '", false);
  for (const std::string_view sign : kSigns) {
    add(std::string(sign), true);
    add(" " + std::string(sign), true);
  }
  for (const std::string_view note : kNotes) {
    add(std::string(note), false);
    add(" " + std::string(note), false);
  }
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace syrinx::whisper
