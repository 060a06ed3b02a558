#include "engine/families/qwen_tts/qwen_cloner.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "tensor/safetensors.h"

namespace syrinx {
namespace {

// A tensor of a list by its name; null: there is none.
std::function<const TensorRef*(std::string_view name)> finder(const std::vector<TensorRef>& tensors) {
  return [&tensors](std::string_view name) {
    const auto found =
        std::find_if(tensors.begin(), tensors.end(), [&](const TensorRef& each) { return each.name == name; });
    return found != tensors.end() ? &*found : nullptr;
  };
}

}  // namespace

Result<std::unique_ptr<QwenCloner>> QwenCloner::make(std::shared_ptr<const QwenModel> model, qwen_tts::FramePool& pool,
                                                     ThreadTeam& team, ThreadTeam& packers) {
  std::unique_ptr<QwenCloner> cloner(new QwenCloner(std::move(model), pool, team));
  SYRINX_TRY_VOID(cloner->load(packers));
  return cloner;
}

Status QwenCloner::load(ThreadTeam& packers) {
  SYRINX_TRY(qwen_tts::SpeakerWeights speaker,
             qwen_tts::SpeakerWeights::load(
                 {.find = finder(model_->checkpoint().tensors().tensors), .release = {}, .team = &packers},
                 model_->checkpoint().folder(), *model_->config().speaker_encoder));
  const std::string name = model_->codec_folder() + "/model.safetensors";
  SYRINX_TRY(const MappedFile file, MappedFile::open(name));
  SYRINX_TRY(const Safetensors codec, Safetensors::parse(file.bytes(), name));
  SYRINX_TRY(qwen_tts::CodecEncoderWeights encoder,
             qwen_tts::CodecEncoderWeights::load({.find = [&](std::string_view tensor) { return codec.find(tensor); },
                                                  .release = [&file] { file.release(); },
                                                  .team = &packers},
                                                 name, model_->codec_config()));
  if (encoder.config.used_codebooks != model_->config().codebooks)
    return fail(Code::kUnsupported, "the codec in '{}' makes {} codes a frame of a recording, and the model takes {}",
                model_->codec_folder(), encoder.config.used_codebooks, model_->config().codebooks);
  cloner_.emplace(std::make_shared<const qwen_tts::SpeakerWeights>(std::move(speaker)),
                  std::make_shared<const qwen_tts::CodecEncoderWeights>(std::move(encoder)), runner_);
  return {};
}

Result<std::shared_ptr<const QwenVoice>> QwenCloner::make_voice(std::span<const std::byte> content,
                                                                const std::string& words, const std::string& name,
                                                                int64_t due_ns) {
  const std::lock_guard lock(mutex_);
  QwenVoice voice;
  if (is_qwen_voice_file(content)) {
    SYRINX_TRY(voice, parse_qwen_voice(content, name, model_->config()));
  } else {
    SYRINX_TRY(voice, clone(content, words, name, due_ns));
  }
  if (!voice.codes.empty()) sound_out(voice, due_ns);
  return std::make_shared<const QwenVoice>(std::move(voice));
}

Result<QwenVoice> QwenCloner::clone(std::span<const std::byte> recording, const std::string& words,
                                    const std::string& name, int64_t due_ns) {
  SYRINX_TRY(const qwen_tts::ReferenceAudio reference,
             qwen_tts::read_reference(recording, QwenModel::kSampleRateHz, {}, name));
  QwenVoice voice;
  if (!words.empty()) {
    SYRINX_TRY(voice.words, model_->tokenizer().encode(words));
  }
  if (voice.words.size() > kMaxQwenVoiceWords)
    return fail(Code::kLimitExceeded, "the words of '{}' have {} tokens, at most {} are taken; use a shorter recording",
                name, voice.words.size(), kMaxQwenVoiceWords);
  Result<qwen_tts::ClonedVoice> cloned;
  pool_.alone(
      [&](const nn::BetweenJobs& between) {
        runner_.set_between(between);
        cloned = cloner_->clone(reference, !words.empty());
        runner_.set_between({});
      },
      due_ns);
  if (!cloned) return tl::unexpected(std::move(cloned).error());
  voice.vector = std::move(cloned->x_vector);
  voice.codes = std::move(cloned->codes);
  return voice;
}

void QwenCloner::sound_out(QwenVoice& voice, int64_t due_ns) {
  const size_t codebooks = model_->config().codebooks, frames = voice.codes.size() / codebooks;
  voice.sound.emplace(pool_.make_codec_state());
  std::vector<float> samples(model_->codec_config().frame_samples);
  pool_.alone(
      [&](const nn::BetweenJobs& between) {
        for (size_t frame = frames - std::min(frames, kSoundFrames); frame < frames; ++frame) {
          pool_.decode(*voice.sound, {voice.codes.data() + frame * codebooks, {1, codebooks}}, samples);
          between();
        }
      },
      due_ns);
}

}  // namespace syrinx
