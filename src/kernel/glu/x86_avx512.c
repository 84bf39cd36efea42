#include "simd/avx512.h"
#define GLU_NAME ox_glu_avx512
#include "kernel/glu/body.h"
