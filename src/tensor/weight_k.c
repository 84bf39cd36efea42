/* weight_k.c - super-blocks of 256: 8 or 16 parts whose scales (and minima) are small integers
 * times one float16 of the whole. The products are exact in float32. */
#include "tensor/weight_internal.h"

/* 6-bit scale and minimum of part j (0..7) out of 12 bytes. */
static void scale_min(const uint8_t *s, int j, int *scale, int *min)
{
    if (j < 4) {
        *scale = s[j] & 63;
        *min = s[j + 4] & 63;
    } else {
        *scale = (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
        *min = s[j + 4] >> 4 | (s[j] >> 6) << 4;
    }
}

static void scales_mins(const uint8_t *b, float *scales, float *mins)
{
    const float d = ox_read_f16(b), dmin = ox_read_f16(b + 2);
    for (int j = 0; j < 8; j++) {
        int scale, min;
        scale_min(b + 4, j, &scale, &min);
        scales[j] = d * (float)scale;
        mins[j] = -(dmin * (float)min);
    }
}

void ox_block_q4_k(const uint8_t *b, uint8_t *codes, float *scales, float *mins)
{
    scales_mins(b, scales, mins);
    for (int part = 0; part < 8; part++) /* 32 elements each; two parts share their bytes */
        for (int l = 0; l < 32; l++)
            codes[32 * part + l] = b[16 + part / 2 * 32 + l] >> (part % 2 * 4) & 15;
}

void ox_block_q5_k(const uint8_t *b, uint8_t *codes, float *scales, float *mins)
{
    scales_mins(b, scales, mins);
    for (int part = 0; part < 8; part++)
        for (int l = 0; l < 32; l++) {
            const int low = b[48 + part / 2 * 32 + l] >> (part % 2 * 4) & 15;
            codes[32 * part + l] = (uint8_t)(low | (b[16 + l] >> part & 1) << 4);
        }
}

void ox_block_q6_k(const uint8_t *b, uint8_t *codes, float *scales, float *mins)
{
    (void)mins;
    const float d = ox_read_f16(b + 208);
    for (int j = 0; j < 16; j++)
        scales[j] = d * (float)(int8_t)b[192 + j];
    for (int i = 0; i < 8; i++) { /* 32 elements each */
        const int half = i / 4, part = i % 4;
        for (int l = 0; l < 32; l++) {
            const int low = b[64 * half + part % 2 * 32 + l] >> (part / 2 * 4) & 15;
            const int high = b[128 + 32 * half + l] >> (2 * part) & 3;
            codes[32 * i + l] = (uint8_t)((low | high << 4) + 128 - 32);
        }
    }
}

void ox_block_q2_k(const uint8_t *b, uint8_t *codes, float *scales, float *mins)
{
    const float d = ox_read_f16(b + 80), dmin = ox_read_f16(b + 82);
    for (int j = 0; j < 16; j++) {
        scales[j] = d * (float)(b[j] & 15);
        mins[j] = -(dmin * (float)(b[j] >> 4));
    }
    for (int i = 0; i < 8; i++)
        for (int l = 0; l < 32; l++)
            codes[32 * i + l] = b[16 + i / 4 * 32 + l] >> (i % 4 * 2) & 3;
}

void ox_block_q3_k(const uint8_t *b, uint8_t *codes, float *scales, float *mins)
{
    (void)mins;
    const float d = ox_read_f16(b + 108);
    for (int j = 0; j < 16; j++) {
        const int low = j < 8 ? b[96 + j] & 15 : b[96 + j - 8] >> 4;
        const int high = b[104 + j % 4] >> (2 * (j / 4)) & 3;
        scales[j] = d * (float)((low | high << 4) - 32);
    }
    for (int i = 0; i < 8; i++)
        for (int l = 0; l < 32; l++) {
            const int low = b[32 + i / 4 * 32 + l] >> (i % 4 * 2) & 3;
            const int high = b[l] >> i & 1; /* clear: value - 4 */
            codes[32 * i + l] = (uint8_t)(low + 4 * high + 8 - 4);
        }
}
