#include "bench/suite/qwen_measure.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/memory.h"
#include "base/signals.h"
#include "base/thread_team.h"
#include "bench/suite/bytes_a_weight.h"
#include "bench/suite/peak_sample.h"
#include "engine/families/families.h"
#include "engine/families/find_speech_files.h"
#include "engine/families/qwen_tts/qwen_engine.h"
#include "engine/families/qwen_tts/qwen_voices.h"
#include "engine/threads.h"
#include "models/qwen_tts/codec_decoder.h"
#include "models/qwen_tts/frame_generator.h"
#include "nn/runner.h"

namespace syrinx::bench {
namespace {

constexpr float kAudible = 0.01f;    // of full scale
constexpr size_t kUncounted = 5;     // frames of the stages
constexpr size_t kLongPrompt = 6;    // times the longest text: about 700 tokens
constexpr size_t kTwinFrames = 360;  // before the twins' one: those of the longest text
constexpr double kFrameSeconds = 0.08;
constexpr double kFrameSamples = kFrameSeconds * QwenModel::kSampleRateHz;
constexpr double kMostLonger = 8;   // times the seconds of streams that are too short
constexpr size_t kLeastChunks = 5;  // that are counted

tl::unexpected<Error> stopped() { return fail(Code::kCancelled, "stopped while measuring; no figure is complete"); }

// One text.
struct Spoken {
  double wall_ms = 0, playable_ms = 0;
  std::optional<double> audible_ms;
  std::vector<ChunkArrival> chunks;
  SpeechStatistics statistics;
};

// Pieces of so many seconds, rounded to frames.
SpeakOptions options_for(const QwenWork& work, double piece_seconds, uint64_t seed) {
  SpeakOptions options;
  options.voice = work.voice;
  options.seed = seed;
  options.knobs.set("max_seconds", std::clamp(std::round(piece_seconds / kFrameSeconds), 1.0, 7500.0) * kFrameSeconds);
  return options;
}

// Times by the watch.
Result<Spoken> speak(SpeechSession& session, const char* text, const Stopwatch& watch) {
  Spoken spoken;
  SYRINX_TRY_VOID(session.speak(text));
  std::optional<double> loud_ms;  // from the first sample on
  double frames = 0;
  for (SpeechChunk chunk;;) {
    SYRINX_TRY(const bool more, session.next(chunk));
    const double now_ms = watch.elapsed_ms(), start_ms = 1e3 * chunk.start_s;
    if (!more) break;
    if (cancel_requested()) return stopped();
    frames += static_cast<double>(chunk.samples.size()) / kFrameSamples;
    spoken.chunks.push_back({.ms = now_ms, .frames = frames});
    spoken.playable_ms = std::max(spoken.playable_ms, now_ms - start_ms);
    if (loud_ms) continue;
    const auto loud = std::ranges::find_if(chunk.samples, [](float sample) { return std::fabs(sample) >= kAudible; });
    if (loud == chunk.samples.end()) continue;
    loud_ms = start_ms + 1e3 * static_cast<double>(loud - chunk.samples.begin()) / QwenModel::kSampleRateHz;
  }
  if (loud_ms) spoken.audible_ms = spoken.playable_ms + *loud_ms;
  spoken.wall_ms = watch.elapsed_ms();
  spoken.statistics = session.statistics();
  return spoken;
}

Result<Spoken> speak_alone(QwenEngine& engine, const char* text, const SpeakOptions& options) {
  SYRINX_TRY(const auto session, engine.start(options));
  return speak(*session, text, Stopwatch());
}

double ms(int64_t ns) { return static_cast<double>(ns) * 1e-6; }

Result<QwenTextFigures> measure_text(QwenEngine& engine, const QwenWork& work, const SpokenText& text) {
  QwenTextFigures figures;
  figures.text = text;
  SYRINX_TRY(const Spoken probe, speak_alone(engine, text.text, options_for(work, kFrameSeconds, 0)));
  figures.pieces = std::max<size_t>(probe.statistics.pieces, 1);
  const double piece_seconds =
      work.word_seconds * static_cast<double>(text.words) / static_cast<double>(figures.pieces);
  for (size_t run = 0; run < work.runs; ++run) {
    const qwen_tts::FramePool::Times before = engine.times();
    SYRINX_TRY(const Spoken spoken, speak_alone(engine, text.text, options_for(work, piece_seconds, run)));
    const qwen_tts::FramePool::Times& after = engine.times();
    figures.wall.add(spoken.wall_ms);
    if (!spoken.chunks.empty()) figures.first_byte.add(spoken.chunks.front().ms);
    figures.playable.add(spoken.playable_ms);
    if (spoken.audible_ms) figures.audible.add(*spoken.audible_ms);
    figures.prefill.add(ms(after.prompts_ns - before.prompts_ns));
    figures.generate.add(ms(after.frames_ns - before.frames_ns));
    figures.decode.add(ms(after.codec_ns - before.codec_ns));
    figures.audio_seconds += spoken.statistics.audio_seconds / static_cast<double>(work.runs);
    figures.frames += static_cast<double>(after.decoded - before.decoded) / static_cast<double>(work.runs);
  }
  figures.rss_bytes = current_rss_bytes();
  for (Times* const times : {&figures.wall, &figures.first_byte, &figures.playable, &figures.audible, &figures.prefill,
                             &figures.generate, &figures.decode})
    times->sort();
  return figures;
}

// Sessions of so many threads that begin together; nothing where they end too soon.
Result<std::optional<double>> step_of(QwenEngine& engine, const QwenWork& work, size_t streams, double seconds,
                                      size_t run) {
  std::vector<std::unique_ptr<SpeechSession>> sessions;
  for (size_t n = 0; n < streams; ++n) {
    SYRINX_TRY(auto session, engine.start(options_for(work, seconds, run * streams + n)));
    sessions.push_back(std::move(session));
  }
  std::vector<Status> failures(streams);
  std::vector<std::vector<ChunkArrival>> chunks(streams);
  const Stopwatch watch;
  {
    std::vector<std::jthread> threads;
    for (size_t n = 0; n < streams; ++n)
      threads.emplace_back([&, n] {
        Result<Spoken> spoken = speak(*sessions[n], kSpokenTexts.front().text, watch);
        if (spoken)
          chunks[n] = std::move(spoken->chunks);
        else
          failures[n] = tl::unexpected(spoken.error());
      });
  }
  for (Status& failure : failures) SYRINX_TRY_VOID(std::move(failure));
  return steady_step_ms(chunks);
}

// Sessions that end before all of them have spoken for a while get more time.
Result<QwenStreamsFigures> measure_streams(QwenEngine& engine, const QwenWork& work, size_t streams) {
  QwenStreamsFigures figures{.streams = streams, .step = {}};
  for (size_t run = 0; run < work.runs; ++run) {
    std::optional<double> step_ms;
    for (double times = 1; !step_ms && times <= kMostLonger; times *= 2) {
      SYRINX_TRY(step_ms, step_of(engine, work, streams, times * work.stream_seconds, run));
    }
    if (step_ms) figures.step.add(*step_ms);
  }
  figures.step.sort();
  return figures;
}

Result<SpeechFiles> find_files(const QwenWork& work) {
  SYRINX_TRY(SpeechFiles files, find_speech_files(work.checkpoint, work.models_folder));
  if (files.family == find_speech_family("qwen-tts")) return files;
  return fail(Code::kUnsupported, "'{}' is no checkpoint of Qwen3-TTS; give the folder of one with --model",
              work.checkpoint);
}

Status measure_engine(const QwenWork& work, const SpeechFiles& files, QwenFigures& figures) {
  SpeechEngineOptions options;
  options.files = files;
  options.precision = work.precision;
  options.threads = work.threads;
  options.cache_folder = work.cache_folder;
  options.first_voice = work.voice;
  options.compute = std::make_shared<Compute>();
  SYRINX_TRY(const std::shared_ptr<SpeechEngine> loaded, QwenEngine::load(std::move(options)));
  auto& engine = static_cast<QwenEngine&>(*loaded);
  figures.load_ms = engine.load_ms();
  for (const SpokenText& text : work.texts) {
    SYRINX_TRY(QwenTextFigures each, measure_text(engine, work, text));
    figures.texts.push_back(std::move(each));
  }
  figures.peak_rss_bytes = peak_rss_bytes();
  for (const size_t streams : work.streams) {
    SYRINX_TRY(QwenStreamsFigures each, measure_streams(engine, work, streams));
    figures.streams.push_back(std::move(each));
  }
  figures.streams_rss_bytes = peak_rss_bytes();
  return {};
}

// Stages of one loaded model.
class Stages {
 public:
  Stages(std::shared_ptr<const QwenModel> model, const QwenWork& work, ThreadTeam& team)
      : model_(std::move(model)), work_(work), runner_(team), settings_{.draws = model_->generation()} {
    settings_.draws.max_frames = work_.frames + kUncounted + work_.rests * (1 + kRestNextFrames);
  }

