#include "server/service.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/in_quotes.h"
#include "base/json.h"
#include "server/decode/request.h"
#include "server/openai/http_speech_answer.h"
#include "server/openai/speech_request.h"
#include "server/openai/transcription_job.h"
#include "server/page.h"
#include "server/realtime/handshake.h"
#include "server/realtime/session.h"
#include "server/settings/model_id.h"
#include "server/upstream/upstream_settings.h"

namespace syrinx::server {
namespace {

constexpr size_t kMegabyte = size_t{1} << 20;

double unix_time_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::unique_ptr<HttpReply> refusal(const HttpError& error) { return std::make_unique<HttpReply>(error_reply(error)); }

// Names of headers between commas, and no more of them than a browser sends.
bool is_header_list(std::string_view text) {
  constexpr size_t kMaxBytes = 2048;
  return !text.empty() && text.size() <= kMaxBytes && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == ',' ||
           c == ' ';
  });
}

// Balancers, Kubernetes, Prometheus and the page ask several times a second for as long as the server lives, and would
// fill the log.  That there is no slot is no fault; an engine that is stuck is one.
bool is_look(std::string_view route, int status) {
  if (route == "/ready") return status == 200 || status == 503;
  return (route == "/health" || route == "/metrics") && status == 200;
}

}  // namespace

std::span<const Service::Route> Service::routes() {
  static constexpr std::array kRoutes = {
      Route{"GET", "/health", &Service::health, false, Body::kNone},
      Route{"GET", "/ready", &Service::ready_or_not, false, Body::kNone},
      Route{"GET", "/metrics", &Service::metrics_page, true, Body::kNone},
      Route{"GET", "/openapi.json", &Service::openapi, false, Body::kNone},
      Route{"GET", "/", &Service::page, false, Body::kNone},
      Route{"GET", "/assets/{name}", &Service::page, false, Body::kNone},
      Route{"GET", "/v1/models", &Service::models, true, Body::kNone},
      Route{"GET", "/v1/models/{id}", &Service::model, true, Body::kNone},
      Route{"GET", "/v1/audio/models", &Service::speaking_models, true, Body::kNone},
      Route{"GET", "/v1/audio/voices", &Service::voices, true, Body::kNone},
      Route{"POST", "/v1/audio/voices", &Service::upload_voice, true, Body::kVoice},
      Route{"GET", "/v1/audio/voices/{id}", &Service::voice, true, Body::kNone},
      Route{"DELETE", "/v1/audio/voices/{id}", &Service::delete_voice, true, Body::kNone},
      Route{"POST", "/v1/audio/speech", &Service::speech, true, Body::kJson},
      Route{"POST", "/v1/chat/completions", &Service::chat, true, Body::kJson},
      Route{"GET", "/v1/realtime", &Service::realtime, true, Body::kNone},
      Route{"POST", "/v1/audio/transcriptions", &Service::transcription, true, Body::kUpload},
      Route{"POST", "/v1/audio/translations", &Service::translation, true, Body::kUpload},
      Route{"GET", "/v2/decode/stream/{model}", &Service::decode_stream, true, Body::kNone, decode::error_body},
      Route{"POST", "/v2/decode/batch/{model}", &Service::decode_batch, true, Body::kSound, decode::error_body},
  };
  return kRoutes;
}

// A route with a name behind its last slash is at every such name.
bool Service::Route::is_at(std::string_view asked) const {
  const std::string_view own = path;
  const size_t named = own.find('{');
  if (named == std::string_view::npos) return asked == own;
  return asked.starts_with(own.substr(0, named)) && asked.find('/', named) == std::string_view::npos;
}

std::vector<RoutePolicy> Service::policies() {
  std::vector<RoutePolicy> policies;
  for (const Route& route : routes())
    policies.push_back({route.method, route.path, route.needs_key, route.body != Body::kNone});
  return policies;
}

const Service::Route* Service::find_route(const HttpRequest& request) {
  const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  for (const Route& route : routes())
    if (route.is_at(request.path) && method == route.method) return &route;
  return nullptr;
}

// The route at that path, whatever the method.
const Service::Route* Service::find_path(std::string_view path) {
  for (const Route& route : routes())
    if (route.is_at(path)) return &route;
  return nullptr;
}

