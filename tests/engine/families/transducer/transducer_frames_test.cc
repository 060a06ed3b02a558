// How a stream's sound becomes frames: flushes, windows, languages.
#include "engine/families/transducer/transducer_frames.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "tests/engine/families/transducer/small_transducers.h"
#include "tests/models/seen_stages.h"
#include "tests/models/transducer/fixtures.h"

namespace syrinx {
namespace {

// The frames of a sound whose source is flushed at these samples, one by one, and which of them a flush gave.
struct Flushed {
  std::vector<std::vector<float>> frames;
  std::vector<bool> early;
};
Flushed flushed_frames(FrameSource& source, std::span<const float> sound, std::vector<size_t> at) {
  Flushed out;
  bool early = false;
  const auto sink = [&](View<const float, 2> frames) {
    for (size_t t = 0; t < frames.extent(0); ++t) {
      out.frames.emplace_back(frames.row(t), frames.row(t) + frames.extent(1));
      out.early.push_back(early);
    }
  };
  size_t done = 0;
  for (const size_t end : at) {
    source.push(sound.subspan(done, end - done), sink);
    early = true;
    source.flush(sink);
    source.flush(sink);
    EXPECT_GE((out.frames.size() + 1) * 1280 + 400, end);
    early = false;
    done = end;
  }
  source.push(sound.subspan(done), sink);
  source.finish(sink);
  return out;
}

TEST(FrameSources, FlushesGiveWhatIsThereOnce) {
  const std::vector<float> sound = noise(9, 8);
  const std::vector<size_t> at = {900, 2000, 20000, 21000, 23000, 90000, 91000};
  for (const char* name : {"hybrid_streaming.nemo", "regular_streaming.nemo", "tdt.nemo", "unified.nemo"}) {
    SCOPED_TRACE(name);
    std::shared_ptr<const transducer::Model> model =
        *transducer::Model::load(std::string(SYRINX_TEST_DATA) + "/transducer/" + name, {.precision = Precision::kF32});
    ThreadTeam team(1);
    nn::Runner runner(team);
    Scheduler scheduler;
    StepQueue queue(scheduler);
    LabelTrack of_plain(*model->decoder()), of_flushed(*model->decoder());
    if (!ChunkedFrames::fits(*model)) {
      transducer::Encoder encoder(model->encoder(), runner);
      transducer::HeadDecoder decoder(model->decoder(), runner, {}, 1, 16);
      SoundRoom room;
      const WindowTools tools{queue, runner, encoder, decoder, room};
      const StreamWindow window = WindowedFrames::usual(model->config());
      WindowedFrames plain(model, window, tools, of_plain), flushed(model, window, tools, of_flushed);
      EXPECT_EQ(flushed_frames(flushed, sound, at).frames.size(), flushed_frames(plain, sound, {}).frames.size());
      continue;
    }
    for (const transducer::AttentionContext context : model->config().encoder.contexts) {
      ChunkPool pool(*model, runner, queue, context, {}, 1);
      of_plain.state.reset();
      of_flushed.state.reset();
      ChunkedFrames plain(*model, pool, of_plain), flushed(*model, pool, of_flushed);
      const Flushed some = flushed_frames(flushed, sound, at), none = flushed_frames(plain, sound, {});
      ASSERT_EQ(some.frames.size(), none.frames.size());
      for (size_t t = 0; t < some.frames.size(); ++t) {
        if (some.early[t]) continue;
        EXPECT_EQ(some.frames[t], none.frames[t]) << t;
      }
    }
  }
}

// A flush gives the frames of a recording that ends there, whatever a chunk has been filled with, but for the last one
// where that is of less sound than a frame.
TEST(ChunkedFrames, AFlushOfAnyTailIsARecordingThatEndsThere) {
  for (const char* name : {"hybrid_streaming.nemo", "regular_streaming.nemo"}) {
    const auto model =
        *transducer::Model::load(std::string(SYRINX_TEST_DATA) + "/transducer/" + name, {.precision = Precision::kF32});
    const transducer::EncoderConfig& config = model->config().encoder;
    ThreadTeam team(1);
    nn::Runner runner(team);
    Scheduler scheduler;
    StepQueue queue(scheduler);
    transducer::Encoder encoder(model->encoder(), runner);
    for (const transducer::AttentionContext context : config.contexts) {
      const size_t longest = config.factor * static_cast<size_t>(context.right) + config.factor;
      const size_t chunks = first_chunk_mels(config, context) + chunk_mels(config, context);
      // A row of features is there once the 200 samples behind its middle are.
      const std::vector<float> sound = transducer::noise(160 * (chunks + longest) + 200);
      std::vector<float> mels(model->features()->frames(sound.size()) * config.mels);
      model->features()->compute(sound, {mels.data(), {mels.size() / config.mels, config.mels}}, team);
      ChunkPool pool(*model, runner, queue, context, {}, 1);
      for (size_t tail = 0; tail <= longest; ++tail) {
        SCOPED_TRACE(fmt::format("{}, {} frames ahead, a tail of {}", name, context.right, tail));
        const size_t rows = chunks + tail, count = (rows + config.factor - 1) / config.factor;
        LabelTrack track(*model->decoder());
        ChunkedFrames source(*model, pool, track);
        std::vector<float> frames;
        const auto keep = [&](View<const float, 2> some) {
          const std::vector<float> more = transducer::flat(some);
          frames.insert(frames.end(), more.begin(), more.end());
        };
        source.push(std::span(sound).first(160 * (rows - 1) + 200), keep);
        source.flush(keep);
        std::vector<float> whole = transducer::flat(encoder.encode({mels.data(), {rows, config.mels}}, context));
        ASSERT_EQ(frames.size(), count * config.width);
        ASSERT_LE(frames.size(), whole.size());
        whole.resize(frames.size());
        EXPECT_LE(largest_difference(frames, whole), 1e-5);
      }
    }
  }
}

// Blocks that see ahead: a stream finds what the whole recording says with the same mask, however its sound comes.
TEST(ChunkedFrames, OfBlocksThatSeeAheadAreTheRecordings) {
  const auto model = *transducer::Model::load(std::string(SYRINX_TEST_DATA) + "/transducer/regular_streaming.nemo",
                                              {.precision = Precision::kF32});
  ASSERT_TRUE(ChunkedFrames::fits(*model));
  ThreadTeam team(1);
  nn::Runner runner(team);
  Scheduler scheduler;
  StepQueue queue(scheduler);
  transducer::Encoder encoder(model->encoder(), runner);
  transducer::HeadDecoder decoder(model->decoder(), runner, {}, 1, 1);
  SoundRoom room;
  const std::vector<float> sound = noise(6, 8);
  for (const transducer::AttentionContext context : model->config().encoder.contexts) {
    const View<const float, 2> whole = encode_sound(*model, sound, room, encoder, runner, {.context = context});
    LabelTrack expected(*model->decoder());
    for (size_t t = 0; t < whole.extent(0); ++t) {
      const transducer::HeadDecoder::Job job{&expected.state, {whole.row(t), {1, whole.extent(1)}}, &expected.found};
      decoder.decode({&job, 1});
    }
    EXPECT_GE(expected.found.size(), 10u);
    ChunkPool pool(*model, runner, queue, context, {}, 1);
    std::vector<float> first;
    for (const size_t piece : {sound.size(), size_t{1280}, size_t{77}}) {
      SCOPED_TRACE(fmt::format("{} frames ahead, pieces of {}", context.right, piece));
      LabelTrack track(*model->decoder());
      ChunkedFrames source(*model, pool, track);
      std::vector<float> frames;
      const auto keep = [&](View<const float, 2> some) {
        for (size_t t = 0; t < some.extent(0); ++t)
          frames.insert(frames.end(), some.row(t), some.row(t) + some.extent(1));
      };
      for (size_t at = 0; at < sound.size(); at += piece)
        source.push(std::span(sound).subspan(at, std::min(piece, sound.size() - at)), keep);
      source.finish(keep);
      ASSERT_EQ(frames.size(), whole.extent(0) * whole.extent(1));
      ASSERT_EQ(track.found.size(), expected.found.size());
      for (size_t i = 0; i < track.found.size(); ++i) {
        EXPECT_EQ(track.found[i].label, expected.found[i].label);
        EXPECT_EQ(track.found[i].frame, expected.found[i].frame);
      }
      if (first.empty()) first = frames;
      EXPECT_EQ(frames, first);
    }
  }
}

// Samples of a stream until the first word is told.
size_t first_word(Recogniser& recogniser, std::span<const float> sound) {
  auto stream = recogniser.start({});
  EXPECT_TRUE(stream.has_value()) << stream.error().message;
  std::vector<RecognitionEvent> events;
  size_t at = 0;
  for (; events.empty() && at < sound.size(); at += 160)
    EXPECT_TRUE((*stream)->push(sound.subspan(at, 160), events).has_value());
  return at;
}

TEST(TransducerStreams, LookAsFarAheadAsIsAskedFor) {
  const std::vector<float> sound = noise(6, 1);
  std::vector<size_t> first;
  for (const int look_ahead : {0, 1, 2}) {
    const auto loaded = load("hybrid_streaming.nemo", "", {.knobs = {{"look_ahead", static_cast<double>(look_ahead)}}});
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
    first.push_back(first_word(**loaded, sound));
  }
  EXPECT_LT(first[0], first[1]);
  EXPECT_LT(first[1], first[2]);
  for (const int look_ahead : {-1, 5}) {
    const auto refused =
        load("hybrid_streaming.nemo", "", {.knobs = {{"look_ahead", static_cast<double>(look_ahead)}}});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
    EXPECT_NE(refused.error().message.find("frames ahead, but 1, 0, 2"), std::string::npos) << refused.error().message;
  }
  EXPECT_EQ(load("tdt.nemo", "", {.knobs = {{"look_ahead", 1.0}}}).error().code, Code::kUnsupported);
}

TEST(TransducerStreams, HearWindowsAsTheyAreAskedFor) {
  const std::vector<float> sound = noise(10, 1);
  const StreamWindow quick{.left_s = 4, .chunk_s = 0.4, .right_s = 0.4};
  const auto usual = load("tdt.nemo"), soon = load("tdt.nemo", "", {.knobs = window_knob(quick)});
  ASSERT_TRUE(soon.has_value()) << soon.error().message;
  EXPECT_LT(first_word(**soon, sound) + 16000, first_word(**usual, sound));
  for (const StreamWindow& bad : {StreamWindow{.left_s = -1}, StreamWindow{.chunk_s = 0}, StreamWindow{.right_s = NAN},
                                  StreamWindow{.left_s = 117}, StreamWindow{.right_s = INFINITY}})
    EXPECT_EQ(load("tdt.nemo", "", {.knobs = window_knob(bad)}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(load("hybrid_streaming.nemo", "", {.knobs = window_knob(quick)}).error().code, Code::kUnsupported);
}

// A model that is told a language hears otherwise; recordings and streams alike, and each call for itself.
void compare_languages(const std::string& name) {
  SCOPED_TRACE(name);
  const auto recogniser = *load(name);
  const std::vector<float> sound = noise(4, 3);
  const auto heard = [&](const std::string& language) {
    const auto transcript = recogniser->transcribe(sound, {.language = language, .words = true}, {});
    EXPECT_TRUE(transcript.has_value()) << transcript.error().message;
    return transcript->text();
  };
  const auto streamed = [&](const std::string& language) {
    std::vector<RecognitionEvent> events;
    const auto stream = recogniser->start({.language = language});
    EXPECT_TRUE(stream.has_value()) << stream.error().message;
    EXPECT_TRUE((*stream)->push(sound, events).has_value());
    EXPECT_TRUE((*stream)->finish(events).has_value());
    std::string text;
    for (const RecognitionEvent& event : events)
      if (event.is_final) text += event.result.text;
    return text;
  };
  const std::string german = heard("de");
  EXPECT_NE(heard("en"), german);
  EXPECT_NE(streamed("en"), streamed("de"));
  EXPECT_EQ(heard(""), heard("auto"));
  EXPECT_EQ(heard("de"), german);
  EXPECT_EQ(recogniser->transcribe(sound, {.language = "xx"}, {}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(recogniser->start({.language = "xx"}).error().code, Code::kInvalidArgument);
}

TEST(TransducerLanguages, AreHeeded) {
  compare_languages("prompt.nemo");
  compare_languages("transformers/nemotron3_5");
}

// A heartbeat gives way to whoever asks while it is in the encoder, spoils nothing of theirs and does not count their
// time, which a clock tells that stands still while it works itself.
TEST(HeartbeatWork, GivesWayBetweenBlocks) {
  const auto model = *transducer::Model::load(std::string(SYRINX_TEST_DATA) + "/transducer/tdt.nemo");
  ThreadTeam team(2);
  nn::Runner runner(team);
  Scheduler scheduler;
  StepQueue queue(scheduler);
  transducer::Encoder own(model->encoder(), runner), other(model->encoder(), runner);
  transducer::HeadDecoder decoder(model->decoder(), runner, {}, 1, 16);
  SoundRoom own_room, other_room;
  ManualClock clock;
  const std::vector<float> sound = noise(1, 4);
  const auto frames = [&] {
    const View<const float, 2> all = encode_sound(*model, sound, other_room, other, runner);
    std::vector<float> out;
    for (size_t t = 0; t < all.extent(0); ++t) out.insert(out.end(), all.row(t), all.row(t) + all.extent(1));
    return out;
  };
  const std::vector<float> alone = frames();
  double worked_ms = -1;
  std::thread beating, asking;
  {
    const StepQueue::Turn held(queue);
    beating = std::thread([&] { worked_ms = hear_silence(*model, {queue, runner, own, decoder, own_room}, clock); });
    while (queue.asking() < 2) std::this_thread::yield();
    asking = std::thread([&] {
      const StepQueue::Turn turn(queue);
      for (int i = 0; i < 60000 && queue.asking() < 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(queue.asking(), 2u) << "its turn came when all was over";
      EXPECT_EQ(frames(), alone);
      clock.advance_ns(10'000'000'000);
    });
    while (queue.asking() < 3) std::this_thread::yield();
    clock.advance_ns(10'000'000'000);
  }
  beating.join();
  asking.join();
  EXPECT_EQ(worked_ms, 0.0);
}

// Each thread of the team counts.
TEST(HeartbeatWork, IsThatOfAllCores) {
  struct Ticking final : Clock {
    mutable std::atomic<int64_t> ms{0};
    int64_t now_ns() const override { return 1'000'000 * ms++; }
  };
  const auto model = *transducer::Model::load(std::string(SYRINX_TEST_DATA) + "/transducer/tdt.nemo");
  double worked_ms[2] = {};
  for (const int threads : {1, 3}) {
    ThreadTeam team(threads);
    nn::Runner runner(team);
    Scheduler scheduler;
    StepQueue queue(scheduler);
    transducer::Encoder encoder(model->encoder(), runner);
    transducer::HeadDecoder decoder(model->decoder(), runner, {}, 1, 16);
    SoundRoom room;
    worked_ms[threads / 2] = hear_silence(*model, {queue, runner, encoder, decoder, room}, Ticking());
  }
  EXPECT_GT(worked_ms[0], 1.0);
  EXPECT_EQ(worked_ms[1], 3 * worked_ms[0]);
}

// However the sound comes, a chunk's frames are there as soon as its last feature is.
TEST(ChunkedFrames, WaitForNothingThatHasCome) {
  const auto model = transducer::Model::load(std::string(SYRINX_TEST_DATA) + "/transducer/eou.nemo");
  ASSERT_TRUE(model.has_value()) << model.error().message;
  ThreadTeam team(1);
  nn::Runner runner(team);
  Scheduler scheduler;
  StepQueue queue(scheduler);
  ChunkPool pool(**model, runner, queue, (*model)->config().encoder.contexts.front(), {}, 1);
  LabelTrack track_of_large(*(*model)->decoder()), track_of_small(*(*model)->decoder());
  ChunkedFrames large(**model, pool, track_of_large), small(**model, pool, track_of_small);
  size_t of_large = 0, of_small = 0;
  const std::vector<float> sound = noise(4, 8);
  constexpr size_t kLarge = 4000, kSmall = 160;
  for (size_t at = 0; at < sound.size(); at += kLarge) {
    const std::span<const float> packet = std::span(sound).subspan(at, kLarge);
    large.push(packet, [&](View<const float, 2> frames) { of_large += frames.extent(0); });
    for (size_t part = 0; part < kLarge; part += kSmall)
      small.push(packet.subspan(part, kSmall), [&](View<const float, 2> frames) { of_small += frames.extent(0); });
    EXPECT_EQ(of_large, of_small) << at;
  }
  EXPECT_GE(of_large, 46u);
}

// Each has less than a step's sound.  Both wait while the team is busy; who came later by the clock has asked first,
// and goes last.
void expect_the_older_first(StepQueue& queue, FrameSource& older, FrameSource& later,
                            const std::function<size_t()>& waiting) {
  std::vector<std::string> order;
  std::vector<std::thread> threads;
  later.sound_came(2'000'000'000);
  older.sound_came(1'000'000'000);
  {
    const StepQueue::Turn held(queue);
    for (FrameSource* const source : {&later, &older}) {
      const char* const name = source == &older ? "older" : "later";
      threads.emplace_back([&order, source, name] {
        source->finish([&order, name](View<const float, 2>) {
          if (order.empty() || order.back() != name) order.emplace_back(name);
        });
      });
      while (waiting() < threads.size()) std::this_thread::yield();
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<std::string>{"older", "later"}));
}

TEST(FrameSources, TheSoundThatCameFirstIsHeardFirst) {
  const auto load_model = [](const char* name) {
    return *transducer::Model::load(std::string(SYRINX_TEST_DATA) + "/transducer/" + name);
  };
  ThreadTeam team(1);
  nn::Runner runner(team);
  Scheduler scheduler;
  StepQueue queue(scheduler);
  {
    const auto model = load_model("hybrid_streaming.nemo");
    const transducer::AttentionContext context = model->config().encoder.contexts.front();
    ChunkPool pool(*model, runner, queue, context, {}, 1);
    LabelTrack older(*model->decoder()), later(*model->decoder());
    ChunkedFrames first(*model, pool, older), second(*model, pool, later);
    for (ChunkedFrames* const source : {&first, &second}) source->push(noise(0.05, 8), [](View<const float, 2>) {});
    expect_the_older_first(queue, first, second, [&] { return pool.waiting(); });
  }
  const auto model = load_model("tdt.nemo");
  transducer::Encoder encoder(model->encoder(), runner);
  transducer::HeadDecoder decoder(model->decoder(), runner, {}, 1, 16);
  SoundRoom room;
  const WindowTools tools{queue, runner, encoder, decoder, room};
  LabelTrack older(*model->decoder()), later(*model->decoder());
  WindowedFrames first(model, {}, tools, older), second(model, {}, tools, later);
  for (WindowedFrames* const source : {&first, &second}) source->push(noise(1, 8), [](View<const float, 2>) {});
  expect_the_older_first(queue, first, second, [&] { return queue.asking() - 1; });
}

}  // namespace
}  // namespace syrinx
