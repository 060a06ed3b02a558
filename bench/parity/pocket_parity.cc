// Pocket TTS beside the maker's package at any size (bench/parity/pocket_tts.py makes the references and runs this).
//   pocket_parity stages CHECKPOINT REFERENCE RECORDING   every stage in f32; REFERENCE: a folder of
//                                                         tools/reference/pocket_tts.py model --whole
//   pocket_parity ends CHECKPOINT RECORDING               where f32, int8 and int4 end 20 texts
// SYRINX_CPU=AVX2 and others as for the engine.  Exit status 1: a stage differs by more than 1e-4 of its largest value,
// or could not be compared; 2: wrong arguments.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>

#include "base/mapped_file.h"
#include "kernels/dispatch.h"
#include "mimi/stages.h"
#include "models/pocket_tts/model.h"
#include "models/pocket_tts/prompt.h"
#include "models/pocket_tts/voice_recording.h"
#include "models/pocket_tts/voice_state.h"
#include "pocket_tts/ends.h"
#include "pocket_tts/stages.h"

namespace syrinx::pocket {
namespace {

constexpr double kBound = 1e-4;

Result<std::vector<float>> prepared(const std::string& path) {
  SYRINX_TRY(const MappedFile file, MappedFile::open(path));
  return read_voice_recording(file.bytes(), kSampleRateHz, false, path);
}

Result<VoiceState> stored_voice(const Model& model, const std::string& path, nn::Runner& runner) {
  SYRINX_TRY(const MappedFile file, MappedFile::open(path));
  SYRINX_TRY(const VoiceFile voice, parse_voice_file(file.bytes(), path, model.config().flow_lm));
  return make_voice(model, voice, runner);
}

// Gathers what was compared.
class Table {
 public:
  Status add(const Differences& stages) {
    if (!stages) return tl::unexpected(stages.error());
    for (const StageDifference& stage : *stages) {
      std::printf("%-28s %9.1e   %.0e%s\n", stage.stage.c_str(), stage.worst, kBound,
                  stage.worst <= kBound ? "" : "   TOO FAR");
      worst_ = std::max(worst_, stage.worst);
      within_ = within_ && stage.worst <= kBound;  // not so either where it is no number
      names_.insert(stage.stage);
    }
    return {};
  }
  // True where all is within the bound and no array of the reference was left out, but those that go in.
  bool finish(const Safetensors& reference) const {
    bool complete = true;
    for (const TensorRef& tensor : reference.tensors()) {
      const std::string& name = tensor.name;
      if (names_.count(name) > 0 || name.ends_with(".noise") || name.ends_with(".rows") || name == "mimi.denormalised")
        continue;
      std::printf("%-28s was not compared\n", name.c_str());
      complete = false;
    }
    std::printf("%zu stages, worst %.1e\n", names_.size(), worst_);
    return complete && within_;
  }

