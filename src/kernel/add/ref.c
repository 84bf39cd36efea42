/* Reference: one rounding an element, like every row. */
#include "kernel/add/add.h"

void ox_add_ref(const ox_add_args *a, size_t begin, size_t end)
{
    for (size_t r = begin; r < end; r++)
        for (size_t i = 0; i < a->dim; i++)
            a->y[r * a->ldy + i] = a->a[r * a->lda + i] + a->b[r * a->ldb + i];
}
