#include "cli/command.h"

namespace syrinx::cli {

void add_commands(Command& tree) {
  add_speak(tree);
  add_transcribe(tree);
  add_chat(tree);
  add_serve(tree);
  add_voices(tree);
  add_doctor(tree);
  add_inspect(tree);
  add_generate(tree);
  add_pull(tree);
  add_list(tree);
  add_rm(tree);
}

}  // namespace syrinx::cli
