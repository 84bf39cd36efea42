#include "simd/avx2.h"
#define ADD_NAME ox_add_avx2
#include "kernel/add/body.h"
