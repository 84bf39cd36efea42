#include "simd/avx512.h"
#define SELECT_NAME ox_select_avx512
#include "kernel/select/body.h"
