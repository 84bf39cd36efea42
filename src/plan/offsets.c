/* offsets.c - where every buffer lies in the step's arena.
 *
 * Count pass: bytes of each buffer for the class's most rows. Place pass: buffers in order of first
 * use, each at the lowest offset where it overlaps no buffer that is alive at the same time.
 * Lifetimes count in barriers, not calls: workers between two barriers may be at different calls.
 * Offsets are multiples of 64. The logits stay alive to the end. */
#include "plan/plan_internal.h"

typedef struct span { /* of a buffer: first and last interval between barriers */
    int32_t first, last;
} span;

static bool lives_together(span a, span b)
{
    return a.first <= b.last && b.first <= a.last;
}

static size_t lowest_gap(const size_t *offset, const size_t *bytes, const span *spans, size_t i)
{
    size_t at = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t j = 0; j < i; j++) {
            if (!bytes[j] || !lives_together(spans[i], spans[j])) continue;
            if (at < offset[j] + bytes[j] && offset[j] < at + bytes[i]) {
                at = offset[j] + bytes[j];
                moved = true;
            }
        }
    }
    return at;
}

/* Calls to barrier intervals, of steps of one row or of several. */
static ox_status count_spans(const ox_plan *p, bool one, span *spans, ox_err *err)
{
    int32_t *interval = ox_calloc(p->calls.n + 1, sizeof(*interval));
    if (!interval) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a plan");
    for (size_t i = 1; i < p->calls.n; i++)
        interval[i] = interval[i - 1] + (one ? p->calls.p[i].barrier_one : p->calls.p[i].barrier);
    for (size_t i = 0; i < p->buffers.n; i++) {
        const ox_buffer *b = &p->buffers.p[i];
        if (b->first_call < 0) continue;
        spans[i] = (span){interval[b->first_call], interval[b->last_call]};
    }
    spans[p->logits.buffer.i].last = INT32_MAX;
    ox_free(interval);
    return OX_OK;
}

static ox_status place_class(ox_plan *p, int k, int32_t rows, size_t *bytes, span *spans,
                             ox_err *err)
{
    const size_t n = p->buffers.n;
    p->offsets[k] = ox_arena_take_n(&p->arena, n, sizeof(size_t));
    if (!p->offsets[k]) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a plan");
    OX_TRY(count_spans(p, k == OX_CLASS_ONE, spans, err));
    for (size_t i = 0; i < n; i++) {
        const ox_buffer *b = &p->buffers.p[i];
        bytes[i] = 0;
        if (b->first_call < 0) continue;
        const int32_t r = b->wanted && rows > OX_WANTED_ROWS ? OX_WANTED_ROWS : rows;
        bytes[i] = (p->backend->ops->buffer_bytes(p->backend, b, (size_t)r) + 63) / 64 * 64;
        p->offsets[k][i] = lowest_gap(p->offsets[k], bytes, spans, i);
        const size_t end = p->offsets[k][i] + bytes[i];
        if (end > p->arena_bytes[k]) p->arena_bytes[k] = end;
    }
    return OX_OK;
}

ox_status ox_plan_place(ox_plan *p, ox_err *err)
{
    const int32_t many = p->backend->ops->many_rows ? p->backend->ops->many_rows : OX_MANY_ROWS;
    const int32_t rows[OX_CLASS_COUNT] = {1, OX_FEW_ROWS, many};
    size_t *bytes = ox_calloc(p->buffers.n, sizeof(*bytes));
    span *spans = ox_calloc(p->buffers.n, sizeof(*spans));
    ox_status st = OX_OK;
    if (!bytes || !spans) st = OX_FAIL(err, OX_NO_MEMORY, "no memory for a plan");
    for (int k = 0; k < OX_CLASS_COUNT && !st; k++) {
        p->max_rows[k] = rows[k];
        st = place_class(p, k, rows[k], bytes, spans, err);
    }
    ox_free(bytes);
    ox_free(spans);
    return st;
}
