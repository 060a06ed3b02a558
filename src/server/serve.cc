#include "server/serve.h"

#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/signals.h"
#include "server/access.h"
#include "server/http_server.h"
#include "server/service.h"

namespace syrinx::server {
namespace {

constexpr std::chrono::milliseconds kTick{20};  // how soon a signal is heeded

static_assert(HttpLimits::kMaxHeaderBytes == 60 * 1024);  // the bound of max_header_kb

HttpLimits limits_of(const Settings& settings) {
  return {.host = settings.host,
          .port = static_cast<int>(settings.port),
          .max_header_bytes = static_cast<size_t>(settings.max_header_kb) * 1024,
          .max_connections = static_cast<size_t>(settings.max_connections),
          .max_connections_per_address = static_cast<size_t>(settings.max_connections_per_address),
          .idle_timeout_s = settings.idle_timeout_s,
          .request_timeout_s = settings.request_timeout_s,
          .stalled_reader_s = settings.stalled_reader_s};
}

std::string address_of(const Settings& settings, int port) {
  const bool six = settings.host.find(':') != std::string::npos;
  return fmt::format("http://{}{}{}:{}", six ? "[" : "", settings.host, six ? "]" : "", port);
}

// What has begun may end; what has not is refused.
void drain(const Settings& settings, Service& service, HttpServer& transport) {
  service.drain();
  transport.drain();
  const Stopwatch watch;
  while (transport.answering() > 0 && watch.elapsed_ms() < settings.drain_timeout_s * 1000)
    std::this_thread::sleep_for(kTick);
}

}  // namespace

Status check_everything(const Settings& settings) {
  SYRINX_TRY_VOID(check(settings));
  const auto keys = ApiKeys::load(settings);
  if (!keys) return tl::unexpected(keys.error());
  return SpeechModel::check(settings);
}

Status serve(const Settings& settings, const std::function<void(const std::string&)>& tell) {
  SYRINX_TRY_VOID(check_everything(settings));
  SYRINX_TRY(ApiKeys keys, ApiKeys::load(settings));
  std::optional<RequestLog> log;
  if (settings.log != "off") {
    log.emplace(STDERR_FILENO);
    SYRINX_TRY_VOID(log->start());
  }
  Service service(settings, std::move(keys), log ? &*log : nullptr);
  SYRINX_TRY_VOID(service.start());
  SYRINX_TRY(const std::unique_ptr<HttpServer> transport, HttpServer::listen(limits_of(settings), service));
  tell(fmt::format("loading {}", settings.speech_model));
  auto model = SpeechModel::load(settings);
  if (!model) return tl::unexpected(std::move(model).error());
  service.ready(*model);
  tell(fmt::format("{} speaks at {}/v1/audio/speech, {} texts at once", (*model)->id(),
                   address_of(settings, transport->port()), settings.speech_slots));
  while (!cancel_requested()) std::this_thread::sleep_for(kTick);
  drain(settings, service, *transport);
  transport->stop();
  return {};
}

}  // namespace syrinx::server
