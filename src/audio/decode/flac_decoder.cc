#include "audio/decode/flac_decoder.h"

#include <FLAC/stream_decoder.h>

#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "audio/decode/memory_source.h"

namespace syrinx {
namespace {

struct Delete {
  void operator()(FLAC__StreamDecoder* decoder) const { FLAC__stream_decoder_delete(decoder); }
};

// State shared by libFLAC's callbacks.
struct Decoding {
  MemorySource source;
  const std::string& name;
  MonoMixer& mixer;
  unsigned channels = 0, rate_hz = 0;
  uint64_t announced = 0, frames = 0;  // announced 0: the encoder did not know
  std::vector<float> block = {};
  bool damaged = false;
  Status status = {};  // ours
};

FLAC__StreamDecoderReadStatus read_source(const FLAC__StreamDecoder*, FLAC__byte* out, size_t* size, void* client) {
  *size = static_cast<Decoding*>(client)->source.read(out, *size);
  return *size == 0 ? FLAC__STREAM_DECODER_READ_STATUS_END_OF_STREAM : FLAC__STREAM_DECODER_READ_STATUS_CONTINUE;
}

void take_header(const FLAC__StreamDecoder*, const FLAC__StreamMetadata* metadata, void* client) {
  if (metadata->type == FLAC__METADATA_TYPE_STREAMINFO)
    static_cast<Decoding*>(client)->announced = metadata->data.stream_info.total_samples;
}

void take_fault(const FLAC__StreamDecoder*, FLAC__StreamDecoderErrorStatus, void* client) {
  static_cast<Decoding*>(client)->damaged = true;
}

Status add_block(Decoding& d, const FLAC__Frame& frame, const FLAC__int32* const* channels) {
  const auto& header = frame.header;
  if (d.channels == 0) {
    const std::optional<uint64_t> announced = d.announced == 0 ? std::nullopt : std::optional(d.announced);
    SYRINX_TRY_VOID(d.mixer.begin(static_cast<int>(header.channels), static_cast<int>(header.sample_rate), announced));
    d.channels = header.channels;
    d.rate_hz = header.sample_rate;
  }
  if (header.channels != d.channels || header.sample_rate != d.rate_hz)
    return fail(Code::kUnsupported, "'{}' changes its rate or its channels on the way; convert it to WAV", d.name);
  d.block.resize(size_t{header.blocksize} * header.channels);
  const double scale = std::ldexp(1.0, 1 - static_cast<int>(header.bits_per_sample));
  for (size_t c = 0; c < header.channels; ++c)
    for (size_t i = 0; i < header.blocksize; ++i)
      d.block[i * header.channels + c] = static_cast<float>(channels[c][i] * scale);
  d.frames += header.blocksize;
  return d.mixer.add(d.block);
}

FLAC__StreamDecoderWriteStatus take_block(const FLAC__StreamDecoder*, const FLAC__Frame* frame,
                                          const FLAC__int32* const* channels, void* client) {
  Decoding& d = *static_cast<Decoding*>(client);
  d.status = add_block(d, *frame, channels);
  return d.status ? FLAC__STREAM_DECODER_WRITE_STATUS_CONTINUE : FLAC__STREAM_DECODER_WRITE_STATUS_ABORT;
}

// Until the announced length, the end, or the first fault.
void decode_all(FLAC__StreamDecoder* decoder, Decoding& d) {
  const auto state = [&] { return FLAC__stream_decoder_get_state(decoder); };
  while (d.status && !d.damaged && (d.announced == 0 || d.frames < d.announced) &&
         state() != FLAC__STREAM_DECODER_END_OF_STREAM) {
    if (!FLAC__stream_decoder_process_single(decoder)) d.damaged = true;
  }
}

}  // namespace

Status decode_flac(std::span<const std::byte> file, const std::string& name, MonoMixer& mixer) {
  Decoding d{.source = {file}, .name = name, .mixer = mixer};
  const std::unique_ptr<FLAC__StreamDecoder, Delete> decoder(FLAC__stream_decoder_new());
  if (decoder == nullptr) return fail(Code::kInternal, "libFLAC gave no decoder for '{}'", name);
  FLAC__stream_decoder_set_md5_checking(decoder.get(), true);
  if (FLAC__stream_decoder_init_stream(decoder.get(), read_source, nullptr, nullptr, nullptr, nullptr, take_block,
                                       take_header, take_fault, &d) != FLAC__STREAM_DECODER_INIT_STATUS_OK)
    return fail(Code::kInternal, "libFLAC cannot begin to decode '{}'", name);
  decode_all(decoder.get(), d);
  SYRINX_TRY_VOID(d.status);
  const bool has_its_md5 = FLAC__stream_decoder_finish(decoder.get());
  if (d.damaged || d.frames < d.announced || !has_its_md5 || d.channels == 0)
    return fail(Code::kDataLoss, "'{}' is cut off or damaged after {:.1f} s; get the whole file", name,
                d.rate_hz == 0 ? 0.0 : static_cast<double>(d.frames) / d.rate_hz);
  return {};
}

}  // namespace syrinx
