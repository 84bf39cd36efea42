/* Reference: one element at a time. */
#include "kernel/kv_append/kv_append.h"

#include "tensor/half.h"

static void store(char *base, size_t i, ox_dtype t, float x)
{
    const uint16_t h = t == OX_DTYPE_F16 ? ox_f32_to_f16(x) : ox_f32_to_bf16(x);
    if (t == OX_DTYPE_F32)
        memcpy(base + 4 * i, &x, 4);
    else
        memcpy(base + 2 * i, &h, 2);
}

void ox_kv_append_ref(const ox_kv_append_args *a, size_t begin, size_t end)
{
    const ox_kv_view *w = &a->view;
    for (size_t r = begin; r < end; r++) {
        const int32_t pos = w->pos[r];
        if (pos < 0) continue;
        char *page = ox_kv_page(w, w->seq ? w->seq[r] : 0, pos);
        for (int32_t h = 0; h < w->n_kv_heads; h++) {
            const float *k = a->k + r * a->ldk + (size_t)h * (size_t)w->head_size;
            const float *v = a->v + r * a->ldv + (size_t)h * (size_t)w->v_head_size;
            for (int32_t d = 0; d < w->head_size; d++)
                store(page + w->k_offset, ox_kv_k_at(w, h, pos, d), w->dtype, k[d]);
            for (int32_t d = 0; d < w->v_head_size; d++)
                store(page + w->v_offset, ox_kv_v_at(w, h, pos, d), w->dtype, v[d]);
        }
    }
}
