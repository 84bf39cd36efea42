/* terms.c - see terms.h: names, and adding a term with its output's width worked out. */
#include "graph/terms.h"

static const struct {
    const char *name;
    size_t in_min, in_max;
} rows[OX_TERM_COUNT] = {
#define OX_TERM(suffix, name, in_min, in_max, n_out) {name, in_min, in_max},
#include "graph/terms.def"
#undef OX_TERM
};

const char *ox_term_name(ox_term_kind k)
{
    return (unsigned)k < OX_TERM_COUNT ? rows[k].name : "invalid";
}

/* Width of an operand; -1 = not known yet, which agrees with everything. */
static int64_t width_of(const ox_graph *g, ox_value_id v)
{
    const ox_value *x = ox_graph_value(g, v);
    const int64_t d = x->rank >= 1 ? x->dims[x->rank - 1] : -1;
    return d >= 0 ? d : -1;
}

static bool agree(int64_t a, int64_t b)
{
    return a < 0 || b < 0 || a == b;
}

static const char *check_vector(const ox_weight *w, int64_t n)
{
    if (w && (w->rows != 1 || !agree(w->cols, n))) return "a vector of another length";
    return NULL;
}

static const char *attend_width(const ox_term *t, const int64_t *in, int64_t *out)
{
    if (t->n_heads <= 0 || t->n_kv_heads <= 0 || t->n_heads % t->n_kv_heads)
        return "bad head counts";
    if (t->head_size <= 0 || t->v_head_size <= 0) return "bad head sizes";
    if (!agree(in[0], (int64_t)t->n_heads * t->head_size)) return "a query of another width";
    if (!agree(in[1], (int64_t)t->n_kv_heads * t->head_size)) return "a key of another width";
    if (!agree(in[2], (int64_t)t->n_kv_heads * t->v_head_size)) return "a value of another width";
    *out = (int64_t)t->n_heads * t->v_head_size;
    return check_vector(t->sinks, t->n_heads);
}

/* NULL, or what is wrong with the operands. */
static const char *term_width(const ox_term *t, const int64_t *in, int64_t *out)
{
    *out = in[0];
    switch (t->kind) {
    case OX_TERM_EMBED:
        if (!t->weight) return "no table";
        *out = t->weight->cols;
        return NULL;
    case OX_TERM_NORM:
        if (t->group < 0 || (t->group && in[0] >= 0 && in[0] % t->group)) return "a bad group";
        if (check_vector(t->weight, t->group ? t->group : in[0]))
            return "a gamma of another length";
        return check_vector(t->bias, t->group ? t->group : in[0]);
    case OX_TERM_LINEAR:
    case OX_TERM_HEAD:
        if (!t->weight) return "no weight";
        if (!agree(in[0], t->weight->cols)) return "a weight of another width";
        *out = t->weight->rows;
        return check_vector(t->bias, *out);
    case OX_TERM_SLICE:
        if (t->first < 0 || t->width <= 0 || (in[0] >= 0 && (int64_t)t->first + t->width > in[0]))
            return "a slice outside its operand";
        *out = t->width;
        return NULL;
    case OX_TERM_ROTATE:
        if (!t->rotary) return "no rotary tables";
        if (t->rotary->rotary <= 0 || t->rotary->rotary % 2 || t->rotary->rotary > t->head_size)
            return "a bad rotary width";
        return agree(in[0], (int64_t)t->n_heads * t->head_size) ? NULL : "heads of another width";
    case OX_TERM_ATTEND:
        return attend_width(t, in, out);
    case OX_TERM_GLU:
    case OX_TERM_ADD:
        if (in[0] < 0) *out = in[1];
        return agree(in[0], in[1]) ? NULL : "operands of different widths";
    default:
        return NULL;
    }
}

ox_status ox_graph_add_term(ox_graph *g, const ox_term *term, ox_str name,
                            const ox_value_id *inputs, size_t n_inputs, ox_value_id *output,
                            ox_err *err)
{
    int64_t in[3] = {-1, -1, -1}, width;
    ox_value_id ids[3] = {{0}};
    ox_node_id id;
    *output = OX_NO_VALUE;
    if ((unsigned)term->kind >= OX_TERM_COUNT || n_inputs < rows[term->kind].in_min ||
        n_inputs > rows[term->kind].in_max || n_inputs > OX_COUNT(in))
        return OX_FAIL(err, OX_BAD_ARGUMENT, "term \"%.*s\" (%s) cannot have %zu operands",
                       OX_STR_ARGS(name), ox_term_name(term->kind), n_inputs);
    for (size_t i = 0; i < n_inputs; i++) {
        if (inputs[i].i < 0 || inputs[i].i >= (int32_t)g->values.n)
            return OX_FAIL(err, OX_BAD_ARGUMENT, "term \"%.*s\" (%s) lacks operand %zu",
                           OX_STR_ARGS(name), ox_term_name(term->kind), i);
        ids[i] = inputs[i];
        in[i] = width_of(g, inputs[i]);
    }
    const char *wrong = term_width(term, in, &width);
    const ox_str weight = term->weight ? term->weight->name : OX_STR("");
    if (wrong)
        return OX_FAIL(
            err, OX_BAD_FILE,
            "term \"%.*s\" (%s) has %s: operand widths %lld, %lld, %lld; weight \"%.*s\"",
            OX_STR_ARGS(name), ox_term_name(term->kind), wrong, (long long)in[0], (long long)in[1],
            (long long)in[2], OX_STR_ARGS(weight));
    ox_term *copy = ox_arena_take(g->arena, sizeof(*copy));
    if (!copy) return OX_FAIL(err, OX_NO_MEMORY, "no memory for term \"%.*s\"", OX_STR_ARGS(name));
    *copy = *term;
    OX_TRY(ox_graph_add_value(g, name, output, err));
    const ox_value *first = ox_graph_value(g, ids[0]);
    ox_value *v = ox_graph_value(g, *output);
    v->dtype = OX_DTYPE_F32;
    v->rank = 2;
    v->dims[0] = first->rank >= 1 ? first->dims[0] : OX_DIM_UNKNOWN;
    if (term->kind == OX_TERM_HEAD) v->dims[0] = ox_graph_symbol(g, OX_STR("rows_wanted"));
    v->dims[1] = width;
    const ox_node n = {.name = name,
                       .op_type = ox_str_of(ox_term_name(term->kind)),
                       .version = 1,
                       .n_inputs = (uint32_t)n_inputs,
                       .inputs = ids,
                       .n_outputs = 1,
                       .outputs = output,
                       .term = copy};
    return ox_graph_add_node(g, &n, &id, err);
}

bool ox_graph_is_terms(const ox_graph *g)
{
    for (size_t i = 0; i < g->nodes.n; i++)
        if (!g->nodes.p[i].dead && !g->nodes.p[i].term) return false;
    return true;
}
