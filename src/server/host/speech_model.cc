#include "server/host/speech_model.h"

#include <algorithm>
#include <utility>

#include "base/in_quotes.h"
#include "base/memory.h"
#include "base/signals.h"
#include "engine/families/families.h"
#include "engine/families/find_speech_files.h"
#include "engine/speech/add_voice_file.h"
#include "engine/speech/speech_files.h"
#include "engine/threads.h"
#include "server/settings/model_id.h"
#include "store/foreign_names.h"
#include "store/paths.h"
#include "text/language.h"

namespace syrinx::server {
namespace {

constexpr const char* kWarmUpText = "Hello, this is a test.";

Result<SpeechFiles> find_files(const Settings& settings, UserPaths& paths) {
  SYRINX_TRY(paths, user_paths());
  return find_speech_files(settings.speech_model, models_folder(paths));
}

// `unread`: those that are left out as no text can be read for them, to their languages.
Result<std::vector<ListedVoice>> list_voices(const SpeechFiles& files,
                                             std::map<std::string, std::string, std::less<>>& unread) {
  std::vector<ListedVoice> voices;
  if (!is_folder(files.voices)) return voices;  // those of the settings alone
  SYRINX_TRY(const std::vector<VoiceEntry> entries, files.family->voices(files));
  for (const VoiceEntry& voice : entries) {
    if (!voice.reads_text)
      unread[voice.name] = voice.language;
    else
      voices.push_back({.id = voice.name,
                        .language = voice.language_code == "und" ? "" : voice.language_code,
                        .kind = voice.kind == "recording" ? "cloned" : "builtin"});
  }
  return voices;
}

// Adds the setting that names a file to the file's error.
Status of_voices(const std::string& member, const Status& checked) {
  if (checked) return {};
  return fail(checked.error().code, "'voices' holds {}: {}", in_quotes(member), checked.error().message);
}

Status add_voices(const Settings& settings, SpeechEngine& engine) {
  for (const std::string& member : settings.voices) {
    SYRINX_TRY(const auto pair, split_pair(member, "voices"));
    SYRINX_TRY_VOID(of_voices(member, add_voice_file(engine, pair.first, pair.second)));
  }
  return {};
}

// Where the voices lie that clients upload for this model; empty: there may be none.
std::string shelf_folder(const Settings& settings, const SpeechFamily& family, const std::string& data_folder) {
  const bool is_auto = settings.voices_dir == "auto";
  if (settings.voices_dir.empty() || (is_auto && data_folder.empty())) return "";
  if (!family.traits.clones) return "";
  return (is_auto ? data_folder + "/voices" : settings.voices_dir) + "/" +
         ModelNames(settings, settings.speech_model, "").id();
}

}  // namespace

Status SpeechModel::check(const Settings& settings) {
  UserPaths paths;
  SYRINX_TRY(SpeechFiles files, find_files(settings, paths));
  if (!settings.precision.empty()) {
    SYRINX_TRY(const Precision precision, parse_precision(settings.precision));
    SYRINX_TRY_VOID(check_precision(*files.family, precision));
  }
  for (const std::string& member : settings.voices) {
    SYRINX_TRY(const auto pair, split_pair(member, "voices"));
    SYRINX_TRY_VOID(of_voices(member, files.family->check_voice_file(files, pair.first, pair.second)));
  }
  SYRINX_TRY(const std::shared_ptr<SpeechModel> model, make(settings, std::move(files), paths.data));
  std::string voice = settings.voice.empty() ? model->family().default_voice(model->files_) : settings.voice;
  if (voice.empty() && !model->voices_.empty()) voice = model->voices_.front().id;  // as take_engine() chooses
  return model->is_added(settings, voice) ? Status() : model->family().check_voice(model->files_, voice);
}

// With the names of all voices, none of them read.
Result<std::shared_ptr<SpeechModel>> SpeechModel::make(const Settings& settings, SpeechFiles files,
                                                       const std::string& data_folder) {
  std::string folder = shelf_folder(settings, *files.family, data_folder);
  std::shared_ptr<SpeechModel> model(new SpeechModel(settings, std::move(files), std::move(folder)));
  const SpeechFamily& family = model->family();
  if (family.spoken_languages != nullptr) model->spoken_languages_ = family.spoken_languages(model->files_);
  if (family.lacking != nullptr) model->lacking_ = family.lacking(model->files_);
  model->shelf_->list();
  SYRINX_TRY_VOID(model->name_voices(settings));
  return model;
}

Result<std::shared_ptr<const SpeechModel>> SpeechModel::load(const Settings& settings) {
  UserPaths paths;
  SYRINX_TRY(SpeechFiles files, find_files(settings, paths));
  SYRINX_TRY(std::shared_ptr<SpeechModel> model, make(settings, std::move(files), paths.data));
  SpeechEngineOptions options{.files = model->files_};
  if (!settings.precision.empty()) {
    SYRINX_TRY(options.precision, parse_precision(settings.precision));
  }
  SYRINX_TRY(options.threads, choose_threads(static_cast<int>(settings.threads)));
  const uint64_t before_bytes = current_rss_bytes();
  options.cache_folder = packed_folder(paths, model->files_);
  // Voices from the settings exist only after the model is loaded.
  if (!model->is_added(settings, settings.voice)) options.first_voice = settings.voice;
  SYRINX_TRY(std::shared_ptr<SpeechEngine> engine, load_speech_engine(std::move(options)));
  SYRINX_TRY_VOID(model->take_engine(settings, std::move(engine)));
  model->memory_bytes_ = std::max(current_rss_bytes(), before_bytes) - before_bytes;
  return std::shared_ptr<const SpeechModel>(std::move(model));
}

Result<std::shared_ptr<const SpeechModel>> SpeechModel::of(const Settings& settings, SpeechFiles files,
                                                           std::shared_ptr<SpeechEngine> engine) {
  SYRINX_TRY(std::shared_ptr<SpeechModel> model, make(settings, std::move(files), ""));
  SYRINX_TRY_VOID(model->take_engine(settings, std::move(engine)));
  return std::shared_ptr<const SpeechModel>(std::move(model));
}

SpeechModel::SpeechModel(const Settings& settings, SpeechFiles files, std::string shelf_folder)
    : files_(std::move(files)),
      called_(settings, settings.speech_model, "speech"),
      default_voice_(settings.voice),
      shelf_(std::make_unique<VoiceShelf>(std::move(shelf_folder))) {}

Status SpeechModel::name_voices(const Settings& settings) {
  SYRINX_TRY(voices_, list_voices(files_, unread_));
  const std::string language = family().language(files_);
  for (const std::string& member : settings.voices) {
    SYRINX_TRY(const auto pair, split_pair(member, "voices"));
    if (const VoiceEntry info = family().describe_voice(pair.first); !info.reads_text)
      return fail(
          Code::kUnsupported,
          "'voices' holds {}, and a voice of that name speaks {}, which no text is read in; give it another name",
          in_quotes(member), info.language);
    if (!is_own(pair.first)) voices_.push_back({.id = pair.first, .language = language, .kind = "cloned"});
  }
  if (const std::string why = why_unread(default_voice_); !why.empty())
    return fail(Code::kUnsupported, "'voice' is {}: {}", in_quotes(default_voice_), why);
  // An uploaded one that is called so speaks for nobody but who names it.
  for (const std::string_view name : foreign_names("voice")) names_[std::string(name)] = "";
  for (const auto& [name, voice] : family().known_voices)
    if (is_own(voice)) names_[name] = voice;
  for (const std::string& member : settings.voice_names) {
    SYRINX_TRY(const auto pair, split_pair(member, "voice_names"));
    if (const std::string why = why_unread(pair.second); !why.empty())
      return fail(Code::kUnsupported, "'voice_names' holds {}: {}", in_quotes(member), why);
    if (!is_listed(pair.second) && !is_blend(pair.second))
      return fail(Code::kNotFound, "'voice_names' holds {}, and there is no voice {}; /v1/audio/voices lists all",
                  in_quotes(member), in_quotes(pair.second));
    names_[pair.first] = pair.second;
  }
  return {};
}

// The default voice is chosen here, before the first request.
Status SpeechModel::take_engine(const Settings& settings, std::shared_ptr<SpeechEngine> engine) {
  engine_ = std::move(engine);
  SYRINX_TRY_VOID(add_voices(settings, *engine_));
  shelf_->read([this](const std::string& name, const std::string& path) -> Status {
    if (is_own(name)) return fail(Code::kInvalidArgument, "another voice has that name; rename one of the files");
    return add_voice_file(*engine_, name, path);
  });
  if (default_voice_.empty() && engine_->default_voice().empty() && !voices_.empty())
    default_voice_ = voices_.front().id;
  SYRINX_TRY_VOID(warm_up());
  warm_up_steps_ = engine_->steps();
  return {};
}

// The whole way once, on the threads and memory that requests will use.  A voice may take long to end its text, and a
// server that is to end does not wait for it.
Status SpeechModel::warm_up() {
  SpeakOptions options;
  options.voice = default_voice_;
  SYRINX_TRY(const std::unique_ptr<SpeechSession> session, engine_->start(options));
  SYRINX_TRY_VOID(session->speak(kWarmUpText));
  SpeechChunk chunk;
  for (bool more = true; more;) {
    if (cancel_requested()) return fail(Code::kCancelled, "the server is to end");
    SYRINX_TRY(more, session->next(chunk));
  }
  warm_up_audio_s_ = session->statistics().audio_seconds;
  read_for_all_languages();
  return {};
}

// A front end of another language is else read with its first voice, while all other beginnings wait.  A lexicon or a
// voice that cannot be read keeps no request from the others; requests for it are told.
void SpeechModel::read_for_all_languages() const {
  if (chooses_language() || languages().size() < 2) return;
  SpeakOptions options;
  for (const std::string& language : languages()) {
    options.voice = voice_of_language(language);
    if (options.voice != default_voice()) static_cast<void>(engine_->start(options));
  }
}

bool SpeechModel::is_called(std::string_view model) const { return called_.are_called(model); }

bool SpeechModel::is_added(const Settings& settings, const std::string& voice) const {
  return shelf_->find(voice) || std::any_of(settings.voices.begin(), settings.voices.end(),
                                            [&](const std::string& member) { return member.starts_with(voice + "="); });
}

bool SpeechModel::is_own(std::string_view id) const {
  return std::any_of(voices_.begin(), voices_.end(), [&](const ListedVoice& voice) { return voice.id == id; });
}

ListedVoice SpeechModel::listed(const UploadedVoice& voice) const {
  return {.id = voice.name, .language = family().language(files_), .kind = "cloned", .created_s = voice.created_s};
}

std::vector<ListedVoice> SpeechModel::voices() const {
  std::vector<ListedVoice> all = voices_;
  for (const UploadedVoice& voice : shelf_->voices()) all.push_back(listed(voice));
  return all;
}

std::optional<ListedVoice> SpeechModel::find_listed(std::string_view id) const {
  const auto own =
      std::find_if(voices_.begin(), voices_.end(), [&](const ListedVoice& voice) { return voice.id == id; });
  if (own != voices_.end()) return *own;
  const auto uploaded = shelf_->find(id);
  return uploaded ? std::optional(listed(*uploaded)) : std::nullopt;
}

bool SpeechModel::is_taken(std::string_view name) const {
  return shelf_->has_alike(name) ||
         std::any_of(voices_.begin(), voices_.end(), [&](const auto& voice) { return same_name(voice.id, name); }) ||
         std::any_of(names_.begin(), names_.end(), [&](const auto& named) { return same_name(named.first, name); });
}

bool SpeechModel::is_settled(std::string_view id) const {
  return id == default_voice_ ||
         std::any_of(names_.begin(), names_.end(), [&](const auto& named) { return named.second == id; });
}

bool SpeechModel::is_blend(std::string_view text) const {
  if (family().blended == nullptr) return false;
  const auto parts = family().blended(text);
  return parts &&
         std::all_of(parts->begin(), parts->end(), [this](const std::string& part) { return is_listed(part); });
}

// The voices of a blend; else the one that is named.
std::vector<std::string> SpeechModel::parts_of(std::string_view voice) const {
  if (family().blended == nullptr) return {std::string(voice)};
  return family().blended(voice).value_or(std::vector<std::string>());
}

std::string SpeechModel::why_unread(std::string_view text) const {
  if (unread_.empty()) return "";
  for (const std::string& part : parts_of(text))
    if (const auto found = unread_.find(part); found != unread_.end())
      return fmt::format(
          "the voice {} speaks {}, and texts in English alone are read; choose a voice that GET /v1/audio/voices lists",
          in_quotes(found->first), found->second);
  return "";
}

bool SpeechModel::names_its_files(std::string_view sentence) const {
  const std::string voices = files_.voices.empty() ? "" : files_.voices + "/";
  return names_one_of(sentence, {files_.checkpoint, files_.lexicon, voices});
}

tl::expected<std::string, HttpError> SpeechModel::find_voice(const std::string& requested) const {
  if (requested.empty()) return default_voice_;
  if (is_listed(requested)) return requested;
  if (const auto named = names_.find(requested); named != names_.end())
    return named->second.empty() ? default_voice_ : named->second;
  if (is_blend(requested)) return requested;
  const std::vector<ListedVoice> all = voices();
  const auto alike =
      std::find_if(all.begin(), all.end(), [&](const auto& each) { return same_name(each.id, requested); });
  if (alike != all.end()) return alike->id;
  if (const std::string why = why_unread(requested); !why.empty()) return refuse("voice", "{}", why);
  if (family().blended != nullptr)
    if (const auto parts = family().blended(requested); !parts) return refuse("voice", "{}", parts.error().message);
  return tl::unexpected(
      HttpError{.status = 404,
                .message = fmt::format("there is no voice {}; GET /v1/audio/voices lists all", in_quotes(requested)),
                .param = "voice",
                .code = "voice_not_found"});
}

tl::expected<std::string, HttpError> SpeechModel::find_voice(const std::string& requested,
                                                             const std::string& language) const {
  if (text::is_any_language(language)) return find_voice(requested);
  const auto is_it = [&](const std::string& each) { return text::is_same_language(each, language); };
  if (chooses_language()) {
    if (std::any_of(spoken_languages_.begin(), spoken_languages_.end(), is_it)) return find_voice(requested);
    return refuse("language", "{} does not speak {}; leave 'language' out, or give one that GET /v1/models lists",
                  in_quotes(id()), in_quotes(language));
  }
  if (requested.empty()) {
    const std::vector<std::string> known = languages();
    if (is_it(language_of(default_voice()))) return default_voice_;
    if (std::any_of(known.begin(), known.end(), is_it)) return voice_of_language(language);
    return refuse("language", "no voice of {} speaks {}; leave 'language' out, or give one that GET /v1/models lists",
                  in_quotes(id()), in_quotes(language));
  }
  auto voice = find_voice(requested);
  if (!voice || is_it(language_of(*voice))) return voice;
  return refuse("language",
                "the voice {} is not known to speak {}; leave 'language' out, or choose a voice that GET "
                "/v1/audio/voices lists with it",
                in_quotes(requested), in_quotes(language));
}

std::string SpeechModel::voice_of_language(std::string_view language) const {
  std::string found;
  for (const ListedVoice& voice : voices()) {
    if (!text::is_same_language(voice.language, language)) continue;
    if (voice.id == default_voice()) return voice.id;
    if (found.empty()) found = voice.id;
  }
  return found;
}

std::vector<std::string> SpeechModel::languages() const {
  if (chooses_language()) return spoken_languages_;
  std::vector<std::string> languages;
  for (const ListedVoice& voice : voices())
    if (!voice.language.empty() && std::find(languages.begin(), languages.end(), voice.language) == languages.end())
      languages.push_back(voice.language);
  return languages;
}

// The field `language` chooses a voice where there is no such option.
std::vector<std::string> SpeechModel::unheeded_fields() const {
  std::vector<std::string> names(lacking_.begin(), lacking_.end());
  for (const KnobHolder& other : speech_knobs())
    for (const Knob& knob : other.knobs)
      if (knob.use == Knob::Use::kRequest && !has_knob(family(), knob.name) &&
          std::string_view(knob.name) != kLanguageKnob &&
          std::find(names.begin(), names.end(), knob.name) == names.end())
        names.emplace_back(knob.name);
  return names;
}

// The first voice of a blend decides the pronunciation.
std::string SpeechModel::language_of(const std::string& voice) const {
  if (std::string language = family().language(files_); !language.empty()) return language;
  const std::vector<std::string> parts = parts_of(voice.empty() ? default_voice() : voice);
  const auto first = parts.empty() ? std::nullopt : find_listed(parts.front());
  return first ? first->language : "";
}

}  // namespace syrinx::server
