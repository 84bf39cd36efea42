#include "simd/avx512.h"
#define ADD_NAME ox_add_avx512
#include "kernel/add/body.h"
