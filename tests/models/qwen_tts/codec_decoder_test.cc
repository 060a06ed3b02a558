// Every stage of the codec's decoder against the maker's classes (tools/reference/qwen_tts_codec.py) on the small
// checkpoint; then the rules of a step.
#include "models/qwen_tts/codec_decoder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "../allocation_count.h"
#include "../count_within.h"
#include "../safetensors_arrays.h"
#include "kernels/dispatch.h"
#include "temp_folder.h"

namespace syrinx::qwen_tts {
namespace {

// In parts of a stage's maximum.  The maker's own f32 is up to 1e-5 from its double, which the reference has.
constexpr double kBound = 2e-5;
constexpr size_t kFrameSamples = 1920;

std::string data(const std::string& name) { return std::string(SYRINX_TEST_DATA) + "/qwen_tts/" + name; }

CodecConfig config_of_codec() {
  const auto file = MappedFile::open(data("speech_tokenizer/config.json"));
  if (!file) {
    ADD_FAILURE() << file.error().message;
    return {};
  }
  const auto config =
      read_codec_config({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()}, "config.json");
  if (!config) ADD_FAILURE() << config.error().message;
  return config ? *config : CodecConfig{};
}

// The checkpoint, with some convolutions scaled as the reference has them.  Some tensors may be left out or replaced.
class Checkpoint {
 public:
  Checkpoint() : file_(data("speech_tokenizer/model.safetensors")) {
    for (const char* const part : {"weight", "bias"}) scale(fmt::format("decoder.decoder.6.conv.{}", part), 0.25f);
    for (size_t block = 1; block <= 4; ++block)
      for (size_t unit = 2; unit <= 4; ++unit)
        scale(fmt::format("decoder.decoder.{}.block.{}.conv2.conv.weight", block, unit), 0.25f);
  }
  void leave_out(const std::string& name) { left_out_.insert(name); }
  // The tensor with its numbers times `factor`.
  void scale(const std::string& name, float factor) {
    std::vector<float>& values = scaled_[name] = file_.get(name);
    for (float& value : values) value *= factor;
  }
  // A tensor of `value` and its negative by turns, instead of the file's or beside them.
  void put(const std::string& name, const std::vector<size_t>& dims, float value) {
    std::vector<float>& values = put_[name];
    values.resize(element_count(dims).value_or(0));
    for (size_t i = 0; i < values.size(); ++i) values[i] = i % 2 == 0 ? value : -value;
    given_[name] = {.name = name, .dtype = DType::kF32, .dims = dims, .bytes = std::as_bytes(std::span(values))};
  }
  CodecConfig config = config_of_codec();
  // The tensor as one of other dims.
  void reshape(const std::string& name, const std::vector<size_t>& dims) { reshaped_[name] = dims; }

  Result<CodecDecoderWeights> load(Precision precision = Precision::kF32, kernels::MatrixStore* store = nullptr) {
    return CodecDecoderWeights::load({.find = [this](std::string_view name) { return find(std::string(name)); }},
                                     "model.safetensors", config, precision, store);
  }

 private:
  const TensorRef* find(const std::string& name) {
    if (put_.contains(name)) return &given_[name];
    const TensorRef* const found = left_out_.contains(name) ? nullptr : file_.tensors().find(name);
    if (found == nullptr) return nullptr;
    TensorRef& given = given_[name] = *found;
    if (const auto scaled = scaled_.find(name); scaled != scaled_.end())
      given.bytes = std::as_bytes(std::span(scaled->second));
    if (const auto dims = reshaped_.find(name); dims != reshaped_.end()) given.dims = dims->second;
    return &given;
  }

