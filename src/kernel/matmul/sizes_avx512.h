/* sizes_avx512.h - register tiles for 32 registers of 16 lanes: 24 sums,
 * 3 weights, 1 activation. */
#define MM_ROWS 8
#define MM_TILES 3
#define MM_WIDE(m) ((m) == 1 ? 8 : (m) <= 4 ? 4 : 3)
#define MM_EACH(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
