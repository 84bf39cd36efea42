/* filters_seq.c - filters over sequences and mappings: selecting, mapping, ordering, grouping.
 *
 * What Python returns as a generator is an ITER here: the items are computed at once, but it has
 * no length, can't be indexed and is empty once consumed. */
#include "text/jinja/builtin.h"

ox_status ox_jf_filter_length(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    const int64_t n = ox_jlength(c->self);
    if (n < 0) return OX_JFAIL(j, "%s has no length", ox_jkind_name(c->self));
    if (ox_jis(c->self, OX_JKIND_STR)) OX_TRY(ox_jspend_bytes(j, c->self.u.str->n));
    *out = ox_jint(n);
    return OX_OK;
}

ox_status ox_jf_filter_default(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    const bool use =
        ox_jis(c->self, OX_JKIND_UNDEFINED) || (ox_jtruth(c->arg[1]) && !ox_jtruth(c->self));
    *out = use ? c->arg[0] : c->self;
    if (ox_jis(*out, OX_JKIND_MISSING)) return ox_jstr_borrow(j, "", 0, OX_JFROM_TEMPLATE, out);
    return OX_OK;
}

static ox_status copy_items(ox_jstate *j, ox_jval v, ox_jseq **out)
{
    ox_jseq *s;
    OX_TRY(ox_jiterate(j, v, &s));
    OX_TRY(ox_jspend(j, s->n));
    OX_TRY(ox_jseq_new(j, s->n, out));
    if (s->n) memcpy((*out)->p, s->p, s->n * sizeof(ox_jval));
    (*out)->n = s->n;
    return OX_OK;
}

ox_status ox_jf_filter_list(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    ox_jseq *s;
    OX_TRY(copy_items(j, c->self, &s));
    *out = ox_jseqval(OX_JKIND_LIST, s);
    return OX_OK;
}

ox_status ox_jf_filter_first(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    *out = ox_jundefined(NULL);
    if (ox_jis(c->self, OX_JKIND_ITER)) {
        ox_jseq *it = c->self.u.seq;
        if (it->pos < it->n) *out = it->p[it->pos++];
        return OX_OK;
    }
    ox_jseq *s;
    OX_TRY(ox_jiterate(j, c->self, &s));
    if (s->n) *out = s->p[0];
    return OX_OK;
}

ox_status ox_jf_filter_last(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    ox_jseq *s;
    if (ox_jis(c->self, OX_JKIND_UNDEFINED)) {
        *out = ox_jundefined(NULL);
        return OX_OK;
    }
    if (ox_jis(c->self, OX_JKIND_ITER))
        return OX_JFAIL(j, "last: %s can't be read backwards", ox_jkind_name(c->self));
    OX_TRY(ox_jiterate(j, c->self, &s));
    *out = s->n ? s->p[s->n - 1] : ox_jundefined(NULL);
    return OX_OK;
}

ox_status ox_jf_filter_reverse(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    const ox_jval back[3] = {ox_jnone(), ox_jnone(), ox_jint(-1)};
    if (ox_jis(c->self, OX_JKIND_STR)) return ox_jslice(j, c->self, back, out);
    ox_jseq *s;
    OX_TRY(copy_items(j, c->self, &s));
    for (size_t i = 0; i < s->n / 2; i++) {
        const ox_jval v = s->p[i];
        s->p[i] = s->p[s->n - 1 - i];
        s->p[s->n - 1 - i] = v;
    }
    const bool list = ox_jis(c->self, OX_JKIND_ITER) || ox_jis(c->self, OX_JKIND_UNDEFINED);
    *out = ox_jseqval(list ? OX_JKIND_LIST : OX_JKIND_ITER, s);
    return OX_OK;
}

static ox_status pair(ox_jstate *j, ox_jval a, ox_jval b, ox_jval *out)
{
    ox_jseq *s;
    OX_TRY(ox_jseq_new(j, 2, &s));
    s->p[0] = a;
    s->p[1] = b;
    s->n = 2;
    *out = ox_jseqval(OX_JKIND_TUPLE, s);
    return OX_OK;
}

static ox_status dict_pairs(ox_jstate *j, const ox_jdict *d, ox_jseq **out)
{
    OX_TRY(ox_jspend(j, d->n));
    OX_TRY(ox_jseq_new(j, d->n, out));
    for (size_t i = 0; i < d->n; i++) {
        OX_TRY(pair(j, d->p[i].key, d->p[i].value, &(*out)->p[i]));
        (*out)->n = i + 1;
    }
    return OX_OK;
}

