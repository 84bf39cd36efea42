/* expr.c - the evaluator of expressions: one function for each kind of node.
 *
 * j->line follows the nodes, so that whatever fails below can name the line. Next: arith.c
 * (operators), access.c (attributes, items, slices), call.c. */
#include "text/jinja/builtin.h"

typedef ox_status (*eval_fn)(ox_jstate *j, const ox_jnode *n, ox_jval *out);

static ox_status eval_const(ox_jstate *j, const ox_jnode *n, ox_jval *out)
{
    (void)j;
    *out = n->u.value;
    return OX_OK;
}

static ox_status eval_name(ox_jstate *j, const ox_jnode *n, ox_jval *out)
{
    for (const ox_jframe *f = j->frame; f; f = f->up) {
        j->steps += f->n / 16; /* frames are searched in full; checked at the next node */
        for (uint32_t i = f->n; i--;)
            if (f->vars[i].name == n->name) {
                *out = f->vars[i].value;
                return OX_OK;
            }
    }
    *out = j->globals[n->name];
    if (out->kind == OX_JKIND_MISSING) *out = ox_jundefined(n);
    return OX_OK;
}

static ox_status eval_nsref(ox_jstate *j, const ox_jnode *n, ox_jval *out)
{
    (void)n;
    (void)out;
    return OX_JFAIL(j,
                    "ns.name is only possible on the left of a set"); /* the parser prevents it */
}

static ox_status eval_items(ox_jstate *j, const ox_jnode *n, ox_jkind kind, ox_jval *out)
{
    ox_jseq *s;
    OX_TRY(ox_jseq_new(j, n->u.list.n, &s));
    for (size_t i = 0; i < n->u.list.n; i++) {
        OX_TRY(ox_jeval(j, n->u.list.p[i], &s->p[i]));
        s->n = i + 1;
    }
    *out = ox_jseqval(kind, s);
    return OX_OK;
}

static ox_status eval_list(ox_jstate *j, const ox_jnode *n, ox_jval *out)
{
    return eval_items(j, n, OX_JKIND_LIST, out);
}

static ox_status eval_tuple(ox_jstate *j, const ox_jnode *n, ox_jval *out)
{
    return eval_items(j, n, OX_JKIND_TUPLE, out);
}

static ox_status eval_dict(ox_jstate *j, const ox_jnode *n, ox_jval *out)
{
    ox_jdict *d;
    OX_TRY(ox_jdict_new(j, &d));
    for (size_t i = 0; i + 1 < n->u.list.n; i += 2) {
        ox_jval key, value;
        OX_TRY(ox_jeval(j, n->u.list.p[i], &key));
        OX_TRY(ox_jeval(j, n->u.list.p[i + 1], &value));
        OX_TRY(ox_jdict_put(j, d, key, value));
    }
    *out = ox_jdictval(d);
    return OX_OK;
}

static ox_status eval_getattr(ox_jstate *j, const ox_jnode *n, ox_jval *out)
{
    ox_jval a;
    OX_TRY(ox_jeval(j, n->a, &a));
    return ox_jgetattr(j, a, n->u.value, n, out);
}

static ox_status eval_bounds(ox_jstate *j, const ox_jnode *n, ox_jval bounds[3])
{
    const ox_jnode *const nodes[3] = {n->a, n->b, n->c};
    for (int i = 0; i < 3; i++) {
        bounds[i] = ox_jnone();
        if (nodes[i]) OX_TRY(ox_jeval(j, nodes[i], &bounds[i]));
    }
    return OX_OK;
}

static ox_status eval_getitem(ox_jstate *j, const ox_jnode *n, ox_jval *out)
{
    ox_jval a, index, bounds[3];
    OX_TRY(ox_jeval(j, n->a, &a));
    if (n->b->op == OX_JOP_SLICE) {
        OX_TRY(eval_bounds(j, n->b, bounds));
        return ox_jslice(j, a, bounds, out);
    }
    OX_TRY(ox_jeval(j, n->b, &index));
    return ox_jgetitem(j, a, index, n, out);
}

