/* sizes_avx2.h - register tiles for 16 registers of 8 lanes: 12 sums, 2 weights, 1 activation. */
#define MM_ROWS 6
#define MM_TILES 1
#define MM_WIDE(m) ((m) == 1 ? 4 : (m) == 2 ? 2 : 1)
#define MM_EACH(X) X(1) X(2) X(3) X(4) X(5) X(6)
