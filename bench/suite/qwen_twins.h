// The work of a frame that each step of a published port's journal saves on this processor (spec qwen3-tts.md, section
// 8.3): by the port's way before that step, which the product never had, beside the product's own.  All of it stands
// here, none in the product; matrices are left out, as both ways multiply the same.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/thread_team.h"
#include "bench/suite/rounds.h"
#include "models/qwen_tts/config.h"

namespace syrinx::bench {

struct QwenTwin {
  std::string name;
  Times before, product;  // ms a frame; the latter may be all zeros, where nothing takes the place of what is saved
};

// A frame behind so many others.
std::vector<QwenTwin> measure_qwen_twins(const qwen_tts::Config& config, const qwen_tts::GenerationConfig& draws,
                                         size_t frames, ThreadTeam& team);

}  // namespace syrinx::bench
