/* mask.c - attention masks, recognised by what they let through in a few example steps: nothing,
 * what lies behind, or a window of it. Additive masks (0 or very negative) and boolean ones. */
#include "opt/opt_internal.h"

#include "tensor/half.h"

enum { MASKS_MAX = 512 };

static const float hidden_below = -1e4f; /* exp() of it is 0 in float32 beside anything visible */

/* 1 = visible, 0 = hidden, -1 = neither. */
static int visible(const ox_tensor *t, size_t i)
{
    if (t->dtype == OX_DTYPE_BOOL) return ((const uint8_t *)t->data)[i] != 0;
    if (!ox_dtype_is_float(t->dtype)) return -1;
    const float x = ox_tensor_f32(t, i);
    return x == 0.0f ? 1 : x <= hidden_below ? 0 : -1;
}

/* How many of the newest keys the last row sees; -1 = not a run that ends at the newest. */
static int64_t newest_visible(const ox_tensor *t, size_t begin, int64_t n)
{
    int64_t seen = 0;
    while (seen < n && visible(t, begin + (size_t)(n - 1 - seen)) == 1)
        seen++;
    for (int64_t j = 0; j < n - seen; j++)
        if (visible(t, begin + (size_t)j) != 0) return -1;
    return seen;
}

/* Every row i of the step sees keys j <= n_past + i (all, if not causal) within the window. */
static bool follows(const ox_tensor *t, int64_t n_past, int64_t n_rows, bool causal, int64_t window)
{
    const int64_t total = n_past + n_rows;
    size_t n;
    if (!ox_tensor_count(t, &n)) return false;
    for (size_t i = 0; i < n; i++) {
        const int64_t j = (int64_t)(i % (size_t)total);
        const int64_t row = n_past + (int64_t)(i / (size_t)total % (size_t)n_rows);
        const bool see = (!causal || j <= row) && (!window || j > row - window);
        if (visible(t, i) != (int)see) return false;
    }
    return true;
}

/* The mask's tensor for a step when it has a row for every row; NULL otherwise. */
static ox_status mask_of(ox_opt *o, ox_value_id v, int64_t n_past, int64_t n_rows, ox_arena *arena,
                         const ox_tensor **out)
{
    const ox_tensor *t;
    OX_TRY(ox_opt_probe(o, v, n_past, n_rows, arena, &t));
    *out = NULL;
    if (!t || t->rank < 2 || t->dims[t->rank - 1] != n_past + n_rows) return OX_OK;
    if (t->dims[t->rank - 2] == n_rows) *out = t;
    return OX_OK;
}

static ox_status study(ox_opt *o, ox_masked *m)
{
    enum { PAST = 5, ROWS = 7 };
    const int64_t longest = o->ports->n_positions > 8 ? o->ports->n_positions - 1 : 8191;
    const int64_t lengths[] = {longest, 16383, 4160, 1023, 63};
    ox_arena temp = OX_ARENA_INIT;
    ox_status st = OX_OK;
    const ox_tensor *t;
    int64_t window = 0;
    OX_TRY_GOTO(mask_of(o, m->v, 0, ROWS, &temp, &t));
    if (!t) goto fail;
    m->causal = visible(t, 1) == 0;
    for (size_t i = 0; i < OX_COUNT(lengths); i++) {
        if (lengths[i] > longest) continue;
        OX_TRY_GOTO(mask_of(o, m->v, lengths[i], 1, &temp, &t));
        if (!t) continue;
        window = newest_visible(t, 0, lengths[i] + 1);
        if (window <= 0) goto fail;
        if (window == lengths[i] + 1) window = 0;
        break;
    }
    if (!t) goto fail;
    OX_TRY_GOTO(mask_of(o, m->v, PAST, ROWS, &temp, &t));
    if (!t || !follows(t, PAST, ROWS, m->causal, window)) goto fail;
    if (window > 0) {
        OX_TRY_GOTO(mask_of(o, m->v, window + 1, 3, &temp, &t));
        if (!t || !follows(t, window + 1, 3, m->causal, window)) goto fail;
    }
    m->window = (int32_t)window;
    m->known = window <= INT32_MAX;
fail:
    ox_arena_deinit(&temp);
    return st;
}

ox_status ox_opt_mask(ox_opt *o, ox_value_id v, ox_masked *out)
{
    for (size_t i = 0; i < o->masks.n; i++) {
        *out = o->masks.p[i];
        if (out->v.i == v.i) return OX_OK;
    }
    *out = (ox_masked){.v = v};
    if (o->masks.n >= MASKS_MAX) return OX_OK; /* no model has as many; each costs time */
    OX_TRY(study(o, out));
    if (!ox_vec_push(&o->masks, *out)) return OX_FAIL(o->err, OX_NO_MEMORY, "no memory for a mask");
    return OX_OK;
}