Service::Service(const Settings& settings, ApiKeys keys, RequestLog* log)
    : settings_(settings),
      keys_(std::move(keys)),
      log_(log),
      started_s_(unix_time_s()),
      upload_room_(static_cast<size_t>(settings.max_uploads_mb) * kMegabyte, upload_share_bytes(settings)),
      replies_(std::make_shared<realtime::ReadAloud>()),
      live_(settings.live_load),
      modules_(settings, {.load = load_module,
                          .file_bytes = module_file_bytes,
                          .loaded = [this](Module& module, const Models& models) { model_loaded(module, models); },
                          .unloads = [this](Module& module, const Models&) { model_unloads(module); }}),
      voice_slot_(modules_.first(ModuleKind::kSpeech) != nullptr ? 1 : 0),
      sessions_(static_cast<size_t>(settings.max_sessions)) {
  begin_counters();
}

Service::~Service() = default;

Status Service::start() {
  SYRINX_TRY_VOID(modules_.start());
  SYRINX_TRY_VOID(voice_slot_.start());
  return sessions_.start();
}

void Service::ready() {
  State loading = State::kLoading;
  state_.compare_exchange_strong(loading, State::kReady);
}

void Service::ready(std::shared_ptr<const SpeechModel> speech, std::shared_ptr<const RecognitionModel> recognition,
                    std::shared_ptr<const ChatModel> chat) {
  const auto give = [this](ModuleKind kind, Models models) {
    Module* const module = modules_.first(kind);
    if (module != nullptr && models.any()) return modules_.give(*module, std::move(models));
    modules_.drop(kind);
  };
  give(ModuleKind::kSpeech, {.speech = std::move(speech)});
  give(ModuleKind::kRecognition, {.recognition = std::move(recognition)});
  give(ModuleKind::kChat, {.chat = std::move(chat)});
  ready();
}

void Service::answer_by(std::shared_ptr<realtime::ReplySource> replies) {
  replies_ = std::move(replies);
  answers_turns_ = true;
}

void Service::drain() {
  state_ = State::kDraining;
  modules_.close();
}

HttpService::Admission Service::admit(const HttpRequest& head) {
  Admission admission;
  const std::string_view origin = head.header("Origin");
  if (!origin.empty() && is_listed(origin, settings_.cors_origins)) {
    admission.headers.push_back({"Access-Control-Allow-Origin", std::string(origin)});
    admission.headers.push_back({"Vary", "Origin"});
    admission.headers.push_back(
        {"Access-Control-Expose-Headers", "X-Request-Id, X-Syrinx-Ignored, X-Syrinx-Waited, Retry-After"});
  }
  admission.refusal = refuse_early(head);
  if (const Route* const there = find_path(head.path)) admission.error_form = there->error_form;
  const Route* const route = find_route(head);
  if (route == nullptr || admission.refusal) return admission;
  if (route->body == Body::kNone) return admission;
  route->body == Body::kJson ? admit_json(head, admission) : admit_upload(head, route->body, admission);
  return admission;
}

// In this order: a page that may not ask learns nothing, and a key is asked for before a body is read.
std::unique_ptr<HttpReply> Service::refuse_early(const HttpRequest& head) const {
  if (!may_ask(head.header("Origin"), head.header("Host"), settings_.cors_origins, keys_.asked_for()))
    return refusal(
        {.status = 403,
         .message = fmt::format("pages of {} may not ask this server; the operator can list it in cors_origins",
                                in_quotes(head.header("Origin"))),
         .code = "origin_not_allowed"});
  if (is_loopback(settings_.host) && !keys_.asked_for() && !is_own_host(head.header("Host"), settings_.cors_origins))
    return refusal({.status = 403,
                    .message = fmt::format("this server does not go by the name of {}; the operator can list it in "
                                           "cors_origins, or ask for API keys",
                                           in_quotes(head.header("Host"))),
                    .code = "host_not_allowed"});
  if (head.method == "OPTIONS" && !head.header("Access-Control-Request-Method").empty()) {
    HttpReply preflight{.status = 204, .type = ""};
    preflight.headers.push_back({"Access-Control-Allow-Methods", "GET, POST, DELETE"});
    // Those that it names, as clients add their own: none of them means anything here but these.
    const std::string_view named = head.header("Access-Control-Request-Headers");
    preflight.headers.push_back({"Access-Control-Allow-Headers", is_header_list(named)
                                                                     ? std::string(named)
                                                                     : "Authorization, Content-Type, X-Request-Id"});
    preflight.headers.push_back({"Access-Control-Max-Age", "600"});
    return std::make_unique<HttpReply>(std::move(preflight));
  }
  if (const Route* const route = find_route(head)) {
    if (!route->needs_key || !keys_.asked_for() || bears_key(head)) return nullptr;
    return refusal({.status = 401,
                    .message = "the request bears no valid API key; send the header `Authorization: Bearer KEY`",
                    .code = "invalid_api_key"});
  }
  if (auto reply = wrong_method(head)) return reply;
  return refusal(
      {.status = 404,
       .message = fmt::format("there is nothing at {}; /openapi.json lists what there is", in_quotes(head.path)),
       .code = "unknown_url"});
}

