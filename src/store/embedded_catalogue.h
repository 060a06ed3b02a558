// The files of catalogue/ as they were when this binary was built; the definition is generated
// (cmake/EmbedFiles.cmake).
#pragma once

#include <cstddef>

namespace syrinx {

struct EmbeddedFile {
  const char* name;
  const char* text;
};
extern const EmbeddedFile embedded_catalogue[];
extern const size_t embedded_catalogue_count;

}  // namespace syrinx
