// PortAudio as playback and capture share it: started, silenced, its devices by name.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

namespace syrinx {

enum class SoundDirection { kInput, kOutput };

// Started as long as it lives; several may.  Nothing is ever printed, whatever the sound system would like to say.
class SoundSystem {
 public:
  static Result<std::unique_ptr<SoundSystem>> start();
  ~SoundSystem();
  SoundSystem(const SoundSystem&) = delete;
  SoundSystem& operator=(const SoundSystem&) = delete;

  // PortAudio's number of the device whose name has `wanted` in it; of the default when that is empty.  kUnavailable
  // names the devices that there are.
  Result<int> find_device(const std::string& wanted, SoundDirection direction) const;

 private:
  SoundSystem() = default;
};

}  // namespace syrinx
