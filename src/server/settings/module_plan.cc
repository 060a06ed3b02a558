#include "server/settings/module_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/check.h"
#include "base/in_quotes.h"
#include "server/settings/model_id.h"

namespace syrinx::server {
namespace {

template <class AnySettings>
auto& model_in(AnySettings& settings, ModuleKind kind) {
  switch (kind) {
    case ModuleKind::kSpeech: return settings.speech_model;
    case ModuleKind::kRecognition: return settings.recognition_model;
    case ModuleKind::kChat: break;
  }
  return settings.chat_model;
}

// The server's settings for one module of that kind, without a model.
Settings bare(const Settings& settings, ModuleKind kind) {
  Settings own = settings;
  own.modules.clear();
  for (const ModuleKind each : kModuleKinds) model_in(own, each).clear();
  if (kind == ModuleKind::kSpeech) return own;
  own.voice.clear();
  own.voices.clear();
  own.voice_names.clear();
  return own;
}

// A value that the module does not set is the usual one, not that of the short form.
ModulePlan plan_of(const Settings& settings, const ModuleSettings& module, size_t number) {
  ModulePlan plan{.kind = module.kind,
                  .id = {},
                  .place = fmt::format("[[module]] {}", number),
                  .loads_at_first_use = module.loads_at_first_use,
                  .keep_alive_s = module.keep_alive_s,
                  .settings = bare(settings, module.kind)};
  Settings& own = plan.settings;
  const Settings usual;
  own.voice = usual.voice, own.voices = usual.voices, own.voice_names = usual.voice_names;
  own.precision = usual.precision, own.threads = usual.threads, own.speech_slots = usual.speech_slots;
  own.recognition_precision = usual.recognition_precision, own.recognition_threads = usual.recognition_threads;
  own.recognition_slots = usual.recognition_slots, own.recognition_live_slots = usual.recognition_live_slots;
  own.recognition_heartbeat = usual.recognition_heartbeat;
  own.recognition_languages = usual.recognition_languages;
  own.chat_precision = usual.chat_precision, own.chat_threads = usual.chat_threads;
  own.chat_slots = usual.chat_slots, own.chat_context = usual.chat_context;
  for (const auto& [setting, value] : module.values)
    SYRINX_CHECK(set(own, *find_setting(setting), value, "").has_value(), "'{}' was not checked", setting);
  plan.id = module.id.empty() ? model_id(model_in(own, module.kind)) : module.id;
  own.module_id = plan.id;
  own.module_names = module.names;
  return plan;
}

Status check_lists(const Settings& settings) {
  SYRINX_TRY_VOID(check_languages(settings.recognition_languages));
  SYRINX_TRY_VOID(check_pairs(settings.voices, "voices"));
  return check_pairs(settings.voice_names, "voice_names");
}

// A client of Wyoming cannot wait for a load.
Status check_first(const ModulePlan& plan) {
  if (plan.settings.wyoming_port < 0 || plan.kind == ModuleKind::kChat) return {};
  if (!plan.loads_at_first_use && plan.keep_alive_s < 0) return {};
  return fail(
      Code::kInvalidArgument,
      "{} is the first of kind {}, which Wyoming's clients use, and they cannot wait for a load; have it loaded "
      "at the start, without keep_alive, or leave 'wyoming_port' out",
      plan.place, kind_name(plan.kind));
}

}  // namespace

std::vector<ModulePlan> module_plans(const Settings& settings) {
  std::vector<ModulePlan> plans;
  for (const ModuleKind kind : kModuleKinds) {
    Settings short_form = settings;
    const std::string model = model_in(short_form, kind);
    if (model.empty()) continue;
    ModulePlan plan{.kind = kind,
                    .id = model_id(model),
                    .place = fmt::format("'{}_model'", kind_name(kind)),
                    .settings = bare(settings, kind)};
    model_in(plan.settings, kind) = model;
    plan.settings.module_id = plan.id;
    plans.push_back(std::move(plan));
  }
  for (size_t i = 0; i < settings.modules.size(); ++i) plans.push_back(plan_of(settings, settings.modules[i], i + 1));
  return plans;
}

std::vector<ModulePlan> plans_of(const Settings& settings, ModuleKind kind) {
  std::vector<ModulePlan> plans = module_plans(settings);
  std::erase_if(plans, [&](const ModulePlan& plan) { return plan.kind != kind; });
  return plans;
}

Status check_modules(const Settings& settings) {
  const std::vector<ModulePlan> plans = module_plans(settings);
  if (plans.empty())
    return fail(Code::kInvalidArgument,
                "'speech_model', 'recognition_model' and 'chat_model' are all empty, so there is nothing to serve; "
                "name one of them");
  std::map<std::string, std::string> places;  // by name
  SYRINX_TRY_VOID(check_lists(settings));
  std::set<ModuleKind> kinds;
  for (const ModulePlan& plan : plans) {
    if (kinds.insert(plan.kind).second) SYRINX_TRY_VOID(check_first(plan));
    if (const Status checked = check_lists(plan.settings); !checked)
      return fail(checked.error().code, "{}: {}", plan.place, checked.error().message);
    Texts names = plan.settings.module_names;
    names.push_back(plan.id);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    for (const std::string& name : names) {
      const auto [other, is_new] = places.emplace(name, plan.place);
      if (is_new) continue;
      const bool is_short = plan.place.front() == '\'';
      return fail(Code::kInvalidArgument, "{} and {} are both called {}; {}, so that clients can tell them apart",
                  other->second, plan.place, in_quotes(name),
                  is_short ? "rename a folder or file" : "give one of them another id or name");
    }
  }
  return {};
}

const std::string& model_of(const ModulePlan& plan) { return model_in(plan.settings, plan.kind); }

size_t slots_of(const ModulePlan& plan) {
  switch (plan.kind) {
    case ModuleKind::kSpeech: return static_cast<size_t>(plan.settings.speech_slots);
    case ModuleKind::kRecognition: return static_cast<size_t>(plan.settings.recognition_slots);
    case ModuleKind::kChat: break;
  }
  return static_cast<size_t>(plan.settings.chat_slots);
}

}  // namespace syrinx::server
