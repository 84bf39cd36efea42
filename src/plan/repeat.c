/* repeat.c - steps of one row: a call that is cheap beside a meeting of the team is done by every
 * worker for itself, into a copy of its own.
 *
 * A buffer is repeated when all its writers are such calls. Its readers need no barrier: each
 * worker reads what it wrote. A call that is not repeated and works on rows is worker 0's. What is
 * left decides where the team meets: before a call that reads what others wrote since the last
 * meeting, or writes what others used. */
#include "plan/plan_internal.h"

static bool can_repeat(const ox_call *c)
{
    static const bool cheap[OX_CALL_COUNT] = {
        [OX_CALL_EMBED] = true, [OX_CALL_NORM] = true,   [OX_CALL_QUANTIZE] = true,
        [OX_CALL_GLU] = true,   [OX_CALL_ACT] = true,    [OX_CALL_ADD] = true,
        [OX_CALL_SCALE] = true, [OX_CALL_GATHER] = true,
    };
    return cheap[c->kind];
}

static bool is_of_worker_0(const ox_call *c)
{
    return !c->repeat && (can_repeat(c) || c->kind == OX_CALL_ROTATE || c->kind == OX_CALL_APPEND);
}

static void mark_repeated(ox_plan *p)
{
    for (size_t i = 0; i < p->buffers.n; i++)
        p->buffers.p[i].repeated = (int32_t)i != p->logits.buffer.i;
    for (size_t i = 0; i < p->calls.n; i++) {
        const ox_call *c = &p->calls.p[i];
        if (c->out.buffer.i >= 0 && !can_repeat(c)) p->buffers.p[c->out.buffer.i].repeated = false;
    }
    for (size_t i = 0; i < p->calls.n; i++) {
        ox_call *c = &p->calls.p[i];
        c->repeat = c->out.buffer.i >= 0 && p->buffers.p[c->out.buffer.i].repeated;
    }
}

/* Use of a shared buffer (or, last, of the cache) since the last meeting. */
enum { READ_BY_0 = 1, READ_BY_ALL = 2, WRITTEN_BY_0 = 4, WRITTEN_BY_ALL = 8 };

static unsigned *use_of(const ox_plan *p, unsigned *uses, ox_operand o)
{
    return o.buffer.i < 0 || p->buffers.p[o.buffer.i].repeated ? NULL : &uses[o.buffer.i];
}

typedef struct touched { /* what a call reads and writes */
    unsigned *read[OX_CALL_INPUTS + 2], *written[2];
} touched;

static touched touches(const ox_plan *p, unsigned *uses, const ox_call *c)
{
    touched t = {{0}, {0}};
    unsigned *cache = &uses[p->buffers.n];
    for (int i = 0; i < OX_CALL_INPUTS; i++)
        t.read[i] = use_of(p, uses, c->in[i]);
    t.read[OX_CALL_INPUTS] = use_of(p, uses, c->add);
    t.read[OX_CALL_INPUTS + 1] = c->kind == OX_CALL_ATTEND ? cache : NULL;
    t.written[0] = use_of(p, uses, c->out);
    t.written[1] = c->kind == OX_CALL_APPEND ? cache : NULL;
    return t;
}

static bool must_meet(const touched *t, bool of_0)
{
    const unsigned writes = of_0 ? WRITTEN_BY_ALL : WRITTEN_BY_0 | WRITTEN_BY_ALL;
    const unsigned any = of_0 ? READ_BY_ALL | WRITTEN_BY_ALL : ~0u;
    for (size_t i = 0; i < OX_COUNT(t->read); i++)
        if (t->read[i] && *t->read[i] & writes) return true;
    for (size_t i = 0; i < OX_COUNT(t->written); i++)
        if (t->written[i] && *t->written[i] & any) return true;
    return false;
}

ox_status ox_plan_repeat(ox_plan *p, ox_err *err)
{
    mark_repeated(p);
    unsigned *uses = ox_calloc(p->buffers.n + 1, sizeof(*uses));
    if (!uses) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a plan");
    for (size_t i = 0; i < p->calls.n; i++) {
        ox_call *c = &p->calls.p[i];
        const bool of_0 = is_of_worker_0(c);
        const touched t = touches(p, uses, c);
        c->barrier_one = i && must_meet(&t, of_0);
        for (size_t k = 0; c->barrier_one && k <= p->buffers.n; k++)
            uses[k] = 0;
        for (size_t k = 0; k < OX_COUNT(t.read); k++)
            if (t.read[k]) *t.read[k] |= of_0 ? READ_BY_0 : READ_BY_ALL;
        for (size_t k = 0; k < OX_COUNT(t.written); k++)
            if (t.written[k]) *t.written[k] |= of_0 ? WRITTEN_BY_0 : WRITTEN_BY_ALL;
    }
    ox_free(uses);
    return OX_OK;
}
