/* cuda_flash.h - attention of many rows on sm_90 tensor cores (formula: attend.h).
 *
 * float16 queries, keys, values and results; scores, weights' sum and accumulator float32; the
 * weights e^(t - m) are rounded to float16 before they meet the values. Keys are taken in tiles
 * aligned to position 0, in ascending order, and tiles that a row does not see leave its
 * accumulator untouched: a row's bits do not depend on the chunking of the prompt. */
#ifndef OX_KERNEL_ATTEND_CUDA_FLASH_H
#define OX_KERNEL_ATTEND_CUDA_FLASH_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* At most OX_FLASH_ROWS rows of one sequence at consecutive positions. */
typedef struct ox_cuda_flash_tile {
    int32_t row, n_rows, seq, pos; /* pos of the first row */
} ox_cuda_flash_tile;

enum { OX_FLASH_ROWS = 128 };

typedef struct ox_cuda_flash_args {
    const void *q;    /* device, float16 [rows, n_heads, head_size], ldq elements between rows */
    void *out;        /* device, float16 [rows, n_heads, v_head_size], ldo elements between rows */
    int64_t ldq, ldo; /* multiples of 8 */
    const ox_cuda_flash_tile *tiles; /* device, [n_tiles]; the costliest (last positions) last */
    int32_t n_tiles;
    void *const *pages;   /* device: addresses of pages; sequence s has page p at first[s] + p */
    const int32_t *first; /* device, [n_seq] */
    /* Key of position p, head h: page(p / 64) + k_offset + h * k_head + (p % 64) * k_pos bytes. */
    int64_t k_offset, k_head, k_pos, v_offset, v_head, v_pos;
    int32_t n_heads, n_kv_heads, head_size, v_head_size; /* sizes: multiples of 8, at most 256 */
    float scale, softcap;                                /* softcap 0 = none */
    int32_t window;                                      /* 0 = all */
    const float *sinks;                                  /* device, [n_heads] or NULL */
} ox_cuda_flash_args;

/* Enqueues on the stream (a cudaStream_t). 0, or a cudaError_t. */
int ox_cuda_flash(const ox_cuda_flash_args *a, void *stream);

#ifdef __cplusplus
}
#endif
#endif
