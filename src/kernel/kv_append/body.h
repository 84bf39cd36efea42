/* The vector body; an ISA file includes its simd header, defines KV_APPEND_NAME, then includes
 * this. V rows are contiguous. K channels lie 16 elements apart: converted together, stored one by
 * one. */
#include "kernel/kv_append/kv_append.h"

static void store_f32(void *base, size_t at, vf x, size_t n)
{
    vf_store_n((float *)base + at, x, n);
}
static void store_f16(void *base, size_t at, vf x, size_t n)
{
    if (n == VF_N)
        vf_store_f16((uint16_t *)base + at, x);
    else
        vf_store_f16_n((uint16_t *)base + at, x, n);
}
static void store_bf16(void *base, size_t at, vf x, size_t n)
{
    if (n == VF_N)
        vf_store_bf16((uint16_t *)base + at, x);
    else
        vf_store_bf16_n((uint16_t *)base + at, x, n);
}

#define APPEND(name, type, store)                                                                  \
    static void name(const ox_kv_view *w, char *page, int32_t pos, const float *k, const float *v) \
    {                                                                                              \
        const size_t nk = (size_t)w->head_size, nv = (size_t)w->v_head_size;                       \
        for (int32_t h = 0; h < w->n_kv_heads; h++, k += nk, v += nv) {                            \
            type *to = (type *)(void *)(page + w->k_offset) + ox_kv_k_at(w, h, pos, 0);            \
            for (size_t d = 0; d < nk; d += VF_N) {                                                \
                const size_t n = nk - d < VF_N ? nk - d : VF_N;                                    \
                type t[VF_N];                                                                      \
                store(t, 0, vf_load_n(k + d, n), VF_N);                                            \
                for (size_t i = 0; i < n; i++)                                                     \
                    to[(d + i) * OX_KV_LANES] = t[i];                                              \
            }                                                                                      \
            for (size_t d = 0; d < nv; d += VF_N) {                                                \
                const size_t n = nv - d < VF_N ? nv - d : VF_N;                                    \
                store(page + w->v_offset, ox_kv_v_at(w, h, pos, (int32_t)d), vf_load_n(v + d, n),  \
                      n);                                                                          \
            }                                                                                      \
        }                                                                                          \
    }
APPEND(append_f32, float, store_f32)
APPEND(append_f16, uint16_t, store_f16)
APPEND(append_bf16, uint16_t, store_bf16)
#undef APPEND

void KV_APPEND_NAME(const ox_kv_append_args *a, size_t begin, size_t end)
{
    const ox_kv_view *w = &a->view;
    for (size_t r = begin; r < end; r++) {
        const int32_t pos = w->pos[r];
        if (pos < 0) continue;
        char *page = ox_kv_page(w, w->seq ? w->seq[r] : 0, pos);
        const float *k = a->k + r * a->ldk, *v = a->v + r * a->ldv;
        if (w->dtype == OX_DTYPE_F16)
            append_f16(w, page, pos, k, v);
        else if (w->dtype == OX_DTYPE_BF16)
            append_bf16(w, page, pos, k, v);
        else
            append_f32(w, page, pos, k, v);
    }
}
