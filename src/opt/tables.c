/* tables.c - rotary cosine and sine tables: constants, or a pair of constants that an If chooses by
 * the total length. Converted to float32 once and shared between layers. */
#include "opt/opt_internal.h"

enum { POSITIONS_MAX = 1 << 24, KEYS = 4 };

/* One table as the file has it. */
typedef struct choice {
    const ox_tensor *base, *more; /* more: used beyond switch_length; NULL = one table */
    int64_t switch_length;
} choice;

/* The constant that a branch of an If gives as output i. */
static const ox_tensor *branch_constant(const ox_opt *o, const ox_node *n, const char *branch,
                                        size_t i)
{
    const ox_attr *a = ox_node_attr(n, branch);
    if (!a || a->type != OX_ATTR_GRAPH || !a->g || i >= a->g->outputs.n) return NULL;
    const ox_graph *g = a->g;
    for (int depth = 0, v = g->outputs.p[i].i; depth < 16 && v >= 0; depth++) {
        const ox_value *x = &g->values.p[v];
        if (x->kind == OX_VALUE_CONSTANT) return x->constant;
        if (x->kind == OX_VALUE_CAPTURE)
            return g->parent == o->old ? ox_opt_constant(o, x->outer) : NULL;
        if (x->kind != OX_VALUE_NODE || x->producer.i < 0) return NULL;
        const ox_node *p = ox_graph_node(g, x->producer);
        const ox_attr *value = ox_node_attr(p, "value");
        if (ox_node_is(p, "Constant"))
            return value && value->type == OX_ATTR_TENSOR ? value->t : NULL;
        if (!ox_node_is(p, "Identity") || p->n_inputs != 1) return NULL;
        v = ox_node_in(p, 0).i;
    }
    return NULL;
}

static const struct {
    const char *op;
    bool number_first, then_is_long;
    int shift;
} comparisons[] = {
    {"Greater", false, true, 0},  {"GreaterOrEqual", false, true, -1},
    {"Less", true, true, 0},      {"LessOrEqual", true, true, -1},
    {"Less", false, false, -1},   {"LessOrEqual", false, false, 0},
    {"Greater", true, false, -1}, {"GreaterOrEqual", true, false, 0},
};

/* If(total > number): which branch is for long sequences, and the number. */
static bool length_switch(const ox_opt *o, ox_value_id v, bool *then_is_long, int64_t *number)
{
    const ox_node *c = ox_opt_producer(o, v);
    for (int i = 0; i < 8 && c && c->n_inputs == 1 &&
                    (ox_node_is(c, "Squeeze") || ox_node_is(c, "Reshape") || ox_node_is(c, "Cast"));
         i++)
        c = ox_opt_producer(o, ox_node_in(c, 0));
    for (size_t i = 0; c && i < OX_COUNT(comparisons); i++) {
        float x;
        if (!ox_node_is(c, comparisons[i].op) || c->n_inputs != 2) continue;
        if (!ox_opt_scalar(o, c->inputs[comparisons[i].number_first ? 0 : 1], &x)) continue;
        *then_is_long = comparisons[i].then_is_long;
        *number = (int64_t)x + comparisons[i].shift;
        return x >= 0 && x < (float)POSITIONS_MAX;
    }
    return false;
}

static bool find_choice(const ox_opt *o, ox_value_id v, choice *out)
{
    bool then_is_long;
    const ox_value_id bare = ox_opt_bare(o, v);
    *out = (choice){.base = ox_opt_constant(o, bare)};
    if (out->base) return true;
    const ox_node *n = ox_opt_producer(o, bare);
    if (!ox_node_is(n, "If") ||
        !length_switch(o, ox_node_in(n, 0), &then_is_long, &out->switch_length))
        return false;
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        if (n->outputs[i].i != bare.i) continue;
        const ox_tensor *a = branch_constant(o, n, "then_branch", i);
        const ox_tensor *b = branch_constant(o, n, "else_branch", i);
        out->base = then_is_long ? b : a;
        out->more = then_is_long ? a : b;
        return a && b;
    }
    return false;
}

