/* The only row: reading a row of any format is the weight's own business, and
 * a step gathers few. */
#include "kernel/embed/embed.h"

void ox_embed_ref(const ox_embed_args *a, size_t begin, size_t end)
{
    for (size_t r = begin; r < end; r++) {
        float *y = a->y + r * a->ldy;
        ox_weight_row_f32(a->table, a->ids[r], y);
        if (a->scale == 1.0f) continue;
        for (size_t i = 0; i < (size_t)a->table->cols; i++)
            y[i] *= a->scale;
    }
}
