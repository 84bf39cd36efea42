/* weight_internal.h - what the files behind weight.h share: one rule a format. */
#ifndef OX_TENSOR_WEIGHT_INTERNAL_H
#define OX_TENSOR_WEIGHT_INTERNAL_H
#include "tensor/half.h"
#include "tensor/weight.h"

enum { OX_BLOCK_MAX = 256, OX_BLOCK_PARTS = 16 }; /* elements and scales of a file block */

/* Reads one file block as codes (one a byte, in element order), scales and minima (one for every
 * `block` elements of the rule's layout; mins only for ZERO_MIN, else untouched). */
typedef void ox_block_fn(const uint8_t *b, uint8_t *codes, float *scales, float *mins);

ox_block_fn ox_block_q4_0, ox_block_q4_1, ox_block_q5_0, ox_block_q5_1, ox_block_q8_0,
    ox_block_iq4_nl, ox_block_q2_k, ox_block_q3_k, ox_block_q4_k, ox_block_q5_k, ox_block_q6_k;

static inline float ox_read_f16(const uint8_t *p)
{
    return ox_f16_to_f32((uint16_t)(p[0] | p[1] << 8));
}

/* Format NBITS. */
void ox_nbits_row_f32(const ox_weight *w, int64_t r, float *out);
ox_code_layout ox_nbits_code_layout(const ox_weight *w);
void ox_nbits_row_codes(const ox_weight *w, int64_t r, uint8_t *codes, float *scales,
                        uint8_t *zeros, float *mins);
ox_status ox_nbits_check(const ox_weight *w, ox_err *err);
#endif
