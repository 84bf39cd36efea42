/* value.c - truth, equality, order, membership, and the containers, as Python has them.
 *
 * Every walk over nested lists and dicts counts its depth and its steps, so that values which
 * contain themselves end in a message. Next: repr.c. */
#include "text/jinja/state.h"

#include <assert.h>
#include <math.h>

static const char *const kind_names[OX_JKIND_COUNT] = {
#define X(name, text) text,
    OX_JKIND_LIST(X)
#undef X
};

const char *ox_jkind_name(ox_jval v)
{
    return v.kind < OX_JKIND_COUNT ? kind_names[v.kind] : "?";
}

int64_t ox_jlength(ox_jval v)
{
    switch (v.kind) {
    case OX_JKIND_UNDEFINED:
        return 0;
    case OX_JKIND_STR:
        return (int64_t)ox_jutf8_count(ox_jview(v));
    case OX_JKIND_LIST:
    case OX_JKIND_TUPLE:
    case OX_JKIND_RANGE:
    case OX_JKIND_VIEW:
        return (int64_t)v.u.seq->n;
    case OX_JKIND_DICT:
        return (int64_t)v.u.dict->n;
    case OX_JKIND_LOOP:
        return (int64_t)v.u.loop->items->n;
    default:
        return -1;
    }
}

bool ox_jtruth(ox_jval v)
{
    switch (v.kind) {
    case OX_JKIND_MISSING:
    case OX_JKIND_UNDEFINED:
    case OX_JKIND_NONE:
        return false;
    case OX_JKIND_BOOL:
        return v.u.b;
    case OX_JKIND_INT:
        return v.u.i != 0;
    case OX_JKIND_FLOAT:
        return v.u.f < 0 || v.u.f > 0 || isnan(v.u.f);
    case OX_JKIND_STR:
        return v.u.str->n != 0;
    case OX_JKIND_LIST:
    case OX_JKIND_TUPLE:
    case OX_JKIND_RANGE:
    case OX_JKIND_VIEW:
        return v.u.seq->n != 0;
    case OX_JKIND_DICT:
        return v.u.dict->n != 0;
    default:
        return true;
    }
}

static bool is_number(ox_jval v)
{
    return v.kind == OX_JKIND_BOOL || v.kind == OX_JKIND_INT || v.kind == OX_JKIND_FLOAT;
}

/* -1, 0, 1; 2 when one is not a number. Long double holds every int64 exactly. */
static int compare_numbers(ox_jval a, ox_jval b)
{
    if (ox_jis_int(a) && ox_jis_int(b)) {
        const int64_t x = ox_jas_int(a), y = ox_jas_int(b);
        return (x > y) - (x < y);
    }
    const long double x = ox_jis_int(a) ? (long double)ox_jas_int(a) : (long double)a.u.f;
    const long double y = ox_jis_int(b) ? (long double)ox_jas_int(b) : (long double)b.u.f;
    if (isnan(x) || isnan(y)) return 2;
    return (x > y) - (x < y);
}

static ox_status too_deep(ox_jstate *j)
{
    return ox_jfail(j, OX_UNSUPPORTED, "a value is nested more than %d deep", OX_JNEST_MAX);
}

static ox_status equal(ox_jstate *j, ox_jval a, ox_jval b, int depth, bool *out);

static ox_status equal_dicts(ox_jstate *j, const ox_jdict *a, const ox_jdict *b, int depth,
                             bool *out)
{
    *out = a->n == b->n;
    for (size_t i = 0; i < a->n && *out; i++) {
        ox_jentry *e;
        OX_TRY(ox_jdict_find(j, b, a->p[i].key, &e));
        *out = e != NULL;
        if (e) OX_TRY(equal(j, a->p[i].value, e->value, depth + 1, out));
    }
    return OX_OK;
}

