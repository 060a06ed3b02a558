# cmake -DOUTPUT=x.cc -DFILES="a|b" -P EmbedFiles.cmake
# Writes a C++ source with an array of (file name, content) pairs: syrinx::embedded_catalogue.
set(body "// Made by cmake/EmbedFiles.cmake.\n#include \"store/embedded_catalogue.h\"\n\nnamespace syrinx {\n\nconst EmbeddedFile embedded_catalogue[] = {\n")
set(count 0)
string(REPLACE "|" ";" FILES "${FILES}")
foreach(path IN LISTS FILES)
  file(READ "${path}" text)
  get_filename_component(name "${path}" NAME)
  string(APPEND body "    {\"${name}\", R\"embedded_text(${text})embedded_text\"},\n")
  math(EXPR count "${count} + 1")
endforeach()
string(APPEND body "};\nconst size_t embedded_catalogue_count = ${count};\n\n}  // namespace syrinx\n")
file(WRITE "${OUTPUT}" "${body}")
