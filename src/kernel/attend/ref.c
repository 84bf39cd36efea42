/* Reference: two plain passes over the keys in double. */
#include "kernel/attend/attend.h"

#include "tensor/half.h"

#include <math.h>

enum { CHUNK = 256 }; /* channels summed at once */

static double element(const char *base, size_t i, ox_dtype t)
{
    float f;
    uint16_t h;
    if (t == OX_DTYPE_F32) {
        memcpy(&f, base + 4 * i, 4);
        return (double)f;
    }
    memcpy(&h, base + 2 * i, 2);
    return (double)(t == OX_DTYPE_F16 ? ox_f16_to_f32(h) : ox_bf16_to_f32(h));
}

static double score(const ox_attend_args *a, const float *q, int32_t seq, int32_t h, int32_t j)
{
    const ox_kv_view *w = &a->view;
    const char *k = ox_kv_page(w, seq, j) + w->k_offset;
    double dot = 0.0;
    for (int32_t d = 0; d < w->head_size; d++)
        dot += (double)q[d] * element(k, ox_kv_k_at(w, h, j, d), w->dtype);
    const double t = dot * (double)a->scale, cap = (double)a->softcap;
    return cap > 0.0 ? cap * tanh(t / cap) : t;
}

static void attend_head(const ox_attend_args *a, size_t r, int32_t head, int32_t kv_head)
{
    const ox_kv_view *w = &a->view;
    const int32_t seq = w->seq ? w->seq[r] : 0, pos = w->pos[r];
    const int32_t first = a->window > 0 && pos >= a->window ? pos - a->window + 1 : 0;
    const float *q = a->q + r * a->ldq + (size_t)head * (size_t)w->head_size;
    float *out = a->out + r * a->ldo + (size_t)head * (size_t)w->v_head_size;
    double max = a->sinks ? (double)a->sinks[head] : -HUGE_VAL;
    for (int32_t j = first; j <= pos; j++)
        max = fmax(max, score(a, q, seq, kv_head, j));
    double sum = a->sinks ? exp((double)a->sinks[head] - max) : 0.0;
    for (int32_t j = first; j <= pos; j++)
        sum += exp(score(a, q, seq, kv_head, j) - max);
    for (int32_t c = 0; c < w->v_head_size; c += CHUNK) {
        const int32_t n = w->v_head_size - c < CHUNK ? w->v_head_size - c : CHUNK;
        double acc[CHUNK] = {0.0};
        for (int32_t j = first; j <= pos; j++) {
            const char *v = ox_kv_page(w, seq, j) + w->v_offset;
            const double weight = exp(score(a, q, seq, kv_head, j) - max);
            for (int32_t d = 0; d < n; d++)
                acc[d] += weight * element(v, ox_kv_v_at(w, kv_head, j, c + d), w->dtype);
        }
        for (int32_t d = 0; d < n; d++)
            out[c + d] = pos < 0 ? 0.0f : (float)(acc[d] / sum);
    }
}

void ox_attend_ref(const ox_attend_args *a, size_t begin, size_t end)
{
    const int32_t group = a->n_heads / a->view.n_kv_heads;
    for (size_t u = begin; u < end; u++) {
        size_t r0, r1;
        const int32_t kv_head = ox_attend_unit(a, u, &r0, &r1);
        for (size_t r = r0; r < r1; r++)
            for (int32_t g = 0; g < group; g++)
                attend_head(a, r, kv_head * group + g, kv_head);
    }
}
