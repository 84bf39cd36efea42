/* state.c - one sequence on a decoder: the memory behind its past and present ports, and a step.
 *
 *     port                 memory                        bound
 *     in place (shared)    one buffer with room to grow  once, until it grows
 *     grows by a copy      two buffers, exact lengths    past = one, present = other
 *     fixed state          two buffers                   likewise, changing places
 *     any, on a GPU        values of the library         a present is the next past
 *
 * A step changes nothing that the next one relies on before it has succeeded, so a failed step
 * leaves the sequence as it was. */
#include "backend/ort/decoder_internal.h"
#include "tensor/half.h"

#include <assert.h>
#include <string.h>

enum { FIRST_CAPACITY = 256 };

typedef struct block {
    void *p;
    size_t bytes;
} block;

struct ox_ort_state {
    const ox_ort_decoder *d;
    ox_ort_binding *binding;
    block *blocks;       /* [caches.n][2] */
    ox_ort_value **held; /* [caches.n] presents of the last step, where the library keeps them */
    block *numbers;      /* [feeds.n] */
    block logits, row;
    size_t capacity; /* positions of in-place caches that the library keeps */
    bool bound;      /* shared buffers, as they are now */
    int turn;        /* which of two buffers holds the past */
    size_t n_positions;
};

/* What one run of the graph is about. */
typedef struct step {
    const int32_t *ids;
    size_t n, n_wanted, total;
    ox_ort_logits_fn *fn;
    void *user;
} step;

static void block_free(block *b)
{
    ox_pages_free(b->p, b->bytes);
    *b = (block){0};
}

/* At least bytes; the content is lost when it grows. */
static ox_status block_reserve(block *b, size_t bytes, const char *what, ox_err *err)
{
    if (b->p && b->bytes >= bytes) return OX_OK;
    size_t more = b->bytes + b->bytes / 2;
    if (more < bytes) more = bytes;
    block_free(b);
    b->p = ox_pages_alloc(more ? more : 1);
    if (!b->p) return OX_FAIL(err, OX_NO_MEMORY, "no memory for %s (%zu bytes)", what, more);
    b->bytes = more ? more : 1;
    return OX_OK;
}

static block *block_of(const ox_ort_state *s, size_t i, int side)
{
    return &s->blocks[i * 2 + (size_t)side];
}

static bool cache_bytes(const cache_port *c, size_t positions, size_t *bytes)
{
    if (c->axis < 0) positions = 1;
    return ox_size_mul(c->outer, c->inner, bytes) && ox_size_mul(*bytes, positions, bytes);
}

/* Positions that a shared buffer has room for. */
static size_t capacity_of(const cache_port *c, const block *b)
{
    return c->outer && c->inner ? b->bytes / c->outer / c->inner : SIZE_MAX;
}

/* A shared buffer gets room for total positions; what it holds moves along. */
static ox_status grow_one(ox_ort_state *s, const cache_port *c, block *b, size_t total, ox_err *err)
{
    size_t capacity = capacity_of(c, b) * 2;
    block grown = {0};
    if (total <= capacity_of(c, b)) return OX_OK;
    if (capacity < FIRST_CAPACITY) capacity = FIRST_CAPACITY;
    if (capacity < total) capacity = total;
    if (!cache_bytes(c, capacity, &grown.bytes))
        return OX_FAIL(err, OX_LIMIT, "a cache of %zu positions is too large", capacity);
    grown.p = ox_pages_alloc(grown.bytes);
    if (!grown.p)
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for a cache of %zu positions", capacity);
    const size_t had = b->bytes / c->outer, has = grown.bytes / c->outer;
    for (size_t o = 0; b->p && o < c->outer; o++)
        memcpy((char *)grown.p + o * has, (char *)b->p + o * had, s->n_positions * c->inner);
    block_free(b);
    *b = grown;
    s->bound = false;
    return OX_OK;
}

static ox_status grow_shared(ox_ort_state *s, size_t total, ox_err *err)
{
    for (size_t i = 0; i < s->d->caches.n; i++)
        if (s->d->caches.p[i].shared)
            OX_TRY(grow_one(s, &s->d->caches.p[i], block_of(s, i, 0), total, err));
    return OX_OK;
}

static void cache_tensor(ox_tensor *t, const cache_port *c, void *data, size_t positions)
{
    *t = (ox_tensor){.dtype = c->dtype, .rank = c->rank, .data = data};
    memcpy(t->dims, c->dims, sizeof(t->dims));
    if (c->axis >= 0) t->dims[c->axis] = (int64_t)positions;
}

