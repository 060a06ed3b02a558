// The TOML of a catalogue entry.  toml++ is used in this file alone.
#define TOML_EXCEPTIONS 0
// Its own assertions fail on malformed keys that it goes on to report as errors; the catalogue is outside data.
#define TOML_ASSERT(condition) static_cast<void>(0)
#include <toml++/toml.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/sha256.h"
#include "store/catalogue.h"
#include "store/catalogue_values.h"
#include "store/checkpoint_reference.h"
#include "store/http_headers.h"

namespace syrinx {
namespace {

constexpr size_t kMaxGroups = 64;
constexpr size_t kMaxFilesPerGroup = 256;
constexpr size_t kMaxSources = 8;
constexpr size_t kMaxPackages = 32;
constexpr size_t kMaxNeeds = 16;
constexpr size_t kMaxTextBytes = 2048;
constexpr size_t kMaxVariants = 128;
constexpr size_t kMaxValues = 256;
// Bytes of all texts of a family's entries together, each with a constant for its other costs.
constexpr size_t kMaxFamilyBytes = 16 << 20;
constexpr size_t kBytesBesides = 64;

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

// A file at a whole commit, so that its content is settled.  "{name}" may be a part of the path.
bool is_hub_file(std::string_view reference) {
  const auto parsed = parse_reference(expand_name(reference, "name"));
  return parsed && parsed->kind == CheckpointReference::Kind::kHub && is_commit(parsed->revision);
}

bool is_number(std::string_view text) {
  const auto number = header_number(text);
  return number && *number <= kMaxModelFileBytes;
}

bool is_any_text(std::string_view) { return true; }

bool is_member(std::string_view member) {
  return !member.empty() && std::all_of(member.begin(), member.end(), [](char c) { return c >= ' ' && c != 0x7f; });
}

bool is_sentence(std::string_view text) {
  return !text.empty() && std::none_of(text.begin(), text.end(), [](char c) { return c >= 0 && c < ' '; });
}

// Reads values out of tables; every complaint carries the file's name and the position.
class Reader {
 public:
  // `values` of a family's row; none of a file without families, whose braces are left alone.  What is read is taken
  // off `room`, which all rows share.
  Reader(std::string_view source_name, CatalogueValues values, size_t* room = nullptr)
      : source_name_(source_name), values_(std::move(values)), room_(room) {}

