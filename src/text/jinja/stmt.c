/* stmt.c - the evaluator of statements: text, printing, if, for, set, macros, blocks; and frames,
 * which hold the variables of a loop, macro or block.
 *
 * A set inside a loop or block stays in there, inside an if it does not; macros see the frame that
 * they were defined in, not the one that calls them. */
#include "text/jinja/builtin.h"

typedef ox_status (*exec_fn)(ox_jstate *j, const ox_jnode *n);

ox_status ox_jframe_new(ox_jstate *j, ox_jframe *up, ox_jframe **out)
{
    void *mem;
    OX_TRY(ox_jtake(j, 1, sizeof(ox_jframe), &mem));
    *out = mem;
    (*out)->up = up;
    return OX_OK;
}

ox_status ox_jframe_set(ox_jstate *j, ox_jframe *f, uint32_t name, ox_jval v)
{
    OX_TRY(ox_jspend(j, f->n / 16));
    for (uint32_t i = 0; i < f->n; i++)
        if (f->vars[i].name == name) {
            f->vars[i].value = v;
            return OX_OK;
        }
    if (f->n == f->cap) {
        const uint32_t cap = f->cap ? f->cap * 2 : 4;
        void *mem;
        OX_TRY(ox_jtake(j, cap, sizeof(ox_jvar), &mem));
        if (f->n) memcpy(mem, f->vars, f->n * sizeof(ox_jvar));
        f->vars = mem;
        f->cap = cap;
    }
    f->vars[f->n++] = (ox_jvar){name, v};
    return OX_OK;
}

static ox_status set_variable(ox_jstate *j, uint32_t name, ox_jval v)
{
    if (j->frame) return ox_jframe_set(j, j->frame, name, v);
    j->globals[name] = v;
    return OX_OK;
}

static ox_status set_attribute(ox_jstate *j, const ox_jnode *n, ox_jval v)
{
    ox_jval ns;
    const ox_jnode name = {.op = OX_JOP_NAME, .line = n->line, .name = n->name};
    OX_TRY(ox_jeval(j, &name, &ns));
    if (!ox_jis(ns, OX_JKIND_NAMESPACE))
        return OX_JFAIL(j, "only a namespace takes new attributes, '%.*s' is %s",
                        OX_STR_ARGS(j->tree->names[n->name]), ox_jkind_name(ns));
    const ox_str key = ox_jview(n->u.value);
    if (key.n && key.p[0] == '_')
        return OX_JFAIL(j, "an attribute of a namespace can't begin with _: '%.*s'",
                        OX_STR_ARGS(key));
    return ox_jdict_put(j, ns.u.dict, n->u.value, v);
}

static ox_status assign(ox_jstate *j, const ox_jnode *target, ox_jval v)
{
    if (target->op == OX_JOP_NAME) return set_variable(j, target->name, v);
    if (target->op == OX_JOP_NSREF) return set_attribute(j, target, v);
    ox_jseq *s;
    OX_TRY(ox_jiterate(j, v, &s));
    if (s->n != target->u.list.n)
        return OX_JFAIL(j, "%zu values for %zu names", s->n, target->u.list.n);
    for (size_t i = 0; i < s->n; i++)
        OX_TRY(assign(j, target->u.list.p[i], s->p[i]));
    return OX_OK;
}

ox_status ox_jcapture(ox_jstate *j, const ox_jnodes *body, ox_jval *out)
{
    ox_jbuf b = {0};
    ox_jbuf *const before = j->out;
    j->out = &b;
    const ox_status st = ox_jexec(j, body);
    j->out = before;
    return st ? st : ox_jbuf_take(j, &b, out);
}

/* The same in a frame of its own. */
static ox_status capture_scoped(ox_jstate *j, const ox_jnodes *body, ox_jval *out)
{
    ox_jframe *const before = j->frame, *f;
    OX_TRY(ox_jframe_new(j, before, &f));
    j->frame = f;
    OX_TRY(ox_jcapture(j, body, out));
    j->frame = before;
    return OX_OK;
}

/* A filter chain whose innermost operand is v. */
static ox_status filter_block_value(ox_jstate *j, const ox_jnode *chain, ox_jval *v)
{
    const ox_jval value = *v;
    const ox_jval *const before = j->block_value;
    j->block_value = &value;
    const ox_status st = ox_jeval(j, chain, v);
    j->block_value = before;
    return st;
}

static ox_status exec_text(ox_jstate *j, const ox_jnode *n)
{
    return ox_jbuf_put(j, j->out, n->u.value.u.str->p, n->u.value.u.str->n, false);
}

