/* 256-bit byte dot product. */
#include "kernel/qlinear/lanes_avx2.h"
#define DPBUSD(acc, codes, x) _mm256_dpbusd_avx_epi32(acc, codes, x)
#define SMALL_HAS_8 0
#define QLINEAR_NAME ox_qlinear_avxvnni
#include "kernel/qlinear/dot_direct.h"
#include "kernel/qlinear/body.h"
