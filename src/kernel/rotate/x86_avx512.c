#include "simd/avx512.h"
#define ROTATE_NAME ox_rotate_avx512
#include "kernel/rotate/body.h"
