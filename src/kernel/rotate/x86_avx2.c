#include "simd/avx2.h"
#define ROTATE_NAME ox_rotate_avx2
#include "kernel/rotate/body.h"
