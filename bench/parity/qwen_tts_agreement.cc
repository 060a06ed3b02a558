// Qwen3-TTS in a narrow precision beside the same or another checkpoint in f32: logits of talker and code predictor
// behind the same codes; bench/parity/qwen_tts.py runs it.
//
//   qwen_tts_agreement FOLDER FRAMES THREADS [PRECISION | FOLDER]...
//
// FOLDER in f32 speaks FRAMES frames, drawn as its generation_config.json says.  Each further word is a precision of
// it, or a folder of the same sizes, which is read in f32; it is given these codes.  Prints a JSON object a line.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/json.h"
#include "models/qwen_tts/frame_generator.h"
#include "models/qwen_tts/tokenizer.h"

namespace syrinx::qwen_tts {
namespace {

constexpr size_t kPieceFrames = 60;  // 4.8 s
constexpr size_t kMostEmpty = 20;    // pieces one after another
constexpr std::array kTexts = {"The quick brown fox jumps over the lazy dog near the river bank.",
                               "Please call me back tomorrow morning, before nine.",
                               "It rained all night, and the garden was full of water.",
                               "She sells sea shells by the sea shore, and the shells she sells are sea shells."};

// All codes of each frame and the logits that they are drawn from.
struct Spoken {
  std::vector<int32_t> codes;    // [frames, codebooks]
  std::vector<float> talker;     // [frames, V]
  std::vector<float> predictor;  // [frames, codebooks - 1, C]
};

struct Model {
  std::shared_ptr<const Weights> weights;
  std::unique_ptr<FrameGenerator> generator;
};

Result<Model> load(const Checkpoint& checkpoint, Precision precision, nn::Runner& runner) {
  Model model;
  SYRINX_TRY(model.weights, load_weights(checkpoint, {.precision = precision, .team = &runner.team()}));
  SYRINX_TRY(model.generator, FrameGenerator::make(model.weights, runner));
  return model;
}

// The piece of number n, by the codes that are given, if there are any.
Result<Spoken> speak(FrameGenerator& generator, const Prompt& prompt, SpeechSettings settings) {
  Spoken spoken;
  generator.set_probe([&](std::string_view stage, View<const float, 2> rows) {
    if (stage == "logits") spoken.talker.insert(spoken.talker.end(), rows.row(0), rows.row(0) + rows.extent(1));
  });
  generator.predictor().set_probe([&](std::string_view stage, size_t, View<const float, 2> rows) {
    if (stage != "logits") return;
    spoken.predictor.insert(spoken.predictor.end(), rows.row(0), rows.row(0) + rows.extent(1));
  });
  SYRINX_TRY(FrameStream stream, generator.make_stream(generator.positions_for(prompt, settings)));
  SYRINX_TRY_VOID(generator.begin(stream, prompt, settings));
  while (!generator.read_prompt(stream)) continue;
  FrameStream* const one = &stream;
  while (stream.frames() < settings.draws.max_frames) {
    generator.step({&one, 1});
    if (stream.end() != End::kNone) break;
    spoken.codes.insert(spoken.codes.end(), stream.codes().begin(), stream.codes().end());
  }
  generator.set_probe({});
  generator.predictor().set_probe({});
  if (stream.end() == End::kFault) return fail(Code::kDataLoss, "logits that are not numbers");
  spoken.talker.resize(stream.frames() * generator.weights().config.vocabulary);  // without those of the end
  return spoken;
}

// Errors of rows of logits beside those of f32.
struct Errors {
  double sum = 0, deviation = 0;  // of rows: the mean error, the deviation of f32
  size_t rows = 0, same = 0;      // of them with the same largest logit
  void add(std::span<const float> got, std::span<const float> want) {
    double mean = 0, squares = 0, error = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      mean += want[i];
      error += std::fabs(double{got[i]} - want[i]);
    }
    const auto count = static_cast<double>(want.size());
    mean /= count;
    for (const float logit : want) squares += (logit - mean) * (logit - mean);
    sum += error / count;
    deviation += std::sqrt(squares / count);
    ++rows;
    const auto largest = [](std::span<const float> row) {
      return std::max_element(row.begin(), row.end()) - row.begin();
    };
    same += largest(got) == largest(want) ? 1 : 0;
  }
  Json json() const {
    Json out;
    out.set("error", sum / deviation);
    out.set("same_largest", static_cast<double>(same) / static_cast<double>(rows));
    return out;
  }
};

void compare(std::span<const float> got, std::span<const float> want, size_t width, Errors& errors) {
  for (size_t at = 0; at < want.size(); at += width) errors.add(got.subspan(at, width), want.subspan(at, width));
}

class Agreement {
 public:
  Agreement(const Checkpoint& checkpoint, nn::Runner& runner) : checkpoint_(checkpoint), runner_(runner) {}

