#include "engine/families/hum/hum_engine.h"

#include <deque>
#include <utility>

#include "base/clock.h"
#include "engine/families/hum/hum_family.h"
#include "engine/speech/sentence_speaker.h"

namespace syrinx {
namespace {

tl::unexpected<Error> no_voice(const std::string& name) {
  return fail(Code::kNotFound, "there is no voice '{}'; `syrinx voices` lists them", name);
}

class HumSpeaker final : public SentenceSpeaker {
 public:
  HumSpeaker(std::shared_ptr<HumEngine> engine, const hum::Voice& voice, const SpeakOptions& options)
      : SentenceSpeaker(options),
        engine_(std::move(engine)),
        first_(&voice),
        voice_(&voice),
        pitch_(static_cast<float>(options.knobs.number("pitch").value_or(1))) {}
  size_t chunks_ahead() const override { return 2; }
  int rate_hz() const override { return hum::kSampleRateHz; }

 private:
  Status read(const Sentence& sentence, SpeechStream& /*stream*/) override {
    waiting_.push_back(sentence.text);
    return {};
  }

  Result<bool> say(bool /*now*/, SpeechStream& stream) override {
    if (waiting_.empty()) return false;
    SpeechStatistics more{.pieces = 1};
    SpeechChunk chunk = stream.spare();
    chunk.samples.clear();
    {
      const std::function<bool()> is_wanted = [&stream] { return !stream.is_cancelled(); };
      const StepQueue::Turn turn(engine_->queue(), stream.due_ns(), is_wanted);
      if (!turn.is_mine()) return fail(Code::kCancelled, "the speech was cancelled");
      const Stopwatch watch(stream.clock());
      hum::hum(*voice_, waiting_.front(), pitch_, chunk.samples);
      more.compute_ms = watch.elapsed_ms();
      more.waiting_ms = static_cast<double>(turn.waited_ns()) * 1e-6;
    }
    waiting_.pop_front();
    has_spoken_ = true;
    stream.account(more);
    SYRINX_TRY_VOID(stream.hand_over(std::move(chunk)));
    return true;
  }

  Status end() override {
    return has_spoken_ ? Status() : fail(Code::kInvalidArgument, "there is nothing to say: the text is empty");
  }

  Status use_voice(const std::string& name) override {
    const hum::Voice* const found = name.empty() ? first_ : engine_->find_voice(name);
    if (found == nullptr) return no_voice(name);
    voice_ = found;
    return {};
  }

  void be_silent(size_t /*samples*/) override {}

  const std::shared_ptr<HumEngine> engine_;
  const hum::Voice* const first_;
  const hum::Voice* voice_;
  const float pitch_;
  std::deque<std::string> waiting_;
  bool has_spoken_ = false;
};

}  // namespace

Result<std::shared_ptr<SpeechEngine>> HumEngine::load(SpeechEngineOptions options) {
  const Stopwatch watch;
  SYRINX_TRY(const MappedFile file, MappedFile::open(options.files.checkpoint));
  SYRINX_TRY(hum::Voices voices, hum::read_voices(file));
  std::shared_ptr<HumEngine> engine(new HumEngine(std::move(voices), std::move(options)));
  engine->load_ms_ = watch.elapsed_ms();
  return std::shared_ptr<SpeechEngine>(std::move(engine));
}

HumEngine::HumEngine(hum::Voices voices, SpeechEngineOptions options)
    : files_(std::move(options.files)),
      voices_(std::move(voices)),
      compute_(options.compute != nullptr ? options.compute : Compute::shared()),
      queue_(compute_->scheduler()) {}

Result<std::unique_ptr<SpeechSession>> HumEngine::start(const SpeakOptions& options) {
  SYRINX_TRY_VOID(check_knobs(options.knobs, hum_family()));
  const hum::Voice* const voice = find_voice(options.voice);
  if (voice == nullptr) return no_voice(options.voice);
  return std::make_unique<SpeechSession>(std::make_unique<HumSpeaker>(shared_from_this(), *voice, options));
}

const hum::Voice* HumEngine::find_voice(const std::string& name) const {
  const auto found = name.empty() ? voices_.begin() : voices_.find(name);
  return found != voices_.end() ? &found->second : nullptr;
}

Status HumEngine::add_voice(const std::string& name, std::span<const std::byte> /*content*/) {
  return fail(Code::kUnsupported, "the voice '{}' cannot be added: those that hum stand in their model", name);
}

Result<std::string> HumEngine::export_voice(const std::string& voice) {
  return fail(Code::kUnsupported, "the voice '{}' cannot be exported: those that hum stand in their model", voice);
}

}  // namespace syrinx
