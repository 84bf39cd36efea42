# Required flags sit in their own variable so that CFLAGS cannot drop them.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(OXGEN_REQUIRED_FLAGS
    -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef
    -Wdouble-promotion -Werror -fno-math-errno -ffp-contract=off -fno-strict-aliasing)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g -DNDEBUG")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g")
set(OXGEN_SANITIZE "" CACHE STRING "address,undefined | thread | empty")
if(OXGEN_SANITIZE)
  add_compile_options(-fsanitize=${OXGEN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${OXGEN_SANITIZE})
  list(APPEND OXGEN_REQUIRED_FLAGS -Wno-maybe-uninitialized) # false under sanitizers, says gcc
endif()

option(OXGEN_COVERAGE "count lines and branches (gcov)" OFF)
if(OXGEN_COVERAGE)
  add_compile_options(--coverage -fprofile-update=atomic)
  add_link_options(--coverage)
  list(REMOVE_ITEM OXGEN_REQUIRED_FLAGS -Werror) # at this optimisation gcc warns of what is not so
endif()

option(OXGEN_FUZZER "link the fuzz targets with libFuzzer (clang)" OFF)
if(OXGEN_FUZZER)
  add_compile_options(-fsanitize=fuzzer-no-link)
  list(REMOVE_ITEM OXGEN_REQUIRED_FLAGS -Werror) # gcc's warnings are the ones that count
endif()

set(OXGEN_AVX2 -mavx2 -mfma -mf16c -mbmi2)
set(OXGEN_AVX512 ${OXGEN_AVX2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vbmi -mprefer-vector-width=512)

# x86_<tier>.c or x86_<tier>_<more>.c: the tier is the word behind x86_.
function(oxgen_isa_flags)
  foreach(f ${ARGN})
    get_filename_component(name ${f} NAME)
    if(name MATCHES "^x86_avx2[_.]")
      set(flags ${OXGEN_AVX2})
    elseif(name MATCHES "^x86_avxvnni[_.]")
      set(flags ${OXGEN_AVX2} -mavxvnni)
    elseif(name MATCHES "^x86_avx512[_.]")
      set(flags ${OXGEN_AVX512})
    elseif(name MATCHES "^x86_avx512vnni[_.]")
      set(flags ${OXGEN_AVX512} -mavx512vnni)
    elseif(name MATCHES "^x86_avx512bf16[_.]")
      set(flags ${OXGEN_AVX512} -mavx512vnni -mavx512bf16)
    elseif(name MATCHES "^x86_amx[_.]")
      set(flags ${OXGEN_AVX512} -mavx512vnni -mavx512bf16 -mavx512fp16 -mamx-tile -mamx-int8 -mamx-bf16)
    else()
      continue()
    endif()
    if(OXGEN_FUZZER)
      list(APPEND flags -fno-sanitize=all -O1) # kernels are not fuzzed, and slow to compile so
    elseif(OXGEN_SANITIZE OR OXGEN_COVERAGE)
      list(APPEND flags -O1) # at -O3 the sanitizers' checks take minutes to compile
    else()
      list(APPEND flags -O3)
    endif()
    set_source_files_properties(${f} PROPERTIES COMPILE_OPTIONS "${flags}")
  endforeach()
endfunction()
