/* amx.h - matrix tiles: configuration and the few instructions that kernels use.
 *
 * Every job loads its own configuration and releases it at its end: a thread without one dies of an
 * illegal instruction, and live tiles make a thread switch slower and keep a core awake. Between
 * the two no foreign code may run (tile registers are nobody's to keep). The intrinsics of gcc 12
 * are not used: its _tile_loadconfig declares 8 of the 64 bytes as read, its _tile_loadd no memory.
 */
#ifndef OX_SIMD_AMX_H
#define OX_SIMD_AMX_H
#include "base/compiler.h"

#include <stddef.h>
#include <stdint.h>

typedef struct tile_config {
    OX_ALIGNED(64) uint8_t palette;
    uint8_t start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

static inline void tile_begin(const tile_config *c)
{
    __asm__ volatile("ldtilecfg %0" ::"m"(*c));
}

static inline void tile_end(void)
{
    __asm__ volatile("tilerelease" ::: "memory");
}

/* t, a, b are constants 0 to 7; p is the tile's first row, step the bytes from row to row. */
#define TILE_ZERO(t) __asm__ volatile("tilezero %%tmm" #t ::)
#define TILE_LOAD(t, p, step)                                                                      \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t ::"r"(p), "r"((size_t)(step)) : "memory")
#define TILE_STORE(t, p, step)                                                                     \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" ::"r"(p), "r"((size_t)(step)) : "memory")
/* t += a * b; rows of a hold groups of four bytes that meet b's rows: signed times signed, signed
 * times unsigned, pairs of bfloat16 */
#define TILE_DOT_SS(t, a, b) __asm__ volatile("tdpbssd %%tmm" #b ", %%tmm" #a ", %%tmm" #t ::)
#define TILE_DOT_SU(t, a, b) __asm__ volatile("tdpbsud %%tmm" #b ", %%tmm" #a ", %%tmm" #t ::)
#define TILE_DOT_BF16(t, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #t ::)
#endif
