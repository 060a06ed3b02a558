#include "audio/sandbox/libav_decoder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "audio/sandbox/container_end.h"
#include "audio/sandbox/file_view.h"

namespace syrinx {
namespace {

constexpr int kBufferBytes = 32768;
constexpr double kLeastGapS = 0.5;         // in all that is not yet filled; less is the rounding of times
constexpr double kLeastStepS = 0.005;      // between two frames; less is the drift of a clock
constexpr double kMostUnannouncedS = 600;  // of silence, in a file that does not say how long it lasts
constexpr int kMaxTracks = 64;             // films have dozens of subtitles

// One demuxer each, so that a recognised file is not taken for one of FFmpeg's hundreds of formats.
const char* format_name(SoundContainer container) {
  switch (container) {
    case SoundContainer::kMatroska: return "matroska";
    case SoundContainer::kMp4: return "mov";
    case SoundContainer::kAdts: return "aac";
    case SoundContainer::kAsf: return "asf";
    case SoundContainer::kAmr: return "amr";
    case SoundContainer::kOggFlac: return "ogg";
  }
  return "";
}

bool has_times(SoundContainer container) {
  return container == SoundContainer::kMatroska || container == SoundContainer::kMp4 ||
         container == SoundContainer::kAsf;
}

bool is_read(AVCodecID codec) {
  constexpr std::array kCodecs = {
      AV_CODEC_ID_AAC,       AV_CODEC_ID_ALAC,      AV_CODEC_ID_FLAC,      AV_CODEC_ID_MP3,
      AV_CODEC_ID_OPUS,      AV_CODEC_ID_VORBIS,    AV_CODEC_ID_AMR_NB,    AV_CODEC_ID_AMR_WB,
      AV_CODEC_ID_WMAV1,     AV_CODEC_ID_WMAV2,     AV_CODEC_ID_WMAPRO,    AV_CODEC_ID_WMALOSSLESS,
      AV_CODEC_ID_WMAVOICE,  AV_CODEC_ID_PCM_U8,    AV_CODEC_ID_PCM_S8,    AV_CODEC_ID_PCM_S16LE,
      AV_CODEC_ID_PCM_S16BE, AV_CODEC_ID_PCM_S24LE, AV_CODEC_ID_PCM_S24BE, AV_CODEC_ID_PCM_S32LE,
      AV_CODEC_ID_PCM_S32BE, AV_CODEC_ID_PCM_F32LE, AV_CODEC_ID_PCM_F32BE, AV_CODEC_ID_PCM_F64LE,
      AV_CODEC_ID_PCM_F64BE, AV_CODEC_ID_PCM_MULAW, AV_CODEC_ID_PCM_ALAW};
  for (const AVCodecID known : kCodecs)
    if (codec == known) return true;
  return false;
}

struct HostSource {
  DecodeHost& host;
  uint64_t size, at = 0;
};

int read_source(void* opaque, uint8_t* out, int size) {
  auto* const source = static_cast<HostSource*>(opaque);
  const uint64_t count = std::min(static_cast<uint64_t>(size), source->size - source->at);
  if (count == 0) return AVERROR_EOF;
  if (!source->host.read(source->at, std::as_writable_bytes(std::span(out, static_cast<size_t>(count)))))
    return AVERROR(EIO);
  source->at += count;
  return static_cast<int>(count);
}

int64_t seek_source(void* opaque, int64_t offset, int whence) {
  auto* const source = static_cast<HostSource*>(opaque);
  const auto size = static_cast<int64_t>(source->size);
  if ((whence & AVSEEK_SIZE) != 0) return size;
  whence &= ~AVSEEK_FORCE;
  const int64_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? static_cast<int64_t>(source->at) : size;
  if (offset < -base || offset > size - base) return -1;
  source->at = static_cast<uint64_t>(base + offset);
  return base + offset;
}

// A file may name others to be opened; none is.
int refuse_to_open(AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) { return AVERROR(EACCES); }

template <class Sample>
void interleave_as(const AVFrame& frame, bool planar, double middle, double scale, size_t first, std::span<float> out) {
  const auto channels = static_cast<size_t>(frame.ch_layout.nb_channels);
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t at = first + i;
    const auto* const plane = reinterpret_cast<const Sample*>(frame.extended_data[planar ? at % channels : 0]);
    out[i] = static_cast<float>((static_cast<double>(plane[planar ? at / channels : at]) - middle) * scale);
  }
}

// Takes the frame's interleaved samples from `first` on.
bool interleave(const AVFrame& frame, size_t first, std::span<float> out) {
  switch (frame.format) {
    case AV_SAMPLE_FMT_U8: return interleave_as<uint8_t>(frame, false, 128, 0x1p-7, first, out), true;
    case AV_SAMPLE_FMT_U8P: return interleave_as<uint8_t>(frame, true, 128, 0x1p-7, first, out), true;
    case AV_SAMPLE_FMT_S16: return interleave_as<int16_t>(frame, false, 0, 0x1p-15, first, out), true;
    case AV_SAMPLE_FMT_S16P: return interleave_as<int16_t>(frame, true, 0, 0x1p-15, first, out), true;
    case AV_SAMPLE_FMT_S32: return interleave_as<int32_t>(frame, false, 0, 0x1p-31, first, out), true;
    case AV_SAMPLE_FMT_S32P: return interleave_as<int32_t>(frame, true, 0, 0x1p-31, first, out), true;
    case AV_SAMPLE_FMT_FLT: return interleave_as<float>(frame, false, 0, 1, first, out), true;
    case AV_SAMPLE_FMT_FLTP: return interleave_as<float>(frame, true, 0, 1, first, out), true;
    case AV_SAMPLE_FMT_DBL: return interleave_as<double>(frame, false, 0, 1, first, out), true;
    case AV_SAMPLE_FMT_DBLP: return interleave_as<double>(frame, true, 0, 1, first, out), true;
    default: return false;
  }
}

double seconds(int64_t time, const AVRational& base) {
  return static_cast<double>(time) * base.num / std::max(1, base.den);
}

// One file from its opening to its last sample.  What returns false has kept the fault.
class Decoding {
 public:
  Decoding(const Libav& libav, const DecodeOrder& order, DecodeHost& host)
      : libav_(libav), order_(order), host_(host), source_{host, order.file_bytes} {}
  ~Decoding();
  Decoding(const Decoding&) = delete;
  Decoding& operator=(const Decoding&) = delete;

