#include "models/whisper/long_form.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "text/unicode.h"

namespace syrinx::whisper {
namespace {

constexpr float kMaxPromptTemperature = 0.5f;  // what was sampled above it is no good example

bool is_blank(std::string_view text) {
  for (size_t i = 0; i < text.size();)
    if (!text::is_space(text::decode(text, i))) return false;
  return true;
}

float mean(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += value;
  return values.empty() ? 0.0f : static_cast<float>(sum / static_cast<double>(values.size()));
}

// Where the last word ends, or the last segment if there are no words.
double speech_end(std::span<const Segment> segments) {
  for (size_t i = segments.size(); i-- > 0;)
    if (!segments[i].words.empty()) return segments[i].words.back().end_s;
  return segments.back().end_s;
}

}  // namespace

LongForm::LongForm(const text::ByteBpe& bpe, const Tokens& tokens, size_t content_frames,
                   const LongFormSettings& settings)
    : bpe_(bpe), tokens_(tokens), content_frames_(content_frames), settings_(settings), said_(settings.prompt) {}

size_t LongForm::window_frames() const { return std::min(settings_.window_frames, content_frames_ - frame_); }

std::optional<LongForm::Window> LongForm::next() const {
  if (frame_ >= content_frames_) return std::nullopt;
  Window window = {.first_frame = frame_, .frames = window_frames(), .prompt = {}};
  const size_t kept = settings_.carry_prompt ? std::min(settings_.prompt.size(), settings_.max_prompt_tokens) : 0;
  const size_t room = settings_.max_prompt_tokens - kept;
  const size_t begin =
      std::max({prompt_begin_, kept > 0 ? settings_.prompt.size() : 0, said_.size() - std::min(said_.size(), room)});
  window.prompt.assign(settings_.prompt.end() - static_cast<ptrdiff_t>(kept), settings_.prompt.end());
  window.prompt.insert(window.prompt.end(), said_.begin() + static_cast<ptrdiff_t>(begin), said_.end());
  return window;
}

bool LongForm::is_silence(const DecodedWindow& decoded) const {
  return !decoded.is_speech && decoded.no_speech > settings_.no_speech_threshold &&
         !(decoded.mean_log_probability > settings_.log_probability_threshold);
}

std::vector<Segment> LongForm::cut(const DecodedWindow& decoded) const {
  std::vector<Segment> segments;
  if (is_silence(decoded)) return segments;
  const double offset_s = static_cast<double>(frame_) * kSecondsPerFrame;
  for (const WindowCut::Piece& piece : cut_window(tokens_, decoded.tokens, window_frames()).pieces) {
    Segment segment;
    segment.start_s = offset_s + piece.start_s;
    segment.end_s = offset_s + piece.end_s;
    const std::span<const int32_t> ids = std::span(decoded.tokens).subspan(piece.begin, piece.end - piece.begin);
    segment.tokens.assign(ids.begin(), ids.end());
    std::vector<int32_t> text_ids;
    std::ranges::copy_if(ids, std::back_inserter(text_ids), [&](int32_t id) { return tokens_.is_text(id); });
    segment.text = bpe_.decode(text_ids);
    segment.mean_log_probability = mean(std::span(decoded.log_probabilities).subspan(piece.begin, ids.size()));
    segment.no_speech = decoded.no_speech;
    segment.temperature = decoded.temperature;
    segment.compression_ratio = decoded.compression_ratio;
    segments.push_back(std::move(segment));
  }
  return segments;
}

void LongForm::accept(const DecodedWindow& decoded, std::vector<Segment> segments, bool with_words) {
  const double offset_s = static_cast<double>(frame_) * kSecondsPerFrame;
  if (is_silence(decoded)) return skip();
  const WindowCut cut = cut_window(tokens_, decoded.tokens, window_frames());
  size_t frame = frame_ + cut.frames;
  if (with_words && !segments.empty()) {
    last_speech_s_ = speech_end(segments);
    // The words know better where the next window may begin.
    if (!cut.ends_with_time && last_speech_s_ > offset_s)
      frame = static_cast<size_t>(std::nearbyint(last_speech_s_ / kSecondsPerFrame));
  }
  frame_ = std::max(frame, frame_ + 1);
  for (Segment& segment : segments) {
    if (segment.start_s == segment.end_s || is_blank(segment.text)) {
      segment.text.clear();
      segment.tokens.clear();
      segment.words.clear();
    }
    said_.insert(said_.end(), segment.tokens.begin(), segment.tokens.end());
    segments_.push_back(std::move(segment));
  }
  if (!settings_.condition_on_previous || decoded.temperature > kMaxPromptTemperature) prompt_begin_ = said_.size();
}

}  // namespace syrinx::whisper
