/* call.c - arguments, and calling what can be called: builtins, methods, macros, loops, joiners. */
#include "text/jinja/builtin.h"

static ox_status add_more(ox_jstate *j, const ox_jcallargs *src, ox_jargs *out, const ox_jseq *more,
                          const ox_jdict *names)
{
    const size_t n_pos = src->pos.n + (more ? more->n : 0);
    const size_t n_kw = src->n_kw + (names ? names->n : 0);
    void *mem;
    OX_TRY(ox_jspend(j, n_pos + n_kw));
    OX_TRY(ox_jtake(j, n_pos + 1, sizeof(ox_jval), &mem));
    out->pos = mem;
    OX_TRY(ox_jtake(j, n_kw + 1, sizeof(ox_jkwval), &mem));
    out->kw = mem;
    return OX_OK;
}

ox_status ox_jargs_eval(ox_jstate *j, const ox_jcallargs *src, ox_jargs *out)
{
    *out = (ox_jargs){0};
    if (!src || (!src->pos.n && !src->n_kw && !src->more_pos && !src->more_kw)) return OX_OK;
    ox_jval v;
    ox_jseq *more = NULL;
    const ox_jdict *names = NULL;
    if (src->more_pos) {
        OX_TRY(ox_jeval(j, src->more_pos, &v));
        OX_TRY(ox_jiterate(j, v, &more));
    }
    if (src->more_kw) {
        OX_TRY(ox_jeval(j, src->more_kw, &v));
        if (!ox_jis(v, OX_JKIND_DICT)) return OX_JFAIL(j, "** needs a dict");
        names = v.u.dict;
    }
    OX_TRY(add_more(j, src, out, more, names));
    for (size_t i = 0; i < src->pos.n; i++)
        OX_TRY(ox_jeval(j, src->pos.p[i], &out->pos[out->n++]));
    for (size_t i = 0; more && i < more->n; i++)
        out->pos[out->n++] = more->p[i];
    for (size_t i = 0; i < src->n_kw; i++) {
        OX_TRY(ox_jeval(j, src->kw[i].value, &v));
        out->kw[out->n_kw++] = (ox_jkwval){src->kw[i].name, v};
    }
    for (size_t i = 0; names && i < names->n; i++) {
        if (!ox_jis(names->p[i].key, OX_JKIND_STR))
            return OX_JFAIL(j, "the names of arguments must be strings");
        out->kw[out->n_kw++] = (ox_jkwval){ox_jview(names->p[i].key), names->p[i].value};
    }
    return OX_OK;
}

/* The next word of a row's parameters; false at the end. */
static bool next_param(const char **at, ox_str *name)
{
    while (**at == ' ')
        ++*at;
    *name = (ox_str){*at, 0};
    while (**at && **at != ' ') {
        ++*at;
        name->n++;
    }
    return name->n != 0;
}

static ox_status bind(ox_jstate *j, const ox_jbuiltin *f, const ox_jargs *args, ox_jbuiltin_call *c)
{
    const bool by_position = f->params[0] == '/';
    const char *at = f->params + by_position;
    ox_str name;
    size_t n = 0, taken = 0;
    bool any = false;
    if (by_position && args->n_kw)
        return OX_JFAIL(j, "%s takes its arguments by position, not by name", f->name);
    for (; next_param(&at, &name); n++) {
        any = ox_str_is(name, "*");
        if (any || n == OX_JPARAMS_MAX) break;
        if (n < args->n) c->arg[n] = args->pos[n];
        for (size_t k = 0; k < args->n_kw; k++) {
            if (!ox_str_eq(args->kw[k].name, name)) continue;
            if (c->arg[n].kind != OX_JKIND_MISSING)
                return OX_JFAIL(j, "%s: '%.*s' given twice", f->name, OX_STR_ARGS(name));
            c->arg[n] = args->kw[k].value;
            taken++;
        }
        if (n < f->n_required && c->arg[n].kind == OX_JKIND_MISSING)
            return OX_JFAIL(j, "%s: argument '%.*s' is missing", f->name, OX_STR_ARGS(name));
    }
    if (any) return OX_OK;
    if (args->n > n) return OX_JFAIL(j, "%s takes at most %zu arguments", f->name, n);
    if (taken != args->n_kw)
        return OX_JFAIL(j, "%s has no argument like one that it was given: it takes '%s'", f->name,
                        f->params);
    return OX_OK;
}

ox_status ox_jcall_builtin(ox_jstate *j, const ox_jbuiltin *f, ox_jval self, const ox_jargs *args,
                           ox_jval *out)
{
    ox_jbuiltin_call c = {.row = f, .self = self, .raw = args};
    OX_TRY(ox_jspend(j, 1));
    OX_TRY(bind(j, f, args, &c));
    return f->fn(j, &c, out);
}

static ox_status more_kw(ox_jstate *j, const ox_jargs *args, const bool *used, ox_jval *out)
{
    ox_jdict *d;
    OX_TRY(ox_jdict_new(j, &d));
    for (size_t i = 0; i < args->n_kw; i++) {
        if (used[i]) continue;
        ox_jval key;
        OX_TRY(ox_jstr_borrow(j, args->kw[i].name.p, args->kw[i].name.n, OX_JFROM_TEMPLATE, &key));
        OX_TRY(ox_jdict_put(j, d, key, args->kw[i].value));
    }
    *out = ox_jdictval(d);
    return OX_OK;
}