ox_status ox_jf_filter_items(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    ox_jseq *s;
    if (ox_jis(c->self, OX_JKIND_DICT))
        OX_TRY(dict_pairs(j, c->self.u.dict, &s));
    else if (ox_jis(c->self, OX_JKIND_UNDEFINED))
        OX_TRY(ox_jseq_new(j, 0, &s));
    else
        return OX_JFAIL(j, "items: only a dict has pairs, found %s", ox_jkind_name(c->self));
    *out = ox_jseqval(OX_JKIND_ITER, s);
    return OX_OK;
}

ox_status ox_jf_filter_join(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    ox_jval between;
    ox_jseq *s;
    OX_TRY(ox_jstr_borrow(j, "", 0, OX_JFROM_TEMPLATE, &between));
    if (!ox_jis(c->arg[0], OX_JKIND_MISSING)) OX_TRY(ox_jto_str(j, c->arg[0], &between));
    OX_TRY(ox_jiterate(j, c->self, &s));
    if (ox_jgiven(c->arg[1])) {
        ox_jseq *values;
        OX_TRY(ox_jseq_new(j, s->n, &values));
        for (size_t i = 0; i < s->n; i++) {
            OX_TRY(ox_jattr_path(j, s->p[i], c->arg[1], &values->p[i]));
            values->n = i + 1;
        }
        s = values;
    }
    return ox_jjoin(j, between.u.str, s, out);
}

/* ---- select, reject, map ---- */

typedef struct selection {
    ox_jval path; /* MISSING: the item itself */
    const ox_jbuiltin *test;
    ox_jargs rest;
    bool keep;
} selection;

static ox_status read_selection(ox_jstate *j, const ox_jbuiltin_call *c, bool by_attribute,
                                selection *s)
{
    const size_t off = by_attribute;
    if (by_attribute) {
        if (!c->raw->n) return OX_JFAIL(j, "%s needs the name of an attribute", c->row->name);
        s->path = c->raw->pos[0];
    }
    if (c->raw->n <= off) return OX_OK;
    const ox_jval name = c->raw->pos[off];
    if (ox_jis(name, OX_JKIND_STR)) s->test = ox_jtest_find(ox_jview(name));
    if (!s->test && ox_jis(name, OX_JKIND_STR))
        return ox_jfail(j, OX_UNSUPPORTED, "%s: no test named '%.*s'", c->row->name,
                        OX_STR_ARGS(ox_jview(name)));
    if (!s->test) return OX_JFAIL(j, "%s needs the name of a test", c->row->name);
    s->rest = (ox_jargs){c->raw->pos + off + 1, c->raw->n - off - 1, c->raw->kw, c->raw->n_kw};
    return OX_OK;
}

static ox_status select_items(ox_jstate *j, const ox_jbuiltin_call *c, bool by_attribute, bool keep,
                              ox_jval *out)
{
    selection sel = {.keep = keep};
    ox_jseq *s, *kept;
    OX_TRY(ox_jseq_new(j, 0, &kept));
    *out = ox_jseqval(OX_JKIND_ITER, kept);
    if (!ox_jtruth(c->self)) return OX_OK;
    OX_TRY(read_selection(j, c, by_attribute, &sel));
    OX_TRY(ox_jiterate(j, c->self, &s));
    for (size_t i = 0; i < s->n; i++) {
        ox_jval v;
        OX_TRY(ox_jspend(j, 1));
        OX_TRY(ox_jattr_path(j, s->p[i], sel.path, &v));
        if (sel.test) OX_TRY(ox_jcall_builtin(j, sel.test, v, &sel.rest, &v));
        if (ox_jtruth(v) == sel.keep) OX_TRY(ox_jseq_push(j, kept, s->p[i]));
    }
    return OX_OK;
}

ox_status ox_jf_filter_select(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return select_items(j, c, false, true, out);
}

ox_status ox_jf_filter_reject(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return select_items(j, c, false, false, out);
}

ox_status ox_jf_filter_selectattr(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return select_items(j, c, true, true, out);
}

ox_status ox_jf_filter_rejectattr(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return select_items(j, c, true, false, out);
}

typedef struct mapping {
    const ox_jbuiltin *filter; /* NULL: by attribute */
    ox_jargs rest;
    ox_jval path, absent;
} mapping;

