#include "store/hub.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/sha256.h"
#include "store/foreign_names.h"
#include "store/http_headers.h"
#include "store/part_file.h"

namespace syrinx {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxTokenBytes = 4096;
constexpr size_t kSha256Digits = 64;

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

bool is_true(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text == "1" || text == "ON" || text == "YES" || text == "TRUE";
}

std::string without_ends(const std::string& text) {
  const size_t first = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  return text.substr(first, text.find_last_not_of(" \t\r\n") + 1 - first);
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// The first bytes of a small file; nothing where it cannot be read.
std::string read_small(const std::string& path, size_t limit) {
  std::ifstream file(path, std::ios::binary);
  std::string text(limit, '\0');
  file.read(text.data(), static_cast<std::streamsize>(limit));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return text;
}

// A folder that a variable names, with the shell's ~ for those who write it in a settings file.
std::string folder_or(const std::string& chosen, const std::string& home, std::string otherwise) {
  if (chosen.empty()) return otherwise;
  return chosen.starts_with("~/") && !home.empty() ? home + chosen.substr(1) : chosen;
}

Status find_token(const std::string& hub_home, HubSettings& out) {
  for (const char* const name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    out.token = without_ends(environment(name));
    out.token_place = name;
    if (!out.token.empty()) break;
  }
  const std::string chosen = environment("HF_TOKEN_PATH");
  if (out.token.empty() && !(chosen.empty() && hub_home.empty())) {
    out.token_place = chosen.empty() ? hub_home + "/token" : chosen;
    out.token = without_ends(read_small(out.token_place, kMaxTokenBytes));
  }
  const bool sendable = out.token.size() < kMaxTokenBytes &&
                        std::all_of(out.token.begin(), out.token.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (sendable) return {};
  return fail(Code::kInvalidArgument, "{} holds no token: a token is one word of letters and digits", out.token_place);
}

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~' || c == '/';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

bool is_hash(std::string_view text, size_t digits) {
  return text.size() == digits &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// An entity tag without W/ and quotes.
std::string_view bare_tag(std::string_view tag) {
  if (tag.starts_with("W/")) tag.remove_prefix(2);
  if (tag.size() >= 2 && tag.front() == '"' && tag.back() == '"') tag = tag.substr(1, tag.size() - 2);
  return tag;
}

std::string address_of(const CheckpointReference& reference, const HubSettings& settings) {
  if (reference.kind == CheckpointReference::Kind::kUrl) return reference.text;
  std::string revision = percent_encoded(reference.revision);
  for (size_t at = 0; (at = revision.find('/', at)) != std::string::npos;) revision.replace(at, 1, "%2F");
  return fmt::format("{}/{}/resolve/{}/{}", settings.endpoint, reference.repository, revision,
                     percent_encoded(reference.path));
}

// The token is a password: it travels encrypted, or not beyond this machine.
bool may_carry_token(std::string_view url) {
  if (url.starts_with("https://")) return true;
  const std::string_view origin = origin_of(url);
  const auto is_host = [origin](std::string_view host) {
    const std::string_view port = origin.starts_with(host) ? origin.substr(host.size()) : "?";
    return port.empty() || (port.front() == ':' && port.find('@') == std::string_view::npos);
  };
  return is_host("http://127.0.0.1") || is_host("http://localhost") || is_host("http://[::1]");
}

// Why the hub said no, and what to do about it.
Error refusal(const CheckpointReference& reference, const HubSettings& settings, const RemoteHeaders& answer,
              bool with_token, const std::string& hint) {
  const std::string page = settings.endpoint + "/" + reference.repository;
  const std::string otherwise = hint.empty() ? std::string() : "; " + hint;
  const std::string get_token = fmt::format(
      "make a token that may read at {}/settings/tokens and give it as HF_TOKEN, "
      "or run `hf auth login`",
      settings.endpoint);
  std::string text;
  if (answer.error_code == "GatedRepo" && !with_token)
    text = fmt::format(
        "the weights of {} are given to those who accept their terms: accept them at {} (an account is "
        "needed), {}, and run this again",
        reference.repository, page, get_token);
  else if (answer.error_code == "GatedRepo")
    text = fmt::format(
        "the weights of {} are given to those who accept their terms, which the owner of the token in {} "
        "has not: accept them at {}, and let the token read gated repositories, then run this again",
        reference.repository, settings.token_place, page);
  else if (with_token)
    text = fmt::format(
        "{} refused the token in {} ({}): look whether it is still valid at {}/settings/tokens and "
        "whether it may read {}",
        settings.endpoint, settings.token_place, answer.status, settings.endpoint, reference.repository);
  else
    text = fmt::format("{} does not show {} to everybody ({}): check its name; if it is private, {}", settings.endpoint,
                       reference.repository, answer.status, get_token);
  return Error{Code::kUnavailable, text + otherwise};
}

Status judge(const CheckpointReference& reference, const HubSettings& settings, const RemoteHeaders& answer,
             bool with_token, const std::string& hint) {
  const bool hub = reference.kind == CheckpointReference::Kind::kHub;
  if (answer.status >= 200 && answer.status < (answer.linked_size ? 400 : 300)) return {};
  if (hub && (answer.status == 401 || answer.status == 403))
    return tl::unexpected(refusal(reference, settings, answer, with_token, hint));
  if (answer.status == 404 || answer.status == 410) {
    if (!hub) return fail(Code::kNotFound, "there is nothing at '{}' ({})", reference.text, answer.status);
    if (answer.error_code == "RepoNotFound")
      return fail(Code::kNotFound, "{} has no repository '{}'", settings.endpoint, reference.repository);
    if (answer.error_code == "RevisionNotFound")
      return fail(Code::kNotFound, "'{}' has no revision '{}'", reference.repository, reference.revision);
    return fail(Code::kNotFound, "'{}' has no file '{}' at revision '{}'", reference.repository, reference.path,
                reference.revision);
  }
  return fail(Code::kUnavailable, "the server of '{}' answered {}", reference.text, answer.status);
}

}  // namespace

Result<HubSettings> HubSettings::from_environment() {
  HubSettings out;
  const std::string endpoint = environment("HF_ENDPOINT");
  if (!endpoint.empty()) {
    SYRINX_TRY(const CheckpointReference parsed, parse_reference(endpoint));
    if (parsed.kind != CheckpointReference::Kind::kUrl)
      return fail(Code::kInvalidArgument, "HF_ENDPOINT='{}' is not an address that begins with https:// or http://",
                  endpoint);
    out.endpoint = endpoint.substr(0, endpoint.find_last_not_of('/') + 1);
  }
  const std::string offline = environment("HF_HUB_OFFLINE");
  out.offline = is_true(offline.empty() ? environment("TRANSFORMERS_OFFLINE") : offline);
  const std::string home = environment("HOME");
  const std::string caches = folder_or(environment("XDG_CACHE_HOME"), home, home.empty() ? "" : home + "/.cache");
  const std::string hub_home =
      folder_or(environment("HF_HOME"), home, caches.empty() ? std::string() : caches + "/huggingface");
  std::string cache = environment("HF_HUB_CACHE");
  if (cache.empty()) cache = environment("HUGGINGFACE_HUB_CACHE");
  out.cache = folder_or(cache, home, hub_home.empty() ? std::string() : hub_home + "/hub");
  const auto cached = foreign_names("maker-cache");
  if (!home.empty() && !cached.empty()) out.maker_cache = home + "/.cache/" + std::string(cached.front());
  SYRINX_TRY_VOID(find_token(hub_home, out));
  return out;
}

std::string find_in_caches(const CheckpointReference& reference, const HubSettings& settings) {
  if (reference.kind == CheckpointReference::Kind::kUrl && !settings.maker_cache.empty()) {
    const std::string name = sha256_hex(std::as_bytes(std::span(reference.text))) + url_suffix(reference.text);
    std::string path = settings.maker_cache + "/" + name;
    if (is_file(path)) return path;
  }
  if (reference.kind != CheckpointReference::Kind::kHub || settings.cache.empty()) return {};
  std::string folder = "models--" + reference.repository;
  folder.replace(folder.find('/'), 1, "--");
  const std::string repository = settings.cache + "/" + folder;
  std::string commit = reference.revision;
  if (!is_commit(commit)) commit = without_ends(read_small(repository + "/refs/" + commit, 64));
  if (!is_commit(commit)) return {};
  std::string path = repository + "/snapshots/" + commit + "/" + reference.path;
  return is_file(path) ? path : std::string();
}

std::string cached_hash(const std::string& path) {
  std::error_code error;
  const fs::path target = fs::read_symlink(path, error);
  const std::string blob = error ? std::string() : target.filename().string();
  return is_hash(blob, kSha256Digits) || is_hash(blob, kGitBlobDigits) ? blob : std::string();
}

Result<RemoteFile> ask_server(const CheckpointReference& reference, const HubSettings& settings, uint64_t max_bytes,
                              const std::string& hint, Downloader& downloader) {
  const bool hub = reference.kind == CheckpointReference::Kind::kHub;
  RemoteFile file;
  file.address.url = address_of(reference, settings);
  file.address.hub = hub;
  SYRINX_TRY(RemoteHeaders answer, downloader.describe(file.address));
  if (hub && (answer.status == 401 || answer.status == 403) && !settings.token.empty()) {
    if (!may_carry_token(file.address.url))
      return fail(Code::kUnavailable,
                  "'{}' is given to those with a token, and the token in {} is not sent to {}, which does not encrypt: "
                  "set HF_ENDPOINT to an address that begins with https://",
                  reference.text, settings.token_place, settings.endpoint);
    file.address.token = settings.token;
    SYRINX_TRY(answer, downloader.describe(file.address));
  }
  SYRINX_TRY_VOID(judge(reference, settings, answer, !file.address.token.empty(), hint));
  const auto size = hub && answer.linked_size ? answer.linked_size : answer.size_bytes;
  if (!size)
    return fail(Code::kUnsupported,
                "the server of '{}' does not say how long the file is; fetch it by other means and "
                "give its path",
                reference.text);
  if (*size == 0) return fail(Code::kDataLoss, "'{}' is empty", reference.text);
  if (*size > max_bytes)
    return fail(Code::kLimitExceeded, "'{}' has {} bytes; at most {} are fetched for this", reference.text, *size,
                max_bytes);
  file.size_bytes = *size;
  // A hash is what the hub itself says: other servers' tags, and weak ones, are of their own making.
  const bool telling = answer.own_origin && is_strong_tag(answer.etag);
  const std::string tag = !answer.linked_etag.empty() ? answer.linked_etag : telling ? answer.etag : std::string();
  if (hub && is_hash(bare_tag(tag), kSha256Digits)) file.sha256 = bare_tag(tag);
  if (hub && is_hash(bare_tag(tag), kGitBlobDigits)) file.git_blob = bare_tag(tag);
  // If-Range takes strong tags only; the hub's are for its own bookkeeping, while its storage has tags of its own.
  if (!hub && is_strong_tag(answer.etag)) file.address.validator = answer.etag;
  if (hub) file.commit = is_commit(answer.commit) ? answer.commit : reference.revision;
  if (hub && !is_commit(file.commit))
    return fail(Code::kUnsupported, "the hub does not say which commit '{}' is; name a commit", reference.text);
  if (!hub) return file;
  if (is_commit(reference.revision) && file.commit != reference.revision)
    return fail(Code::kDataLoss, "the hub answered for commit {} when asked for '{}'; try again later", file.commit,
                reference.text);
  // A branch may move on before the file is fetched: from here on its commit is meant.
  CheckpointReference pinned = reference;
  pinned.revision = file.commit;
  file.address.url = address_of(pinned, settings);
  return file;
}

}  // namespace syrinx
