# liboxgen_cuda.so: the CUDA backend, opened at run time. The core never needs it. Its C files are
# src/backend/cuda/*.c and src/kernel/cuda_*.c, its kernels src/kernel/*/*.cu and src/backend/cuda/**/*.cu.
# OXGEN_CUDA_ARCHS names the architectures, as CMAKE_CUDA_ARCHITECTURES does: developers build one.
set(OXGEN_CUDA AUTO CACHE STRING "the CUDA backend: AUTO (when nvcc is there), ON, OFF")
set(OXGEN_CUDA_ARCHS "80-real;90a-real;90-virtual" CACHE STRING "architectures of the CUDA backend")

if(OXGEN_CUDA AND NOT OXGEN_SANITIZE AND NOT OXGEN_FUZZER)
  find_program(OXGEN_NVCC nvcc HINTS /usr/local/cuda/bin $ENV{CUDA_HOME}/bin)
endif()
if(OXGEN_CUDA STREQUAL "ON" AND NOT OXGEN_NVCC)
  message(FATAL_ERROR "OXGEN_CUDA=ON, but nvcc is neither on PATH nor in /usr/local/cuda/bin")
endif()
if(NOT OXGEN_NVCC)
  message(STATUS "CUDA backend: left out (no nvcc, or turned off)")
  return()
endif()

set(CMAKE_CUDA_COMPILER ${OXGEN_NVCC})
set(CMAKE_CUDA_ARCHITECTURES ${OXGEN_CUDA_ARCHS})
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_FLAGS_RELWITHDEBINFO "-O3 -DNDEBUG" CACHE STRING "" FORCE)
if(CMAKE_C_COMPILER_LAUNCHER AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)

file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS src/backend/cuda/*.c src/backend/cuda/*.cu src/kernel/*.cu)
file(GLOB cuda_host CONFIGURE_DEPENDS src/kernel/cuda_*.c)
list(FILTER cuda_sources EXCLUDE REGEX "_(test|bench)\\.(c|cu)$")
# Kernels take minutes to compile: where no GPU is, `make all` leaves them to `make cuda`.
if(OXGEN_CUDA STREQUAL "ON" OR EXISTS /dev/nvidiactl OR EXISTS /proc/driver/nvidia/version)
  set(cuda_in_all "")
else()
  set(cuda_in_all EXCLUDE_FROM_ALL)
  message(STATUS "CUDA backend: no GPU here, so only `make cuda` builds it")
endif()
add_library(oxgen_cuda_objects OBJECT ${cuda_in_all} ${cuda_sources} ${cuda_host})
target_include_directories(oxgen_cuda_objects PUBLIC src include ${CMAKE_BINARY_DIR}/generated)
target_include_directories(oxgen_cuda_objects SYSTEM PUBLIC ${CUDAToolkit_INCLUDE_DIRS})
target_compile_options(oxgen_cuda_objects PRIVATE
  "$<$<COMPILE_LANGUAGE:C>:${OXGEN_REQUIRED_FLAGS};-fvisibility=hidden>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-lineinfo;-Xcompiler=-fvisibility=hidden,-Wall,-Wextra,-Wno-class-memaccess,-Wno-unused-function>")
set_target_properties(oxgen_cuda_objects PROPERTIES POSITION_INDEPENDENT_CODE ON CUDA_SEPARABLE_COMPILATION OFF)

# The members of liboxgen.a that the backend uses travel inside, invisible.
add_library(oxgen_cuda MODULE ${cuda_in_all} $<TARGET_OBJECTS:oxgen_cuda_objects>)
set_target_properties(oxgen_cuda PROPERTIES OUTPUT_NAME oxgen_cuda LINKER_LANGUAGE C PREFIX lib
                                            LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
add_dependencies(oxgen_cuda oxgen_static)
target_link_libraries(oxgen_cuda PRIVATE $<TARGET_FILE:oxgen_static> CUDA::cudart_static -l:libstdc++.a Threads::Threads m ${CMAKE_DL_LIBS} rt)
target_link_options(oxgen_cuda PRIVATE LINKER:--version-script=${CMAKE_SOURCE_DIR}/cmake/exports_cuda.map
                                       LINKER:--no-undefined LINKER:--gc-sections LINKER:-z,nodelete LINKER:--as-needed
                                       -static-libgcc)
set_property(TARGET oxgen_cuda APPEND PROPERTY LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/exports_cuda.map)
install(TARGETS oxgen_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} OPTIONAL)
message(STATUS "CUDA backend: ${OXGEN_NVCC} ${CMAKE_CUDA_COMPILER_VERSION}, architectures ${OXGEN_CUDA_ARCHS}")

# The rows of every family against their contracts; runs where a GPU is: make test-gpu.
if(OXGEN_TESTS)
  file(GLOB cuda_test_sources CONFIGURE_DEPENDS tests/gpu/*.c)
  add_executable(cuda_rows ${cuda_in_all} ${cuda_test_sources} $<TARGET_OBJECTS:oxgen_cuda_objects>)
  target_include_directories(cuda_rows PRIVATE ${CMAKE_SOURCE_DIR} src include ${CMAKE_BINARY_DIR}/generated)
  target_include_directories(cuda_rows SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  target_compile_options(cuda_rows PRIVATE ${OXGEN_REQUIRED_FLAGS})
  add_dependencies(cuda_rows oxgen_static)
  target_link_libraries(cuda_rows PRIVATE $<TARGET_FILE:oxgen_static> CUDA::cudart_static -l:libstdc++.a Threads::Threads m ${CMAKE_DL_LIBS} rt)
  set_target_properties(cuda_rows PROPERTIES LINKER_LANGUAGE C RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endif()
