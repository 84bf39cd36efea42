#include "simd/avx2.h"
#define NORM_NAME ox_norm_f32_avx2
#include "kernel/norm/body.h"
