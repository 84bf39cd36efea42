/* attrs.c - values of attributes against attrs.def, before anything reads them. */
#include "ops/op_internal.h"

#include <math.h>
#include <stdio.h>

typedef struct range {
    const char *op, *name;
    double least, most;
    bool required;
} range;

static const range ranges[] = {
#define OX_ATTR_RANGE(op, name, least, most) {#op, #name, (double)(least), (double)(most), false},
#define OX_ATTR_REQUIRED(op, name, least, most) {#op, #name, (double)(least), (double)(most), true},
#include "ops/attrs.def"
};

static const struct {
    const char *op, *part, *whole;
} divisors[] = {
#define OX_ATTR_DIVIDES(op, part, whole) {#op, #part, #whole},
#include "ops/attrs.def"
};

static ox_status damaged(const ox_node *n, const char *what, ox_err *err)
{
    return OX_FAIL(
        err, OX_BAD_FILE,
        "node %.*s (%.*s): attribute %s; the file is damaged or made by a newer exporter",
        OX_STR_ARGS(n->name), OX_STR_ARGS(n->op_type), what);
}

static ox_status check_range(const ox_node *n, const range *r, ox_err *err)
{
    char text[160];
    const ox_attr *a = ox_node_attr(n, r->name);
    if (!a && !r->required) return OX_OK;
    const double v = !a                         ? (double)NAN
                     : a->type == OX_ATTR_INT   ? (double)a->i
                     : a->type == OX_ATTR_FLOAT ? (double)a->f
                                                : (double)NAN;
    if (v >= r->least && v <= r->most) return OX_OK;
    if (!a)
        snprintf(text, sizeof(text), "%s is missing", r->name);
    else if (a->type != OX_ATTR_INT && a->type != OX_ATTR_FLOAT)
        snprintf(text, sizeof(text), "%s must be a number", r->name);
    else if (v < r->least)
        snprintf(text, sizeof(text), "%s must be >= %.9g, found %.17g", r->name, r->least, v);
    else
        snprintf(text, sizeof(text), "%s must be %.9g to %.9g, found %.17g", r->name, r->least,
                 r->most, v);
    return damaged(n, text, err);
}

static ox_status check_node(const ox_node *n, ox_err *err)
{
    char text[160];
    for (size_t i = 0; i < OX_COUNT(ranges); i++)
        if (ox_str_is(n->op_type, ranges[i].op)) OX_TRY(check_range(n, &ranges[i], err));
    for (size_t i = 0; i < OX_COUNT(divisors); i++) {
        if (!ox_str_is(n->op_type, divisors[i].op)) continue;
        const int64_t part = ox_node_int(n, divisors[i].part, 1);
        const int64_t whole = ox_node_int(n, divisors[i].whole, 0);
        if (part > 0 && whole % part == 0) continue;
        snprintf(text, sizeof(text), "%s must divide %s, found %lld and %lld", divisors[i].part,
                 divisors[i].whole, (long long)part, (long long)whole);
        return damaged(n, text, err);
    }
    return OX_OK;
}

ox_status ox_op_check_attrs(const ox_graph *g, ox_err *err)
{
    for (size_t i = 0; i < g->nodes.n; i++) {
        const ox_node *n = &g->nodes.p[i];
        if (n->dead || n->term) continue;
        OX_TRY(check_node(n, err));
        for (uint32_t k = 0; k < n->n_attrs; k++)
            if (n->attrs[k].type == OX_ATTR_GRAPH && n->attrs[k].g)
                OX_TRY(ox_op_check_attrs(n->attrs[k].g, err));
    }
    return OX_OK;
}
