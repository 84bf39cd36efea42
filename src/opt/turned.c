/* turned.c - rotary tables that the graph computes from the positions of the step: evaluated once
 * for every position that the model is made for, checked with a step in the middle, and kept as
 * tables. A gather of rows from constant tables is the tables themselves. */
#include "opt/opt_internal.h"

#include "tensor/half.h"

enum {
    CHUNK = 16384,
    POSITIONS = 8192,
    POSITIONS_MAX = 1 << 22,
    PAIRS_MAX = 1 << 14,
    TABLES_MAX = 1024
};

/* v = rows of a constant table at the step's positions, perhaps reshaped: the table. */
static ox_value_id gathered_table(ox_opt *o, ox_value_id v)
{
    for (int i = 0; i < 8; i++) {
        const ox_node *n = ox_opt_producer(o, v);
        if (ox_node_is(n, "Unsqueeze") || ox_node_is(n, "Reshape") || ox_node_is(n, "Squeeze")) {
            v = ox_node_in(n, 0);
            continue;
        }
        if (!ox_node_is(n, "Gather") || ox_node_int(n, "axis", 0) != 0) break;
        const ox_tensor *t = ox_opt_constant(o, ox_opt_bare(o, ox_node_in(n, 0)));
        return t && ox_opt_plain_positions(o, ox_node_in(n, 1)) ? ox_node_in(n, 0) : OX_NO_VALUE;
    }
    return OX_NO_VALUE;
}

/* Angles of rows [first, first + n_rows) as floats [n_rows, *width]; NULL = not so. */
static ox_status rows_of(ox_opt *o, ox_value_id v, int64_t first, int64_t n_rows, ox_arena *arena,
                         const ox_tensor **out, int64_t *width)
{
    const ox_tensor *t;
    size_t n;
    OX_TRY(ox_opt_probe(o, v, first, n_rows, arena, &t));
    *out = NULL;
    if (!t || !ox_dtype_is_float(t->dtype) || !ox_tensor_count(t, &n) || t->rank < 2) return OX_OK;
    *width = t->dims[t->rank - 1];
    if (*width <= 0 || *width > PAIRS_MAX || n != (size_t)n_rows * (size_t)*width) return OX_OK;
    *out = t;
    return OX_OK;
}

/* Element of pair i among `width` columns that hold `pairs` pairs once or twice. */
static int64_t column(int64_t i, int64_t pairs, int64_t width, bool interleaved)
{
    return interleaved && width == 2 * pairs ? 2 * i : i;
}

/* Both channels of a pair have the same angle. */
static bool is_doubled(const ox_tensor *t, int64_t n_rows, int64_t width, bool interleaved)
{
    const int64_t half = width / 2;
    for (int64_t r = 0; r < n_rows; r++)
        for (int64_t i = 0; i < half; i++) {
            const int64_t a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : i + half;
            if (ox_tensor_f32(t, (size_t)(r * width + a)) !=
                ox_tensor_f32(t, (size_t)(r * width + b)))
                return false;
        }
    return width % 2 == 0;
}

/* float32 [n, pairs] of the first n positions, or NULL. */
static ox_status table_of(ox_opt *o, ox_value_id v, int64_t n, int64_t pairs, bool interleaved,
                          const float **out)
{
    float *p = ox_arena_take_n(o->arena, (size_t)n * (size_t)pairs, sizeof(*p));
    ox_status st = OX_OK;
    *out = NULL;
    if (!p) return OX_FAIL(o->err, OX_NO_MEMORY, "no memory for rotary tables");
    for (int64_t first = 0; first < n; first += CHUNK) {
        const int64_t rows = n - first < CHUNK ? n - first : CHUNK;
        ox_arena temp = OX_ARENA_INIT;
        const ox_tensor *t;
        int64_t width;
        st = rows_of(o, v, first, rows, &temp, &t, &width);
        const bool ok = !st && t && (width == pairs || width == 2 * pairs);
        for (int64_t i = 0; ok && i < rows * pairs; i++)
            p[first * pairs + i] = ox_tensor_f32(
                t, (size_t)(i / pairs * width + column(i % pairs, pairs, width, interleaved)));
        ox_arena_deinit(&temp);
        if (!ok) return st;
    }
    *out = p;
    return OX_OK;
}

