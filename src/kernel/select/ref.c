/* Reference: k times the best of what has not been taken, by the contract's order alone. */
#include "kernel/select/select.h"

static bool before(float a, size_t ia, float b, size_t ib)
{
    const bool na = a != a, nb = b != b;
    if (na != nb) return nb;
    if (!na && a != b) return a > b;
    return ia < ib;
}

void ox_select_ref(const ox_select_args *a, size_t begin, size_t end)
{
    for (size_t r = begin; r < end; r++) {
        const float *x = a->x + r * a->ldx;
        int32_t *ids = a->ids + r * a->k;
        float *values = a->values + r * a->k;
        bool nan = false;
        for (size_t i = 0; i < a->dim; i++)
            nan |= x[i] != x[i];
        if (a->has_nan) a->has_nan[r] = nan;
        for (size_t j = 0; j < a->k; j++) {
            size_t best = a->dim;
            for (size_t i = 0; i < a->dim; i++) {
                const size_t last = j ? (size_t)ids[j - 1] : 0;
                if (j && !before(x[last], last, x[i], i)) continue;
                if (best == a->dim || before(x[i], i, x[best], best)) best = i;
            }
            ids[j] = (int32_t)best;
            values[j] = x[best];
        }
    }
}