static ox_status equal(ox_jstate *j, ox_jval a, ox_jval b, int depth, bool *out)
{
    if (depth > OX_JNEST_MAX) return too_deep(j);
    OX_TRY(ox_jspend(j, 1));
    *out = false;
    if (is_number(a) && is_number(b)) {
        *out = compare_numbers(a, b) == 0;
        return OX_OK;
    }
    if (a.kind != b.kind) return OX_OK;
    switch (a.kind) {
    case OX_JKIND_UNDEFINED:
    case OX_JKIND_NONE:
    case OX_JKIND_MISSING:
        *out = true;
        return OX_OK;
    case OX_JKIND_STR:
        OX_TRY(ox_jspend(j, a.u.str->n / 64));
        *out = ox_str_eq(ox_jview(a), ox_jview(b));
        return OX_OK;
    case OX_JKIND_LIST:
    case OX_JKIND_TUPLE:
    case OX_JKIND_RANGE:
        *out = a.u.seq->n == b.u.seq->n;
        for (size_t i = 0; i < a.u.seq->n && i < b.u.seq->n && *out; i++)
            OX_TRY(equal(j, a.u.seq->p[i], b.u.seq->p[i], depth + 1, out));
        return OX_OK;
    case OX_JKIND_DICT:
        return equal_dicts(j, a.u.dict, b.u.dict, depth, out);
    case OX_JKIND_BOUND:
        *out = a.u.bound->method == b.u.bound->method &&
               a.u.bound->self.u.str == b.u.bound->self.u.str;
        return OX_OK;
    default:
        *out = a.u.str == b.u.str; /* the same object */
        return OX_OK;
    }
}

ox_status ox_jequal(ox_jstate *j, ox_jval a, ox_jval b, bool *out)
{
    return equal(j, a, b, 0, out);
}

static ox_status compare(ox_jstate *j, ox_jval a, ox_jval b, const char *op, int depth, int *out)
{
    if (depth > OX_JNEST_MAX) return too_deep(j);
    OX_TRY(ox_jspend(j, 1));
    if (is_number(a) && is_number(b)) {
        *out = compare_numbers(a, b);
        return OX_OK;
    }
    if (a.kind == OX_JKIND_STR && b.kind == OX_JKIND_STR) {
        const ox_str x = ox_jview(a), y = ox_jview(b);
        const size_t n = x.n < y.n ? x.n : y.n;
        OX_TRY(ox_jspend(j, n / 64));
        const int c = n ? memcmp(x.p, y.p, n) : 0;
        *out = c ? (c > 0) - (c < 0) : (x.n > y.n) - (x.n < y.n);
        return OX_OK;
    }
    if (a.kind == b.kind && (a.kind == OX_JKIND_LIST || a.kind == OX_JKIND_TUPLE)) {
        const ox_jseq *x = a.u.seq, *y = b.u.seq;
        for (size_t i = 0; i < x->n && i < y->n; i++) {
            bool same;
            OX_TRY(equal(j, x->p[i], y->p[i], depth + 1, &same));
            if (!same) return compare(j, x->p[i], y->p[i], op, depth + 1, out);
        }
        *out = (x->n > y->n) - (x->n < y->n);
        return OX_OK;
    }
    if (ox_jis(a, OX_JKIND_UNDEFINED)) return ox_jundefined_error(j, a);
    if (ox_jis(b, OX_JKIND_UNDEFINED)) return ox_jundefined_error(j, b);
    return OX_JFAIL(j, "'%s' is not possible between %s and %s", op, ox_jkind_name(a),
                    ox_jkind_name(b));
}

ox_status ox_jcompare(ox_jstate *j, ox_jval a, ox_jval b, const char *op, int *out)
{
    return compare(j, a, b, op, 0, out);
}

ox_status ox_jcontains(ox_jstate *j, ox_jval item, ox_jval in, bool *out)
{
    *out = false;
    if (ox_jis(in, OX_JKIND_STR)) {
        if (ox_jis(item, OX_JKIND_UNDEFINED)) return ox_jundefined_error(j, item);
        if (!ox_jis(item, OX_JKIND_STR))
            return OX_JFAIL(j, "'in' a string needs a string on its left, found %s",
                            ox_jkind_name(item));
        OX_TRY(ox_jspend_bytes(j, in.u.str->n));
        *out = ox_str_find(ox_jview(in), ox_jview(item), 0) != SIZE_MAX;
        return OX_OK;
    }
    if (ox_jis(in, OX_JKIND_DICT)) {
        ox_jentry *e;
        OX_TRY(ox_jdict_find(j, in.u.dict, item, &e));
        *out = e != NULL;
        return OX_OK;
    }
    ox_jseq *s;
    OX_TRY(ox_jiterate(j, in, &s));
    assert(s->p || !s->n);
    for (size_t i = 0; i < s->n && !*out; i++)
        OX_TRY(ox_jequal(j, item, s->p[i], out));
    return OX_OK;
}

