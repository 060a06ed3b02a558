#include "server/serve.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "audio/child/child_decoder.h"
#include "base/clock.h"
#include "base/key_file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/signals.h"
#include "engine/schedule/heartbeat.h"
#include "server/host/descriptors.h"
#include "server/host/notify.h"
#include "server/http/http_server.h"
#include "server/http/self_signed.h"
#include "server/http/tls_identity.h"
#include "server/service.h"
#include "server/settings/access.h"
#include "server/upstream/chat_replies.h"
#include "server/upstream/local_replies.h"
#include "server/upstream/upstream_settings.h"
#include "server/wyoming/connection.h"
#include "store/paths.h"
#include "tensor/kept_pages.h"

namespace syrinx::server {
namespace {

constexpr std::chrono::milliseconds kTick{20};  // how soon a signal is heeded
// With a manager whose queue is full: it gives up a service that is never ready, and needs no word of one that ends.
constexpr std::chrono::seconds kReadyPatience{30}, kStoppingPatience{1};
// A hypervisor has taken pages away within 5 s.
constexpr HeartbeatOptions kWeightsHeartbeat{.idle_ms = 2000, .share = 0.02};

static_assert(HttpLimits::kMaxHeaderBytes == 60 * 1024);  // the bound of max_header_kb

double read_weights() {
  const PagesRead read = read_kept_pages(&cancel_flag());
  log_debug("read {} pages of weights in {:.1f} ms", read.pages, read.worked_ms);
  return read.worked_ms;
}

// Without it where the system has no thread for it.
void keep_weights(std::optional<Heartbeat>& keeper) {
  try {
    keeper.emplace(read_weights, kWeightsHeartbeat);
  } catch (const std::system_error& error) {
    log_warning("weights_heartbeat has no thread: {}; the first answer behind a pause may be slow", error.what());
  }
}

HttpLimits limits_of(const Settings& settings) {
  return {
      .host = settings.host,
      .port = static_cast<int>(settings.port),
      .max_header_bytes = static_cast<size_t>(settings.max_header_kb) * 1024,
      .max_connections = static_cast<size_t>(settings.max_connections),
      .max_connections_per_address = static_cast<size_t>(settings.max_connections_per_address),
      .max_message_bytes = std::min(static_cast<size_t>(settings.max_message_kb) * 1024, upload_share_bytes(settings)),
      .idle_timeout_s = settings.idle_timeout_s,
      .request_timeout_s = settings.request_timeout_s,
      .stalled_reader_s = settings.stalled_reader_s,
      .message_timeout_s = settings.upload_timeout_s};
}

std::optional<ProtocolPort> wyoming_of(const Settings& settings, Service& service) {
  if (settings.wyoming_port < 0) return {};
  return wyoming::wyoming_port(static_cast<int>(settings.wyoming_port), service);
}

std::string address_of(const char* scheme, const Settings& settings, int port) {
  const bool six = settings.host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", scheme, six ? "[" : "", settings.host, six ? "]" : "", port);
}

// For a browser of this machine, which gives its microphone to pages of its own machine, or with TLS, alone.
std::string page_of(const char* scheme, const Settings& settings, int port) {
  const bool all = settings.host == "0.0.0.0" || settings.host == "::";
  return all ? fmt::format("{}://localhost:{}/", scheme, port) : address_of(scheme, settings, port) + "/";
}

std::string counted(int64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// A recording as WebM or MP4 need not wait until FFmpeg's libraries are loaded.
void keep_decoder() {
  if (const Status kept = keep_spare_decoder(); !kept)
    log_warning("recordings as webm, mp4 (m4a), aac, wma and amr are refused: {}", kept.error().message);
}

std::string at_once(const Module& module, const Models& models) {
  switch (module.plan.kind) {
    case ModuleKind::kSpeech: return counted(module.plan.settings.speech_slots, "text");
    case ModuleKind::kRecognition:
      return counted(static_cast<int64_t>(module.slots.size(SlotPool::Work::kBatch)), "recording");
    case ModuleKind::kChat: break;
  }
  const std::string conversations = counted(module.plan.settings.chat_slots, "conversation");
  return models.chat ? fmt::format("{} of {} tokens", conversations, models.chat->engine().context()) : conversations;
}

const char* deed_at_route(ModuleKind kind, bool is_later) {
  switch (kind) {
    case ModuleKind::kSpeech: return is_later ? "will speak" : "speaks";
    case ModuleKind::kRecognition: return is_later ? "will transcribe" : "transcribes";
    case ModuleKind::kChat: break;
  }
  return is_later ? "will answer" : "answers";
}

const char* route_of(ModuleKind kind) {
  switch (kind) {
    case ModuleKind::kSpeech: return "/v1/audio/speech";
    case ModuleKind::kRecognition: return "/v1/audio/transcriptions";
    case ModuleKind::kChat: break;
  }
  return "/v1/chat/completions";
}

// Stops between two models, or while one is warmed up, when the server is to end.
Status load_models(Service& service, const std::string& address, const Tell& tell) {
  Modules& modules = service.modules();
  for (const auto& module : modules.all()) {
    if (module->plan.loads_at_first_use) continue;
    if (cancel_requested()) return {};
    tell(fmt::format("loading {}", model_of(module->plan)));
    const Status loaded = modules.load(*module);
    if (!loaded && loaded.error().code == Code::kCancelled && cancel_requested()) return {};
    SYRINX_TRY_VOID(loaded);
  }
  if (cancel_requested()) return {};
  if (modules.first(ModuleKind::kRecognition) != nullptr) keep_decoder();
  service.ready();
  for (const auto& module : modules.all()) {
    const bool is_later = module->plan.loads_at_first_use;
    tell(fmt::format("{} {} at {}{}, {} at once{}", module->plan.id, deed_at_route(module->plan.kind, is_later),
                     address, route_of(module->plan.kind), at_once(*module, modules.loaded(*module)),
                     is_later ? "; it is loaded at its first use" : ""));
  }
  return {};
}

using Identity = std::shared_ptr<const TlsIdentity>;

// Null: in the clear.
Result<Identity> load_identity(const Settings& settings) {
  if (settings.tls_certificate.empty()) return Identity();
  return TlsIdentity::load(settings.tls_certificate, settings.tls_key);
}

// A certificate that has been renewed; one that cannot be used leaves the old one in its place.
void reload(const Settings& settings, HttpServer& transport, const Tell& tell) {
  if (settings.tls_certificate.empty())
    return tell("there is nothing to read again without a certificate; settings are read when the server starts");
  auto identity = load_identity(settings);
  if (!identity) return log_error("the certificate stays as it was: {}", identity.error().message);
  transport.renew(std::move(*identity));
  tell(fmt::format("new connections are shown the certificate that is now in '{}'", settings.tls_certificate));
}

// The settings with the certificate that they ask for.
Result<Settings> with_certificate(Settings settings, const Tell& tell) {
  if (!settings.tls_self_signed) return settings;
  SYRINX_TRY(const UserPaths paths, user_paths());
  SYRINX_TRY(TlsFiles files, self_signed_files(paths.data + "/tls", own_names(settings.host)));
  if (files.is_new) tell("a new certificate was made: clients that had the old one must be given this one");
  tell(fmt::format("certificate: {}, signed by itself; clients must be told to trust it (Node: NODE_EXTRA_CA_CERTS)",
                   files.certificate));
  settings.tls_certificate = std::move(files.certificate);
  settings.tls_key = std::move(files.key);
  return settings;
}

Status use_upstream(const Settings& settings, Service& service) {
  if (settings.upstream.empty()) return {};
  if (upstream::is_local(settings)) {
    service.answer_by(std::make_shared<upstream::LocalReplies>(upstream::local_upstream(settings), service));
    return {};
  }
  SYRINX_TRY(upstream::Upstream upstream, upstream::load_upstream(settings));
  SYRINX_TRY(std::shared_ptr<realtime::ReplySource> replies, upstream::ChatReplies::start(std::move(upstream)));
  service.answer_by(std::move(replies));
  return {};
}

// Requests that have begun may end; new ones are refused.
void drain(const Settings& settings, Service& service, HttpServer& transport) {
  service.drain();
  transport.drain();
  const Stopwatch watch;
  do {  // once at least: who has just connected is told
    std::this_thread::sleep_for(kTick);
  } while (transport.answering() > 0 && watch.elapsed_ms() < settings.drain_timeout_s * 1000);
}

}  // namespace

Status check_everything(const Settings& settings) {
  SYRINX_TRY_VOID(check(settings));
  SYRINX_TRY_VOID(upstream::check_upstream(settings));
  SYRINX_TRY_VOID(HttpServer::check_host(settings.host));
  for (const std::string& doubt : doubts(settings)) log_warning("{}", doubt);
  const auto keys = ApiKeys::load(settings);
  if (!keys) return tl::unexpected(keys.error());
  warn_of_readers(settings.api_key_file);
  warn_of_readers(settings.upstream_key_file);
  const auto identity = load_identity(settings);
  if (!identity) return tl::unexpected(identity.error());
  if (settings.tls_self_signed) {
    SYRINX_TRY(const UserPaths paths, user_paths());
    SYRINX_TRY_VOID(check_self_signed(paths.data + "/tls"));
  }
  if (!settings.upstream.empty() && !upstream::is_local(settings))
    if (const auto upstream = upstream::load_upstream(settings); !upstream) return tl::unexpected(upstream.error());
  for (const ModulePlan& plan : module_plans(settings))
    if (const Status checked = check_module_files(plan); !checked)
      return plan.place.front() == '\'' ? checked
                                        : fail(checked.error().code, "{}: {}", plan.place, checked.error().message);
  return Modules::check_budget(settings, module_file_bytes);
}

Status serve(const Settings& given, const Tell& tell) {
  catch_hangup();  // before anything else: it must end nobody's answer
  SYRINX_TRY_VOID(check_everything(given));
  SYRINX_TRY(const Settings settings, with_certificate(given, tell));
  give_back_what_is_freed();
  if (const Status room =
          make_room_for(static_cast<size_t>(settings.max_connections), static_cast<size_t>(settings.max_sessions));
      !room)
    log_warning("{}", room.error().message);
  SYRINX_TRY(ApiKeys keys, ApiKeys::load(settings));
  SYRINX_TRY(Identity identity, load_identity(settings));
  const char* const scheme = identity ? "https" : "http";
  std::optional<RequestLog> log;
  if (settings.log != "off") {
    log.emplace(STDERR_FILENO);
    SYRINX_TRY_VOID(log->start());
  }
  Service service(settings, std::move(keys), log ? &*log : nullptr);
  SYRINX_TRY_VOID(use_upstream(settings, service));
  SYRINX_TRY_VOID(service.start());
  SYRINX_TRY(const std::unique_ptr<HttpServer> transport,
             HttpServer::listen(limits_of(settings), service, wyoming_of(settings, service), std::move(identity)));
  if (settings.wyoming_port >= 0)
    tell(fmt::format("Wyoming at {}", address_of("tcp", settings, transport->protocol_port())));
  SYRINX_TRY_VOID(load_models(service, address_of(scheme, settings, transport->port()), tell));
  if (!cancel_requested()) tell(fmt::format("page: {}", page_of(scheme, settings, transport->port())));
  if (!cancel_requested()) notify_manager("READY=1\nSTATUS=Ready", kReadyPatience, cancel_flag());
  std::optional<Heartbeat> keeper;
  if (settings.weights_heartbeat) keep_weights(keeper);
  while (!cancel_requested()) {
    if (take_reload_request()) reload(settings, *transport, tell);
    service.modules().tend();
    std::this_thread::sleep_for(kTick);
  }
  const std::atomic<bool> never{false};
  notify_manager("STOPPING=1\nSTATUS=Answers that are under way may end", kStoppingPatience, never);
  drain(settings, service, *transport);
  transport->stop();
  return {};
}

}  // namespace syrinx::server
