// syrinx: speaks from the command line.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#include "base/signals.h"
#include "cli/command.h"
#include "cli/licences.h"
#include "engine/version.h"
#include "kernels/dispatch.h"

namespace {

using syrinx::Code;

int report(Code code, const char* sentence) {
  std::fprintf(stderr, "syrinx: %s\n", sentence);
  return syrinx::exit_status(code);
}

std::string version_text() {
  return fmt::format("syrinx {} ({}, {})\ncompiler {}\ntargets  {}; {} chosen", syrinx::version(), syrinx::commit(),
                     syrinx::build_type(), syrinx::compiler(), syrinx::built_targets(), syrinx::chosen_target());
}

// Help and version come out of the parser as exceptions of success; anything else is a mistake in the arguments.
int report(const CLI::App& tree, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return tree.exit(error);
  std::fprintf(stderr, "syrinx: %s; `syrinx --help` lists the commands and `syrinx COMMAND --help` their options\n",
               error.what());
  return syrinx::exit_status(Code::kInvalidArgument);
}

int run(int argc, char** argv) {
  CLI::App tree("Real-time speech on an ordinary processor: text to speech, offline.", "syrinx");
  tree.require_subcommand(0, 1);
  tree.set_version_flag("--version", version_text, "Version, commit, compiler and vector targets");
  std::string cpu;
  tree.add_option("--cpu", cpu, "Use no vector target above this one (also: SYRINX_CPU)")->type_name("TARGET");
  syrinx::cli::Action chosen;
  tree.add_flag_callback(
      "--licences", [&chosen] { chosen = syrinx::cli::print_licences; },
      "Licences of Syrinx, of its libraries and of each installed model");
  syrinx::cli::add_commands(tree, chosen);
  syrinx::Status status = syrinx::kernels::limit_cpu_from_environment();
  if (!status) return report(status.error().code, status.error().message.c_str());
  try {
    tree.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report(tree, error);
  }
  if (!cpu.empty()) status = syrinx::kernels::limit_cpu(cpu);
  if (status && !chosen)
    status = syrinx::fail(Code::kInvalidArgument, "no command was given; `syrinx --help` lists them");
  if (status) status = chosen();
  if (status) return 0;
  const int exit_status = report(status.error().code, status.error().message.c_str());
  // After Ctrl-C a thread may still be in the middle of its work: nothing that it uses is taken down.
  if (status.error().code == Code::kCancelled) std::_Exit(exit_status);
  return exit_status;
}

}  // namespace

int main(int argc, char** argv) {
  syrinx::install_signal_handlers();
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    return report(Code::kLimitExceeded, "out of memory; close other programs or give shorter text");
  } catch (const std::exception& error) {
    return report(Code::kInternal, error.what());
  }
}
