#include "simd/avx512.h"
#define SCALE_NAME ox_scale_avx512
#include "kernel/scale/body.h"
