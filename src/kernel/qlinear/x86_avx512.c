/* 512 bits without a byte dot product. */
#include "kernel/qlinear/lanes_avx512.h"
#define ADD16 _mm512_add_epi16
#define ADD32 _mm512_add_epi32
#define AND _mm512_and_si512
#define MADD _mm512_madd_epi16
#define MADDUBS _mm512_maddubs_epi16
#define SET8 _mm512_set1_epi8
#define SET16 _mm512_set1_epi16
#define SMALL_HAS_8 1
#define QLINEAR_NAME ox_qlinear_avx512
#include "kernel/qlinear/dot_pairs.h"
#include "kernel/qlinear/body.h"
