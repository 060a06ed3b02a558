// Streams of several threads in one pool, beside each of them alone.
#include "engine/families/transducer/chunk_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include "engine/families/transducer/transducer_faults.h"
#include "engine/families/transducer/transducer_frames.h"
#include "engine/families/transducer/transducer_recogniser.h"
#include "tests/engine/families/transducer/small_transducers.h"
#include "tests/models/allocation_count.h"

namespace syrinx {
namespace {

constexpr size_t kSamples = 48000;

std::vector<float> noise(uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 0.1f);
  std::vector<float> out(kSamples);
  for (float& sample : out) sample = normal(random);
  return out;
}

// What a stream gets: frames, and labels with their confidences.
struct Heard {
  std::vector<float> frames, confidences;
  std::vector<int32_t> labels;
  bool operator==(const Heard&) const = default;
};

struct Pool {
  Pool(const std::string& name, Precision precision, int threads, size_t streams,
       std::optional<transducer::AttentionContext> context = {}, const Clock& clock = system_clock())
      : model(
            *transducer::Model::load(std::string(SYRINX_TEST_DATA) + "/transducer/" + name, {.precision = precision})),
        team(threads),
        runner(team),
        scheduler(clock),
        pool(*model, runner, queue, context.value_or(model->config().encoder.contexts.front()),
             {.confidence = {.measure = transducer::ConfidenceMeasure::kTsallisExp}}, streams) {}

  // `part` of a sound's samples, `size` at a time; to its end where that is all.
  Heard hear(std::span<const float> sound, size_t size, size_t part = kSamples) {
    LabelTrack track(*model->decoder());
    ChunkedFrames source(*model, pool, track);
    Heard heard;
    const auto sink = [&](View<const float, 2> frames) {
      for (size_t t = 0; t < frames.extent(0); ++t)
        heard.frames.insert(heard.frames.end(), frames.row(t), frames.row(t) + frames.extent(1));
    };
    for (size_t at = 0; at < part; at += size) source.push(sound.subspan(at, std::min(size, part - at)), sink);
    if (part == kSamples) source.finish(sink);
    for (const transducer::Emission& emission : track.found) {
      heard.labels.push_back(emission.label);
      heard.confidences.push_back(emission.confidence);
    }
    return heard;
  }

  std::shared_ptr<const transducer::Model> model;
  ThreadTeam team;
  nn::Runner runner;
  Scheduler scheduler;
  StepQueue queue{scheduler};
  ChunkPool pool;
};

// More threads than a step takes, packets of their own sizes; every third stream is dropped in the middle of its sound.
void compare(const std::string& name, Precision precision, int threads,
             std::optional<transducer::AttentionContext> context = {}) {
  SCOPED_TRACE(fmt::format("{} {} {}", name, precision_name(precision), threads));
  constexpr size_t kStreams = 5;
  Pool pool(name, precision, threads, 3, context);
  const auto part = [](size_t n) { return n % 3 == 2 ? kSamples / 2 : kSamples; };
  std::vector<std::vector<float>> sounds;
  std::vector<Heard> alone, together(kStreams);
  for (size_t n = 0; n < kStreams; ++n) {
    sounds.push_back(noise(static_cast<uint32_t>(n)));
    alone.push_back(pool.hear(sounds[n], 1280, part(n)));
    EXPECT_FALSE(alone[n].frames.empty());
  }
  const uint64_t steps = pool.pool.steps(), chunks = pool.pool.chunks();
  EXPECT_EQ(steps, chunks) << "each alone";
  std::vector<std::thread> speakers;
  {
    const StepQueue::Turn turn(pool.queue);
    for (size_t n = 0; n < kStreams; ++n)
      speakers.emplace_back([&, n] { together[n] = pool.hear(sounds[n], 500 + 333 * n, part(n)); });
    while (pool.pool.waiting() < kStreams) std::this_thread::yield();
  }
  for (std::thread& speaker : speakers) speaker.join();
  for (size_t n = 0; n < kStreams; ++n) EXPECT_EQ(together[n], alone[n]) << n;
  EXPECT_EQ(pool.pool.chunks(), 2 * chunks);
  EXPECT_LT(pool.pool.steps() - steps, chunks) << "no step was shared";
}

TEST(ChunkPool, ThreadsTogetherGetWhatEachGetsAlone) {
  compare("hybrid_streaming.nemo", Precision::kF32, 1);
  compare("hybrid_streaming.nemo", Precision::kInt8, 2);
  compare("eou.nemo", Precision::kBf16, 1);
}

// A chunk whose frames are decoded in four parts is still one of one step.
TEST(ChunkPool, LongChunksTakeAStepEach) {
  constexpr transducer::AttentionContext kFar{14, 13};
  static_assert(13 / FrameSource::kFramesAtOnce == 3);
  compare("transformers/nemotron", Precision::kF32, 1, kFar);
  compare("transformers/nemotron", Precision::kInt8, 2, kFar);
}

// A chunk of some stream, asked for by a thread of its own.
struct Asker {
  explicit Asker(Pool& pool)
      : encoder(pool.model->config().encoder, pool.pool.context(), transducer::StreamMode::kExact),
        head(*pool.model->decoder()) {
    const transducer::EncoderConfig& config = pool.model->config().encoder;
    mels.prepare(first_chunk_mels(config, pool.pool.context()), config.mels, kernels::Storage::kF32);
    frames.prepare(pool.pool.chunk_frames(), config.width, kernels::Storage::kF32);
    std::mt19937 random(3);
    std::normal_distribution<float> normal(-8.0f, 3.0f);
    for (size_t i = 0; i < mels.rows() * mels.stride(); ++i) mels.f32()[i] = normal(random);
  }
  ChunkPool::Chunk chunk() {
    return {.encoder = &encoder, .mels = mels.view(), .head = &head, .found = &found, .frames = frames.view()};
  }

