# cmake -DOUTPUT=x.cc -DFILE=f -DHEADER=h -DNAMESPACE=n -DNAME=v -P EmbedBytes.cmake
# Writes a C++ source with the bytes of a file: NAMESPACE::NAME and NAME_bytes.
file(READ "${FILE}" digits HEX)
string(LENGTH "${digits}" length)
math(EXPR bytes "${length} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," numbers "${digits}")
string(REGEX REPLACE "(................................................................................)" "\\1\n    " numbers "${numbers}")
file(WRITE "${OUTPUT}"
     "// Made by cmake/EmbedBytes.cmake.\n#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n\nconst unsigned char ${NAME}[] = {\n    ${numbers}\n};\nconst size_t ${NAME}_bytes = ${bytes};\n\n}  // namespace ${NAMESPACE}\n")
