/* shape.c - the extent of an activation buffer. */
#include "base/mem.h"
#include "kernel/quantize/quantize.h"

enum { LINE = 64 };

ox_qact ox_qact_shape(size_t rows, size_t k, int32_t block, int32_t bits, int32_t planes)
{
    const size_t per = (size_t)block, blocks = k / per + (k % per != 0);
    const size_t used = blocks * (per + sizeof(float) + sizeof(int32_t));
    size_t ld = (used + LINE - 1) / LINE * LINE;
    /* Eight rows are read side by side: keep them off the same few sets of a cache. */
    if (ld % 1024 == 0) ld += LINE;
    return (ox_qact){.rows = rows,
                     .k = k,
                     .blocks = blocks,
                     .ld = ld,
                     .block = block,
                     .bits = bits,
                     .planes = planes};
}

bool ox_qact_bytes(const ox_qact *q, size_t *bytes)
{
    size_t n;
    return q->k <= SIZE_MAX / 4 && ox_size_mul(q->rows, (size_t)q->planes, &n) &&
           ox_size_mul(n, q->ld, bytes);
}
