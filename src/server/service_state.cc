// State of the service: health, readiness, metrics and models.
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "base/in_quotes.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/version.h"
#include "engine/speech/finish_reason.h"
#include "kernels/describe_targets.h"
#include "server/decode/request.h"
#include "server/openai/chat_request.h"
#include "server/openai/speech_request.h"
#include "server/openai/transcription_request.h"
#include "server/service.h"
#include "server/settings/model_id.h"

namespace syrinx::server {
namespace {

HttpReply json_reply(const Json& json) { return {.body = json.dump()}; }

Json json_list(const std::vector<std::string>& texts) {
  Json::Array list;
  for (const std::string& text : texts) list.emplace_back(text);
  return list;
}

HttpError no_free_slot(const std::string& what) {
  return {
      .status = 503, .message = what + "; ask again, or another server", .code = "no_free_slot", .retry_after_s = 1};
}

// A typing error in a proxy's readiness query must not pass for a free slot.
std::optional<HttpError> ready_misuse(std::string_view query) {
  constexpr std::array<std::string_view, 4> kTaken = {"slots=speech", "slots=recognition", "slots=chat", "slots=1"};
  while (!query.empty()) {
    const std::string_view asked = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(asked.size() + 1, query.size()));
    if (!asked.empty() && std::find(kTaken.begin(), kTaken.end(), asked) == kTaken.end())
      return HttpError{.status = 400,
                       .message = fmt::format("{} is nothing that /ready takes; ask for slots=speech, "
                                              "slots=recognition, slots=chat or slots=1",
                                              in_quotes(asked)),
                       .param = "slots"};
  }
  return std::nullopt;
}

HttpError no_such_slots(const char* kind) {
  return {.status = 503,
          .message = fmt::format("no model of this server is for {}, so it has no such slot; ask another one", kind),
          .code = "model_not_found"};
}

struct SlotCounts {
  size_t all = 0, free = 0, for_recordings = 0;
};

SlotCounts count_slots(const Modules& modules, ModuleKind kind) {
  SlotCounts counts;
  for (const auto& module : modules.all()) {
    if (module->plan.kind != kind) continue;
    counts.all += module->slots.size();
    counts.free += module->slots.free(SlotPool::Work::kLive);
    counts.for_recordings += module->slots.free(SlotPool::Work::kBatch);
  }
  return counts;
}

Json shown_modules(const Modules& modules) {
  Json::Array list;
  for (const auto& module : modules.all()) {
    Json item;
    item.set("id", module->plan.id);
    item.set("kind", kind_name(module->plan.kind));
    item.set("state", modules.figures(*module).state);
    item.set("slots", module->slots.size());
    item.set("free_slots", module->slots.free(SlotPool::Work::kLive));
    list.push_back(std::move(item));
  }
  return list;
}

size_t open_descriptors() {
  std::error_code error;
  const std::filesystem::directory_iterator begin("/proc/self/fd", error);
  return error ? 0 : static_cast<size_t>(std::distance(begin, std::filesystem::directory_iterator()));
}

double most_descriptors() {
  struct rlimit limit {};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<double>(limit.rlim_cur) : 0;
}

}  // namespace

HttpReply Service::health(HttpRequest& /*request*/) {
  double stuck_s = 0;
  for (const auto& module : modules_.all()) stuck_s = std::max(stuck_s, module->slots.engine_silent_s());
  if (stuck_s > settings_.stuck_after_s)
    return error_reply(
        {.status = 503,
         .message = fmt::format("the engine has given nothing for {:.0f} s; restart the server", stuck_s),
         .code = "stuck"});
  Json json;
  json.set("status", "ok");
  json.set("version", version());
  return json_reply(json);
}

HttpReply Service::ready_or_not(HttpRequest& request) {
  if (const auto misuse = ready_misuse(request.query)) return error_reply(*misuse);
  const State state = state_;
  if (state == State::kLoading)
    return error_reply(
        {.status = 503, .message = "the model is being loaded; ask again", .code = "loading", .retry_after_s = 1});
  if (state == State::kDraining)
    return error_reply({.status = 503,
                        .message = "the server is going down; ask another one",
                        .code = "draining",
                        .retry_after_s = 1});
  const std::string_view wanted = request.query_value("slots");
  Json json;
  json.set("status", "ready");
  json.set("answers", !settings_.upstream.empty());
  bool any_free = false;
  for (const ModuleKind kind : kModuleKinds) {
    const SlotCounts counts = count_slots(modules_, kind);
    const bool hears = kind == ModuleKind::kRecognition;
    if (wanted == kind_name(kind) && counts.all == 0) return error_reply(no_such_slots(kind_name(kind)));
    // For proxies of recordings: a recording that is refused after its upload would have to be sent again.
    if (wanted == kind_name(kind) && (hears ? counts.for_recordings : counts.free) == 0)
      return error_reply(
          no_free_slot(fmt::format("no slot of {} is free{}", kind_name(kind), hears ? " for a recording" : "")));
    any_free = any_free || counts.free > 0;
    Json shown;
    shown.set("slots", counts.all);
    shown.set("free_slots", counts.free);
    if (hears) shown.set("free_for_recordings", counts.for_recordings);
    json.set(kind_name(kind), std::move(shown));
  }
  if (wanted == "1" && !any_free) return error_reply(no_free_slot("no slot is free"));
  json.set("modules", shown_modules(modules_));
  return json_reply(json);
}

