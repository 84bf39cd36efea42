#include "simd/avx2.h"
#define SELECT_NAME ox_select_avx2
#include "kernel/select/body.h"
