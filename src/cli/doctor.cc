// syrinx doctor: what this machine is, what is installed, what is wrong and how to fix it.
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "audio/device/capture.h"
#include "audio/device/playback.h"
#include "base/cpu_info.h"
#include "base/memory.h"
#include "base/signals.h"
#include "base/thread_team.h"
#include "base/version.h"
#include "cli/command.h"
#include "cli/output.h"
#include "engine/families/default_models.h"
#include "engine/families/families.h"
#include "engine/families/find_chat_files.h"
#include "engine/families/find_recognition_files.h"
#include "engine/families/find_speech_files.h"
#include "engine/recognition/recogniser.h"
#include "engine/speech/speech_engine.h"
#include "engine/speech/speech_family.h"
#include "engine/speech/speech_files.h"
#include "engine/threads.h"
#include "kernels/describe_targets.h"
#include "kernels/limits.h"
#include "store/paths.h"

namespace syrinx::cli {
namespace {

constexpr uint64_t kNeededMemory = uint64_t{600} << 20;  // f32 weights and the longest piece
constexpr uint64_t kNeededDisk = uint64_t{300} << 20;    // the built-in voice and its packed weights

// Lines as they are found out; the first fault decides the exit status.
class Report {
 public:
  void line(const char* what, const std::string& value) { text_ += fmt::format("{:<11}{}\n", what, value); }
  // Works, but not as it could.
  void advice(const std::string& sentence) { text_ += fmt::format("{:<11}note: {}\n", "", sentence); }
  void fault(Code code, const std::string& sentence) {
    text_ += fmt::format("{:<11}WRONG: {}\n", "", sentence);
    if (!first_) first_ = Error{code, sentence};
    ++faults_;
  }
  Status finish() const {
    SYRINX_TRY_VOID(print(text_ + (faults_ == 0 ? "\nAll is well.\n" : "\n")));
    if (!first_) return {};
    return fail(first_->code, "{} {} to fix; the first: {}", faults_, faults_ == 1 ? "thing" : "things",
                first_->message);
  }

