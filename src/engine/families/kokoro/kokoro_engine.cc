#include "engine/families/kokoro/kokoro_engine.h"

#include <algorithm>
#include <functional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "engine/families/kokoro/kokoro_family.h"
#include "engine/families/kokoro/kokoro_reader.h"
#include "engine/families/kokoro/kokoro_speaker.h"

namespace syrinx {
namespace {

constexpr size_t kMaxKeptVoices = 64;
// Nobody else is served while a piece is computed, and memory grows to the longest.  15 s is what the longest phoneme
// takes at the slowest speed, with the silence around it, so that any piece can be cut until it fits.
constexpr size_t kMaxPieceFrames = 600;

}  // namespace

Result<kokoro::Precision> KokoroEngine::precision_of(std::optional<Precision> precision) {
  switch (precision.value_or(Precision::kInt8)) {
    case Precision::kInt8: return kokoro::Precision::kInt8;
    case Precision::kF32: return kokoro::Precision::kF32;
    case Precision::kBf16:
    case Precision::kInt4: break;
  }
  return fail(Code::kUnsupported, "Kokoro is computed in int8 or f32, not in {}", precision_name(*precision));
}

Status KokoroEngine::check_lexicon(const SpeechFiles& files) { return check_lexicon_folder(files.lexicon); }

Status KokoroEngine::check_language(const std::string& voice) {
  SYRINX_TRY(const std::vector<kokoro::VoicePart> parts, kokoro::parse_voice(voice));
  for (const kokoro::VoicePart& part : parts) {
    const kokoro::VoiceInfo info = kokoro::describe_voice(part.name);
    if (part.is_path() || reads_texts_for(info)) continue;
    return fail(Code::kUnsupported,
                "voice '{}' speaks {}, and only English text can be read; give it phonemes (--phonemes)", info.name,
                info.language);
  }
  return {};
}

Status KokoroEngine::check_mark(const std::string& voice) {
  SYRINX_TRY(const std::vector<kokoro::VoicePart> parts, kokoro::parse_voice(voice));
  for (const kokoro::VoicePart& part : parts) SYRINX_TRY_VOID(check_marked_voice(part.name));
  return {};
}

bool reads_texts_for(const kokoro::VoiceInfo& voice) {
  return voice.language_code == "und" || voice.language_code.starts_with("en");
}

// Makes pieces for one session.
class KokoroEngine::Maker final : public SpeechMaker {
 public:
  Maker(std::shared_ptr<KokoroEngine> engine, Chosen chosen, const SpeakOptions& options)
      : engine_(std::move(engine)),
        open_(engine_->compute_->scheduler()),
        first_(std::move(chosen)),
        chosen_(first_),
        phonemes_(options.knobs.flag("phonemes")),
        speed_(static_cast<float>(options.knobs.number("speed").value_or(1))),
        noise_(options.knobs.flag("noise")) {}

  Status use_voice(const std::string& name) override {
    if (name.empty()) {
      chosen_ = first_;
      return {};
    }
    SYRINX_TRY_VOID(check_mark(name));
    SYRINX_TRY(chosen_, engine_->choose(name, phonemes_));
    return {};
  }

  Result<g2p::Phonemized> phonemize(std::string_view sentence, size_t source_offset) override {
    return chosen_.front_end->phonemize(sentence, source_offset);
  }

  Status synthesize(std::span<const int32_t> ids, size_t symbols, uint64_t seed, int64_t due_ns,
                    const std::function<bool()>& is_wanted, kokoro::PieceOutput& output) override {
    kokoro::PieceInput input;
    input.ids = ids;
    input.style = chosen_.voice->style(symbols);
    input.speed = speed_;
    input.noise = noise_;
    input.seed = seed;
    input.max_frames = kMaxPieceFrames;
    const int64_t deadline_ns = gapless_until_ns(due_ns, engine_->queue_.clock().now_ns());
    const StepQueue::Turn piece(engine_->pieces_, due_ns, is_wanted);
    if (!piece.is_mine()) return cancelled();
    StepQueue::Turn turn(engine_->queue_, due_ns, is_wanted, &engine_->piece_line_);
    if (!turn.is_mine()) return cancelled();
    turn.set_deadline(deadline_ns);
    // Between two jobs others have the team; a piece is as urgent as the first one that waits for its end.
    const auto between = [&] { turn.give_way(engine_->piece_line_.sooner(due_ns)); };
    // Short jobs cost time, most of all on a busy machine.
    const Scheduler& scheduler = engine_->queue_.scheduler();
    const auto cuts = [&scheduler] { return scheduler.is_shared(); };
    Status made = engine_->synthesizer_.synthesize(input, output, is_wanted, std::cref(between), std::cref(cuts));
    waited_ms_ += static_cast<double>(piece.waited_ns() + turn.waited_ns()) * 1e-6;
    return made;
  }

  double waited_ms() const override { return waited_ms_; }

 private:
  static tl::unexpected<Error> cancelled() {
    return fail(Code::kCancelled, "the speech was cancelled before a piece of it");
  }

