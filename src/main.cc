// syrinx: speaks and listens from the command line.
#include <cstdlib>
#include <exception>
#include <new>
#include <string>

#include "base/log.h"
#include "base/signals.h"
#include "base/version.h"
#include "bench/suite/bench_kernels.h"
#include "cli/command.h"
#include "cli/licences.h"
#include "cli/output.h"
#include "kernels/describe_targets.h"
#include "kernels/dispatch.h"

namespace {

using syrinx::Code;

int report(Code code, const char* sentence) {
  syrinx::cli::note(sentence);
  return syrinx::exit_status(code);
}

syrinx::Status print_version() {
  return syrinx::cli::print(fmt::format("syrinx {} ({}, {})\ncompiler {}\ntargets  {}; {} chosen\n", syrinx::version(),
                                        syrinx::commit(), syrinx::build_type(), syrinx::compiler(),
                                        syrinx::kernels::describe_built_targets(),
                                        syrinx::kernels::describe_chosen_target()));
}

// One of another program's levels is told and left.
void set_log_level_from_environment() {
  const char* const name = std::getenv("SYRINX_LOG");
  if (name == nullptr || *name == '\0') return;
  const auto level = syrinx::parse_log_level(name);
  if (level)
    syrinx::set_log_level(*level);
  else
    syrinx::log_warning("SYRINX_LOG: {}", level.error().message);
}

syrinx::Status run(int argc, char** argv) {
  syrinx::cli::CommandTree tree(
      "syrinx", "Real-time speech on an ordinary processor: text to speech and speech to text, offline.");
  syrinx::cli::Command root = tree.root();
  root.flag("--version", print_version, "Version, commit, compiler and vector targets");
  std::string cpu;
  root.option("--cpu", cpu, "Use no vector target above this one (also: SYRINX_CPU)").type("TARGET");
  root.flag("--licences", syrinx::cli::print_licences,
            "Licences of Syrinx, of its libraries and of each installed model");
  syrinx::cli::add_commands(root);
  syrinx::bench::add_bench(root);
  set_log_level_from_environment();
  SYRINX_TRY_VOID(syrinx::kernels::limit_cpu_from_environment());
  SYRINX_TRY(const syrinx::cli::Action action, tree.parse(argc, argv));
  if (!cpu.empty()) SYRINX_TRY_VOID(syrinx::kernels::limit_cpu(cpu));
  return action();
}

int run_and_report(int argc, char** argv) {
  const syrinx::Status status = run(argc, argv);
  if (status) return 0;
  const int exit_status = report(status.error().code, status.error().message.c_str());
  if (status.error().code != Code::kCancelled) return exit_status;
  // A thread may still be in the middle of its work: nothing that it uses is taken down.  Shells expect 128 and the
  // signal's number of a program that a signal has ended.
  std::_Exit(syrinx::cancel_signal() != 0 ? 128 + syrinx::cancel_signal() : exit_status);
}

}  // namespace

int main(int argc, char** argv) {
  syrinx::install_signal_handlers();
  try {
    return run_and_report(argc, argv);
  } catch (const std::bad_alloc&) {
    syrinx::cli::note_no_memory();
    return syrinx::exit_status(Code::kLimitExceeded);
  } catch (const std::exception& error) {
    return report(Code::kInternal, error.what());
  }
}
