/* builtin.c - the tables of filters, tests, functions and methods, and what their functions share.
 *
 * The tables are searched while parsing; only names that come as strings at run time (map, select)
 * are looked up again. Next: filters_text.c, filters_seq.c, tests.c, functions.c, methods_str.c,
 * methods_seq.c. */
#include "text/jinja/builtin.h"

#define OX_JROW(name, fn, n_required, params) {name, ox_jf_##fn, n_required, params, 0},
static const ox_jbuiltin filters[] = {
#include "text/jinja/filters.def"
};
static const ox_jbuiltin tests[] = {
#include "text/jinja/tests.def"
};
static const ox_jbuiltin functions[] = {
#include "text/jinja/functions.def"
};
#undef OX_JROW
#define OX_JMETHOD(receiver, name, fn, n_required, params)                                         \
    {name, ox_jf_##fn, n_required, params, OX_JKIND_##receiver},
static const ox_jbuiltin methods[] = {
#include "text/jinja/methods.def"
};
#undef OX_JMETHOD

/* The first byte decides most comparisons; parsing asks for every name of a template. */
static bool has_name(const ox_jbuiltin *row, ox_str name)
{
    return name.n && row->name[0] == name.p[0] && ox_str_is(name, row->name);
}

static const ox_jbuiltin *find(const ox_jbuiltin *rows, size_t n, ox_str name)
{
    for (size_t i = 0; i < n; i++)
        if (has_name(&rows[i], name)) return &rows[i];
    return NULL;
}

const ox_jbuiltin *ox_jfilter_find(ox_str name)
{
    return find(filters, OX_COUNT(filters), name);
}

const ox_jbuiltin *ox_jtest_find(ox_str name)
{
    return find(tests, OX_COUNT(tests), name);
}

const ox_jbuiltin *ox_jfunction_find(ox_str name)
{
    return find(functions, OX_COUNT(functions), name);
}

const ox_jbuiltin *ox_jmethod_find(ox_jkind receiver, ox_str name)
{
    for (size_t i = 0; i < OX_COUNT(methods); i++)
        if (methods[i].receiver == receiver && has_name(&methods[i], name)) return &methods[i];
    return NULL;
}

ox_status ox_jarg_int(ox_jstate *j, const ox_jbuiltin_call *c, int i, int64_t absent, int64_t *out)
{
    *out = absent;
    if (!ox_jgiven(c->arg[i])) return OX_OK;
    if (!ox_jis_int(c->arg[i]))
        return OX_JFAIL(j, "%s: argument %d must be an integer, found %s", c->row->name, i + 1,
                        ox_jkind_name(c->arg[i]));
    *out = ox_jas_int(c->arg[i]);
    return OX_OK;
}

ox_status ox_jarg_str(ox_jstate *j, const ox_jbuiltin_call *c, int i, const ox_jstr **out)
{
    *out = NULL;
    if (!ox_jgiven(c->arg[i])) return OX_OK;
    if (!ox_jis(c->arg[i], OX_JKIND_STR))
        return OX_JFAIL(j, "%s: argument %d must be a string, found %s", c->row->name, i + 1,
                        ox_jkind_name(c->arg[i]));
    *out = c->arg[i].u.str;
    return OX_OK;
}

ox_status ox_jself_str(ox_jstate *j, const ox_jbuiltin_call *c, const ox_jstr **out)
{
    ox_jval v;
    OX_TRY(ox_jto_str(j, c->self, &v));
    *out = v.u.str;
    return OX_OK;
}

static ox_status path_step(ox_jstate *j, ox_jval v, const ox_jstr *path, size_t begin, size_t end,
                           ox_jval *out)
{
    ox_jval key;
    int64_t i;
    if (ox_str_to_i64((ox_str){path->p + begin, end - begin}, &i) && path->p[begin] != '-')
        key = ox_jint(i);
    else
        OX_TRY(ox_jstr_sub(j, path, begin, end, &key));
    return ox_jgetitem(j, v, key, NULL, out);
}

ox_status ox_jattr_path(ox_jstate *j, ox_jval item, ox_jval path, ox_jval *out)
{
    *out = item;
    if (!ox_jgiven(path)) return OX_OK;
    if (ox_jis_int(path)) return ox_jgetitem(j, item, path, NULL, out);
    if (!ox_jis(path, OX_JKIND_STR))
        return OX_JFAIL(j, "the name of an attribute must be a string, found %s",
                        ox_jkind_name(path));
    const ox_jstr *s = path.u.str;
    for (size_t begin = 0; begin <= s->n;) {
        size_t end = begin;
        while (end < s->n && s->p[end] != '.')
            end++;
        OX_TRY(path_step(j, *out, s, begin, end, out));
        begin = end + 1;
    }
    return OX_OK;
}

ox_status ox_jlower_value(ox_jstate *j, ox_jval v, ox_jval *out)
{
    *out = v;
    return ox_jis(v, OX_JKIND_STR) ? ox_jrecase(j, v.u.str, OX_JCASE_LOWER, out) : OX_OK;
}

/* Merges the sorted index ranges [lo, mid) and [mid, hi) through tmp. */
static ox_status merge(ox_jstate *j, const ox_jval *keys, bool reverse, uint32_t *idx,
                       uint32_t *tmp, const size_t at[3])
{
    size_t a = at[0], b = at[1], k = at[0];
    while (a < at[1] && b < at[2]) {
        int order;
        OX_TRY(ox_jcompare(j, keys[idx[b]], keys[idx[a]], "<", &order));
        const bool b_first = reverse ? order == 1 : order == -1;
        tmp[k++] = b_first ? idx[b++] : idx[a++];
    }
    while (a < at[1])
        tmp[k++] = idx[a++];
    while (b < at[2])
        tmp[k++] = idx[b++];
    memcpy(idx + at[0], tmp + at[0], (at[2] - at[0]) * sizeof(*idx));
    return OX_OK;
}

ox_status ox_jsort(ox_jstate *j, ox_jseq *s, ox_jval *keys, bool reverse)
{
    void *mem;
    if (s->n >= UINT32_MAX) return ox_jno_memory(j);
    OX_TRY(ox_jspend(j, s->n));
    OX_TRY(ox_jtake(j, 2 * s->n + 1, sizeof(uint32_t), &mem));
    uint32_t *idx = mem, *tmp = idx + s->n;
    for (uint32_t i = 0; i < s->n; i++)
        idx[i] = i;
    for (size_t width = 1; width < s->n; width *= 2)
        for (size_t lo = 0; lo + width < s->n; lo += 2 * width) {
            const size_t hi = lo + 2 * width;
            const size_t at[3] = {lo, lo + width, hi < s->n ? hi : s->n};
            OX_TRY(merge(j, keys, reverse, idx, tmp, at));
        }
    OX_TRY(ox_jtake(j, s->n + 1, sizeof(ox_jval), &mem));
    ox_jval *sorted = mem;
    for (size_t i = 0; i < s->n; i++)
        sorted[i] = s->p[idx[i]];
    s->p = sorted;
    s->cap = s->n;
    return OX_OK;
}
