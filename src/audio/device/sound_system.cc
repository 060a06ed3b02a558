#include "audio/device/sound_system.h"

#include <dlfcn.h>
#include <portaudio.h>

#include <string_view>

namespace syrinx {
namespace {

void ignore_alsa(const char*, int, const char*, int, const char*, ...) {}

// ALSA and JACK, which PortAudio brings, print what they do not find to standard error.  Both let a program replace the
// printer; they are looked up by name so that we need not link them, and are left alone where they are not there.
void silence_sound_system() {
  using AlsaPrinter = void (*)(const char*, int, const char*, int, const char*, ...);
  using SetAlsaPrinter = int (*)(AlsaPrinter);
  if (const auto set = reinterpret_cast<SetAlsaPrinter>(::dlsym(RTLD_DEFAULT, "snd_lib_error_set_handler"))) {
    set(&ignore_alsa);
  }
  using JackPrinter = void (*)(const char*);
  using SetJackPrinter = void (*)(JackPrinter);
  for (const char* name : {"jack_set_error_function", "jack_set_info_function"}) {
    if (const auto set = reinterpret_cast<SetJackPrinter>(::dlsym(RTLD_DEFAULT, name))) set([](const char*) {});
  }
}

struct Words {
  const char* none;     // when nothing is named
  const char* unknown;  // when what is named is not there
};
constexpr Words kOfOutput = {"this machine has no loudspeaker that programs may use; write to a file instead",
                             "output"};
constexpr Words kOfInput = {"this machine has no microphone that programs may use; give a file instead", "input"};

}  // namespace

Result<std::unique_ptr<SoundSystem>> SoundSystem::start() {
  silence_sound_system();
  if (const PaError error = Pa_Initialize(); error != paNoError)
    return fail(Code::kUnavailable, "the sound system does not start: {}", Pa_GetErrorText(error));
  return std::unique_ptr<SoundSystem>(new SoundSystem());
}

SoundSystem::~SoundSystem() { Pa_Terminate(); }

Result<int> SoundSystem::find_device(const std::string& wanted, SoundDirection direction) const {
  const bool is_input = direction == SoundDirection::kInput;
  const Words& words = is_input ? kOfInput : kOfOutput;
  if (wanted.empty()) {
    const PaDeviceIndex standard = is_input ? Pa_GetDefaultInputDevice() : Pa_GetDefaultOutputDevice();
    if (standard != paNoDevice) return standard;
    return fail(Code::kUnavailable, "{}", words.none);
  }
  std::string known;
  for (PaDeviceIndex i = 0; i < Pa_GetDeviceCount(); ++i) {
    const PaDeviceInfo* const info = Pa_GetDeviceInfo(i);
    if (info == nullptr || (is_input ? info->maxInputChannels : info->maxOutputChannels) < 1) continue;
    if (std::string_view(info->name).find(wanted) != std::string_view::npos) return i;
    known += known.empty() ? "" : ", ";
    known += info->name;
  }
  if (known.empty()) known = "none";
  return fail(Code::kUnavailable, "there is no sound {} '{}'; this machine has: {}", words.unknown, wanted, known);
}

}  // namespace syrinx
