// Runs a pass of a decoder that has begun (decoder.h) on a team, in one job or in several between which other work may
// have the team.  The numbers are the same either way.
#pragma once

#include <algorithm>

#include "nn/decoder.h"

namespace syrinx::nn {

// Where other work may have the team within a pass.
struct PassCut {
  BetweenJobs between = {};  // called behind each so many layers; empty: the pass is one job
  size_t layers = 1;
};

// Each member calls before(seat), walks through the `layers` of the decoder, and calls after(seat); both may have
// stages of their own, before() such as make the decoder's input, after() such as read its output.
template <class Before, class After>
void run_pass(Runner& runner, Crew& crew, Decoder& decoder, size_t layers, const PassCut& cut, const Before& before,
              const After& after) {
  const size_t most = cut.between ? std::max<size_t>(cut.layers, 1) : layers;
  for (Range job{.begin = 0, .end = std::min(most, layers)};; job = {job.end, std::min(job.end + most, layers)}) {
    const bool is_first = job.begin == 0, is_last = job.end == layers;
    runner.team().run([&](int member) {
      Crew::Seat seat = crew.everyone(member);
      if (is_first) before(seat);
      decoder.work(seat, job);
      if (is_last) after(seat);
    });
    if (is_last) break;
    cut.between();
  }
  decoder.end();
}

}  // namespace syrinx::nn