// Counters that have a rate from the first event on; a model's begin when it is loaded.
void Service::begin_counters() {
  for (const char* reason : {"audio_backlog", "connections", "draining", "loading", "memory_budget", "no_free_slot",
                             "not_loaded", "overloaded", "uploads_full"})
    metrics_.begin("syrinx_rejected_total", {{"reason", reason}});
  if (!settings_.tls_certificate.empty()) metrics_.begin("syrinx_tls_handshakes_failed_total", {});
}

void Service::begin_model_counters(const std::string& id, ModuleKind kind) {
  if (kind == ModuleKind::kChat) {
    for (const char* reason : {"cancelled", "error", "length", "refused", "stop"})
      metrics_.begin("syrinx_answers_total", {{"model", id}, {"reason", reason}});
    for (const char* token : {"answer", "cached", "prompt"})
      metrics_.begin("syrinx_tokens_total", {{"model", id}, {"kind", token}});
    metrics_.begin("syrinx_time_to_first_token_seconds", {{"model", id}});
    return;
  }
  const bool speaks = kind == ModuleKind::kSpeech;
  metrics_.begin("syrinx_queue_delay_seconds", {{"model", id}});
  metrics_.begin("syrinx_audio_seconds_total", {{"model", id}, {"direction", speaks ? "out" : "in"}});
  if (!speaks) return metrics_.begin("syrinx_time_to_first_word_seconds", {{"model", id}});
  for (const char* reason : {"cancelled", "error"})
    metrics_.begin("syrinx_generation_stopped_total", {{"reason", reason}});
  for (const FinishReason reason : kFinishReasons) {
    const char* const name = finish_reason_name(reason);
    metrics_.begin("syrinx_generation_stopped_total", {{"reason", name}});
    if (reason != FinishReason::kSpoken)
      metrics_.begin("syrinx_speech_pieces_cut_total", {{"model", id}, {"reason", name}});
  }
  metrics_.begin("syrinx_speech_pieces_retried_total", {{"model", id}});
  metrics_.begin("syrinx_time_to_first_audio_seconds", {{"model", id}});
  metrics_.begin("syrinx_compute_seconds_total", {{"model", id}});
}

void Service::set_gauges() {
  metrics_.set("syrinx_build_info",
               {{"version", version()}, {"backend", "cpu"}, {"simd", kernels::describe_chosen_target()}}, 1);
  metrics_.set("syrinx_log_lines_dropped", {}, log_ != nullptr ? static_cast<double>(log_->dropped()) : 0);
  metrics_.set("syrinx_live_load_limit", {}, live_.limit());
  metrics_.set("syrinx_realtime_sessions", {}, static_cast<double>(sessions_.busy()));
  metrics_.set("syrinx_upload_bytes", {}, static_cast<double>(upload_room_.held()));
  metrics_.set_total("process_cpu_seconds_total", {}, process_cpu_seconds());
  metrics_.set("process_virtual_memory_bytes", {}, static_cast<double>(virtual_memory_bytes()));
  metrics_.set("process_resident_memory_bytes", {}, static_cast<double>(current_rss_bytes()));
  metrics_.set("process_open_fds", {}, static_cast<double>(open_descriptors()));
  metrics_.set("process_max_fds", {}, most_descriptors());
  metrics_.set("process_start_time_seconds", {}, started_s_);
  if (state_ == State::kLoading) return;
  for (const auto& module : modules_.all()) set_module_gauges(*module);
}

