#include "store/foreign_names.h"

#include <map>
#include <vector>

#include "store/embedded_catalogue.h"

namespace syrinx {
namespace {

using NamesByUse = std::map<std::string_view, std::vector<std::string_view>>;

NamesByUse read_names(std::string_view text) {
  NamesByUse names;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const size_t blank = line.find(' ');
    if (line.starts_with('#') || blank == std::string_view::npos) continue;
    names[line.substr(0, blank)].push_back(line.substr(blank + 1));
  }
  return names;
}

NamesByUse embedded_names() {
  for (size_t i = 0; i < embedded_catalogue_count; ++i)
    if (embedded_catalogue[i].name == std::string_view("foreign_names.txt"))
      return read_names(embedded_catalogue[i].text);
  return {};
}

}  // namespace

std::span<const std::string_view> foreign_names(std::string_view use) {
  static const NamesByUse names = embedded_names();
  const auto found = names.find(use);
  return found != names.end() ? std::span<const std::string_view>(found->second) : std::span<const std::string_view>();
}

}  // namespace syrinx
