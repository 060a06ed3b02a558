#include "engine/families/qwen_tts/qwen_settings.h"

#include <algorithm>

#include "base/in_quotes.h"
#include "engine/families/qwen_tts/piece_planner.h"
#include "engine/speech/speech_family.h"
#include "text/language.h"
#include "text/unicode.h"

namespace syrinx {
namespace {

constexpr double kMaxInstructionBytes = 4096;
constexpr double kMostSeconds = 600, kMostCarried = 30;
constexpr double kTokenSeconds = 0.32;  // that a token usually takes (SpeechGuard::expected_frames())
constexpr size_t kLeastCarriedTokens = 8;
constexpr const char* kCarryKnob = "carry_seconds";
constexpr const char* kLayouts[] = {"streaming", "whole"};

constexpr Knob kKnobs[] = {
    {.name = kLanguageKnob,
     .kind = Knob::Kind::kText,
     .most = 256,
     .type = "LANGUAGE",
     .help = "of the text, say en or English; else as the text and the voice have it"},
    {.name = "instructions",
     .kind = Knob::Kind::kText,
     .most = kMaxInstructionBytes,
     .type = "TEXT",
     .help = "how to speak, in words; of VoiceDesign who speaks, too"},
    {.name = "temperature", .kind = Knob::Kind::kNumber, .least = 0, .most = 100, .help = "0 is flat; 0.9"},
    {.name = "top_k",
     .kind = Knob::Kind::kWhole,
     .least = 0,
     .most = 65536,
     .type = "N",
     .help = "likeliest codes that are drawn from, 0: all; 50"},
    {.name = "top_p", .kind = Knob::Kind::kNumber, .least = 1e-6, .most = 1, .help = "their share of probability; 1"},
    {.name = "repetition_penalty",
     .kind = Knob::Kind::kNumber,
     .least = 0.1,
     .most = 10,
     .help = "of codes that came before; 1.05"},
    {.name = "subtalker_temperature",
     .kind = Knob::Kind::kNumber,
     .least = 0,
     .most = 100,
     .help = "of a frame's further codes; 0.9"},
    {.name = "subtalker_top_k",
     .kind = Knob::Kind::kWhole,
     .least = 0,
     .most = 65536,
     .type = "N",
     .help = "the same of these; 50"},
    {.name = "subtalker_top_p", .kind = Knob::Kind::kNumber, .least = 1e-6, .most = 1, .help = "the same of these; 1"},
    {.name = "text_layout",
     .kind = Knob::Kind::kText,
     .help = "whether text runs beside the sound; whole but for cloned voices",
     .choices = kLayouts},
    {.name = "max_tokens",
     .kind = Knob::Kind::kWhole,
     .least = 1,
     .most = qwen_tts::kMaxPieceTokens,
     .type = "N",
     .help = "of a piece of text, 1 to 200; 100"},
    {.name = "max_seconds",
     .kind = Knob::Kind::kNumber,
     .least = 0.08,
     .most = kMostSeconds,
     .help = "of a piece of text; else 2 and about 1 a token"},
    {.name = kCarryKnob,
     .kind = Knob::Kind::kNumber,
     .least = 0,
     .most = kMostCarried,
     .help = "longest piece that the next one goes on behind, of cloned voices; 0, none"},
};

void take_draw(const Knobs& knobs, const std::string& prefix, qwen_tts::DrawSettings& draw) {
  if (const auto temperature = knobs.number(prefix + "temperature")) {
    draw.temperature = static_cast<float>(*temperature);
    draw.samples = *temperature > 0;
  }
  if (const auto top_k = knobs.number(prefix + "top_k")) draw.top_k = static_cast<size_t>(*top_k);
  if (const auto top_p = knobs.number(prefix + "top_p")) draw.top_p = static_cast<float>(*top_p);
}

tl::unexpected<Error> refuse(std::string_view knob, const qwen_tts::Config& config) {
  const char* const others =
      knob == kCarryKnob ? "it out, or take Base" : "them out, or take CustomVoice of 1.7B, or VoiceDesign";
  return fail(Code::kUnsupported, "this checkpoint ({}{}) has no {}; leave {}", qwen_tts::kind_name(config.kind),
              config.size.empty() ? "" : ", " + shortened(config.size), knob, others);
}

}  // namespace

std::span<const Knob> qwen_knobs() { return kKnobs; }

std::vector<std::string_view> qwen_lacking_knobs(const qwen_tts::Config& config) {
  std::vector<std::string_view> names;
  if (!config.takes_instruction()) names.emplace_back("instructions");
  if (config.kind != qwen_tts::Kind::kBase) names.emplace_back(kCarryKnob);
  return names;
}

Result<QwenSettings> read_qwen_settings(const SpeakOptions& options, const qwen_tts::Config& config,
                                        const qwen_tts::GenerationConfig& defaults) {
  const Knobs& knobs = options.knobs;
  QwenSettings settings{.draws = defaults, .seed = options.seed};
  settings.instructions = knobs.text("instructions").value_or("");
  for (const std::string_view name : qwen_lacking_knobs(config))
    if (!knobs.text(name).value_or("").empty() || knobs.number(name).value_or(0) > 0) return refuse(name, config);
  SYRINX_TRY(settings.language, find_qwen_language(knobs.text(kLanguageKnob).value_or(""), config));
  take_draw(knobs, "", settings.draws.talker);
  take_draw(knobs, "subtalker_", settings.draws.predictor);
  settings.draws.penalty =
      static_cast<float>(knobs.number("repetition_penalty").value_or(static_cast<double>(defaults.penalty)));
  settings.text_first = config.kind != qwen_tts::Kind::kBase;
  if (const auto layout = knobs.text("text_layout")) settings.text_first = *layout == "whole";
  settings.piece_tokens =
      static_cast<size_t>(knobs.number("max_tokens").value_or(static_cast<double>(qwen_tts::kDefaultPieceTokens)));
  settings.max_seconds = knobs.number("max_seconds");
  settings.carry_seconds = knobs.number(kCarryKnob).value_or(0);
  if (settings.carry_seconds > 0)
    settings.piece_tokens =
        std::min(settings.piece_tokens,
                 std::max(static_cast<size_t>(settings.carry_seconds / kTokenSeconds), kLeastCarriedTokens));
  return settings;
}

Result<std::string> find_qwen_language(std::string_view language, const qwen_tts::Config& config) {
  if (text::is_any_language(language)) return std::string("auto");
  const qwen_tts::Language* const named = config.language(language);
  if (named != nullptr && !named->is_dialect()) return named->name;
  std::string names;
  for (const qwen_tts::Language& each : config.languages) {
    if (each.is_dialect()) continue;
    if (text::is_same_language(each.name, language)) return each.name;
    names += ", " + shortened(each.name);
  }
  return fail(Code::kInvalidArgument, "'language' is {}; this checkpoint speaks auto{}", in_quotes(language), names);
}

std::vector<std::string> qwen_language_codes(const qwen_tts::Config& config) {
  std::vector<std::string> codes;
  for (const qwen_tts::Language& each : config.languages)
    if (!each.is_dialect()) codes.push_back(text::canonical_language(each.name));
  return codes;
}

}  // namespace syrinx
