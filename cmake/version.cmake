# Writes generated/oxgen_build.h; rewritten only when its content changes.
execute_process(COMMAND git -C ${CMAKE_SOURCE_DIR} rev-parse --short=12 HEAD
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/oxgen_build.h CONTENT
"#ifndef OXGEN_BUILD_H
#define OXGEN_BUILD_H
#define OXGEN_VERSION \"${PROJECT_VERSION}\"
#define OXGEN_COMMIT \"${commit}\"
#define OXGEN_COMPILER \"${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}\"
#define OXGEN_BUILD_TYPE \"${CMAKE_BUILD_TYPE}\"
#define OXGEN_LIBDIR \"${CMAKE_INSTALL_LIBDIR}\"
#endif
")