  transducer::EncoderState encoder;
  transducer::HeadState head;
  std::vector<transducer::Emission> found;
  nn::Plane mels, frames;
};

// While the team is busy with other work chunks gather; then they go in steps of three, the oldest first.
TEST(ChunkPool, WhatWaitsSharesAStepOldestFirst) {
  Pool pool("hybrid_streaming.nemo", Precision::kF32, 1, 3);
  ASSERT_EQ(pool.pool.step_streams(), 3u);
  std::vector<std::unique_ptr<Asker>> askers;
  std::vector<uint64_t> step(5);
  std::vector<std::thread> threads;
  {
    const StepQueue::Turn turn(pool.queue);
    for (size_t n = 0; n < step.size(); ++n) {
      askers.push_back(std::make_unique<Asker>(pool));
      threads.emplace_back([&, n] {
        ChunkPool::Chunk chunk = askers[n]->chunk();
        pool.pool.hear(chunk);
        EXPECT_GT(chunk.rows, 0u);
        step[n] = pool.pool.steps();
      });
      while (pool.pool.waiting() <= n) std::this_thread::yield();
    }
    EXPECT_EQ(pool.pool.steps(), 0u);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.pool.steps(), 2u);
  EXPECT_EQ(pool.pool.chunks(), 5u);
  EXPECT_EQ(step[3], 2u);
  EXPECT_EQ(step[4], 2u);
  EXPECT_EQ(pool.pool.waiting(), 0u);
}

// Also where more come, while the one that is to work waits for the team, than a step takes: it works for them first.
TEST(ChunkPool, WhatIsDueFirstGoesFirst) {
  const ManualClock clock;
  Pool pool("hybrid_streaming.nemo", Precision::kF32, 1, 3, {}, clock);
  const std::vector<int64_t> due_ns = {500, 400, 300, 200, 100, 200};
  std::vector<std::unique_ptr<Asker>> askers;
  std::vector<ChunkPool::Sink> sinks;
  std::vector<size_t> order;  // of the team's turns
  std::vector<std::thread> threads;
  for (size_t n = 0; n < due_ns.size(); ++n) {
    askers.push_back(std::make_unique<Asker>(pool));
    sinks.push_back([&order, n](View<const float, 2>) { order.push_back(n); });
  }
  {
    const StepQueue::Turn turn(pool.queue);
    for (size_t n = 0; n < due_ns.size(); ++n) {
      threads.emplace_back([&, n] {
        ChunkPool::Chunk chunk = askers[n]->chunk();
        chunk.sink = &sinks[n];
        chunk.due_ns = due_ns[n];
        pool.pool.hear(chunk);
      });
      while (pool.pool.waiting() <= n) std::this_thread::yield();
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<size_t>{4, 3, 5, 2, 1, 0}));
  EXPECT_EQ(pool.pool.steps(), 2u);
  EXPECT_EQ(pool.pool.waiting(), 0u);
}

// The stream that leads the next step joins before batch work has its turn, which waits until it has earned a step.
TEST(ChunkPool, StepsGoOnBeforeBatchWork) {
  ManualClock clock;
  Pool pool("hybrid_streaming.nemo", Precision::kF32, 1, 1, {}, clock);
  const size_t kBefore = 16, kMore = 2;  // steps of 8 ms
  std::vector<std::unique_ptr<Asker>> askers;
  std::vector<std::string> order;  // of the team's turns
  const ChunkPool::Sink sink = [&](View<const float, 2>) {
    order.emplace_back("step");
    clock.advance_ns(DueQueue::kStepNs);
  };
  std::vector<std::thread> threads;
  {
    const StepQueue::Turn turn(pool.queue);
    for (size_t n = 0; n < kBefore + kMore; ++n) {
      askers.push_back(std::make_unique<Asker>(pool));
      threads.emplace_back([&, n] {
        ChunkPool::Chunk chunk = askers[n]->chunk();
        chunk.sink = &sink;
        pool.pool.hear(chunk);
      });
      while (pool.pool.waiting() <= n) std::this_thread::yield();
    }
    threads.emplace_back([&] {
      const StepQueue::Turn batch(pool.queue);
      order.emplace_back("batch");
    });
    while (pool.queue.asking() < 3) std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::string> expected(kBefore + kMore + 1, "step");
  expected[kBefore] = "batch";
  EXPECT_EQ(order, expected);
  EXPECT_EQ(pool.queue.asking(), 0u);
}

// Whichever it is, and it alone: the others of the step came in time.
TEST(ChunkPool, AStepIsLateWithAnyOfItsChunks) {
  constexpr int64_t kMs = 1'000'000;
  ManualClock clock;
  clock.advance_ns(1000 * kMs);
  Pool pool("hybrid_streaming.nemo", Precision::kF32, 1, 3, {}, clock);
  const ChunkPool::Sink sink = [&](View<const float, 2>) { clock.advance_ns(100 * kMs); };
  const auto step = [&](const std::vector<int64_t>& due_ns) {
    std::vector<std::unique_ptr<Asker>> askers;
    std::vector<std::thread> threads;
    {
      const StepQueue::Turn turn(pool.queue);
      for (const int64_t due : due_ns) {
        askers.push_back(std::make_unique<Asker>(pool));
        threads.emplace_back([&pool, &sink, due, asker = askers.back().get(), is_first = threads.empty()] {
          ChunkPool::Chunk chunk = asker->chunk();
          if (is_first) chunk.sink = &sink;
          chunk.due_ns = due;
          pool.pool.hear(chunk);
        });
        while (pool.pool.waiting() < threads.size()) std::this_thread::yield();
      }
      EXPECT_EQ(pool.pool.waiting_behind(), due_ns.size() - 1);
    }
    for (std::thread& thread : threads) thread.join();
  };
  const auto in_ms = [&](int64_t ms) { return clock.now_ns() + ms * kMs; };
  step({in_ms(50)});
  EXPECT_EQ(pool.queue.steps().late, 1u);
  step({in_ms(500), in_ms(600)});
  step({kDueAtOnce});
  EXPECT_EQ(pool.queue.steps().late, 1u);
  step({in_ms(500), kDueAtOnce, in_ms(50)});
  const StepFigures steps = pool.queue.steps();
  EXPECT_EQ(steps.late, 2u);
  EXPECT_EQ(steps.count(), 4u);
  EXPECT_EQ(steps.took_ns, 400 * kMs);
}

// Features whose sums overflow: the fault is that stream's alone, also where another's thread did the work.
TEST(ChunkPool, ABrokenStreamCostsNoOther) {
  Pool pool("hybrid_streaming.nemo", Precision::kInt8, 1, 2);
  const std::vector<float> sound = noise(1);
  const Heard alone = pool.hear(sound, 1280);
  std::atomic<bool> over{false};
  std::thread breaker([&] {
    do {
      Asker broken(pool);
      std::fill_n(broken.mels.f32(), broken.mels.rows() * broken.mels.stride(), std::numeric_limits<float>::max());
      ChunkPool::Chunk chunk = broken.chunk();
      pool.pool.hear(chunk);
      EXPECT_NE(broken.head.faults() & transducer::kFramesNotFinite, 0u);
    } while (!over);
  });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(pool.hear(sound, 1280), alone);
  over = true;
  breaker.join();
}

// Each bit is one stage's, stays for the chunks that follow, and has a sentence of its own.
TEST(ChunkPool, FaultsNameTheirStage) {
  Pool pool("hybrid_streaming.nemo", Precision::kF32, 1, 1);
  Asker asker(pool);
  ChunkPool::Chunk chunk = asker.chunk();
  pool.pool.hear(chunk);
  EXPECT_EQ(asker.head.faults(), 0u);
  EXPECT_TRUE(fault_status(0, "m").has_value());
  asker.head.transducer->projection()[0] = std::numeric_limits<float>::infinity();
  nn::Plane more;  // a chunk behind the first has more frames
  more.prepare(chunk_mels(pool.model->config().encoder, pool.pool.context()), asker.mels.channels(),
               kernels::Storage::kF32);
  std::fill_n(more.f32(), more.rows() * more.stride(), -8.0f);
  for (int i = 0; i < 2; ++i) {
    ChunkPool::Chunk next = asker.chunk();
    next.mels = more.view();
    pool.pool.hear(next);
    EXPECT_EQ(asker.head.faults(), transducer::kLogitsNotFinite);
    asker.head.forget_labels();
  }
  const std::string decoder = fault_status(asker.head.faults(), "m").error().message;
  EXPECT_NE(decoder.find("the decoder of 'm'"), std::string::npos) << decoder;
  // Frames that go wrong later were not the first.
  std::fill_n(more.f32(), more.rows() * more.stride(), std::numeric_limits<float>::max());
  ChunkPool::Chunk late = asker.chunk();
  late.mels = more.view();
  pool.pool.hear(late);
  EXPECT_EQ(fault_status(asker.head.faults(), "m").error().message, decoder);

  Asker broken(pool);
  std::fill_n(broken.mels.f32(), broken.mels.rows() * broken.mels.stride(), std::numeric_limits<float>::max());
  ChunkPool::Chunk bad = broken.chunk();
  pool.pool.hear(bad);
  EXPECT_NE(broken.head.faults() & transducer::kFramesNotFinite, 0u);
  const std::string encoder = fault_status(broken.head.faults(), "m").error().message;
  EXPECT_NE(encoder.find("the encoder of 'm'"), std::string::npos) << encoder;
}

// A chunk's frames one by one: the same labels, and what is told of a frame comes before the next is decoded.
TEST(ChunkPool, FramesMayBeDecodedInParts) {
  Pool pool("hybrid_streaming.nemo", Precision::kF32, 1, 1);
  Asker whole(pool), parts(pool);
  ChunkPool::Chunk at_once = whole.chunk(), one_by_one = parts.chunk();
  pool.pool.hear(at_once);
  EXPECT_EQ(at_once.decoded, at_once.rows);
  std::vector<int64_t> decoded;
  const ChunkPool::Sink sink = [&](View<const float, 2> frames) {
    EXPECT_EQ(frames.row(0), parts.frames.f32(decoded.size()));
    EXPECT_EQ(frames.extent(0), 1u);
    decoded.push_back(parts.head.decoded());
  };
  one_by_one.at_once = 1;
  one_by_one.sink = &sink;
  pool.pool.hear(one_by_one);
  ASSERT_EQ(one_by_one.rows, 2u);
  EXPECT_EQ(one_by_one.decoded, 2u);
  EXPECT_EQ(decoded, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(pool.pool.steps(), 2u);
  EXPECT_EQ(pool.pool.chunks(), 2u);
  ASSERT_FALSE(whole.found.empty());
  ASSERT_EQ(parts.found.size(), whole.found.size());
  for (size_t i = 0; i < whole.found.size(); ++i) {
    EXPECT_EQ(parts.found[i].label, whole.found[i].label);
    EXPECT_EQ(parts.found[i].frame, whole.found[i].frame);
  }
}

// Whoever did the work: it is the owner's, and those beside it and behind it get what is theirs.
TEST(ChunkPool, WhatIsThrownReachesItsOwnerAlone) {
  Pool pool("hybrid_streaming.nemo", Precision::kF32, 1, 3);
  constexpr size_t kAskers = 5;
  std::vector<std::unique_ptr<Asker>> askers;
  std::vector<std::thread> threads;
  std::vector<int> thrown(kAskers, 0);
  const ChunkPool::Sink sink = [](View<const float, 2>) { throw std::bad_alloc(); };
  {
    const StepQueue::Turn turn(pool.queue);
    for (size_t n = 0; n < kAskers; ++n) {
      askers.push_back(std::make_unique<Asker>(pool));
      threads.emplace_back([&, n] {
        ChunkPool::Chunk chunk = askers[n]->chunk();
        chunk.at_once = 1;
        if (n < 2) chunk.sink = &sink;
        try {
          pool.pool.hear(chunk);
        } catch (const std::bad_alloc&) {
          thrown[n] = 1;
        }
        EXPECT_EQ(chunk.decoded, n < 2 ? 1u : 2u) << n;
      });
      while (pool.pool.waiting() <= n) std::this_thread::yield();
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(thrown, (std::vector<int>{1, 1, 0, 0, 0}));
  EXPECT_EQ(pool.pool.chunks(), kAskers);
  EXPECT_EQ(pool.pool.waiting(), 0u);
}

// Chunks that are heard while a recording's second piece is.
int chunks_beside_a_piece(Recogniser& recogniser, int beam) {
  auto stream = *recogniser.start({});
  const std::vector<float> recording(170 * kRecognitionRateHz, 0.1f), chunk(2560, 0.1f);
  std::atomic<int> pieces{0};
  std::thread listener([&] {
    EXPECT_TRUE(
        recogniser.transcribe(recording, {.knobs = beam_knob(beam)}, [&](double) { return ++pieces > 0; }).has_value());
  });
  std::vector<RecognitionEvent> events;
  int meanwhile = 0;
  while (pieces < 2) {
    EXPECT_TRUE(stream->push(chunk, events).has_value());
    meanwhile += pieces == 1 ? 1 : 0;
  }
  listener.join();
  return meanwhile;
}

// Neither for its encoder nor for its decoder; windows no more than chunks.  Where others use the
// machine whoever speaks may stand still for as long as a piece takes: so one of several will do.
TEST(TransducerStreams, DoNotWaitForARecordingsPiece) {
  struct Case {
    const char* model;
    std::optional<StreamWindow> window;
    int beam;
  };
  const StreamWindow quick{.left_s = 0.4, .chunk_s = 0.16, .right_s = 0.08};
  for (const Case& c :
       {Case{"hybrid_streaming.nemo", {}, 0}, Case{"hybrid_streaming.nemo", {}, 4}, Case{"tdt.nemo", quick, 8}}) {
    RecogniserOptions options{.threads = 1, .knobs = c.window ? window_knob(*c.window) : Knobs()};
    options.files.checkpoint = std::string(SYRINX_TEST_DATA) + "/transducer/" + c.model;
    const auto recogniser = *TransducerRecogniser::load(options);
    int meanwhile = 0;
    for (int i = 0; i < 20 && meanwhile < 10; ++i) meanwhile = chunks_beside_a_piece(*recogniser, c.beam);
    EXPECT_GE(meanwhile, 10) << c.model << ", a beam of " << c.beam;
  }
}

void compare_allocations(const char* name) {
  SCOPED_TRACE(name);
  const Pool any(name, Precision::kInt8, 1, 1);
  for (const transducer::AttentionContext context : any.model->config().encoder.contexts) {
    Pool pool(name, Precision::kInt8, 2, 2, context);
    pool.pool.warm_up(*pool.model);
    LabelTrack track(*pool.model->decoder());
    ChunkedFrames source(*pool.model, pool.pool, track);
    track.found.reserve(4096);
    const std::vector<float> sound = noise(2);
    size_t frames_seen = 0;
    const FrameSource::Sink sink = [&](View<const float, 2> frames) { frames_seen += frames.extent(0); };
    const size_t before = allocation_count();
    for (size_t at = 0; at < kSamples; at += 800) source.push(std::span(sound).subspan(at, 800), sink);
    EXPECT_EQ(allocation_count(), before) << context.right;
    EXPECT_GE(frames_seen, 10u);
  }
}

TEST(ChunkPool, APushAllocatesNothing) {
  for (const char* name : {"hybrid_streaming.nemo", "regular_streaming.nemo"}) compare_allocations(name);
}

}  // namespace
}  // namespace syrinx