static ox_status eval_slice(ox_jstate *j, const ox_jnode *n, ox_jval *out)
{
    (void)n;
    (void)out;
    return OX_JFAIL(j, "a slice can't be part of a longer index");
}

/* The method that a.name(…) calls, without making a value of it; NULL when it isn't one. */
static const ox_jbuiltin *direct_method(ox_jval self, const ox_jnode *n)
{
    if (!n->methods) return NULL;
    switch (self.kind) {
    case OX_JKIND_STR:
        return n->methods[0];
    case OX_JKIND_LIST:
        return n->methods[1];
    case OX_JKIND_DICT:
        return n->methods[2];
    default:
        return NULL;
    }
}

static ox_status eval_call(ox_jstate *j, const ox_jnode *n, ox_jval *out)
{
    ox_jargs args;
    ox_jval f;
    if (n->a->op == OX_JOP_GETATTR) {
        ox_jval self;
        OX_TRY(ox_jeval(j, n->a->a, &self));
        const ox_jbuiltin *method = direct_method(self, n->a);
        if (method) {
            OX_TRY(ox_jargs_eval(j, n->u.call.args, &args));
            return ox_jcall_builtin(j, method, self, &args, out);
        }
        OX_TRY(ox_jgetattr(j, self, n->a->u.value, n->a, &f));
    } else {
        OX_TRY(ox_jeval(j, n->a, &f));
    }
    OX_TRY(ox_jargs_eval(j, n->u.call.args, &args));
    j->line = n->line;
    return ox_jcall(j, f, &args, out);
}

static ox_status eval_filter(ox_jstate *j, const ox_jnode *n, ox_jval *out)
{
    ox_jval a;
    ox_jargs args;
    if (n->a)
        OX_TRY(ox_jeval(j, n->a, &a));
    else
        a = *j->block_value;
    if (!n->u.call.builtin)
        return ox_jfail(j, OX_UNSUPPORTED, "no filter named '%.*s'",
                        OX_STR_ARGS(j->tree->names[n->name]));
    OX_TRY(ox_jargs_eval(j, n->u.call.args, &args));
    return ox_jcall_builtin(j, n->u.call.builtin, a, &args, out);
}

static ox_status eval_test(ox_jstate *j, const ox_jnode *n, ox_jval *out)
{
    ox_jval a;
    ox_jargs args;
    OX_TRY(ox_jeval(j, n->a, &a));
    if (!n->u.call.builtin)
        return ox_jfail(j, OX_UNSUPPORTED, "no test named '%.*s'",
                        OX_STR_ARGS(j->tree->names[n->name]));
    OX_TRY(ox_jargs_eval(j, n->u.call.args, &args));
    OX_TRY(ox_jcall_builtin(j, n->u.call.builtin, a, &args, out));
    if (n->flag & OX_JNODE_NEGATED) *out = ox_jbool(!ox_jtruth(*out));
    return OX_OK;
}

static ox_status eval_neg(ox_jstate *j, const ox_jnode *n, ox_jval *out)
{
    OX_TRY(ox_jeval(j, n->a, out));
    if (ox_jis(*out, OX_JKIND_FLOAT)) {
        out->u.f = -out->u.f;
        return OX_OK;
    }
    return ox_jarith(j, OX_JOP_SUB, ox_jint(0), *out, out);
}

static ox_status eval_pos(ox_jstate *j, const ox_jnode *n, ox_jval *out)
{
    OX_TRY(ox_jeval(j, n->a, out));
    if (ox_jis(*out, OX_JKIND_FLOAT)) return OX_OK;
    return ox_jarith(j, OX_JOP_ADD, ox_jint(0), *out, out);
}

static ox_status eval_not(ox_jstate *j, const ox_jnode *n, ox_jval *out)
{
    OX_TRY(ox_jeval(j, n->a, out));
    *out = ox_jbool(!ox_jtruth(*out));
    return OX_OK;
}

static ox_status eval_and(ox_jstate *j, const ox_jnode *n, ox_jval *out)
{
    OX_TRY(ox_jeval(j, n->a, out));
    return ox_jtruth(*out) ? ox_jeval(j, n->b, out) : OX_OK;
}

