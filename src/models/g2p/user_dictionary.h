// The user's own words, one a line: a word, white space, then /phonemes/ or a respelling in ordinary words.
//   Syrinx  /sˈɪɹɪŋks/
//   GIF     jiff              # from here to the end is a comment
// A word written with a capital matches only so; one in lower case matches in any case.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "models/g2p/phoneme.h"

namespace syrinx::g2p {

class UserDictionary {
 public:
  static constexpr size_t kMaxBytes = size_t{1} << 22;
  static constexpr size_t kMaxWordBytes = 64;
  static constexpr size_t kMaxSayBytes = 256;

  struct Word {
    Phonemes phonemes;  // or
    std::string respelled;
  };

  UserDictionary() = default;
  static Result<UserDictionary> load(const std::string& path);
  // kInvalidArgument naming the line; kLimitExceeded above kMaxBytes.
  static Result<UserDictionary> parse(std::string_view text, std::string_view name);

  const Word* find(std::string_view word) const;
  bool empty() const { return words_.empty(); }
  size_t size() const { return words_.size(); }

 private:
  std::map<std::string, Word, std::less<>> words_;
};

}  // namespace syrinx::g2p
