// Whole recordings and streams through small random transducers.
#include "engine/families/transducer/transducer_recogniser.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <thread>

#include "engine/families/transducer/transducer_frames.h"
#include "engine/recognition/voice_track.h"
#include "tests/base/temp_folder.h"
#include "tests/engine/families/transducer/small_transducers.h"
#include "tests/engine/recognition/noise_detector.h"

namespace syrinx {
namespace {

class TransducerRecognition : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { hear_with(""); }
  void hear_with(const std::string& voice_activity) {
    auto loaded = load(GetParam(), voice_activity);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
    recogniser_ = *loaded;
  }
  // The final segments of a stream that is pushed `size` samples at a time.
  std::vector<TranscriptSegment> stream(std::span<const float> sound, size_t size,
                                        const TranscribeOptions& options = {.words = true}) {
    auto stream = recogniser_->start(options);
    EXPECT_TRUE(stream.has_value()) << stream.error().message;
    std::vector<RecognitionEvent> events;
    for (size_t first = 0; first < sound.size(); first += size)
      EXPECT_TRUE((*stream)->push(sound.subspan(first, std::min(size, sound.size() - first)), events).has_value());
    EXPECT_TRUE((*stream)->finish(events).has_value());
    std::vector<TranscriptSegment> finals;
    std::string partial;
    for (const RecognitionEvent& event : events) {
      EXPECT_EQ(event.segment, finals.size());
      EXPECT_TRUE(event.result.text.starts_with(partial)) << "what was said is taken back";
      EXPECT_EQ(event.stable_bytes, event.result.text.size());
      EXPECT_TRUE(event.is_final || event.result.text != partial) << "no news";
      EXPECT_EQ(event.reason.has_value(), event.is_final);
      partial = event.is_final ? "" : event.result.text;
      if (event.is_final) finals.push_back(event.result);
    }
    EXPECT_EQ(partial, "");
    return finals;
  }