static ox_status exec_print(ox_jstate *j, const ox_jnode *n)
{
    ox_jval v;
    OX_TRY(ox_jeval(j, n->a, &v));
    return ox_jput_str(j, j->out, v);
}

static ox_status exec_if(ox_jstate *j, const ox_jnode *n)
{
    for (size_t i = 0; i + 1 < n->u.list.n; i += 2) {
        ox_jval test = ox_jbool(true);
        if (n->u.list.p[i]) OX_TRY(ox_jeval(j, n->u.list.p[i], &test));
        if (ox_jtruth(test)) return ox_jexec(j, &n->u.list.p[i + 1]->u.list);
    }
    return OX_OK;
}

/* The items of a loop that its "if" lets through. */
static ox_status filter_items(ox_jstate *j, const ox_jnode *n, ox_jseq **items)
{
    const ox_jseq *all = *items;
    ox_jframe *const before = j->frame, *f;
    OX_TRY(ox_jseq_new(j, 0, items));
    OX_TRY(ox_jframe_new(j, before, &f));
    j->frame = f;
    for (size_t i = 0; i < all->n; i++) {
        ox_jval test;
        f->n = 0;
        OX_TRY(assign(j, n->b, all->p[i]));
        OX_TRY(ox_jeval(j, n->c, &test));
        if (ox_jtruth(test)) OX_TRY(ox_jseq_push(j, *items, all->p[i]));
    }
    j->frame = before;
    return OX_OK;
}

static ox_status run_body(ox_jstate *j, const ox_jnode *n, ox_jloop *l)
{
    ox_jframe *f;
    const ox_jval loop = {.kind = OX_JKIND_LOOP, .u.loop = l};
    OX_TRY(ox_jframe_new(j, l->frame, &f));
    for (; l->i < l->items->n; l->i++) {
        if (f->captured) OX_TRY(ox_jframe_new(j, l->frame, &f));
        f->n = 0;
        j->frame = f;
        OX_TRY(ox_jspend(j, 1));
        if (j->id_loop != UINT32_MAX) OX_TRY(ox_jframe_set(j, f, j->id_loop, loop));
        OX_TRY(assign(j, n->b, l->items->p[l->i]));
        OX_TRY(ox_jexec(j, &n->u.block.body));
        const ox_jflow flow = j->flow;
        j->flow = OX_JFLOW_ON;
        if (flow == OX_JFLOW_BREAK) break;
    }
    j->frame = l->frame;
    return OX_OK;
}

/* The loop over `value`, standing in the current frame. */
static ox_status run_for(ox_jstate *j, const ox_jnode *n, ox_jval value, int64_t depth0)
{
    ox_jseq *items;
    void *mem;
    OX_TRY(ox_jiterate(j, value, &items));
    if (n->c) OX_TRY(filter_items(j, n, &items));
    if (!items->n) {
        if (!n->u.block.other.n) return OX_OK;
        ox_jframe *const before = j->frame, *f;
        OX_TRY(ox_jframe_new(j, before, &f));
        j->frame = f;
        OX_TRY(ox_jexec(j, &n->u.block.other));
        j->frame = before;
        return OX_OK;
    }
    OX_TRY(ox_jtake(j, 1, sizeof(ox_jloop), &mem));
    ox_jloop *l = mem;
    *l = (ox_jloop){.items = items, .depth0 = depth0, .node = n, .frame = j->frame};
    return run_body(j, n, l);
}

static ox_status exec_for(ox_jstate *j, const ox_jnode *n)
{
    ox_jval v;
    OX_TRY(ox_jeval(j, n->a, &v));
    return run_for(j, n, v, 0);
}

ox_status ox_jloop_call(ox_jstate *j, const ox_jloop *loop, ox_jval items, ox_jval *out)
{
    if (!(loop->node->flag & OX_JNODE_RECURSIVE))
        return OX_JFAIL(j, "loop() needs a loop that is marked 'recursive'");
    if (j->macro_depth >= j->macro_depth_max)
        return ox_jfail(j, OX_UNSUPPORTED, "a loop calls itself more than %u deep",
                        j->macro_depth_max);
    ox_jbuf b = {0};
    ox_jbuf *const out_before = j->out;
    ox_jframe *const frame_before = j->frame;
    j->macro_depth++;
    j->out = &b;
    j->frame = loop->frame;
    OX_TRY(run_for(j, loop->node, items, loop->depth0 + 1));
    j->frame = frame_before;
    j->out = out_before;
    j->macro_depth--;
    return ox_jbuf_take(j, &b, out);
}

static ox_status exec_set(ox_jstate *j, const ox_jnode *n)
{
    ox_jval v;
    OX_TRY(ox_jeval(j, n->a, &v));
    return assign(j, n->b, v);
}