static ox_status eval_or(ox_jstate *j, const ox_jnode *n, ox_jval *out)
{
    OX_TRY(ox_jeval(j, n->a, out));
    return ox_jtruth(*out) ? OX_OK : ox_jeval(j, n->b, out);
}

static ox_status eval_arith(ox_jstate *j, const ox_jnode *n, ox_jval *out)
{
    ox_jval a, b;
    OX_TRY(ox_jeval(j, n->a, &a));
    OX_TRY(ox_jeval(j, n->b, &b));
    return ox_jarith(j, (ox_jop)n->op, a, b, out);
}

static ox_status eval_concat(ox_jstate *j, const ox_jnode *n, ox_jval *out)
{
    ox_jval all, item;
    OX_TRY(ox_jeval(j, n->u.list.p[0], &all));
    OX_TRY(ox_jto_str(j, all, &all));
    for (size_t i = 1; i < n->u.list.n; i++) {
        OX_TRY(ox_jeval(j, n->u.list.p[i], &item));
        OX_TRY(ox_jto_str(j, item, &item));
        OX_TRY(ox_jstr_concat(j, all.u.str, item.u.str, &all));
    }
    *out = all;
    return OX_OK;
}

static ox_status compare_once(ox_jstate *j, ox_jtoken_kind op, ox_jval a, ox_jval b, bool *out)
{
    int order;
    switch (op) {
    case OX_JTOKEN_EQ:
        return ox_jequal(j, a, b, out);
    case OX_JTOKEN_NE:
        OX_TRY(ox_jequal(j, a, b, out));
        *out = !*out;
        return OX_OK;
    case OX_JTOKEN_IN:
        return ox_jcontains(j, a, b, out);
    case OX_JTOKEN_NOT_IN:
        OX_TRY(ox_jcontains(j, a, b, out));
        *out = !*out;
        return OX_OK;
    default:
        OX_TRY(ox_jcompare(j, a, b, ox_jtoken_text(op), &order));
        *out = op == OX_JTOKEN_LT   ? order == -1
               : op == OX_JTOKEN_LE ? order == -1 || order == 0
               : op == OX_JTOKEN_GT ? order == 1
                                    : order == 1 || order == 0;
        return OX_OK;
    }
}

static ox_status eval_compare(ox_jstate *j, const ox_jnode *n, ox_jval *out)
{
    ox_jval a, b;
    bool yes = true;
    OX_TRY(ox_jeval(j, n->a, &a));
    for (size_t i = 0; i < n->u.compare.list.n && yes; i++) {
        OX_TRY(ox_jeval(j, n->u.compare.list.p[i], &b));
        OX_TRY(compare_once(j, (ox_jtoken_kind)n->u.compare.ops[i], a, b, &yes));
        a = b;
    }
    *out = ox_jbool(yes);
    return OX_OK;
}

static ox_status eval_cond(ox_jstate *j, const ox_jnode *n, ox_jval *out)
{
    ox_jval test;
    OX_TRY(ox_jeval(j, n->a, &test));
    if (ox_jtruth(test)) return ox_jeval(j, n->b, out);
    if (n->c) return ox_jeval(j, n->c, out);
    *out = ox_jundefined(n);
    return OX_OK;
}

static const eval_fn evals[] = {
#define OX_JEXPR(name, fn) [OX_JOP_##name] = fn,
#define OX_JSTMT(name, fn)
#include "text/jinja/nodes.def"
#undef OX_JSTMT
#undef OX_JEXPR
};

ox_status ox_jeval(ox_jstate *j, const ox_jnode *n, ox_jval *out)
{
    const uint32_t line = j->line;
    j->line = n->line;
    OX_TRY(ox_jspend(j, 1));
    if (j->depth >= OX_JDEPTH_MAX)
        return ox_jfail(j, OX_UNSUPPORTED, "the template calls itself or is nested too deeply");
    j->depth++;
    OX_TRY(evals[n->op](j, n, out));
    j->depth--;
    j->line = line;
    return OX_OK;
}
