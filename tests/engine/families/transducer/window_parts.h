// What a stream in windows needs beside its model, as a recogniser has it.
#pragma once

#include <cstddef>

#include "engine/families/transducer/transducer_frames.h"
#include "engine/schedule/scheduler.h"

namespace syrinx {

struct WindowParts {
  WindowParts(const transducer::Model& model, size_t threads)
      : team(threads),
        runner(team),
        encoder(model.encoder(), runner),
        decoder(model.decoder(), runner, {}, 1, FrameSource::kFramesAtOnce),
        track(*model.decoder()) {}
  WindowTools tools() { return {queue, runner, encoder, decoder, room}; }

  ThreadTeam team;
  nn::Runner runner;
  Scheduler scheduler;
  StepQueue queue{scheduler};
  transducer::Encoder encoder;
  transducer::HeadDecoder decoder;
  SoundRoom room;
  LabelTrack track;
};

}  // namespace syrinx