  SafetensorsArrays file_;
  std::set<std::string> left_out_;
  std::map<std::string, std::vector<float>> scaled_, put_;
  std::map<std::string, std::vector<size_t>> reshaped_;
  std::map<std::string, TensorRef> given_;
};

std::shared_ptr<const CodecDecoderWeights> load(Precision precision = Precision::kF32) {
  auto weights = Checkpoint().load(precision);
  EXPECT_TRUE(weights.has_value()) << weights.error().message;
  return std::make_shared<const CodecDecoderWeights>(std::move(*weights));
}

struct Speaking {
  Speaking() : reference(data("codec.safetensors")), codes(reference.get<int32_t>("codes")) {
    frames = codes.size() / kBooks;
  }
  View<const int32_t, 2> rows(size_t first, size_t count) const {
    return {codes.data() + first * kBooks, {count, kBooks}};
  }
  // The stream in calls of so many frames, the last of them again and again.
  std::vector<float> decode(CodecDecoder& decoder, CodecDecoderState& state, const std::vector<size_t>& calls) const {
    std::vector<float> samples(frames * kFrameSamples);
    for (size_t first = 0, call = 0; first < frames; ++call) {
      const size_t count = std::min(calls[std::min(call, calls.size() - 1)], frames - first);
      decoder.decode(state, rows(first, count),
                     std::span(samples).subspan(first * kFrameSamples, count * kFrameSamples));
      first += count;
    }
    return samples;
  }
  std::vector<float> whole(const std::shared_ptr<const CodecDecoderWeights>& weights, size_t pass = 4) const {
    ThreadTeam team(1);
    nn::Runner runner(team);
    CodecDecoder decoder(weights, runner, 1, pass);
    CodecDecoderState state = decoder.make_state();
    return decode(decoder, state, {frames});
  }

