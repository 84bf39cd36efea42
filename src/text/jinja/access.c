/* access.c - what stands behind a dot or in brackets: attributes, methods, items, slices.
 *
 * As in Jinja, a.b asks for an attribute (a method of the type) first and an item second, a['b']
 * the other way round, and what is not there is UNDEFINED rather than an error. */
#include "text/jinja/builtin.h"

static ox_status bind_method(ox_jstate *j, const ox_jbuiltin *row, ox_jval self, ox_jval *out)
{
    void *mem;
    OX_TRY(ox_jtake(j, 1, sizeof(ox_jbound), &mem));
    *(ox_jbound *)mem = (ox_jbound){row, self};
    *out = (ox_jval){.kind = OX_JKIND_BOUND, .u.bound = mem};
    return OX_OK;
}

static bool loop_attribute(const ox_jloop *l, ox_str name, const ox_jnode *node, ox_jval *out)
{
    const int64_t i = (int64_t)l->i, n = (int64_t)l->items->n;
    const struct {
        const char *name;
        ox_jval value;
    } rows[] = {
        {"index", ox_jint(i + 1)},
        {"index0", ox_jint(i)},
        {"first", ox_jbool(i == 0)},
        {"last", ox_jbool(i + 1 >= n)},
        {"length", ox_jint(n)},
        {"revindex", ox_jint(n - i)},
        {"revindex0", ox_jint(n - i - 1)},
        {"depth", ox_jint(l->depth0 + 1)},
        {"depth0", ox_jint(l->depth0)},
        {"previtem", i > 0 ? l->items->p[i - 1] : ox_jundefined(node)},
        {"nextitem", i + 1 < n ? l->items->p[i + 1] : ox_jundefined(node)},
    };
    for (size_t k = 0; k < OX_COUNT(rows); k++) {
        if (!ox_str_is(name, rows[k].name)) continue;
        *out = rows[k].value;
        return true;
    }
    return false;
}

/* Attributes proper: fields of our own objects, methods of types. */
static ox_status attribute(ox_jstate *j, ox_jval a, ox_jval name, const ox_jnode *node, bool *found,
                           ox_jval *out)
{
    const ox_str text = ox_jview(name);
    *found = true;
    if (ox_jis(a, OX_JKIND_NAMESPACE)) {
        ox_jentry *e;
        OX_TRY(ox_jdict_find(j, a.u.dict, name, &e));
        *found = e != NULL;
        if (e) *out = e->value;
        return OX_OK;
    }
    if (ox_jis(a, OX_JKIND_LOOP) && loop_attribute(a.u.loop, text, node, out)) return OX_OK;
    if (ox_jis(a, OX_JKIND_CYCLER) && ox_str_is(text, "current")) {
        *out = a.u.cycler->items[a.u.cycler->pos];
        return OX_OK;
    }
    if (ox_jis(a, OX_JKIND_TUPLE) && a.detail && a.u.seq->n == 2) {
        if (ox_str_is(text, "grouper") || ox_str_is(text, "list")) {
            *out = a.u.seq->p[text.p[0] == 'l'];
            return OX_OK;
        }
    }
    const ox_jbuiltin *row = ox_jmethod_find((ox_jkind)a.kind, text);
    *found = row != NULL;
    return row ? bind_method(j, row, a, out) : OX_OK;
}

/* The position that an index means in a sequence of n, or -1. */
static int64_t position(ox_jval index, int64_t n)
{
    if (!ox_jis_int(index)) return -1;
    int64_t i = ox_jas_int(index);
    if (i < 0) i += n;
    return i < n ? i : -1;
}

static ox_status item(ox_jstate *j, ox_jval a, ox_jval index, bool *found, ox_jval *out)
{
    *found = false;
    if (ox_jis(a, OX_JKIND_DICT)) {
        ox_jentry *e;
        if (ox_jis(index, OX_JKIND_LIST) || ox_jis(index, OX_JKIND_DICT)) return OX_OK;
        OX_TRY(ox_jdict_find(j, a.u.dict, index, &e));
        *found = e != NULL;
        if (e) *out = e->value;
    } else if (ox_jis(a, OX_JKIND_STR) && ox_jis_int(index)) {
        const ox_str s = ox_jview(a);
        OX_TRY(ox_jspend_bytes(j, s.n));
        const int64_t i = position(index, (int64_t)ox_jutf8_count(s));
        *found = i >= 0;
        if (!*found) return OX_OK;
        const size_t at = ox_jutf8_offset(s, (size_t)i);
        return ox_jstr_sub(j, a.u.str, at, at + ox_jutf8_size(s, at), out);
    } else if (ox_jis(a, OX_JKIND_LIST) || ox_jis(a, OX_JKIND_TUPLE) || ox_jis(a, OX_JKIND_RANGE)) {
        const int64_t i = position(index, (int64_t)a.u.seq->n);
        *found = i >= 0;
        if (*found) *out = a.u.seq->p[i];
    }
    return OX_OK;
}

ox_status ox_jgetattr(ox_jstate *j, ox_jval a, ox_jval name, const ox_jnode *node, ox_jval *out)
{
    bool found;
    if (ox_jis(a, OX_JKIND_UNDEFINED)) return ox_jundefined_error(j, a);
    OX_TRY(attribute(j, a, name, node, &found, out));
    if (!found) OX_TRY(item(j, a, name, &found, out));
    if (!found) *out = ox_jundefined(node);
    return OX_OK;
}