/* Binds memory to a port; the binding keeps its own reference. */
static ox_status bind(ox_ort_state *s, const char *name, const ox_tensor *t, bool input,
                      ox_err *err)
{
    const ox_ort *o = s->d->o;
    ox_ort_value *v = NULL;
    OX_TRY(ox_ort_value_over(&v, o, t, err));
    const ox_status st = ox_ort_check(
        o, input ? o->api.BindInput(s->binding, name, v) : o->api.BindOutput(s->binding, name, v),
        "ONNX Runtime cannot bind a tensor", err);
    o->api.ReleaseValue(v);
    return st;
}

static ox_status bind_shared(ox_ort_state *s, ox_err *err)
{
    if (s->bound) return OX_OK;
    for (size_t i = 0; i < s->d->caches.n; i++) {
        const cache_port *c = &s->d->caches.p[i];
        ox_tensor t;
        if (!c->shared) continue;
        cache_tensor(&t, c, block_of(s, i, 0)->p, capacity_of(c, block_of(s, i, 0)));
        OX_TRY(bind(s, c->past, &t, true, err));
        OX_TRY(bind(s, c->present, &t, false, err));
    }
    s->bound = true;
    return OX_OK;
}

/* Caches that are read from one buffer and written to the other. */
static ox_status bind_turns(ox_ort_state *s, size_t total, ox_err *err)
{
    for (size_t i = 0; i < s->d->caches.n; i++) {
        const cache_port *c = &s->d->caches.p[i];
        block *past = block_of(s, i, s->turn), *present = block_of(s, i, !s->turn);
        size_t bytes;
        ox_tensor t;
        if (c->shared) continue;
        if (!cache_bytes(c, total, &bytes))
            return OX_FAIL(err, OX_LIMIT, "a cache of %zu positions is too large", total);
        OX_TRY(block_reserve(present, bytes, "the key/value cache", err));
        if (!past->p) OX_TRY(block_reserve(past, c->axis < 0 ? bytes : 1, "a cache", err));
        cache_tensor(&t, c, past->p, s->n_positions);
        OX_TRY(bind(s, c->past, &t, true, err));
        cache_tensor(&t, c, present->p, total);
        OX_TRY(bind(s, c->present, &t, false, err));
    }
    return OX_OK;
}

static void drop_held(ox_ort_state *s)
{
    for (size_t i = 0; s->held && i < s->d->caches.n; i++) {
        if (s->held[i]) s->d->o->api.ReleaseValue(s->held[i]);
        s->held[i] = NULL;
    }
}

/* The first past is memory of ours, zero: empty, or with room to grow for a cache in place. */
static ox_status bind_first(ox_ort_state *s, size_t i, ox_err *err)
{
    const cache_port *c = &s->d->caches.p[i];
    const size_t positions = c->shared ? s->capacity : 0;
    size_t bytes;
    ox_tensor t;
    if (!cache_bytes(c, positions, &bytes))
        return OX_FAIL(err, OX_LIMIT, "a cache of %zu positions is too large", positions);
    OX_TRY(block_reserve(block_of(s, i, 0), bytes ? bytes : 1, "a cache", err));
    cache_tensor(&t, c, block_of(s, i, 0)->p, positions);
    return bind(s, c->past, &t, true, err);
}

/* The last step's presents are this one's past, and its present again where that works. */
static ox_status bind_held(ox_ort_state *s, ox_err *err)
{
    static const char phrase[] = "ONNX Runtime cannot bind a cache";
    const ox_ort *o = s->d->o;
    for (size_t i = 0; i < s->d->caches.n; i++) {
        const cache_port *c = &s->d->caches.p[i];
        if (s->held[i])
            OX_TRY(ox_ort_check(o, o->api.BindInput(s->binding, c->past, s->held[i]), phrase, err));
        else
            OX_TRY(bind_first(s, i, err));
        OX_TRY(ox_ort_check(o,
                            s->held[i] && c->shared
                                ? o->api.BindOutput(s->binding, c->present, s->held[i])
                                : o->api.BindOutputToDevice(s->binding, c->present, s->d->held),
                            phrase, err));
    }
    return OX_OK;
}

