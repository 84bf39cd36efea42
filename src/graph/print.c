/* print.c - the IR as text, one line a node; for people, tests and bug reports. */
#include "graph/graph.h"
#include "graph/terms.h"

enum { LIST_SHOWN = 16 };

static const char *const format_names[OX_FORMAT_COUNT] = {
#define OX_FORMAT(suffix, name, code, block, bytes) name,
#include "tensor/formats.def"
#undef OX_FORMAT
};

static void put_dims(const ox_graph *g, const ox_value *v, ox_buf *out)
{
    const ox_graph *root = g;
    while (root->parent)
        root = root->parent;
    ox_buf_put_c(out, '[');
    ox_buf_put_z(out, v->dtype ? ox_dtype_name(v->dtype) : "?");
    if (v->rank < 0) ox_buf_put_z(out, " *");
    for (int32_t i = 0; i < v->rank; i++) {
        const int64_t d = v->dims[i];
        ox_buf_put_c(out, i ? 'x' : ' ');
        if (d >= 0)
            ox_buf_printf(out, "%lld", (long long)d);
        else if (d == OX_DIM_UNKNOWN || -d - 2 >= (int64_t)root->symbols.n)
            ox_buf_put_c(out, '?');
        else
            ox_buf_put_str(out, root->symbols.p[-d - 2]);
    }
    ox_buf_put_c(out, ']');
}

static void put_value(const ox_graph *g, ox_value_id id, bool typed, ox_buf *out)
{
    if (!ox_value_is(id)) {
        ox_buf_put_c(out, '_');
        return;
    }
    const ox_value *v = ox_graph_value(g, id);
    ox_buf_put_c(out, '%');
    ox_buf_put_str(out, v->name);
    if (!typed) return;
    if (v->type == OX_TYPE_SEQUENCE) ox_buf_put_z(out, " seq");
    if (v->type == OX_TYPE_OPTIONAL) ox_buf_put_z(out, " opt");
    put_dims(g, v, out);
}

static void put_values(const ox_graph *g, const ox_value_id *ids, size_t n, bool typed, ox_buf *out)
{
    for (size_t i = 0; i < n; i++) {
        if (i) ox_buf_put_z(out, ", ");
        put_value(g, ids[i], typed, out);
    }
}

static void put_attr(const ox_attr *a, ox_buf *out)
{
    ox_buf_put_str(out, a->name);
    ox_buf_put_c(out, '=');
    const size_t shown = a->n < LIST_SHOWN ? a->n : LIST_SHOWN;
    switch (a->type) {
    case OX_ATTR_FLOAT:
        ox_buf_printf(out, "%g", (double)a->f);
        return;
    case OX_ATTR_INT:
        ox_buf_printf(out, "%lld", (long long)a->i);
        return;
    case OX_ATTR_STRING:
        ox_buf_printf(out, "\"%.*s\"", OX_STR_ARGS(a->s));
        return;
    case OX_ATTR_TENSOR:
        ox_buf_printf(out, "<%s tensor>", a->t ? ox_dtype_name(a->t->dtype) : "no");
        return;
    case OX_ATTR_FLOATS:
    case OX_ATTR_INTS:
    case OX_ATTR_STRINGS:
        ox_buf_put_c(out, '[');
        for (size_t i = 0; i < shown; i++) {
            if (i) ox_buf_put_z(out, ", ");
            if (a->type == OX_ATTR_FLOATS) ox_buf_printf(out, "%g", (double)a->floats[i]);
            if (a->type == OX_ATTR_INTS) ox_buf_printf(out, "%lld", (long long)a->ints[i]);
            if (a->type == OX_ATTR_STRINGS)
                ox_buf_printf(out, "\"%.*s\"", OX_STR_ARGS(a->strings[i]));
        }
        ox_buf_put_z(out, shown < a->n ? ", ...]" : "]");
        return;
    case OX_ATTR_GRAPH:
    case OX_ATTR_GRAPHS:
        ox_buf_put_z(out, "<graph>");
        return;
    default:
        ox_buf_put_z(out, "<...>");
    }
}