void Service::set_module_gauges(const Module& module) {
  const std::string& id = module.plan.id;
  const Modules::Figures figures = modules_.figures(module);
  const Models models = modules_.loaded(module);
  metrics_.set("syrinx_model_loaded", {{"model", id}}, models.any() ? 1 : 0);
  metrics_.set_total("syrinx_model_loads_total", {{"model", id}}, static_cast<double>(figures.loads));
  metrics_.set_total("syrinx_model_unloads_total", {{"model", id}}, static_cast<double>(figures.unloads));
  if (!models.any() && figures.loads == 0) return;
  set_slot_gauges(id, module.slots);
  if (models.speech) {
    set_engine_figures(id, models.speech->steps(), models.speech->engine().waiting());
    set_live_load(id, module.slots);
    metrics_.set("syrinx_uploaded_voices", {{"model", id}}, static_cast<double>(models.speech->shelf().size()));
  }
  if (models.recognition) {
    set_engine_figures(id, models.recognition->steps(), models.recognition->recogniser().waiting());
    set_live_load(id, module.slots);
    metrics_.set("syrinx_audio_backlog_seconds", {{"model", id}},
                 static_cast<double>(waiting_samples_) / kRecognitionRateHz);
  }
  if (models.chat) set_engine_figures(id, models.chat->steps(), models.chat->engine().waiting());
}

void Service::set_slot_gauges(const std::string& id, const SlotPool& slots) {
  const size_t busy = slots.busy();
  metrics_.set("syrinx_slots", {{"model", id}, {"state", "busy"}}, static_cast<double>(busy));
  metrics_.set("syrinx_slots", {{"model", id}, {"state", "free"}}, static_cast<double>(slots.size() - busy));
  metrics_.set("syrinx_sessions_active", {{"model", id}}, static_cast<double>(busy));
}

void Service::set_engine_figures(const std::string& id, const StepFigures& steps, size_t waiting) {
  metrics_.set("syrinx_queue_depth", {{"model", id}}, static_cast<double>(waiting));
  metrics_.set_steps("syrinx_step_duration_seconds", {{"model", id}}, steps);
  metrics_.set_total("syrinx_step_deadline_missed_total", {{"model", id}}, static_cast<double>(steps.late));
  metrics_.set("syrinx_longest_step_seconds", {{"model", id}}, static_cast<double>(steps.longest_ns) * 1e-9);
}

void Service::set_live_load(const std::string& id, const SlotPool& slots) {
  const LiveAdmission::Figures figures = live_.figures(slots);
  metrics_.set("syrinx_live_load", {{"model", id}}, figures.load);
  metrics_.set_total("syrinx_live_streams_admitted_total", {{"model", id}}, static_cast<double>(figures.admitted));
}

HttpReply Service::metrics_page(HttpRequest& /*request*/) {
  set_gauges();
  return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics_.text()};
}

// A model that is not loaded does not tell its languages.
Json::Array Service::listed_models(std::optional<ModuleKind> kind) const {
  Json::Array list;
  for (const auto& module : modules_.all()) {
    if (kind && module->plan.kind != *kind) continue;
    const Models models = modules_.loaded(*module);
    std::vector<std::string> languages, ignored;  // of the latter first those that no model of the kind heeds
    const char* task = "";
    const auto describe = [&](const auto& model, const char* does, std::vector<std::string> unheeded) {
      task = does;
      ignored = std::move(unheeded);
      if (!model) return;
      languages = model->languages();
      for (const std::string& field : model->unheeded_fields()) ignored.push_back(field);
    };
    switch (module->plan.kind) {
      case ModuleKind::kSpeech: describe(models.speech, "text-to-speech", unheeded_speech_fields()); break;
      case ModuleKind::kRecognition:
        describe(models.recognition, "automatic-speech-recognition", unheeded_transcription_fields());
        break;
      case ModuleKind::kChat: describe(models.chat, "text-generation", unheeded_chat_fields()); break;
    }
    Json item;
    item.set("id", module->plan.id);
    item.set("object", "model");
    item.set("created", static_cast<int64_t>(started_s_));
    item.set("owned_by", "syrinx");
    item.set("task", task);
    item.set("loaded", models.any());
    item.set("languages", json_list(languages));
    item.set("unsupported_parameters", json_list(ignored));
    list.push_back(std::move(item));
  }
  return list;
}

HttpReply Service::models(HttpRequest& /*request*/) {
  if (const auto closed = why_closed(/*to_new_work=*/false)) return error_reply(*closed);
  Json json;
  json.set("object", "list");
  json.set("data", listed_models());
  return json_reply(json);
}

// For Open WebUI, which looks here for what may speak.
HttpReply Service::speaking_models(HttpRequest& /*request*/) {
  if (const auto closed = why_closed(/*to_new_work=*/false)) return error_reply(*closed);
  Json json;
  json.set("models", listed_models(ModuleKind::kSpeech));
  return json_reply(json);
}

// One of the models, by its own id: other names for it are no models of their own.
HttpReply Service::model(HttpRequest& request) {
  if (const auto closed = why_closed(/*to_new_work=*/false)) return error_reply(*closed);
  const std::string id = decode::named_model(request.path);
  for (const Json& item : listed_models())
    if (*item.find("id")->string() == id) return json_reply(item);
  return error_reply(no_model(true, "", id));
}

}  // namespace syrinx::server
