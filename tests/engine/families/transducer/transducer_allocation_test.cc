// Allocations of a stream's pushes: none, except for results.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/families/transducer/transducer_frames.h"
#include "tests/base/temp_folder.h"
#include "tests/engine/families/transducer/small_transducers.h"
#include "tests/engine/families/transducer/window_parts.h"
#include "tests/engine/recognition/noise_detector.h"
#include "tests/models/allocation_count.h"

namespace syrinx {
namespace {

// From the first push on, also behind a flush; windows of every length that there is between the two that have been
// warmed.
TEST(WindowedFrames, APushAllocatesNothing) {
  struct Case {
    const char* name;
    std::optional<StreamWindow> window = {};
  };
  for (const auto& [name, asked] :
       {Case{"tdt.nemo"}, Case{"tdt.nemo", StreamWindow{.left_s = 4, .chunk_s = 0.4, .right_s = 0.4}},
        Case{"tdt.nemo", StreamWindow{.left_s = 0, .chunk_s = 8, .right_s = 0}}, Case{"rnnt.nemo"},
        Case{"unified.nemo"}, Case{"conformer_ctc.nemo"}}) {
    for (const Precision precision : {Precision::kF32, Precision::kInt8}) {
      SCOPED_TRACE(fmt::format("{} {}", name, precision_name(precision)));
      std::shared_ptr<const transducer::Model> model =
          *transducer::Model::load(std::string(SYRINX_TEST_DATA) + "/transducer/" + name, {.precision = precision});
      WindowParts parts(*model, 2);
      const StreamWindow window = asked.value_or(WindowedFrames::usual(model->config()));
      WindowedFrames::warm_up(*model, window, parts.tools());
      WindowedFrames source(model, window, parts.tools(), parts.track);
      parts.track.found.reserve(4096);
      size_t frames_seen = 0;
      const FrameSource::Sink sink = [&](View<const float, 2> frames) {
        frames_seen += frames.extent(0);
        parts.track.found.clear();
      };
      const std::vector<float> sound = noise(0.1, 3);
      const size_t before = allocation_count();
      for (int i = 0; i < 240; ++i) {
        source.push(sound, sink);
        if (i == 158) source.flush(sink);  // all but a push of what a usual window lacks
      }
      EXPECT_EQ(allocation_count(), before);
      EXPECT_GE(frames_seen, 150u);
    }
  }
}

// From the first one on, as the recogniser was asked to be ready.  Each push has a chunk or a window at least.  Of the
// other models' windows none is without a label.
TEST(TransducerStreams, APushWithoutResultsAllocatesNothing) {
  const TempFolder folder;
  const std::string detector = write_noise_detector(folder.file("voice.bin"));
  struct Case {
    const char* name;
    double push_s;
  };
  for (const Case& c : {Case{"hybrid_streaming.nemo", 0.16}, Case{"eou.nemo", 0.16}, Case{"tdt.nemo", 2}}) {
    SCOPED_TRACE(c.name);
    const auto recogniser = *load(c.name, detector, {.warm_up = true});
    auto stream = *recogniser->start({.endpoints = {.silence_after_speech_s = 0.3, .max_utterance_s = 2}});
    std::vector<RecognitionEvent> events;
    events.reserve(4096);
    size_t without = 0;
    for (int i = 0; i < 100; ++i) {
      std::vector<float> sound = noise(c.push_s, static_cast<uint32_t>(i));
      if (i / 10 % 2 == 1) std::ranges::fill(sound, 0.0f);
      const size_t events_before = events.size(), before = allocation_count();
      ASSERT_TRUE(stream->push(sound, events).has_value());
      if (events.size() > events_before) continue;
      EXPECT_EQ(allocation_count(), before) << i;
      ++without;
    }
    EXPECT_GE(without, 5u);
  }
}

TEST(TransducerStreams, TheWarmUpIsCountedApart) {
  const auto ready = *load("hybrid_streaming.nemo", "", {.warm_up = true});
  EXPECT_GT(ready->warm_up_ms(), 0.0);
  EXPECT_EQ((*load("hybrid_streaming.nemo"))->warm_up_ms(), 0.0);
}

// A recording's results need memory, the same whenever they are the same: more the first time is what was not ready.
TEST(TransducerRecordings, AllocateNoMoreTheFirstTimeWhereTheRecogniserIsReady) {
  const std::vector<float> sound = noise(0.9, 5);
  for (const char* name : {"tdt.nemo", "hybrid_streaming.nemo", "conformer_ctc.nemo"}) {
    SCOPED_TRACE(name);
    for (const int beam : {0, 4}) {
      if (beam > 0 && std::string_view(name) == "conformer_ctc.nemo") continue;
      const auto growth = [&](bool warm_up) {
        const auto recogniser = *load(name, "", {.warm_up = warm_up});
        size_t counts[2] = {};
        for (size_t& count : counts) {
          const size_t before = allocation_count();
          EXPECT_TRUE(recogniser->transcribe(sound, {.knobs = beam_knob(beam)}, {}).has_value());
          count = allocation_count() - before;
        }
        return counts[0] - std::min(counts[0], counts[1]);
      };
      EXPECT_EQ(growth(true), 0u) << beam;
      EXPECT_GT(growth(false), 0u) << beam;
    }
  }
}

}  // namespace
}  // namespace syrinx