static ox_status characters(ox_jstate *j, const ox_jstr *s, ox_jseq **out)
{
    const ox_str text = {s->p, s->n};
    OX_TRY(ox_jseq_new(j, ox_jutf8_count(text), out));
    for (size_t i = 0; i < s->n;) {
        const size_t n = ox_jutf8_size(text, i);
        ox_jval c;
        OX_TRY(ox_jstr_sub(j, s, i, i + n, &c));
        OX_TRY(ox_jspend(j, 1));
        OX_TRY(ox_jseq_push(j, *out, c));
        i += n;
    }
    return OX_OK;
}

ox_status ox_jiterate(ox_jstate *j, ox_jval v, ox_jseq **out)
{
    switch (v.kind) {
    case OX_JKIND_LIST:
    case OX_JKIND_TUPLE:
    case OX_JKIND_RANGE:
    case OX_JKIND_VIEW:
        *out = v.u.seq;
        return OX_OK;
    case OX_JKIND_ITER: {
        ox_jseq *s = v.u.seq;
        OX_TRY(ox_jseq_new(j, 0, out));
        (*out)->p = s->p ? s->p + s->pos : NULL;
        (*out)->n = (*out)->cap = s->n - s->pos;
        s->pos = s->n;
        return OX_OK;
    }
    case OX_JKIND_UNDEFINED:
        return ox_jseq_new(j, 0, out);
    case OX_JKIND_STR:
        return characters(j, v.u.str, out);
    case OX_JKIND_DICT:
        OX_TRY(ox_jspend(j, v.u.dict->n));
        OX_TRY(ox_jseq_new(j, v.u.dict->n, out));
        for (size_t i = 0; i < v.u.dict->n; i++)
            OX_TRY(ox_jseq_push(j, *out, v.u.dict->p[i].key));
        return OX_OK;
    default:
        return OX_JFAIL(j, "%s can't be iterated over", ox_jkind_name(v));
    }
}

ox_status ox_jseq_new(ox_jstate *j, size_t cap, ox_jseq **out)
{
    void *mem;
    OX_TRY(ox_jtake(j, 1, sizeof(ox_jseq), &mem));
    *out = mem;
    if (cap) {
        OX_TRY(ox_jtake(j, cap, sizeof(ox_jval), &mem));
        (*out)->p = mem;
        (*out)->cap = cap;
    }
    return OX_OK;
}

ox_status ox_jseq_push(ox_jstate *j, ox_jseq *s, ox_jval v)
{
    if (s->n == s->cap) {
        const size_t cap = s->cap ? s->cap * 2 : 4;
        void *mem;
        OX_TRY(ox_jtake(j, cap, sizeof(ox_jval), &mem));
        if (s->n) memcpy(mem, s->p, s->n * sizeof(ox_jval));
        s->p = mem;
        s->cap = cap;
    }
    s->p[s->n++] = v;
    return OX_OK;
}

/* ---- dicts ---- */

enum { INDEX_FROM = 9 };

static ox_status hash_value(ox_jstate *j, ox_jval v, int depth, uint64_t *out)
{
    int64_t i = 0;
    switch (v.kind) {
    case OX_JKIND_STR:
        OX_TRY(ox_jspend(j, v.u.str->n / 64));
        *out = ox_hash_key(v.u.str->p, v.u.str->n);
        return OX_OK;
    case OX_JKIND_BOOL:
    case OX_JKIND_INT:
        i = ox_jas_int(v);
        break;
    case OX_JKIND_FLOAT:
        if (v.u.f >= -9e18 && v.u.f <= 9e18 && v.u.f == floor(v.u.f)) {
            i = (int64_t)v.u.f;
            break;
        }
        *out = ox_hash_key(&v.u.f, sizeof(v.u.f));
        return OX_OK;
    case OX_JKIND_NONE:
    case OX_JKIND_UNDEFINED:
        i = v.kind;
        break;
    case OX_JKIND_TUPLE:
        if (depth > OX_JNEST_MAX) return too_deep(j);
        *out = 1;
        for (size_t k = 0; k < v.u.seq->n; k++) {
            uint64_t h[2] = {*out, 0};
            OX_TRY(ox_jspend(j, 1));
            OX_TRY(hash_value(j, v.u.seq->p[k], depth + 1, &h[1]));
            *out = ox_hash_key(h, sizeof(h));
        }
        return OX_OK;
    default:
        return OX_JFAIL(j, "%s can't be the key of a dict", ox_jkind_name(v));
    }
    *out = ox_hash_key(&i, sizeof(i));
    return OX_OK;
}

