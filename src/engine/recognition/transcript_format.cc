// SubRip has no standard; WebVTT is W3C's "WebVTT: The Web Video Text Tracks Format", sections 4.1 and 4.2.
#include "engine/recognition/transcript_format.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "text/columns.h"

namespace syrinx {
namespace {

// Cost of a cut inside a phrase against one behind it, in columns.
constexpr size_t kNoPhrase = 20;

constexpr size_t kLabelColumns = 4;  // "[0] "

std::string label_of(const TranscriptSegment& segment) {
  return segment.channel ? fmt::format("channel {}: ", *segment.channel) : std::string();
}

// As printed.
int64_t milliseconds(double seconds) {
  return std::isfinite(seconds) && seconds > 0 ? static_cast<int64_t>(std::llround(seconds * 1000)) : 0;
}

std::string time_text(double seconds, char before_milliseconds) {
  const int64_t total = milliseconds(seconds);
  return fmt::format("{:02}:{:02}:{:02}{}{:03}", total / 3'600'000, total / 60'000 % 60, total / 1000 % 60,
                     before_milliseconds, total % 1000);
}

// Behind the last word from `begin` on that no pause comes before.
size_t pause_after(std::span<const TranscriptWord> words, size_t begin, double max_pause_s) {
  size_t end = begin + 1;
  while (end < words.size() && words[end].start_s - words[end - 1].end_s <= max_pause_s) ++end;
  return end;
}

// The words that are timed, none wider than a line.  Those without a blank between them ("ill-disposed") stay together
// unless each has a cue of its own, or a pause is between them.
std::vector<TranscriptWord> timed_words(const TranscriptSegment& segment, TranscriptTimes times,
                                        const CueLimits& limits) {
  std::vector<TranscriptWord> words;
  const auto spread = [&](std::string_view text, double start_s, double end_s) {
    const std::vector<std::string> pieces = text::words_within(text, limits.max_columns);
    size_t total = 0, before = 0;
    for (const std::string& piece : pieces) total += piece.size();
    const auto time_at = [&](size_t bytes) {
      return start_s + (end_s - start_s) * static_cast<double>(bytes) / static_cast<double>(total);
    };
    for (const std::string& piece : pieces) {
      words.push_back({.text = piece, .start_s = time_at(before), .end_s = time_at(before + piece.size())});
      before += piece.size();
    }
  };
  if (segment.words.empty()) {
    spread(segment.text, segment.start_s, segment.end_s);
  } else {
    for (size_t begin = 0; begin < segment.words.size();) {
      std::string text = segment.words[begin].text;
      size_t end = begin + 1;
      const size_t last = pause_after(segment.words, begin, limits.max_pause_s);
      for (; times < TranscriptTimes::kWord && end < last && !segment.words[end].spaced; ++end)
        text += segment.words[end].text;
      spread(text, segment.words[begin].start_s, segment.words[end - 1].end_s);
      begin = end;
    }
  }
  return words;
}

std::vector<std::string> texts(std::span<const TranscriptWord> words, size_t begin, size_t end) {
  std::vector<std::string> out;
  for (size_t i = begin; i < end; ++i) out.push_back(words[i].text);
  return out;
}

// Behind the last word that still fits into the cue that begins at `begin`.
size_t longest_cue(std::span<const TranscriptWord> words, size_t begin, const CueLimits& limits) {
  size_t end = begin + 1;
  while (end < words.size() && words[end].end_s - words[begin].start_s <= limits.max_seconds &&
         text::balanced_lines(texts(words, begin, end + 1), limits.max_columns).size() <= limits.max_lines)
    ++end;
  return end;
}

// Behind the last word of the cue that begins at `begin`: what is left is shared out alike, rather cut behind a phrase,
// so that no cue is left with a word or two.
size_t cue_end(std::span<const TranscriptWord> words, size_t begin, const CueLimits& limits) {
  const size_t longest = longest_cue(words, begin, limits);
  size_t cues = 1;
  for (size_t end = longest; end < words.size(); end = longest_cue(words, end, limits)) ++cues;
  if (cues == 1) return longest;
  std::vector<size_t> columns(1, 0);  // of the words behind `begin`, so many of them
  for (size_t i = begin; i < words.size(); ++i) columns.push_back(columns.back() + 1 + text::columns(words[i].text));
  const size_t target = columns.back() / cues;
  size_t best = longest, best_cost = SIZE_MAX;
  for (size_t end = begin + 1; end <= longest; ++end) {
    const size_t here = columns[end - begin];
    const size_t cost = std::max(here, target) - std::min(here, target) +
                        (text::ends_in_punctuation(words[end - 1].text) ? 0 : kNoPhrase);
    if (cost >= best_cost) continue;
    best = end;
    best_cost = cost;
  }
  return best;
}

// Numbers of a length that a reader can bear: milliseconds, and four digits of a confidence.
double rounded_s(double seconds) { return std::round(seconds * 1e3) / 1e3; }
double rounded_share(float share) { return std::round(static_cast<double>(share) * 1e4) / 1e4; }

// Escapes characters that would end a cue or begin a tag.
std::string vtt_escaped(std::string_view line) {
  std::string out;
  for (const char c : line) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
  return out;
}

}  // namespace

Result<TranscriptFormat> parse_transcript_format(std::string_view name) {
  if (name == "text") return TranscriptFormat::kText;
  if (name == "json") return TranscriptFormat::kJson;
  if (name == "srt") return TranscriptFormat::kSrt;
  if (name == "vtt") return TranscriptFormat::kVtt;
  return fail(Code::kInvalidArgument, "there is no transcript format '{}'; use text, json, srt or vtt", name);
}

Result<TranscriptTimes> parse_transcript_times(std::string_view name) {
  if (name.empty()) return TranscriptTimes::kNone;
  if (name == "segment") return TranscriptTimes::kSegment;
  if (name == "word") return TranscriptTimes::kWord;
  if (name == "token") return TranscriptTimes::kToken;
  return fail(Code::kInvalidArgument, "there are no timestamps of a '{}'; use segment, word or token", name);
}

const char* transcript_ending(TranscriptFormat format) {
  switch (format) {
    case TranscriptFormat::kText: return ".txt";
    case TranscriptFormat::kJson: return ".json";
    case TranscriptFormat::kSrt: return ".srt";
    case TranscriptFormat::kVtt: return ".vtt";
  }
  return ".txt";
}

std::vector<Cue> make_cues(const TranscriptSegment& segment, TranscriptTimes times, const CueLimits& all_limits) {
  CueLimits limits = all_limits;
  if (segment.channel) limits.max_columns -= std::min(limits.max_columns - 1, kLabelColumns);
  const std::vector<TranscriptWord> all = timed_words(segment, times, limits);
  std::vector<Cue> cues;
  for (size_t first = 0, next = 0; first < all.size(); first = next) {
    next = pause_after(all, first, limits.max_pause_s);
    const std::span words = std::span(all).subspan(first, next - first);
    for (size_t begin = 0, end = 0; begin < words.size(); begin = end) {
      end = times >= TranscriptTimes::kWord ? begin + 1 : cue_end(words, begin, limits);
      cues.push_back({.start_s = words[begin].start_s,
                      .end_s = words[end - 1].end_s,
                      .lines = text::balanced_lines(texts(words, begin, end), limits.max_columns),
                      .channel = segment.channel});
    }
  }
  return cues;
}

void make_cues_last(std::span<Cue> cues, double from_s, double until_s) {
  constexpr int64_t kRoomMs = 20;  // a shorter one is no time to read
  struct Span {
    int64_t begin, end;
  };
  std::vector<Span> spans;
  const int64_t from = milliseconds(from_s);
  int64_t earliest = from, latest = milliseconds(until_s);
  for (const Cue& cue : cues) {
    spans.push_back({milliseconds(cue.start_s), milliseconds(cue.end_s)});
    latest = std::max(latest, spans.back().end);
  }
  const auto count = static_cast<int64_t>(std::max<size_t>(1, cues.size()));
  const int64_t shortest = std::clamp((latest - earliest) / count, int64_t{1}, kShortestCueMs);
  for (size_t i = 0; i < spans.size(); ++i) {
    spans[i].begin = std::max(spans[i].begin, earliest);
    if (spans[i].end <= spans[i].begin) {
      spans[i].end = spans[i].begin + shortest;
      if (i + 1 < spans.size() && spans[i + 1].begin >= spans[i].begin + kRoomMs)
        spans[i].end = std::min(spans[i].end, spans[i + 1].begin);
    }
    earliest = spans[i].end;
  }
  for (size_t i = spans.size(); i-- > 0 && spans[i].end > latest; latest = spans[i].begin) {
    spans[i].begin = std::clamp(latest - shortest, from + static_cast<int64_t>(i), spans[i].begin);
    spans[i].end = std::max(latest, spans[i].begin + 1);
  }
  for (size_t i = 0; i < spans.size(); ++i) {
    if (spans[i].begin != milliseconds(cues[i].start_s)) cues[i].start_s = static_cast<double>(spans[i].begin) / 1000;
    if (spans[i].end != milliseconds(cues[i].end_s)) cues[i].end_s = static_cast<double>(spans[i].end) / 1000;
  }
}

std::string srt_time(double seconds) { return time_text(seconds, ','); }
std::string vtt_time(double seconds) { return time_text(seconds, '.'); }

std::string srt_cue(size_t number, const Cue& cue) {
  std::string out = fmt::format("{}\n{} --> {}\n", number, srt_time(cue.start_s), srt_time(cue.end_s));
  if (cue.channel) out += fmt::format("[{}] ", *cue.channel);
  for (const std::string& line : cue.lines) out += line + '\n';
  return out + '\n';
}

std::string vtt_cue(const Cue& cue) {
  std::string out = fmt::format("{} --> {}\n", vtt_time(cue.start_s), vtt_time(cue.end_s));
  if (cue.channel) out += fmt::format("<v channel {}>", *cue.channel);
  for (const std::string& line : cue.lines) out += vtt_escaped(line) + '\n';
  return out + '\n';
}

std::string segment_text(const TranscriptSegment& segment, TranscriptTimes times) {
  const std::string label = label_of(segment);
  const auto line = [&](const auto& part) {
    return fmt::format("[{} --> {}] {}{}\n", vtt_time(part.start_s), vtt_time(part.end_s), label, part.text);
  };
  if (times == TranscriptTimes::kSegment) return line(segment);
  if (times == TranscriptTimes::kNone) return label + segment.text + '\n';
  std::string out;
  for (const TranscriptWord& word : segment.words) {
    if (times == TranscriptTimes::kWord) out += line(word);
    if (times == TranscriptTimes::kToken)
      for (const TranscriptToken& token : word.timed_tokens) out += line(token);
  }
  return out;
}

std::string format_transcript(const Transcript& transcript, TranscriptFormat format, TranscriptTimes times) {
  if (format == TranscriptFormat::kJson) return to_json(transcript, times).dump() + '\n';
  const bool has_channels = std::ranges::any_of(
      transcript.segments, [](const TranscriptSegment& segment) { return segment.channel.has_value(); });
  if (format == TranscriptFormat::kText && times == TranscriptTimes::kNone && !has_channels)
    return transcript.text() + '\n';
  std::string out(format == TranscriptFormat::kVtt ? kVttHeader : "");
  std::map<int, std::vector<Cue>> of_channels;  // speakers may speak at once
  for (const TranscriptSegment& segment : transcript.segments) {
    if (format == TranscriptFormat::kText)
      out += segment_text(segment, times);
    else
      std::ranges::move(make_cues(segment, times), std::back_inserter(of_channels[segment.channel.value_or(0)]));
  }
  std::vector<Cue> cues;
  for (auto& [channel, own] : of_channels) {
    make_cues_last(own, 0, transcript.audio_s);
    std::ranges::move(own, std::back_inserter(cues));
  }
  if (of_channels.size() > 1) std::ranges::stable_sort(cues, {}, &Cue::start_s);
  size_t number = 0;
  for (const Cue& cue : cues) out += format == TranscriptFormat::kSrt ? srt_cue(++number, cue) : vtt_cue(cue);
  return out;
}

Json to_json(const std::vector<std::string>& sentences) {
  Json::Array items;
  for (const std::string& sentence : sentences) items.emplace_back(sentence);
  return items;
}

Json to_json(const TranscriptWord& word) {
  Json json;
  json.set("word", word.text).set("start_s", rounded_s(word.start_s)).set("end_s", rounded_s(word.end_s));
  json.set("confidence", rounded_share(word.confidence));
  Json::Array tokens;
  for (const TranscriptToken& token : word.timed_tokens) {
    Json item;
    item.set("id", static_cast<int>(token.id)).set("text", token.text);
    item.set("start_s", rounded_s(token.start_s)).set("end_s", rounded_s(token.end_s));
    item.set("confidence", rounded_share(token.confidence));
    tokens.push_back(std::move(item));
  }
  if (!tokens.empty()) json.set("tokens", std::move(tokens));
  return json;
}

Json to_json(const TranscriptSegment& segment, TranscriptTimes times) {
  Json json;
  json.set("text", segment.text).set("start_s", rounded_s(segment.start_s)).set("end_s", rounded_s(segment.end_s));
  json.set("confidence", rounded_share(segment.confidence));
  if (segment.channel) json.set("channel", *segment.channel);
  Json::Array tokens;
  for (const int32_t token : segment.tokens) tokens.emplace_back(static_cast<int>(token));
  json.set("tokens", std::move(tokens));
  Json::Array words;
  for (const TranscriptWord& word : segment.words) {
    words.push_back(to_json(word));
  }
  if (times >= TranscriptTimes::kWord || !words.empty()) json.set("words", std::move(words));
  return json;
}

Json to_json(const Transcript& transcript, TranscriptTimes times) {
  Json json;
  json.set("language", transcript.language)
      .set("audio_seconds", rounded_s(transcript.audio_s))
      .set("text", transcript.text());
  Json::Array segments;
  for (const TranscriptSegment& segment : transcript.segments) segments.push_back(to_json(segment, times));
  json.set("segments", std::move(segments));
  if (!transcript.warnings.empty()) json.set("warnings", to_json(transcript.warnings));
  return json;
}

Json to_json(const RecognitionEvent& event, TranscriptTimes times) {
  Json json;
  json.set("segment", static_cast<size_t>(event.segment)).set("final", event.is_final);
  if (event.reason) json.set("reason", reason_name(*event.reason));
  json.set("stable_bytes", event.stable_bytes).set("latency_ms", rounded_s(event.latency_ms));
  const Json result = to_json(event.result, times);
  for (const JsonMember& member : *result.object()) json.set(member.key, member.value);
  return json;
}

}  // namespace syrinx
