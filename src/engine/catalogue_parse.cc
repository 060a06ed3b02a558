// The TOML of a catalogue entry.  toml++ is used in this file alone.
#define TOML_EXCEPTIONS 0
// Its own assertions fail on malformed keys that it goes on to report as errors; the catalogue is outside data.
#define TOML_ASSERT(condition) static_cast<void>(0)
#include <toml++/toml.h>

#include <algorithm>
#include <set>
#include <utility>

#include "engine/catalogue.h"

namespace syrinx {
namespace {

constexpr size_t kMaxGroups = 64;
constexpr size_t kMaxFilesPerGroup = 256;
constexpr size_t kMaxSources = 8;
constexpr size_t kMaxPackages = 32;
constexpr size_t kMaxNeeds = 16;
constexpr size_t kMaxTextBytes = 2048;

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool made_of(std::string_view text, std::string_view also) {
  return std::all_of(text.begin(), text.end(),
                     [also](char c) { return is_letter_or_digit(c) || also.find(c) != std::string_view::npos; });
}

// One part of a path: becomes a file's or a folder's name, so nothing hidden, no separator, none of our own suffixes.
bool is_path_part(std::string_view part) {
  return !part.empty() && part.size() <= 128 && part[0] != '.' && made_of(part, "._-+") && !part.ends_with(".part") &&
         !part.ends_with(".new");
}

bool is_folder(std::string_view folder) {
  if (folder.size() > 256) return false;
  for (size_t begin = 0; begin <= folder.size();) {
    const size_t end = std::min(folder.find('/', begin), folder.size());
    if (!is_path_part(folder.substr(begin, end - begin))) return false;
    begin = end + 1;
  }
  return true;
}

bool is_sha256(std::string_view text) {
  return text.size() == 64 &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// It is an argument of pip or npm, hence no leading dash; npm's scopes look like @owner/name.
bool is_package_name(std::string_view name) {
  if (name.empty() || name.size() > 128) return false;
  if (name[0] == '@') name.remove_prefix(1);
  return !name.empty() && is_letter_or_digit(name[0]) && made_of(name, "._-/") &&
         std::count(name.begin(), name.end(), '/') <= 1;
}

bool is_version(std::string_view version) {
  return !version.empty() && version.size() <= 64 && is_letter_or_digit(version[0]) && made_of(version, "._-+!");
}

bool is_url(std::string_view url) {
  const size_t host = url.starts_with("https://") ? 8 : url.starts_with("http://") ? 7 : 0;
  if (host == 0 || host == url.size() || !(is_letter_or_digit(url[host]) || url[host] == '[')) return false;
  return std::all_of(url.begin(), url.end(), [](char c) { return c > ' ' && c < 0x7f && c != '"' && c != '\\'; });
}

bool is_member(std::string_view member) {
  return !member.empty() && std::all_of(member.begin(), member.end(), [](char c) { return c >= ' ' && c != 0x7f; });
}

bool is_sentence(std::string_view text) {
  return !text.empty() && std::none_of(text.begin(), text.end(), [](char c) { return c >= 0 && c < ' '; });
}

// Reads values out of tables; every complaint carries the file's name and the position.
class Reader {
 public:
  explicit Reader(std::string_view source_name) : source_name_(source_name) {}

  template <class... Args>
  tl::unexpected<Error> complain(const toml::source_region& region, fmt::format_string<Args...> format,
                                 Args&&... args) const {
    return fail(Code::kInvalidArgument, "catalogue '{}', line {}, column {}: {}", source_name_, region.begin.line,
                region.begin.column, fmt::format(format, std::forward<Args>(args)...));
  }

  // A key that is not known is a mistake, not an extension: silence would hide a misspelt hash.
  Status only_keys(const toml::table& table, std::string_view what,
                   std::initializer_list<std::string_view> known) const {
    for (auto&& [key, value] : table) {
      if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
      std::string allowed;
      for (const auto name : known) allowed += (allowed.empty() ? "" : ", ") + std::string(name);
      return complain(key.source(), "unknown key '{}' in {}; it may have: {}", shorten(key.str()), what, allowed);
    }
    return {};
  }

  using Rule = bool (*)(std::string_view);
  Result<std::string> text(const toml::table& table, std::string_view key, Rule rule, std::string_view must_be) const {
    const toml::node* const node = table.get(key);
    if (node == nullptr) return complain(table.source(), "'{}' is missing; it must be {}", key, must_be);
    const auto* const value = node->as_string();
    if (value == nullptr || value->get().size() > kMaxTextBytes || !rule(value->get())) {
      return complain(node->source(), "'{}' must be {}", key, must_be);
    }
    return value->get();
  }

  Result<uint64_t> size(const toml::table& table) const {
    const toml::node* const node = table.get("size");
    if (node == nullptr) return complain(table.source(), "'size' is missing; it must be a number of bytes");
    const auto* const value = node->as_integer();
    if (value == nullptr || value->get() <= 0 || static_cast<uint64_t>(value->get()) > kMaxModelFileBytes) {
      return complain(node->source(), "'size' must be a number of bytes from 1 to {}", kMaxModelFileBytes);
    }
    return static_cast<uint64_t>(value->get());
  }

  // The tables of an array, 1 to `limit` of them.
  Result<std::vector<const toml::table*>> tables(const toml::table& table, std::string_view key, size_t limit) const {
    const toml::node* const node = table.get(key);
    if (node == nullptr) return complain(table.source(), "'{}' is missing; it must be 1 to {} tables", key, limit);
    const toml::array* const array = node->as_array();
    if (array == nullptr || array->empty() || array->size() > limit) {
      return complain(node->source(), "'{}' must be 1 to {} tables", key, limit);
    }
    std::vector<const toml::table*> found;
    for (const toml::node& element : *array) {
      if (!element.is_table()) return complain(element.source(), "'{}' must hold tables only", key);
      found.push_back(element.as_table());
    }
    return found;
  }

  static std::string shorten(std::string_view text) {
    std::string shown;
    for (const char c : text.substr(0, 64)) shown += c >= ' ' && c != 0x7f ? c : '?';
    return shown;
  }

 private:
  std::string source_name_;
};

constexpr std::string_view kHashRule = "64 lower-case hexadecimal digits";

Result<CatalogueFile> parse_file(const Reader& read, const toml::table& table) {
  SYRINX_TRY_VOID(read.only_keys(table, "a file", {"name", "size", "sha256"}));
  CatalogueFile file;
  SYRINX_TRY(file.name,
             read.text(table, "name", is_path_part,
                       "a plain file name: letters, digits, '.', '_', '-', '+', not hidden, not .part or .new"));
  SYRINX_TRY(file.size_bytes, read.size(table));
  SYRINX_TRY(file.sha256, read.text(table, "sha256", is_sha256, kHashRule));
  return file;
}

Result<CataloguePackage> parse_package(const Reader& read, const toml::table& table, bool several_files) {
  SYRINX_TRY_VOID(read.only_keys(table, "a package", {"name", "version", "size", "sha256", "member"}));
  CataloguePackage package;
  SYRINX_TRY(package.name, read.text(table, "name", is_package_name, "the name of a package"));
  SYRINX_TRY(package.version, read.text(table, "version", is_version, "one exact version"));
  SYRINX_TRY(package.size_bytes, read.size(table));
  SYRINX_TRY(package.sha256, read.text(table, "sha256", is_sha256, kHashRule));
  SYRINX_TRY(package.member, read.text(table, "member", is_member, "a path inside the package"));
  if (several_files && package.member.find("{name}") == std::string::npos) {
    return read.complain(table.source(), "'member' must contain {{name}}, since the group has several files");
  }
  return package;
}

Result<CatalogueSource> parse_source(const Reader& read, const toml::table& table, bool several_files) {
  const auto is_kind = [](std::string_view kind) { return kind == "url" || kind == "pip" || kind == "npm"; };
  SYRINX_TRY(const std::string kind, read.text(table, "kind", is_kind, "\"url\", \"pip\" or \"npm\""));
  CatalogueSource source;
  if (kind == "url") {
    SYRINX_TRY_VOID(read.only_keys(table, "a url source", {"kind", "url"}));
    SYRINX_TRY(source.url, read.text(table, "url", is_url, "an address that begins with https:// or http://"));
    if (several_files && source.url.find("{name}") == std::string::npos) {
      return read.complain(table.source(), "'url' must contain {{name}}, since the group has several files");
    }
    return source;
  }
  source.kind = kind == "pip" ? SourceKind::kPip : SourceKind::kNpm;
  SYRINX_TRY_VOID(read.only_keys(table, "a package source", {"kind", "packages"}));
  SYRINX_TRY(const auto packages, read.tables(table, "packages", kMaxPackages));
  for (const toml::table* const package_table : packages) {
    SYRINX_TRY(auto package, parse_package(read, *package_table, several_files));
    source.packages.push_back(std::move(package));
  }
  return source;
}

Result<CatalogueGroup> parse_group(const Reader& read, const toml::table& table, std::set<std::string>& paths) {
  SYRINX_TRY_VOID(read.only_keys(table, "a group", {"role", "folder", "optional", "files", "source"}));
  CatalogueGroup group;
  SYRINX_TRY(group.role, read.text(table, "role", is_model_name, "a lower-case word"));
  if (table.contains("folder")) {
    SYRINX_TRY(group.folder, read.text(table, "folder", is_folder, "a relative folder of plain names"));
  }
  if (const toml::node* const node = table.get("optional"); node != nullptr) {
    if (!node->is_boolean()) return read.complain(node->source(), "'optional' must be true or false");
    group.optional = node->as_boolean()->get();
  }
  SYRINX_TRY(const auto files, read.tables(table, "files", kMaxFilesPerGroup));
  for (const toml::table* const file_table : files) {
    SYRINX_TRY(auto file, parse_file(read, *file_table));
    if (!paths.insert(group.path_of(file)).second) {
      return read.complain(file_table->source(), "the file '{}' is listed twice", group.path_of(file));
    }
    group.files.push_back(std::move(file));
  }
  SYRINX_TRY(const auto sources, read.tables(table, "source", kMaxSources));
  for (const toml::table* const source_table : sources) {
    SYRINX_TRY(auto source, parse_source(read, *source_table, group.files.size() > 1));
    group.sources.push_back(std::move(source));
  }
  return group;
}

Result<std::vector<std::string>> parse_needs(const Reader& read, const toml::table& table, const std::string& name) {
  std::vector<std::string> needs;
  const toml::node* const node = table.get("requires");
  if (node == nullptr) return needs;
  const toml::array* const array = node->as_array();
  if (array == nullptr || array->size() > kMaxNeeds) {
    return read.complain(node->source(), "'requires' must be at most {} names", kMaxNeeds);
  }
  for (const toml::node& element : *array) {
    const auto* const need = element.as_string();
    if (need == nullptr || !is_model_name(need->get()) || need->get() == name ||
        std::find(needs.begin(), needs.end(), need->get()) != needs.end()) {
      return read.complain(element.source(), "'requires' must hold names of other models, each once");
    }
    needs.push_back(need->get());
  }
  return needs;
}

}  // namespace

Result<CatalogueEntry> parse_catalogue_entry(std::string_view text, std::string_view source_name) {
  const Reader read(source_name);
  if (text.size() > kMaxCatalogueBytes) {
    return fail(Code::kLimitExceeded, "catalogue '{}' has {} bytes; the limit is {}", source_name, text.size(),
                kMaxCatalogueBytes);
  }
  // toml++ 3.3.0 runs into undefined behaviour on some code points beyond ASCII (its test for white space).
  const auto foreign =
      std::find_if(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) > 0x7e; });
  if (foreign != text.end()) {
    return fail(Code::kInvalidArgument, "catalogue '{}', line {}: a byte that is not ASCII; write \\uXXXX instead",
                source_name, 1 + std::count(text.begin(), foreign, '\n'));
  }
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) return read.complain(parsed.error().source(), "{}", Reader::shorten(parsed.error().description()));
  const toml::table& table = parsed.table();
  SYRINX_TRY_VOID(
      read.only_keys(table, "a catalogue", {"name", "kind", "description", "licence", "requires", "group"}));
  CatalogueEntry entry;
  constexpr std::string_view kNameRule = "at most 64 lower-case letters, digits, '-' and '.'";
  SYRINX_TRY(entry.name, read.text(table, "name", is_model_name, kNameRule));
  SYRINX_TRY(entry.kind, read.text(table, "kind", is_model_name, kNameRule));
  SYRINX_TRY(entry.description, read.text(table, "description", is_sentence, "one line of text"));
  SYRINX_TRY(entry.licence, read.text(table, "licence", is_sentence, "one line of text"));
  SYRINX_TRY(entry.needs, parse_needs(read, table, entry.name));
  SYRINX_TRY(const auto groups, read.tables(table, "group", kMaxGroups));
  std::set<std::string> paths;
  for (const toml::table* const group_table : groups) {
    SYRINX_TRY(auto group, parse_group(read, *group_table, paths));
    entry.groups.push_back(std::move(group));
  }
  return entry;
}

}  // namespace syrinx
