#include "simd/avx512.h"
#define ATTEND_NAME ox_attend_avx512
#define ATTEND_LANES 8
#define ATTEND_VECTORS(n) ((n) <= 6 ? 4 : 2) /* at most 24 accumulators of 32 registers */
#define ATTEND_MORE(X, t) X(7, t) X(8, t)
#include "kernel/attend/body.h"
