#include "engine/families/qwen_tts/qwen_engine.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/watched_file.h"
#include "engine/families/qwen_tts/qwen_tts_family.h"
#include "engine/threads.h"

namespace syrinx {
namespace {

size_t bytes_of(const std::map<std::string, std::shared_ptr<const QwenVoice>>& voices) {
  size_t bytes = 0;
  for (const auto& [name, voice] : voices) bytes += voice->bytes();
  return bytes;
}

}  // namespace

Result<std::shared_ptr<SpeechEngine>> QwenEngine::load(SpeechEngineOptions options) {
  const Stopwatch watch;
  const std::string first_voice = options.first_voice;
  ThreadTeam packers(default_threads());
  SYRINX_TRY(std::shared_ptr<const QwenModel> model,
             QwenModel::load(options.files.checkpoint, {.precision = options.precision.value_or(kDefaultPrecision),
                                                        .cache_folder = options.cache_folder,
                                                        .team = &packers}));
  std::shared_ptr<QwenEngine> engine(new QwenEngine(std::move(model), std::move(options)));
  SYRINX_TRY_VOID(engine->prepare(packers));
  if (!first_voice.empty()) {
    auto ready = engine->voice(first_voice);
    if (!ready) return tl::unexpected(std::move(ready).error());
  }
  engine->load_ms_ = watch.elapsed_ms();
  return std::shared_ptr<SpeechEngine>(std::move(engine));
}

QwenEngine::QwenEngine(std::shared_ptr<const QwenModel> model, SpeechEngineOptions options)
    : files_(std::move(options.files)),
      model_(std::move(model)),
      default_voice_(default_qwen_voice(model_->config(), files_.voices)),
      compute_(options.compute != nullptr ? options.compute : Compute::shared()),
      queue_(compute_->scheduler()),
      team_(compute_->team(options.threads)),
      runner_(team_) {}

Status QwenEngine::prepare(ThreadTeam& packers) {
  SYRINX_TRY(pool_, qwen_tts::FramePool::make(model_->weights(), model_->codec(), runner_, queue_, kMaxSessions));
  if (model_->config().kind != qwen_tts::Kind::kBase) return {};
  SYRINX_TRY(cloner_, QwenCloner::make(model_, *pool_, team_, packers));
  return {};
}

// Where no voice is given and none is the default, the text may still name the one that begins.
Result<std::unique_ptr<SpeechSession>> QwenEngine::start(const SpeakOptions& options) {
  SYRINX_TRY_VOID(check_knobs(options.knobs, qwen_tts_family()));
  SYRINX_TRY(QwenSettings settings, read_qwen_settings(options, model_->config(), model_->generation()));
  SYRINX_TRY(std::vector<int32_t> instructions, model_->tokenizer().encode_instruction(settings.instructions));
  const bool needs_none = model_->config().kind == qwen_tts::Kind::kVoiceDesign;
  Voice voice;
  if (needs_none || !options.voice.empty() || !default_voice_.empty()) {
    SYRINX_TRY(voice, this->voice(options.voice));
  }
  SYRINX_TRY(qwen_tts::FramePool::Lease stream, pool_->lease());
  const auto find_voice = [self = shared_from_this(), voice](const std::string& name) -> Result<Voice> {
    if (!name.empty()) return self->marked_voice(name);
    return voice != nullptr ? voice : self->voice("");
  };
  return std::make_unique<SpeechSession>(std::make_unique<QwenSpeaker>(
      find_voice, model_, std::move(stream), voice, std::move(settings), std::move(instructions), options));
}

// A text may come from anybody: it chooses among the voices by name, and opens no file of this machine or another.
Result<QwenEngine::Voice> QwenEngine::marked_voice(const std::string& name) {
  SYRINX_TRY_VOID(check_marked_voice(name));
  return voice(name);
}

Result<QwenEngine::Voice> QwenEngine::voice(const std::string& name) {
  if (cloner_ != nullptr) return cloned_voice(name.empty() ? default_voice_ : name);
  SYRINX_TRY_VOID(find_qwen_voice(model_->config(), files_.voices, name));
  QwenVoice voice;
  if (model_->config().kind == qwen_tts::Kind::kCustomVoice) {
    SYRINX_TRY(voice.speaker, find_qwen_speaker(model_->config(), name.empty() ? default_voice_ : name));
  }
  return std::make_shared<const QwenVoice>(std::move(voice));
}

Result<QwenEngine::Voice> QwenEngine::cloned_voice(const std::string& name) {
  {
    const std::lock_guard lock(voices_mutex_);
    for (const auto* const map : {&added_voices_, &voices_})
      if (const auto found = map->find(name); found != map->end()) return found->second;
  }
  SYRINX_TRY(const QwenRecording recording, find_qwen_recording(files_.voices, name));
  SYRINX_TRY(Voice made, read_voice(recording));
  keep(name, made);
  return made;
}

Result<QwenEngine::Voice> QwenEngine::read_voice(const QwenRecording& recording) {
  const int64_t due_ns = system_clock().now_ns();  // a session waits for it
  SYRINX_TRY(const std::string words, read_qwen_words(recording));
  SYRINX_TRY(const WatchedFile file, WatchedFile::open(recording.path));
  auto made = cloner_->make_voice(file.bytes(), words, recording.path, due_ns);
  SYRINX_TRY_VOID(file.check_all());
  return made;
}

// Voices read from files make room: they can be read again.
void QwenEngine::keep(const std::string& name, const Voice& voice) {
  const std::lock_guard lock(voices_mutex_);
  const size_t bytes = voice->bytes(), room = room_of_files();
  if (bytes + bytes_of(voices_) > room) voices_.clear();
  if (bytes <= room) voices_[name] = voice;
}

size_t QwenEngine::room_of_files() const {
  return std::max(kMaxVoiceBytes - bytes_of(added_voices_), kMaxVoiceBytes / 2);
}

Status QwenEngine::add_voice(const std::string& name, std::span<const std::byte> content) {
  SYRINX_TRY_VOID(check_voice_name(name));
  SYRINX_TRY_VOID(check_qwen_clones(model_->config()));
  SYRINX_TRY(Voice made, cloner_->make_voice(content, "", name, kNeverDue));
  const std::lock_guard lock(voices_mutex_);
  const auto replaced = added_voices_.find(name);
  size_t bytes = made->bytes() + bytes_of(added_voices_);
  if (replaced != added_voices_.end()) bytes -= replaced->second->bytes();
  if (bytes > kMaxVoiceBytes)
    return fail(Code::kLimitExceeded,
                "voice '{}' would make {} bytes of added voices, at most {} are kept; remove one first", name, bytes,
                kMaxVoiceBytes);
  if (replaced != added_voices_.end()) pool_->forget_voice(replaced->second->vector);
  added_voices_[name] = std::move(made);
  if (bytes_of(voices_) > room_of_files()) voices_.clear();
  return {};
}

void QwenEngine::remove_voice(const std::string& name) {
  const std::lock_guard lock(voices_mutex_);
  const auto found = added_voices_.find(name);
  if (found == added_voices_.end()) return;
  pool_->forget_voice(found->second->vector);
  added_voices_.erase(found);
}

Result<std::string> QwenEngine::export_voice(const std::string& voice) {
  SYRINX_TRY_VOID(check_qwen_clones(model_->config()));
  SYRINX_TRY(const Voice made, cloned_voice(voice.empty() ? default_voice_ : voice));
  return write_qwen_voice(*made, model_->config());
}

}  // namespace syrinx
