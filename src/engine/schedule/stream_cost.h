// How much of the team's time the live streams of one engine need, by what its last steps took: an average where a step
// serves one stream, and a line through the lengths of steps that serve several at once, as one more stream in a step
// costs less than the first one.  Pure: no clock, no lock.
#pragma once

#include "base/step_counts.h"

namespace syrinx {

class StreamCost {
 public:
  // Steps hardly count after so many seconds of the engine's own work, or so many of audio.
  static constexpr double kWindowS = 3, kAudioWindowS = 60;
  // Streams in silence cost next to nothing and may speak at any moment: a stream costs at least this part of what was
  // noted first, the warm-up.
  static constexpr double kLeastPart = 1.0 / 8;

  // More live steps, and the seconds of audio that all streams together made or heard by them.
  void note(const StepFigures& more, double audio_s);
  // The same of a trial before the first request: seconds of work for so much audio.
  void calibrate(double work_s, double audio_s);

  // Share of the team's time that so many streams need at the pace of speech; 0 as long as nothing was noted.
  double load(double streams) const;

 private:
  double measured(double streams) const;
  double step_s(double streams) const;
  void set_least();

  double least_ = 0;  // load of a stream
  double audio_s_ = 0;
  double other_s_ = 0;  // of work in steps that serve one stream
  // As RoundFigures, of steps that serve several.
  double rounds_ = 0, members_ = 0, squares_ = 0, rounds_s_ = 0, rounds_members_s_ = 0;
};

}  // namespace syrinx
