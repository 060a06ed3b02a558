// A transducer's stages and decisions beside the maker's arrays, and its streams beside its recordings.
//
//   transducer_parity MODEL REFERENCE.safetensors f32|bf16|int8      bench/parity/transducer.py writes the second
//
// The reference holds a sound, and what of this it wants compared: mel · stage.NAME (of Encoder's probe) · encoded ·
// pred.labels and pred.g · joint.frames (of `encoded`, one for each history) and joint.logits · labels, frames,
// durations · ctc.logits, ctc.tokens, ctc.frames, ctc.ends, ctc.confidence of a CTC head · encoded.R, the encoder's
// frames with a look-ahead of R · window.L.C.R, those of chunks of C with L frames before and R behind them.  Stages
// behind the encoder start from the reference's frames, decisions from our own.  In f32 the exact stream of each
// look-ahead is compared with the whole recording too.
//
// Prints a line a stage: f32 as the largest difference in parts of the stage's largest value, bound 1e-4 (streams
// beside the whole 1e-5).  Narrower weights as the cosine: of the stage alone, from the maker's frames in front of it,
// bound 0.999, and beside it of all from the sound on, which has no bound.  Labels, frames and durations must be equal
// in f32; of narrower weights the edits between the two are told.  Status 1 where one is beyond its bound, 2 where
// nothing could be compared.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "models/transducer/ctc.h"
#include "models/transducer/encoder.h"
#include "models/transducer/head_decoder.h"
#include "models/transducer/joint.h"
#include "models/transducer/model.h"
#include "models/transducer/prediction.h"
#include "models/transducer/stream_encoder.h"
#include "nn/linear.h"
#include "seen_stages.h"

