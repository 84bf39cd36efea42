#include "simd/avx512.h"

#include "kernel/matmul/sizes_avx512.h"
#define GEMM_NAME ox_gemm_avx512
#include "kernel/gemm/body.h"
