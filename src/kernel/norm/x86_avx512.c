#include "simd/avx512.h"
#define NORM_NAME ox_norm_f32_avx512
#include "kernel/norm/body.h"
