/* offsets.c - where every buffer lies in the step's arena.
 *
 * Count pass: bytes of each buffer for the class's most rows. Place pass: buffers in order of first
 * use, each at the lowest offset where it overlaps no buffer that is alive at the same time.
 * Lifetimes count in barriers, not calls: workers between two barriers may be at different calls.
 * Offsets are multiples of 64. The logits stay alive to the end. */
#include "plan/plan_internal.h"

static bool lives_together(const ox_buffer *a, const ox_buffer *b)
{
    return a->first_call <= b->last_call && b->first_call <= a->last_call;
}

static size_t lowest_gap(const ox_plan *p, const size_t *offset, const size_t *bytes, size_t i)
{
    size_t at = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t j = 0; j < i; j++) {
            if (!bytes[j] || !lives_together(&p->buffers.p[i], &p->buffers.p[j])) continue;
            if (at < offset[j] + bytes[j] && offset[j] < at + bytes[i]) {
                at = offset[j] + bytes[j];
                moved = true;
            }
        }
    }
    return at;
}

static ox_status place_class(ox_plan *p, int k, int32_t rows, ox_err *err)
{
    const size_t n = p->buffers.n;
    size_t *bytes = ox_calloc(n, sizeof(*bytes));
    p->offsets[k] = ox_arena_take_n(&p->arena, n, sizeof(size_t));
    if (!bytes || !p->offsets[k]) {
        ox_free(bytes);
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for a plan");
    }
    for (size_t i = 0; i < n; i++) {
        const ox_buffer *b = &p->buffers.p[i];
        if (b->first_call < 0) continue;
        const int32_t r = b->wanted && rows > OX_WANTED_ROWS ? OX_WANTED_ROWS : rows;
        bytes[i] = (p->backend->ops->buffer_bytes(p->backend, b, (size_t)r) + 63) / 64 * 64;
        p->offsets[k][i] = lowest_gap(p, p->offsets[k], bytes, i);
        const size_t end = p->offsets[k][i] + bytes[i];
        if (end > p->arena_bytes[k]) p->arena_bytes[k] = end;
    }
    ox_free(bytes);
    return OX_OK;
}

/* Calls to barrier intervals. */
static ox_status count_lifetimes(ox_plan *p, ox_err *err)
{
    int32_t *interval = ox_calloc(p->calls.n + 1, sizeof(*interval));
    if (!interval) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a plan");
    for (size_t i = 1; i < p->calls.n; i++)
        interval[i] = interval[i - 1] + p->calls.p[i].barrier;
    for (size_t i = 0; i < p->buffers.n; i++) {
        ox_buffer *b = &p->buffers.p[i];
        if (b->first_call < 0) continue;
        b->first_call = interval[b->first_call];
        b->last_call = interval[b->last_call];
    }
    ox_free(interval);
    return OX_OK;
}

ox_status ox_plan_place(ox_plan *p, ox_err *err)
{
    const int32_t many = p->backend->ops->many_rows ? p->backend->ops->many_rows : OX_MANY_ROWS;
    const int32_t rows[OX_CLASS_COUNT] = {1, OX_FEW_ROWS, many};
    OX_TRY(count_lifetimes(p, err));
    p->buffers.p[p->logits.buffer.i].last_call = (int32_t)p->calls.n;
    for (int k = 0; k < OX_CLASS_COUNT; k++) {
        p->max_rows[k] = rows[k];
        OX_TRY(place_class(p, k, rows[k], err));
    }
    return OX_OK;
}
