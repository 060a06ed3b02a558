#include "store/checkpoint_reference.h"

#include <algorithm>

namespace syrinx {
namespace {

constexpr size_t kMaxReferenceBytes = 4096;
constexpr std::string_view kHubScheme = "hf://";

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

// One folder's or file's name: nothing that walks upwards, nothing that a terminal or a header would act on.
bool is_path_part(std::string_view part) {
  return !part.empty() && part.size() <= 255 && part != "." && part != ".." &&
         std::all_of(part.begin(), part.end(), [](char c) {
           return static_cast<unsigned char>(c) > ' ' && c != 0x7f && c != '\\' && c != '@' && c != '?' && c != '#';
         });
}

bool is_path(std::string_view path) {
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    if (!is_path_part(path.substr(begin, end - begin))) return false;
    begin = end + 1;
  }
  return true;
}

// An owner or a repository, as the hub allows them.
bool is_hub_name(std::string_view name) {
  return !name.empty() && name.size() <= 96 && is_letter_or_digit(name[0]) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.'; });
}

bool is_revision(std::string_view revision) {
  return is_path(revision) && std::all_of(revision.begin(), revision.end(), [](char c) {
           return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.' || c == '/';
         });
}

Result<CheckpointReference> parse_hub(std::string_view text) {
  const std::string_view body = text.substr(kHubScheme.size());
  const size_t at = std::min(body.find('@'), body.size());
  const std::string_view place = body.substr(0, at);
  const size_t owner = std::min(place.find('/'), place.size());
  const size_t repository = owner == place.size() ? place.size() : std::min(place.find('/', owner + 1), place.size());
  CheckpointReference out{
      .kind = CheckpointReference::Kind::kHub, .text = {}, .repository = {}, .path = {}, .revision = "main"};
  out.repository = place.substr(0, repository);
  if (at < body.size()) out.revision = body.substr(at + 1);
  if (repository < place.size()) out.path = place.substr(repository + 1);
  if (owner == place.size() || !is_hub_name(place.substr(0, owner)) ||
      !is_hub_name(std::string_view(out.repository).substr(owner + 1)) || !is_path(out.path))
    return fail(Code::kInvalidArgument,
                "'{}' does not name a file of the hub; it must look like "
                "hf://owner/repository/path/file@revision",
                text);
  if (!is_revision(out.revision))
    return fail(Code::kInvalidArgument, "'{}' has the revision '{}', which is not a commit, branch or tag", text,
                out.revision);
  out.text = fmt::format("hf://{}/{}@{}", out.repository, out.path, out.revision);
  return out;
}

bool is_url_character(char c) { return c > ' ' && c < 0x7f && c != '"' && c != '\\' && c != '<' && c != '>'; }

bool is_url(std::string_view text) { return text.starts_with("http://") || text.starts_with("https://"); }

}  // namespace

bool is_commit(std::string_view revision) {
  return revision.size() == 40 && std::all_of(revision.begin(), revision.end(),
                                              [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::string_view origin_of(std::string_view url) {
  const size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return {};
  const size_t end = std::min(url.find_first_of("/?#", scheme + 3), url.size());
  return end == scheme + 3 ? std::string_view() : url.substr(0, end);
}

std::string url_suffix(std::string_view url) {
  const size_t begin = origin_of(url).size();
  std::string_view path = url.substr(begin, url.find_first_of("?#", begin) - begin);
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0 || dot + 1 == name.size() || name.size() - dot > 17) return {};
  const std::string_view suffix = name.substr(dot);
  return std::all_of(suffix.begin() + 1, suffix.end(), is_letter_or_digit) ? std::string(suffix) : std::string();
}

Result<CheckpointReference> parse_reference(std::string_view text) {
  if (text.empty()) return fail(Code::kInvalidArgument, "an empty name is not a file");
  if (text.size() > kMaxReferenceBytes)
    return fail(Code::kLimitExceeded, "a name of {} bytes is too long; at most {} are read", text.size(),
                kMaxReferenceBytes);
  if (std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }))
    return fail(Code::kInvalidArgument, "the name of a file holds a control character");
  if (text.starts_with(kHubScheme)) return parse_hub(text);
  CheckpointReference out;
  out.text = text;
  if (is_url(text)) {
    const std::string_view origin = origin_of(text);
    if (origin.find('@') != std::string_view::npos)  // not repeated here: it holds a password
      return fail(Code::kInvalidArgument, "an address with a name and password in it is not taken");
    if (origin.empty() || !std::all_of(text.begin(), text.end(), is_url_character))
      return fail(Code::kInvalidArgument,
                  "'{}' is not the address of a file; it needs a host, and %XX for spaces and letters beyond ASCII",
                  text);
    out.kind = CheckpointReference::Kind::kUrl;
    return out;
  }
  const size_t scheme = text.find("://");
  if (scheme != std::string_view::npos && std::all_of(text.begin(), text.begin() + scheme, is_letter_or_digit))
    return fail(Code::kInvalidArgument, "'{}' cannot be read; a path, hf://, https:// and http:// can", text);
  out.path = text;
  return out;
}

}  // namespace syrinx