static void put_term(const ox_term *t, ox_buf *out)
{
    if (t->weight)
        ox_buf_printf(out, " weight=%.*s:%s %lldx%lld", OX_STR_ARGS(t->weight->name),
                      format_names[t->weight->format], (long long)t->weight->rows,
                      (long long)t->weight->cols);
    if (t->bias) ox_buf_printf(out, " bias=%.*s", OX_STR_ARGS(t->bias->name));
    if (t->kind == OX_TERM_NORM)
        ox_buf_printf(out, " %s eps=%g group=%d", t->centre ? "layer" : "rms", (double)t->epsilon,
                      t->group);
    if (t->kind == OX_TERM_SLICE) ox_buf_printf(out, " first=%d width=%d", t->first, t->width);
    if (t->kind == OX_TERM_ACT || t->kind == OX_TERM_GLU)
        ox_buf_printf(out, " act=%d", (int)t->act);
    if (t->kind == OX_TERM_ROTATE && t->rotary)
        ox_buf_printf(out, " heads=%d x %d rotary=%d%s", t->n_heads, t->head_size,
                      t->rotary->rotary, t->rotary->interleaved ? " interleaved" : "");
    if (t->kind == OX_TERM_ATTEND)
        ox_buf_printf(out, " heads=%d/%d x %d/%d cache=%d window=%d%s", t->n_heads, t->n_kv_heads,
                      t->head_size, t->v_head_size, t->cache.i, t->window,
                      t->sinks ? " sinks" : "");
    const bool scales = t->kind == OX_TERM_EMBED || t->kind == OX_TERM_SCALE ||
                        t->kind == OX_TERM_HEAD || t->kind == OX_TERM_ATTEND;
    if (scales) ox_buf_printf(out, " scale=%g", (double)t->scale);
    if (scales && t->softcap > 0) ox_buf_printf(out, " softcap=%g", (double)t->softcap);
}

static void print(const ox_graph *g, int depth, ox_buf *out);

static void print_node(const ox_graph *g, const ox_node *n, int depth, ox_buf *out)
{
    ox_buf_printf(out, "%*s", depth * 2, "");
    put_values(g, n->outputs, n->n_outputs, true, out);
    ox_buf_put_z(out, " = ");
    if (n->domain.n && !n->term) ox_buf_printf(out, "%.*s.", OX_STR_ARGS(n->domain));
    ox_buf_put_str(out, n->op_type);
    ox_buf_put_c(out, '(');
    put_values(g, n->inputs, n->n_inputs, false, out);
    ox_buf_put_c(out, ')');
    if (n->term) put_term(n->term, out);
    if (n->n_attrs) {
        ox_buf_put_z(out, " {");
        for (uint32_t i = 0; i < n->n_attrs; i++) {
            if (i) ox_buf_put_z(out, ", ");
            put_attr(&n->attrs[i], out);
        }
        ox_buf_put_c(out, '}');
    }
    ox_buf_put_c(out, '\n');
    for (uint32_t i = 0; i < n->n_attrs; i++) {
        const ox_attr *a = &n->attrs[i];
        if (a->type == OX_ATTR_GRAPH && a->g) print(a->g, depth + 1, out);
    }
}

static void print(const ox_graph *g, int depth, ox_buf *out)
{
    ox_buf_printf(out, "%*sgraph %.*s(", depth * 2, "", OX_STR_ARGS(g->name));
    put_values(g, g->inputs.p, g->inputs.n, true, out);
    ox_buf_put_z(out, ") -> (");
    put_values(g, g->outputs.p, g->outputs.n, false, out);
    ox_buf_put_z(out, ")\n");
    for (size_t i = 0; i < g->nodes.n; i++)
        if (!g->nodes.p[i].dead) print_node(g, &g->nodes.p[i], depth + 1, out);
}

void ox_graph_print(const ox_graph *g, ox_buf *out)
{
    print(g, 0, out);
}
