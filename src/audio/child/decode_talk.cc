#include "audio/child/decode_talk.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace syrinx {
namespace {

// Files are read once; an index at the end, and tracks that lie apart, are reasons to go back.
constexpr uint64_t kRereads = 4, kFreeReadBytes = uint64_t{64} << 20;
constexpr uint32_t kMaxRateHz = 1 << 24;

std::string printable(std::string_view text) {
  std::string kept;
  for (const char c : text)
    if (c >= ' ' && c <= '~') kept += c;
  return kept;
}

class Talk {
 public:
  Talk(DecodeChannel& child, const DecodeJob& job)
      : child_(child),
        job_(job),
        reads_left_(kRereads * static_cast<uint64_t>(job.file.size()) + kFreeReadBytes),
        read_budget_(reads_left_) {}

  Status run();

 private:
  Status begin();
  Status take(MessageHeader header, bool& done);
  Status answer_read();
  Status take_format();
  Status take_samples(uint32_t bytes);
  Status take_silence();
  Status take_fault(uint32_t bytes);
  tl::unexpected<Error> sentence(DecodeFault fault, const std::string& detail) const;

  template <class Body>
  Status receive(Body& body) {
    return told(child_.receive(std::as_writable_bytes(std::span(&body, 1))));
  }
  Status told(const Status& status) const {
    if (status) return {};
    if (status.error().code == Code::kUnavailable)
      return fail(Code::kUnavailable, "'{}' was not decoded: its decoder {}; try again later", job_.name,
                  status.error().message);
    return fail(Code::kUnsupported, "'{}' cannot be decoded: its decoder {}; convert it to WAV", job_.name,
                status.error().message);
  }
  Status nonsense() const { return told(fail(Code::kUnsupported, "broke the rules of its messages and was ended")); }