// Null: no route is there, whatever the method.
std::unique_ptr<HttpReply> Service::wrong_method(const HttpRequest& head) {
  std::string allowed;
  const char* path = "";
  for (const Route& route : routes()) {
    if (!route.is_at(head.path)) continue;
    allowed += (allowed.empty() ? "" : ", ") + std::string(route.method);
    path = route.path;
  }
  if (allowed.empty()) return nullptr;
  HttpReply reply = error_reply({.status = 405, .message = fmt::format("{} takes {} alone", path, allowed)});
  reply.headers.push_back({"Allow", allowed});
  return std::make_unique<HttpReply>(std::move(reply));
}

bool Service::bears_key(const HttpRequest& head) const {
  const std::string offered = realtime::is_upgrade(head) ? realtime::offered_key(head) : "";
  if (!offered.empty()) return keys_.allow("Bearer " + offered);
  return keys_.allow(head.header("Authorization"));
}

HttpReply Service::answer(HttpRequest& request) { return (this->*find_route(request)->handler)(request); }

// Never what a user sent: the route as it is written above, not its path, and no query.
void Service::answered(const HttpRequest& request, const Answered& answered) {
  const Route* const route = find_path(request.path);  // a 405's, too
  this->answered({.route = route != nullptr ? route->path : "other",
                  .id = request.id,
                  .arrived_ns = request.arrived_ns,
                  .waited_s = request.waited_s},
                 answered);
}

void Service::answered(const Asked& asked, const Answered& answered) {
  const char* const path = asked.route;
  const double took_s = static_cast<double>(system_clock().now_ns() - asked.arrived_ns) * 1e-9;
  metrics_.add("syrinx_requests_total", {{"route", path}, {"code", fmt::format("{}", answered.status)}});
  metrics_.observe("syrinx_request_duration_seconds", {{"route", path}}, took_s);
  if (log_ == nullptr || (settings_.log == "error" && answered.status < 500)) return;
  if (settings_.log != "all" && is_look(path, answered.status)) return;
  Json line;
  line.set("time", utc_now());
  line.set("event", "request");
  line.set("id", asked.id);
  line.set("route", path);
  line.set("status", answered.status);
  line.set("ms", milliseconds(took_s));
  line.set("bytes", static_cast<int64_t>(answered.bytes));
  if (asked.waited_s > 0) line.set("waited_ms", milliseconds(asked.waited_s));
  log_->write(line.dump());
}

void Service::refused() { metrics_.add("syrinx_rejected_total", {{"reason", "connections"}}); }

void Service::handshake_failed() { metrics_.add("syrinx_tls_handshakes_failed_total", {}); }

HttpError Service::unavailable(const char* reason, std::string message) {
  metrics_.add("syrinx_rejected_total", {{"reason", reason}});
  return {.status = 503, .message = std::move(message), .code = reason, .retry_after_s = 1};
}

HttpReply Service::openapi(HttpRequest& /*request*/) {
  static const std::string description = openapi_description(policies());
  return {.body = description};
}

HttpReply Service::page(HttpRequest& request) { return page_reply(request); }

HttpReply Service::speech(HttpRequest& request) {
  SpeechLimits limits{.max_text_characters = static_cast<size_t>(settings_.max_text_characters)};
  std::string name;
  if (has_choice(ModuleKind::kSpeech)) {
    const auto read = parse_speech_request(request.body, limits);
    if (!read) return error_reply(read.error());
    name = read->model;
  }
  auto offered = offer_to_new(ModuleKind::kSpeech, name);
  if (!offered) return not_offered(request, std::move(offered).error());
  limits.family = &offered->models.speech->family();
  limits.lacking = offered->models.speech->lacking();
  limits.strict = settings_.strict;
  const auto parsed = parse_speech_request(request.body, limits);
  if (!parsed) return error_reply(parsed.error());
  request.free_body();
  SpeechOrder order{.request = *parsed, .id = request.id, .arrived_ns = request.arrived_ns};
  const StartedSpeech job = start_speech(std::move(order), std::make_unique<HttpSpeechAnswer>(*parsed));
  if (!job) return error_reply(job.error());
  return {.stream = (*job)->reply()};
}

