# Flags and helper functions shared by every folder.
#   syrinx_library(NAME SOURCES ... LINKS ...)   one static library a folder: target syrinx_NAME.  Without SOURCES it is
#                                                an interface, until the folder has its first source file
#   syrinx_test(NAME SOURCES ... LINKS ... [LABELS real] [TIMEOUT seconds])
#       one gtest binary, discovered by ctest with the label of its folder.  `real`: needs the installed voice.
#   syrinx_fuzz(NAME LINKS ...)                  fuzz/NAME_fuzz.cc with the seeds of fuzz/corpus/NAME: a libFuzzer binary
#       where SYRINX_FUZZ is on, else a program that feeds it the seeds and their beginnings; ctest NAME_replay runs either
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(SYRINX_CCACHE_PROGRAM ccache)
if(SYRINX_CCACHE AND SYRINX_CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${SYRINX_CCACHE_PROGRAM})
endif()

add_library(syrinx_options INTERFACE)
# -ffp-contract=off: only an explicit MulAdd fuses, so a scalar tail equals its twin on every target.
target_compile_options(syrinx_options INTERFACE -Wall -Wextra -Werror -fno-omit-frame-pointer -ffp-contract=off -pthread -Wsuggest-override)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 at -O3 sees overlapping and endless copies inside its own strings (its bugs 105651, 105329).
  target_compile_options(syrinx_options INTERFACE -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
endif()
target_include_directories(syrinx_options INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
if(SYRINX_SANITIZE)
  # Clang 14's UBSan cannot encode function types of coroutines.
  target_compile_options(syrinx_options INTERFACE -fsanitize=${SYRINX_SANITIZE} -fno-sanitize-recover=all
                         -fno-sanitize=function)
  target_link_options(syrinx_options INTERFACE -fsanitize=${SYRINX_SANITIZE})
endif()
# Threads that run the same line write to the same counter, which costs a kernel's loops twenty times what they compute:
# nothing is counted in the headers of others, whose functions these loops are made of, and no fuzzing guided by kernels.
if(SYRINX_FUZZ)  # src/ and the targets: nothing fuzzes the tests
  set(syrinx_guide_fuzzing -fsanitize=fuzzer-no-link -fsanitize-coverage-ignorelist=${CMAKE_SOURCE_DIR}/cmake/unguided_sources.txt)
endif()
if(SYRINX_COVERAGE)
  set(syrinx_count_lines -fprofile-instr-generate -fcoverage-mapping  # of src/ alone: the tests cost a tenth less
      -fprofile-list=${CMAKE_SOURCE_DIR}/cmake/uncounted_sources.txt)
  target_link_options(syrinx_options INTERFACE -fprofile-instr-generate)
endif()
# Checked builds need not compile each kernel for every processor: what differs is the width, and each costs seconds.
if(SYRINX_LEAVE_OUT_TARGETS)
  target_compile_definitions(syrinx_options INTERFACE "HWY_DISABLED_TARGETS=(${SYRINX_LEAVE_OUT_TARGETS})")
endif()

# What nearly every file includes, parsed once a build.  A file still includes what it uses: clang-tidy reads without.
set(syrinx_precompiled <fmt/format.h> <algorithm> <array> <functional> <memory> <mutex> <optional> <span> <string>
    <string_view> <tl/expected.hpp> <utility> <vector>)
set(syrinx_test_options -O1)  # what a test costs is mostly its own compilation; at -O0 it runs longer than that saves
set(syrinx_precompiled_tests ${syrinx_precompiled} <gmock/gmock.h> <gtest/gtest.h> <fstream> <filesystem> <random>)

function(syrinx_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  if(ARG_SOURCES)
    add_library(syrinx_${name} STATIC ${ARG_SOURCES})
    target_link_libraries(syrinx_${name} PUBLIC syrinx_options ${ARG_LINKS})
    target_compile_options(syrinx_${name} PRIVATE ${syrinx_count_lines} ${syrinx_guide_fuzzing})
    if(name STREQUAL "base")
      target_precompile_headers(syrinx_base PRIVATE ${syrinx_precompiled})
    else()
      target_precompile_headers(syrinx_${name} REUSE_FROM syrinx_base)
    endif()
  else()
    add_library(syrinx_${name} INTERFACE)
    target_link_libraries(syrinx_${name} INTERFACE syrinx_options ${ARG_LINKS})
  endif()
endfunction()

function(syrinx_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LINKS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 1200)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINKS} syrinx_options GTest::gtest_main GTest::gmock)
  # An executable owns the tests' precompiled headers, as code for executables and for libraries differs.
  if(NOT TARGET syrinx_empty_test)
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/empty_test.cc CONTENT "int main() { return 0; }\n")
    add_executable(syrinx_empty_test ${CMAKE_BINARY_DIR}/empty_test.cc)
    target_link_libraries(syrinx_empty_test PRIVATE syrinx_options fmt::fmt tl::expected GTest::gtest_main GTest::gmock)
    target_compile_options(syrinx_empty_test PRIVATE ${syrinx_test_options})
    target_precompile_headers(syrinx_empty_test PRIVATE ${syrinx_precompiled_tests})
  endif()
  target_compile_options(${name} PRIVATE ${syrinx_test_options})
  target_precompile_headers(${name} REUSE_FROM syrinx_empty_test)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})  # "tests/...", shared by tests of several folders
  target_compile_definitions(${name} PRIVATE SYRINX_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data")
  get_filename_component(label ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  # One word, models-real: discovery takes no list of labels, and ctest -L and -LE look for parts of a label.
  list(JOIN ARG_LABELS "-" more_labels)
  if(more_labels)
    string(APPEND label "-${more_labels}")
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 600
                       PROPERTIES LABELS ${label} TIMEOUT ${ARG_TIMEOUT})
endfunction()

function(syrinx_fuzz name)
  cmake_parse_arguments(ARG "" "" "LINKS" ${ARGN})
  set(source ${CMAKE_SOURCE_DIR}/fuzz/${name}_fuzz.cc)
  set(corpus ${CMAKE_SOURCE_DIR}/fuzz/corpus/${name})
  if(SYRINX_FUZZ)
    add_executable(${name}_fuzz ${source})
    target_link_libraries(${name}_fuzz PRIVATE ${ARG_LINKS} syrinx_options)
    target_compile_options(${name}_fuzz PRIVATE ${syrinx_guide_fuzzing})
    target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
    add_test(NAME ${name}_replay COMMAND ${name}_fuzz -runs=0 ${corpus})
  else()
    add_executable(${name}_replay ${source} ${CMAKE_SOURCE_DIR}/fuzz/replay_main.cc)
    target_link_libraries(${name}_replay PRIVATE ${ARG_LINKS} syrinx_options)
    add_test(NAME ${name}_replay COMMAND ${name}_replay ${corpus})
  endif()
  set_tests_properties(${name}_replay PROPERTIES LABELS fuzz TIMEOUT 1200)
endfunction()
if(SYRINX_TESTS)
  include(GoogleTest)
endif()
