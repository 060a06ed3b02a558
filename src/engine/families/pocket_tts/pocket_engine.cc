#include "engine/families/pocket_tts/pocket_engine.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "engine/families/pocket_tts/pocket_family.h"
#include "engine/families/pocket_tts/pocket_speaker.h"
#include "engine/speech/remote_files.h"
#include "engine/threads.h"

namespace syrinx {
namespace {

// check_knobs() has found the numbers whole and in their ranges.
pocket::SpeechSettings settings_of(const SpeakOptions& options) {
  const auto number = [&](const char* name) -> std::optional<float> {
    const auto value = options.knobs.number(name);
    return value ? std::optional(static_cast<float>(*value)) : std::nullopt;
  };
  const auto count = [&](const char* name) -> std::optional<size_t> {
    const auto value = options.knobs.number(name);
    return value ? std::optional(static_cast<size_t>(*value)) : std::nullopt;
  };
  return {.temperature = number("temperature"),
          .noise_clamp = number("noise_clamp"),
          .eos_threshold = number("eos_threshold"),
          .frames_after_eos = count("frames_after_eos"),
          .decode_steps = count("decode_steps"),
          .seed = options.seed};
}

size_t max_tokens(const SpeakOptions& options) {
  return static_cast<size_t>(options.knobs.number("max_tokens").value_or(pocket::kDefaultMaxTokens));
}

size_t bytes_of(const std::map<std::string, pocket::VoiceState>& voices) {
  size_t bytes = 0;
  for (const auto& [name, voice] : voices) bytes += voice->bytes();
  return bytes;
}

}  // namespace

Result<std::shared_ptr<SpeechEngine>> PocketEngine::load(SpeechEngineOptions options, size_t max_voice_bytes) {
  const Stopwatch watch;
  const std::string first_voice = options.first_voice;
  ThreadTeam packers(default_threads());
  SYRINX_TRY(std::shared_ptr<const pocket::Model> model,
             pocket::Model::load(options.files.checkpoint, {.locate = remote_locator(),
                                                            .cache_dir = options.cache_folder,
                                                            .precision = options.precision.value_or(kDefaultPrecision),
                                                            .team = &packers}));
  std::shared_ptr<PocketEngine> engine(new PocketEngine(std::move(model), std::move(options), max_voice_bytes));
  if (!first_voice.empty()) {
    auto ready = engine->voice(first_voice);
    if (!ready) return tl::unexpected(std::move(ready).error());
  } else {
    engine->prepare_default_voice();
  }
  engine->load_ms_ = watch.elapsed_ms();
  return std::shared_ptr<SpeechEngine>(std::move(engine));
}

PocketEngine::PocketEngine(std::shared_ptr<const pocket::Model> model, SpeechEngineOptions options,
                           size_t max_voice_bytes)
    : max_voice_bytes_(max_voice_bytes),
      files_(std::move(options.files)),
      model_(std::move(model)),
      default_voice_(default_pocket_voice(list_pocket_voices(files_.voices), files_.checkpoint)),
      compute_(options.compute != nullptr ? options.compute : Compute::shared()),
      queue_(compute_->scheduler()),
      team_(compute_->team(options.threads)),
      runner_(team_),
      pool_(pocket::Synthesizer::make_pool(*model_, runner_, queue_, kMaxSessions)) {}

// A recording takes seconds to clone, and other voices may be the only ones that are asked for.  Should the file be
// damaged, start() says so, and other voices may still speak.
void PocketEngine::prepare_default_voice() {
  if (default_voice_.empty()) return;
  const auto file = find_pocket_voice(default_voice_, files_.voices);
  if (file && !file->recording) (void)voice(default_voice_);
}

// Where no voice is given and none is the default, the text may still name the one that begins.
Result<std::unique_ptr<SpeechSession>> PocketEngine::start(const SpeakOptions& options) {
  SYRINX_TRY_VOID(check_knobs(options.knobs, pocket_tts_family()));
  pocket::VoiceState voice;
  const bool has_voice = !options.voice.empty() || !default_voice_.empty();
  if (has_voice) {
    SYRINX_TRY(voice, this->voice(options.voice));
  }
  SYRINX_TRY(std::unique_ptr<pocket::Synthesizer> synthesizer,
             pocket::Synthesizer::create(model_, voice, settings_of(options), *pool_));
  pocket::ChunkPlanner planner(model_, max_tokens(options), synthesizer->max_chunk_tokens());
  const auto find_voice = [self = shared_from_this(), voice](const std::string& name) {
    if (!name.empty()) return self->marked_voice(name);
    return voice != nullptr ? voice : self->voice("");
  };
  return std::make_unique<SpeechSession>(
      std::make_unique<PocketSpeaker>(find_voice, std::move(synthesizer), std::move(planner), has_voice, options));
}

// A text may come from anybody: it chooses among the voices by name, and opens no file of this machine or another.
Result<pocket::VoiceState> PocketEngine::marked_voice(const std::string& name) {
  SYRINX_TRY_VOID(check_marked_voice(name));
  Result<pocket::VoiceState> found = voice(name);
  if (found || found.error().code != Code::kNotFound) return found;
  const std::string names = pocket_voice_names(list_pocket_voices(files_.voices));
  return fail(Code::kNotFound, "there is no voice '{}'{}; give a file that name, --cast {}=FILE or add_voice", name,
              names.empty() ? names : " beside " + names, name);
}

// Null where no voice of that name has been added.
pocket::VoiceState PocketEngine::added_voice(const std::string& name) {
  const std::lock_guard lock(voices_mutex_);
  const auto found = added_voices_.find(name);
  return found != added_voices_.end() ? found->second : nullptr;
}

Result<pocket::VoiceState> PocketEngine::voice(const std::string& name) {
  const std::string chosen = name.empty() ? default_voice_ : name;
  {
    const std::lock_guard lock(voices_mutex_);
    for (const auto* const map : {&added_voices_, &voices_})
      if (const auto found = map->find(chosen); found != map->end()) return found->second;
  }
  SYRINX_TRY(const PocketVoiceFile file, find_pocket_voice(chosen, files_.voices));
  SYRINX_TRY(pocket::VoiceState made, read_voice(file, /*truncate=*/false));
  keep(chosen, made);
  return made;
}

// Voices read from files make room: they can be read again.
void PocketEngine::keep(const std::string& name, const pocket::VoiceState& voice) {
  const std::lock_guard lock(voices_mutex_);
  const size_t bytes = voice->bytes(), room = room_of_files();
  if (bytes + bytes_of(voices_) > room) voices_.clear();
  if (bytes <= room) voices_[name] = voice;
}

size_t PocketEngine::room_of_files() const {
  return std::max(max_voice_bytes_ - bytes_of(added_voices_), max_voice_bytes_ / 2);
}

Result<pocket::VoiceState> PocketEngine::read_voice(const PocketVoiceFile& file, bool truncate) {
  const int64_t due_ns = system_clock().now_ns();  // a session waits for it
  SYRINX_TRY(const PocketVoiceContent source, read_pocket_voice(file.path, truncate, model_->config().flow_lm));
  return make_voice(source, due_ns);
}

Result<pocket::VoiceState> PocketEngine::make_voice(const PocketVoiceContent& source, int64_t due_ns) {
  // Sessions go on speaking meanwhile.
  const auto in_turn = [this, due_ns](const std::function<void()>& work) { pool_->alone(work, due_ns); };
  if (const auto* const file = std::get_if<pocket::VoiceFile>(&source))
    return pocket::make_voice(*model_, *file, runner_, in_turn);
  return pocket::clone_voice(*model_, std::get<std::vector<float>>(source), runner_, in_turn);
}

Status PocketEngine::add_voice(const std::string& name, std::span<const std::byte> content) {
  SYRINX_TRY_VOID(check_voice_name(name));
  SYRINX_TRY(const PocketVoiceContent source,
             read_pocket_voice(content, name, /*truncate=*/true, model_->config().flow_lm));
  SYRINX_TRY(pocket::VoiceState made, make_voice(source, kNeverDue));
  const std::lock_guard lock(voices_mutex_);
  const auto replaced = added_voices_.find(name);
  size_t bytes = made->bytes() + bytes_of(added_voices_);
  if (replaced != added_voices_.end()) bytes -= replaced->second->bytes();
  if (bytes > max_voice_bytes_)
    return fail(Code::kLimitExceeded,
                "voice '{}' would make {} bytes of added voices, at most {} are kept; remove "
                "one, or make it of less sound",
                name, bytes, max_voice_bytes_);
  added_voices_[name] = std::move(made);
  if (bytes_of(voices_) > room_of_files()) voices_.clear();
  return {};
}

void PocketEngine::remove_voice(const std::string& name) {
  const std::lock_guard lock(voices_mutex_);
  added_voices_.erase(name);
}

Result<std::string> PocketEngine::export_voice(const std::string& voice) {
  pocket::VoiceState made = added_voice(voice);
  if (!made) {
    SYRINX_TRY(const PocketVoiceFile file, find_pocket_voice(voice, files_.voices));
    SYRINX_TRY(made, read_voice(file, /*truncate=*/true));
  }
  return pocket::write_voice_file(pocket::exported(*made), model_->config().flow_lm);
}

}  // namespace syrinx
