#include "models/whisper/transcriber.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <numeric>

#include "base/mapped_file.h"
#include "models/whisper/words.h"
#include "text/tokens/bpe_files.h"

namespace syrinx::whisper {
namespace {

constexpr size_t kLeastShortFrames = 1000;   // 10 s: shorter windows hallucinate
constexpr size_t kShortPaddingFrames = 100;  // of silence behind the sound
constexpr size_t kWarmUpTokens = 8;          // greedily, by a beam, and of samples
constexpr size_t kWarmUpText = 64;           // tokens whose words get times
constexpr size_t kMelFramesAtOnce = 500;
constexpr size_t kPaddingSamples = 480'000;  // 30 s of silence behind the sound, as the maker puts there

bool says_nothing(std::span<const Segment> segments) {
  return std::ranges::all_of(segments, [](const Segment& segment) { return segment.text.empty(); });
}

std::span<const float> sound_of(std::span<const float> samples, const LongForm::Window& window) {
  const size_t begin = std::min(samples.size(), window.first_frame * kHopSamples);
  return samples.subspan(begin, std::min(samples.size() - begin, window.frames * kHopSamples));
}

// Nothing but one value, to a step of 16 bits: for such a window the model makes words up.
bool is_digital_silence(std::span<const float> samples) {
  constexpr float kStep = 1.0f / 32768;
  const auto [least, greatest] = std::ranges::minmax_element(samples);
  return samples.empty() || *greatest - *least <= 2 * kStep;
}

// The segments keep their own times.  Returns where the last word ends.
double place_words_aside(std::vector<Word> words, const Tokens& tokens, double offset_s, std::span<Segment> segments,
                         double last_speech_s) {
  std::vector<Segment> timed(segments.begin(), segments.end());
  place_words(std::move(words), tokens, offset_s, timed, last_speech_s);
  for (size_t i = 0; i < timed.size(); ++i) {
    if (!timed[i].words.empty()) last_speech_s = timed[i].words.back().end_s;
    segments[i].words = std::move(timed[i].words);
  }
  return last_speech_s;
}

}  // namespace

Result<std::shared_ptr<const Vocabulary>> Vocabulary::load(const Model& model) {
  using Read = Result<text::ByteBpe> (*)(std::string_view, const std::string&);
  constexpr std::pair<const char*, Read> kFiles[] = {{"tokenizer.json", text::read_bpe_json},
                                                     {"vocabulary.txt", text::read_vocabulary_txt}};
  for (const auto& [file, read] : kFiles) {
    const std::string path = (std::filesystem::path(model.folder()) / file).string();
    if (std::error_code unread; !std::filesystem::exists(path, unread)) continue;
    SYRINX_TRY(const MappedFile mapped, MappedFile::open(path));
    const std::span<const std::byte> bytes = mapped.bytes();
    SYRINX_TRY(text::ByteBpe bpe, read({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path));
    SYRINX_TRY(Tokens tokens, find_tokens(bpe, model.config().vocabulary, path));
    return std::make_shared<const Vocabulary>(Vocabulary{std::move(bpe), std::move(tokens)});
  }
  return fail(Code::kNotFound, "'{}' has neither a tokenizer.json nor a vocabulary.txt; put one beside the weights",
              model.folder());
}

Result<std::unique_ptr<Transcriber>> Transcriber::create(std::shared_ptr<const Model> model,
                                                         std::shared_ptr<const Vocabulary> vocabulary,
                                                         ThreadTeam& team) {
  SYRINX_TRY(LogMel log_mel, LogMel::create(model->config().mels));
  SYRINX_TRY(auto decoder, WindowDecoder::create(model, vocabulary->bpe, vocabulary->tokens, team));
  return std::unique_ptr<Transcriber>(
      new Transcriber(std::move(model), std::move(vocabulary), team, std::move(log_mel), std::move(decoder)));
}

Transcriber::Transcriber(std::shared_ptr<const Model> model, std::shared_ptr<const Vocabulary> vocabulary,
                         ThreadTeam& team, LogMel log_mel, std::unique_ptr<WindowDecoder> decoder)
    : model_(std::move(model)),
      vocabulary_(std::move(vocabulary)),
      log_mel_(std::move(log_mel)),
      encoder_(model_, team),
      audio_(AudioState::make(*model_)),
      decoder_(std::move(decoder)),
      window_frames_(model_->config().audio_positions * kFramesPerPosition),
      mel_(window_frames_ * log_mel_.mels()),
      scratch_(log_mel_.scratch_size()) {}

// A few milliseconds at a time.
void Transcriber::compute_mel(std::span<const float> samples, size_t first_frame, View<float, 2> mel) {
  for (size_t row = 0; row < mel.extent(0); row += kMelFramesAtOnce) {
    const View<float, 2> some(mel.row(row), {std::min(kMelFramesAtOnce, mel.extent(0) - row), mel.extent(1)});
    log_mel_.compute(samples, samples.size() + kPaddingSamples, first_frame + row, scratch_, some);
    if (between_) between_();
  }
}

// The greatest value of the whole sound, which the maker clamps all windows by.
float Transcriber::file_peak(std::span<const float> samples, size_t content_frames) {
  float greatest = -std::numeric_limits<float>::infinity();
  // Two frames beyond the content still see its last samples.
  const size_t frames = content_frames + 3;
  for (size_t first = 0; first < frames; first += window_frames_) {
    const View<float, 2> mel(mel_.data(), {std::min(window_frames_, frames - first), log_mel_.mels()});
    compute_mel(samples, first, mel);
    greatest = std::max(greatest, peak(mel));
  }
  return greatest;
}

// A window that is not full ends in zeros of the normalised spectrum, not in those of the sound.
void Transcriber::encode(std::span<const float> samples, const LongForm::Window& window, float peak, size_t frames) {
  const View<float, 2> content(mel_.data(), {window.frames, log_mel_.mels()});
  compute_mel(samples, window.first_frame, content);
  normalise(content, peak, content);
  std::fill(mel_.begin() + static_cast<ptrdiff_t>(content.size()), mel_.end(), 0.0f);
  encoder_.encode(View<const float, 2>(mel_.data(), {frames, log_mel_.mels()}), audio_, between_);
}

Result<std::vector<Segment>> Transcriber::transcribe(std::span<const float> samples,
                                                     const TranscriberSettings& settings, const Progress& progress) {
  const Tokens& tokens = vocabulary_->tokens;
  if (settings.translate && !tokens.multilingual)
    return fail(Code::kUnsupported, "'{}' knows English alone and does not translate; use a multilingual Whisper",
                model_->path());
  language_ = tokens.multilingual ? settings.language : nullptr;
  const size_t content_frames = LogMel::frame_count(samples.size());
  LongFormSettings long_form = settings.long_form;
  long_form.window_frames = window_frames_;
  long_form.max_prompt_tokens = model_->config().text_positions / 2 - 1;
  LongForm form(vocabulary_->bpe, tokens, content_frames, long_form);
  const float peak = content_frames > 0 ? file_peak(samples, content_frames) : 0.0f;
  double last_word_s = 0;
  for (std::optional<LongForm::Window> window; (window = form.next());) {
    if (is_digital_silence(sound_of(samples, *window))) {
      form.skip();
      continue;
    }
    encode(samples, *window, peak, window_frames_);
    find_language();
    const WindowPrompt prompt = {.previous = std::move(window->prompt),
                                 .language = language_,
                                 .translate = settings.translate,
                                 .timestamps = true};
    DecodeSettings decode = settings.decode;
    decode.is_speech &= says_nothing(form.segments());  // an end of a piece may be silence
    const DecodedWindow decoded = decoder_->decode(audio_, prompt, decode, window->first_frame);
    std::vector<Segment> segments = form.cut(decoded);
    if ((settings.words || settings.words_aside) && !segments.empty()) {
      std::vector<int32_t> text_ids;
      for (const Segment& segment : segments)
        for (const int32_t id : text_of(segment.tokens)) text_ids.push_back(id);
      std::vector<Word> words = decoder_->time_words(audio_, prompt, text_ids, window->frames);
      const double offset_s = static_cast<double>(window->first_frame) * kSecondsPerFrame;
      if (settings.words)
        place_words(std::move(words), tokens, offset_s, segments, form.last_speech_s());
      else
        last_word_s = place_words_aside(std::move(words), tokens, offset_s, segments, last_word_s);
    }
    form.accept(decoded, std::move(segments), settings.words);
    const double done_s = static_cast<double>(std::min(form.frame(), content_frames)) * kSecondsPerFrame;
    if (progress && !progress(done_s)) return fail(Code::kCancelled, "the transcription was stopped");
  }
  return std::move(form.segments());
}

HeardWindow Transcriber::hear(std::span<const float> samples, const TranscriberSettings& settings,
                              std::string_view before) {
  HeardWindow heard;
  samples = samples.first(std::min(samples.size(), window_frames_ * kHopSamples));
  const size_t frames = LogMel::frame_count(samples.size());
  language_ = vocabulary_->tokens.multilingual ? settings.language : nullptr;
  if (frames == 0 || is_digital_silence(samples)) return heard;
  WindowPrompt prompt = {.previous = prompt_of(settings, before),
                         .language = nullptr,
                         .translate = settings.translate,
                         .timestamps = true};
  const DecodedWindow decoded =
      decode_short(samples, {.first_frame = 0, .frames = frames, .prompt = {}}, prompt, settings);
  const LongForm silence(vocabulary_->bpe, vocabulary_->tokens, frames, settings.long_form);
  if (silence.is_silence(decoded)) return heard;
  const WindowCut cut = cut_window(vocabulary_->tokens, decoded.tokens, frames);
  for (const WindowCut::Piece& piece : cut.pieces)
    if (decoded.tokens.size() > piece.end || cut.ends_with_time) heard.ends_s.push_back(piece.end_s);

  const double end_s = static_cast<double>(frames) * kSecondsPerFrame;
  Segment& segment = heard.segment;
  segment.end_s = end_s;
  segment.tokens = decoded.tokens;
  const std::vector<int32_t> text_ids = text_of(decoded.tokens);
  segment.text = vocabulary_->bpe.decode(text_ids);
  segment.mean_log_probability = decoded.mean_log_probability;
  segment.no_speech = decoded.no_speech;
  segment.temperature = decoded.temperature;
  segment.compression_ratio = decoded.compression_ratio;
  place_words(decoder_->time_words(audio_, prompt, text_ids, frames), vocabulary_->tokens, 0, {&segment, 1}, 0);
  return heard;
}

// The settings' own prompt and as much of the end of the text before as there is room for.
std::vector<int32_t> Transcriber::prompt_of(const TranscriberSettings& settings, std::string_view before) const {
  const size_t most = model_->config().text_positions / 2 - 1;
  const std::vector<int32_t>& own = settings.long_form.prompt;
  std::vector<int32_t> ids(own.end() - static_cast<ptrdiff_t>(std::min(own.size(), most)), own.end());
  if (before.empty()) return ids;
  const auto said = vocabulary_->bpe.encode(" " + std::string(before));
  if (!said) return ids;
  const size_t room = std::min(said->size(), most - ids.size());
  ids.insert(ids.end(), said->end() - static_cast<ptrdiff_t>(room), said->end());
  return ids;
}

void Transcriber::warm_up() {
  const std::vector<float> silence(window_frames_ * kHopSamples, 0.0f);
  std::vector<int32_t> text(std::min(kWarmUpText, model_->config().text_positions / 2));
  std::iota(text.begin(), text.end(), 0);  // the first ones of every vocabulary are text
  for (const size_t frames : {window_frames_, std::min(window_frames_, kLeastShortFrames)}) {
    encode(silence, {.first_frame = 0, .frames = frames, .prompt = {}}, file_peak(silence, frames), frames);
    language_ = nullptr;
    find_language();
    const WindowPrompt prompt = {.previous = {}, .language = language_, .translate = false, .timestamps = true};
    for (const auto& [temperature, beam] :
         {std::pair(0.0f, size_t{0}), std::pair(0.0f, kUsualBeam), std::pair(1.0f, size_t{0})}) {
      DecodeSettings settings;
      settings.temperatures = {temperature};
      settings.beam = beam;
      settings.max_tokens = kWarmUpTokens;
      decoder_->decode(audio_, prompt, settings, 0);
    }
    decoder_->time_words(audio_, prompt, text, frames);
  }
  language_ = nullptr;
}

// As short as is asked for, and as long as it must be.
DecodedWindow Transcriber::decode_short(std::span<const float> samples, const LongForm::Window& window,
                                        WindowPrompt& prompt, const TranscriberSettings& settings) {
  const float peak = file_peak(samples, window.frames);
  const size_t least =
      std::min(window_frames_, std::max(kLeastShortFrames, window.frames + kShortPaddingFrames) / 2 * 2);
  DecodeSettings decode = settings.decode;
  if (settings.short_windows && least < window_frames_) {
    encode(samples, window, peak, least);
    find_language();
    prompt.language = language_;
    decode.temperatures.resize(1);
    DecodedWindow decoded = decoder_->decode(audio_, prompt, decode, 0);
    if (!has_failed(decoded, decode)) return decoded;
    decode = settings.decode;
  }
  encode(samples, window, peak, window_frames_);
  find_language();
  prompt.language = language_;
  return decoder_->decode(audio_, prompt, decode, 0);
}

void Transcriber::find_language() {
  if (language_ == nullptr && vocabulary_->tokens.multilingual) language_ = &decoder_->detect_language(audio_);
}

std::vector<int32_t> Transcriber::text_of(std::span<const int32_t> ids) const {
  std::vector<int32_t> text_ids;
  std::ranges::copy_if(ids, std::back_inserter(text_ids), [&](int32_t id) { return vocabulary_->tokens.is_text(id); });
  return text_ids;
}

}  // namespace syrinx::whisper
