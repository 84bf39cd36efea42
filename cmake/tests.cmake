# Every src/**/x_test.c and tests/unit/*_test.c is a cmocka program and a test of that name; every kernel family's test.c is part
# of ktest, which runs once per family. x_fuzz.c becomes a program that replays its corpus.
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)

function(oxgen_test_program target)
  add_executable(${target} ${ARGN})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/apps ${CMAKE_BINARY_DIR}/generated)
  target_compile_options(${target} PRIVATE ${OXGEN_REQUIRED_FLAGS} -UNDEBUG)
  target_compile_definitions(${target} PRIVATE OXGEN_SOURCE_DIR="${CMAKE_SOURCE_DIR}" OXGEN_BINARY_DIR="${CMAKE_BINARY_DIR}")
  target_link_libraries(${target} PRIVATE oxgen_static PkgConfig::CMOCKA)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endfunction()

file(GLOB_RECURSE unit_tests CONFIGURE_DEPENDS src/*_test.c tests/unit/*_test.c)
foreach(f ${unit_tests})
  file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR} ${f})
  string(REGEX REPLACE "^(src|tests)/" "" name ${name})
  string(REGEX REPLACE "_test\\.c$" "" name ${name})
  string(REPLACE "/" "." name ${name})
  oxgen_test_program(test.${name} ${f})
  add_test(NAME ${name} COMMAND test.${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS quick TIMEOUT 300)
endforeach()

file(GLOB family_tests CONFIGURE_DEPENDS src/kernel/*/test.c)
file(GLOB ktest_sources CONFIGURE_DEPENDS tests/ktest/*.c)
oxgen_test_program(ktest ${ktest_sources} ${family_tests})
foreach(f ${family_tests})
  get_filename_component(dir ${f} DIRECTORY)
  get_filename_component(family ${dir} NAME)
  add_test(NAME ktest.${family} COMMAND ktest ${family})
  set_tests_properties(ktest.${family} PROPERTIES LABELS quick TIMEOUT 600)
endforeach()

# src/**/x_fuzz.c defines LLVMFuzzerTestOneInput. Here it replays tests/fuzz/x/*; `make fuzz` links it
# with libFuzzer instead.
file(GLOB_RECURSE fuzz_targets CONFIGURE_DEPENDS src/*_fuzz.c)
foreach(f ${fuzz_targets})
  get_filename_component(name ${f} NAME_WE)
  string(REGEX REPLACE "_fuzz$" "" name ${name})
  if(OXGEN_FUZZER)
    oxgen_test_program(fuzz.${name} ${f})
    target_link_options(fuzz.${name} PRIVATE -fsanitize=fuzzer)
  else()
    oxgen_test_program(fuzz.${name} ${f} ${CMAKE_SOURCE_DIR}/tests/fuzz/replay.c)
    add_test(NAME fuzz.${name} COMMAND fuzz.${name} ${CMAKE_SOURCE_DIR}/tests/fuzz/${name})
    set_tests_properties(fuzz.${name} PROPERTIES LABELS quick TIMEOUT 300)
  endif()
endforeach()

include(${CMAKE_SOURCE_DIR}/cmake/tests_e2e.cmake OPTIONAL)

oxgen_test_program(node_tests tests/onnx/node_tests.c)
target_link_libraries(node_tests PRIVATE m)
