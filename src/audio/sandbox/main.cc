// syrinx-decode: decodes one recording for another program of Syrinx, in a sandbox.
#include <unistd.h>

#include "audio/sandbox/run_decoder.h"

int main() {
  // Nothing is taken down: what a hostile file has left behind is not walked again.
  ::_exit(syrinx::run_decoder([](const syrinx::Libav& libav, const syrinx::DecodeOrder& order,
                                 syrinx::ParentLink& parent) { return syrinx::decode_libav(libav, order, parent); }));
}