static ox_status read_mapping(ox_jstate *j, const ox_jbuiltin_call *c, mapping *m)
{
    if (!c->raw->n) {
        for (size_t i = 0; i < c->raw->n_kw; i++) {
            const ox_jkwval *k = &c->raw->kw[i];
            if (ox_str_is(k->name, "attribute"))
                m->path = k->value;
            else if (ox_str_is(k->name, "default"))
                m->absent = k->value;
            else
                return OX_JFAIL(j, "map: unknown argument '%.*s'", OX_STR_ARGS(k->name));
        }
        if (ox_jis(m->path, OX_JKIND_MISSING))
            return OX_JFAIL(j, "map needs the name of a filter or attribute=");
        return OX_OK;
    }
    const ox_jval name = c->raw->pos[0];
    if (ox_jis(name, OX_JKIND_STR)) m->filter = ox_jfilter_find(ox_jview(name));
    if (!m->filter && ox_jis(name, OX_JKIND_STR))
        return ox_jfail(j, OX_UNSUPPORTED, "map: no filter named '%.*s'",
                        OX_STR_ARGS(ox_jview(name)));
    if (!m->filter) return OX_JFAIL(j, "map needs the name of a filter");
    m->rest = (ox_jargs){c->raw->pos + 1, c->raw->n - 1, c->raw->kw, c->raw->n_kw};
    return OX_OK;
}

ox_status ox_jf_filter_map(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    mapping m = {0};
    ox_jseq *s, *t;
    OX_TRY(ox_jseq_new(j, 0, &t));
    *out = ox_jseqval(OX_JKIND_ITER, t);
    if (!ox_jtruth(c->self)) return OX_OK;
    OX_TRY(read_mapping(j, c, &m));
    OX_TRY(ox_jiterate(j, c->self, &s));
    for (size_t i = 0; i < s->n; i++) {
        ox_jval v;
        OX_TRY(ox_jspend(j, 1));
        if (m.filter) {
            OX_TRY(ox_jcall_builtin(j, m.filter, s->p[i], &m.rest, &v));
        } else {
            OX_TRY(ox_jattr_path(j, s->p[i], m.path, &v));
            if (ox_jis(v, OX_JKIND_UNDEFINED) && ox_jgiven(m.absent)) v = m.absent;
        }
        OX_TRY(ox_jseq_push(j, t, v));
    }
    return OX_OK;
}

/* ---- order ---- */

static ox_status sort_key(ox_jstate *j, ox_jval item, ox_jval path, bool case_sensitive,
                          ox_jval *out)
{
    OX_TRY(ox_jattr_path(j, item, path, out));
    return case_sensitive ? OX_OK : ox_jlower_value(j, *out, out);
}

/* "a,b" sorts by a, then b. The key is always a list, so that equal items need no order. */
static ox_status sort_keys(ox_jstate *j, ox_jval item, ox_jval path, bool case_sensitive,
                           ox_jval *out)
{
    ox_jseq *keys;
    ox_jval key;
    OX_TRY(ox_jseq_new(j, 1, &keys));
    *out = ox_jseqval(OX_JKIND_LIST, keys);
    if (!ox_jis(path, OX_JKIND_STR)) {
        OX_TRY(sort_key(j, item, path, case_sensitive, &key));
        return ox_jseq_push(j, keys, key);
    }
    const ox_jstr *s = path.u.str;
    for (size_t begin = 0; begin <= s->n;) {
        const char *comma = memchr(s->p + begin, ',', s->n - begin);
        const size_t end = comma ? (size_t)(comma - s->p) : s->n;
        ox_jval part;
        OX_TRY(ox_jstr_sub(j, s, begin, end, &part));
        OX_TRY(sort_key(j, item, part, case_sensitive, &key));
        OX_TRY(ox_jseq_push(j, keys, key));
        begin = end + 1;
    }
    return OX_OK;
}

typedef ox_status (*key_fn)(ox_jstate *j, ox_jval item, ox_jval path, bool case_sensitive,
                            ox_jval *out);

typedef struct ordering {
    key_fn key;
    ox_jval path;
    bool case_sensitive, reverse;
} ordering;

static ox_status sorted_by(ox_jstate *j, ox_jseq *s, const ordering *o)
{
    void *mem;
    OX_TRY(ox_jtake(j, s->n + 1, sizeof(ox_jval), &mem));
    ox_jval *keys = mem;
    for (size_t i = 0; i < s->n; i++)
        OX_TRY(o->key(j, s->p[i], o->path, o->case_sensitive, &keys[i]));
    return ox_jsort(j, s, keys, o->reverse);
}

