#include "simd/avx512.h"
#define CONVERT_NAME ox_convert_half_avx512
#include "kernel/convert_half/body.h"
