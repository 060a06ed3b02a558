#include "engine/families/kokoro/kokoro_speaker.h"

#include <algorithm>
#include <utility>

#include "audio/fade.h"
#include "base/clock.h"
#include "engine/speech/pauses.h"
#include "models/kokoro/vocabulary.h"
#include "text/escape.h"

namespace syrinx {
namespace {

// Each piece draws from a stream of its own: the finaliser of SplitMix64 over seed and number.
uint64_t piece_seed(uint64_t seed, size_t piece) {
  uint64_t z = seed + 0x9e3779b97f4a7c15u * (static_cast<uint64_t>(piece) + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

bool is_mark(char32_t c) { return c == U' ' || (kokoro::symbol_id(c) > 0 && kokoro::symbol_id(c) <= 16); }

// Phonemes as the front end would have given them: words between spaces, marks apart.
g2p::Phonemized from_phonemes(std::string_view line, size_t offset) {
  g2p::Phonemized spoken;
  spoken.phonemes = std::string(line);
  std::replace(spoken.phonemes.begin(), spoken.phonemes.end(), '\n', ' ');
  for (size_t at = 0; at < line.size();) {
    const size_t begin = at;
    const bool mark = is_mark(text::decode(line, at));
    while (at < line.size()) {
      size_t next = at;
      const char32_t c = text::decode(line, next);
      if (c == U' ' || c == U'\n' || is_mark(c) != mark) break;
      at = next;
    }
    if (line[begin] == ' ' || line[begin] == '\n') continue;
    spoken.words.push_back({.source = {offset + begin, offset + at},
                            .phonemes = {begin, at},
                            .kind = mark ? g2p::WordKind::kPunctuation : g2p::WordKind::kEscape});
  }
  return spoken;
}

bool closes_sentence(char32_t c) { return c == U'.' || c == U'!' || c == U'?' || c == U'…'; }

// Behind the first mark that closes a sentence and is followed by a space, or behind the first line's end.
std::optional<size_t> phoneme_sentence_end(std::string_view phonemes) {
  bool closing = false;
  for (size_t at = 0; at < phonemes.size();) {
    const char32_t c = text::decode(phonemes, at);
    if (c == U'\n' || (closing && c == U' ')) return at;
    closing = closes_sentence(c);
  }
  return std::nullopt;
}

bool ends_with_closing_mark(std::string_view phonemes) {
  bool closing = false;
  for (size_t at = 0; at < phonemes.size();) closing = closes_sentence(text::decode(phonemes, at));
  return closing;
}

// Without what an escape, [word](/phonemes/), says of it.
std::string written_word(std::string_view source) {
  const std::optional<text::Escape> escape = text::parse_escape(source);
  return std::string(escape && escape->length == source.size() ? escape->word : source);
}

}  // namespace

void KokoroSpeaker::begin_text(size_t offset) {
  SentenceSpeaker::begin_text(offset);
  phoneme_text_.clear();
  phoneme_offset_ = offset;
}

Status KokoroSpeaker::feed(std::string_view text) {
  if (!phonemes_) return SentenceSpeaker::feed(text);
  phoneme_text_ += text;
  if (phoneme_text_.size() > text::SentenceStream::kMaxPendingBytes && !phoneme_sentence_end(phoneme_text_))
    return fail(Code::kLimitExceeded, "a sentence of phonemes is longer than 1 MB; end sentences with . ! or ?");
  return {};
}

Status KokoroSpeaker::finish_text() { return phonemes_ ? Status() : SentenceSpeaker::finish_text(); }

Result<std::optional<KokoroSpeaker::Sentence>> KokoroSpeaker::next_sentence(Moment moment) {
  return phonemes_ ? next_phonemes(moment) : SentenceSpeaker::next_sentence(moment);
}

// The rules for written sentences (capitals, abbreviations) say nothing about phonemes.
Result<std::optional<KokoroSpeaker::Sentence>> KokoroSpeaker::next_phonemes(Moment moment) {
  const std::optional<size_t> end = phoneme_sentence_end(phoneme_text_);
  const bool all = moment == Moment::kEnd || (moment == Moment::kPause && ends_with_closing_mark(phoneme_text_));
  if (!end && (!all || phoneme_text_.empty())) return std::optional<Sentence>();
  Sentence sentence{.text = phoneme_text_.substr(0, end.value_or(phoneme_text_.size())), .offset = phoneme_offset_};
  phoneme_text_.erase(0, sentence.text.size());
  phoneme_offset_ += sentence.text.size();
  if (const std::optional<size_t> invalid = text::find_invalid(sentence.text))
    return fail(Code::kInvalidArgument, "byte {} of the phonemes is not UTF-8; convert them or leave the byte out",
                sentence.offset + *invalid);
  return sentence;
}

Status KokoroSpeaker::read(const Sentence& sentence, SpeechStream& stream) {
  const Stopwatch watch(stream.clock());
  g2p::Phonemized spoken;
  if (phonemes_) {
    spoken = from_phonemes(sentence.text, sentence.offset);
  } else {
    SYRINX_TRY(spoken, maker_->phonemize(sentence.text, sentence.offset));
  }
  SpeechStatistics more;
  more.dropped_characters = spoken.dropped;
  more.compute_ms = watch.elapsed_ms();
  stream.account(more);
  if (!spoken.words.empty()) spoken_.push_back(sentence);
  planner_.add(spoken);
  return {};
}

Result<bool> KokoroSpeaker::say(bool now, SpeechStream& stream) {
  const std::optional<g2p::Phonemized> piece = planner_.next(now);
  if (!piece) return false;
  SYRINX_TRY_VOID(make(*piece, stream));
  return true;
}

Status KokoroSpeaker::end() {
  if (pieces_ == 0)
    return fail(Code::kInvalidArgument, "there is nothing to say: the text holds no English words, letters or digits");
  return {};
}

Status KokoroSpeaker::make(const g2p::Phonemized& piece, SpeechStream& stream) {
  const Stopwatch watch(stream.clock());
  const double waited_ms = maker_->waited_ms();
  const kokoro::Tokens tokens = kokoro::tokenize(piece.phonemes);
  SYRINX_TRY_VOID(stream.go_on());
  SpeechStatistics more;
  more.unknown_phonemes = tokens.unknown;
  if (tokens.ids.empty()) {
    stream.account(more);
    return {};
  }
  const auto is_wanted = [&stream] { return !stream.is_cancelled(); };
  const Status made =
      maker_->synthesize(tokens.ids, tokens.symbols, piece_seed(seed_, pieces_), stream.due_ns(), is_wanted, output_);
  const auto account = [&](size_t pieces) {
    more.waiting_ms = maker_->waited_ms() - waited_ms;
    more.compute_ms = watch.elapsed_ms() - more.waiting_ms;
    more.pieces = pieces;
    stream.account(more);
  };
  if (!made && made.error().code == Code::kLimitExceeded && tokens.ids.size() > 1) {
    more.unknown_phonemes = 0;  // the halves have them
    account(0);
    return make_halves(piece, stream);
  }
  SYRINX_TRY_VOID(made);
  std::span<float> kept = trim_silence(output_.samples, kokoro::kSampleRateHz, pause_rule(piece.phonemes));
  if (kept.empty()) kept = output_.samples;  // a piece that is silent altogether
  const auto cut = static_cast<size_t>(kept.data() - output_.samples.data());
  SpeechChunk chunk = stream.spare();
  chunk.samples.assign(kept.begin(), kept.end());
  chunk.words = word_times(piece, tokens.offsets, cut, chunk.samples.size());
  chunk.phonemes = piece.phonemes;
  samples_made_ += chunk.samples.size();
  ++pieces_;
  // Sentences that end before the last word of this piece are not asked for again.
  while (!spoken_.empty() && !piece.words.empty() &&
         spoken_.front().offset + spoken_.front().text.size() <= piece.words.back().source.begin)
    spoken_.pop_front();
  account(1);
  return stream.hand_over(std::move(chunk));
}

// How long a piece lasts shows when its durations have been computed: phonemes that are drawn out, many marks.
Status KokoroSpeaker::make_halves(const g2p::Phonemized& piece, SpeechStream& stream) {
  for (const g2p::Phonemized& half : kokoro::split_for_model(piece, (piece.id_count() + 1) / 2))
    SYRINX_TRY_VOID(make(half, stream));
  return {};
}

// Each id lasts its duration in frames; the first frame count belongs to the silence before the first id.
std::vector<WordTime> KokoroSpeaker::word_times(const g2p::Phonemized& piece, const std::vector<uint32_t>& offsets,
                                                size_t first_sample, size_t kept) const {
  std::vector<WordTime> times;
  if (output_.durations.size() != offsets.size() + 2) return times;
  std::vector<double> starts(offsets.size() + 1);  // seconds of the whole speech
  size_t frames = 0;
  for (size_t i = 0; i <= offsets.size(); ++i) {
    frames += static_cast<size_t>(std::max(output_.durations[i], 0));
    const size_t sample = frames * kokoro::kSamplesPerFrame;
    const size_t inside = std::clamp(sample, first_sample, first_sample + kept) - first_sample;
    starts[i] = static_cast<double>(samples_made_ + inside) / kokoro::kSampleRateHz;
  }
  for (const g2p::PhonemizedWord& word : piece.words) {
    if (word.kind == g2p::WordKind::kPunctuation) continue;
    const auto first = std::lower_bound(offsets.begin(), offsets.end(), word.phonemes.begin);
    const auto last = std::lower_bound(first, offsets.end(), word.phonemes.end);
    if (first == last) continue;
    const double start = starts[static_cast<size_t>(first - offsets.begin())];
    const double end = starts[static_cast<size_t>(last - offsets.begin())];
    if (!times.empty() && times.back().source_begin == word.source.begin &&
        times.back().source_end == word.source.end) {
      times.back().end_s = end;
      continue;
    }
    times.push_back({source_text(word.source), word.source.begin, word.source.end, start, end});
  }
  return times;
}

std::string KokoroSpeaker::source_text(text::Range range) const {
  for (const Sentence& sentence : spoken_) {
    if (range.begin >= sentence.offset && range.end <= sentence.offset + sentence.text.size())
      return written_word(std::string_view(sentence.text).substr(range.begin - sentence.offset, range.size()));
  }
  return {};
}

}  // namespace syrinx