  // A text so many times.
  Result<qwen_tts::Prompt> prompt(size_t times, bool text_first) const;
  qwen_tts::SpeechSettings settings() const { return settings_; }
  Status measure(std::string name, qwen_tts::Prompt prompt, const qwen_tts::SpeechSettings& settings,
                 QwenFigures& figures);
  // The codes of the last frames, again and again, so many at a time.
  Status measure_chunk(size_t chunk, QwenFigures& figures);

 private:
  const std::shared_ptr<const QwenModel> model_;
  const QwenWork& work_;
  nn::Runner runner_;
  qwen_tts::SpeechSettings settings_;
  std::vector<int32_t> codes_;  // [frames, codebooks]
};

Result<qwen_tts::Prompt> Stages::prompt(size_t times, bool text_first) const {
  const qwen_tts::Config& config = model_->config();
  std::string text;
  for (size_t i = 0; i < times; ++i) text += kSpokenTexts[times > 1 ? 2 : 0].text + std::string(" ");
  SYRINX_TRY(const std::vector<int32_t> ids, model_->tokenizer().encode(text));
  const std::vector<float> voice(config.kind == qwen_tts::Kind::kBase ? config.talker.width : 0, 0.02f);
  std::string speaker;
  if (config.kind == qwen_tts::Kind::kCustomVoice) speaker = default_qwen_voice(config, model_->checkpoint().folder());
  return qwen_tts::make_prompt(
      config,
      {.role = model_->tokenizer().role(), .text = ids, .speaker = speaker, .voice = voice, .text_first = text_first});
}

// A stream of one's own, whose codec gets each frame by itself.
class FrameRun {
 public:
  FrameRun(const QwenModel& model, nn::Runner& runner, std::unique_ptr<qwen_tts::FrameGenerator> generator,
           qwen_tts::FrameStream stream)
      : generator_(std::move(generator)),
        stream_(std::move(stream)),
        decoder_(model.codec(), runner),
        state_(decoder_.make_state()),
        samples_(decoder_.config().frame_samples()) {
    generator_->set_probe([this](std::string_view stage, View<const float, 2>) {
      if (stage == "scores") talker_ms_ = watch_.elapsed_ms();
    });
  }
  // Milliseconds that the prompt took.
  Result<double> begin(qwen_tts::Prompt prompt, const qwen_tts::SpeechSettings& settings) {
    const Stopwatch watch;
    SYRINX_TRY_VOID(generator_->begin(stream_, std::move(prompt), settings));
    while (!generator_->read_prompt(stream_)) continue;
    return watch.elapsed_ms();
  }
  Result<std::optional<QwenFrameTimes>> next(const std::string& checkpoint) {
    if (cancel_requested()) return stopped();
    qwen_tts::FrameStream* const pointer = &stream_;
    if (stream_.end() != qwen_tts::End::kNone) return std::nullopt;
    watch_.restart();
    generator_->step({&pointer, 1});
    const double made_ms = watch_.elapsed_ms();
    if (stream_.end() == qwen_tts::End::kFault)
      return fail(Code::kDataLoss, "'{}' computes values that are not numbers; its weights are damaged", checkpoint);
    if (stream_.end() != qwen_tts::End::kNone) return std::nullopt;
    decoder_.decode(state_, {codes().data(), {1, codes().size()}}, samples_);
    return QwenFrameTimes{
        .talker_ms = talker_ms_, .predictor_ms = made_ms - talker_ms_, .codec_ms = watch_.elapsed_ms() - made_ms};
  }
  std::span<const int32_t> codes() const { return stream_.codes(); }
  std::span<const float> samples() const { return samples_; }