/* Outputs come in the order in which they were bound first: logits, then the caches. */
static ox_status keep_held(ox_ort_state *s, ox_err *err)
{
    const ox_ort *o = s->d->o;
    ox_ort_value **values = NULL;
    size_t n = 0;
    OX_TRY(ox_ort_check(o, o->api.GetBoundOutputValues(s->binding, o->allocator, &values, &n),
                        "ONNX Runtime does not give the caches", err));
    const bool whole = n == s->d->caches.n + 1;
    if (whole) drop_held(s);
    for (size_t i = 0; i < n; i++) {
        if (whole && i)
            s->held[i - 1] = values[i];
        else
            o->api.ReleaseValue(values[i]);
    }
    if (values)
        OX_TRY(ox_ort_check(o, o->api.AllocatorFree(o->allocator, values), "ONNX Runtime", err));
    return whole ? OX_OK
                 : OX_FAIL(err, OX_FAILED, "ONNX Runtime gave %zu outputs; expected %zu", n,
                           s->d->caches.n + 1);
}

static ox_status bind_caches(ox_ort_state *s, size_t total, ox_err *err)
{
    if (s->d->held) return bind_held(s, err);
    OX_TRY(grow_shared(s, total, err));
    OX_TRY(bind_shared(s, err));
    return bind_turns(s, total, err);
}

/* --- numbers ---------------------------------------------------------------------------------- */

static void put_number(void *p, size_t i, ox_dtype type, int64_t v)
{
    switch ((int)type) {
    case OX_DTYPE_I32:
        ((int32_t *)p)[i] = (int32_t)v;
        break;
    case OX_DTYPE_F32:
        ((float *)p)[i] = (float)v;
        break;
    case OX_DTYPE_BOOL:
        ((uint8_t *)p)[i] = v != 0;
        break;
    default:
        ((int64_t *)p)[i] = v;
    }
}

/* Number i of a feed that is not one per row. */
static int64_t single(const ox_ort_state *s, feed_rule rule, const step *q)
{
    switch (rule) {
    case FEED_PAST:
        return (int64_t)s->n_positions;
    case FEED_TOTAL:
        return (int64_t)q->total;
    case FEED_CURRENT:
        return (int64_t)q->n;
    case FEED_KEEP:
        return q->n_wanted ? (int64_t)q->n_wanted : 1;
    case FEED_BRANCH:
        return s->n_positions != 0;
    default:
        return 1;
    }
}

static ox_status bind_feed(ox_ort_state *s, size_t i, const step *q, ox_err *err)
{
    const feed *f = &s->d->feeds.p[i];
    const bool by_row = f->rule == FEED_IDS || f->rule == FEED_POSITIONS;
    const size_t rows = by_row ? q->n : f->rule == FEED_MASK ? q->total : 1;
    ox_tensor t = {.dtype = f->port->dtype, .rank = f->port->rank};
    size_t count = 1, bytes;
    assert(rows);
    for (int32_t k = 0; k < t.rank; k++)
        t.dims[k] = f->port->dims[k].value > 0 ? f->port->dims[k].value : 1;
    if (rows > 1) t.dims[t.rank - 1] = (int64_t)rows;
    if (!ox_tensor_count(&t, &count) || !ox_dtype_bytes(t.dtype, count, &bytes))
        return OX_FAIL(err, OX_LIMIT, "%zu tokens are too many", rows);
    OX_TRY(block_reserve(&s->numbers[i], bytes, "a step", err));
    t.data = s->numbers[i].p;
    for (size_t k = 0; k < count; k++)
        put_number(t.data, k, t.dtype,
                   f->rule == FEED_IDS         ? q->ids[k % rows]
                   : f->rule == FEED_POSITIONS ? (int64_t)(s->n_positions + k % rows)
                                               : single(s, f->rule, q));
    return bind(s, f->port->name.p, &t, true, err);
}

/* --- logits ----------------------------------------------------------------------------------- */

static ox_status bind_logits(ox_ort_state *s, const step *q, ox_err *err)
{
    const ox_ort_decoder *d = s->d;
    ox_tensor t = {.dtype = d->logits_dtype, .rank = 3, .dims = {1, (int64_t)q->n, d->vocab}};
    size_t bytes;
    if (d->rows == LOGITS_UNKNOWN)
        return ox_ort_check(d->o, d->o->api.BindOutputToDevice(s->binding, d->logits, d->o->cpu),
                            "ONNX Runtime cannot bind the logits", err);
    if (d->rows == LOGITS_LAST) t.dims[1] = 1;
    if (!ox_tensor_bytes(&t, &bytes)) return OX_FAIL(err, OX_LIMIT, "the logits are too large");
    OX_TRY(block_reserve(&s->logits, bytes, "logits", err));
    t.data = s->logits.p;
    return bind(s, d->logits, &t, false, err);
}

