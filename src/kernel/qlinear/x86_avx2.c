/* 256 bits without a byte dot product. */
#include "kernel/qlinear/lanes_avx2.h"
#define ADD16 _mm256_add_epi16
#define ADD32 _mm256_add_epi32
#define AND _mm256_and_si256
#define MADD _mm256_madd_epi16
#define MADDUBS _mm256_maddubs_epi16
#define SET8 _mm256_set1_epi8
#define SET16 _mm256_set1_epi16
#define SMALL_HAS_8 0
#define QLINEAR_NAME ox_qlinear_avx2
#include "kernel/qlinear/dot_pairs.h"
#include "kernel/qlinear/body.h"
