/* weight_blocks.c - blocks of 32 with one float16 scale: 4, 5 and 8 bits, with or without minimum,
 * and the 4-bit table of unequal steps. Low nibbles are the first half of a block. */
#include "tensor/weight_internal.h"

static void nibbles(const uint8_t *q, uint8_t *codes)
{
    for (int i = 0; i < 16; i++) {
        codes[i] = q[i] & 15;
        codes[i + 16] = q[i] >> 4;
    }
}

static void fifth_bits(const uint8_t *h, uint8_t *codes, int shift)
{
    for (int i = 0; i < 32; i++)
        codes[i] = (uint8_t)(codes[i] + ((h[i / 8] >> i % 8 & 1) << 4) + shift);
}

void ox_block_q4_0(const uint8_t *b, uint8_t *codes, float *scales, float *mins)
{
    (void)mins;
    scales[0] = ox_read_f16(b);
    nibbles(b + 2, codes);
}

void ox_block_q4_1(const uint8_t *b, uint8_t *codes, float *scales, float *mins)
{
    scales[0] = ox_read_f16(b);
    mins[0] = ox_read_f16(b + 2);
    nibbles(b + 4, codes);
}

void ox_block_q5_0(const uint8_t *b, uint8_t *codes, float *scales, float *mins)
{
    (void)mins;
    scales[0] = ox_read_f16(b);
    nibbles(b + 6, codes);
    fifth_bits(b + 2, codes, 128 - 16);
}

void ox_block_q5_1(const uint8_t *b, uint8_t *codes, float *scales, float *mins)
{
    scales[0] = ox_read_f16(b);
    mins[0] = ox_read_f16(b + 2);
    nibbles(b + 8, codes);
    fifth_bits(b + 4, codes, 0);
}

void ox_block_q8_0(const uint8_t *b, uint8_t *codes, float *scales, float *mins)
{
    (void)mins;
    scales[0] = ox_read_f16(b);
    for (int i = 0; i < 32; i++)
        codes[i] = b[2 + i] ^ 0x80; /* signed to offset 128 */
}

void ox_block_iq4_nl(const uint8_t *b, uint8_t *codes, float *scales, float *mins)
{
    static const uint8_t steps[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                      129, 141, 153, 166, 181, 197, 217, 241}; /* value + 128 */
    (void)mins;
    scales[0] = ox_read_f16(b);
    nibbles(b + 2, codes);
    for (int i = 0; i < 32; i++)
        codes[i] = steps[codes[i]];
}
