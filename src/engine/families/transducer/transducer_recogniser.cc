#include "engine/families/transducer/transducer_recogniser.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "audio/loudest_sample.h"
#include "base/clock.h"
#include "base/in_quotes.h"
#include "engine/families/transducer/transducer_family.h"
#include "engine/families/transducer/transducer_faults.h"
#include "engine/families/transducer/transducer_stream.h"
#include "engine/families/transducer/transducer_transcript.h"
#include "engine/recognition/piece_times.h"
#include "engine/threads.h"
#include "models/transducer/phrase_labels.h"
#include "text/language.h"

namespace syrinx {
namespace {

using transducer::Emission;

constexpr size_t kBlockFrames = 256;  // that the decoder reads at once: 20 s
constexpr size_t kMostStreams = 1024;
constexpr double kBoostBase = 1.0;  // of a phrase's first label; the score that is asked for multiplies it

constexpr transducer::GreedyOptions kGreedy = {.confidence = {.measure = transducer::ConfidenceMeasure::kTsallisExp}};

std::vector<float> bounded(std::span<const float> samples) {
  std::vector<float> out(samples.size());
  std::ranges::transform(samples, out.begin(), bounded_sample);
  return out;
}

// For sound without voice activity of 20 s or less the model hears it all, as it does in the maker's tools.
GateOptions gate_options() {
  GateOptions options;
  options.max_piece_s = 60;
  options.segments.max_speech_s = 60;
  return options;
}

transducer::LoadOptions load_options(const RecogniserOptions& options, const TransducerChoices& choices,
                                     ThreadTeam& packers) {
  transducer::LoadOptions out{.precision = options.precision.value_or(TransducerRecogniser::kDefaultPrecision),
                              .cache_folder = options.cache_folder,
                              .team = &packers};
  if (choices.head) out.head = *choices.head;
  return out;
}

// Hypotheses of a beam search; 0 and 1: greedy.
size_t beam_of(const TranscribeOptions& options) {
  return static_cast<size_t>(options.knobs.number("beam").value_or(0));
}

// The context of a cache-aware model's streams; nothing for one whose streams are heard in windows.
Result<std::optional<transducer::AttentionContext>> stream_context(const transducer::Model& model,
                                                                   const std::string& name,
                                                                   const TransducerChoices& choices) {
  if (ChunkedFrames::fits(model)) {
    if (choices.window)
      return fail(Code::kUnsupported, "'{}' hears a stream chunk by chunk and not in windows; choose its look-ahead",
                  name);
    SYRINX_TRY(const auto context, transducer::choose_context(model.config().encoder, choices.look_ahead));
    return context;
  }
  if (choices.look_ahead)
    return fail(Code::kUnsupported,
                "'{}' was trained on whole recordings and has no look-ahead; choose the windows of its streams", name);
  SYRINX_TRY_VOID(
      WindowedFrames::check(model.config(), choices.window.value_or(WindowedFrames::usual(model.config()))));
  return std::nullopt;
}

}  // namespace

Result<std::shared_ptr<Recogniser>> TransducerRecogniser::load(RecogniserOptions options) {
  const Stopwatch watch;
  if (options.max_streams < 1 || options.max_streams > kMostStreams)
    return fail(Code::kInvalidArgument, "{} streams at once; ask for 1 to {}", options.max_streams, kMostStreams);
  SYRINX_TRY(const TransducerChoices choices, transducer_choices(options.knobs));
  ThreadTeam packers(default_threads());
  SYRINX_TRY(std::shared_ptr<const transducer::Model> model,
             transducer::Model::load(options.files.checkpoint, load_options(options, choices, packers)));
  std::optional<SpeechGate> gate;
  if (!options.files.voice_activity.empty()) {
    SYRINX_TRY(gate, SpeechGate::load(options.files.voice_activity, gate_options()));
  }
  SYRINX_TRY(const auto context, stream_context(*model, options.files.name, choices));
  const bool heartbeat = options.heartbeat, warm = options.warm_up;
  std::shared_ptr<TransducerRecogniser> recogniser(
      new TransducerRecogniser(std::move(model), std::move(gate), context, choices.window, std::move(options)));
  recogniser->load_ms_ = watch.elapsed_ms();
  if (warm) {
    SYRINX_TRY_VOID(recogniser->warm_up());
    recogniser->warm_up_ms_ = watch.elapsed_ms() - recogniser->load_ms_;
  }
  if (heartbeat) recogniser->heartbeat_ = std::make_unique<Heartbeat>([r = recogniser.get()] { return r->beat(); });
  return std::shared_ptr<Recogniser>(std::move(recogniser));
}

TransducerRecogniser::TransducerRecogniser(std::shared_ptr<const transducer::Model> model,
                                           std::optional<SpeechGate> gate,
                                           std::optional<transducer::AttentionContext> context,
                                           std::optional<StreamWindow> window, RecogniserOptions options)
    : files_(std::move(options.files)),
      model_(std::move(model)),
      gate_(std::move(gate)),
      max_streams_(options.max_streams),
      window_(window.value_or(WindowedFrames::usual(model_->config()))),
      compute_(options.compute != nullptr ? options.compute : Compute::shared()),
      queue_(compute_->scheduler()),
      team_(compute_->team(options.threads)),
      runner_(team_),
      encoder_(model_->encoder(), runner_),
      decoder_(model_->decoder(), runner_, kGreedy, 1, kBlockFrames) {
  const StepQueue::Turn turn(queue_);  // tables are made by the team, which others may be using
  if (context) {
    pool_ = std::make_unique<ChunkPool>(*model_, runner_, queue_, *context, kGreedy, max_streams_);
  } else {
    windows_ = std::make_unique<Windows>(*model_, runner_);
  }
}

TransducerRecogniser::Windows::Windows(const transducer::Model& model, nn::Runner& runner)
    : encoder(model.encoder(), runner), decoder(model.decoder(), runner, kGreedy, 1, FrameSource::kFramesAtOnce) {}

std::unique_ptr<FrameSource> TransducerRecogniser::frame_source(LabelTrack& track, Prompt prompt) {
  if (pool_ != nullptr) return std::make_unique<ChunkedFrames>(*model_, *pool_, track, prompt);
  return std::make_unique<WindowedFrames>(model_, window_, window_tools(), track, prompt);
}

WindowTools TransducerRecogniser::window_tools() {
  return {queue_, runner_, windows_->encoder, windows_->decoder, windows_->room, &windows_->line};
}

// Pages, tables, caches and threads are as in use before anybody waits for a result.  Weights that give none but faults
// are found here.
Status TransducerRecogniser::warm_up() {
  const std::vector<float> silence(kRecognitionRateHz, 0.0f);
  {
    StepQueue::Turn turn(queue_);
    const transducer::BetweenJobs between = [&turn] { turn.give_way(); };
    if (gate_) gate_->pieces(silence, {});
    const View<const float, 2> frames = encode_sound(*model_, silence, room_, encoder_, runner_, {.between = between});
    transducer::HeadState state(*model_->decoder());
    std::vector<Emission> found;
    const transducer::HeadDecoder::Job job{&state, frames, &found};
    decoder_.decode({&job, 1});
    between();
    SYRINX_TRY_VOID(fault_status(state.faults(), files_.name));
    // Not for models that have no search, or too few labels for one.
    if (const auto beam = transducer::BeamDecoder::make(model_->decoder(), runner_, {}))
      (*beam)->decode(frames, between);
  }
  if (windows_ != nullptr) WindowedFrames::warm_up(*model_, window_, window_tools());
  if (pool_ != nullptr) pool_->warm_up(*model_);
  return {};
}

double TransducerRecogniser::beat() {
  const StepQueue::Turn own(recordings_);
  return hear_silence(*model_, {queue_, runner_, encoder_, decoder_, room_});
}

// "auto" is no language, but one of the rows.
std::vector<std::string> TransducerRecogniser::languages() const {
  std::vector<std::string> names;
  for (const transducer::PromptConfig::Language& language : model_->config().encoder.prompt.languages)
    if (language.name != "auto") names.push_back(language.name);
  return names;
}

Recogniser::Frames TransducerRecogniser::frames_of(size_t samples) const {
  const size_t features = model_->features()->frames(samples);
  return {.features = features, .encoded = model_->config().encoder.frames(features)};
}

Status TransducerRecogniser::check(const TranscribeOptions& options) const {
  SYRINX_TRY_VOID(check_knobs(options.knobs, transducer_family()));
  if (!options.language.empty() && model_->config().encoder.prompt.count == 0)
    return fail(Code::kUnsupported, "'{}' finds the language out by itself; leave it out", files_.name);
  return {};
}

Result<TransducerRecogniser::Prompt> TransducerRecogniser::prompt_of(const TranscribeOptions& options) const {
  const transducer::PromptConfig& prompt = model_->config().encoder.prompt;
  if (prompt.count == 0) return Prompt();
  if (options.language.empty()) return Prompt(prompt.fallback);
  const std::vector<std::string> known = languages();
  const std::string* const name = text::closest_language(known, options.language);
  const transducer::PromptConfig::Language* const language = prompt.find(name == nullptr ? options.language : *name);
  if (language == nullptr)
    return fail(Code::kInvalidArgument,
                "'{}' was not taught the language {}; give one of its {}, {} say, or leave it out", files_.name,
                in_quotes(options.language), prompt.languages.size(), in_quotes(prompt.languages.front().name));
  return Prompt(language->index);
}

Result<TransducerRecogniser::Tree> TransducerRecogniser::boost_tree(const TranscribeOptions& options) const {
  const std::vector<std::string> boost = options.knobs.texts("boost");
  if (boost.empty()) return Tree();
  if (!model_->decoder()->has_transducer())
    return fail(Code::kUnsupported, "'{}' is heard through a CTC head, which cannot favour words", files_.name);
  // Before they are all spelled, which takes its time.
  if (boost.size() > transducer::kMaxBoostPhrases)
    return fail(Code::kLimitExceeded, "{} phrases to favour; at most {} can be", boost.size(),
                transducer::kMaxBoostPhrases);
  std::vector<std::vector<int32_t>> phrases;
  for (const std::string& phrase : boost) {
    SYRINX_TRY(std::vector<int32_t> labels, transducer::phrase_labels(model_->vocabulary(), phrase));
    phrases.push_back(std::move(labels));
  }
  const auto score = static_cast<float>(options.knobs.number("boost_score").value_or(1));
  return transducer::BoostTree::make(phrases, static_cast<float>(kBoostBase) * score,
                                     model_->config().decoder.vocabulary);
}

Result<TransducerRecogniser::Search> TransducerRecogniser::search_of(const TranscribeOptions& options) {
  Search search;
  const size_t beam = beam_of(options);
  if (beam > 1 && options.knobs.has("boost"))
    return fail(Code::kUnsupported, "a beam search favours no words; leave out either of the two");
  SYRINX_TRY(search.prompt, prompt_of(options));
  SYRINX_TRY(search.boost, boost_tree(options));
  if (beam < 2) return search;
  const StepQueue::Turn turn(queue_);  // its layers grow the runner's scratch, which others may be using
  SYRINX_TRY(search.beam, transducer::BeamDecoder::make(model_->decoder(), runner_, {.beam = beam}));
  return search;
}

Result<Transcript> TransducerRecogniser::transcribe(std::span<const float> samples, const TranscribeOptions& options,
                                                    const Progress& progress) {
  SYRINX_TRY_VOID(check(options));
  SYRINX_TRY(const Search search, search_of(options));
  SYRINX_TRY(const auto voice, speech_rules(gate_, options.voice_activity, options.voice));
  const std::vector<float> sound = bounded(samples);
  Transcript transcript;
  transcript.audio_s = static_cast<double>(sound.size()) / kRecognitionRateHz;
  size_t told = 0;
  double done_s = 0;
  const auto stopped = [&] { return fail(Code::kCancelled, "stopped after {:.1f} s of sound", done_s); };
  SYRINX_TRY(const std::vector<SpeechPiece> all, pieces(sound, voice, options.is_wanted));
  for (const SpeechPiece& piece : all) {
    {
      const StepQueue::Turn own(recordings_, kNeverDue, options.is_wanted);
      if (!own.is_mine()) return stopped();
      StepQueue::Turn turn(queue_, kNeverDue, options.is_wanted, &recording_line_);
      if (!turn.is_mine()) return stopped();
      const transducer::BetweenJobs between = [&turn] { turn.give_way(); };
      SYRINX_TRY_VOID(hear(piece, sound, search, options, between, transcript));
      note_work();
    }
    tell_heard(options, transcript, told);  // others have their turns meanwhile
    done_s = static_cast<double>(piece.spans.back().end) / kRecognitionRateHz;
    if (progress && !progress(done_s)) return stopped();
  }
  return transcript;
}

Result<std::vector<SpeechPiece>> TransducerRecogniser::pieces(std::span<const float> sound,
                                                              const std::optional<silero::SegmentOptions>& voice,
                                                              const std::function<bool()>& is_wanted) {
  if (voice) {
    StepQueue::Turn turn(queue_, kNeverDue, is_wanted);
    if (!turn.is_mine()) return fail(Code::kCancelled, "stopped before the speech of a recording was looked for");
    return gate_->pieces(sound, *voice, is_wanted, [&turn] { turn.give_way(); });
  }
  return quiet_pieces(sound, static_cast<size_t>(kMaxPieceS * kRecognitionRateHz));
}

Result<std::vector<Emission>> TransducerRecogniser::decode(View<const float, 2> frames, const Search& search,
                                                           const transducer::BetweenJobs& between) {
  std::vector<Emission> found;
  uint32_t faults = 0;
  if (search.beam != nullptr) {
    const auto finite = [](float value) { return std::isfinite(value); };
    for (size_t t = 0; t < frames.extent(0); ++t)
      if (!std::all_of(frames.row(t), frames.row(t) + frames.extent(1), finite)) faults |= transducer::kFramesNotFinite;
    SYRINX_TRY_VOID(fault_status(faults, files_.name));
    std::vector<transducer::Hypothesis> kept = search.beam->decode(frames, between);
    faults |= search.beam->faults();
    found = std::move(kept.front().emissions);
  } else {
    transducer::HeadState state(*model_->decoder());
    if (search.boost != nullptr) state.transducer->head().boost = search.boost.get();
    for (size_t first = 0; first < frames.extent(0); first += kBlockFrames) {
      const size_t count = std::min(kBlockFrames, frames.extent(0) - first);
      const View<const float, 2> block(frames.row(first), {count, frames.extent(1)}, {frames.stride(0), 1});
      const transducer::HeadDecoder::Job job{&state, block, &found};
      decoder_.decode({&job, 1});
      between();
    }
    faults = state.faults();
  }
  SYRINX_TRY_VOID(fault_status(faults, files_.name));
  return found;
}

Status TransducerRecogniser::hear(const SpeechPiece& piece, std::span<const float> sound, const Search& search,
                                  const TranscribeOptions& options, const transducer::BetweenJobs& between,
                                  Transcript& transcript) {
  const std::vector<float> heard = piece.sound(sound);
  const View<const float, 2> frames =
      encode_sound(*model_, heard, room_, encoder_, runner_, {.prompt = search.prompt, .between = between});
  SYRINX_TRY(const std::vector<Emission> found, decode(frames, search, between));
  const auto tokens = transducer::token_times(model_->vocabulary(), model_->config().decoder.kind, found);
  const auto spoken = transducer::word_times(model_->vocabulary(), tokens);
  TranscriptRules rules{.frame_s = model_->config().frame_s(),
                        .words = true,  // which have the times
                        .tokens = options.tokens ? &model_->vocabulary() : nullptr};
  const PieceTimes times(piece);
  const std::vector<size_t> stretches = times.stretches_of(piece_words(spoken, rules.frame_s));
  rules.follow_pauses = times.follow_pauses(stretches);
  for (TranscriptSegment& segment : times.in_recording(transcript_segments(tokens, spoken, rules), stretches)) {
    if (!options.words && !options.tokens && !options.subtitles) segment.words.clear();
    transcript.segments.push_back(std::move(segment));
  }
  return {};
}

Result<TransducerRecogniser::StreamRules> TransducerRecogniser::stream_rules(const TranscribeOptions& options) const {
  SYRINX_TRY_VOID(check(options));
  if (beam_of(options) > 1)
    return fail(Code::kUnsupported, "a stream takes nothing back, so it is decoded greedily; leave the beam out");
  StreamRules rules{.words = options.words || options.tokens || options.subtitles, .tokens = options.tokens};
  SYRINX_TRY(rules.prompt, prompt_of(options));
  SYRINX_TRY(rules.boost, boost_tree(options));
  SYRINX_TRY(rules.voice, speech_rules(gate_, options.voice_activity, options.voice));
  SYRINX_TRY(rules.endpoints, options.endpoints.apply(EndpointOptions()));
  return rules;
}

Status TransducerRecogniser::check_stream(const TranscribeOptions& options) const {
  const auto rules = stream_rules(options);
  if (!rules) return tl::unexpected(rules.error());
  return {};
}

// A beam is for recordings alone, and for a transducer's head.
Status TransducerRecogniser::check_recording(const TranscribeOptions& options) const {
  if (beam_of(options) > 1 && !model_->decoder()->has_transducer())
    return fail(Code::kUnsupported, "a CTC head has no beam search; leave the beam out");
  TranscribeOptions others = options;
  others.knobs.erase("beam");
  return check_stream(others);
}

Result<std::unique_ptr<RecognitionStream>> TransducerRecogniser::start(const TranscribeOptions& options) {
  SYRINX_TRY(StreamRules rules, stream_rules(options));
  auto place = StreamPlace::take(streams_, max_streams_);
  if (!place)
    return fail(Code::kUnavailable,
                "all {} streams of '{}' are taken; finish one first, or load the model with a greater "
                "RecogniserOptions::max_streams",
                max_streams_, files_.name);
  return std::make_unique<TransducerStream>(shared_from_this(), *std::move(place), std::move(rules));
}

std::vector<SpeechPiece> quiet_pieces(std::span<const float> sound, size_t most) {
  constexpr size_t kWindow = kRecognitionRateHz / 10;
  std::vector<SpeechPiece> out;
  for (size_t begin = 0; begin < sound.size();) {
    size_t end = sound.size();
    if (end - begin > most) {
      double least = std::numeric_limits<double>::infinity();
      for (size_t at = begin + most - most / 4; at + kWindow <= begin + most; at += kWindow / 2) {
        double energy = 0;
        for (const float sample : sound.subspan(at, kWindow)) energy += static_cast<double>(sample) * sample;
        if (energy >= least) continue;
        least = energy;
        end = at + kWindow / 2;
      }
      end = std::min(end, begin + most);
    }
    out.push_back({.spans = {{begin, end}}});
    begin = end;
  }
  return out;
}

}  // namespace syrinx
