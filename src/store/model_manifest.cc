#include "store/model_manifest.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/scoped_file.h"
#include "store/catalogue.h"
#include "store/checkpoint_reference.h"

namespace syrinx {
namespace {

constexpr size_t kMaxManifestBytes = 4 << 20;

std::string manifest_path(const std::string& folder) { return folder + "/installed"; }
std::string changing_path(const std::string& folder) { return folder + "/changing"; }

// Takes the text up to the next space, or all of it.
std::string_view take_word(std::string_view& line) {
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

template <class Number>
bool take_number(std::string_view& line, Number& value) {
  const std::string_view word = take_word(line);
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
  return parsed.ec == std::errc() && parsed.ptr == word.data() + word.size() && !word.empty();
}

// The rest of the line is the path: relative, and never upwards.
std::optional<ModelFile> parse_file_line(std::string_view line, const std::string& folder) {
  ModelFile file;
  file.role = take_word(line);
  if (!take_number(line, file.size_bytes) || !take_number(line, file.mtime_ns)) return std::nullopt;
  file.sha256 = take_word(line);
  file.name = line;
  if (file.role.empty() || file.sha256.size() != 64 || file.name.empty() || file.name[0] == '/') return std::nullopt;
  if (("/" + file.name + "/").find("/../") != std::string::npos) return std::nullopt;
  file.path = folder + "/" + file.name;
  return file;
}

}  // namespace

const ModelFile* InstalledModel::first(std::string_view role) const {
  const auto found = std::find_if(files.begin(), files.end(), [role](const ModelFile& f) { return f.role == role; });
  return found == files.end() ? nullptr : &*found;
}

const ModelFile* InstalledModel::at(std::string_view path) const {
  const auto found = std::find_if(files.begin(), files.end(), [path](const ModelFile& f) { return f.path == path; });
  return found == files.end() ? nullptr : &*found;
}

uint64_t InstalledModel::total_bytes() const {
  uint64_t bytes = 0;
  for (const auto& file : files) bytes += file.size_bytes;
  return bytes;
}

Result<InstalledModel> parse_manifest(std::string_view text, const std::string& folder) {
  InstalledModel model;
  model.folder = folder;
  const auto damaged = [&folder](std::string_view line) {
    return fail(Code::kDataLoss, "the list '{}/installed' is damaged at '{}'; `syrinx pull` makes it anew", folder,
                line.substr(0, 80));
  };
  bool first = true;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    const std::string_view whole = line;
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string_view key = take_word(line);
    if (first) {
      if (whole != "syrinx-model 1") return damaged(whole);
      first = false;
    } else if (key == "name") {
      model.name = line;
    } else if (key == "kind") {
      model.kind = line;
    } else if (key == "licence") {
      model.licence = line;
    } else if (key == "description") {
      model.description = line;
    } else if (key == "need" && is_model_name(line)) {
      model.needs.emplace_back(line);
    } else if (key == "file") {
      auto file = parse_file_line(line, folder);
      if (!file) return damaged(whole);
      model.files.push_back(std::move(*file));
    } else if (key == "from" && !model.files.empty() && parse_reference(line)) {
      model.files.back().origin = line;
    } else {
      return damaged(whole);
    }
  }
  if (!is_model_name(model.name) || !is_model_name(model.kind) || model.files.empty()) return damaged("its end");
  return model;
}

namespace {

Result<InstalledModel> read_list(const std::string& path, const std::string& folder) {
  std::FILE* const file = std::fopen(path.c_str(), "rbe");
  if (file == nullptr) return fail(Code::kNotFound, "no model is installed in '{}'", folder);
  std::string text(kMaxManifestBytes, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  const bool whole = std::fgetc(file) == EOF;
  std::fclose(file);
  if (!whole) return fail(Code::kDataLoss, "'{}' is longer than {} bytes", path, kMaxManifestBytes);
  return parse_manifest(text, folder);
}

Status rename_list(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0) return {};
  return fail(Code::kIo, "cannot rename '{}': {}", from, std::strerror(errno));
}

}  // namespace

Result<InstalledModel> read_manifest(const std::string& folder) { return read_list(manifest_path(folder), folder); }

Result<InstalledModel> read_changing_manifest(const std::string& folder) {
  return read_list(changing_path(folder), folder);
}

Result<bool> begin_change(const std::string& folder) {
  std::error_code error;
  if (!std::filesystem::exists(manifest_path(folder), error)) return false;
  SYRINX_TRY_VOID(rename_list(manifest_path(folder), changing_path(folder)));
  return true;
}

Status undo_change(const std::string& folder) { return rename_list(changing_path(folder), manifest_path(folder)); }

Status write_manifest(const InstalledModel& model) {
  std::string text = "syrinx-model 1\n";
  text += fmt::format("name {}\nkind {}\nlicence {}\ndescription {}\n", model.name, model.kind, model.licence,
                      model.description);
  for (const auto& need : model.needs) text += fmt::format("need {}\n", need);
  for (const auto& file : model.files) {
    text += fmt::format("file {} {} {} {} {}\n", file.role, file.size_bytes, file.mtime_ns, file.sha256, file.name);
    if (!file.origin.empty()) text += fmt::format("from {}\n", file.origin);
  }
  SYRINX_TRY(ScopedFile file, ScopedFile::create(manifest_path(model.folder)));
  SYRINX_TRY_VOID(file.write(text));
  SYRINX_TRY_VOID(file.commit());
  std::remove(changing_path(model.folder).c_str());
  return {};
}

}  // namespace syrinx
