#include "server/host/voice_shelf.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/in_quotes.h"
#include "base/log.h"
#include "base/scoped_file.h"
#include "server/http/http_message.h"
#include "store/paths.h"

namespace syrinx::server {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".safetensors";
constexpr int64_t kLeftOverS = 3600;  // no upload takes so long to be written

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

int64_t now_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Plain files only; links are not followed.
std::optional<int64_t> written_s(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return static_cast<int64_t>(info.st_mtim.tv_sec);
}

// As ScopedFile calls what it has not finished.
bool is_left_over(const fs::path& path) {
  if (!path.filename().string().starts_with(".syrinx-") || path.extension() != ".part") return false;
  const auto written = written_s(path.string());
  return written && now_s() - *written > kLeftOverS;
}

// Voices in the folder, with left-overs removed; none where there is no such folder.
std::vector<UploadedVoice> scan(const std::string& folder) {
  std::vector<UploadedVoice> found;
  std::error_code error;
  size_t looked = 0;
  for (fs::directory_iterator entry(folder, error);
       !error && entry != fs::directory_iterator() && looked < VoiceShelf::kMaxLooked;
       entry.increment(error), ++looked) {
    const fs::path& path = entry->path();
    std::error_code ignored;
    if (is_left_over(path)) fs::remove(path, ignored);
    if (path.extension() != kEnding || voice_name_fault(path.stem().string())) continue;
    if (const auto written = written_s(path.string()))
      found.push_back({.name = path.stem().string(), .created_s = *written});
  }
  return found;
}

// So that a file that is gone stays gone, whatever happens to the machine.
void sync_folder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

bool by_name(const UploadedVoice& a, const UploadedVoice& b) { return a.name < b.name; }

}  // namespace

std::optional<std::string> voice_name_fault(std::string_view name) {
  if (name.empty()) return "a voice needs a name; give it one of letters, digits, '_' and '-'";
  if (name.size() > VoiceShelf::kMaxNameBytes)
    return fmt::format("the name has {} bytes; give one of at most {}", name.size(), VoiceShelf::kMaxNameBytes);
  const bool plain = is_letter_or_digit(name.front()) && std::all_of(name.begin(), name.end(), [](char c) {
                       return is_letter_or_digit(c) || c == '_' || c == '-';
                     });
  if (plain) return std::nullopt;
  return fmt::format("{} cannot name a voice; use letters, digits, '_' and '-', a letter or digit first",
                     in_quotes(name));
}

VoiceShelf::VoiceShelf(std::string folder) : folder_(std::move(folder)) {}

void VoiceShelf::list() {
  if (!is_open()) return;
  std::vector<UploadedVoice> found = scan(folder_);
  std::sort(found.begin(), found.end(), by_name);
  const std::lock_guard lock(mutex_);
  voices_ = std::move(found);
  ++changes_;
}

void VoiceShelf::read(const Read& read) {
  for (const UploadedVoice& voice : voices()) {
    const Status status = read(voice.name, path_of(voice.name));
    if (status) continue;
    log_error("the uploaded voice '{}' is left out: {}", path_of(voice.name), status.error().message);
    unlist(voice.name);
  }
}

std::vector<UploadedVoice> VoiceShelf::voices() const {
  const std::lock_guard lock(mutex_);
  return voices_;
}

std::optional<UploadedVoice> VoiceShelf::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(voices_.begin(), voices_.end(), [&](const auto& voice) { return voice.name == name; });
  return found == voices_.end() ? std::nullopt : std::optional(*found);
}

bool VoiceShelf::has_alike(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(voices_.begin(), voices_.end(), [&](const auto& voice) { return same_name(voice.name, name); });
}

size_t VoiceShelf::size() const {
  const std::lock_guard lock(mutex_);
  return voices_.size();
}

bool VoiceShelf::has_file(const std::string& name) const { return !find(name) && is_there(path_of(name)); }

uint64_t VoiceShelf::changes() const {
  const std::lock_guard lock(mutex_);
  return changes_;
}

tl::unexpected<Error> VoiceShelf::nameless(Error error, const std::string& name) const {
  const std::string path = path_of(name);
  for (size_t at = 0; (at = error.message.find(path, at)) != std::string::npos; at += folder_.size())
    error.message.replace(at, path.size(), folder_);
  return tl::unexpected(std::move(error));
}

// A voice is somebody's own: nobody else on the machine reads it.
Status VoiceShelf::write(const std::string& name, std::string_view content) const {
  const bool is_new = !is_folder(folder_);
  SYRINX_TRY_VOID(make_folders(folder_));
  if (is_new) ::chmod(folder_.c_str(), 0700);
  if (is_there(path_of(name)))
    return fail(Code::kIo, "'{}' holds a file of that name already, which was not listed", folder_);
  SYRINX_TRY(ScopedFile file, ScopedFile::create(path_of(name)));
  ::fchmod(file.descriptor(), 0600);
  SYRINX_TRY_VOID(file.write(content));
  return file.commit();
}

// Memory for the list comes first: a file must not stay that no list has.
Result<UploadedVoice> VoiceShelf::put(const std::string& name, std::string_view content) {
  UploadedVoice voice{.name = name}, to_list = voice;
  {
    const std::lock_guard lock(mutex_);
    voices_.reserve(voices_.size() + 1);
  }
  Status written = write(name, content);
  if (!written) return nameless(std::move(written).error(), name);
  voice.created_s = to_list.created_s = written_s(path_of(name)).value_or(now_s());
  const std::lock_guard lock(mutex_);
  voices_.insert(std::upper_bound(voices_.begin(), voices_.end(), voice, by_name), std::move(to_list));
  ++changes_;
  return voice;
}

Status VoiceShelf::remove(const std::string& name) {
  if (!find(name)) return fail(Code::kNotFound, "'{}' holds no voice of that name", folder_);
  if (::unlink(path_of(name).c_str()) != 0 && errno != ENOENT)
    return fail(Code::kIo, "cannot remove a voice of '{}': {}", folder_, std::strerror(errno));
  sync_folder(folder_);
  unlist(name);
  return {};
}

void VoiceShelf::unlist(const std::string& name) {
  const std::lock_guard lock(mutex_);
  std::erase_if(voices_, [&](const UploadedVoice& listed) { return listed.name == name; });
  ++changes_;
}

}  // namespace syrinx::server
