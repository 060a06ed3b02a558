// What the tests of transducers share: the small checkpoints of tests/data/transducer.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "models/transducer/checkpoint.h"

namespace syrinx::transducer {

inline std::string data(const std::string& name) { return std::string(SYRINX_TEST_DATA) + "/transducer/" + name; }

// Ends the test program where it cannot be opened: nothing could be tested.
inline Checkpoint opened(const std::string& name) {
  Result<Checkpoint> checkpoint = Checkpoint::open(data(name));
  if (!checkpoint) {
    ADD_FAILURE() << checkpoint.error().message;
    std::abort();
  }
  return std::move(*checkpoint);
}

}  // namespace syrinx::transducer
