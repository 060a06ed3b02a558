#include "engine/families/whisper/whisper_recogniser.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "base/in_quotes.h"
#include "engine/families/whisper/whisper_family.h"
#include "engine/families/whisper/whisper_stream.h"
#include "engine/recognition/piece_times.h"
#include "engine/threads.h"
#include "models/whisper/features.h"
#include "text/language.h"
#include "text/unicode.h"

namespace syrinx {
namespace {

std::string_view trimmed(std::string_view text) {
  size_t begin = text.size(), end = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t at = i;
    if (text::is_space(text::decode(text, i))) continue;
    begin = std::min(begin, at);
    end = i;
  }
  return begin < end ? text.substr(begin, end - begin) : std::string_view();
}

constexpr double kTemperatureStep = 0.2;  // from one attempt to the next, as the maker's command has it

float probability_of(float log_probability) { return std::clamp(std::exp(log_probability), 0.0f, 1.0f); }

// The bytes of a character may be shared among tokens: they come with its last one.  What is malformed in the whole
// word too does not wait for more.
std::vector<TranscriptToken> tokens_of(const whisper::Word& word, const text::ByteBpe& bpe) {
  std::vector<TranscriptToken> out;
  const std::string whole = bpe.decode(word.tokens);
  std::string_view rest = whole;  // that has not been told
  size_t begin = 0;               // of its tokens
  for (size_t i = 0; i < word.token_times.size(); ++i) {
    const std::string text = bpe.decode(std::span(word.tokens).subspan(begin, i + 1 - begin));
    const bool is_last = i + 1 == word.token_times.size();  // it has whatever is left
    std::string_view told;
    if (is_last || rest.starts_with(text)) {
      told = is_last ? rest : rest.substr(0, text.size());
      begin = i + 1;
    }
    rest.remove_prefix(told.size());
    const whisper::TokenTime& time = word.token_times[i];
    out.push_back({.id = word.tokens[i],
                   .text = std::string(trimmed(told)),
                   .start_s = time.start_s,
                   .end_s = time.end_s,
                   .confidence = std::clamp(time.probability, 0.0f, 1.0f)});
  }
  return out;
}

}  // namespace

TranscriptSegment transcript_segment(const whisper::Segment& segment, const whisper::Tokens& tokens,
                                     const text::ByteBpe* bpe) {
  TranscriptSegment out;
  out.text = trimmed(segment.text);
  out.start_s = segment.start_s;
  out.end_s = segment.end_s;
  out.confidence = probability_of(segment.mean_log_probability);
  out.window = {.temperature = segment.temperature,
                .compression_ratio = segment.compression_ratio,
                .no_speech = segment.no_speech};
  std::ranges::copy_if(segment.tokens, std::back_inserter(out.tokens), [&](int32_t id) { return tokens.is_text(id); });
  bool spaced = false;
  for (const whisper::Word& word : segment.words) {
    const std::string_view text = trimmed(word.text);
    if (text.empty()) {
      spaced |= !word.text.empty();
      continue;
    }
    const auto begin = static_cast<size_t>(text.data() - word.text.data());
    out.words.push_back({.text = std::string(text),
                         .start_s = word.start_s,
                         .end_s = word.end_s,
                         .confidence = std::clamp(word.probability, 0.0f, 1.0f),
                         .spaced = spaced || begin > 0,
                         .tokens = word.tokens});
    if (bpe != nullptr) out.words.back().timed_tokens = tokens_of(word, *bpe);
    spaced = begin + text.size() < word.text.size();
  }
  return out;
}

Result<std::shared_ptr<Recogniser>> WhisperRecogniser::load(const RecogniserOptions& options) {
  const Stopwatch watch;
  SYRINX_TRY_VOID(check_knobs(options.knobs, whisper_family()));
  ThreadTeam packers(default_threads());
  SYRINX_TRY(std::shared_ptr<const whisper::Model> model,
             whisper::Model::load(options.files.checkpoint, {.precision = options.precision.value_or(kDefaultPrecision),
                                                             .cache_folder = options.cache_folder,
                                                             .team = &packers}));
  SYRINX_TRY(std::shared_ptr<const whisper::Vocabulary> vocabulary, whisper::Vocabulary::load(*model));
  std::shared_ptr<WhisperRecogniser> recogniser(new WhisperRecogniser(model, options));
  recogniser->vocabulary_ = vocabulary;
  SYRINX_TRY(recogniser->transcriber_,
             whisper::Transcriber::create(std::move(model), std::move(vocabulary), recogniser->team_));
  if (!options.files.voice_activity.empty()) {
    SYRINX_TRY(recogniser->gate_, SpeechGate::load(options.files.voice_activity));
  }
  recogniser->load_ms_ = watch.elapsed_ms();
  if (options.warm_up) {
    StepQueue::Turn turn(recogniser->queue_);
    if (recogniser->gate_) recogniser->gate_->pieces(std::vector<float>(kRecognitionRateHz), {});
    turn.give_way();
    const Between between(*recogniser->transcriber_, [&] { turn.give_way(); });
    recogniser->transcriber_->warm_up();
    recogniser->warm_up_ms_ = watch.elapsed_ms() - recogniser->load_ms_;
  }
  return std::shared_ptr<Recogniser>(std::move(recogniser));
}

