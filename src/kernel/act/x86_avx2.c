#include "simd/avx2.h"
#define ACT_NAME ox_act_avx2
#include "kernel/act/body.h"
