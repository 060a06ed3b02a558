#include "audio/decode/libav_decoder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "audio/decode/memory_source.h"
#include "audio/guards/matroska_elements.h"
#include "audio/guards/mp4_boxes.h"
#include "audio/libav.h"

namespace syrinx {
namespace {

constexpr int kBufferBytes = 32768;
constexpr size_t kBlockFrames = 16384;  // a packet of plain samples may be as large as the file
constexpr double kLeastGapS = 0.5;      // less is the rounding of times, or their drift
constexpr double kLongestGapS = 3600;
constexpr int kMaxTracks = 64;  // of Matroska, where films have dozens of subtitles; an MP4's are counted before

// One demuxer each, so that what was recognised here is not taken for one of FFmpeg's hundreds of formats.
const char* format_name(SoundContainer container) {
  switch (container) {
    case SoundContainer::kMatroska: return "matroska";
    case SoundContainer::kMp4: return "mov";
    case SoundContainer::kAdts: return "aac";
  }
  return "";
}

bool is_read(AVCodecID codec) {
  constexpr std::array kCodecs = {
      AV_CODEC_ID_AAC,       AV_CODEC_ID_ALAC,      AV_CODEC_ID_FLAC,      AV_CODEC_ID_MP3,       AV_CODEC_ID_OPUS,
      AV_CODEC_ID_VORBIS,    AV_CODEC_ID_PCM_U8,    AV_CODEC_ID_PCM_S8,    AV_CODEC_ID_PCM_S16LE, AV_CODEC_ID_PCM_S16BE,
      AV_CODEC_ID_PCM_S24LE, AV_CODEC_ID_PCM_S24BE, AV_CODEC_ID_PCM_S32LE, AV_CODEC_ID_PCM_S32BE, AV_CODEC_ID_PCM_F32LE,
      AV_CODEC_ID_PCM_F32BE, AV_CODEC_ID_PCM_F64LE, AV_CODEC_ID_PCM_F64BE, AV_CODEC_ID_PCM_MULAW, AV_CODEC_ID_PCM_ALAW};
  for (const AVCodecID known : kCodecs)
    if (codec == known) return true;
  return false;
}

// The file as FFmpeg sees it: what has its name at one of `hidden` is nothing to it, since it reads `mark` there.
struct ShownSource : MemorySource {
  std::vector<size_t> hidden;
  std::string_view mark;
};

int read_source(void* opaque, uint8_t* out, int size) {
  auto* const source = static_cast<ShownSource*>(opaque);
  const size_t begin = source->at, count = source->read(out, static_cast<size_t>(size)), end = source->at;
  const std::string_view mark = source->mark;
  const size_t reach = mark.size() - 1;  // a name may have begun before
  const std::vector<size_t>& hidden = source->hidden;
  for (auto name = std::lower_bound(hidden.begin(), hidden.end(), begin - std::min(begin, reach));
       name != hidden.end() && *name < end; ++name)
    for (size_t i = 0; i < mark.size(); ++i)
      if (*name + i >= begin && *name + i < end) out[*name + i - begin] = static_cast<uint8_t>(mark[i]);
  return count == 0 ? AVERROR_EOF : static_cast<int>(count);
}

int64_t seek_source(void* opaque, int64_t offset, int whence) {
  auto* const source = static_cast<ShownSource*>(opaque);
  if ((whence & AVSEEK_SIZE) != 0) return static_cast<int64_t>(source->bytes.size());
  return source->seek(offset, whence & ~AVSEEK_FORCE);
}

// A file may name others to be opened; none is.
int refuse_to_open(AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) { return AVERROR(EACCES); }

template <class Sample>
void interleave(const AVFrame& frame, bool planar, double middle, double scale, size_t first, std::span<float> out) {
  const auto channels = static_cast<size_t>(frame.ch_layout.nb_channels);
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t at = first + i;
    const auto* const plane = reinterpret_cast<const Sample*>(frame.extended_data[planar ? at % channels : 0]);
    out[i] = static_cast<float>((static_cast<double>(plane[planar ? at / channels : at]) - middle) * scale);
  }
}

// Takes the frame's interleaved samples from `first` on.
bool take_samples(const AVFrame& frame, size_t first, std::span<float> out) {
  switch (frame.format) {
    case AV_SAMPLE_FMT_U8: return interleave<uint8_t>(frame, false, 128, 0x1p-7, first, out), true;
    case AV_SAMPLE_FMT_U8P: return interleave<uint8_t>(frame, true, 128, 0x1p-7, first, out), true;
    case AV_SAMPLE_FMT_S16: return interleave<int16_t>(frame, false, 0, 0x1p-15, first, out), true;
    case AV_SAMPLE_FMT_S16P: return interleave<int16_t>(frame, true, 0, 0x1p-15, first, out), true;
    case AV_SAMPLE_FMT_S32: return interleave<int32_t>(frame, false, 0, 0x1p-31, first, out), true;
    case AV_SAMPLE_FMT_S32P: return interleave<int32_t>(frame, true, 0, 0x1p-31, first, out), true;
    case AV_SAMPLE_FMT_FLT: return interleave<float>(frame, false, 0, 1, first, out), true;
    case AV_SAMPLE_FMT_FLTP: return interleave<float>(frame, true, 0, 1, first, out), true;
    case AV_SAMPLE_FMT_DBL: return interleave<double>(frame, false, 0, 1, first, out), true;
    case AV_SAMPLE_FMT_DBLP: return interleave<double>(frame, true, 0, 1, first, out), true;
    default: return false;
  }
}

// One file from its opening to its last sample.
class Decoding {
 public:
  Decoding(const Libav& libav, ShownSource source, const std::string& name, MonoMixer& mixer)
      : libav_(libav), source_(std::move(source)), name_(name), mixer_(mixer) {}
  ~Decoding();
  Decoding(const Decoding&) = delete;
  Decoding& operator=(const Decoding&) = delete;