static ox_status give_rows(ox_ort_state *s, const void *data, size_t rows, const step *q,
                           ox_err *err)
{
    const ox_ort_decoder *d = s->d;
    const size_t vocab = (size_t)d->vocab;
    if (rows < q->n_wanted)
        return OX_FAIL(err, OX_UNSUPPORTED, "the graph gave logits of %zu tokens; expected %zu",
                       rows, q->n_wanted);
    OX_TRY(block_reserve(&s->row, vocab * sizeof(float), "logits", err));
    for (size_t i = 0; i < q->n_wanted; i++) {
        const size_t at = (rows - q->n_wanted + i) * vocab;
        const float *row = s->row.p;
        const uint16_t *half = (const uint16_t *)data + at;
        if (d->logits_dtype == OX_DTYPE_F32) row = (const float *)data + at;
        for (size_t k = 0; d->logits_dtype == OX_DTYPE_F16 && k < vocab; k++)
            ((float *)s->row.p)[k] = ox_f16_to_f32(half[k]);
        for (size_t k = 0; d->logits_dtype == OX_DTYPE_BF16 && k < vocab; k++)
            ((float *)s->row.p)[k] = ox_bf16_to_f32(half[k]);
        OX_TRY(q->fn(q->user, q->total - q->n_wanted + i, row, vocab));
    }
    return OX_OK;
}

/* Logits in memory of the library: the first output that was bound. */
static ox_status give_theirs(ox_ort_state *s, const step *q, ox_err *err)
{
    const ox_ort *o = s->d->o;
    ox_ort_value **values = NULL;
    size_t n = 0, count = 0;
    ox_tensor t;
    OX_TRY(ox_ort_check(o, o->api.GetBoundOutputValues(s->binding, o->allocator, &values, &n),
                        "ONNX Runtime does not give the logits", err));
    ox_status st = n ? ox_ort_value_view(&t, o, values[0], err)
                     : OX_FAIL(err, OX_FAILED, "ONNX Runtime gave no logits");
    if (!st && (!ox_tensor_count(&t, &count) || count % (size_t)s->d->vocab ||
                t.dtype != s->d->logits_dtype))
        st = OX_FAIL(err, OX_BAD_FILE, "the logits output has an unexpected shape");
    if (!st) st = give_rows(s, t.data, count / (size_t)s->d->vocab, q, err);
    for (size_t i = 0; i < n; i++)
        o->api.ReleaseValue(values[i]);
    const ox_status freed =
        values ? ox_ort_check(o, o->api.AllocatorFree(o->allocator, values), "ONNX Runtime", err)
               : OX_OK;
    return st ? st : freed;
}

/* --- a step ----------------------------------------------------------------------------------- */

static ox_status run(ox_ort_state *s, const step *q, ox_err *err)
{
    const ox_ort *o = s->d->o;
    OX_TRY(bind_logits(s, q, err)); /* first: give_theirs counts on it */
    OX_TRY(bind_caches(s, q->total, err));
    for (size_t i = 0; i < s->d->feeds.n; i++)
        OX_TRY(bind_feed(s, i, q, err));
    OX_TRY(ox_ort_check(o, o->api.RunWithBinding(s->d->session, NULL, s->binding),
                        "ONNX Runtime failed", err));
    if (q->n_wanted && s->d->rows == LOGITS_UNKNOWN)
        OX_TRY(give_theirs(s, q, err));
    else if (q->n_wanted)
        OX_TRY(give_rows(s, s->logits.p, s->d->rows == LOGITS_LAST ? 1 : q->n, q, err));
    if (s->d->held) OX_TRY(keep_held(s, err));
    s->n_positions = q->total;
    s->turn = !s->turn;
    return OX_OK;
}

ox_status ox_ort_append(ox_ort_state *s, const int32_t *ids, size_t n, size_t n_wanted,
                        ox_ort_logits_fn *fn, void *user, ox_err *err)
{
    const size_t rows = s->d->rows == LOGITS_LAST && n_wanted > 1 ? 1 : s->d->most_rows;
    for (size_t done = 0; done < n;) {
        const size_t now = n - done < rows ? n - done : rows, left = n - done - now;
        const size_t wanted = n_wanted <= left ? 0 : n_wanted - left < now ? n_wanted - left : now;
        const step q = {.ids = ids + done,
                        .n = now,
                        .n_wanted = wanted,
                        .total = s->n_positions + now,
                        .fn = fn,
                        .user = user};
        OX_TRY(run(s, &q, err));
        done += now;
    }
    return OX_OK;
}