ox_status ox_jf_filter_sort(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    ox_jseq *s;
    const ordering o = {sort_keys, c->arg[2], ox_jtruth(c->arg[1]), ox_jtruth(c->arg[0])};
    OX_TRY(copy_items(j, c->self, &s));
    OX_TRY(sorted_by(j, s, &o));
    *out = ox_jseqval(OX_JKIND_LIST, s);
    return OX_OK;
}

ox_status ox_jf_filter_dictsort(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    const ox_jstr *by;
    ox_jseq *s;
    if (ox_jis(c->self, OX_JKIND_UNDEFINED)) return ox_jundefined_error(j, c->self);
    if (!ox_jis(c->self, OX_JKIND_DICT))
        return OX_JFAIL(j, "dictsort needs a dict, found %s", ox_jkind_name(c->self));
    OX_TRY(ox_jarg_str(j, c, 1, &by));
    const ox_str which = by ? (ox_str){by->p, by->n} : OX_STR("key");
    if (!ox_str_is(which, "key") && !ox_str_is(which, "value"))
        return OX_JFAIL(j, "dictsort: by must be 'key' or 'value'");
    OX_TRY(dict_pairs(j, c->self.u.dict, &s));
    const ordering o = {sort_key, ox_jint(ox_str_is(which, "value")), ox_jtruth(c->arg[0]),
                        ox_jtruth(c->arg[2])};
    OX_TRY(sorted_by(j, s, &o));
    *out = ox_jseqval(OX_JKIND_LIST, s);
    return OX_OK;
}

static ox_status extreme(ox_jstate *j, const ox_jbuiltin_call *c, int wanted, ox_jval *out)
{
    ox_jseq *s;
    ox_jval best = {0};
    OX_TRY(ox_jiterate(j, c->self, &s));
    *out = ox_jundefined(NULL);
    for (size_t i = 0; i < s->n; i++) {
        ox_jval key;
        int order = wanted;
        OX_TRY(sort_key(j, s->p[i], c->arg[1], ox_jtruth(c->arg[0]), &key));
        if (i) OX_TRY(ox_jcompare(j, key, best, wanted < 0 ? "<" : ">", &order));
        if (order != wanted) continue;
        best = key;
        *out = s->p[i];
    }
    return OX_OK;
}

ox_status ox_jf_filter_min(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return extreme(j, c, -1, out);
}

ox_status ox_jf_filter_max(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return extreme(j, c, 1, out);
}

ox_status ox_jf_filter_unique(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    ox_jseq *s, *t;
    ox_jdict *seen;
    OX_TRY(ox_jiterate(j, c->self, &s));
    OX_TRY(ox_jseq_new(j, 0, &t));
    OX_TRY(ox_jdict_new(j, &seen));
    for (size_t i = 0; i < s->n; i++) {
        ox_jval key;
        ox_jentry *e;
        OX_TRY(ox_jspend(j, 1));
        OX_TRY(sort_key(j, s->p[i], c->arg[1], ox_jtruth(c->arg[0]), &key));
        OX_TRY(ox_jdict_find(j, seen, key, &e));
        if (e) continue;
        OX_TRY(ox_jdict_put(j, seen, key, ox_jnone()));
        OX_TRY(ox_jseq_push(j, t, s->p[i]));
    }
    *out = ox_jseqval(OX_JKIND_ITER, t);
    return OX_OK;
}

ox_status ox_jf_filter_sum(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    ox_jseq *s;
    ox_jval total = ox_jis(c->arg[1], OX_JKIND_MISSING) ? ox_jint(0) : c->arg[1];
    if (ox_jis(total, OX_JKIND_STR)) return OX_JFAIL(j, "sum can't add strings; use join");
    OX_TRY(ox_jiterate(j, c->self, &s));
    for (size_t i = 0; i < s->n; i++) {
        ox_jval v;
        OX_TRY(ox_jattr_path(j, s->p[i], c->arg[0], &v));
        OX_TRY(ox_jarith(j, OX_JOP_ADD, total, v, &total));
    }
    *out = total;
    return OX_OK;
}

/* ---- groups ---- */

static ox_status group_key(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval item, bool lower,
                           ox_jval *out)
{
    OX_TRY(ox_jattr_path(j, item, c->arg[0], out));
    if (ox_jis(*out, OX_JKIND_UNDEFINED) && ox_jgiven(c->arg[1])) *out = c->arg[1];
    return lower ? ox_jlower_value(j, *out, out) : OX_OK;
}

