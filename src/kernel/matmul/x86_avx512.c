#include "simd/avx512.h"

#include "kernel/matmul/sizes_avx512.h"
#define MATMUL_NAME ox_matmul_avx512
#include "kernel/matmul/body.h"
