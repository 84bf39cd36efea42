#include "simd/avx512.h"
#define KV_APPEND_NAME ox_kv_append_avx512
#include "kernel/kv_append/body.h"
