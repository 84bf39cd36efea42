/* functions.c - global functions: namespace, dict, range, joiner, cycler, raise_exception and
 * strftime_now; and JSON trees made into values. */
#include "text/jinja/functions.h"
#include "text/jinja/builtin.h"

enum { RANGE_MAX = 100000 };

/* dict(mapping or pairs, name=value …) */
static ox_status dict_from(ox_jstate *j, const ox_jargs *args, ox_jdict **out)
{
    OX_TRY(ox_jdict_new(j, out));
    if (args->n > 1) return OX_JFAIL(j, "dict takes one value and names");
    if (args->n && ox_jis(args->pos[0], OX_JKIND_DICT)) {
        const ox_jdict *d = args->pos[0].u.dict;
        OX_TRY(ox_jspend(j, d->n));
        for (size_t i = 0; i < d->n; i++)
            OX_TRY(ox_jdict_put(j, *out, d->p[i].key, d->p[i].value));
    } else if (args->n) {
        ox_jseq *pairs, *two;
        OX_TRY(ox_jiterate(j, args->pos[0], &pairs));
        for (size_t i = 0; i < pairs->n; i++) {
            OX_TRY(ox_jspend(j, 1));
            OX_TRY(ox_jiterate(j, pairs->p[i], &two));
            if (two->n != 2) return OX_JFAIL(j, "dict needs pairs");
            OX_TRY(ox_jdict_put(j, *out, two->p[0], two->p[1]));
        }
    }
    for (size_t i = 0; i < args->n_kw; i++) {
        ox_jval key;
        const ox_str name = args->kw[i].name;
        OX_TRY(ox_jstr_borrow(j, name.p, name.n, OX_JFROM_TEMPLATE, &key));
        OX_TRY(ox_jdict_put(j, *out, key, args->kw[i].value));
    }
    return OX_OK;
}

ox_status ox_jf_function_dict(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    ox_jdict *d;
    OX_TRY(dict_from(j, c->raw, &d));
    *out = ox_jdictval(d);
    return OX_OK;
}

ox_status ox_jf_function_namespace(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    ox_jdict *d;
    OX_TRY(dict_from(j, c->raw, &d));
    for (size_t i = 0; i < d->n; i++) {
        const ox_jval key = d->p[i].key;
        if (ox_jis(key, OX_JKIND_STR) && key.u.str->n && key.u.str->p[0] == '_')
            return OX_JFAIL(j, "an attribute of a namespace can't begin with _");
    }
    *out = (ox_jval){.kind = OX_JKIND_NAMESPACE, .u.dict = d};
    return OX_OK;
}

ox_status ox_jf_function_range(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    int64_t start, stop, step;
    ox_jseq *s;
    for (int i = 0; i < 3; i++)
        if (c->arg[i].kind != OX_JKIND_MISSING && !ox_jis_int(c->arg[i]))
            return OX_JFAIL(j, "range needs integers, found %s", ox_jkind_name(c->arg[i]));
    OX_TRY(ox_jarg_int(j, c, 0, 0, &start));
    OX_TRY(ox_jarg_int(j, c, 1, 0, &stop));
    OX_TRY(ox_jarg_int(j, c, 2, 1, &step));
    if (c->arg[1].kind == OX_JKIND_MISSING) {
        stop = start;
        start = 0;
    }
    if (!step) return OX_JFAIL(j, "range: the step can't be 0");
    const uint64_t span =
        step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
    const uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    const bool empty = step > 0 ? start >= stop : start <= stop;
    const uint64_t n = empty ? 0 : (span - 1) / stride + 1;
    if (n > RANGE_MAX) return ox_jfail(j, OX_UNSUPPORTED, "range: more than %d items", RANGE_MAX);
    OX_TRY(ox_jspend(j, n));
    OX_TRY(ox_jseq_new(j, (size_t)n, &s));
    for (uint64_t i = 0; i < n; i++)
        s->p[i] = ox_jint((int64_t)((uint64_t)start + i * (uint64_t)step));
    s->n = (size_t)n;
    s->start = start;
    s->stop = stop;
    s->step = step;
    *out = ox_jseqval(OX_JKIND_RANGE, s);
    return OX_OK;
}

ox_status ox_jf_function_raise(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    ox_jval text;
    (void)out;
    OX_TRY(ox_jto_str(j, c->arg[0], &text));
    return OX_JFAIL(j, "%.*s", OX_STR_ARGS(ox_jview(text)));
}