  static constexpr size_t kBooks = 16;
  SafetensorsArrays reference;
  std::vector<int32_t> codes;  // [frames, kBooks]
  size_t frames = 0;
};

TEST(QwenCodecDecoder, EveryStageAgrees) {
  const Speaking s;
  ASSERT_GT(s.frames, config_of_codec().decoder.transformer.window);
  const auto weights = load();
  for (const size_t pass : {1, 4}) {
    ThreadTeam team(1);
    nn::Runner runner(team);
    CodecDecoder decoder(weights, runner, 1, pass);
    CodecDecoderState state = decoder.make_state();
    SeenStages seen;
    decoder.set_probe([&](std::string_view stage, size_t index, View<const float, 2> rows) {
      const bool numbered = stage == "layer" || stage == "upsample" || stage == "decoder";
      seen.add("codec." + std::string(stage) + (numbered ? "." + std::to_string(index) : ""), rows);
    });
    const std::vector<float> samples = s.decode(decoder, state, {s.frames});
    EXPECT_EQ(count_within(seen.differences(s.reference.tensors()), kBound), 14u);
    EXPECT_EQ(samples, s.whole(weights)) << "with a probe";
  }
}

using Calls = std::vector<size_t>;

void expect_calls(const Speaking& s, const std::shared_ptr<const CodecDecoderWeights>& weights, int threads,
                  size_t pass, const std::vector<Calls>& all, const std::vector<float>& want) {
  ThreadTeam team(threads);
  nn::Runner runner(team);
  CodecDecoder decoder(weights, runner, 1, pass);
  CodecDecoderState state = decoder.make_state();
  for (const Calls& calls : all) {
    EXPECT_TRUE(s.decode(decoder, state, calls) == want)
        << threads << " threads, up to " << pass << " frames a pass, calls from " << calls[0];
    CodecDecoder::reset(state);
  }
}

// With several threads a pass waits at some ninety barriers, which takes long where cores are busy elsewhere.
TEST(QwenCodecDecoder, CallsAndThreadsDoNotChangeASample) {
  const Speaking s;
  for (const Precision precision : {Precision::kF32, Precision::kBf16}) {
    const auto weights = load(precision);
    const std::vector<float> want = s.whole(weights, 8);
    for (const size_t pass : {1, 2, 4, 8}) expect_calls(s, weights, 1, pass, {{1}, {2}, {1, 2, 4, 7}, {0, 14}}, want);
    for (const int threads : {2, 3}) expect_calls(s, weights, threads, 4, {{1, 2, 4, 7}}, want);
  }
}

TEST(QwenCodecDecoder, StreamsTogetherKeepTheirBits) {
  const Speaking s;
  for (const Precision precision : {Precision::kF32, Precision::kBf16}) {
    const auto weights = load(precision);
    const std::vector<float> want = s.whole(weights);
    for (const int threads : {1, 2}) {
      ThreadTeam team(threads);
      nn::Runner runner(team);
      CodecDecoder decoder(weights, runner, 3, 4);
      std::vector<CodecDecoderState> states;
      std::vector<std::vector<float>> samples;
      for (size_t n = 0; n < 3; ++n) {
        states.push_back(decoder.make_state());
        samples.emplace_back(want.size());
      }
      size_t at[] = {0, 0, 0};
      for (size_t pass = 0; at[0] + at[1] + at[2] < 3 * s.frames; ++pass) {
        std::vector<CodecDecoder::Frames> work;
        for (size_t n = 0; n < 3; ++n) {  // streams come and go, and have as many frames as they like
          const size_t count = std::min((pass + 2 * n) % 5, s.frames - at[n]);
          if (count == 0 && pass % 2 == 0) continue;
          work.push_back({.state = &states[n],
                          .codes = s.rows(at[n], count),
                          .samples = std::span(samples[n]).subspan(at[n] * kFrameSamples, count * kFrameSamples)});
          at[n] += count;
        }
        decoder.decode(work);
      }
      for (const std::vector<float>& own : samples) ASSERT_EQ(own, want) << threads << " threads";
    }
  }
}

// Two tasks on one team, as beside a language model: one member begins, the other joins or does not.
TEST(QwenCodecDecoder, MembersJoinBetweenStages) {
  const Speaking s;
  const auto weights = load();
  const std::vector<float> want = s.whole(weights);
  ThreadTeam team(2);
  nn::Runner runner(team);
  CodecDecoder one(weights, runner, 1, 4), other(weights, runner, 1, 4);
  CodecDecoderState states[] = {one.make_state(), other.make_state()};
  std::vector<float> samples[] = {std::vector<float>(want.size()), std::vector<float>(want.size())};
  for (size_t first = 0; first + 2 <= s.frames; first += 2) {
    CodecDecoder* const decoders[] = {&one, &other};
    for (size_t i = 0; i < 2; ++i) {
      const CodecDecoder::Frames work{
          .state = &states[i],
          .codes = s.rows(first, 2),
          .samples = std::span(samples[i]).subspan(first * kFrameSamples, 2 * kFrameSamples)};
      decoders[i]->begin_frames({&work, 1});
      decoders[i]->crew().reset();
    }
    team.run([&](int member) {
      const size_t own = static_cast<size_t>(member);
      nn::Crew::Seat first_seat = decoders[own]->crew().first(member);
      decoders[own]->work_at_frames(first_seat);
      decoders[own]->crew().leave(first_seat);
      nn::Crew::Seat second_seat = decoders[1 - own]->crew().join(member);
      decoders[1 - own]->work_at_frames(second_seat);
    });
    for (CodecDecoder* decoder : decoders) decoder->end_frames();
  }
  EXPECT_EQ(samples[0], want);
  EXPECT_EQ(samples[1], want);
}

TEST(QwenCodecDecoder, NothingIsAllocatedInAStep) {
  const Speaking s;
  for (const Precision precision : {Precision::kF32, Precision::kBf16}) {
    ThreadTeam team(2);
    nn::Runner runner(team);
    CodecDecoder decoder(load(precision), runner, 2, 2);
    CodecDecoderState one = decoder.make_state(), other = decoder.make_state();
    std::vector<float> samples(4 * kFrameSamples);
    const size_t before = allocation_count();
    for (size_t i = 0; i < 20; ++i) {
      decoder.decode(one, s.rows(i % 10, 2), std::span(samples).first(2 * kFrameSamples));
      const CodecDecoder::Frames work[] = {
          {.state = &one, .codes = s.rows(3, 2), .samples = std::span(samples).first(2 * kFrameSamples)},
          {.state = &other, .codes = s.rows(i % 10, 1), .samples = std::span(samples).last(kFrameSamples)}};
      decoder.decode(work);
    }
    EXPECT_EQ(allocation_count() - before, 0u);
    EXPECT_EQ(one.transformer.position, 80u);
    EXPECT_EQ(other.transformer.position, 20u);
  }
}

TEST(QwenCodecDecoder, CodesAreChecked) {
  Speaking s;
  const auto weights = load();
  ThreadTeam team(1);
  nn::Runner runner(team);
  const CodecDecoder decoder(weights, runner);
  EXPECT_TRUE(decoder.check_codes(s.codes).has_value());
  const std::vector<int32_t> codes = {0, 31, -1, 32, 33};
  const Status status = decoder.check_codes(codes);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Code::kInvalidArgument);
  EXPECT_EQ(status.error().message, "code 32 is not below the 32 of the codec's codebooks");
}

TEST(QwenCodecDecoder, NegativeCodesAreZero) {
  Speaking zero, negative;
  const auto weights = load();
  for (size_t i = 0; i < zero.codes.size(); i += 3) {
    zero.codes[i] = 0;
    negative.codes[i] = -1 - static_cast<int32_t>(i);
  }
  EXPECT_EQ(negative.whole(weights), zero.whole(weights));
}

// One block that repeats no row, behind two layers of which each makes six.
TEST(QwenCodecDecoder, RatesOfOneKeepTheirRoom) {
  Checkpoint checkpoint;
  checkpoint.config.frame_samples = 36;
  checkpoint.config.decoder.ratios = {6, 6};
  checkpoint.config.decoder.rates = {1};
  checkpoint.config.encoder.ratios = {3, 3, 2};
  for (size_t i = 0; i < 2; ++i) checkpoint.put(fmt::format("decoder.upsample.{}.0.conv.weight", i), {32, 32, 6}, 0.1f);
  checkpoint.put("decoder.decoder.1.block.1.conv.weight", {32, 16, 2}, 0.1f);
  checkpoint.put("decoder.decoder.2.alpha", {16}, 0.1f);
  checkpoint.put("decoder.decoder.2.beta", {16}, 0.1f);
  checkpoint.put("decoder.decoder.3.conv.weight", {1, 16, 7}, 0.01f);
  checkpoint.put("decoder.decoder.3.conv.bias", {1}, 0.01f);
  auto loaded = checkpoint.load();
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  const auto weights = std::make_shared<const CodecDecoderWeights>(std::move(*loaded));
  const Speaking s;
  std::vector<float> results[2];
  for (size_t i = 0; i < 2; ++i) {
    ThreadTeam team(static_cast<int>(i) + 1);
    nn::Runner runner(team);
    CodecDecoder decoder(weights, runner, 1, i == 0 ? 1 : 4);
    CodecDecoderState state = decoder.make_state();
    results[i].resize(s.frames * 36);
    decoder.decode(state, s.rows(0, s.frames), results[i]);
    EXPECT_FALSE(state.faulty());
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_NE(results[0].front(), results[0].back());
}

TEST(QwenCodecDecoder, InfiniteSamplesAreFaults) {
  const Speaking s;
  Checkpoint checkpoint;
  checkpoint.put("decoder.decoder.6.conv.weight", {1, 2, 7}, 3e38f);
  auto loaded = checkpoint.load();
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  ThreadTeam team(2);
  nn::Runner runner(team);
  CodecDecoder broken(std::make_shared<const CodecDecoderWeights>(std::move(*loaded)), runner), sound(load(), runner);
  CodecDecoderState faulty = broken.make_state(), state = sound.make_state();
  EXPECT_FALSE(faulty.faulty());
  for (const float sample : s.decode(broken, faulty, {1})) ASSERT_TRUE(sample >= -1 && sample <= 1) << sample;
  EXPECT_TRUE(faulty.faulty());
  CodecDecoder::reset(faulty);
  EXPECT_FALSE(faulty.faulty());
  s.decode(sound, state, {1});
  EXPECT_FALSE(state.faulty());
}

// Signal to noise of `ours` against `want`, in decibels.
double snr_db(const std::vector<float>& ours, const std::vector<float>& want) {
  double signal = 0, noise = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    signal += std::pow(double{want[i]}, 2);
    noise += std::pow(double{ours[i]} - want[i], 2);
  }
  return 10 * std::log10(signal / noise);
}

TEST(QwenCodecDecoder, NarrowPrecisionsStayNear) {
  const Speaking s;
  std::map<Precision, std::vector<float>> samples;
  for (const Precision precision : kAllPrecisions) {
    const auto weights = load(precision);
    const bool narrow = precision != Precision::kF32, int16 = kernels::int16_rows_are_fast();
    EXPECT_EQ(reads_int16(*weights), narrow && int16);
    EXPECT_EQ(reads_bf16(*weights), narrow && !int16 && kernels::bf16_rows_are_faster());
    samples[precision] = s.whole(weights);
  }
  const std::vector<float>& f32 = samples[Precision::kF32];
  EXPECT_NE(samples[Precision::kBf16], f32);
  EXPECT_EQ(samples[Precision::kInt8], samples[Precision::kBf16]);
  EXPECT_EQ(samples[Precision::kInt4], samples[Precision::kBf16]);
  const double snr = snr_db(samples[Precision::kBf16], f32);
  std::printf("narrow beside f32: SNR %.1f dB\n", snr);
  EXPECT_GE(snr, kernels::int16_rows_are_fast() ? 44 : 25);
}

TEST(QwenCodecDecoder, EachTargetStaysNear) {
  const Speaking s;
  const std::vector<float> f32 = s.whole(load(Precision::kF32));
  for (const int64_t target : kernels::usable_targets()) {
    for (const bool extensions : {true, false}) {
      kernels::force_target_for_test(target, extensions);
      const auto weights = load(Precision::kBf16);
      EXPECT_GE(snr_db(s.whole(weights), f32), reads_int16(*weights) ? 44 : 25) << kernels::chosen_target_name();
    }
  }
  kernels::force_target_for_test(0, true);
}

TEST(QwenCodecWeights, FaultsNameTheirTensors) {
  Checkpoint checkpoint;
  checkpoint.leave_out("decoder.decoder.2.block.3.act2.beta");
  checkpoint.leave_out("decoder.pre_transformer.layers.1.mlp.gate_proj.weight");
  checkpoint.reshape("decoder.upsample.1.0.conv.weight", {32, 64, 1});
  const auto weights = checkpoint.load();
  ASSERT_FALSE(weights.has_value());
  EXPECT_EQ(weights.error().code, Code::kDataLoss);
  for (const char* const words :
       {"model.safetensors", "decoder.decoder.2.block.3.act2.beta", "layers.1.mlp.gate_proj.weight",
        "decoder.upsample.1.0.conv.weight", "[32, 64, 1]", "[32, 32, 2]"})
    EXPECT_NE(weights.error().message.find(words), std::string::npos) << words << ": " << weights.error().message;
}

TEST(QwenCodecWeights, KeptMatricesGiveSameSamples) {
  const Speaking s;
  for (const Precision precision : {Precision::kF32, Precision::kBf16}) {
    const TempFolder folder;
    const std::vector<float> want = s.whole(load(precision));
    for (const bool kept : {false, true}) {
      kernels::MatrixStore store = kernels::MatrixStore::open(folder.file("codec.packed"), "key");
      auto weights = Checkpoint().load(precision, &store);
      ASSERT_TRUE(weights.has_value()) << weights.error().message;
      EXPECT_EQ(store.finish(), !kept);
      EXPECT_EQ(weights->packed != nullptr, kept);
      EXPECT_EQ(weights->panels.size() == 0, kept);
      EXPECT_EQ(s.whole(std::make_shared<const CodecDecoderWeights>(std::move(*weights))), want);
    }
  }
}

TEST(QwenCodecWeights, InfiniteSlopesAreRefused) {
  Checkpoint checkpoint;
  checkpoint.scale("decoder.decoder.5.alpha", 1e6f);
  const auto weights = checkpoint.load();
  ASSERT_FALSE(weights.has_value());
  EXPECT_NE(weights.error().message.find("decoder.decoder.5.alpha"), std::string::npos) << weights.error().message;
}

TEST(QwenCodecWeights, LargeSlopesAreRefused) {
  for (const char* const name : {"decoder.decoder.5.alpha", "decoder.decoder.5.beta"}) {
    for (const float exponent : {13.7f, 15.0f}) {
      Checkpoint checkpoint;
      checkpoint.put(name, {2}, exponent);
      const auto weights = checkpoint.load();
      EXPECT_EQ(weights.has_value(), exponent < 14) << name;
      if (weights.has_value()) continue;
      EXPECT_EQ(weights.error().code, Code::kDataLoss);
      EXPECT_NE(weights.error().message.find(name), std::string::npos) << weights.error().message;
    }
  }
}

TEST(QwenCodecWeights, CodebooksBeyondFloatsAreRefused) {
  Checkpoint checkpoint;
  const std::string codebook = "decoder.quantizer.rvq_rest.vq.layers.3._codebook.";
  checkpoint.put(codebook + "embedding_sum", {32, 8}, 1e35f);
  checkpoint.put(codebook + "cluster_usage", {32}, 0.0f);
  const auto weights = checkpoint.load();
  ASSERT_FALSE(weights.has_value());
  EXPECT_EQ(weights.error().code, Code::kDataLoss);
  EXPECT_NE(weights.error().message.find(codebook + "embedding_sum' divided by its usage is not finite"),
            std::string::npos)
      << weights.error().message;
}

// The file's codebooks are small; those of the configuration would have 1 GB.
TEST(QwenCodecWeights, MissingCodebooksTakeNoMemory) {
  const auto most_kb = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  Checkpoint checkpoint;
  checkpoint.config.decoder.codebook_size = checkpoint.config.encoder.codebook_size = kMaxCodebookSize;
  checkpoint.config.decoder.codebook_dim = 512;
  const auto before = most_kb();
  const auto weights = checkpoint.load();
  ASSERT_FALSE(weights.has_value());
  EXPECT_EQ(weights.error().code, Code::kDataLoss);
  EXPECT_LT(most_kb() - before, 200'000);
}

// Every tensor of the decoder is needed but the projections of its training.
TEST(QwenCodecWeights, EachTensorIsNeeded) {
  const SafetensorsArrays file(data("speech_tokenizer/model.safetensors"));
  size_t count = 0;
  for (const TensorRef& tensor : file.tensors().tensors()) {
    if (!tensor.name.starts_with("decoder.") || tensor.name.find("input_proj.weight") != std::string::npos) continue;
    if (++count % 7 != 0) continue;
    Checkpoint checkpoint;
    checkpoint.leave_out(std::string(tensor.name));
    const auto weights = checkpoint.load();
    ASSERT_FALSE(weights.has_value()) << tensor.name;
    EXPECT_NE(weights.error().message.find(tensor.name), std::string::npos) << weights.error().message;
  }
  EXPECT_GT(count, 100u);
}

}  // namespace
}  // namespace syrinx::qwen_tts