ox_status ox_jf_filter_groupby(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    const bool lower = !ox_jtruth(c->arg[2]);
    ox_jseq *s, *groups, *group = NULL;
    ox_jval before = {0};
    void *mem;
    OX_TRY(copy_items(j, c->self, &s));
    OX_TRY(ox_jtake(j, s->n + 1, sizeof(ox_jval), &mem));
    ox_jval *keys = mem;
    for (size_t i = 0; i < s->n; i++)
        OX_TRY(group_key(j, c, s->p[i], lower, &keys[i]));
    OX_TRY(ox_jsort(j, s, keys, false));
    OX_TRY(ox_jseq_new(j, 0, &groups));
    for (size_t i = 0; i < s->n; i++) {
        ox_jval key, shown, row;
        bool same = false;
        OX_TRY(group_key(j, c, s->p[i], lower, &key));
        if (group) OX_TRY(ox_jequal(j, key, before, &same));
        if (!same) {
            OX_TRY(ox_jseq_new(j, 0, &group));
            OX_TRY(group_key(j, c, s->p[i], false, &shown));
            OX_TRY(pair(j, shown, ox_jseqval(OX_JKIND_LIST, group), &row));
            row.detail = 1;
            OX_TRY(ox_jseq_push(j, groups, row));
            before = key;
        }
        OX_TRY(ox_jseq_push(j, group, s->p[i]));
    }
    *out = ox_jseqval(OX_JKIND_LIST, groups);
    return OX_OK;
}

ox_status ox_jf_filter_batch(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    int64_t size;
    ox_jseq *s, *rows, *row = NULL;
    OX_TRY(ox_jarg_int(j, c, 0, 0, &size));
    OX_TRY(ox_jiterate(j, c->self, &s));
    OX_TRY(ox_jseq_new(j, 0, &rows));
    for (size_t i = 0; i < s->n; i++) {
        OX_TRY(ox_jspend(j, 1));
        if (!row || (int64_t)row->n == size) {
            OX_TRY(ox_jseq_new(j, 0, &row));
            OX_TRY(ox_jseq_push(j, rows, ox_jseqval(OX_JKIND_LIST, row)));
        }
        OX_TRY(ox_jseq_push(j, row, s->p[i]));
    }
    while (row && ox_jgiven(c->arg[1]) && (int64_t)row->n < size) {
        OX_TRY(ox_jspend(j, 1));
        OX_TRY(ox_jseq_push(j, row, c->arg[1]));
    }
    *out = ox_jseqval(OX_JKIND_ITER, rows);
    return OX_OK;
}

ox_status ox_jf_filter_slice(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    int64_t n;
    ox_jseq *s, *rows;
    OX_TRY(ox_jarg_int(j, c, 0, 0, &n));
    OX_TRY(ox_jiterate(j, c->self, &s));
    if (!n) return OX_JFAIL(j, "slice: division by zero");
    OX_TRY(ox_jseq_new(j, 0, &rows));
    size_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        ox_jseq *row;
        const size_t extra = s->n % (size_t)n, size = s->n / (size_t)n + ((size_t)i < extra);
        OX_TRY(ox_jspend(j, 1 + size));
        OX_TRY(ox_jseq_new(j, 0, &row));
        for (size_t k = 0; k < size; k++)
            OX_TRY(ox_jseq_push(j, row, s->p[at++]));
        if (ox_jgiven(c->arg[1]) && (size_t)i >= extra) OX_TRY(ox_jseq_push(j, row, c->arg[1]));
        OX_TRY(ox_jseq_push(j, rows, ox_jseqval(OX_JKIND_LIST, row)));
    }
    *out = ox_jseqval(OX_JKIND_ITER, rows);
    return OX_OK;
}

ox_status ox_jf_filter_attr(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    if (!ox_jis(c->arg[0], OX_JKIND_STR)) return OX_JFAIL(j, "attr needs a name");
    if (!ox_jis(c->self, OX_JKIND_DICT)) return ox_jgetattr(j, c->self, c->arg[0], NULL, out);
    /* of a dict only methods are attributes, keys are not */
    void *mem;
    const ox_jbuiltin *row = ox_jmethod_find(OX_JKIND_DICT, ox_jview(c->arg[0]));
    *out = ox_jundefined(NULL);
    if (!row) return OX_OK;
    OX_TRY(ox_jtake(j, 1, sizeof(ox_jbound), &mem));
    *(ox_jbound *)mem = (ox_jbound){row, c->self};
    *out = (ox_jval){.kind = OX_JKIND_BOUND, .u.bound = mem};
    return OX_OK;
}