static bool is_table(const ox_tensor *t)
{
    return t && t->data && t->rank == 2 && t->dims[0] > 0 && t->dims[0] <= POSITIONS_MAX &&
           t->dims[1] > 0 && t->dims[1] <= 1 << 16 &&
           (t->dtype == OX_DTYPE_F32 || t->dtype == OX_DTYPE_F16 || t->dtype == OX_DTYPE_BF16);
}

static bool same_shape(const ox_tensor *a, const ox_tensor *b)
{
    return a->dims[0] == b->dims[0] && a->dims[1] == b->dims[1];
}

/* float32 [n_positions, pairs]; rows that t lacks are read from `rest` (they are never used). */
static const float *as_f32(ox_opt *o, const ox_tensor *t, const ox_tensor *rest,
                           int64_t n_positions)
{
    const size_t pairs = (size_t)t->dims[1], n = (size_t)n_positions * pairs;
    const size_t own = (size_t)t->dims[0] * pairs;
    if (t->dtype == OX_DTYPE_F32 && own == n) return t->data;
    float *p = ox_arena_take_n(o->arena, n, sizeof(*p));
    for (size_t i = 0; p && i < n; i++)
        p[i] = ox_tensor_f32(i < own ? t : rest, i);
    return p;
}

ox_status ox_opt_rotary(ox_opt *o, ox_value_id cos_value, ox_value_id sin_value, bool interleaved,
                        const ox_rotary **out)
{
    choice c, s;
    *out = NULL;
    if (!find_choice(o, cos_value, &c) || !find_choice(o, sin_value, &s)) return OX_OK;
    if (!is_table(c.base) || !is_table(s.base) || !same_shape(c.base, s.base)) return OX_OK;
    if (!c.more != !s.more || c.switch_length != s.switch_length) return OX_OK;
    if (c.more && (!is_table(c.more) || !is_table(s.more) || !same_shape(c.more, s.more) ||
                   c.more->dims[1] != c.base->dims[1]))
        return OX_OK;
    const void *keys[KEYS] = {c.base->data, s.base->data, c.more ? c.more->data : NULL,
                              s.more ? s.more->data : NULL};
    for (size_t i = 0; i < o->rotaries.n; i++) {
        *out = o->rotaries.p[i];
        if (!memcmp(keys, &o->rotary_keys.p[i * KEYS], sizeof(keys)) &&
            o->rotaries.p[i]->interleaved == interleaved)
            return OX_OK;
    }
    ox_rotary *r = ox_arena_take(o->arena, sizeof(*r));
    bool ok = r != NULL;
    if (ok) {
        int64_t n = c.base->dims[0];
        if (c.more && c.more->dims[0] > n) n = c.more->dims[0];
        *r = (ox_rotary){.rotary = (int32_t)c.base->dims[1] * 2,
                         .interleaved = interleaved,
                         .n_positions = (int32_t)n,
                         .switch_length = (int32_t)c.switch_length};
        r->cos_table = as_f32(o, c.base, c.more, n);
        r->sin_table = as_f32(o, s.base, s.more, n);
        ok = r->cos_table && r->sin_table;
        if (ok && c.more) {
            r->long_cos = as_f32(o, c.more, c.base, n);
            r->long_sin = as_f32(o, s.more, s.base, n);
            ok = r->long_cos && r->long_sin;
        }
    }
    for (int i = 0; ok && i < KEYS; i++)
        ok = ox_vec_push(&o->rotary_keys, keys[i]);
    if (!ok || !ox_vec_push(&o->rotaries, r))
        return OX_FAIL(o->err, OX_NO_MEMORY, "no memory for rotary tables");
    *out = r;
    return OX_OK;
}