ox_status ox_jgetitem(ox_jstate *j, ox_jval a, ox_jval index, const ox_jnode *node, ox_jval *out)
{
    bool found;
    if (ox_jis(a, OX_JKIND_UNDEFINED)) return ox_jundefined_error(j, a);
    OX_TRY(item(j, a, index, &found, out));
    if (!found && ox_jis(index, OX_JKIND_STR)) OX_TRY(attribute(j, a, index, node, &found, out));
    if (!found) *out = ox_jundefined(node);
    return OX_OK;
}

static ox_status bound(ox_jstate *j, ox_jval v, int64_t absent, int64_t *out)
{
    *out = absent;
    if (ox_jis(v, OX_JKIND_NONE)) return OX_OK;
    if (!ox_jis_int(v))
        return OX_JFAIL(j, "the bounds of a slice must be integers or none, found %s",
                        ox_jkind_name(v));
    *out = ox_jas_int(v);
    return OX_OK;
}

typedef struct range {
    int64_t start, stop, step;
    size_t n;
} range;

/* Python's rules for begin:end:step over a length. */
static ox_status resolve(ox_jstate *j, const ox_jval b[3], int64_t n, range *r)
{
    OX_TRY(bound(j, b[2], 1, &r->step));
    if (!r->step) return OX_JFAIL(j, "the step of a slice can't be 0");
    const bool back = r->step < 0;
    const int64_t lowest = back ? -1 : 0, highest = back ? n - 1 : n;
    OX_TRY(bound(j, b[0], back ? highest : lowest, &r->start));
    OX_TRY(bound(j, b[1], back ? lowest : highest, &r->stop));
    int64_t *const ends[2] = {&r->start, &r->stop};
    for (int i = 0; i < 2; i++) {
        if (ox_jis(b[i], OX_JKIND_NONE)) continue;
        if (*ends[i] < 0) *ends[i] += n;
        if (*ends[i] < lowest) *ends[i] = lowest;
        if (*ends[i] > highest) *ends[i] = highest;
    }
    const int64_t span = back ? r->start - r->stop : r->stop - r->start;
    const uint64_t step = back ? 0 - (uint64_t)r->step : (uint64_t)r->step;
    r->n = span > 0 ? (size_t)(((uint64_t)span - 1) / step + 1) : 0;
    return OX_OK;
}

static ox_status slice_string(ox_jstate *j, const ox_jstr *s, const ox_jval b[3], ox_jval *out)
{
    const ox_str text = {s->p, s->n};
    range r;
    OX_TRY(ox_jspend_bytes(j, s->n));
    OX_TRY(resolve(j, b, (int64_t)ox_jutf8_count(text), &r));
    if (r.step == 1) {
        const size_t begin = ox_jutf8_offset(text, (size_t)r.start);
        const ox_str rest = {text.p + begin, text.n - begin};
        return ox_jstr_sub(j, s, begin, begin + ox_jutf8_offset(rest, r.n), out);
    }
    /* offsets of all code points, then pick */
    void *mem;
    size_t count = 0, *at;
    OX_TRY(ox_jtake(j, s->n + 1, sizeof(size_t), &mem));
    at = mem;
    for (size_t i = 0; i < s->n; i += ox_jutf8_size(text, i))
        at[count++] = i;
    at[count] = s->n;
    ox_jbuf buf = {0};
    OX_TRY(ox_jspend(j, r.n));
    for (size_t k = 0; k < r.n; k++) {
        const size_t i = (size_t)(r.start + (int64_t)k * r.step);
        OX_TRY(ox_jbuf_put_sub(j, &buf, s, at[i], at[i + 1]));
    }
    return ox_jbuf_take(j, &buf, out);
}

ox_status ox_jslice(ox_jstate *j, ox_jval a, const ox_jval b[3], ox_jval *out)
{
    if (ox_jis(a, OX_JKIND_STR)) return slice_string(j, a.u.str, b, out);
    if (ox_jis(a, OX_JKIND_UNDEFINED)) return ox_jundefined_error(j, a);
    if (!ox_jis(a, OX_JKIND_LIST) && !ox_jis(a, OX_JKIND_TUPLE) && !ox_jis(a, OX_JKIND_RANGE))
        return OX_JFAIL(j, "%s can't be sliced", ox_jkind_name(a));
    const ox_jseq *s = a.u.seq;
    ox_jseq *t;
    range r;
    OX_TRY(resolve(j, b, (int64_t)s->n, &r));
    OX_TRY(ox_jspend(j, r.n));
    OX_TRY(ox_jseq_new(j, r.n, &t));
    for (size_t k = 0; k < r.n; k++)
        t->p[k] = s->p[r.start + (int64_t)k * r.step];
    t->n = r.n;
    if (ox_jis(a, OX_JKIND_RANGE) && (__builtin_mul_overflow(r.start, s->step, &t->start) ||
                                      __builtin_add_overflow(t->start, s->start, &t->start) ||
                                      __builtin_mul_overflow(r.stop, s->step, &t->stop) ||
                                      __builtin_add_overflow(t->stop, s->start, &t->stop) ||
                                      __builtin_mul_overflow(s->step, r.step, &t->step)))
        return OX_JFAIL(j, "a range is too large to be sliced");
    *out = ox_jseqval((ox_jkind)a.kind, t);
    return OX_OK;
}