static ox_status more_pos(ox_jstate *j, const ox_jargs *args, size_t from, ox_jval *out)
{
    ox_jseq *s;
    OX_TRY(ox_jseq_new(j, 0, &s));
    for (size_t i = from; i < args->n; i++)
        OX_TRY(ox_jseq_push(j, s, args->pos[i]));
    *out = ox_jseqval(OX_JKIND_TUPLE, s);
    return OX_OK;
}

/* Named arguments into the frame; tells which were used. */
static ox_status bind_named(ox_jstate *j, const ox_jsignature *sig, const ox_jargs *args,
                            size_t from, ox_jframe *f, bool *used)
{
    for (size_t k = 0; k < args->n_kw; k++) {
        for (size_t i = from; i < sig->n_params && !used[k]; i++) {
            if (!ox_str_eq(j->tree->names[sig->params[i].name], args->kw[k].name)) continue;
            OX_TRY(ox_jframe_set(j, f, sig->params[i].name, args->kw[k].value));
            used[k] = true;
        }
        if (!used[k] && sig->takes_caller && ox_str_is(args->kw[k].name, "caller")) {
            OX_TRY(ox_jframe_set(j, f, j->id_caller, args->kw[k].value));
            used[k] = true;
        }
        if (!used[k] && !sig->takes_more_kw)
            return OX_JFAIL(j, "macro '%.*s' takes no argument '%.*s'", OX_STR_ARGS(sig->name),
                            OX_STR_ARGS(args->kw[k].name));
    }
    return OX_OK;
}

static bool frame_has(const ox_jframe *f, uint32_t name)
{
    for (uint32_t i = 0; i < f->n; i++)
        if (f->vars[i].name == name) return true;
    return false;
}

static ox_status bind_macro(ox_jstate *j, const ox_jsignature *sig, const ox_jargs *args,
                            ox_jframe *f)
{
    const size_t n_pos = args->n < sig->n_params ? args->n : sig->n_params;
    ox_jval v;
    void *used;
    if (args->n > sig->n_params && !sig->takes_more_pos)
        return OX_JFAIL(j, "macro '%.*s' takes at most %zu arguments", OX_STR_ARGS(sig->name),
                        sig->n_params);
    OX_TRY(ox_jtake(j, args->n_kw + 1, sizeof(bool), &used));
    for (size_t i = 0; i < n_pos; i++)
        OX_TRY(ox_jframe_set(j, f, sig->params[i].name, args->pos[i]));
    OX_TRY(bind_named(j, sig, args, n_pos, f, used));
    if (sig->takes_caller && !frame_has(f, j->id_caller))
        OX_TRY(ox_jframe_set(j, f, j->id_caller, ox_jundefined(NULL)));
    if (sig->takes_more_kw) {
        OX_TRY(more_kw(j, args, used, &v));
        OX_TRY(ox_jframe_set(j, f, j->id_kwargs, v));
    }
    if (sig->takes_more_pos) {
        OX_TRY(more_pos(j, args, n_pos, &v));
        OX_TRY(ox_jframe_set(j, f, j->id_varargs, v));
    }
    for (size_t i = n_pos; i < sig->n_params; i++) {
        if (frame_has(f, sig->params[i].name)) continue;
        v = ox_jundefined(NULL);
        if (sig->params[i].value) OX_TRY(ox_jeval(j, sig->params[i].value, &v));
        OX_TRY(ox_jframe_set(j, f, sig->params[i].name, v));
    }
    return OX_OK;
}

ox_status ox_jmacro_call(ox_jstate *j, const ox_jmacro *m, const ox_jargs *args, ox_jval *out)
{
    ox_jframe *const before = j->frame, *f;
    const uint32_t line = j->line;
    if (j->macro_depth >= j->macro_depth_max)
        return ox_jfail(j, OX_UNSUPPORTED, "macro '%.*s' calls itself more than %u deep",
                        OX_STR_ARGS(m->sig->name), j->macro_depth_max);
    j->macro_depth++;
    OX_TRY(ox_jframe_new(j, m->frame, &f));
    j->frame = f;
    OX_TRY(bind_macro(j, m->sig, args, f));
    OX_TRY(ox_jcapture(j, &m->sig->body, out));
    j->frame = before;
    j->line = line;
    j->macro_depth--;
    return OX_OK;
}

static ox_status call_joiner(ox_jstate *j, struct ox_jcycler *c, ox_jval *out)
{
    if (c->used) {
        *out = c->items[0];
        return OX_OK;
    }
    c->used = true;
    return ox_jstr_borrow(j, "", 0, OX_JFROM_TEMPLATE, out);
}

ox_status ox_jcall(ox_jstate *j, ox_jval f, const ox_jargs *args, ox_jval *out)
{
    switch (f.kind) {
    case OX_JKIND_BUILTIN:
        return ox_jcall_builtin(j, f.u.builtin, (ox_jval){0}, args, out);
    case OX_JKIND_BOUND:
        return ox_jcall_builtin(j, f.u.bound->method, f.u.bound->self, args, out);
    case OX_JKIND_MACRO:
        return ox_jmacro_call(j, f.u.macro, args, out);
    case OX_JKIND_JOINER:
        return call_joiner(j, f.u.cycler, out);
    case OX_JKIND_LOOP:
        if (args->n != 1 || args->n_kw) return OX_JFAIL(j, "loop() takes one argument");
        return ox_jloop_call(j, f.u.loop, args->pos[0], out);
    case OX_JKIND_UNDEFINED:
        return ox_jundefined_error(j, f);
    default:
        return OX_JFAIL(j, "%s can't be called", ox_jkind_name(f));
    }
}