ox_status ox_jf_function_strftime(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    const ox_jstr *fmt;
    ox_jbuf b = {0};
    OX_TRY(ox_jarg_str(j, c, 0, &fmt));
    if (!fmt) return OX_JFAIL(j, "strftime_now needs a format");
    OX_TRY(ox_jstrftime(j, &b, fmt));
    return ox_jbuf_take(j, &b, out);
}

static ox_status new_cycler(ox_jstate *j, ox_jkind kind, const ox_jval *items, size_t n,
                            ox_jval *out)
{
    void *mem;
    OX_TRY(ox_jtake(j, 1, sizeof(ox_jcycler), &mem));
    ox_jcycler *cy = mem;
    OX_TRY(ox_jtake(j, n, sizeof(ox_jval), &mem));
    memcpy(mem, items, n * sizeof(ox_jval));
    cy->items = mem;
    cy->n = n;
    *out = (ox_jval){.kind = (uint8_t)kind, .u.cycler = cy};
    return OX_OK;
}

ox_status ox_jf_function_cycler(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    if (!c->raw->n) return OX_JFAIL(j, "cycler needs at least one value");
    return new_cycler(j, OX_JKIND_CYCLER, c->raw->pos, c->raw->n, out);
}

ox_status ox_jf_function_joiner(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    ox_jval sep = c->arg[0];
    if (ox_jis(sep, OX_JKIND_MISSING)) OX_TRY(ox_jstr_borrow(j, ", ", 2, OX_JFROM_TEMPLATE, &sep));
    return new_cycler(j, OX_JKIND_JOINER, &sep, 1, out);
}

/* ---- JSON to values ---- */

static ox_status json_string(ox_jstate *j, const ox_json *node, ox_jfrom from, ox_jval *out)
{
    const ox_str s = ox_json_str(node);
    return ox_jstr_borrow(j, s.p, s.n, from, out);
}

ox_status ox_jvalue_of_json(ox_jstate *j, const ox_json *node, ox_jfrom from, ox_jval *out)
{
    *out = ox_jnone();
    OX_TRY(ox_jspend(j, 1));
    if (ox_json_is(node, OX_JSON_BOOL)) {
        *out = ox_jbool(ox_json_true(node));
    } else if (ox_json_is_i64(node)) {
        *out = ox_jint(ox_json_i64(node));
    } else if (ox_json_is(node, OX_JSON_NUMBER)) {
        *out = ox_jfloat(ox_json_f64(node));
    } else if (ox_json_is(node, OX_JSON_STRING)) {
        return json_string(j, node, from, out);
    } else if (ox_json_is(node, OX_JSON_ARRAY)) {
        ox_jseq *s;
        OX_TRY(ox_jseq_new(j, node->n, &s));
        for (size_t i = 0; i < node->n; i++) {
            OX_TRY(ox_jvalue_of_json(j, ox_json_at(node, i), from, &s->p[i]));
            s->n = i + 1;
        }
        *out = ox_jseqval(OX_JKIND_LIST, s);
    } else if (ox_json_is(node, OX_JSON_OBJECT)) {
        ox_jdict *d;
        OX_TRY(ox_jdict_new(j, &d));
        for (size_t i = 0; i < node->n; i++) {
            const ox_json_member *m = ox_json_member_at(node, i);
            ox_jval key, value;
            OX_TRY(json_string(j, &m->key, from, &key));
            OX_TRY(ox_jvalue_of_json(j, &m->value, from, &value));
            OX_TRY(ox_jdict_put(j, d, key, value));
        }
        *out = ox_jdictval(d);
    }
    return OX_OK;
}

ox_status ox_jfrom_json(ox_jstate *j, const ox_jstr *text, ox_jval *out)
{
    const ox_json *root;
    ox_err why = OX_ERR_INIT;
    OX_TRY(ox_jspend(j, 1 + text->n / 8));
    const ox_status st =
        ox_json_parse_with(&root, &j->arena, (ox_str){text->p, text->n}, OX_JSON_NONFINITE, &why);
    if (st == OX_NO_MEMORY) return ox_jno_memory(j);
    if (st) return OX_JFAIL(j, "from_json: %s", why.msg);
    if (j->arena.used_bytes > j->memory_max)
        return ox_jfail(j, OX_UNSUPPORTED, "the template needs more than %zu bytes of memory",
                        j->memory_max);
    return ox_jvalue_of_json(
        j, root, text->from == OX_JFROM_TEMPLATE ? OX_JFROM_TEMPLATE : OX_JFROM_INPUT, out);
}
