#include "engine/families/transducer/transducer_family.h"

#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/in_quotes.h"
#include "engine/families/transducer/transducer_frames.h"
#include "engine/families/transducer/transducer_recogniser.h"
#include "models/transducer/beam.h"
#include "models/transducer/checkpoint.h"
#include "store/paths.h"
#include "tensor/gzip.h"
#include "tensor/tar.h"

namespace syrinx {
namespace {

constexpr Precision kPrecisions[] = {TransducerRecogniser::kDefaultPrecision, Precision::kBf16, Precision::kF32};
constexpr const char* kHeads[] = {"ctc", "transducer"};

constexpr Knob kKnobs[] = {
    {.name = "head",
     .kind = Knob::Kind::kText,
     .type = "HEAD",
     .help = "which head of a hybrid model writes, ctc or transducer; by default the transducer's, which hears better",
     .use = Knob::Use::kLoad,
     .choices = kHeads},
    {.name = "look_ahead",
     .kind = Knob::Kind::kWhole,
     .least = 0,
     .most = 1 << 20,
     .type = "N",
     .help = "frames that a cache-aware model looks ahead in a stream; by default its first choice",
     .use = Knob::Use::kLoad},
    {.name = "stream_window",
     .kind = Knob::Kind::kText,
     .type = "S,S,S",
     .help = "seconds before, in and behind the windows in which any other model hears a stream; 10,2,2",
     .use = Knob::Use::kLoad},
    {.name = "boost",
     .kind = Knob::Kind::kTexts,
     .type = "PHRASE",
     .help = "a word or phrase to favour; may be given several times"},
    {.name = "boost_score",
     .kind = Knob::Kind::kNumber,
     .least = -1000,
     .most = 1000,
     .help = "how much boosted phrases are favoured; 1"},
    {.name = "beam",
     .kind = Knob::Kind::kWhole,
     .least = 0,
     .most = transducer::kMaxBeam,
     .type = "N",
     .help = "hypotheses of a beam search, 2 to 16; for recordings, several times slower"},
};

// Hugging Face's configurations name the kind of model; those of the maker name a class, as the configuration in an
// archive does.
bool recognise_config(const Json& config) {
  const std::string name = model_type(config);
  for (const char* const known : {"parakeet", "nemotron_asr", "nemotron3_5_asr"})
    if (name.starts_with(known)) return true;
  return config.find("preprocessor") != nullptr && config.find("encoder") != nullptr;
}

bool recognise(const std::string& checkpoint, const Json* config) {
  if (config != nullptr) return recognise_config(*config);
  const std::filesystem::path path(checkpoint);
  const std::string suffix = path.extension().string();
  return suffix == ".nemo" || suffix == ".ckpt" ||
         (suffix == ".pt" && is_there(path.parent_path() / "model_config.yaml"));
}

const char* head_name(transducer::HeadKind kind) {
  switch (kind) {
    case transducer::HeadKind::kCtc: return "ctc";
    case transducer::HeadKind::kRnnt: return "rnnt";
    case transducer::HeadKind::kTdt: return "tdt";
  }
  return "";
}

// The options of its streams; the first look-ahead is the default.
std::string streams_text(const transducer::Config& config) {
  const transducer::EncoderConfig& encoder = config.encoder;
  if (ChunkedFrames::fits(config)) {
    std::vector<ptrdiff_t> ahead;
    for (const transducer::AttentionContext& context : encoder.contexts) ahead.push_back(context.right);
    const bool blocks = encoder.style == transducer::ContextStyle::kRegular;
    return fmt::format("chunks that look {} frames ahead{}", fmt::join(ahead, "/"), blocks ? " in each block" : "");
  }
  std::string sizes = "any size";
  if (encoder.menu)
    sizes = fmt::format("{} frames with {} before and {} behind them", fmt::join(encoder.menu->chunk, "/"),
                        fmt::join(encoder.menu->left, "/"), fmt::join(encoder.menu->right, "/"));
  const StreamWindow usual = WindowedFrames::usual(config);
  return fmt::format("windows of {}, {:.4g},{:.4g},{:.4g} s where none is asked for", sizes, usual.left_s,
                     usual.chunk_s, usual.right_s);
}

Result<bool> describe(const InspectedFile& inspected, FileDescription& out) {
  const bool is_archive = TarArchive::looks_like(inspected.bytes) || looks_like_gzip(inspected.bytes);
  if (!out.kind.empty() || !is_archive) return false;
  out.kind = "nemo";
  SYRINX_TRY(const transducer::Checkpoint file, transducer::Checkpoint::open(out.path));
  for (const TensorRef& tensor : file.tensors())
    out.tensors.push_back({tensor.name, dtype_name(tensor.dtype), tensor.dims, tensor.bytes.size()});
  const transducer::Config& config = file.config();
  out.model = "transducer";
  out.facts = {{"class", config.target},
               {"head", head_name(config.decoder.kind)},
               {"vocabulary", std::to_string(config.decoder.vocabulary)},
               {"encoder", fmt::format("{} layers of {}, {} heads", config.encoder.layers, config.encoder.width,
                                       config.encoder.heads)},
               {"frame_ms", fmt::format("{:.0f}", config.frame_s() * 1000)},
               {"streams", streams_text(config)},
               {"maker's version", config.nemo_version}};
  return true;
}

// "10,2,2": seconds before, in and behind.
Result<StreamWindow> parse_window(const std::string& text) {
  StreamWindow window;
  double* const places[] = {&window.left_s, &window.chunk_s, &window.right_s};
  const char *at = text.data(), *const end = at + text.size();
  for (double* const place : places) {
    const auto [behind, error] = std::from_chars(at, end, *place);
    const bool is_last = place == &window.right_s;
    if (error != std::errc() || (is_last ? behind != end : behind == end || *behind != ','))
      return fail(Code::kInvalidArgument,
                  "'stream_window' is {}; give seconds before, in and behind a window, say 10,2,2", in_quotes(text));
    at = behind + 1;
  }
  return window;
}

}  // namespace

Result<TransducerChoices> transducer_choices(const Knobs& knobs) {
  TransducerChoices choices;
  if (const auto head = knobs.text("head"))
    choices.head = *head == "ctc" ? transducer::HeadChoice::kCtc : transducer::HeadChoice::kTransducer;
  if (const auto frames = knobs.number("look_ahead")) choices.look_ahead = static_cast<int>(*frames);
  if (const auto window = knobs.text("stream_window")) {
    SYRINX_TRY(choices.window, parse_window(*window));
  }
  return choices;
}

const RecognitionFamily& transducer_family() {
  static const RecognitionFamily family{
      .kind = "transducer",
      .title = "FastConformer",
      .maker = "NVIDIA",
      .url = "https://github.com/NVIDIA/NeMo",
      .files = ".nemo, .safetensors, .ckpt or .pt of a FastConformer",
      .recognise = recognise,
      .load = [](RecogniserOptions options) { return TransducerRecogniser::load(std::move(options)); },
      .describe = describe,
      .precisions = kPrecisions,
      .knobs = kKnobs};
  return family;
}

}  // namespace syrinx