 private:
  std::string text_;
  std::optional<Error> first_;
  int faults_ = 0;
};

std::string gigabytes(uint64_t bytes) { return fmt::format("{:.1f} GB", static_cast<double>(bytes) * 1e-9); }

void look_at_build(Report& report) {
  report.line("build", fmt::format("syrinx {} ({}, {}), {}", version(), commit(), build_type(), compiler()));
  if (std::string_view(build_type()) != "Release")
    report.advice("not a release build: figures are lower than they could be");
}

void look_at_processor(Report& report, bool quick) {
  const CpuInfo& cpu = cpu_info();
  report.line("processor", fmt::format("{}, {} cores for this process", cpu.model, cpu.logical_cores));
  report.line("dispatch",
              fmt::format("{} of {}", kernels::describe_chosen_target(), kernels::describe_built_targets()));
  if (const char* limit = std::getenv("SYRINX_CPU"); limit != nullptr && *limit != '\0')
    report.advice(fmt::format("SYRINX_CPU={} lowers the target; unset it for full speed", limit));
  const int threads = default_threads();
  report.line("threads", fmt::format("{} by default", threads));
  if (quick) return;
  ThreadTeam team(threads);
  const kernels::MachineLimits limits = kernels::measure_limits(team);
  report.line("bandwidth", fmt::format("{:.1f} GB/s read by one thread, {:.1f} by {}", limits.read_gb_per_s.one_thread,
                                       limits.read_gb_per_s.all_threads, threads));
  report.line("arithmetic", fmt::format("{:.0f} G f32 and {:.0f} G int8 operations a second by {} threads",
                                        limits.f32_gop_per_s.all_threads, limits.int8_best().all_threads, threads));
}

void look_at_memory(Report& report) {
  const uint64_t memory = total_memory_bytes();
  report.line("memory", gigabytes(memory));
  if (memory > 0 && memory < kNeededMemory) report.advice("less than 600 MB: keep to int8 and to short sentences");
}

// Why nothing can be put into a folder that may not be there yet; empty when it can.
std::string folder_fault(const std::string& folder) {
  namespace fs = std::filesystem;
  fs::path place = folder;
  std::error_code error;
  while (!fs::exists(place, error) && place.has_relative_path()) place = place.parent_path();
  if (!fs::is_directory(place, error)) return fmt::format("'{}' is not a folder", place.string());
  if (::access(place.c_str(), W_OK | X_OK) != 0) return fmt::format("this user may not write '{}'", place.string());
  return {};
}

// False when there is no place where a model could be.
bool look_at_folders(Report& report, const UserPaths& paths) {
  const std::string models = models_folder(paths);
  report.line("models in", models);
  report.line("caches in", paths.cache);
  constexpr const char* kRemedy = "set SYRINX_HOME to a folder that this user may write";
  const std::string fault = folder_fault(models);
  std::error_code error;
  if (!fault.empty() && !std::filesystem::is_directory(models, error)) {
    report.fault(Code::kIo, fmt::format("no model can be installed in '{}': {}; {}", models, fault, kRemedy));
    return false;
  }
  if (!fault.empty()) report.advice(fmt::format("no more models can be installed: {}; {}", fault, kRemedy));
  if (const std::string cache = folder_fault(paths.cache); !cache.empty())
    report.advice(fmt::format("packed weights cannot be kept, so each start is slow: {}; {}", cache, kRemedy));
  if (const auto free = free_disk_bytes(paths.data)) {
    report.line("free disk", gigabytes(*free));
    if (*free < kNeededDisk) report.advice("less than 300 MB are free, which the built-in voice needs");
  }
  return true;
}

void look_at_parts(Report& report, const SpeechFiles& files) {
  for (const ModelPart& part : files.family->parts(files)) {
    if (!part.fault) report.line(part.title, part.value);
    if (part.fault) report.fault(part.fault->code, part.fault->message);
  }
}

void look_at_model(Report& report, const UserPaths& paths, const std::string& model) {
  const auto files = find_speech_files(model, models_folder(paths));
  if (!files) {
    report.line("model", "none");
    report.fault(files.error().code, files.error().message);
    return;
  }
  report.line("model", fmt::format("{}: {}", files->name, files->checkpoint));
  look_at_parts(report, *files);
  // Loading proves that the files are whole and that this machine runs them.
  SpeechEngineOptions options;
  options.files = *files;
  options.cache_folder = packed_folder(paths, *files);
  options.first_is_phonemes = has_knob(*files->family, "phonemes") && files->lexicon.empty();
  const auto engine = load_speech_engine(std::move(options));
  if (!engine) {
    report.fault(engine.error().code, engine.error().message);
  } else {
    report.line("loads in", fmt::format("{:.0f} ms", (*engine)->load_ms()));
  }
}

void look_at_loudspeaker(Report& report) {
  if (const auto playback = Playback::open({})) {
    report.line("speaker", "found");
  } else {
    report.line("speaker", "none");
    report.advice(playback.error().message + " (--out FILE)");
  }
}

void look_at_microphone(Report& report) {
  if (const auto capture = Capture::open({})) {
    report.line("microphone", (*capture)->device());
  } else {
    report.line("microphone", "none");
    report.advice(capture.error().message);
  }
}

// Speech can be made without one, so that none is no fault.
void look_at_recogniser(Report& report, const UserPaths& paths) {
  RecogniserOptions options;
  auto files = find_recognition_files({}, models_folder(paths));
  if (!files) {
    report.line("recogniser", "none");
    report.advice("speech cannot be transcribed yet: " + files.error().message);
    return;
  }
  report.line("recogniser", fmt::format("{}: {}", files->name, files->checkpoint));
  if (files->voice_activity.empty())
    report.advice(
        fmt::format("voice activity is not detected; fetch its model with `syrinx pull {}`", kVoiceActivityModel));
  options.cache_folder = packed_folder(paths, *files);
  options.files = std::move(*files);
  const auto recogniser = load_recogniser(std::move(options));
  if (!recogniser) {
    report.fault(recogniser.error().code, recogniser.error().message);
  } else {
    report.line("loads in", fmt::format("{:.0f} ms", (*recogniser)->load_ms()));
  }
}

// Nor is a language model needed for speech.
void look_at_language_model(Report& report, const UserPaths& paths) {
  auto files = find_chat_files({}, models_folder(paths));
  if (!files) {
    report.line("language", "none");
    report.advice("questions cannot be answered yet: " + files.error().message);
    return;
  }
  report.line("language", fmt::format("{}: {}", files->name, files->checkpoint));
  ChatEngineOptions options;
  options.cache_folder = packed_folder(paths, *files);
  options.files = std::move(*files);
  const auto engine = load_chat_engine(std::move(options));
  if (!engine) {
    report.fault(engine.error().code, engine.error().message);
  } else {
    report.line("loads in", fmt::format("{:.0f} ms", (*engine)->load_ms()));
  }
}

struct DoctorArguments {
  std::string model;
  bool quick = false;
};

Status run_doctor(const DoctorArguments& arguments) {
  Report report;
  look_at_build(report);
  look_at_processor(report, arguments.quick);
  look_at_memory(report);
  if (cancel_requested()) return fail(Code::kCancelled, "stopped while measuring");
  if (const auto paths = user_paths()) {
    if (look_at_folders(report, *paths)) {
      look_at_model(report, *paths, arguments.model);
      look_at_recogniser(report, *paths);
      look_at_language_model(report, *paths);
    }
  } else {
    report.fault(paths.error().code, paths.error().message);
  }
  look_at_loudspeaker(report);
  look_at_microphone(report);
  return report.finish();
}

}  // namespace

void add_doctor(Command& tree) {
  auto arguments = std::make_shared<DoctorArguments>();
  Command command = tree.add("doctor", "Check this machine and its models, and say how to fix what is wrong");
  command
      .option("--model", arguments->model,
              (std::string("Name of an installed model, or a path; ") + kDefaultModel + " by default").c_str())
      .type("NAME|PATH");
  command.flag("--quick", arguments->quick, "Leave out the measurement of the processor");
  command.examples("  syrinx doctor\n  syrinx doctor --quick && echo ready");
  command.run([arguments] { return run_doctor(*arguments); });
}

}  // namespace syrinx::cli