ox_status ox_ort_state_open(ox_ort_state **out, const ox_ort_decoder *d, ox_err *err)
{
    *out = NULL;
    ox_ort_state *s = ox_calloc(1, sizeof(*s));
    if (!s) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a session");
    s->d = d;
    s->blocks = ox_calloc(d->caches.n * 2, sizeof(*s->blocks));
    s->numbers = ox_calloc(d->feeds.n, sizeof(*s->numbers));
    s->held = ox_calloc(d->caches.n, sizeof(*s->held));
    ox_status st = s->blocks && s->numbers && s->held
                       ? OX_OK
                       : OX_FAIL(err, OX_NO_MEMORY, "no memory for a session");
    if (!st)
        st = ox_ort_check(d->o, d->o->api.CreateIoBinding(d->session, &s->binding),
                          "ONNX Runtime cannot start a session", err);
    if (st)
        ox_ort_state_close(&s);
    else
        *out = s;
    return st;
}

void ox_ort_state_close(ox_ort_state **state)
{
    ox_ort_state *s = *state;
    if (!s) return;
    if (s->binding) s->d->o->api.ReleaseIoBinding(s->binding);
    drop_held(s);
    for (size_t i = 0; s->blocks && i < s->d->caches.n * 2; i++)
        block_free(&s->blocks[i]);
    for (size_t i = 0; s->numbers && i < s->d->feeds.n; i++)
        block_free(&s->numbers[i]);
    block_free(&s->logits);
    block_free(&s->row);
    ox_free(s->held);
    ox_free(s->blocks);
    ox_free(s->numbers);
    ox_free(s);
    *state = NULL;
}

ox_status ox_ort_state_fork(ox_ort_state **out, const ox_ort_state *from, ox_err *err)
{
    ox_ort_state *s = NULL;
    OX_TRY(ox_ort_state_open(&s, from->d, err));
    *out = s;
    if (from->d->held) return OX_OK; /* runs again what from holds */
    s->turn = from->turn;
    s->n_positions = from->n_positions;
    for (size_t i = 0; i < s->d->caches.n * 2; i++) {
        const block *b = &from->blocks[i];
        if (!b->p) continue;
        const ox_status st = block_reserve(&s->blocks[i], b->bytes, "the key/value cache", err);
        if (st) {
            ox_ort_state_close(out);
            return st;
        }
        memcpy(s->blocks[i].p, b->p, b->bytes);
    }
    return OX_OK;
}

/* Keeps the first n of the past's positions, in place. */
static void cut(ox_ort_state *s, size_t i, size_t n)
{
    const cache_port *c = &s->d->caches.p[i];
    char *p = block_of(s, i, s->turn)->p;
    for (size_t o = 0; p && o < c->outer; o++)
        memmove(p + o * n * c->inner, p + o * s->n_positions * c->inner, n * c->inner);
}

void ox_ort_state_truncate(ox_ort_state *s, size_t n)
{
    if (n >= s->n_positions) return;
    if (!s->d->can_go_back) n = 0;
    if (!s->d->can_go_back) drop_held(s);
    for (size_t i = 0; i < s->d->caches.n; i++) {
        const cache_port *c = &s->d->caches.p[i];
        const block *b = block_of(s, i, s->turn);
        if (c->axis < 0 && b->p) memset(b->p, 0, b->bytes);
        if (c->axis >= 0 && !c->shared && !s->d->held) cut(s, i, n);
    }
    s->n_positions = n;
}

void ox_ort_state_make_room(ox_ort_state *s, size_t total)
{
    if (!s->d->held || total <= s->capacity) return;
    s->capacity = s->capacity * 2 > total ? s->capacity * 2 : total;
    if (s->capacity < FIRST_CAPACITY) s->capacity = FIRST_CAPACITY;
    drop_held(s);
    s->n_positions = 0;
}

size_t ox_ort_state_length(const ox_ort_state *s)
{
    return s->n_positions;
}

uint64_t ox_ort_state_bytes(const ox_ort_state *s)
{
    uint64_t total = 0;
    for (size_t i = 0; i < s->d->caches.n * 2; i++)
        total += s->blocks[i].bytes;
    return total;
}