namespace syrinx::transducer {
namespace {

constexpr double kBound = 1e-4, kStreamBound = 1e-5, kCosine = 0.999;
constexpr size_t kBlockFrames = 16;

using Rows = std::vector<float>;

void append(Rows& to, View<const float, 2> rows) {
  for (size_t t = 0; t < rows.extent(0); ++t) to.insert(to.end(), rows.row(t), rows.row(t) + rows.extent(1));
}

double cosine(const Rows& a, const Rows& b) {
  if (a.size() != b.size()) return 0;
  double product = 0, own = 0, other = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    product += double{a[i]} * double{b[i]};
    own += double{a[i]} * double{a[i]};
    other += double{b[i]} * double{b[i]};
  }
  return product / std::sqrt(own * other);
}

// Nothing where the sizes differ; the comparison says so.
void replace(View<float, 2> rows, const Rows& by) {
  if (by.size() != rows.extent(0) * rows.extent(1)) return;
  for (size_t t = 0; t < rows.extent(0); ++t) std::copy_n(&by[t * rows.extent(1)], rows.extent(1), rows.row(t));
}

// How many numbers must at least be put in, left out or replaced to make one of the other.
size_t edits(const std::vector<int32_t>& from, const std::vector<int32_t>& to) {
  std::vector<size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < from.size(); ++i) {
    size_t before = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < to.size(); ++j) {
      const size_t replaced = before + (from[i] == to[j] ? 0 : 1);
      before = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

class Comparison {
 public:
  Comparison(std::shared_ptr<const Model> model, const Safetensors& reference)
      : model_(std::move(model)), reference_(reference), encoder_(model_->encoder(), runner_) {}

  Result<bool> run() {
    SYRINX_TRY(const Rows sound, f32_array(reference_, "sound"));
    const size_t rows = model_->features()->frames(sound.size()), columns = model_->config().features.mels;
    mels_.resize(rows * columns);
    model_->features()->compute(sound, {mels_.data(), {rows, columns}}, team_);
    SYRINX_TRY_VOID(stage("mel", mels_));
    SYRINX_TRY_VOID(encoder_stages());
    SYRINX_TRY_VOID(histories());
    SYRINX_TRY_VOID(decisions());
    SYRINX_TRY_VOID(ctc());
    SYRINX_TRY_VOID(look_aheads());
    SYRINX_TRY_VOID(windows());
    return good_;
  }

 private:
  bool has(const std::string& name) const { return reference_.find(name) != nullptr; }
  View<const float, 2> mels() const {
    const size_t columns = model_->config().features.mels;
    return {mels_.data(), {mels_.size() / columns, columns}};
  }

  bool exact() const { return model_->precision() == Precision::kF32; }

  // In f32, or of narrow weights a stage that starts from the maker's numbers.
  Status stage(const std::string& name, const Rows& ours) {
    if (!has(name)) return {};
    SYRINX_TRY(const Rows theirs, f32_array(reference_, name));
    if (exact()) {
      check(name, largest_difference(ours, theirs), kBound);
    } else {
      const double alike = cosine(ours, theirs);
      std::printf("%-22s %.6f%s\n", name.c_str(), alike, alike >= kCosine ? "" : "  below the bound");
      good_ = good_ && alike >= kCosine;
    }
    return {};
  }

  // A stage of the encoder from the sound on, and, of narrow weights, alone.
  Status stage(const std::string& name, const Rows& ours, const Rows& alone) {
    SYRINX_TRY_VOID(stage(name, exact() ? ours : alone));
    return exact() ? Status{} : from_sound(name, ours);
  }
  Status from_sound(const std::string& name, const Rows& ours) const {
    SYRINX_TRY(const Rows theirs, f32_array(reference_, name));
    std::printf("%-22s %.6f from the sound on\n", name.c_str(), cosine(ours, theirs));
    return {};
  }

  void check(const std::string& name, double away, double bound) {
    std::printf("%-22s %.2e%s\n", name.c_str(), away, away <= bound ? "" : "  beyond the bound");
    good_ = good_ && away <= bound;
  }

  Status encoder_stages() {
    std::vector<std::string> order = {"pre", "layer0.ff1", "layer0.att", "layer0.conv"};
    for (size_t i = 0; i < encoder_.config().layers; ++i) order.push_back(fmt::format("layer{}", i));
    std::map<std::string, Rows> theirs, seen, alone;
    for (const std::string& name : order) {
      SYRINX_TRY(theirs[name], f32_array(reference_, "stage." + name));
    }
    if (!exact()) {
      encoder_.set_probe([&](const std::string& name, View<float, 2> x) {
        append(alone[name], x);
        replace(x, theirs[name]);
      });
      encoder_.encode(mels());
    }
    encoder_.set_probe([&](const std::string& name, View<const float, 2> x) { append(seen[name], x); });
    append(encoded_, encoder_.encode(mels()));
    encoder_.set_probe({});
    for (const std::string& name : order) SYRINX_TRY_VOID(stage("stage." + name, seen[name], alone[name]));
    return {};
  }

  // The prediction network behind fixed labels, and the joint network of each of its rows with a frame.
  Status histories() {
    if (!has("pred.labels")) return {};
    SYRINX_TRY(std::vector<int32_t> labels, i32_array(reference_, "pred.labels"));
    SYRINX_TRY(const std::vector<int32_t> frames, i32_array(reference_, "joint.frames"));
    SYRINX_TRY(const Rows encoded, f32_array(reference_, "encoded"));
    const size_t width = encoder_.config().width, vocabulary = model_->config().decoder.vocabulary;
    labels.insert(labels.begin(), -1);
    const auto fits = [](const std::vector<int32_t>& values, ptrdiff_t low, size_t high) {
      return std::all_of(values.begin(), values.end(),
                         [&](int32_t v) { return v >= low && v < static_cast<ptrdiff_t>(high); });
    };
    if (labels.size() != frames.size() || !fits(labels, -1, vocabulary) || !fits(frames, 0, encoded.size() / width))
      return fail(Code::kDataLoss, "the reference's histories do not fit this model");
    Prediction prediction(model_->decoder(), runner_, 1);
    Joint joint(model_->decoder(), runner_, 1, 1);
    DecoderState state(*model_->decoder());
    DecoderState* const states[] = {&state};
    Rows hidden, logits;
    for (size_t i = 0; i < labels.size(); ++i) {
      state.head().label = labels[i];
      prediction.step(states);
      const View<const float, 2> frame(&encoded[static_cast<size_t>(frames[i]) * width], {1, width});
      team_.run([&](int member) {
        const nn::Part part{.member = member, .rank = member, .size = team_.size()};
        joint.encode(part, frame, 0);
        team_.barrier();
        if (member == 0) joint.pair(0, joint.encoded(0), state.projection());
        team_.barrier();
        joint.multiply(part, 1);
      });
      const std::span<const float> top = state.hidden(model_->decoder()->layers.size() - 1), pair = joint.logits(0);
      hidden.insert(hidden.end(), top.begin(), top.begin() + static_cast<ptrdiff_t>(model_->config().decoder.width));
      logits.insert(logits.end(), pair.begin(), pair.end());
    }
    SYRINX_TRY_VOID(stage("pred.g", hidden));
    return stage("joint.logits", logits);
  }

  // Rows of the encoder's width.
  View<const float, 2> frames(const Rows& rows) const {
    const size_t width = encoder_.config().width;
    return {rows.data(), {rows.size() / width, width}};
  }

  Status decisions() {
    if (!has("labels")) return {};
    HeadDecoder decoder(model_->decoder(), runner_, {}, 1, kBlockFrames);
    HeadState state(*model_->decoder());
    std::vector<Emission> found;
    const HeadDecoder::Job job{&state, frames(encoded_), &found};
    decoder.decode({&job, 1});
    SYRINX_TRY_VOID(equal("labels", found, [](const Emission& e) { return int64_t{e.label}; }));
    SYRINX_TRY_VOID(equal("frames", found, [](const Emission& e) { return e.frame; }));
    return equal("durations", found, [](const Emission& e) { return int64_t{e.duration}; });
  }

  template <class F>
  Status equal(const std::string& name, const std::vector<Emission>& found, F&& value) {
    if (!has(name)) return {};
    SYRINX_TRY(const std::vector<int32_t> theirs, i32_array(reference_, name));
    std::vector<int32_t> own;
    for (const Emission& emission : found) own.push_back(static_cast<int32_t>(value(emission)));
    const auto differs = std::mismatch(own.begin(), own.end(), theirs.begin(), theirs.end()).first;
    std::printf(
        "%-22s %zu of ours, %zu of the maker's, %s\n", name.c_str(), own.size(), theirs.size(),
        own == theirs
            ? "all equal"
            : fmt::format("{} equal from the start, {} edits", differs - own.begin(), edits(own, theirs)).c_str());
    good_ = good_ && (own == theirs || !exact());
    return {};
  }

  // The CTC head of a hybrid beside its main one, or the only one.
  Status ctc() {
    if (!has("ctc.tokens")) return {};
    const PackedMatrix& head = model_->decoder()->ctc.view;
    SYRINX_TRY(const Rows encoded, f32_array(reference_, "encoded"));
    if (!model_->decoder()->config.ctc || encoded.size() % encoder_.config().width != 0)
      return fail(Code::kDataLoss, "the reference's CTC head does not fit this model");
    const View<const float, 2> given = frames(encoded);
    nn::Plane logits;
    logits.prepare(given.extent(0), head.columns, kernels::Storage::kF32);
    nn::linear(runner_, head, given, {}, logits.view());
    Rows rows, sure;
    append(rows, logits.view());
    SYRINX_TRY_VOID(stage("ctc.logits", rows));
    CtcDecoder decoder(model_->decoder(), runner_, {.measure = ConfidenceMeasure::kTsallisExp}, kBlockFrames);
    CtcState state;
    std::vector<Emission> found;
    decoder.decode(frames(encoded_), state, found);
    SYRINX_TRY_VOID(equal("ctc.tokens", found, [](const Emission& e) { return int64_t{e.label}; }));
    SYRINX_TRY_VOID(equal("ctc.frames", found, [](const Emission& e) { return e.frame; }));
    SYRINX_TRY_VOID(equal("ctc.ends", found, [](const Emission& e) { return e.frame + e.duration; }));
    for (const Emission& emission : found) sure.push_back(emission.confidence);
    return exact() ? stage("ctc.confidence", sure) : Status{};
  }

  // Each look-ahead on the whole recording beside the maker's, and the exact stream beside the whole.
  Status look_aheads() {
    const EncoderConfig& c = encoder_.config();
    if (!c.cache_aware()) return {};
    for (const AttentionContext context : c.contexts) {
      Rows whole;
      append(whole, encoder_.encode(mels(), context));
      const std::string name = fmt::format("encoded.{}", context.right);
      SYRINX_TRY_VOID(exact() ? stage(name, whole) : from_sound(name, whole));
      if (exact())
        check(fmt::format("stream.{}", context.right), largest_difference(streamed(context), whole), kStreamBound);
    }
    return {};
  }

  Status windows() {
    if (!encoder_.config().menu) return {};
    const WindowMenu& menu = *encoder_.config().menu;
    for (const size_t left : menu.left) {
      for (const size_t chunk : menu.chunk) {
        for (const size_t right : menu.right) {
          const std::string name = fmt::format("window.{}.{}.{}", left, chunk, right);
          if (!has(name)) continue;
          const AttentionContext context{static_cast<ptrdiff_t>(left), static_cast<ptrdiff_t>(right),
                                         static_cast<ptrdiff_t>(chunk)};
          Rows whole;
          append(whole, encoder_.encode(mels(), context));
          SYRINX_TRY_VOID(exact() ? stage(name, whole) : from_sound(name, whole));
        }
      }
    }
    return {};
  }

  Rows streamed(AttentionContext context) {
    StreamEncoder encoder(model_->encoder(), runner_, context, 1);
    const EncoderConfig& c = encoder.config();
    EncoderState state(c, context, StreamMode::kExact);
    Rows out;
    bool last = false;
    for (size_t at = 0; !last;) {
      const size_t wanted = state.started() ? chunk_mels(c, context) : first_chunk_mels(c, context);
      const size_t left = mels().extent(0) - at, more = std::min(wanted, left);
      last = left < wanted;
      const StreamEncoder::Input input{&state, {mels_.data() + at * c.mels, {more, c.mels}}, last};
      StreamEncoder::Output output;
      append(out, encoder.step({&input, 1}, {&output, 1}));
      at += more;
    }
    return out;
  }

  std::shared_ptr<const Model> model_;
  const Safetensors& reference_;
  ThreadTeam team_{1};
  nn::Runner runner_{team_};
  Encoder encoder_;
  Rows mels_, encoded_;
  bool good_ = true;
};

Result<bool> compare(const char* path, const char* reference_path, Precision precision) {
  SYRINX_TRY(const auto model, Model::load(path, {.precision = precision}));
  SYRINX_TRY(const MappedFile file, MappedFile::open(reference_path));
  SYRINX_TRY(const Safetensors reference, Safetensors::parse(file.bytes(), reference_path));
  return Comparison(model, reference).run();
}

}  // namespace
}  // namespace syrinx::transducer

int main(int count, char** arguments) {
  const auto precision = syrinx::parse_precision(count == 4 ? arguments[3] : "");
  if (!precision) {
    std::fprintf(stderr, "usage: transducer_parity MODEL REFERENCE.safetensors f32|bf16|int8\n");
    return 2;
  }
  const auto good = syrinx::transducer::compare(arguments[1], arguments[2], *precision);
  if (!good) std::fprintf(stderr, "%s\n", good.error().message.c_str());
  return !good ? 2 : *good ? 0 : 1;
}
