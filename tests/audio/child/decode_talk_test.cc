#include "audio/child/decode_talk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace syrinx {
namespace {

using testing::HasSubstr;

// A child whose words are written before.
class Script final : public DecodeChannel {
 public:
  template <class Body>
  Script& say(DecodeMessage kind, const Body& body) {
    header(kind, sizeof body);
    return append(&body, sizeof body);
  }
  Script& header(DecodeMessage kind, uint32_t bytes) {
    const MessageHeader header{kind, bytes};
    return append(&header, sizeof header);
  }
  Script& samples(const std::vector<float>& block) {
    header(DecodeMessage::kSamples, static_cast<uint32_t>(block.size() * sizeof(float)));
    return append(block.data(), block.size() * sizeof(float));
  }
  Script& fault(DecodeFault fault, const std::string& detail) {
    header(DecodeMessage::kFault, static_cast<uint32_t>(sizeof fault + detail.size()));
    append(&fault, sizeof fault);
    return append(detail.data(), detail.size());
  }
  Status receive(std::span<std::byte> bytes) override {
    if (bytes.size() > said_.size() - at_) return fail(Code::kUnsupported, "has ended");
    std::memcpy(bytes.data(), said_.data() + at_, bytes.size());
    at_ += bytes.size();
    return {};
  }
  Status send(std::span<const std::byte> bytes) override {
    heard.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  }
  std::string heard;

