#include "simd/avx512.h"
#define ACT_NAME ox_act_avx512
#include "kernel/act/body.h"
