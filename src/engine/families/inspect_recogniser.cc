#include "engine/families/inspect_recogniser.h"

#include <cstring>
#include <string_view>

#include "engine/families/transducer/transducer_frames.h"
#include "models/silero/container.h"
#include "models/transducer/checkpoint.h"
#include "tensor/ct2_file.h"
#include "tensor/gzip.h"
#include "tensor/tar.h"

namespace syrinx {
namespace {

using Bytes = std::span<const std::byte>;

bool begins_with(Bytes bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

// Version 6, then the length of the specification's name and the name, of which all end in "Spec".
constexpr std::string_view kCt2Version("\6\0\0\0", 4);
bool looks_like_ct2(Bytes bytes) {
  constexpr size_t kLongestName = 64;
  if (!begins_with(bytes, kCt2Version) || bytes.size() < 8) return false;
  const size_t size = std::to_integer<size_t>(bytes[4]) | std::to_integer<size_t>(bytes[5]) << 8;
  if (size < 6 || size > kLongestName || bytes.size() < 6 + size) return false;
  return begins_with(bytes.subspan(6 + size - 5), std::string_view("Spec\0", 5));
}

constexpr std::string_view kGgml = "lmgg";  // 0x67676d6c, little endian

const char* head_name(transducer::HeadKind kind) {
  switch (kind) {
    case transducer::HeadKind::kCtc: return "ctc";
    case transducer::HeadKind::kRnnt: return "rnnt";
    case transducer::HeadKind::kTdt: return "tdt";
  }
  return "";
}

// What can be asked of its streams: the first look-ahead is the one that they have where none is.
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

void add(const TensorRef& tensor, FileDescription& out) {
  out.tensors.push_back({tensor.name, dtype_name(tensor.dtype), tensor.dims, tensor.bytes.size()});
}

Status describe_ct2(Bytes bytes, FileDescription& out) {
  out.kind = "ctranslate2";
  SYRINX_TRY(const Ct2File file, Ct2File::parse(bytes, out.path));
  for (const TensorRef& tensor : file.variables()) add(tensor, out);
  out.facts = {{"specification", file.specification()}, {"revision", std::to_string(file.revision())}};
  if (file.specification() == "WhisperSpec") out.model = "whisper";
  return {};
}

Status describe_silero(Bytes bytes, FileDescription& out) {
  out.kind = "ggml";
  SYRINX_TRY(const silero::Tensors tensors, silero::parse_container(bytes, out.path));
  out.model = "silero-vad";
  out.facts = {{"rate_hz", "16000"}, {"window_samples", "512"}, {"hidden", std::to_string(silero::kHidden)}};
  return {};
}

Status describe_transducer(FileDescription& out) {
  out.kind = "nemo";
  SYRINX_TRY(const transducer::Checkpoint file, transducer::Checkpoint::open(out.path));
  for (const TensorRef& tensor : file.tensors()) add(tensor, out);
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
  return {};
}

}  // namespace

bool looks_like_recogniser(Bytes bytes) {
  return looks_like_ct2(bytes) || begins_with(bytes, kGgml) || TarArchive::looks_like(bytes) || looks_like_gzip(bytes);
}

Status describe_recogniser(Bytes bytes, FileDescription& out) {
  if (looks_like_ct2(bytes)) return describe_ct2(bytes, out);
  if (begins_with(bytes, kGgml)) return describe_silero(bytes, out);
  return describe_transducer(out);
}

}  // namespace syrinx