  DecodeChannel& child_;
  const DecodeJob& job_;
  uint64_t reads_left_;
  const uint64_t read_budget_;
  uint32_t channels_ = 0;
  uint64_t silence_left_ = 0;
  std::vector<std::byte> bytes_;
  std::vector<float> block_;
};

Status Talk::run() {
  SYRINX_TRY_VOID(begin());
  for (bool done = false; !done;) {
    MessageHeader header{};
    SYRINX_TRY_VOID(receive(header));
    SYRINX_TRY_VOID(take(header, done));
  }
  return {};
}

Status Talk::begin() {
  if (const Status ready = job_.is_ready ? Status() : await_ready(child_); !ready)
    return tl::unexpected(no_decoder(job_.container, job_.name, ready.error()));
  const DecodeOrder order{job_.container, job_.mixer.takes_parts() ? 1U : 0U, job_.file.size()};
  return told(child_.send(std::as_bytes(std::span(&order, 1))));
}

Status Talk::take(MessageHeader header, bool& done) {
  switch (header.kind) {
    case DecodeMessage::kRead: return header.bytes == sizeof(ReadBody) ? answer_read() : nonsense();
    case DecodeMessage::kFormat: return header.bytes == sizeof(FormatBody) ? take_format() : nonsense();
    case DecodeMessage::kSamples: return take_samples(header.bytes);
    case DecodeMessage::kSilence: return header.bytes == sizeof(SilenceBody) ? take_silence() : nonsense();
    case DecodeMessage::kDone: return done = true, header.bytes == 0 ? Status() : nonsense();
    case DecodeMessage::kFault: return take_fault(header.bytes);
    case DecodeMessage::kReady: break;
  }
  return nonsense();
}

Status Talk::answer_read() {
  ReadBody wanted{};
  SYRINX_TRY_VOID(receive(wanted));
  const uint64_t size = job_.file.size();
  if (wanted.bytes == 0 || wanted.bytes > kMaxReadBytes || wanted.at > size || wanted.bytes > size - wanted.at)
    return nonsense();
  if (wanted.bytes > reads_left_) return told(fail(Code::kUnsupported, "read the file over and over and was ended"));
  reads_left_ -= wanted.bytes;
  // A copy, since a page of a file that was shortened meanwhile must not fail inside of the system.
  const auto part = job_.file.subspan(static_cast<size_t>(wanted.at), wanted.bytes);
  bytes_.assign(part.begin(), part.end());
  return told(child_.send(bytes_));
}

Status Talk::take_format() {
  FormatBody format{};
  SYRINX_TRY_VOID(receive(format));
  if (channels_ != 0 || format.channels == 0 || format.channels > kMaxDecodeChannels || format.rate_hz > kMaxRateHz)
    return nonsense();
  SYRINX_TRY_VOID(job_.mixer.begin(static_cast<int>(format.channels), static_cast<int>(format.rate_hz)));
  channels_ = format.channels;
  silence_left_ = max_silent_frames(format.rate_hz);
  return {};
}

Status Talk::take_samples(uint32_t bytes) {
  if (channels_ == 0 || bytes == 0 || bytes > kMaxBlockSamples * sizeof(float) ||
      bytes % (channels_ * sizeof(float)) != 0)
    return nonsense();
  block_.resize(bytes / sizeof(float));
  SYRINX_TRY_VOID(told(child_.receive(std::as_writable_bytes(std::span(block_)))));
  reads_left_ = read_budget_;
  return job_.mixer.add(block_);
}

Status Talk::take_silence() {
  SilenceBody silence{};
  SYRINX_TRY_VOID(receive(silence));
  if (channels_ == 0 || silence.frames == 0 || silence.frames > silence_left_) return nonsense();
  silence_left_ -= silence.frames;
  return job_.mixer.silence(silence.frames);
}

Status Talk::take_fault(uint32_t bytes) {
  DecodeFault fault{};
  if (bytes < sizeof fault || bytes > sizeof fault + kMaxDetailBytes) return nonsense();
  SYRINX_TRY_VOID(receive(fault));
  std::string detail(bytes - sizeof fault, ' ');
  if (!detail.empty()) SYRINX_TRY_VOID(told(child_.receive(std::as_writable_bytes(std::span(detail)))));
  return sentence(fault, printable(detail));
}

tl::unexpected<Error> Talk::sentence(DecodeFault fault, const std::string& detail) const {
  const std::string& name = job_.name;
  switch (fault) {
    case DecodeFault::kNoSandbox: return tl::unexpected(no_decoder(job_.container, name, {Code::kUnsupported, detail}));
    case DecodeFault::kCutOff:
      return fail(Code::kDataLoss,
                  "'{}' is cut off: it announces more than the {} bytes that it holds; get the whole file", name,
                  job_.file.size());
    case DecodeFault::kDamaged: return fail(Code::kDataLoss, "'{}' is damaged: {}", name, detail);
    case DecodeFault::kNoSound: return fail(Code::kDataLoss, "'{}' contains no audio", name);
    case DecodeFault::kUnknownCodec:
      return fail(Code::kUnsupported,
                  "the sound of '{}' is coded as {}; AAC, ALAC, AMR, FLAC, MP3, Opus, Vorbis, WMA and PCM are read",
                  name, detail);
    case DecodeFault::kNoDemuxer:
      return fail(Code::kUnsupported, "FFmpeg's libraries here were built without what reads '{}'", name);
    case DecodeFault::kUnknownSamples:
      return fail(Code::kUnsupported, "the samples of '{}' are of no known kind", name);
    case DecodeFault::kFormatChanges:
      return fail(Code::kUnsupported, "'{}' changes its rate or its channels on the way; convert it to WAV", name);
    case DecodeFault::kTooManyChannels:
      return fail(Code::kLimitExceeded, "'{}' has more than {} channels; convert it to fewer", name,
                  kMaxDecodeChannels);
    case DecodeFault::kNoMemory:
      return fail(Code::kLimitExceeded, "'{}' needs more memory than a decoder may have; convert it to WAV", name);
    case DecodeFault::kNoLibraries:  // is told before
    case DecodeFault::kNone: break;
  }
  return tl::unexpected(nonsense().error());
}

// Before a file is there to blame.
Status received(const Status& status) {
  if (status) return {};
  return fail(Code::kUnavailable, "the program syrinx-decode {}", status.error().message);
}

template <class Body>
Status receive_early(DecodeChannel& child, Body& body) {
  return received(child.receive(std::as_writable_bytes(std::span(&body, 1))));
}

Status broke_rules() {
  return fail(Code::kUnsupported, "the program syrinx-decode broke the rules of its messages and was ended");
}

}  // namespace

Status await_ready(DecodeChannel& child) {
  MessageHeader header{};
  SYRINX_TRY_VOID(receive_early(child, header));
  if (header.kind == DecodeMessage::kReady && header.bytes == sizeof(ReadyBody)) {
    ReadyBody ready{};
    SYRINX_TRY_VOID(receive_early(child, ready));
    if (ready.version == kDecodeVersion) return {};
    return fail(Code::kUnsupported, "the program syrinx-decode is of another version");
  }
  DecodeFault fault{};
  if (header.kind != DecodeMessage::kFault || header.bytes < sizeof fault ||
      header.bytes > sizeof fault + kMaxDetailBytes)
    return broke_rules();
  SYRINX_TRY_VOID(receive_early(child, fault));
  std::string detail(header.bytes - sizeof fault, ' ');
  SYRINX_TRY_VOID(received(child.receive(std::as_writable_bytes(std::span(detail)))));
  if (fault != DecodeFault::kNoLibraries) return broke_rules();
  return fail(Code::kUnsupported, "{}", printable(detail));
}

Status decode_by(DecodeChannel& child, const DecodeJob& job) { return Talk(child, job).run(); }

}  // namespace syrinx
