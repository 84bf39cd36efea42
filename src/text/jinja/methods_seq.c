/* methods_seq.c - methods of lists, tuples, dicts, loops and cyclers. */
#include "text/jinja/builtin.h"

static ox_status index_of(ox_jstate *j, const ox_jbuiltin_call *c, size_t *at)
{
    const ox_jseq *s = c->self.u.seq;
    for (*at = 0; *at < s->n; ++*at) {
        bool same;
        OX_TRY(ox_jequal(j, s->p[*at], c->arg[0], &same));
        if (same) return OX_OK;
    }
    return OX_JFAIL(j, "%s: the value is not in the %s", c->row->name, ox_jkind_name(c->self));
}

static void remove_at(ox_jseq *s, size_t at)
{
    memmove(s->p + at, s->p + at + 1, (s->n - at - 1) * sizeof(*s->p));
    s->n--;
}

ox_status ox_jf_list_append(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    *out = ox_jnone();
    return ox_jseq_push(j, c->self.u.seq, c->arg[0]);
}

ox_status ox_jf_list_clear(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    (void)j;
    c->self.u.seq->n = 0;
    *out = ox_jnone();
    return OX_OK;
}

ox_status ox_jf_list_copy(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    ox_jseq *s;
    OX_TRY(ox_jspend(j, c->self.u.seq->n));
    OX_TRY(ox_jseq_new(j, 0, &s));
    for (size_t i = 0; i < c->self.u.seq->n; i++)
        OX_TRY(ox_jseq_push(j, s, c->self.u.seq->p[i]));
    *out = ox_jseqval(OX_JKIND_LIST, s);
    return OX_OK;
}

ox_status ox_jf_list_extend(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    ox_jseq *s;
    OX_TRY(ox_jiterate(j, c->arg[0], &s));
    const size_t n = s->n; /* it may be the list itself */
    OX_TRY(ox_jspend(j, n));
    for (size_t i = 0; i < n; i++)
        OX_TRY(ox_jseq_push(j, c->self.u.seq, s->p[i]));
    *out = ox_jnone();
    return OX_OK;
}

ox_status ox_jf_list_insert(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    ox_jseq *s = c->self.u.seq;
    int64_t i;
    OX_TRY(ox_jarg_int(j, c, 0, 0, &i));
    const int64_t n = (int64_t)s->n;
    if (i < 0) i = i + n < 0 ? 0 : i + n;
    if (i > n) i = n;
    OX_TRY(ox_jspend(j, s->n));
    OX_TRY(ox_jseq_push(j, s, c->arg[1]));
    memmove(s->p + i + 1, s->p + i, (size_t)(n - i) * sizeof(*s->p));
    s->p[i] = c->arg[1];
    *out = ox_jnone();
    return OX_OK;
}

ox_status ox_jf_list_pop(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    ox_jseq *s = c->self.u.seq;
    int64_t i;
    OX_TRY(ox_jarg_int(j, c, 0, -1, &i));
    if (i < 0) i += (int64_t)s->n;
    if (i < 0 || i >= (int64_t)s->n) return OX_JFAIL(j, "pop: the list has no such item");
    OX_TRY(ox_jspend(j, s->n));
    *out = s->p[i];
    remove_at(s, (size_t)i);
    return OX_OK;
}

ox_status ox_jf_list_remove(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    size_t at;
    OX_TRY(index_of(j, c, &at));
    remove_at(c->self.u.seq, at);
    *out = ox_jnone();
    return OX_OK;
}

ox_status ox_jf_list_reverse(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    ox_jseq *s = c->self.u.seq;
    OX_TRY(ox_jspend(j, s->n));
    for (size_t i = 0; i < s->n / 2; i++) {
        const ox_jval v = s->p[i];
        s->p[i] = s->p[s->n - 1 - i];
        s->p[s->n - 1 - i] = v;
    }
    *out = ox_jnone();
    return OX_OK;
}

ox_status ox_jf_seq_count(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    int64_t n = 0;
    for (size_t i = 0; i < c->self.u.seq->n; i++) {
        bool same;
        OX_TRY(ox_jequal(j, c->self.u.seq->p[i], c->arg[0], &same));
        n += same;
    }
    *out = ox_jint(n);
    return OX_OK;
}

ox_status ox_jf_seq_index(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    size_t at;
    OX_TRY(index_of(j, c, &at));
    *out = ox_jint((int64_t)at);
    return OX_OK;
}

/* ---- dicts ---- */

ox_status ox_jf_dict_clear(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    (void)j;
    *c->self.u.dict = (ox_jdict){0};
    *out = ox_jnone();
    return OX_OK;
}

static ox_status put_all(ox_jstate *j, ox_jdict *to, const ox_jdict *from)
{
    const size_t n = from->n;
    OX_TRY(ox_jspend(j, n));
    for (size_t i = 0; i < n; i++)
        OX_TRY(ox_jdict_put(j, to, from->p[i].key, from->p[i].value));
    return OX_OK;
}

