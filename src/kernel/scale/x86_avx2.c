#include "simd/avx2.h"
#define SCALE_NAME ox_scale_avx2
#include "kernel/scale/body.h"