 private:
  const std::unique_ptr<qwen_tts::FrameGenerator> generator_;
  qwen_tts::FrameStream stream_;
  qwen_tts::CodecDecoder decoder_;
  qwen_tts::CodecDecoderState state_;
  std::vector<float> samples_;
  Stopwatch watch_;
  double talker_ms_ = 0;
};

Status Stages::measure(std::string name, qwen_tts::Prompt prompt, const qwen_tts::SpeechSettings& settings,
                       QwenFigures& figures) {
  SYRINX_TRY(auto generator, qwen_tts::FrameGenerator::make(model_->weights(), runner_));
  SYRINX_TRY(auto stream, generator->make_stream(generator->positions_for(prompt, settings)));
  FrameRun run(*model_, runner_, std::move(generator), std::move(stream));
  QwenStages stages;
  stages.name = std::move(name);
  stages.positions = prompt.positions.size();
  SYRINX_TRY(const double prompt_ms, run.begin(std::move(prompt), settings));
  stages.prompt.add(prompt_ms);
  codes_.clear();
  for (size_t frame = 0; frame < work_.frames + kUncounted; ++frame) {
    SYRINX_TRY(const std::optional<QwenFrameTimes> made, run.next(work_.checkpoint));
    if (!made) break;
    note_peak(run.samples(), figures.peak_sample);
    codes_.insert(codes_.end(), run.codes().begin(), run.codes().end());
    if (frame < kUncounted) continue;
    stages.talker.add(made->talker_ms);
    stages.predictor.add(made->predictor_ms);
    stages.codec.add(made->codec_ms);
    stages.frame.add(made->sum());
  }
  if (stages.frame.empty())
    return fail(Code::kUnsupported, "the checkpoint ends a text after fewer than {} frames; its stages cannot be timed",
                kUncounted + 1);
  for (Times* const times : {&stages.talker, &stages.predictor, &stages.codec, &stages.frame}) times->sort();
  if (work_.idle_seconds > 0 && figures.stages.empty()) {
    SYRINX_TRY(figures.rests, measure_rests(runner_.team(), work_.rests, work_.idle_seconds,
                                            [&] { return run.next(work_.checkpoint); }));
  }
  figures.stages.push_back(std::move(stages));
  return {};
}

Status Stages::measure_chunk(size_t chunk, QwenFigures& figures) {
  qwen_tts::CodecDecoder decoder(model_->codec(), runner_, 1, chunk);
  qwen_tts::CodecDecoderState state = decoder.make_state();
  const size_t codebooks = model_->config().codebooks, frames = codes_.size() / codebooks;
  std::vector<float> samples(chunk * decoder.config().frame_samples());
  QwenChunkFigures each{.frames = chunk, .codec = {}};
  std::vector<int32_t> codes(chunk * codebooks);
  for (size_t pass = 0; pass <= std::max(frames / chunk, kLeastChunks); ++pass) {
    if (cancel_requested()) return stopped();
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = codes_[(pass * codes.size() + i) % codes_.size()];
    const Stopwatch watch;
    decoder.decode(state, {codes.data(), {chunk, codebooks}}, samples);
    if (pass > 0) each.codec.add(watch.elapsed_ms() / static_cast<double>(chunk));
  }
  each.codec.sort();
  figures.chunks.push_back(std::move(each));
  return {};
}

bool is_chosen(const QwenWork& work, const char* ablation) {
  return std::ranges::find(work.ablations, ablation) != work.ablations.end();
}

// The same precision with something else changed.
Status measure_ablations(Stages& stages, const QwenWork& work, ThreadTeam& team, QwenFigures& figures) {
  qwen_tts::SpeechSettings likeliest = stages.settings(), without_penalty = stages.settings();
  likeliest.draws.talker.samples = likeliest.draws.predictor.samples = false;
  without_penalty.draws.penalty = 1.0f;
  const struct {
    const char *ablation, *name;
    size_t texts;
    bool text_first;
    qwen_tts::SpeechSettings settings;
  } rows[] = {{"draws", "the likeliest codes, no draws", 1, true, likeliest},
              {"penalty", "no penalty", 1, true, without_penalty},
              {"text", "text beside the sound", 1, false, stages.settings()},
              {"prompt", "a long prompt", kLongPrompt, true, stages.settings()}};
  for (const auto& row : rows) {
    if (!is_chosen(work, row.ablation)) continue;
    SYRINX_TRY(qwen_tts::Prompt prompt, stages.prompt(row.texts, row.text_first));
    SYRINX_TRY_VOID(stages.measure(row.name, std::move(prompt), row.settings, figures));
  }
  if (is_chosen(work, "twins"))
    figures.twins = measure_qwen_twins(figures.config, stages.settings().draws, kTwinFrames, team);
  return {};
}

Status measure_stages(const QwenWork& work, const SpeechFiles& files, QwenFigures& figures) {
  ThreadTeam packers(default_threads());
  ThreadTeam team(work.threads);
  const auto of_precision = [&](Precision precision, const std::string& cache, bool is_first) -> Status {
    SYRINX_TRY(const auto model,
               QwenModel::load(files.checkpoint, {.precision = precision, .cache_folder = cache, .team = &packers}));
    Stages stages(model, work, team);
    SYRINX_TRY(qwen_tts::Prompt prompt, stages.prompt(1, true));
    SYRINX_TRY_VOID(stages.measure(precision_name(precision), std::move(prompt), stages.settings(), figures));
    if (!is_first) return {};
    figures.config = model->config();
    figures.codec = model->codec()->config;
    figures.codec_reads_bf16 = qwen_tts::reads_bf16(*model->codec());
    figures.codec_reads_int16 = qwen_tts::reads_int16(*model->codec());
    for (const size_t chunk : {1, 2, 4, 8}) SYRINX_TRY_VOID(stages.measure_chunk(chunk, figures));
    return measure_ablations(stages, work, team, figures);
  };
  SYRINX_TRY_VOID(of_precision(work.precision, work.cache_folder, true));
  for (const Precision precision : kAllPrecisions)
    if (precision != work.precision && is_chosen(work, precision_name(precision)))
      SYRINX_TRY_VOID(of_precision(precision, "", false));
  return {};
}

double stack_weights(const qwen_tts::TransformerConfig& t) {
  const size_t queries = t.heads * t.head_size, keys = t.key_heads * t.head_size;
  return static_cast<double>(t.layers * t.width * (2 * queries + 2 * keys + 3 * t.hidden));
}

}  // namespace

Result<QwenFigures> measure_qwen(const QwenWork& work) {
  QwenFigures figures;
  SYRINX_TRY(const SpeechFiles files, find_files(work));
  SYRINX_TRY_VOID(measure_engine(work, files, figures));
  if (work.frames > 0) SYRINX_TRY_VOID(measure_stages(work, files, figures));
  return figures;
}

std::optional<double> steady_step_ms(std::span<const std::vector<ChunkArrival>> streams) {
  double from_ms = 0, to_ms = std::numeric_limits<double>::infinity();
  for (const std::vector<ChunkArrival>& chunks : streams) {
    if (chunks.empty()) return std::nullopt;
    from_ms = std::max(from_ms, chunks.front().ms);
    to_ms = std::min(to_ms, chunks.back().ms);
  }
  double ms = 0, frames = 0;
  for (const std::vector<ChunkArrival>& chunks : streams) {
    const auto first = std::ranges::find_if(chunks, [&](const ChunkArrival& chunk) { return chunk.ms >= from_ms; });
    const auto behind = std::find_if(first, chunks.end(), [&](const ChunkArrival& chunk) { return chunk.ms > to_ms; });
    if (behind - first < 2) return std::nullopt;
    ms += (behind - 1)->ms - first->ms;
    frames += (behind - 1)->frames - first->frames;
  }
  return ms / frames;
}

QwenFrameCost qwen_frame_cost(const qwen_tts::Config& config, const qwen_tts::CodecDecoderConfig& codec,
                              Precision precision) {
  const auto product = [](auto... sizes) { return (static_cast<double>(sizes) * ...); };
  const size_t passes = config.codebooks - 1, predictor = config.predictor.width;
  double pass = stack_weights(config.predictor) + product(config.predictor_codes, predictor);
  if (config.projects_predictor()) pass += product(config.talker.width, predictor);
  const double narrow = bytes_a_weight(precision == Precision::kInt4 ? Precision::kInt8 : precision);  // weights.h
  QwenFrameCost cost;
  cost.weight_bytes = bytes_a_weight(precision) * stack_weights(config.talker) +
                      narrow * (product(config.vocabulary, config.talker.width) + static_cast<double>(passes) * pass);
  const qwen_tts::CodecTransformer& t = codec.transformer;
  const size_t queries = t.heads * t.head_size, keys = t.key_heads * t.head_size;
  double macs = product(3, codec.codebook_dim, codec.latent) + product(2, codec.latent, t.width) +
                product(t.layers, t.width, 2 * queries + 2 * keys + 3 * t.hidden);
  size_t rows = 1, channels = codec.width;
  for (const size_t ratio : codec.ratios) {
    macs += product(rows, ratio, codec.latent, codec.latent);
    rows *= ratio;
    macs += product(rows, codec.latent, 8 * codec.latent + 7);
  }
  macs += product(rows, 7, codec.latent, channels);
  for (const size_t rate : codec.rates) {
    macs += product(rows, channels, channels / 2, 2 * rate);
    rows *= rate;
    channels /= 2;
    macs += product(3 * rows, 8, channels, channels);
  }
  cost.codec_flop = 2 * (macs + product(rows, 7, channels));
  return cost;
}

QwenFrameFloor qwen_frame_floor(const QwenFrameCost& cost, const kernels::MachineLimits& limits) {
  const double read_ms = cost.weight_bytes / (limits.read_gb_per_s.all_threads * 1e6);
  const double f32 = limits.f32_gop_per_s.all_threads, bf16 = limits.bf16_gop_per_s.all_threads;
  const double int16 = limits.int8_dot_gop_per_s.all_threads / 2;
  return {.codec_f32_ms = read_ms + cost.codec_flop / (f32 * 1e6),
          .codec_bf16_ms = bf16 > 0 ? read_ms + cost.codec_flop / (bf16 * 1e6) : 0,
          .codec_int16_ms = int16 > 0 ? read_ms + cost.codec_flop / (int16 * 1e6) : 0};
}

}  // namespace syrinx::bench