ox_status ox_jf_dict_copy(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    ox_jdict *d;
    OX_TRY(ox_jdict_new(j, &d));
    OX_TRY(put_all(j, d, c->self.u.dict));
    *out = ox_jdictval(d);
    return OX_OK;
}

ox_status ox_jf_dict_update(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    *out = ox_jnone();
    for (size_t i = 0; i < c->raw->n; i++) {
        if (!ox_jis(c->raw->pos[i], OX_JKIND_DICT)) return OX_JFAIL(j, "update needs a dict");
        OX_TRY(put_all(j, c->self.u.dict, c->raw->pos[i].u.dict));
    }
    for (size_t i = 0; i < c->raw->n_kw; i++) {
        ox_jval key;
        const ox_str name = c->raw->kw[i].name;
        OX_TRY(ox_jstr_borrow(j, name.p, name.n, OX_JFROM_TEMPLATE, &key));
        OX_TRY(ox_jdict_put(j, c->self.u.dict, key, c->raw->kw[i].value));
    }
    return OX_OK;
}

static ox_status find(ox_jstate *j, const ox_jbuiltin_call *c, ox_jentry **e)
{
    return ox_jdict_find(j, c->self.u.dict, c->arg[0], e);
}

ox_status ox_jf_dict_get(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    ox_jentry *e;
    OX_TRY(find(j, c, &e));
    *out = e ? e->value : c->arg[1];
    if (ox_jis(*out, OX_JKIND_MISSING)) *out = ox_jnone();
    return OX_OK;
}

ox_status ox_jf_dict_pop(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    ox_jentry *e;
    OX_TRY(find(j, c, &e));
    if (!e && ox_jis(c->arg[1], OX_JKIND_MISSING)) return OX_JFAIL(j, "pop: no such key");
    *out = e ? e->value : c->arg[1];
    return e ? ox_jdict_remove(j, c->self.u.dict, e) : OX_OK;
}

ox_status ox_jf_dict_setdefault(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    ox_jentry *e;
    OX_TRY(find(j, c, &e));
    *out = e ? e->value : c->arg[1];
    if (ox_jis(*out, OX_JKIND_MISSING)) *out = ox_jnone();
    return e ? OX_OK : ox_jdict_put(j, c->self.u.dict, c->arg[0], *out);
}

typedef enum part { PART_KEYS, PART_VALUES, PART_ITEMS } part;

static ox_status view(ox_jstate *j, const ox_jdict *d, part which, ox_jval *out)
{
    static const char *const labels[] = {"dict_keys", "dict_values", "dict_items"};
    ox_jseq *s;
    OX_TRY(ox_jspend(j, d->n));
    OX_TRY(ox_jseq_new(j, d->n, &s));
    for (size_t i = 0; i < d->n; i++) {
        s->p[i] = which == PART_KEYS ? d->p[i].key : d->p[i].value;
        s->n = i + 1;
        if (which != PART_ITEMS) continue;
        ox_jseq *two;
        OX_TRY(ox_jseq_new(j, 2, &two));
        OX_TRY(ox_jseq_push(j, two, d->p[i].key));
        OX_TRY(ox_jseq_push(j, two, d->p[i].value));
        s->p[i] = ox_jseqval(OX_JKIND_TUPLE, two);
    }
    s->label = labels[which];
    *out = ox_jseqval(OX_JKIND_VIEW, s);
    return OX_OK;
}

ox_status ox_jf_dict_keys(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return view(j, c->self.u.dict, PART_KEYS, out);
}

ox_status ox_jf_dict_values(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return view(j, c->self.u.dict, PART_VALUES, out);
}

ox_status ox_jf_dict_items(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return view(j, c->self.u.dict, PART_ITEMS, out);
}

/* ---- loops and cyclers ---- */

ox_status ox_jf_loop_cycle(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    if (!c->raw->n) return OX_JFAIL(j, "cycle needs at least one value");
    *out = c->raw->pos[c->self.u.loop->i % c->raw->n];
    return OX_OK;
}

ox_status ox_jf_loop_changed(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    ox_jloop *l = c->self.u.loop;
    bool same = l->before && l->before->n == c->raw->n;
    for (size_t i = 0; same && i < c->raw->n; i++)
        OX_TRY(ox_jequal(j, l->before->p[i], c->raw->pos[i], &same));
    *out = ox_jbool(!same);
    if (same) return OX_OK;
    ox_jseq *s;
    OX_TRY(ox_jseq_new(j, 0, &s));
    for (size_t i = 0; i < c->raw->n; i++)
        OX_TRY(ox_jseq_push(j, s, c->raw->pos[i]));
    l->before = s;
    return OX_OK;
}

ox_status ox_jf_cycler_next(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    ox_jcycler *cy = c->self.u.cycler;
    (void)j;
    *out = cy->items[cy->pos];
    cy->pos = (cy->pos + 1) % cy->n;
    return OX_OK;
}

ox_status ox_jf_cycler_reset(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    (void)j;
    c->self.u.cycler->pos = 0;
    *out = ox_jnone();
    return OX_OK;
}
