/* value.c - see value.h. */
#include "ops/value.h"

#include "base/mem.h"

bool ox_rt_charge(ox_rt_memory *m, size_t bytes)
{
    size_t sum;
    if (!ox_size_add(m->used, bytes, &sum) || (m->limit && sum > m->limit)) return false;
    m->used = sum;
    return true;
}

void ox_rt_release(ox_rt_memory *m, size_t bytes)
{
    m->used -= bytes;
}

static ox_rt_value *value_new(ox_rt_memory *m, ox_rt_kind kind, ox_dtype t)
{
    if (!ox_rt_charge(m, sizeof(ox_rt_value))) return NULL;
    ox_rt_value *v = ox_calloc(1, sizeof(*v));
    if (!v) {
        ox_rt_release(m, sizeof(*v));
        return NULL;
    }
    v->kind = kind;
    v->dtype = t;
    v->mem = m;
    v->refs = 1;
    return v;
}

ox_rt_value *ox_rt_tensor_new(ox_rt_memory *m, ox_dtype t, int32_t rank, const int64_t *dims)
{
    ox_tensor x = {.dtype = t, .rank = rank};
    size_t bytes;
    if (rank < 0 || rank > OX_RANK_MAX) return NULL;
    if (rank) memcpy(x.dims, dims, (size_t)rank * sizeof(*dims));
    if (!ox_tensor_bytes(&x, &bytes)) return NULL;
    ox_rt_value *v = value_new(m, OX_RT_TENSOR, t);
    if (!v) return NULL;
    v->t = x;
    if (ox_rt_charge(m, bytes)) {
        v->bytes = bytes;
        v->owned = v->t.data = ox_calloc(bytes ? bytes : 1, 1);
    }
    if (!v->t.data) ox_rt_unref(&v);
    return v;
}

ox_rt_value *ox_rt_tensor_view(ox_rt_memory *m, const ox_tensor *t)
{
    static const int64_t nothing = 0; /* where empty tensors without data point; never written */
    ox_rt_value *v = value_new(m, OX_RT_TENSOR, t->dtype);
    if (!v) return NULL;
    v->t = *t;
    if (!v->t.data) v->t.data = (void *)&nothing;
    return v;
}

ox_rt_value *ox_rt_tensor_share(ox_rt_value *of, int32_t rank, const int64_t *dims)
{
    ox_rt_value *v = ox_rt_tensor_view(of->mem, &of->t);
    if (!v) return NULL;
    v->t.rank = rank;
    if (rank) memcpy(v->t.dims, dims, (size_t)rank * sizeof(*dims));
    v->base = ox_rt_ref(of);
    return v;
}

ox_rt_value *ox_rt_sequence_new(ox_rt_memory *m, ox_dtype t, size_t n_items)
{
    ox_rt_value *v = value_new(m, OX_RT_SEQUENCE, t);
    size_t bytes;
    if (!v) return NULL;
    if (ox_size_mul(n_items, sizeof(*v->items), &bytes) && ox_rt_charge(m, bytes)) {
        v->bytes = bytes;
        v->n_items = n_items;
        v->items = ox_calloc(n_items ? n_items : 1, sizeof(*v->items));
    }
    if (!v->items) {
        v->n_items = 0;
        ox_rt_unref(&v);
    }
    return v;
}

ox_rt_value *ox_rt_none_new(ox_rt_memory *m)
{
    return value_new(m, OX_RT_NONE, OX_DTYPE_NONE);
}

ox_rt_value *ox_rt_ref(ox_rt_value *v)
{
    v->refs++;
    return v;
}

void ox_rt_unref(ox_rt_value **p)
{
    ox_rt_value *v = *p;
    *p = NULL;
    if (!v || --v->refs) return;
    for (size_t i = 0; i < v->n_items; i++)
        ox_rt_unref(&v->items[i]);
    ox_rt_unref(
        &v->base); /* a view's base is never itself a view of a view chain: depth is small */
    ox_free(v->items);
    ox_free(v->owned);
    ox_rt_release(v->mem, v->bytes + sizeof(*v));
    ox_free(v);
}

ox_str ox_rt_string(ox_rt_memory *m, const char *p, size_t n)
{
    char *q;
    if (!ox_rt_charge(m, n)) return (ox_str){0};
    q = ox_arena_copy(&m->strings, p ? p : "", n);
    return (ox_str){q, n};
}

void ox_rt_memory_close(ox_rt_memory *m)
{
    ox_arena_deinit(&m->strings);
    m->used = 0;
}