  std::shared_ptr<Recogniser> recogniser_;
};
INSTANTIATE_TEST_SUITE_P(All, TransducerRecognition,
                         ::testing::Values("rnnt.nemo", "tdt.nemo", "hybrid_streaming.nemo", "conformer_ctc.nemo"),
                         [](const auto& p) { return std::string(p.param, std::strcspn(p.param, ".")); });

// Of 400 frames of features: three halvings, which round up or, of a causal model, add a frame; or two.
TEST_P(TransducerRecognition, CountsTheFramesOfASound) {
  const std::map<std::string, size_t> encoded = {
      {"rnnt.nemo", 50}, {"tdt.nemo", 50}, {"hybrid_streaming.nemo", 51}, {"conformer_ctc.nemo", 100}};
  const Recogniser::Frames frames = recogniser_->frames_of(64159);
  EXPECT_EQ(frames.features, 400u);
  EXPECT_EQ(frames.encoded, encoded.at(GetParam()));
  EXPECT_EQ(recogniser_->frames_of(159).features + recogniser_->frames_of(159).encoded, 0u);
}

TEST_P(TransducerRecognition, SegmentsOfARecordingLieInIt) {
  const std::vector<float> sound = noise(6, 1);
  double done_s = 0;
  const auto transcript = recogniser_->transcribe(sound, {.words = true}, [&](double now_s) {
    done_s = now_s;
    return true;
  });
  ASSERT_TRUE(transcript.has_value()) << transcript.error().message;
  EXPECT_DOUBLE_EQ(transcript->audio_s, 6.0);
  EXPECT_DOUBLE_EQ(done_s, 6.0);
  ASSERT_FALSE(transcript->text().empty());
  double last_s = 0;
  for (const TranscriptSegment& segment : transcript->segments) {
    EXPECT_FALSE(segment.words.empty());
    EXPECT_GE(segment.start_s, 0.0);
    for (const TranscriptWord& word : segment.words) {
      EXPECT_GE(word.start_s, last_s - 1e-9);
      EXPECT_GE(word.end_s, word.start_s);
      EXPECT_LE(word.start_s, 6.0);
      EXPECT_GE(word.confidence, 0.0f);
      EXPECT_LE(word.confidence, 1.0f);
      last_s = word.start_s;
    }
  }
}

TEST_P(TransducerRecognition, SoundThatHoldsNothing) {
  for (const size_t samples : {0, 1, 159, 160, 161, 1279}) {
    const std::vector<float> sound(samples, 0.5f);
    const auto transcript = recogniser_->transcribe(sound, {}, {});
    ASSERT_TRUE(transcript.has_value()) << samples << transcript.error().message;
    EXPECT_LE(stream(sound, 100).size(), 1u);
  }
  std::vector<float> broken = noise(2, 3), mended = broken;
  for (const size_t at : {5, 1000, 31999}) {
    broken[at] = at % 2 == 0 ? INFINITY : NAN;
    mended[at] = 0.0f;
  }
  broken[20000] = -1e30f;
  mended[20000] = -1000.0f;
  EXPECT_EQ(recogniser_->transcribe(broken, {}, {})->text(), recogniser_->transcribe(mended, {}, {})->text());
  EXPECT_EQ(stream(broken, 4000).size(), stream(mended, 4000).size());
}

TEST_P(TransducerRecognition, StreamsDoNotDependOnHowTheSoundIsCut) {
  const std::vector<float> sound = noise(19, 4);
  const std::vector<TranscriptSegment> whole = stream(sound, sound.size());
  ASSERT_FALSE(whole.empty());
  for (const size_t size : {160, 997, 40000}) {
    const std::vector<TranscriptSegment> parts = stream(sound, size);
    ASSERT_EQ(parts.size(), whole.size()) << size;
    for (size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(parts[i].text, whole[i].text);
      EXPECT_EQ(parts[i].tokens, whole[i].tokens);
      EXPECT_EQ(parts[i].start_s, whole[i].start_s);
      EXPECT_EQ(parts[i].end_s, whole[i].end_s);
      EXPECT_EQ(parts[i].confidence, whole[i].confidence);
    }
  }
}

// Of those that say so, whatever pauses are in it.
TEST(TransducerStreams, LoseNothingAgainstARecordingWhereTheModelIsCacheAware) {
  std::vector<float> sound = noise(9, 4);
  std::fill(sound.begin() + 3 * kRecognitionRateHz, sound.begin() + 6 * kRecognitionRateHz, 0.0f);
  for (const char* name : {"hybrid_streaming.nemo", "eou.nemo", "conformer_streaming.nemo", "prompt_multilingual.nemo",
                           "nemotron.nemo", "regular_streaming.nemo"}) {
    SCOPED_TRACE(name);
    const auto recogniser = load(name);
    ASSERT_TRUE(recogniser.has_value()) << recogniser.error().message;
    EXPECT_TRUE((*recogniser)->hears_streams_as_recordings());
    const auto whole = (*recogniser)->transcribe(sound, {.voice_activity = false}, {});
    ASSERT_TRUE(whole.has_value()) << whole.error().message;
    std::vector<int32_t> expected, found;
    for (const TranscriptSegment& segment : whole->segments)
      expected.insert(expected.end(), segment.tokens.begin(), segment.tokens.end());
    EXPECT_FALSE(expected.empty());
    auto stream = (*recogniser)->start({.voice_activity = false, .endpoints = {.off = true}});
    ASSERT_TRUE(stream.has_value()) << stream.error().message;
    std::vector<RecognitionEvent> events;
    for (std::span<const float> rest = sound; !rest.empty(); rest = rest.subspan(std::min<size_t>(1600, rest.size())))
      ASSERT_TRUE((*stream)->push(rest.first(std::min<size_t>(1600, rest.size())), events).has_value());
    ASSERT_TRUE((*stream)->finish(events).has_value());
    ASSERT_TRUE(!events.empty() && events.back().is_final);
    EXPECT_EQ(events.back().result.tokens, expected);
    EXPECT_EQ(events.back().result.text, whole->text());
    EXPECT_EQ(events.back().segment, 0U);
  }
  EXPECT_FALSE((*load("hybrid_streaming.nemo", "", {.knobs = {{"look_ahead", 0.0}}}))->hears_streams_as_recordings());
  EXPECT_FALSE((*load("tdt.nemo"))->hears_streams_as_recordings());  // in windows
}

// Streams of several threads, and a recording meanwhile.
TEST_P(TransducerRecognition, SameWordsAloneAndTogether) {
  constexpr size_t kStreams = 4;
  std::vector<std::vector<float>> sounds;
  std::vector<std::vector<TranscriptSegment>> alone, together(kStreams);
  for (size_t n = 0; n < kStreams; ++n) {
    sounds.push_back(noise(5, static_cast<uint32_t>(20 + n)));
    alone.push_back(stream(sounds[n], 1600));
  }
  const bool has_beam = !std::string_view(GetParam()).starts_with("conformer_ctc");
  const TranscribeOptions search{.knobs =
                                     beam_knob(has_beam ? 4 : 0)};  // which is set up on the team that the others use
  const std::string text = recogniser_->transcribe(sounds[0], {}, {})->text();
  std::vector<std::thread> speakers;
  for (size_t n = 0; n < kStreams; ++n)
    speakers.emplace_back([&, n] { together[n] = stream(sounds[n], 700 + 400 * n); });
  const std::string searched = recogniser_->transcribe(sounds[0], search, {})->text();
  EXPECT_EQ(recogniser_->transcribe(sounds[0], {}, {})->text(), text);
  for (std::thread& speaker : speakers) speaker.join();
  EXPECT_EQ(recogniser_->transcribe(sounds[0], search, {})->text(), searched);
  for (size_t n = 0; n < kStreams; ++n) {
    ASSERT_EQ(together[n].size(), alone[n].size()) << n;
    for (size_t i = 0; i < alone[n].size(); ++i) {
      EXPECT_EQ(together[n][i].tokens, alone[n][i].tokens);
      EXPECT_EQ(together[n][i].text, alone[n][i].text);
      EXPECT_EQ(together[n][i].confidence, alone[n][i].confidence);
    }
  }
}

// What an idle recogniser does for itself shows in no result.
TEST(TransducerStreams, HeartbeatsChangeNothing) {
  for (const char* name : {"hybrid_streaming.nemo", "tdt.nemo", "prompt.nemo", "conformer_ctc.nemo"}) {
    SCOPED_TRACE(name);
    const std::vector<float> sound = noise(4, 3);
    const auto heard = [&](bool heartbeat) {
      const auto recogniser = std::static_pointer_cast<TransducerRecogniser>(*load(name, "", {.heartbeat = heartbeat}));
      // One beat alone: where other work takes the cores meanwhile, the next one is due after a hundred times as long.
      const auto pause = [&] {
        for (int i = 0; heartbeat && i < 60000 && recogniser->heartbeats() == 0; ++i)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        EXPECT_EQ(recogniser->heartbeats() > 0, heartbeat);
      };
      auto stream = *recogniser->start({});
      std::vector<RecognitionEvent> events;
      for (size_t first = 0; first < sound.size(); first += 16000) {
        if (first == 16000) pause();
        EXPECT_TRUE(stream->push(std::span(sound).subspan(first, 16000), events).has_value());
      }
      EXPECT_TRUE(stream->finish(events).has_value());
      std::string text = recogniser->transcribe(sound, {}, {})->text();
      for (const RecognitionEvent& event : events) text += "|" + event.result.text;
      return text;
    };
    EXPECT_EQ(heard(true), heard(false));
  }
}

TEST(TransducerStreams, AreAtMostAsManyAsWereAskedFor) {
  for (const size_t most : {size_t{0}, size_t{1025}})
    EXPECT_EQ(load("hybrid_streaming.nemo", "", {.max_streams = most}).error().code, Code::kInvalidArgument);
  for (const char* name : {"hybrid_streaming.nemo", "tdt.nemo"}) {
    const auto recogniser = *load(name, "", {.max_streams = 2});
    auto one = recogniser->start({}), two = recogniser->start({});
    ASSERT_TRUE(one.has_value() && two.has_value());
    const auto three = recogniser->start({});
    ASSERT_FALSE(three.has_value());
    EXPECT_EQ(three.error().code, Code::kUnavailable);
    EXPECT_NE(three.error().message.find("all 2 streams"), std::string::npos) << three.error().message;
    EXPECT_NE(three.error().message.find("RecogniserOptions::max_streams"), std::string::npos);
    // What a client may ask for can be said while all are taken, and takes none.
    EXPECT_TRUE(recogniser->check_stream({}).has_value());
    EXPECT_EQ(recogniser->check_stream({.knobs = beam_knob(4)}).error().code, Code::kUnsupported);
    one->reset();
    EXPECT_TRUE(recogniser->start({}).has_value());
    // A stream that has ended takes no place, though somebody keeps it.
    one = recogniser->start({});
    ASSERT_TRUE(one.has_value());
    std::vector<RecognitionEvent> events;
    ASSERT_TRUE((*two)->push(noise(1, 2), events).has_value());
    ASSERT_TRUE((*two)->finish(events).has_value());
    EXPECT_TRUE(recogniser->start({}).has_value());
    two->reset();
    auto last = recogniser->start({});
    EXPECT_TRUE(last.has_value());
    EXPECT_FALSE(recogniser->start({}).has_value()) << "its place was given back twice";
  }
}

// What beam.h finds, as a transcript.
TEST_P(TransducerRecognition, BeamsOfRecordingsAlone) {
  const std::vector<float> sound = noise(6, 1);
  const auto tokens = [&](const TranscribeOptions& options) {
    std::vector<int32_t> out;
    const auto transcript = recogniser_->transcribe(sound, options, {});
    EXPECT_TRUE(transcript.has_value()) << transcript.error().message;
    for (const TranscriptSegment& segment : transcript->segments) {
      out.insert(out.end(), segment.tokens.begin(), segment.tokens.end());
      EXPECT_GT(segment.confidence, 0.0f);
      EXPECT_LE(segment.confidence, 1.0f);
    }
    return out;
  };
  EXPECT_EQ(recogniser_->start({.knobs = beam_knob(4)}).error().code, Code::kUnsupported);
  EXPECT_EQ(recogniser_->transcribe(sound, {.knobs = beam_knob(-1)}, {}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(tokens({.knobs = beam_knob(1)}), tokens({}));
  EXPECT_EQ(recogniser_->transcribe(sound, {.knobs = beam_knob(17)}, {}).error().code, Code::kInvalidArgument);
  if (std::string_view(GetParam()).starts_with("conformer_ctc")) {
    EXPECT_EQ(recogniser_->transcribe(sound, {.knobs = beam_knob(4)}, {}).error().code, Code::kUnsupported);
    return;
  }
  EXPECT_EQ(recogniser_->transcribe(sound, {.knobs = {{"boost", std::vector<std::string>{"a"}}, {"beam", 4.0}}}, {})
                .error()
                .code,
            Code::kUnsupported);

  const auto model = *transducer::Model::load(std::string(SYRINX_TEST_DATA) + "/transducer/" + GetParam());
  ThreadTeam team(1);
  nn::Runner runner(team);
  SoundRoom room;
  transducer::Encoder encoder(model->encoder(), runner);
  const auto decoder = transducer::BeamDecoder::make(model->decoder(), runner, {.beam = 4});
  ASSERT_TRUE(decoder.has_value()) << decoder.error().message;
  std::vector<int32_t> expected;
  const auto kept = (*decoder)->decode(encode_sound(*model, sound, room, encoder, runner));
  for (const transducer::Emission& emission : kept.front().emissions)
    if (!model->vocabulary().is_special(emission.label)) expected.push_back(emission.label);
  EXPECT_EQ(tokens({.knobs = beam_knob(4)}), expected);
  EXPECT_NE(expected, tokens({}));

  // Searches and greedy decodings of several threads do not meet in the scratch memory; the thread sanitizer looks on.
  std::vector<int32_t> searched, plain;
  const std::vector<int32_t> greedy = tokens({});
  std::thread other([&] { searched = tokens({.knobs = beam_knob(4)}); });
  plain = tokens({});
  other.join();
  EXPECT_EQ(searched, expected);
  EXPECT_EQ(plain, greedy);
}

TEST_P(TransducerRecognition, CommittedSegmentsEndAndTheStreamGoesOn) {
  const std::vector<float> sound = noise(12, 5);
  auto stream = *recogniser_->start({});
  std::vector<RecognitionEvent> events;
  const std::span<const float> all = sound;
  ASSERT_TRUE(stream->push(all.first(100000), events).has_value());
  ASSERT_TRUE(stream->commit(events).has_value());
  ASSERT_FALSE(events.empty());
  EXPECT_TRUE(events.back().is_final);
  EXPECT_EQ(events.back().reason, EndpointReason::kCommit);
  const uint64_t first = events.back().segment;
  EXPECT_GT(events.back().result.end_s, 100000.0 / kRecognitionRateHz - 1.0) << "its last words are missing";
  ASSERT_TRUE(stream->push(all.subspan(100000), events).has_value());
  ASSERT_TRUE(stream->finish(events).has_value());
  EXPECT_TRUE(events.back().is_final);
  EXPECT_TRUE(events.back().reason.has_value());
  EXPECT_GT(events.back().segment, first);
}

// Of chunks and of windows: once their sound came when the machine began, and once it comes in an hour.
TEST_P(TransducerRecognition, StepsAreThoseOfStreams) {
  constexpr int64_t kSecond = 1'000'000'000;
  const std::vector<float> sound = noise(7, 1);
  ASSERT_TRUE(recogniser_->transcribe(sound, {}, {}).has_value());
  EXPECT_EQ(recogniser_->steps().count(), 0u);
  std::vector<RecognitionEvent> events;
  for (const int64_t came_ns : {int64_t{1}, system_clock().now_ns() + 3600 * kSecond}) {
    auto stream = recogniser_->start({});
    ASSERT_TRUE(stream.has_value());
    (*stream)->sound_came(came_ns);
    ASSERT_TRUE((*stream)->push(sound, events).has_value());
  }
  const StepFigures steps = recogniser_->steps();
  EXPECT_GT(steps.late, 0u);
  EXPECT_EQ(steps.count(), 2 * steps.late);
  EXPECT_GT(steps.took_ns, 0);
  EXPECT_EQ(recogniser_->waiting(), 0u);
}

// The second of two recordings waits while the first one has its turn, and leaves.
TEST_P(TransducerRecognition, LeavingCallerIsNotTranscribed) {
  const std::vector<float> sound = noise(2, 1);
  std::atomic<bool> has_turn{false}, holds{true}, wanted{true};
  const auto refused = [&](std::function<bool()> is_wanted) {
    const auto nobody = [](double) {
      ADD_FAILURE() << "it was heard";
      return true;
    };
    const auto left = recogniser_->transcribe(sound, {.is_wanted = std::move(is_wanted)}, nobody);
    ASSERT_FALSE(left.has_value());
    EXPECT_EQ(left.error().code, Code::kCancelled);
  };
  std::thread first([&] {
    const auto hold = [&] {  // asked first when it has its turn, as nobody is before it
      has_turn = true;
      while (holds) std::this_thread::yield();
      return true;
    };
    EXPECT_TRUE(recogniser_->transcribe(sound, {.is_wanted = hold}, {}).has_value());
  });
  while (!has_turn) std::this_thread::yield();
  std::thread second([&] { refused([&] { return wanted.load(); }); });
  while (recogniser_->waiting() == 0) std::this_thread::yield();
  wanted = false;
  second.join();
  EXPECT_EQ(recogniser_->waiting(), 0u);
  holds = false;
  first.join();
  refused([] { return false; });
}

TEST_P(TransducerRecognition, VoiceActivitySelectsTheAudio) {
  std::vector<float> sound = noise(8, 7);
  std::fill(sound.begin() + 48000, sound.begin() + 96000, 0.0f);
  const auto text = [&](const TranscribeOptions& options) {
    const auto transcript = recogniser_->transcribe(sound, options, {});
    EXPECT_TRUE(transcript.has_value()) << transcript.error().message;
    return transcript->text();
  };
  const std::string all = text({});
  EXPECT_EQ(recogniser_->transcribe(sound, {.voice = {.threshold = 0.4}}, {}).error().code, Code::kNotFound);
  EXPECT_EQ(recogniser_->start({.voice = {.threshold = 0.4}}).error().code, Code::kNotFound);

  const TempFolder folder;
  hear_with(write_noise_detector(folder.file("voice.bin")));
  EXPECT_EQ(text({.voice_activity = false}), all);
  EXPECT_EQ(text({.voice = {.min_silence_ms = 5000}}), all) << "the silence is shorter than that";
  EXPECT_NE(text({}), all);
  EXPECT_NE(text({.voice = {.speech_pad_ms = 0}}), text({}));
  EXPECT_EQ(text({.voice = {.min_speech_ms = 6000}}), "");
  EXPECT_EQ(recogniser_->transcribe(sound, {.voice = {.threshold = 2}}, {}).error().code, Code::kInvalidArgument);
}

TEST_P(TransducerRecognition, EndpointsOfAStream) {
  const std::vector<float> sound = noise(12, 10);
  const TranscribeOptions short_ones{.endpoints = {.silence_after_speech_s = 100, .max_utterance_s = 3}};
  const TranscribeOptions quick{.endpoints = {.silence_after_speech_s = 0.3, .max_utterance_s = 100}};
  const std::vector<TranscriptSegment> by_length = stream(sound, 4000, short_ones);
  EXPECT_EQ(by_length.size(), 4u) << "of 3 s each";
  for (const TranscriptSegment& segment : by_length) EXPECT_LT(segment.end_s - segment.start_s, 4.1);
  // Of these two models the words lie apart.
  const bool pauses =
      std::string_view(GetParam()).starts_with("tdt") || std::string_view(GetParam()).starts_with("hyb");
  const size_t by_silence = stream(sound, 4000, quick).size();
  if (pauses)
    EXPECT_GE(by_silence, 5u);
  else
    EXPECT_EQ(by_silence, 1u) << "cut where no word is away from the next";
  for (const double refused : {0.0, 3601.0, EndpointOptions::kNever})
    EXPECT_EQ(recogniser_->start({.endpoints = {.max_utterance_s = refused}}).error().code, Code::kInvalidArgument);
  EXPECT_TRUE(recogniser_->start({.endpoints = {.max_utterance_s = 3600}}).has_value());

  // What is voice throughout does not end, whatever the silence between its words; and that in any chunks.
  const TempFolder folder;
  hear_with(write_noise_detector(folder.file("voice.bin")));
  const std::vector<TranscriptSegment> held = stream(sound, sound.size(), quick);
  EXPECT_EQ(held.size(), 1u);
  for (const size_t size : {160, 997, 40000}) {
    const std::vector<TranscriptSegment> parts = stream(sound, size, quick);
    ASSERT_EQ(parts.size(), held.size());
    for (size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(parts[i].tokens, held[i].tokens);
  }
}

TEST(VoiceTracks, TellVoiceUpToWhereTheyAreAsked) {
  const TempFolder folder;
  const auto gate = SpeechGate::load(write_noise_detector(folder.file("voice.bin")));
  ASSERT_TRUE(gate.has_value()) << gate.error().message;
  std::vector<float> sound = noise(4, 11);
  std::fill(sound.begin(), sound.begin() + 16384, 0.0f);
  std::fill(sound.begin() + 32768, sound.begin() + 49152, 0.0f);
  const auto answers = [&](size_t size) {
    VoiceTrack track(gate->vad(), {.min_speech_ms = 0});
    std::vector<double> out;
    size_t pushed = 0;
    for (size_t until = 0; until <= sound.size(); until += 1280) {
      for (; pushed < until; pushed += std::min(size, sound.size() - pushed))
        track.push(std::span(sound).subspan(pushed, std::min(size, sound.size() - pushed)));
      out.push_back(track.last_voice_s(static_cast<double>(until) / kRecognitionRateHz));
    }
    return out;
  };
  const std::vector<double> all = answers(sound.size());
  EXPECT_TRUE(std::ranges::is_sorted(all));
  EXPECT_LT(all[12], 0.3) << "silence, but for the first windows";
  EXPECT_NEAR(all[20], 20 * 0.08, 0.04) << "voice to where it was asked";
  EXPECT_NEAR(all[38], 32768.0 / kRecognitionRateHz, 0.04) << "silence again";
  EXPECT_NEAR(all[50], 4.0, 0.04);
  for (const size_t size : {100, 512, 1000, 20000}) EXPECT_EQ(answers(size), all) << size;
}

TEST_P(TransducerRecognition, RefusesUnsupportedOptions) {
  const std::vector<float> sound = noise(1, 6);
  EXPECT_EQ(recogniser_->transcribe(sound, {.knobs = {{"translate", 1.0}}}, {}).error().code, Code::kUnsupported);
  EXPECT_EQ(recogniser_->transcribe(sound, {.language = "de"}, {}).error().code, Code::kUnsupported);
  EXPECT_EQ(recogniser_->start({.knobs = {{"translate", 1.0}}}).error().code, Code::kUnsupported);
  EXPECT_FALSE(
      recogniser_->transcribe(sound, {.knobs = {{"boost", std::vector<std::string>{"\u4E16"}}}}, {}).has_value());
  EXPECT_EQ(recogniser_->transcribe(sound, {}, [](double) { return false; }).error().code, Code::kCancelled);
}

TEST(TransducerBoost, TooManyPhrasesAreRefusedBeforeTheyAreSpelled) {
  const auto recogniser = *load("rnnt.nemo");
  const std::vector<float> sound = noise(1, 6);
  const std::vector<std::string> phrases(1001, "\u4E16");
  EXPECT_EQ(recogniser->transcribe(sound, {.knobs = {{"boost", phrases}}}, {}).error().code, Code::kLimitExceeded);
}

TEST(QuietPieces, EndWhereItIsQuiet) {
  std::vector<float> sound = noise(10, 7);
  std::fill(sound.begin() + 60000, sound.begin() + 62000, 0.001f);
  const auto pieces = quiet_pieces(sound, 64000);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_NEAR(static_cast<double>(pieces[0].spans[0].end), 61000, 1000);
  uint64_t at = 0;
  for (const SpeechPiece& piece : pieces) {
    EXPECT_EQ(piece.spans[0].begin, at);
    EXPECT_LE(piece.samples(), 64000u);
    at = piece.spans[0].end;
  }
  EXPECT_EQ(at, sound.size());
  EXPECT_TRUE(quiet_pieces({}, 64000).empty());
  EXPECT_EQ(quiet_pieces(std::span<const float>(sound).first(64000), 64000).size(), 1u);
}

}  // namespace
}  // namespace syrinx
