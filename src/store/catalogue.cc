#include "store/catalogue.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "store/embedded_catalogue.h"

namespace syrinx {
namespace {

// Number of single-character changes between two short names.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

std::string_view family_of(const CatalogueEntry& entry) {
  return std::string_view(entry.name).substr(0, entry.name.find(':'));
}

Result<std::vector<CatalogueEntry>> load_entries(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) return fail(Code::kIo, "cannot read the catalogue '{}': {}", path.string(), error.message());
  if (size > kMaxCatalogueBytes) {
    return fail(Code::kLimitExceeded, "the catalogue '{}' has {} bytes; the limit is {}", path.string(), size,
                kMaxCatalogueBytes);
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return fail(Code::kIo, "cannot read the catalogue '{}'", path.string());
  return parse_catalogue(text.str(), path.filename().string());
}

}  // namespace

std::string CatalogueSource::label() const {
  if (kind == SourceKind::kHub) return url.substr(0, url.find('/', url.find('/', 5) + 1));  // hf://owner/repository
  if (kind == SourceKind::kUrl) {
    const size_t host = url.find("://") + 3;
    return url.substr(host, url.find('/', host) - host);
  }
  std::string label = kind == SourceKind::kPip ? "pip:" : "npm:";
  for (size_t i = 0; i < packages.size(); ++i) {
    if (i == 2 && packages.size() > 3) return label + fmt::format(" and {} more", packages.size() - i);
    label += fmt::format("{} {} {}", i == 0 ? "" : ",", packages[i].name, packages[i].version);
  }
  return label;
}

std::string CatalogueGroup::path_of(const CatalogueFile& file) const {
  return folder.empty() ? file.name : folder + "/" + file.name;
}

uint64_t CatalogueEntry::total_bytes() const {
  uint64_t bytes = 0;
  for (const auto& group : groups) {
    if (group.choice == CloningChoice::kWithoutCloning) continue;
    for (const auto& file : group.files) {
      const auto& pick = group.pick;
      if (pick.empty() || std::find(pick.begin(), pick.end(), file.name) != pick.end()) bytes += file.shown_bytes();
    }
  }
  return bytes;
}

bool is_alias(std::string_view name) {
  return !name.empty() && name.size() <= kMaxAliasBytes &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

bool is_model_name(std::string_view name) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const auto is_part = [&plain](std::string_view part, std::string_view also) {
    return !part.empty() && part.size() <= 64 && plain(part[0]) && std::all_of(part.begin(), part.end(), [&](char c) {
      return plain(c) || also.find(c) != std::string_view::npos;
    });
  };
  const size_t colon = name.find(':');
  if (colon == std::string_view::npos) return is_part(name, "-.");
  return is_part(name.substr(0, colon), "-.") && is_part(name.substr(colon + 1), "-._");
}

std::string model_folder_name(std::string_view name) {
  std::string folder(name);
  std::replace(folder.begin(), folder.end(), ':', '@');
  return folder;
}

std::string expand_name(std::string_view text, std::string_view name) {
  constexpr std::string_view kPlace = "{name}";
  std::string expanded;
  for (size_t at = 0; at < text.size();) {
    const size_t place = std::min(text.find(kPlace, at), text.size());
    expanded += text.substr(at, place - at);
    if (place < text.size()) expanded += name;
    at = place + kPlace.size();
  }
  return expanded;
}

Result<Catalogue> Catalogue::make(std::vector<CatalogueEntry> entries) {
  Catalogue catalogue;
  catalogue.entries_ = std::move(entries);
  std::sort(catalogue.entries_.begin(), catalogue.entries_.end(),
            [](const CatalogueEntry& a, const CatalogueEntry& b) { return a.name < b.name; });
  std::set<std::string> names;
  for (const auto& entry : catalogue.entries_) {
    if (!names.insert(entry.name).second) {
      return fail(Code::kInvalidArgument, "the catalogue has '{}' twice", entry.name);
    }
  }
  for (const auto& entry : catalogue.entries_) {
    for (const auto& need : entry.needs) {
      if (names.count(need) == 0) {
        return fail(Code::kInvalidArgument, "catalogue entry '{}' requires '{}', which is not in the catalogue",
                    entry.name, need);
      }
    }
  }
  SYRINX_TRY_VOID(catalogue.add_aliases());
  for (const auto& entry : catalogue.entries_) SYRINX_TRY_VOID(catalogue.closure(entry.name));
  return catalogue;
}

Status Catalogue::add_aliases() {
  std::set<std::string> names;
  for (const auto& entry : entries_) names.insert({lower_case(entry.name), lower_case(family_of(entry))});
  for (size_t i = 0; i < entries_.size(); ++i) {
    for (const auto& alias : entries_[i].also) {
      const std::string name = lower_case(alias.name);
      if (names.count(name) != 0) {
        return fail(Code::kInvalidArgument, "{}: 'also' holds '{}', which is the name of a model", alias.place,
                    alias.name);
      }
      const auto [there, is_new] = aliases_.emplace(name, i);
      if (!is_new) {
        return fail(Code::kInvalidArgument, "{}: 'also' holds '{}', which '{}' has already", alias.place, alias.name,
                    entries_[there->second].name);
      }
    }
  }
  return {};
}

Result<Catalogue> Catalogue::built_in() {
  std::vector<CatalogueEntry> entries;
  for (size_t i = 0; i < embedded_catalogue_count; ++i) {
    if (!std::string_view(embedded_catalogue[i].name).ends_with(".toml")) continue;
    SYRINX_TRY(auto family, parse_catalogue(embedded_catalogue[i].text, embedded_catalogue[i].name));
    std::move(family.begin(), family.end(), std::back_inserter(entries));
  }
  return make(std::move(entries));
}

Result<Catalogue> Catalogue::load(const std::string& path) {
  std::error_code error;
  std::vector<std::filesystem::path> paths;
  if (std::filesystem::is_directory(path, error)) {
    for (std::filesystem::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
      if (it->path().extension() == ".toml") paths.push_back(it->path());
    }
    if (error) return fail(Code::kIo, "cannot list the catalogue folder '{}': {}", path, error.message());
    if (paths.empty()) return fail(Code::kNotFound, "the catalogue folder '{}' has no .toml file", path);
  } else {
    if (!std::filesystem::exists(path, error)) return fail(Code::kNotFound, "there is no catalogue '{}'", path);
    paths.emplace_back(path);
  }
  std::vector<CatalogueEntry> entries;
  for (const auto& file : paths) {
    SYRINX_TRY(auto family, load_entries(file));
    std::move(family.begin(), family.end(), std::back_inserter(entries));
  }
  return make(std::move(entries));
}

Result<const CatalogueEntry*> Catalogue::find(std::string_view name) const {
  if (const CatalogueEntry* const known = find_alias(name); known != nullptr) return known;
  const CatalogueEntry* closest = nullptr;
  size_t best = 4;  // more than three changes is no longer a typing mistake
  std::string known;
  for (const auto& entry : entries_) {
    if (entry.name == name) return &entry;
    if (entry.is_default && family_of(entry) == name) return &entry;
    const size_t distance = name.size() > 64 ? best : edit_distance(entry.name, name);
    if (distance < best) best = distance, closest = &entry;
    known += (known.empty() ? "" : ", ") + entry.name;
  }
  const std::string_view shown = name.substr(0, 64);
  if (closest != nullptr) {
    return fail(Code::kNotFound, "there is no model '{}' in the catalogue; did you mean '{}'?", shown, closest->name);
  }
  return fail(Code::kNotFound, "there is no model '{}' in the catalogue; it has: {}", shown, known);
}

const CatalogueEntry* Catalogue::find_alias(std::string_view name) const {
  const auto found = name.size() > kMaxAliasBytes ? aliases_.end() : aliases_.find(lower_case(name));
  return found == aliases_.end() ? nullptr : &entries_[found->second];
}

Result<std::vector<const CatalogueEntry*>> Catalogue::closure(std::string_view name) const {
  // Depth first with a stack of our own: an entry is emitted once all it needs are.
  struct Visit {
    const CatalogueEntry* entry;
    size_t next = 0;
  };
  SYRINX_TRY(const CatalogueEntry* first, find(name));
  std::vector<const CatalogueEntry*> order;
  std::vector<Visit> stack;
  stack.push_back(Visit{first});
  while (!stack.empty()) {
    Visit& top = stack.back();
    if (top.next == top.entry->needs.size()) {
      order.push_back(top.entry);
      stack.pop_back();
      continue;
    }
    SYRINX_TRY(const CatalogueEntry* need, find(top.entry->needs[top.next++]));
    if (std::find(order.begin(), order.end(), need) != order.end()) continue;
    if (std::any_of(stack.begin(), stack.end(), [need](const Visit& visit) { return visit.entry == need; })) {
      return fail(Code::kInvalidArgument, "catalogue entry '{}' requires itself through '{}'", need->name,
                  stack.back().entry->name);
    }
    stack.push_back(Visit{need});
  }
  return order;
}

}  // namespace syrinx