 private:
  Script& append(const void* bytes, size_t size) {
    said_.append(static_cast<const char*>(bytes), size);
    return *this;
  }
  std::string said_;
  size_t at_ = 0;
};

Script ready() { return Script().say(DecodeMessage::kReady, ReadyBody{kDecodeVersion}); }
Script playing() { return ready().say(DecodeMessage::kFormat, FormatBody{8000, 2}); }

struct Outcome {
  Status status;
  std::vector<float> samples;
  std::string heard;
};
Outcome run(Script script, const SoundLimits& limits = {}) {
  const std::string file = "0123456789", name = "me";
  Outcome got;
  const SoundSink sink{.begin = [](int, std::optional<uint64_t>) { return Status(); },
                       .add =
                           [&](std::span<const float> samples) {
                             got.samples.insert(got.samples.end(), samples.begin(), samples.end());
                             return Status();
                           }};
  MonoMixer mixer(limits, name, sink);
  got.status = decode_by(script, {std::as_bytes(std::span(file)), SoundContainer::kAsf, name, mixer});
  if (got.status) got.status = mixer.finish();
  got.heard = script.heard;
  return got;
}
void expect_nonsense(const Script& script) {
  const Outcome got = run(script);
  ASSERT_FALSE(got.status);
  EXPECT_EQ(got.status.error().code, Code::kUnsupported);
  EXPECT_THAT(got.status.error().message, HasSubstr("broke the rules of its messages"));
}

TEST(DecodeTalk, SoundGoesToTheMixer) {
  const Outcome got = run(playing()
                              .say(DecodeMessage::kRead, ReadBody{3, 4, 0})
                              .samples({0.5f, 0.25f, 1, 0})
                              .say(DecodeMessage::kSilence, SilenceBody{3})
                              .header(DecodeMessage::kDone, 0));
  ASSERT_TRUE(got.status) << got.status.error().message;
  EXPECT_EQ(got.samples, (std::vector<float>{0.375f, 0.5f, 0, 0, 0}));
  EXPECT_EQ(got.heard.substr(sizeof(DecodeOrder)), "3456");
  DecodeOrder order{};
  std::memcpy(&order, got.heard.data(), sizeof order);
  EXPECT_EQ(order.container, SoundContainer::kAsf);
  EXPECT_EQ(order.file_bytes, 10u);
  EXPECT_EQ(order.takes_parts, 0u);
}

TEST(DecodeTalk, MessagesOutOfPlaceAreNonsense) {
  expect_nonsense(Script().header(DecodeMessage::kDone, 0));
  expect_nonsense(Script().header(DecodeMessage::kReady, 5));
  expect_nonsense(ready().say(DecodeMessage::kReady, ReadyBody{kDecodeVersion}));
  expect_nonsense(ready().samples({1, 1}));
  expect_nonsense(ready().say(DecodeMessage::kSilence, SilenceBody{1}));
  expect_nonsense(playing().say(DecodeMessage::kFormat, FormatBody{8000, 2}));
  expect_nonsense(playing().header(DecodeMessage::kDone, 1));
  expect_nonsense(playing().header(static_cast<DecodeMessage>(99), 0));
}

TEST(DecodeTalk, BodiesOutOfBoundsAreNonsense) {
  expect_nonsense(ready().say(DecodeMessage::kRead, ReadBody{0, 11, 0}));
  expect_nonsense(ready().say(DecodeMessage::kRead, ReadBody{10, 1, 0}));
  expect_nonsense(ready().say(DecodeMessage::kRead, ReadBody{UINT64_MAX, 1, 0}));
  expect_nonsense(ready().say(DecodeMessage::kRead, ReadBody{0, 0, 0}));
  expect_nonsense(ready().header(DecodeMessage::kRead, 4));
  expect_nonsense(ready().say(DecodeMessage::kFormat, FormatBody{8000, 0}));
  expect_nonsense(ready().say(DecodeMessage::kFormat, FormatBody{8000, 65}));
  expect_nonsense(ready().say(DecodeMessage::kFormat, FormatBody{UINT32_MAX, 1}));
  expect_nonsense(playing().samples({}));
  expect_nonsense(playing().samples({1, 1, 1}));
  expect_nonsense(playing().header(DecodeMessage::kSamples, 7));
  expect_nonsense(playing().header(DecodeMessage::kSamples, UINT32_MAX));
  expect_nonsense(playing().say(DecodeMessage::kSilence, SilenceBody{UINT64_MAX}));
  expect_nonsense(playing().say(DecodeMessage::kSilence, SilenceBody{uint64_t{3600} * 8000 + 1}));
  const SilenceBody half_an_hour{uint64_t{1800} * 8000};
  expect_nonsense(playing()
                      .say(DecodeMessage::kSilence, half_an_hour)
                      .say(DecodeMessage::kSilence, half_an_hour)
                      .say(DecodeMessage::kSilence, SilenceBody{1}));
  expect_nonsense(ready()
                      .say(DecodeMessage::kFormat, FormatBody{384000, 1})
                      .say(DecodeMessage::kSilence, SilenceBody{kMaxSilentFrames + 1}));
  expect_nonsense(ready().header(DecodeMessage::kFault, 3));
  expect_nonsense(ready().header(DecodeMessage::kFault, 1000));
  expect_nonsense(ready().fault(static_cast<DecodeFault>(999), ""));
}

TEST(DecodeTalk, FaultsAreSentences) {
  const auto error = [](const Script& script) { return run(script).status.error(); };
  EXPECT_EQ(error(ready().fault(DecodeFault::kDamaged, "bad\nnumbers\x7F\xFF")).message, "'me' is damaged: badnumbers");
  EXPECT_EQ(error(ready().fault(DecodeFault::kCutOff, "")).code, Code::kDataLoss);
  EXPECT_THAT(error(ready().fault(DecodeFault::kCutOff, "")).message, HasSubstr("more than the 10 bytes"));
  EXPECT_THAT(error(ready().fault(DecodeFault::kUnknownCodec, "ac3")).message, HasSubstr("coded as ac3; AAC, ALAC"));
  EXPECT_EQ(error(ready().fault(DecodeFault::kNoMemory, "")).code, Code::kLimitExceeded);
  EXPECT_THAT(error(Script().fault(DecodeFault::kNoLibraries, "x cannot be loaded")).message,
              HasSubstr("'me' is ASF (WMA), which needs FFmpeg's libraries, and x cannot be loaded"));
  EXPECT_THAT(error(Script().say(DecodeMessage::kReady, ReadyBody{0})).message, HasSubstr("of another version"));
  EXPECT_THAT(error(playing()).message, HasSubstr("its decoder has ended"));
}

TEST(DecodeTalk, MixerHasTheLastWord) {
  SoundLimits limits;
  limits.max_channels = 1;
  EXPECT_EQ(run(playing().header(DecodeMessage::kDone, 0), limits).status.error().code, Code::kLimitExceeded);
  limits = {.max_seconds = 1};
  const Script long_silence = playing().say(DecodeMessage::kSilence, SilenceBody{16000});
  EXPECT_EQ(run(long_silence, limits).status.error().code, Code::kLimitExceeded);
  const Script no_number = ready().say(DecodeMessage::kFormat, FormatBody{8000, 1}).samples({NAN});
  EXPECT_EQ(run(no_number).status.error().code, Code::kDataLoss);
}

}  // namespace
}  // namespace syrinx
