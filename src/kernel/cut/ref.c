/* Reference: one value after the other. */
#include "kernel/cut/cut.h"

void ox_cut_ref(const ox_cut_args *a)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++) {
        if (!(a->x[i] >= a->floor) || a->x[i] >= a->ceiling) continue;
        const int32_t id = a->ids ? a->ids[i] : (int32_t)i;
        a->values[n] = a->x[i];
        if (a->kept_ids) a->kept_ids[n] = id;
        n++;
    }
    *a->n_kept = n;
}
