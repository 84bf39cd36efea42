#include "simd/avx2.h"
#define CONVERT_NAME ox_convert_half_avx2
#include "kernel/convert_half/body.h"