std::optional<HttpError> Service::start_job(SlotPool& slots, const std::shared_ptr<SlotJob>& job, SlotPool::Work work) {
  if (slots.try_start([job](SlotWatch& watch) { job->run(watch); }, [job] { job->end(); }, work)) return std::nullopt;
  return all_busy(slots, work);
}

Host::StartedSpeech Service::start_speech(SpeechOrder order, std::unique_ptr<SpeechAnswer> answer) {
  if (auto closed = why_closed(/*to_new_work=*/true)) return tl::unexpected(std::move(*closed));
  const SpeechRequest& request = order.request;
  auto offered = offer_now(ModuleKind::kSpeech, request.model);
  if (!offered) return tl::unexpected(std::move(offered).error());
  auto speech = std::move(offered->models.speech);
  auto voice = speech->find_voice(request.voice, request.language);
  if (!voice) return tl::unexpected(std::move(voice).error());
  order.voice = std::move(*voice);
  if (speech->chooses_language() && !request.language.empty()) order.request.knobs.set(kLanguageKnob, request.language);
  const bool is_whole = request.whole;  // it has no listener before all of it is there
  auto job = std::make_shared<SpeechJob>(std::move(speech), std::move(order), std::move(answer), reports());
  if (auto refused =
          is_whole ? start_job(offered->module->slots, job, SlotPool::Work::kBatch) : start_live(*offered->module, job))
    return tl::unexpected(std::move(*refused));
  return job;
}

HttpError Service::all_busy(size_t count, const char* what, const char* of) {
  const std::string all =
      count == 1 ? fmt::format("the only {}{} is", what, of) : fmt::format("all {} {}s{} are", count, what, of);
  return unavailable("no_free_slot", all + " busy; ask again in a second, or another server");
}

// Counts all slots, unless some are closed to such work.
HttpError Service::all_busy(const SlotPool& slots, SlotPool::Work work) {
  const size_t count = slots.size(work);
  return all_busy(count, "slot", count < slots.size() ? " for recordings" : "");
}

tl::expected<std::shared_ptr<ReplyStream>, HttpError> Service::start_recognition(const MakeJob& make) {
  if (auto closed = why_closed(/*to_new_work=*/true)) return tl::unexpected(std::move(*closed));
  auto offered = offer_now(ModuleKind::kRecognition, "");
  if (!offered) return tl::unexpected(std::move(offered).error());
  Module& module = *offered->module;
  const bool is_live = offered->models.recognition->recogniser().hears_streams_as_recordings();
  const std::shared_ptr<SlotJob> job = make(std::move(offered->models.recognition), reports());
  if (auto refused = is_live ? start_live(module, job) : start_job(module.slots, job, SlotPool::Work::kWhole))
    return tl::unexpected(std::move(*refused));
  return job->reply();
}

JobReports Service::reports() {
  return {
      .metrics = metrics_, .log = log_, .faults_alone = settings_.log == "error", .waiting_samples = &waiting_samples_};
}

HttpReply Service::transcription(HttpRequest& request) { return transcribe(request, /*translated=*/false); }

HttpReply Service::translation(HttpRequest& request) { return transcribe(request, /*translated=*/true); }

// The form is read on the slot, too: it may be long.  An upload that was admitted before the server began to end is
// work under way.
HttpReply Service::transcribe(HttpRequest& request, bool translated) {
  auto offered = offer(ModuleKind::kRecognition, named_model(ModuleKind::kRecognition, request));
  if (!offered) return std::move(offered).error();
  const auto job =
      std::make_shared<TranscriptionJob>(std::move(offered->models.recognition),
                                         TranscriptionOrder{.type = std::string(request.header("Content-Type")),
                                                            .body = std::move(request.body),
                                                            .hold = std::move(request.hold),
                                                            .translated = translated,
                                                            .strict = settings_.strict,
                                                            .max_recording_s = settings_.max_recording_s,
                                                            .id = request.id,
                                                            .arrived_ns = request.arrived_ns},
                                         reports());
  if (const auto refused = start_job(offered->module->slots, job, SlotPool::Work::kBatch)) return error_reply(*refused);
  return {.stream = job->reply()};
}

}  // namespace syrinx::server
