#include "models/g2p/user_dictionary.h"

#include <algorithm>

#include "base/mapped_file.h"
#include "text/unicode.h"

namespace syrinx::g2p {
namespace {

std::string_view trim(std::string_view s) {
  constexpr std::string_view kBlank = " \t\r";
  const size_t begin = s.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return s.substr(begin, s.find_last_not_of(kBlank) - begin + 1);
}

}  // namespace

Result<UserDictionary> UserDictionary::load(const std::string& path) {
  SYRINX_TRY(const MappedFile file, MappedFile::open(path));
  return parse({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path);
}

Result<UserDictionary> UserDictionary::parse(std::string_view text, std::string_view name) {
  if (text.size() > kMaxBytes)
    return fail(Code::kLimitExceeded, "dictionary '{}' is larger than {} bytes", name, kMaxBytes);
  if (const auto wrong = text::find_invalid(text)) {
    return fail(Code::kInvalidArgument, "dictionary '{}' is not UTF-8 at byte {}; save it as UTF-8", name, *wrong);
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  UserDictionary dictionary;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const size_t gap = line.find_first_of(" \t");
    if (gap == std::string_view::npos) {
      return fail(Code::kInvalidArgument,
                  "dictionary '{}', line {}: '{}' has no pronunciation; write a word, a space, then "
                  "/phonemes/ or a respelling",
                  name, number, line.substr(0, kMaxWordBytes));
    }
    const std::string_view word = line.substr(0, gap);
    const std::string_view say = trim(line.substr(gap));
    if (word.size() > kMaxWordBytes || say.size() > kMaxSayBytes) {
      return fail(Code::kLimitExceeded, "dictionary '{}', line {}: a word has at most {} bytes, its pronunciation {}",
                  name, number, kMaxWordBytes, kMaxSayBytes);
    }
    Word entry;
    if (say.front() == '/') {
      if (say.size() < 3 || say.back() != '/') {
        return fail(Code::kInvalidArgument, "dictionary '{}', line {}: phonemes stand between two slashes", name,
                    number);
      }
      entry.phonemes = from_utf8(say.substr(1, say.size() - 2));
    } else {
      entry.respelled = say;
    }
    dictionary.words_.insert_or_assign(std::string(word), std::move(entry));
  }
  return dictionary;
}

const UserDictionary::Word* UserDictionary::find(std::string_view word) const {
  if (words_.empty() || word.size() > kMaxWordBytes) return nullptr;
  auto found = words_.find(word);
  if (found == words_.end()) found = words_.find(text::ascii_lower(word));
  return found == words_.end() ? nullptr : &found->second;
}

}  // namespace syrinx::g2p