static ox_status same_key(ox_jstate *j, const ox_jentry *e, ox_jval key, uint64_t hash, bool *out)
{
    *out = false;
    if (e->hash != hash) return OX_OK;
    return ox_jequal(j, e->key, key, out);
}

static ox_status find(ox_jstate *j, const ox_jdict *d, ox_jval key, uint64_t hash, ox_jentry **out)
{
    bool same = false;
    *out = NULL;
    if (!d->index) {
        for (size_t i = 0; i < d->n && !same; i++) {
            OX_TRY(same_key(j, &d->p[i], key, hash, &same));
            if (same) *out = &d->p[i];
        }
        return OX_OK;
    }
    for (size_t k = hash & (d->n_index - 1); d->index[k] && !same; k = (k + 1) & (d->n_index - 1)) {
        ox_jentry *e = &d->p[d->index[k] - 1];
        OX_TRY(ox_jspend(j, 1));
        OX_TRY(same_key(j, e, key, hash, &same));
        if (same) *out = e;
    }
    return OX_OK;
}

static void index_add(ox_jdict *d, size_t i)
{
    size_t k = d->p[i].hash & (d->n_index - 1);
    while (d->index[k])
        k = (k + 1) & (d->n_index - 1);
    d->index[k] = (uint32_t)i + 1;
}

static ox_status index_build(ox_jstate *j, ox_jdict *d)
{
    void *mem;
    d->index = NULL;
    if (d->cap < INDEX_FROM) return OX_OK;
    const size_t n = d->cap * 4;
    OX_TRY(ox_jspend(j, d->n));
    OX_TRY(ox_jtake(j, n, sizeof(uint32_t), &mem));
    d->index = mem;
    d->n_index = n;
    for (size_t i = 0; i < d->n; i++)
        index_add(d, i);
    return OX_OK;
}

ox_status ox_jdict_new(ox_jstate *j, ox_jdict **out)
{
    void *mem;
    OX_TRY(ox_jtake(j, 1, sizeof(ox_jdict), &mem));
    *out = mem;
    return OX_OK;
}

ox_status ox_jdict_find(ox_jstate *j, const ox_jdict *d, ox_jval key, ox_jentry **out)
{
    uint64_t hash;
    OX_TRY(hash_value(j, key, 0, &hash));
    return find(j, d, key, hash, out);
}

ox_status ox_jdict_put(ox_jstate *j, ox_jdict *d, ox_jval key, ox_jval value)
{
    uint64_t hash;
    ox_jentry *e;
    OX_TRY(hash_value(j, key, 0, &hash));
    OX_TRY(find(j, d, key, hash, &e));
    if (e) {
        e->value = value;
        return OX_OK;
    }
    if (d->n >= UINT32_MAX / 8) return ox_jno_memory(j);
    if (d->n == d->cap) {
        void *mem;
        const size_t cap = d->cap ? d->cap * 2 : 4; /* a power of two: the index relies on it */
        OX_TRY(ox_jtake(j, cap, sizeof(ox_jentry), &mem));
        if (d->n) memcpy(mem, d->p, d->n * sizeof(ox_jentry));
        d->p = mem;
        d->cap = cap;
        OX_TRY(index_build(j, d));
    }
    d->p[d->n++] = (ox_jentry){key, value, hash};
    if (d->index) index_add(d, d->n - 1);
    return OX_OK;
}

const ox_jval *ox_jdict_get_z(const ox_jdict *d, const char *key)
{
    for (size_t i = 0; i < d->n; i++)
        if (ox_jis(d->p[i].key, OX_JKIND_STR) && ox_str_is(ox_jview(d->p[i].key), key))
            return &d->p[i].value;
    return NULL;
}

ox_status ox_jdict_remove(ox_jstate *j, ox_jdict *d, ox_jentry *e)
{
    const size_t i = (size_t)(e - d->p);
    OX_TRY(ox_jspend(j, d->n));
    memmove(e, e + 1, (d->n - i - 1) * sizeof(*e));
    d->n--;
    return index_build(j, d);
}
