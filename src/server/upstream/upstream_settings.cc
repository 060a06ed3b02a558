#include "server/upstream/upstream_settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

#include "base/in_quotes.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "server/settings/model_id.h"
#include "server/settings/module_plan.h"
#include "text/unicode.h"

namespace syrinx::server::upstream {
namespace {

constexpr size_t kMaxCharacterBytes = 4;  // of UTF-8
constexpr size_t kMaxUrlBytes = 2048, kMaxKeyBytes = 4096, kMaxCertificateBytes = size_t{1} << 20;
constexpr int kMaxPort = 65535;
constexpr std::string_view kHttp = "http://", kHttps = "https://", kLocal = "local:";

// The authority in "http://host:port/path".
std::string_view authority_of(std::string_view url) {
  const size_t begin = url.find("://") + 3;
  return url.substr(begin, url.find('/', begin) - begin);
}

// The port of "[::1]:80" or "host:80", with its colon.
std::string_view port_of(std::string_view authority) {
  const size_t colon =
      authority.find(':', authority.starts_with('[') ? std::min(authority.find(']'), authority.size()) : 0);
  return colon == std::string_view::npos ? std::string_view() : authority.substr(colon);
}

std::string_view host_of(std::string_view authority) {
  return authority.substr(0, authority.size() - port_of(authority).size());
}

bool is_port(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port > 0 && port <= kMaxPort;
}

bool is_base(std::string_view url) {
  if (!url.starts_with(kHttp) && !url.starts_with(kHttps)) return false;
  const bool is_plain = std::all_of(url.begin(), url.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (!is_plain || url.size() > kMaxUrlBytes || url.find_first_of("?#@\\\"<>{}|^`") != std::string_view::npos)
    return false;
  const std::string_view authority = authority_of(url), port = port_of(authority), host = host_of(authority);
  if (host.empty() || (host.starts_with('[') && !host.ends_with(']'))) return false;
  return port.empty() || is_port(port.substr(1));
}

Result<MappedFile> open(const std::string& path, const char* setting, size_t max_bytes) {
  auto file = MappedFile::open(path);
  if (!file) return fail(file.error().code, "'{}': {}", setting, file.error().message);
  if (file->bytes().size() > max_bytes)
    return fail(Code::kLimitExceeded, "'{}': '{}' has {} bytes; give a file of at most {}", setting, path,
                file->bytes().size(), max_bytes);
  return file;
}

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// One line of ASCII, so that it can be no other header.
Result<std::string> load_key(const std::string& path) {
  SYRINX_TRY(const MappedFile file, open(path, "upstream_key_file", kMaxKeyBytes));
  std::string_view key = text_of(file);
  const size_t begin = std::min(key.find_first_not_of(" \t\r\n"), key.size());
  key = key.substr(begin, key.find_last_not_of(" \t\r\n") + 1 - begin);
  if (key.empty() || !std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 0x7f; }))
    return fail(Code::kInvalidArgument,
                "'upstream_key_file': '{}' does not hold one key and nothing else; write it in one line of ASCII",
                path);
  return std::string(key);
}

Status check_certificates(const std::string& path) {
  SYRINX_TRY(const MappedFile file, open(path, "upstream_ca_file", kMaxCertificateBytes));
  if (text_of(file).find("CERTIFICATE-----") != std::string_view::npos) return {};
  return fail(Code::kDataLoss,
              "'upstream_ca_file': '{}' holds no certificate in PEM; give one that vouches for the upstream", path);
}

// Settings of an endpoint elsewhere.
std::array<std::pair<const char*, const std::string*>, 3> remote_settings(const Settings& settings) {
  return {std::pair("upstream_model", &settings.upstream_model),
          std::pair("upstream_key_file", &settings.upstream_key_file),
          std::pair("upstream_ca_file", &settings.upstream_ca_file)};
}

std::string local_model(const Settings& settings) { return settings.upstream.substr(kLocal.size()); }

Status check_local(const Settings& settings) {
  const std::vector<ModulePlan> plans = plans_of(settings, ModuleKind::kChat);
  if (plans.empty())
    return fail(Code::kInvalidArgument,
                "'upstream' is {}, and no language model is loaded; name one as 'chat_model', too",
                in_quotes(settings.upstream));
  const std::string model = local_model(settings), &id = plans.front().id;
  const bool is_known = std::any_of(plans.begin(), plans.end(), [&](const ModulePlan& plan) {
    return ModelNames(plan.settings, model_of(plan), "").are_called(model);
  });
  if (!is_known)
    return fail(Code::kInvalidArgument,
                "'upstream' is {}, and the language model is called '{}'; give 'local:{}', or 'local:' alone",
                in_quotes(settings.upstream), id, id);
  for (const auto& [name, value] : remote_settings(settings))
    if (!value->empty())
      return fail(Code::kInvalidArgument, "'{}' is for an upstream at an address, and 'upstream' is {}; leave it out",
                  name, in_quotes(settings.upstream));
  return {};
}

ChatForm form_of(const Settings& settings) {
  return {.model = settings.upstream_model,
          .instructions = settings.upstream_instructions,
          .max_tokens_field = settings.upstream_max_tokens_field,
          .max_items = static_cast<size_t>(settings.upstream_history_items),
          .max_characters = static_cast<size_t>(settings.upstream_history_characters)};
}

}  // namespace

