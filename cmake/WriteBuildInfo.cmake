# Run at each build: writes OUTPUT (a header) and touches it only when the commit or the version changed.
find_program(GIT git)
set(commit unknown)
if(GIT)
  execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse --short=12 HEAD OUTPUT_VARIABLE head
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    execute_process(COMMAND ${GIT} -C ${SOURCE} diff --quiet HEAD RESULT_VARIABLE changed ERROR_QUIET)
    set(commit ${head})
    if(changed)
      string(APPEND commit "+")
    endif()
  endif()
endif()
set(text "// Written by cmake/WriteBuildInfo.cmake.
#pragma once
#define SYRINX_BUILD_VERSION \"${VERSION}\"
#define SYRINX_BUILD_COMMIT \"${commit}\"
#define SYRINX_BUILD_TYPE \"${TYPE}\"
")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
