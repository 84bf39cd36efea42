#include "simd/avx2.h"
#define SOFTMAX_NAME ox_softmax_avx2
#include "kernel/softmax/body.h"
