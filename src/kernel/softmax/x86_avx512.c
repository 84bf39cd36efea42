#include "simd/avx512.h"
#define SOFTMAX_NAME ox_softmax_avx512
#include "kernel/softmax/body.h"