bool is_local(const Settings& settings) { return settings.upstream.starts_with(kLocal); }

LocalUpstream local_upstream(const Settings& settings) {
  return {.model = local_model(settings),
          .form = form_of(settings),
          .max_characters = static_cast<size_t>(settings.max_text_characters)};
}

Status check_upstream(const Settings& settings) {
  if (!settings.upstream.empty() && !is_local(settings) && !is_base(settings.upstream))
    return fail(Code::kInvalidArgument,
                "'upstream' is not the address of an interface; give one such as http://127.0.0.1:11434/v1 or "
                "https://example.org/v1, of at most {} bytes, without user, query or key, or 'local:' for the "
                "'chat_model' of this server",
                kMaxUrlBytes);
  if (!settings.upstream.empty() && plans_of(settings, ModuleKind::kSpeech).empty())
    return fail(Code::kInvalidArgument,
                "'upstream' is set without 'speech_model', so nothing would speak its answers; name a model, too");
  if (is_local(settings)) return check_local(settings);
  if (!settings.upstream.empty()) return {};
  for (const auto& [name, value] : remote_settings(settings))
    if (!value->empty())
      return fail(Code::kInvalidArgument, "'{}' is set without 'upstream'; set the address, too, or leave it out",
                  name);
  return {};
}

Result<Upstream> load_upstream(const Settings& settings) {
  SYRINX_TRY_VOID(check_upstream(settings));
  std::string base = settings.upstream;
  base.resize(base.find_last_not_of('/') + 1);
  Upstream upstream{
      .endpoint = {.url = base + "/chat/completions",
                   .ca_file = settings.upstream_ca_file,
                   .timeout_s = settings.upstream_timeout_s,
                   .max_answer_bytes = static_cast<size_t>(settings.upstream_max_answer_kb) * 1024,
                   .max_text_bytes = kMaxCharacterBytes * static_cast<size_t>(settings.max_text_characters)},
      .form = form_of(settings),
      .max_characters = static_cast<size_t>(settings.max_text_characters)};
  if (!settings.upstream_ca_file.empty()) SYRINX_TRY_VOID(check_certificates(settings.upstream_ca_file));
  if (settings.upstream_key_file.empty()) return upstream;
  SYRINX_TRY(upstream.endpoint.key, load_key(settings.upstream_key_file));
  const std::string host(host_of(authority_of(base)));
  if (base.starts_with(kHttp) && host != "[::1]" && !is_loopback(host))
    log_warning("the upstream's key and all conversations go to another machine in the clear; give an https address");
  return upstream;
}

}  // namespace syrinx::server::upstream