WhisperRecogniser::WhisperRecogniser(std::shared_ptr<const whisper::Model> model, const RecogniserOptions& options)
    : files_(options.files),
      model_(std::move(model)),
      compute_(options.compute != nullptr ? options.compute : Compute::shared()),
      queue_(compute_->scheduler()),
      team_(compute_->team(options.threads)) {}

std::vector<std::string> WhisperRecogniser::languages() const {
  if (!vocabulary_->tokens.multilingual) return {"en"};
  std::vector<std::string> codes;
  for (const whisper::Language& language : vocabulary_->tokens.languages) codes.push_back(language.code);
  return codes;
}

// Without the zeros that fill a window.
Recogniser::Frames WhisperRecogniser::frames_of(size_t samples) const {
  const size_t features = whisper::LogMel::frame_count(samples);
  return {.features = features, .encoded = (features + whisper::kFramesPerPosition - 1) / whisper::kFramesPerPosition};
}

Status WhisperRecogniser::set_search(const Knobs& knobs, size_t usual_beam, whisper::DecodeSettings& decode) const {
  const auto whole = [&](const char* name, size_t usual) {
    return static_cast<size_t>(knobs.number(name).value_or(static_cast<double>(usual)));
  };
  decode.beam = whole("beam", usual_beam);
  decode.best_of = whole("best_of", whisper::kUsualBestOf);
  decode.patience = knobs.number("patience").value_or(1);
  decode.length_penalty = knobs.number("length_penalty");
  if (decode.beam == 0 && knobs.has("patience"))
    return fail(Code::kInvalidArgument, "patience is for a beam search; give a beam of 1 or more, or leave it out");
  if (decode.beam > 0 && whisper::BeamSearch::wanted(decode.beam, decode.patience) == 0)
    return fail(Code::kInvalidArgument, "a beam of {} with a patience of {} finishes nothing; give more of either",
                decode.beam, decode.patience);
  SYRINX_TRY_VOID(whisper::DecoderState::check(*model_, std::max(decode.beam, decode.best_of)));
  const double first = knobs.number("temperature").value_or(0);
  decode.temperatures.clear();
  for (int i = 0; first + i * kTemperatureStep <= 1 + 1e-6; ++i)
    decode.temperatures.push_back(static_cast<float>(first + i * kTemperatureStep));
  return {};
}

Result<whisper::TranscriberSettings> WhisperRecogniser::settings_of(const TranscribeOptions& options,
                                                                    size_t usual_beam) const {
  const whisper::Tokens& tokens = vocabulary_->tokens;
  SYRINX_TRY_VOID(check_knobs(options.knobs, whisper_family()));
  const bool translate = options.knobs.flag("translate");
  if (translate && !tokens.multilingual)
    return fail(Code::kUnsupported, "'{}' knows English alone and does not translate; use a multilingual Whisper",
                files_.name);
  whisper::TranscriberSettings settings;
  settings.translate = translate;
  settings.words = options.words || options.tokens;
  // Pieces between silences have little to do with each other, and a loop would go on from one to the next.
  settings.long_form.condition_on_previous = false;
  SYRINX_TRY_VOID(set_search(options.knobs, usual_beam, settings.decode));
  // Each piece and window is told the prompt, since it is told nothing else of what was before.
  settings.long_form.carry_prompt = true;
  if (const std::string prompt = options.knobs.text("prompt").value_or(""); !trimmed(prompt).empty()) {
    SYRINX_TRY(settings.long_form.prompt, vocabulary_->bpe.encode(" " + std::string(trimmed(prompt))));
  }
  if (!tokens.multilingual) settings.language = tokens.find_language("en");  // there is nothing to find out
  if (text::is_any_language(options.language)) return settings;
  const std::vector<std::string> known = languages();
  const std::string* const code = text::closest_language(known, options.language);
  settings.language = code == nullptr ? nullptr : tokens.find_language(*code);
  if (settings.language == nullptr)
    return fail(Code::kInvalidArgument, "'{}' does not know the language {}; give a code such as {}, or leave it out",
                files_.name, in_quotes(options.language), tokens.multilingual ? "en, de or zh" : "en");
  return settings;
}

