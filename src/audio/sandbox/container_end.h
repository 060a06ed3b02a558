// Whether a file ends before what it announces.  FFmpeg takes such a file for a shorter one.
#pragma once

#include "audio/guards/sound_container.h"
#include "audio/sandbox/file_view.h"

namespace syrinx {

// By the sizes of the outermost parts alone.  A recording of unknown length (live WebM, fragmented MP4, AAC) may end
// behind any of its parts.  What cannot be followed is left to the decoder.
bool is_cut_off(FileView& file, SoundContainer container);

}  // namespace syrinx