  template <class... Args>
  tl::unexpected<Error> complain(const toml::source_region& region, fmt::format_string<Args...> format,
                                 Args&&... args) const {
    return fail(Code::kInvalidArgument, "{}: {}", place(region), fmt::format(format, std::forward<Args>(args)...));
  }
  std::string place(const toml::source_region& region) const {
    return fmt::format("catalogue '{}', line {}, column {}", source_name_, region.begin.line, region.begin.column);
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
    return text_of(*node, key, rule, must_be);
  }
  Result<std::string> text_of(const toml::node& node, std::string_view key, Rule rule, std::string_view must_be,
                              size_t limit = kMaxTextBytes) const {
    const auto* const value = node.as_string();
    if (value == nullptr) return complain(node.source(), "'{}' must be {}", key, must_be);
    std::string expanded = value->get();
    size_t substitutions = 0;
    if (!values_.empty()) {
      auto result = values_.expand(expanded, substitutions);
      if (!result) return complain(node.source(), "'{}': {}", key, result.error().message);
      expanded = std::move(*result);
    }
    if (expanded.size() > limit || !rule(expanded)) return complain(node.source(), "'{}' must be {}", key, must_be);
    if (room_ != nullptr) {
      const size_t taken = expanded.size() + kBytesBesides * (1 + substitutions);
      if (taken > *room_)
        return complain(node.source(),
                        "'{}': the texts of all variants, and {} bytes for each text and value in them, together are "
                        "longer than {} bytes",
                        key, kBytesBesides, kMaxFamilyBytes);
      *room_ -= taken;
    }
    return expanded;
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
  CatalogueValues values_;
  size_t* room_;
};

constexpr std::string_view kHashRule = "64 lower-case hexadecimal digits";

// Size and hash stand in the catalogue, except of files that the hub vouches for or that we write.
Result<CatalogueFile> parse_file(const Reader& read, const toml::table& table) {
  SYRINX_TRY_VOID(read.only_keys(table, "a file", {"name", "size", "sha256", "about", "text"}));
  CatalogueFile file;
  SYRINX_TRY(file.name,
             read.text(table, "name", is_path_part,
                       "a plain file name: letters, digits, '.', '_', '-', '+', not hidden, not .part or .new"));
  if (const toml::node* const text = table.get("text"); text != nullptr) {
    SYRINX_TRY(file.text, read.text_of(*text, "text", is_any_text, "a text", kMaxExpandedBytes));
    file.size_bytes = file.text->size();
    file.sha256 = sha256_hex(std::as_bytes(std::span(*file.text)));
    return file;
  }
  if (table.contains("about")) {
    SYRINX_TRY(const std::string about, read.text(table, "about", is_number, "a number of bytes, in quotes"));
    file.about_bytes = *header_number(about);
  }
  if (!table.contains("size") && !table.contains("sha256")) return file;
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
  const auto is_kind = [](std::string_view kind) {
    return kind == "url" || kind == "hub" || kind == "pip" || kind == "npm";
  };
  SYRINX_TRY(const std::string kind, read.text(table, "kind", is_kind, "\"url\", \"hub\", \"pip\" or \"npm\""));
  CatalogueSource source;
  if (kind == "hub") {
    source.kind = SourceKind::kHub;
    SYRINX_TRY_VOID(read.only_keys(table, "a hub source", {"kind", "reference"}));
    SYRINX_TRY(source.url,
               read.text(table, "reference", is_hub_file, "hf://owner/repository/path@ and the 40 digits of a commit"));
    if (several_files && source.url.find("{name}") == std::string::npos) {
      return read.complain(table.source(), "'reference' must contain {{name}}, since the group has several files");
    }
    return source;
  }
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

// Checks that a group's sources and files fit each other.
Status check_group(const Reader& read, const toml::table& table, const CatalogueGroup& group) {
  const auto& sources = group.sources;
  const bool hub = std::any_of(sources.begin(), sources.end(),
                               [](const CatalogueSource& source) { return source.kind == SourceKind::kHub; });
  if (hub && sources.size() > 1) return read.complain(table.source(), "a hub must be the only source of its group");
  for (const auto& file : group.files) {
    if (file.text && !sources.empty())
      return read.complain(table.source(), "the group of '{}', which is written here, can have no source", file.name);
    if (!file.text && sources.empty())
      return read.complain(table.source(), "'source' is missing; '{}' must come from somewhere", file.name);
    if (hub != file.sha256.empty() && !file.text)
      return read.complain(table.source(), "'{}' {}", file.name,
                           hub ? "has size and hash of its own; they are the hub's to tell"
                               : "needs 'size' and 'sha256'; only a hub tells them itself");
  }
  for (const auto& name : group.pick) {
    const bool known = std::any_of(group.files.begin(), group.files.end(),
                                   [&name](const CatalogueFile& file) { return file.name == name; });
    if (!known) return read.complain(table.source(), "'pick' names '{}', which is not a file of the group", name);
  }
  return {};
}

Result<CloningChoice> parse_choice(const Reader& read, const toml::table& table) {
  if (!table.contains("choice")) return CloningChoice::kBoth;
  const auto is_choice = [](std::string_view text) { return text == "cloning" || text == "without-cloning"; };
  SYRINX_TRY(const std::string choice, read.text(table, "choice", is_choice, "\"cloning\" or \"without-cloning\""));
  return choice == "cloning" ? CloningChoice::kWithCloning : CloningChoice::kWithoutCloning;
}

Result<std::vector<std::string>> parse_pick(const Reader& read, const toml::table& table) {
  std::vector<std::string> pick;
  const toml::node* const node = table.get("pick");
  if (node == nullptr) return pick;
  const toml::array* const array = node->as_array();
  if (array == nullptr || array->empty() || array->size() > kMaxFilesPerGroup)
    return read.complain(node->source(), "'pick' must be 1 to {} names of files", kMaxFilesPerGroup);
  for (const toml::node& element : *array) {
    SYRINX_TRY(std::string name, read.text_of(element, "pick", is_path_part, "names of files"));
    pick.push_back(std::move(name));
  }
  return pick;
}

Result<CatalogueGroup> parse_group(const Reader& read, const toml::table& table, std::set<std::string>& paths) {
  SYRINX_TRY_VOID(
      read.only_keys(table, "a group", {"role", "folder", "optional", "choice", "pick", "files", "source"}));
  CatalogueGroup group;
  SYRINX_TRY(group.role, read.text(table, "role", is_model_name, "a lower-case word"));
  if (table.contains("folder")) {
    SYRINX_TRY(group.folder, read.text(table, "folder", is_folder, "a relative folder of plain names"));
  }
  if (const toml::node* const node = table.get("optional"); node != nullptr) {
    if (!node->is_boolean()) return read.complain(node->source(), "'optional' must be true or false");
    group.optional = node->as_boolean()->get();
  }
  SYRINX_TRY(group.choice, parse_choice(read, table));
  SYRINX_TRY(group.pick, parse_pick(read, table));
  SYRINX_TRY(const auto files, read.tables(table, "files", kMaxFilesPerGroup));
  for (const toml::table* const file_table : files) {
    SYRINX_TRY(auto file, parse_file(read, *file_table));
    if (!paths.insert(group.path_of(file)).second) {
      return read.complain(file_table->source(), "the file '{}' is listed twice", group.path_of(file));
    }
    group.files.push_back(std::move(file));
  }
  if (table.contains("source")) {
    SYRINX_TRY(const auto sources, read.tables(table, "source", kMaxSources));
    for (const toml::table* const source_table : sources) {
      SYRINX_TRY(auto source, parse_source(read, *source_table, group.files.size() > 1));
      group.sources.push_back(std::move(source));
    }
  }
  SYRINX_TRY_VOID(check_group(read, table, group));
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

// Whether a name is there twice, Catalogue::make() sees.
Result<std::vector<CatalogueAlias>> parse_also(const Reader& read, const toml::table& table) {
  std::vector<CatalogueAlias> also;
  const toml::node* const node = table.get("also");
  if (node == nullptr) return also;
  const toml::array* const array = node->as_array();
  if (array == nullptr || array->empty() || array->size() > kMaxAliases)
    return read.complain(node->source(), "'also' must be 1 to {} names", kMaxAliases);
  for (const toml::node& element : *array) {
    SYRINX_TRY(std::string name, read.text_of(element, "also", is_alias,
                                              "names of at most 128 printable characters of ASCII, without blanks"));
    also.push_back({std::move(name), read.place(element.source())});
  }
  return also;
}

// One entry, or one row of a family.
Result<CatalogueEntry> parse_entry(const Reader& read, const toml::table& table) {
  CatalogueEntry entry;
  constexpr std::string_view kNameRule = "at most 64 lower-case letters, digits, '-' and '.'";
  const auto is_name = [](std::string_view name) {
    return is_model_name(name) && name.find(':') == std::string_view::npos;
  };
  SYRINX_TRY(entry.name, read.text(table, "name", is_name, kNameRule));
  SYRINX_TRY(entry.kind, read.text(table, "kind", is_name, kNameRule));
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

// The values of a table of texts, over those that there are.
Status add_values(const Reader& read, const toml::node* node, std::string_view what, CatalogueValues& values) {
  if (node == nullptr) return {};
  const toml::table* const table = node->as_table();
  if (table == nullptr || table->size() > kMaxValues)
    return read.complain(node->source(), "'{}' must be a table of at most {} texts", what, kMaxValues);
  for (auto&& [key, value] : *table) {
    const auto* const text = value.as_string();
    if (what == "variants" && key.str() == "also") continue;  // parse_also() reads it
    if (!is_value_key(key.str()) || key.str() == "name" || key.str() == "variant" || text == nullptr)
      return read.complain(key.source(), "'{}' must hold texts, under lower-case words other than name and variant",
                           what);
    values.set(std::string(key.str()), text->get());
  }
  return {};
}

Result<std::vector<CatalogueEntry>> parse_family(std::string_view source_name, const toml::table& table) {
  const Reader plain(source_name, {});
  const toml::node* const node = table.get("variants");
  const toml::table* const variants = node->as_table();
  if (variants == nullptr || variants->empty() || variants->size() > kMaxVariants)
    return plain.complain(node->source(), "'variants' must be 1 to {} tables", kMaxVariants);
  SYRINX_TRY(const std::string chosen, plain.text(table, "default", is_any_text, "the name of one of the variants"));
  if (!variants->contains(chosen))
    return plain.complain(table.source(), "'default' must be the name of one of the variants");
  if (const toml::node* const also = table.get("also"); also != nullptr)
    return plain.complain(also->source(), "'also' belongs to a variant; put it into a row of 'variants'");
  std::vector<CatalogueEntry> entries;
  size_t room = kMaxFamilyBytes;
  for (auto&& [key, row] : *variants) {
    CatalogueValues values;
    SYRINX_TRY_VOID(add_values(plain, table.get("values"), "values", values));
    SYRINX_TRY_VOID(add_values(plain, &row, "variants", values));
    values.set("variant", std::string(key.str()));
    const Reader read(source_name, std::move(values), &room);
    SYRINX_TRY(CatalogueEntry entry, parse_entry(read, table));
    SYRINX_TRY(entry.also, parse_also(read, *row.as_table()));
    entry.name += ":" + std::string(key.str());
    if (!is_model_name(entry.name))
      return plain.complain(key.source(), "'{}' is not a name of a variant: letters, digits, '-', '.' and '_'",
                            Reader::shorten(key.str()));
    entry.is_default = key.str() == chosen;
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

Result<std::vector<CatalogueEntry>> parse_catalogue(std::string_view text, std::string_view source_name) {
  const Reader read(source_name, {});
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
  SYRINX_TRY_VOID(read.only_keys(
      table, "a catalogue",
      {"name", "kind", "description", "licence", "also", "requires", "group", "default", "variants", "values"}));
  if (table.contains("variants")) return parse_family(source_name, table);
  for (const char* const key : {"default", "values"}) {
    if (table.contains(key)) return read.complain(table.source(), "'{}' makes no sense without 'variants'", key);
  }
  SYRINX_TRY(CatalogueEntry entry, parse_entry(read, table));
  SYRINX_TRY(entry.also, parse_also(read, table));
  return std::vector<CatalogueEntry>{std::move(entry)};
}

}  // namespace syrinx