/* Pairs of a row, once or twice there; 0 = not a function of positions. */
static ox_status pairs_of(ox_opt *o, ox_value_id v, bool doubled, bool interleaved, int64_t *pairs)
{
    ox_arena temp = OX_ARENA_INIT;
    ox_status st = OX_OK;
    const ox_tensor *all, *some;
    int64_t width, width2;
    *pairs = 0;
    OX_TRY_GOTO(rows_of(o, v, 0, 12, &temp, &all, &width));
    OX_TRY_GOTO(rows_of(o, v, 5, 7, &temp, &some, &width2));
    if (!all || !some || width != width2) goto fail;
    for (int64_t i = 0; i < 7 * width; i++)
        if (ox_tensor_f32(all, (size_t)(5 * width + i)) != ox_tensor_f32(some, (size_t)i))
            goto fail;
    if (doubled && !is_doubled(all, 12, width, interleaved)) goto fail;
    *pairs = doubled ? width / 2 : width;
fail:
    ox_arena_deinit(&temp);
    return st;
}

/* Row `at` of a known table is what v computes there. */
static ox_status same_row(ox_opt *o, ox_value_id v, const float *table, const ox_rotary *r,
                          int64_t at, bool *same)
{
    const int64_t pairs = r->rotary / 2;
    ox_arena temp = OX_ARENA_INIT;
    const ox_tensor *t;
    int64_t width;
    const ox_status st = rows_of(o, v, at, 1, &temp, &t, &width);
    *same = !st && t && (width == pairs || width == 2 * pairs);
    for (int64_t i = 0; *same && i < pairs; i++)
        *same = ox_tensor_f32(t, (size_t)column(i, pairs, width, r->interleaved)) ==
                table[at * pairs + i];
    ox_arena_deinit(&temp);
    return st;
}

/* Layers often compute the same table each on its own: compare a near and the last position. */
static ox_status known_table(ox_opt *o, ox_turned *t, int64_t pairs, int64_t n)
{
    for (size_t i = 0; i < o->turned.n; i++) {
        const ox_rotary *r = o->turned.p[i].rotary;
        const int64_t at[2] = {1, n - 1};
        bool same = r && r->rotary == 2 * pairs && r->interleaved == t->interleaved &&
                    r->n_positions == n && n > 1;
        for (int k = 0; same && k < 2; k++) {
            OX_TRY(same_row(o, t->cos, r->cos_table, r, at[k], &same));
            if (same) OX_TRY(same_row(o, t->sin, r->sin_table, r, at[k], &same));
        }
        if (same) t->rotary = r;
        if (same) break;
    }
    return OX_OK;
}

static ox_status compute(ox_opt *o, ox_turned *t, bool doubled)
{
    int64_t pairs, sin_pairs, n = o->ports->n_positions > 0 ? o->ports->n_positions : POSITIONS;
    if (n > POSITIONS_MAX) n = POSITIONS_MAX;
    OX_TRY(pairs_of(o, t->cos, doubled, t->interleaved, &pairs));
    OX_TRY(pairs_of(o, t->sin, doubled, t->interleaved, &sin_pairs));
    if (pairs <= 0 || pairs != sin_pairs) return OX_OK;
    OX_TRY(known_table(o, t, pairs, n));
    if (t->rotary) return OX_OK;
    ox_rotary *r = ox_arena_take(o->arena, sizeof(*r));
    if (!r) return OX_FAIL(o->err, OX_NO_MEMORY, "no memory for rotary tables");
    *r = (ox_rotary){
        .rotary = (int32_t)pairs * 2, .interleaved = t->interleaved, .n_positions = (int32_t)n};
    OX_TRY(table_of(o, t->cos, n, pairs, t->interleaved, &r->cos_table));
    OX_TRY(table_of(o, t->sin, n, pairs, t->interleaved, &r->sin_table));
    if (r->cos_table && r->sin_table) t->rotary = r;
    return OX_OK;
}

ox_status ox_opt_rotary_computed(ox_opt *o, ox_value_id cos_value, ox_value_id sin_value,
                                 bool doubled, bool interleaved, const ox_rotary **out)
{
    ox_turned t = {.cos = cos_value, .sin = sin_value, .interleaved = interleaved};
    const ox_value_id cos_table = gathered_table(o, cos_value);
    const ox_value_id sin_table = gathered_table(o, sin_value);
    *out = NULL;
    if (!doubled && ox_value_is(cos_table) && ox_value_is(sin_table))
        return ox_opt_rotary(o, cos_table, sin_table, interleaved, out);
    for (size_t i = 0; i < o->turned.n; i++) {
        const ox_turned *x = &o->turned.p[i];
        if (x->cos.i != t.cos.i || x->sin.i != t.sin.i || x->interleaved != interleaved) continue;
        *out = x->rotary;
        return OX_OK;
    }
    if (o->turned.n >= TABLES_MAX) return OX_OK; /* no model has as many; each costs time */
    OX_TRY(compute(o, &t, doubled));
    if (!ox_vec_push(&o->turned, t)) return OX_FAIL(o->err, OX_NO_MEMORY, "no memory for a table");
    *out = t.rotary;
    return OX_OK;
}
