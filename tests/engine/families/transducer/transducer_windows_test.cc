// Streams in windows beside the maker's.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "engine/families/transducer/transducer_frames.h"
#include "tests/engine/families/transducer/small_transducers.h"
#include "tests/engine/families/transducer/window_parts.h"
#include "tests/models/safetensors_arrays.h"
#include "tests/models/seen_stages.h"
#include "tests/models/transducer/fixtures.h"

namespace syrinx {
namespace {

using Window = std::array<size_t, 3>;  // frames before a chunk, in it and behind it

struct Heard {
  std::vector<float> encoded;  // the chunks' frames, one behind the other
  std::vector<int32_t> labels, frames, durations;
};

Heard heard_in_windows(const std::shared_ptr<const transducer::Model>& model, const Window& frames,
                       std::span<const float> sound, size_t piece) {
  const auto seconds = [&](size_t count) { return model->config().frame_s() * static_cast<double>(count); };
  const StreamWindow window = {
      .left_s = seconds(frames[0]), .chunk_s = seconds(frames[1]), .right_s = seconds(frames[2])};
  EXPECT_TRUE(WindowedFrames::check(model->config(), window).has_value());
  WindowParts parts(*model, 1);
  WindowedFrames source(model, window, parts.tools(), parts.track);
  Heard out;
  const auto keep = [&](View<const float, 2> some) {
    const std::vector<float> rows = transducer::flat(some);
    out.encoded.insert(out.encoded.end(), rows.begin(), rows.end());
  };
  for (size_t at = 0; at < sound.size(); at += piece)
    source.push(sound.subspan(at, std::min(piece, sound.size() - at)), keep);
  source.finish(keep);
  for (const transducer::Emission& emission : parts.track.found) {
    out.labels.push_back(emission.label);
    out.frames.push_back(static_cast<int32_t>(emission.frame));
    out.durations.push_back(static_cast<int32_t>(emission.duration));
  }
  return out;
}

// The maker's loop over windows gives the same frames, and finds the same labels at the same ones, whatever the pieces
// in which the sound comes.  Of a model with a menu they are that menu's, in its mask.
TEST(TransducerWindows, AreTheMakers) {
  const std::string folder = std::string(SYRINX_TEST_DATA) + "/transducer/";
  const SafetensorsArrays reference(folder + "windows.reference.safetensors");
  const std::vector<float> sound = transducer::noise(1280 * 61);
  const Window any[] = {{10, 5, 5}, {0, 3, 1}, {25, 4, 2}, {125, 25, 25}};
  const Window menu[] = {{6, 2, 2}, {6, 1, 1}, {6, 3, 2}, {5, 3, 2}};
  for (const std::string name : {"tdt_1_1b", "rnnt_1_1b", "medium", "unified"}) {
    const auto model = *transducer::Model::load(folder + name + ".nemo", {.precision = Precision::kF32});
    for (const Window& window : model->config().encoder.menu ? menu : any) {
      const std::string prefix = fmt::format("{}.{}.", name, fmt::join(window, "."));
      for (const size_t piece : {size_t{700}, sound.size()}) {
        SCOPED_TRACE(fmt::format("{} in pieces of {}", prefix, piece));
        const Heard heard = heard_in_windows(model, window, sound, piece);
        EXPECT_LE(largest_difference(heard.encoded, reference.get(prefix + "encoded")), 1e-4);
        EXPECT_EQ(heard.labels, reference.get<int32_t>(prefix + "tokens"));
        EXPECT_EQ(heard.frames, reference.get<int32_t>(prefix + "frames"));
        if (model->config().decoder.kind != transducer::HeadKind::kTdt) continue;
        EXPECT_EQ(heard.durations, reference.get<int32_t>(prefix + "durations"));
      }
    }
  }
}

// Windows of the menu: what a stream gives does not depend on how the sound was cut, but on the window.
TEST(TransducerWindows, AreOfTheModelsMenu) {
  const std::vector<float> sound = noise(5, 4);
  const auto streamed = [&](std::optional<StreamWindow> window, size_t size) {
    const auto recogniser = load("unified.nemo", "", {.knobs = window ? window_knob(*window) : Knobs()});
    EXPECT_TRUE(recogniser.has_value()) << recogniser.error().message;
    const auto stream = (*recogniser)->start({});
    std::vector<RecognitionEvent> events;
    for (size_t at = 0; at < sound.size(); at += size)
      EXPECT_TRUE((*stream)->push(std::span(sound).subspan(at, std::min(size, sound.size() - at)), events).has_value());
    EXPECT_TRUE((*stream)->finish(events).has_value());
    std::string text;
    for (const RecognitionEvent& event : events)
      if (event.is_final) text += event.result.text;
    return text;
  };
  const auto model = *transducer::Model::load(std::string(SYRINX_TEST_DATA) + "/transducer/unified.nemo");
  const StreamWindow usual = WindowedFrames::usual(model->config());
  const std::string expected = streamed({}, 77);
  EXPECT_NE(expected, "");
  EXPECT_EQ(streamed({}, sound.size()), expected);
  EXPECT_EQ(streamed(usual, sound.size()), expected);
  const auto refusal = load("unified.nemo", "", {.knobs = window_knob(StreamWindow())});
  ASSERT_FALSE(refusal.has_value());
  EXPECT_EQ(refusal.error().code, Code::kInvalidArgument);
  const transducer::WindowMenu& menu = *model->config().encoder.menu;
  const double frame_s = model->config().frame_s();
  const StreamWindow least = {.left_s = static_cast<double>(menu.left.front()) * frame_s,
                              .chunk_s = static_cast<double>(menu.chunk.front()) * frame_s,
                              .right_s = static_cast<double>(menu.right.front()) * frame_s};
  EXPECT_NE(streamed(least, sound.size()), expected);
}

}  // namespace
}  // namespace syrinx
