#include "simd/avx2.h"

#include "kernel/matmul/sizes_avx2.h"
#define GEMM_NAME ox_gemm_avx2
#include "kernel/gemm/body.h"
