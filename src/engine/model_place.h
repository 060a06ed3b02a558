// Where a model is looked for: what the table's families recognise.
#pragma once

#include <string>

namespace syrinx {

// A checkpoint or the folder of one, which is there.
struct ModelPlace {
  std::string name;  // as the user wrote it
  std::string path;  // of a file or a folder
  bool is_folder = false;
  std::string models_folder;  // where other models are installed
};

}  // namespace syrinx
