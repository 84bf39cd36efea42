#include "simd/avx2.h"
#define KV_APPEND_NAME ox_kv_append_avx2
#include "kernel/kv_append/body.h"