static ox_status exec_set_block(ox_jstate *j, const ox_jnode *n)
{
    ox_jval v;
    OX_TRY(capture_scoped(j, &n->u.block.body, &v));
    if (n->a) OX_TRY(filter_block_value(j, n->a, &v));
    return assign(j, n->b, v);
}

static ox_status new_macro(ox_jstate *j, const ox_jsignature *sig, ox_jval *out)
{
    void *mem;
    OX_TRY(ox_jtake(j, 1, sizeof(ox_jmacro), &mem));
    ox_jmacro *m = mem;
    m->sig = sig;
    m->frame = j->frame;
    for (ox_jframe *f = j->frame; f && !f->captured; f = f->up)
        f->captured = true;
    *out = (ox_jval){.kind = OX_JKIND_MACRO, .u.macro = m};
    return OX_OK;
}

static ox_status exec_macro(ox_jstate *j, const ox_jnode *n)
{
    ox_jval v;
    OX_TRY(new_macro(j, n->u.macro.sig, &v));
    return set_variable(j, n->name, v);
}

static ox_status exec_call_block(ox_jstate *j, const ox_jnode *n)
{
    ox_jval f, caller, v;
    ox_jargs args, with;
    void *mem;
    OX_TRY(ox_jeval(j, n->a->a, &f));
    OX_TRY(ox_jargs_eval(j, n->a->u.call.args, &args));
    OX_TRY(new_macro(j, n->u.macro.sig, &caller));
    OX_TRY(ox_jtake(j, args.n_kw + 1, sizeof(ox_jkwval), &mem));
    with = (ox_jargs){args.pos, args.n, mem, args.n_kw + 1};
    if (args.n_kw) memcpy(with.kw, args.kw, args.n_kw * sizeof(ox_jkwval));
    with.kw[args.n_kw] = (ox_jkwval){OX_STR("caller"), caller};
    OX_TRY(ox_jcall(j, f, &with, &v));
    return ox_jput_str(j, j->out, v);
}

static ox_status exec_filter_block(ox_jstate *j, const ox_jnode *n)
{
    ox_jval v;
    OX_TRY(capture_scoped(j, &n->u.block.body, &v));
    OX_TRY(filter_block_value(j, n->a, &v));
    return ox_jput_str(j, j->out, v);
}

static ox_status exec_with(ox_jstate *j, const ox_jnode *n)
{
    ox_jframe *const before = j->frame, *f;
    const ox_jnodes *pairs = &n->u.block.other;
    OX_TRY(ox_jframe_new(j, before, &f));
    for (size_t i = 0; i + 1 < pairs->n; i += 2) {
        ox_jval v;
        j->frame = before;
        OX_TRY(ox_jeval(j, pairs->p[i + 1], &v));
        j->frame = f;
        OX_TRY(assign(j, pairs->p[i], v));
    }
    j->frame = f;
    OX_TRY(ox_jexec(j, &n->u.block.body));
    j->frame = before;
    return OX_OK;
}

static ox_status exec_scope(ox_jstate *j, const ox_jnode *n)
{
    ox_jframe *const before = j->frame, *f;
    OX_TRY(ox_jframe_new(j, before, &f));
    j->frame = f;
    OX_TRY(ox_jexec(j, &n->u.list));
    j->frame = before;
    return OX_OK;
}

static ox_status exec_break(ox_jstate *j, const ox_jnode *n)
{
    (void)n;
    j->flow = OX_JFLOW_BREAK;
    return OX_OK;
}

static ox_status exec_continue(ox_jstate *j, const ox_jnode *n)
{
    (void)n;
    j->flow = OX_JFLOW_CONTINUE;
    return OX_OK;
}

static const exec_fn execs[OX_JOP_COUNT] = {
#define OX_JEXPR(name, fn)
#define OX_JSTMT(name, fn) [OX_JOP_##name] = fn,
#include "text/jinja/nodes.def"
#undef OX_JSTMT
#undef OX_JEXPR
};

ox_status ox_jexec(ox_jstate *j, const ox_jnodes *body)
{
    if (j->depth >= OX_JDEPTH_MAX)
        return ox_jfail(j, OX_UNSUPPORTED, "the template calls itself or is nested too deeply");
    j->depth++;
    for (size_t i = 0; i < body->n && j->flow == OX_JFLOW_ON; i++) {
        const ox_jnode *n = body->p[i];
        j->line = n->line;
        OX_TRY(ox_jspend(j, 1));
        OX_TRY(execs[n->op](j, n));
    }
    j->depth--;
    return OX_OK;
}