 private:
  std::set<std::string> names_;
  double worst_ = 0;
  bool within_ = true;
};

// The text's ids by our own preparation and tokenizer; no rounding is allowed.
Differences token_ids(const Model& model, const ReferenceFiles& reference) {
  const Json* const text = reference.facts.find("text");
  if (text == nullptr || text->string() == nullptr) return fail(Code::kDataLoss, "the reference names no text");
  SYRINX_TRY(const std::vector<Chunk> chunks,
             split_text(*text->string(), kDefaultMaxTokens, model.config().text, model.tokenizer()));
  SYRINX_TRY(const std::vector<int32_t> theirs, i32_array(reference.arrays, "text.ids"));
  return std::vector<StageDifference>{{"text.ids", chunks.at(0).ids == theirs ? 0.0 : 1.0}};
}

Differences recording_stage(const std::vector<float>& recording, const Safetensors& reference) {
  SYRINX_TRY(const std::vector<float> theirs, f32_array(reference, "voice.prepared"));
  return std::vector<StageDifference>{{"voice.prepared", largest_difference(recording, theirs)}};
}

// Texts spoken behind voice files: the package's own and, where the reference says so, one that Syrinx exported.
Status compare_generations(const Model& model, const std::string& folder, const ReferenceFiles& reference,
                           const FlowSchedule& schedule, nn::Runner& runner, Table& table) {
  SYRINX_TRY(const std::vector<Generation> generations,
             read_generations(reference.facts, model.config().eos_threshold));
  FlowLm flow(model.flow_lm(), runner);
  FlowHead head(model.flow_lm(), schedule, runner);
  ChunkSpeaker speaker(model.flow_lm(), model.decoder(), schedule, runner);
  for (const Generation& generation : generations) {
    const std::string file = generation.voice.empty() ? "voice.safetensors" : generation.voice;
    SYRINX_TRY(const VoiceState voice, stored_voice(model, folder + "/" + file, runner));
    std::string ends;
    for (const Generation::Chunk& chunk : generation.chunks)
      ends += fmt::format(" {} of {}{}", chunk.frames, chunk.max_steps, chunk.end_step ? "" : " (the limit)");
    std::printf("%s after %s: frames%s\n", generation.name.c_str(), file.c_str(), ends.c_str());
    SYRINX_TRY_VOID(table.add(generated_latents(generation, voice, flow, head, reference.arrays)));
    SYRINX_TRY_VOID(table.add(generated_sound(generation, voice, speaker, reference.arrays)));
  }
  return {};
}

Result<bool> compare_stages(const std::string& checkpoint, const std::string& folder, const std::string& recording) {
  SYRINX_TRY(const std::shared_ptr<const Model> model, Model::load(checkpoint));
  SYRINX_TRY(const ReferenceFiles reference, ReferenceFiles::open(folder));
  SYRINX_TRY(const std::vector<float> sound, prepared(recording));
  const Json* const steps = reference.facts.find("decode_steps");
  if (steps == nullptr || steps->whole() == nullptr || *steps->whole() < 0)
    return fail(Code::kDataLoss, "the reference has no 'decode_steps'");
  SYRINX_TRY(const FlowSchedule schedule, make_schedule(*model->flow_lm(), static_cast<size_t>(*steps->whole())));
  ThreadTeam team(1);
  nn::Runner runner(team);
  FlowLm flow(model->flow_lm(), runner);
  FlowHead head(model->flow_lm(), schedule, runner);
  Table table;
  std::printf("%-28s %9s   %s      (%s)\n", "stage", "worst", "bound", kernels::chosen_target_name().c_str());
  SYRINX_TRY_VOID(table.add(recording_stage(sound, reference.arrays)));
  SYRINX_TRY(const auto encoder, model->load_encoder());
  SYRINX_TRY_VOID(table.add(mimi::encoder_stages(encoder, sound, reference.arrays, runner)));
  SYRINX_TRY_VOID(table.add(token_ids(*model, reference)));
  SYRINX_TRY_VOID(table.add(flow_lm_stages(flow, reference.arrays)));
  SYRINX_TRY_VOID(table.add(flow_head_stages(head, *model->flow_lm(), reference.arrays)));
  SYRINX_TRY_VOID(table.add(mimi::decoder_stages(model->decoder(), reference.arrays, runner)));
  SYRINX_TRY_VOID(compare_generations(*model, folder, reference, schedule, runner, table));
  return table.finish(reference.arrays);
}

// The logit that one step of twelve is above, from the first on at which an end counts.
float threshold_of_twelve(const std::vector<TextEnds>& texts) {
  std::vector<float> all;
  for (const TextEnds& text : texts) all.insert(all.end(), text.exact.begin() + kFirstEndStep, text.exact.end());
  const auto place = all.begin() + static_cast<ptrdiff_t>(all.size() - all.size() / 12);
  std::nth_element(all.begin(), place, all.end());
  return *place;
}

void print_ends(const std::vector<TextEnds>& texts, float threshold) {
  const auto shown = [](std::optional<size_t> step) { return step ? std::to_string(*step) : std::string("limit"); };
  const auto frames = [](const std::vector<float>& logits, float at, size_t after) {
    SpeechEnd end(at, after, logits.size());
    for (const float logit : logits)
      if (!end.speaks(logit)) break;
    return end.frames();
  };
  std::printf("\nthreshold %.2f\n%-14s %6s |%6s", threshold, "text", "steps", "f32");
  for (const Precision precision : kNarrowPrecisions) std::printf("%7s", precision_name(precision));
  std::printf(" | frames alone:%4s   int8   int4\n", "f32");
  std::array<size_t, kNarrowPrecisions.size()> same{}, spoken{};
  size_t exact_frames = 0;
  for (const TextEnds& text : texts) {
    std::printf("%-14.14s %6zu |%6s", text.text.c_str(), text.exact.size(),
                shown(end_step(text.exact, threshold)).c_str());
    std::string apart;
    for (size_t p = 0; p < kNarrowPrecisions.size(); ++p) {
      const EndComparison ends = compare_ends(text.exact, text.forced[p], threshold);
      std::printf("%7s", shown(ends.narrow).c_str());
      same[p] += ends.same() ? 1 : 0;
      if (!ends.same())
        apart += fmt::format("   {}: f32 {:.3f} from the threshold, error {:.3f}", precision_name(kNarrowPrecisions[p]),
                             ends.margin, ends.error);
    }
    const size_t exact = frames(text.exact, threshold, frames_after_end({}, {}, 1));
    exact_frames += exact;
    std::printf(" | %17zu", exact);
    for (size_t p = 0; p < kNarrowPrecisions.size(); ++p) {
      const size_t alone = frames(text.running[p], threshold, frames_after_end({}, {}, 1));
      spoken[p] += alone;
      std::printf("%7zu", alone);
    }
    std::printf("%s\n", apart.c_str());
  }
  for (size_t p = 0; p < kNarrowPrecisions.size(); ++p) {
    std::printf("%s: the same end on %zu of %zu texts; alone %zu frames, f32 %zu\n",
                precision_name(kNarrowPrecisions[p]), same[p], texts.size(), spoken[p], exact_frames);
  }
}

Result<bool> compare_all_ends(const std::string& checkpoint, const std::string& recording) {
  SYRINX_TRY(const std::vector<float> sound, prepared(recording));
  SYRINX_TRY(const std::vector<TextEnds> texts, speak_texts(checkpoint, sound, 0, 1));
  SYRINX_TRY(const std::shared_ptr<const Model> model, Model::load(checkpoint));
  for (size_t p = 0; p < kNarrowPrecisions.size(); ++p) {
    double squares = 0, largest = 0;
    size_t count = 0;
    for (const TextEnds& text : texts) {
      for (size_t i = 0; i < text.exact.size(); ++i, ++count) {
        const double error = std::fabs(static_cast<double>(text.forced[p][i]) - text.exact[i]);
        squares += error * error;
        largest = std::max(largest, error);
      }
    }
    std::printf("%s: logits off by %.3f (RMS), %.3f at most, %zu steps\n", precision_name(kNarrowPrecisions[p]),
                std::sqrt(squares / static_cast<double>(count)), largest, count);
  }
  print_ends(texts, model->config().eos_threshold);
  print_ends(texts, threshold_of_twelve(texts));
  return true;
}

Result<bool> run(const std::vector<std::string>& words) {
  SYRINX_TRY_VOID(kernels::limit_cpu_from_environment());
  if (words.size() == 4 && words[0] == "stages") return compare_stages(words[1], words[2], words[3]);
  if (words.size() == 3 && words[0] == "ends") return compare_all_ends(words[1], words[2]);
  return fail(Code::kInvalidArgument,
              "usage: pocket_parity stages CHECKPOINT REFERENCE RECORDING, or ends CHECKPOINT RECORDING");
}

}  // namespace
}  // namespace syrinx::pocket

int main(int argc, char** argv) {
  const auto fine = syrinx::pocket::run({argv + 1, argv + argc});
  if (!fine) {
    std::fprintf(stderr, "%s\n", fine.error().message.c_str());
    return fine.error().code == syrinx::Code::kInvalidArgument ? 2 : 1;
  }
  return *fine ? 0 : 1;
}