  Status open(SoundContainer container);
  Status decode();

 private:
  Status open_track();
  Status send(const AVPacket* packet);
  Status take_frame();
  Status fill_gap();
  tl::unexpected<Error> damaged(int error) const {
    return fail(Code::kDataLoss, "'{}' is damaged: {}", name_, libav_.sentence(error));
  }
  tl::unexpected<Error> no_memory() const { return fail(Code::kInternal, "there is no memory to decode '{}'", name_); }

  const Libav& libav_;
  ShownSource source_;
  const std::string& name_;
  MonoMixer& mixer_;
  AVIOContext* io_ = nullptr;
  AVFormatContext* format_ = nullptr;
  AVCodecContext* codec_ = nullptr;
  AVPacket* packet_ = nullptr;
  AVFrame* frame_ = nullptr;
  int track_ = -1;
  int rate_hz_ = 0, channels_ = 0;  // of the first frame
  bool has_times_ = false;
  double origin_s_ = 0;  // of the times
  std::vector<float> block_;
};

Decoding::~Decoding() {
  libav_.av_frame_free(&frame_);
  libav_.av_packet_free(&packet_);
  libav_.avcodec_free_context(&codec_);
  libav_.avformat_close_input(&format_);
  if (io_ == nullptr) return;
  libav_.av_freep(&io_->buffer);  // which may not be the one that we gave
  libav_.avio_context_free(&io_);
}

Status Decoding::open(SoundContainer container) {
  void* buffer = libav_.av_malloc(kBufferBytes);
  if (buffer == nullptr) return no_memory();
  io_ = libav_.avio_alloc_context(static_cast<unsigned char*>(buffer), kBufferBytes, 0, &source_, read_source, nullptr,
                                  seek_source);
  if (io_ == nullptr) libav_.av_freep(&buffer);
  format_ = libav_.avformat_alloc_context();
  packet_ = libav_.av_packet_alloc();
  frame_ = libav_.av_frame_alloc();
  if (io_ == nullptr || format_ == nullptr || packet_ == nullptr || frame_ == nullptr) return no_memory();
  const AVInputFormat* const demuxer = libav_.av_find_input_format(format_name(container));
  if (demuxer == nullptr)
    return fail(Code::kUnsupported, "FFmpeg's libraries here were built without what reads '{}'", name_);
  // Not before: what was never opened, FFmpeg would close as a file of its own.
  format_->pb = io_;
  format_->io_open = refuse_to_open;
  format_->max_streams = kMaxTracks;
  if (const int error = libav_.avformat_open_input(&format_, "", demuxer, nullptr); error < 0) return damaged(error);
  has_times_ = container != SoundContainer::kAdts;
  return open_track();
}

// The tracks are known from the container's head; guessing from their content would run decoders of video.
Status Decoding::open_track() {
  for (unsigned i = 0; i < format_->nb_streams; ++i) {
    AVStream* const stream = format_->streams[i];
    if (track_ < 0 && stream->codecpar->codec_type == AVMEDIA_TYPE_AUDIO)
      track_ = static_cast<int>(i);
    else
      stream->discard = AVDISCARD_ALL;
  }
  if (track_ < 0) return fail(Code::kDataLoss, "'{}' contains no audio", name_);
  const AVStream* const stream = format_->streams[track_];
  const AVCodecID id = stream->codecpar->codec_id;
  const AVCodec* const decoder = is_read(id) ? libav_.avcodec_find_decoder(id) : nullptr;
  if (decoder == nullptr)
    return fail(Code::kUnsupported,
                "the sound of '{}' is coded as {}; AAC, ALAC, FLAC, MP3, Opus, Vorbis and PCM are read", name_,
                libav_.avcodec_get_name(id));
  codec_ = libav_.avcodec_alloc_context3(decoder);
  if (codec_ == nullptr) return no_memory();
  if (const int error = libav_.avcodec_parameters_to_context(codec_, stream->codecpar); error < 0)
    return damaged(error);
  codec_->pkt_timebase = stream->time_base;
  codec_->thread_count = 1;
  if (const int error = libav_.avcodec_open2(codec_, decoder, nullptr); error < 0) return damaged(error);
  return {};
}

Status Decoding::decode() {
  for (;;) {
    const int error = libav_.av_read_frame(format_, packet_);
    if (error == AVERROR_EOF) return send(nullptr);
    if (error < 0) return damaged(error);
    Status sent;
    if (packet_->stream_index == track_) {
      // A packet of which the file holds only the beginning.
      if ((packet_->flags & AV_PKT_FLAG_CORRUPT) != 0) return damaged(AVERROR_INVALIDDATA);
      sent = send(packet_);
    }
    libav_.av_packet_unref(packet_);
    if (!sent) return sent;
  }
}

// Nothing: what is left in the decoder comes out.
Status Decoding::send(const AVPacket* packet) {
  if (const int error = libav_.avcodec_send_packet(codec_, packet); error < 0) return damaged(error);
  for (;;) {
    const int error = libav_.avcodec_receive_frame(codec_, frame_);
    if (error == AVERROR(EAGAIN) || error == AVERROR_EOF) return {};
    if (error < 0) return damaged(error);
    Status taken = take_frame();
    libav_.av_frame_unref(frame_);
    if (!taken) return taken;
  }
}

// Silence where the container's times say that there is no sound: before a track that begins late, and in pauses. Other
// jumps are those of a clock, which goes on from there.
Status Decoding::fill_gap() {
  if (!has_times_ || frame_->pts == AV_NOPTS_VALUE) return {};
  const AVRational base = codec_->pkt_timebase;
  const double begin_s = static_cast<double>(frame_->pts) * base.num / std::max(1, base.den);
  const double gap_s = begin_s - origin_s_ - mixer_.seconds();
  if (std::abs(gap_s) < kLeastGapS) return {};
  if (!(gap_s > 0 && gap_s < kLongestGapS)) {
    origin_s_ += gap_s;
    return {};
  }
  auto left = static_cast<size_t>(std::llround(gap_s * rate_hz_)) * static_cast<size_t>(channels_);
  for (; left > 0; left -= block_.size()) {
    block_.assign(std::min(left, kBlockFrames * static_cast<size_t>(channels_)), 0.0f);
    SYRINX_TRY_VOID(mixer_.add(block_));
  }
  return {};
}

Status Decoding::take_frame() {
  if (channels_ == 0) {
    SYRINX_TRY_VOID(mixer_.begin(frame_->ch_layout.nb_channels, frame_->sample_rate));
    rate_hz_ = frame_->sample_rate;
    channels_ = frame_->ch_layout.nb_channels;
  }
  if (frame_->sample_rate != rate_hz_ || frame_->ch_layout.nb_channels != channels_)
    return fail(Code::kUnsupported, "'{}' changes its rate or its channels on the way; convert it to WAV", name_);
  SYRINX_TRY_VOID(fill_gap());
  const auto channels = static_cast<size_t>(channels_), all = static_cast<size_t>(frame_->nb_samples) * channels;
  for (size_t first = 0; first < all; first += block_.size()) {
    block_.resize(std::min(all - first, kBlockFrames * channels));
    if (!take_samples(*frame_, first, block_))
      return fail(Code::kUnsupported, "the samples of '{}' are of no known kind", name_);
    SYRINX_TRY_VOID(mixer_.add(block_));
  }
  return {};
}

}  // namespace

Status decode_libav(const Libav& libav, std::span<const std::byte> file, SoundContainer container,
                    const std::string& name, MonoMixer& mixer) {
  SYRINX_TRY(std::vector<size_t> hidden, check_container(file, container, name));
  const std::string_view mark = container == SoundContainer::kMatroska ? kHiddenElement : kHiddenBox;
  Decoding decoding(libav, ShownSource{{file}, std::move(hidden), mark}, name, mixer);
  SYRINX_TRY_VOID(decoding.open(container));
  return decoding.decode();
}

Status decode_libav(std::span<const std::byte> file, SoundContainer container, const std::string& name,
                    MonoMixer& mixer) {
  const Result<const Libav*> libav = find_libav();
  if (!libav) return tl::unexpected(no_decoder(container, name, libav.error()));
  return decode_libav(**libav, file, container, name, mixer);
}

}  // namespace syrinx