  Status speak_reference(size_t frames) {
    SYRINX_TRY(const Tokenizer tokenizer, Tokenizer::load(checkpoint_.folder(), checkpoint_.config()));
    SYRINX_TRY(Model model, load(checkpoint_, Precision::kF32, runner_));
    voice_.resize(checkpoint_.config().talker.width, 0.01f);
    for (size_t made = 0, empty = 0; made < frames;) {
      SYRINX_TRY(Prompt prompt, make_piece(tokenizer, pieces_.size()));
      SpeechSettings settings{.draws = checkpoint_.generation(), .seed = 1};
      settings.number = static_cast<uint32_t>(pieces_.size());
      settings.draws.max_frames = std::min(kPieceFrames, frames - made);
      SYRINX_TRY(Spoken spoken, speak(*model.generator, prompt, settings));
      empty = spoken.codes.empty() ? empty + 1 : 0;
      if (empty == kMostEmpty)
        return fail(Code::kUnsupported, "'{}' ends {} pieces of text without a frame; give a checkpoint that speaks",
                    checkpoint_.folder(), kMostEmpty);
      made += spoken.codes.size() / checkpoint_.config().codebooks;
      pieces_.push_back({.prompt = std::move(prompt), .settings = settings, .spoken = std::move(spoken)});
      std::fprintf(stderr, "f32: %zu of %zu frames\n", made, frames);
    }
    return {};
  }

  Result<Json> compare_with(const std::string& word) {
    const auto precision = parse_precision(word);
    SYRINX_TRY(const Checkpoint other, Checkpoint::open(precision ? checkpoint_.folder() : word));
    SYRINX_TRY(Model model, load(other, precision.value_or(Precision::kF32), runner_));
    const Config& config = checkpoint_.config();
    Errors talker, predictor;
    for (const Piece& piece : pieces_) {
      SpeechSettings settings = piece.settings;
      settings.forced = piece.spoken.codes;
      settings.draws.max_frames = piece.spoken.codes.size() / config.codebooks;
      SYRINX_TRY(const Spoken spoken, speak(*model.generator, piece.prompt, settings));
      compare(spoken.talker, piece.spoken.talker, config.vocabulary, talker);
      compare(spoken.predictor, piece.spoken.predictor, config.predictor_codes, predictor);
    }
    Json out;
    out.set("of", word);
    out.set("frames", talker.rows);
    out.set("talker", talker.json());
    out.set("predictor", predictor.json());
    return out;
  }

 private:
  struct Piece {
    Prompt prompt;
    SpeechSettings settings;
    Spoken spoken;
  };
  Result<Prompt> make_piece(const Tokenizer& tokenizer, size_t number) const {
    const Config& config = checkpoint_.config();
    SYRINX_TRY(const std::vector<int32_t> text, tokenizer.encode(kTexts[number % kTexts.size()]));
    PromptRequest request{.role = tokenizer.role(), .text = text, .language = "english"};
    if (config.kind == Kind::kBase) request.voice = voice_;
    return make_prompt(config, request);
  }

  const Checkpoint& checkpoint_;
  nn::Runner& runner_;
  std::vector<float> voice_;
  std::vector<Piece> pieces_;
};

Status run(std::span<char*> words) {
  const int threads = std::atoi(words[2]);
  const long frames = std::atol(words[1]);
  if (threads < 1 || frames < 1) return fail(Code::kInvalidArgument, "threads and frames must be 1 or more");
  ThreadTeam team(threads);
  nn::Runner runner(team);
  SYRINX_TRY(const Checkpoint checkpoint, Checkpoint::open(words[0]));
  Agreement agreement(checkpoint, runner);
  SYRINX_TRY_VOID(agreement.speak_reference(static_cast<size_t>(frames)));
  for (const char* const word : words.subspan(3)) {
    SYRINX_TRY(const Json line, agreement.compare_with(word));
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
  }
  return {};
}

}  // namespace
}  // namespace syrinx::qwen_tts

int main(int count, char** words) {
  if (count < 5) {
    std::fputs("usage: qwen_tts_agreement FOLDER FRAMES THREADS [PRECISION | FOLDER]...\n", stderr);
    return 2;
  }
  const auto done = syrinx::qwen_tts::run({words + 1, words + count});
  if (done) return 0;
  std::fprintf(stderr, "qwen_tts_agreement: %s\n", done.error().message.c_str());
  return 1;
}
