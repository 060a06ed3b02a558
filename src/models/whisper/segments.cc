#include "models/whisper/segments.h"

namespace syrinx::whisper {

WindowCut cut_window(const Tokens& tokens, std::span<const int32_t> ids, size_t frames) {
  WindowCut cut;
  const auto is_time = [&](size_t i) { return tokens.is_time(ids[i]); };
  const auto seconds = [&](size_t i) { return tokens.is_time(ids[i]) ? tokens.time(ids[i]) * kSecondsPerTime : 0.0; };
  const size_t n = ids.size();
  cut.ends_with_time = n >= 2 && !is_time(n - 2) && is_time(n - 1);
  cut.frames = frames;

  std::vector<size_t> ends;  // a piece ends between a closing and an opening time
  for (size_t i = 1; i < n; ++i)
    if (is_time(i - 1) && is_time(i)) ends.push_back(i);
  if (!ends.empty()) {
    if (cut.ends_with_time) ends.push_back(n);
    for (size_t begin = 0; const size_t end : ends) {
      cut.pieces.push_back({begin, end, seconds(begin), seconds(end - 1)});
      begin = end;
    }
    // The unfinished piece is heard again in the next window.
    if (!cut.ends_with_time) cut.frames = static_cast<size_t>(tokens.time(ids[ends.back() - 1])) * kFramesPerTime;
    return cut;
  }
  WindowCut::Piece whole = {0, n, 0, static_cast<double>(frames) * kSecondsPerFrame};
  for (size_t i = n; i-- > 0;) {
    if (!is_time(i)) continue;
    if (tokens.time(ids[i]) > 0) whole.end_s = seconds(i);
    break;
  }
  cut.pieces.push_back(whole);
  return cut;
}

}  // namespace syrinx::whisper
