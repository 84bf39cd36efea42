#include "simd/avx2.h"
#define ATTEND_NAME ox_attend_avx2
#define ATTEND_LANES 6
/* two registers a vector, 16 in all */
#define ATTEND_VECTORS(n) ((n) == 1 ? 4 : (n) == 2 ? 2 : 1)
#define ATTEND_MORE(X, t)
#include "kernel/attend/body.h"
