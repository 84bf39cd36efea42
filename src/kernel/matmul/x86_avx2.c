#include "simd/avx2.h"

#include "kernel/matmul/sizes_avx2.h"
#define MATMUL_NAME ox_matmul_avx2
#include "kernel/matmul/body.h"