  bool decode() {
    return open() && open_track() && decode_packets() && flush() && (channels_ > 0 || failed(DecodeFault::kNoSound));
  }
  bool flush();
  DecodeEnd take_end() { return std::move(end_); }

 private:
  bool open();
  bool open_track();
  bool decode_packets();
  bool send(const AVPacket* packet);
  bool take_frame();
  bool take_samples();
  void note_begin();
  bool fill_gap();
  uint64_t most_silence() const;
  bool failed(DecodeFault fault, std::string detail = {}) {
    end_ = {fault, std::move(detail)};
    return false;
  }
  bool failed(int error) {
    return error == AVERROR(ENOMEM) ? failed(DecodeFault::kNoMemory)
                                    : failed(DecodeFault::kDamaged, libav_.sentence(error));
  }
  bool gone() { return failed(DecodeFault::kDamaged, "nobody takes its sound"); }

  const Libav& libav_;
  const DecodeOrder& order_;
  DecodeHost& host_;
  HostSource source_;
  DecodeEnd end_;
  AVIOContext* io_ = nullptr;
  AVFormatContext* format_ = nullptr;
  AVCodecContext* codec_ = nullptr;
  AVPacket* packet_ = nullptr;
  AVFrame* frame_ = nullptr;
  int track_ = -1;
  int rate_hz_ = 0, channels_ = 0;    // of the first frame
  std::optional<double> earliest_s_;  // time of a track, before the first frame
  std::optional<double> origin_s_;    // of the times
  double next_s_ = 0;                 // time at which the last frame ends
  uint64_t frames_ = 0;               // of sound and silence so far
  uint64_t silence_ = 0;              // of them, silence
  std::vector<float> block_;          // that has not gone to the host
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

bool Decoding::open() {
  void* buffer = libav_.av_malloc(kBufferBytes);
  if (buffer == nullptr) return failed(DecodeFault::kNoMemory);
  io_ = libav_.avio_alloc_context(static_cast<unsigned char*>(buffer), kBufferBytes, 0, &source_, read_source, nullptr,
                                  seek_source);
  if (io_ == nullptr) libav_.av_freep(&buffer);
  format_ = libav_.avformat_alloc_context();
  packet_ = libav_.av_packet_alloc();
  frame_ = libav_.av_frame_alloc();
  if (io_ == nullptr || format_ == nullptr || packet_ == nullptr || frame_ == nullptr)
    return failed(DecodeFault::kNoMemory);
  const AVInputFormat* const demuxer = libav_.av_find_input_format(format_name(order_.container));
  if (demuxer == nullptr) return failed(DecodeFault::kNoDemuxer);
  // Not before: what was never opened, FFmpeg would close as a file of its own.
  format_->pb = io_;
  format_->io_open = refuse_to_open;
  format_->max_streams = kMaxTracks;
  const int error = libav_.avformat_open_input(&format_, "", demuxer, nullptr);
  return error >= 0 || failed(error);
}

// The tracks are known from the container's head; guessing from their content would run decoders of video.
bool Decoding::open_track() {
  for (unsigned i = 0; i < format_->nb_streams; ++i) {
    AVStream* const stream = format_->streams[i];
    const AVMediaType type = stream->codecpar->codec_type;
    const bool is_cover = (stream->disposition & AV_DISPOSITION_ATTACHED_PIC) != 0;
    if (track_ < 0 && type == AVMEDIA_TYPE_AUDIO)
      track_ = static_cast<int>(i);
    else if (has_times(order_.container) && (type == AVMEDIA_TYPE_AUDIO || type == AVMEDIA_TYPE_VIDEO) && !is_cover)
      format_->flags |= AVFMT_FLAG_NOPARSE;  // until the sound begins: note_begin()
    else
      stream->discard = AVDISCARD_ALL;
  }
  if (track_ < 0) return failed(DecodeFault::kNoSound);
  const AVStream* const stream = format_->streams[track_];
  const AVCodecID id = stream->codecpar->codec_id;
  const AVCodec* const decoder = is_read(id) ? libav_.avcodec_find_decoder(id) : nullptr;
  if (decoder == nullptr) return failed(DecodeFault::kUnknownCodec, libav_.avcodec_get_name(id));
  codec_ = libav_.avcodec_alloc_context3(decoder);
  if (codec_ == nullptr) return failed(DecodeFault::kNoMemory);
  if (const int error = libav_.avcodec_parameters_to_context(codec_, stream->codecpar); error < 0) return failed(error);
  codec_->pkt_timebase = stream->time_base;
  codec_->thread_count = 1;
  const int error = libav_.avcodec_open2(codec_, decoder, nullptr);
  return error >= 0 || failed(error);
}

bool Decoding::decode_packets() {
  for (;;) {
    const int error = libav_.av_read_frame(format_, packet_);
    if (error == AVERROR_EOF) return send(nullptr);
    if (error < 0) return failed(error);
    note_begin();
    bool sent = true;
    if (packet_->stream_index == track_) {
      // A packet of which the file holds only the beginning.
      if ((packet_->flags & AV_PKT_FLAG_CORRUPT) != 0) return failed(AVERROR_INVALIDDATA);
      sent = send(packet_);
    }
    libav_.av_packet_unref(packet_);
    if (!sent) return false;
  }
}

// Nothing: what is left in the decoder comes out.
bool Decoding::send(const AVPacket* packet) {
  if (const int error = libav_.avcodec_send_packet(codec_, packet); error < 0) return failed(error);
  for (;;) {
    const int error = libav_.avcodec_receive_frame(codec_, frame_);
    if (error == AVERROR(EAGAIN) || error == AVERROR_EOF) return true;
    if (error < 0) return failed(error);
    const bool taken = take_frame();
    libav_.av_frame_unref(frame_);
    if (!taken) return false;
  }
}

// A film begins where its first track does.  Of another track one packet is looked at, as it stands in the file: no
// parser of pictures runs.
void Decoding::note_begin() {
  if ((format_->flags & AVFMT_FLAG_NOPARSE) == 0) return;
  AVStream* const stream = format_->streams[packet_->stream_index];
  if (stream->discard == AVDISCARD_ALL) return;
  const int64_t time = packet_->pts == AV_NOPTS_VALUE ? packet_->dts : packet_->pts;
  if (time != AV_NOPTS_VALUE) {
    const double begin_s = seconds(time, stream->time_base);
    earliest_s_ = std::min(begin_s, earliest_s_.value_or(begin_s));
  }
  if (packet_->stream_index != track_) {
    stream->discard = AVDISCARD_ALL;
    return;
  }
  format_->flags &= ~AVFMT_FLAG_NOPARSE;
  for (unsigned i = 0; i < format_->nb_streams; ++i)
    if (static_cast<int>(i) != track_) format_->streams[i]->discard = AVDISCARD_ALL;
}

// Frames of a file's silences together: as long as it says that it lasts; ASF says so of its tracks.
uint64_t Decoding::most_silence() const {
  const AVStream* const stream = format_->streams[track_];
  double announced_s = kMostUnannouncedS;
  if (format_->duration != AV_NOPTS_VALUE && format_->duration > 0)
    announced_s = static_cast<double>(format_->duration) / AV_TIME_BASE;
  else if (order_.container == SoundContainer::kAsf && stream->duration > 0)
    announced_s = seconds(stream->duration, stream->time_base);
  const auto announced = static_cast<uint64_t>(std::min(announced_s, double{kMaxSilenceS}) * rate_hz_);
  return std::min(announced, max_silent_frames(static_cast<uint32_t>(rate_hz_)));
}

// Silence where the container's times say that there is no sound: before a track that begins later than another, and in
// pauses. Other jumps are those of a clock, which goes on from there.
bool Decoding::fill_gap() {
  if (!has_times(order_.container) || frame_->pts == AV_NOPTS_VALUE) return true;
  const double begin_s = seconds(frame_->pts, codec_->pkt_timebase);
  if (!origin_s_) {
    origin_s_ = std::min(begin_s, earliest_s_.value_or(begin_s));
    next_s_ = *origin_s_;
  }
  const double step_s = begin_s - next_s_, gap_s = begin_s - *origin_s_ - static_cast<double>(frames_) / rate_hz_;
  next_s_ = begin_s + static_cast<double>(frame_->nb_samples) / rate_hz_;
  if (std::abs(gap_s) < kLeastGapS || (gap_s > 0 && step_s < kLeastStepS)) return true;
  const bool is_short = gap_s > 0 && gap_s < double{kMaxSilenceS};
  const uint64_t frames = is_short ? static_cast<uint64_t>(std::llround(gap_s * rate_hz_)) : 0;
  if (frames == 0 || silence_ + frames > most_silence()) {
    *origin_s_ += gap_s;
    return true;
  }
  silence_ += frames;
  frames_ += frames;
  return flush() && (host_.give_silence(frames) || gone());
}

bool Decoding::take_frame() {
  if (channels_ == 0) {
    rate_hz_ = frame_->sample_rate;
    channels_ = frame_->ch_layout.nb_channels;
    if (rate_hz_ <= 0 || channels_ <= 0) return failed(AVERROR_INVALIDDATA);
    if (static_cast<uint32_t>(channels_) > kMaxDecodeChannels) return failed(DecodeFault::kTooManyChannels);
    if (!host_.give_format(static_cast<uint32_t>(rate_hz_), static_cast<uint32_t>(channels_))) return gone();
  }
  if (frame_->sample_rate != rate_hz_ || frame_->ch_layout.nb_channels != channels_)
    return failed(DecodeFault::kFormatChanges);
  return fill_gap() && take_samples();
}

// A packet of plain samples may be as large as the file.
bool Decoding::take_samples() {
  const auto channels = static_cast<size_t>(channels_), all = static_cast<size_t>(frame_->nb_samples) * channels;
  const size_t most = kMaxBlockSamples / channels * channels;
  for (size_t first = 0; first < all;) {
    const size_t held = block_.size(), count = std::min(all - first, most - held);
    block_.resize(held + count);
    if (!interleave(*frame_, first, std::span(block_).subspan(held))) return failed(DecodeFault::kUnknownSamples);
    first += count;
    if (block_.size() == most && !flush()) return false;
  }
  frames_ += static_cast<uint64_t>(frame_->nb_samples);
  return true;
}

bool Decoding::flush() {
  if (block_.empty()) return true;
  if (!host_.give_samples(block_)) return gone();
  block_.clear();
  return true;
}

}  // namespace

DecodeEnd decode_libav(const Libav& libav, const DecodeOrder& order, DecodeHost& host) {
  FileView file(host, order.file_bytes);
  const bool is_cut = is_cut_off(file, order.container);
  if (is_cut && order.takes_parts == 0) return {DecodeFault::kCutOff};
  Decoding decoding(libav, order, host);
  const bool is_whole = decoding.decode();
  DecodeEnd end = decoding.take_end();
  // The samples before a fault are good.
  if (!is_whole) static_cast<void>(decoding.flush());
  const bool is_loss = is_whole || end.fault == DecodeFault::kDamaged;
  return is_cut && is_loss ? DecodeEnd{DecodeFault::kCutOff} : end;
}

}  // namespace syrinx