  const std::shared_ptr<KokoroEngine> engine_;
  const Scheduler::Open open_;
  const Chosen first_;
  Chosen chosen_;
  const bool phonemes_;
  double waited_ms_ = 0;
  const float speed_;
  const bool noise_;
};

Result<std::shared_ptr<SpeechEngine>> KokoroEngine::load(SpeechEngineOptions options) {
  const Stopwatch watch;
  SYRINX_TRY(const kokoro::Precision precision, precision_of(options.precision));
  const std::string first_voice = options.first_voice.empty() ? kDefaultVoice : options.first_voice;
  const bool british = kokoro::speaks_british(first_voice);
  auto front_ends = std::make_unique<FrontEnds>(options.files, options.dictionary, options.cache_folder);
  Status front_end;
  std::jthread reader;  // joined on every way out
  if (!options.first_is_phonemes)
    reader = std::jthread([&] {
      if (auto read = front_ends->get(british); !read) front_end = tl::unexpected(std::move(read).error());
    });
  auto model = [&]() -> Result<std::shared_ptr<const kokoro::Model>> {
    MappedFile file;
    if (options.checkpoint) {
      file = std::move(*options.checkpoint);
    } else {
      SYRINX_TRY(file, MappedFile::open(options.files.checkpoint));
    }
    return kokoro::Model::load(std::move(file), {.precision = precision, .cache_dir = options.cache_folder});
  }();
  if (reader.joinable()) reader.join();
  if (!model) return tl::unexpected(std::move(model).error());
  if (!front_end) return tl::unexpected(std::move(front_end).error());

  std::shared_ptr<KokoroEngine> engine(new KokoroEngine(std::move(*model), std::move(options), std::move(front_ends)));
  engine->load_ms_ = watch.elapsed_ms();
  return std::shared_ptr<SpeechEngine>(std::move(engine));
}

KokoroEngine::KokoroEngine(std::shared_ptr<const kokoro::Model> model, SpeechEngineOptions options,
                           std::unique_ptr<FrontEnds> front_ends)
    : files_(std::move(options.files)),
      model_(std::move(model)),
      compute_(options.compute != nullptr ? options.compute : Compute::shared()),
      queue_(compute_->scheduler()),
      team_(compute_->team(options.threads)),
      synthesizer_(model_, team_),
      front_ends_(std::move(front_ends)) {}

Result<std::unique_ptr<SpeechSession>> KokoroEngine::start(const SpeakOptions& options) {
  SYRINX_TRY_VOID(check_knobs(options.knobs, kokoro_family()));
  SYRINX_TRY(Chosen chosen,
             choose(options.voice.empty() ? kDefaultVoice : options.voice, options.knobs.flag("phonemes")));
  auto maker = std::make_unique<Maker>(shared_from_this(), std::move(chosen), options);
  return std::make_unique<SpeechSession>(std::make_unique<KokoroSpeaker>(std::move(maker), options));
}

Result<std::unique_ptr<TextReading>> KokoroEngine::read(const SpeakOptions& options) {
  return read_english(options, [self = shared_from_this()](const std::string& name) -> FrontEnd {
    SYRINX_TRY(Chosen chosen, self->choose(name, false));
    return chosen.front_end;
  });
}

Result<KokoroEngine::Chosen> KokoroEngine::choose(const std::string& name, bool phonemes) {
  // First whether it is there: the name of a voice that is not says nothing of a language.
  Chosen chosen;
  SYRINX_TRY(chosen.voice, voice(name));
  if (phonemes) return chosen;
  SYRINX_TRY_VOID(check_language(name));
  SYRINX_TRY(chosen.front_end, front_ends_->get(kokoro::speaks_british(name)));
  return chosen;
}

Result<std::shared_ptr<const kokoro::Voice>> KokoroEngine::voice(const std::string& name) {
  const std::lock_guard lock(parts_mutex_);
  if (const auto added = added_voices_.find(name); added != added_voices_.end()) return added->second;
  if (const auto kept = voices_.find(name); kept != voices_.end()) return kept->second;
  SYRINX_TRY(kokoro::Voice read, kokoro::load_voice(files_.voices, name, model_->style_width()));
  auto voice = std::make_shared<const kokoro::Voice>(std::move(read));
  if (voices_.size() >= kMaxKeptVoices) voices_.clear();
  voices_.emplace(name, voice);
  return voice;
}

Status KokoroEngine::add_voice(const std::string& name, std::span<const std::byte> content) {
  SYRINX_TRY_VOID(check_voice_name(name));
  SYRINX_TRY(kokoro::Voice made, kokoro::Voice::parse(content, name, model_->style_width()));
  const std::lock_guard lock(parts_mutex_);
  added_voices_[name] = std::make_shared<const kokoro::Voice>(std::move(made));
  return {};
}

void KokoroEngine::remove_voice(const std::string& name) {
  const std::lock_guard lock(parts_mutex_);
  added_voices_.erase(name);
}

Result<std::string> KokoroEngine::export_voice(const std::string& voice) {
  return fail(Code::kUnsupported,
              "Kokoro clones no voices, so there is nothing to export of '{}'; its voices are files", voice);
}

Precision KokoroEngine::precision() const {
  return model_->precision() == kokoro::Precision::kF32 ? Precision::kF32 : Precision::kInt8;
}

const std::string& KokoroEngine::default_voice() const {
  static const std::string name = kDefaultVoice;
  return name;
}

}  // namespace syrinx
