// The modules: requests find theirs, wait while it is loaded, and are told where there is none.
#include <utility>

#include "base/in_quotes.h"
#include "base/json.h"
#include "server/http/multipart.h"
#include "server/service.h"
#include "server/settings/model_id.h"

namespace syrinx::server {
namespace {

const char* deed_of(ModuleKind kind) {
  switch (kind) {
    case ModuleKind::kSpeech: return "speaks";
    case ModuleKind::kRecognition: return "recognises speech";
    case ModuleKind::kChat: break;
  }
  return "answers conversations";
}

// The field of a form; what is wrong with the form its parser tells.
std::string model_field(const HttpRequest& request) {
  if (const auto parts = parse_multipart(request.header("Content-Type"), request.body))
    for (const FormPart& part : *parts)
      if (part.name == "model") return std::string(part.content);
  return "";
}

}  // namespace

std::optional<HttpError> Service::why_closed(bool to_new_work) {
  if (to_new_work && state_ == State::kDraining)
    return unavailable("draining", "the server is going down; ask another one");
  if (state_ == State::kLoading) return unavailable("loading", "the model is being loaded; ask again in a second");
  return std::nullopt;
}

HttpError Service::no_module(ModuleKind kind, std::string_view name) const {
  return no_model(modules_.first(kind) != nullptr, deed_of(kind), name);
}

tl::expected<Service::Offer, HttpReply> Service::offer(ModuleKind kind, std::string_view name) {
  if (const auto closed = why_closed(/*to_new_work=*/false)) return tl::unexpected(error_reply(*closed));
  Module* const module = modules_.find(kind, name);
  if (module == nullptr) return tl::unexpected(error_reply(no_module(kind, name)));
  Modules::Asked asked = modules_.ask(*module);
  if (asked.refusal) {
    metrics_.add("syrinx_rejected_total", {{"reason", asked.refusal->code}});
    return tl::unexpected(error_reply(*asked.refusal));
  }
  if (asked.until) return tl::unexpected(HttpReply{.until = std::move(asked.until)});
  return Offer{module, std::move(asked.models)};
}

tl::expected<Service::Offer, HttpReply> Service::offer_to_new(ModuleKind kind, std::string_view name) {
  if (const auto closed = why_closed(/*to_new_work=*/true)) return tl::unexpected(error_reply(*closed));
  return offer(kind, name);
}

// A request that waits keeps its body.
HttpReply Service::not_offered(HttpRequest& request, HttpReply reply) {
  if (!reply.until) request.free_body();
  return reply;
}

tl::expected<Service::Offer, HttpError> Service::offer_now(ModuleKind kind, std::string_view name) {
  auto offered = offer(kind, name);
  if (offered) return std::move(*offered);
  if (offered.error().error) return tl::unexpected(*offered.error().error);
  return tl::unexpected(unavailable("loading", "the model is being loaded; ask again in a second"));
}

// As `?model=NAME` chooses.
tl::expected<Service::Offer, HttpReply> Service::offer_of_query(ModuleKind kind, const HttpRequest& request) {
  const auto name = percent_decoded(request.query_value("model"), /*plus_is_blank=*/true);
  if (name) return offer(kind, *name);
  return tl::unexpected(error_reply({.status = 400,
                                     .message = "'model' in the address is badly coded; write %25 for a percent sign",
                                     .param = "model"}));
}

// Else the first module is there, and the job compares the name.
bool Service::has_choice(ModuleKind kind) const {
  const Module* const first = modules_.first(kind);
  return modules_.count(kind) > 1 || (first != nullptr && !modules_.loaded(*first).any());
}

// Read here only where it decides something: a form may be long.
std::string Service::named_model(ModuleKind kind, const HttpRequest& request) const {
  return has_choice(kind) ? model_field(request) : "";
}

// Wyoming's modules are loaded at the start and stay.
tl::expected<Models, HttpError> Service::loaded_models() {
  if (auto closed = why_closed(/*to_new_work=*/false)) return tl::unexpected(std::move(*closed));
  Models models;
  if (const Module* const speech = modules_.first(ModuleKind::kSpeech)) models.speech = modules_.loaded(*speech).speech;
  if (const Module* const recognition = modules_.first(ModuleKind::kRecognition))
    models.recognition = modules_.loaded(*recognition).recognition;
  return models;
}

void Service::model_loaded(Module& module, const Models& models) {
  const std::string& id = module.plan.id;
  double load_ms = 0, warm_up_ms = 0;
  if (models.speech) load_ms = models.speech->engine().load_ms();
  if (models.recognition) {
    load_ms = models.recognition->recogniser().load_ms();
    warm_up_ms = models.recognition->warm_up_ms();
  }
  if (models.chat) {
    load_ms = models.chat->engine().load_ms();
    warm_up_ms = models.chat->warm_up_ms();
  }
  metrics_.set("syrinx_model_load_seconds", {{"model", id}}, load_ms / 1000);
  if (!models.speech) metrics_.set("syrinx_model_warm_up_seconds", {{"model", id}}, warm_up_ms / 1000);
  metrics_.set("syrinx_model_memory_bytes", {{"model", id}}, static_cast<double>(models.memory_bytes()));
  measure_load(module, models);
  begin_model_counters(id, module.plan.kind);
  log_module("model_loaded", module, load_ms + warm_up_ms, models.memory_bytes());
}

void Service::model_unloads(const Module& module) {
  live_.remove(module.slots);
  for (const char* gauge : {"syrinx_model_memory_bytes", "syrinx_queue_depth"})
    metrics_.set(gauge, {{"model", module.plan.id}}, 0);
  if (module.plan.kind != ModuleKind::kChat) metrics_.set("syrinx_live_load", {{"model", module.plan.id}}, 0);
  log_module("model_unloaded", module, 0, 0);
}

// A module that stays makes no line.
void Service::log_module(const char* event, const Module& module, double ms, uint64_t memory_bytes) {
  if (log_ == nullptr || settings_.log == "error") return;
  if (!module.plan.loads_at_first_use && module.plan.keep_alive_s < 0) return;
  Json line;
  line.set("time", utc_now());
  line.set("event", event);
  line.set("model", module.plan.id);
  if (ms > 0) line.set("ms", milliseconds(ms / 1000));
  if (memory_bytes > 0) line.set("memory_bytes", memory_bytes);
  log_->write(line.dump());
}

}  // namespace syrinx::server
