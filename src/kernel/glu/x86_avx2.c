#include "simd/avx2.h"
#define GLU_NAME ox_glu_avx2
#include "kernel/glu/body.h"
