#include "models/transducer/config.h"

#include <algorithm>
#include <cstdlib>

namespace syrinx::transducer {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

AttentionContext WindowMenu::usual() const {
  std::vector<size_t> chunks = chunk;
  std::sort(chunks.begin(), chunks.end());
  const auto middle = static_cast<ptrdiff_t>(chunks[chunks.size() / 2]);
  const auto distance = [&](size_t frames) { return std::abs(static_cast<ptrdiff_t>(frames) - middle); };
  const size_t behind =
      *std::min_element(right.begin(), right.end(), [&](size_t a, size_t b) { return distance(a) < distance(b); });
  return {.left = static_cast<ptrdiff_t>(*std::max_element(left.begin(), left.end())),
          .right = static_cast<ptrdiff_t>(behind),
          .chunk = middle};
}

const PromptConfig::Language* PromptConfig::find(std::string_view name) const {
  for (const Language& language : languages)
    if (same(language.name, name)) return &language;
  for (const Language& language : languages)
    if (language.name.size() > name.size() && language.name[name.size()] == '-' &&
        same(std::string_view(language.name).substr(0, name.size()), name))
      return &language;
  return nullptr;
}

}  // namespace syrinx::transducer