// The times of the piece become those of the recording; the language stays that was found in the first one of some
// length that says something.
Status WhisperRecogniser::hear_piece(const SpeechPiece& piece, std::span<const float> samples,
                                     whisper::TranscriberSettings& settings, const TranscribeOptions& options,
                                     const Progress& progress, Transcript& transcript) {
  const std::vector<float> sound = piece.sound(samples);
  const PieceTimes times(piece);
  settings.words_aside = options.subtitles || (options.segment_times && times.has_pauses());
  const whisper::Language* found = nullptr;
  Result<std::vector<whisper::Segment>> heard =
      fail(Code::kCancelled, "the transcription was stopped before a piece of it");
  with_transcriber(kNeverDue, options.is_wanted, [&](whisper::Transcriber& transcriber, StepQueue::Turn& turn) {
    // Others have the team while the caller is told.
    const auto mapped = [&](double done_s) {
      return !progress || turn.outside([&] { return progress(piece.end_in_recording(done_s)); });
    };
    heard = transcriber.transcribe(sound, settings, mapped);
    found = transcriber.language();
  });
  SYRINX_TRY(const std::vector<whisper::Segment> segments, std::move(heard));
  const bool says =
      std::ranges::any_of(segments, [](const whisper::Segment& segment) { return !segment.text.empty(); });
  if (found != nullptr && (says || transcript.language.empty())) transcript.language = found->code;
  if (says && static_cast<double>(sound.size()) >= kLanguageSeconds * kRecognitionRateHz) settings.language = found;
  std::vector<TranscriptSegment> found_segments;
  for (const whisper::Segment& segment : segments)
    if (!segment.text.empty())
      found_segments.push_back(
          transcript_segment(segment, vocabulary_->tokens, options.tokens ? &vocabulary_->bpe : nullptr));
  const std::vector<size_t> stretches = times.stretches_of(piece_words(found_segments));
  for (TranscriptSegment& segment : times.in_recording(std::move(found_segments), stretches)) {
    if (!options.words && !options.tokens && !options.subtitles) segment.words.clear();
    transcript.segments.push_back(std::move(segment));
  }
  return {};
}

Result<Transcript> WhisperRecogniser::transcribe(std::span<const float> samples, const TranscribeOptions& options,
                                                 const Progress& progress) {
  SYRINX_TRY(whisper::TranscriberSettings settings, settings_of(options, usual_beam(options)));
  Transcript transcript;
  transcript.audio_s = static_cast<double>(samples.size()) / kRecognitionRateHz;
  if (settings.language != nullptr) transcript.language = settings.language->code;
  SYRINX_TRY(const auto voice, speech_rules(gate_, options.voice_activity, options.voice));
  settings.decode.is_speech = voice.has_value();
  std::vector<SpeechPiece> pieces;
  if (voice) {
    StepQueue::Turn turn(queue_, kNeverDue, options.is_wanted);
    if (!turn.is_mine()) return fail(Code::kCancelled, "the transcription was stopped before it began");
    SYRINX_TRY(pieces, gate_->pieces(samples, *voice, options.is_wanted, [&turn] { turn.give_way(); }));
  } else if (!samples.empty()) {
    pieces = {{{{0, samples.size()}}}};
  }
  size_t told = 0;
  for (const SpeechPiece& piece : pieces) {
    SYRINX_TRY_VOID(hear_piece(piece, samples, settings, options, progress, transcript));
    tell_heard(options, transcript, told);
  }
  if (progress && !progress(transcript.audio_s)) return fail(Code::kCancelled, "the transcription was stopped");
  if (!vocabulary_->tokens.multilingual) transcript.language = "en";
  return transcript;
}

Result<WhisperRecogniser::StreamRules> WhisperRecogniser::stream_rules(const TranscribeOptions& options) const {
  StreamRules rules;
  SYRINX_TRY(rules.settings, settings_of(options, kStreamBeam));
  SYRINX_TRY(rules.voice, speech_rules(gate_, options.voice_activity, options.voice));
  SYRINX_TRY(rules.endpoints, options.endpoints.apply(WhisperStream::kEndpoints));
  return rules;
}

Status WhisperRecogniser::check_stream(const TranscribeOptions& options) const {
  const auto rules = stream_rules(options);
  if (!rules) return tl::unexpected(rules.error());
  return {};
}

Status WhisperRecogniser::check_recording(const TranscribeOptions& options) const {
  const auto settings = settings_of(options, usual_beam(options));
  if (!settings) return tl::unexpected(settings.error());
  const auto voice = speech_rules(gate_, options.voice_activity, options.voice);
  if (!voice) return tl::unexpected(voice.error());
  return {};
}

Result<std::unique_ptr<RecognitionStream>> WhisperRecogniser::start(const TranscribeOptions& options) {
  SYRINX_TRY(const StreamRules rules, stream_rules(options));
  return std::make_unique<WhisperStream>(shared_from_this(), rules.settings, options.tokens, rules.voice,
                                         rules.endpoints, options.is_wanted);
}

}  // namespace syrinx
