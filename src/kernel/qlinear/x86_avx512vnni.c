/* 512-bit byte dot product. */
#include "kernel/qlinear/lanes_avx512.h"
#define DPBUSD(acc, codes, x) _mm512_dpbusd_epi32(acc, codes, x)
#define SMALL_HAS_8 1
#define QLINEAR_NAME ox_qlinear_avx512vnni
#include "kernel/qlinear/dot_direct.h"
#include "kernel/qlinear/body.h"
