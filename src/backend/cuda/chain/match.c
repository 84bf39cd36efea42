/* match.c - recognises the chain of phases in a plan's calls, by what reads and writes what.
 *
 *   embed -> r
 *   layer: norm(r) -> n; linear(n) -> q|k|v side by side; [norm of q's heads, of k's];
 *          rotate q, k; append k, v; attend q -> a; linear(a) + r -> r';
 *          norm(r') -> n'; gate and up(n') -> g; linear(g) + r' -> r
 *   norm(r) -> n; gather(n); linear -> logits; [scale, soft-cap]
 *
 * `quantize` calls only change the form of an operand and are looked through. Read chain.h next. */
#include "backend/cuda/chain/match.h"

typedef struct walk {
    const ox_call *calls;
    size_t n, at;
    const char *why;
} walk;

static bool same(ox_operand a, ox_operand b)
{
    return a.buffer.i == b.buffer.i && a.first == b.first && a.width == b.width;
}

static bool is_linear(const ox_call *c)
{
    return c->kind == OX_CALL_LINEAR_INT || c->kind == OX_CALL_LINEAR_EXACT ||
           c->kind == OX_CALL_LINEAR_FLOAT;
}

/* The next call that computes something; NULL at the end. */
static const ox_call *peek(walk *w)
{
    while (w->at < w->n && w->calls[w->at].kind == OX_CALL_QUANTIZE)
        w->at++;
    return w->at < w->n ? &w->calls[w->at] : NULL;
}

static const ox_call *take(walk *w, ox_call_kind kind)
{
    const ox_call *c = peek(w);
    if (!c || c->kind != kind) return NULL;
    w->at++;
    return c;
}

/* What a linear really reads: the operand behind its quantised form. */
static ox_operand source(const walk *w, const ox_call *c)
{
    for (size_t i = (size_t)(c - w->calls); i-- > 0;)
        if (w->calls[i].kind == OX_CALL_QUANTIZE && same(w->calls[i].out, c->in[0]))
            return w->calls[i].in[0];
    return c->in[0];
}

static int32_t index_of(const walk *w, const ox_call *c)
{
    return (int32_t)(c - w->calls);
}

static bool refuse(walk *w, const char *why)
{
    if (!w->why) w->why = why;
    return false;
}

static const ox_call *take_norm(walk *w, ox_operand in)
{
    const ox_call *c = peek(w);
    if (!c || c->kind != OX_CALL_NORM || !same(c->in[0], in) || c->term->group) return NULL;
    if (c->term->centre || c->term->bias) {
        refuse(w, "the chain has root-mean-square norms without a bias only");
        return NULL;
    }
    w->at++;
    return c;
}

static const ox_call *take_linear(walk *w, ox_operand in)
{
    const ox_call *c = peek(w);
    if (!c || !is_linear(c) || !same(source(w, c), in)) return NULL;
    w->at++;
    return c;
}

static bool take_queries(walk *w, ox_match *m, ox_match_layer *l, const ox_call *qkv)
{
    ox_operand q, k, v;
    const size_t start = w->at;
    const ox_call *append = NULL;
    for (size_t i = start; i < w->n && !append; i++)
        if (w->calls[i].kind == OX_CALL_APPEND) append = &w->calls[i];
    if (!append) return refuse(w, "no attention follows the first linear of a layer");
    const ox_term *t = append->term;
    q = (ox_operand){qkv->out.buffer, qkv->out.first, t->n_heads * t->head_size};
    k = (ox_operand){q.buffer, q.first + q.width, t->n_kv_heads * t->head_size};
    v = (ox_operand){q.buffer, k.first + k.width, t->n_kv_heads * t->v_head_size};
    if (q.width + k.width + v.width != qkv->out.width)
        return refuse(w, "q, k and v do not come from one matrix in this order");
    if (t->v_head_size != t->head_size) return refuse(w, "values are not as wide as keys");
    for (const ox_call *c = peek(w); c && c != append; c = peek(w)) {
        ox_operand *x = same(c->in[0], q) ? &q : same(c->in[0], k) ? &k : NULL;
        if (!x || (c->kind != OX_CALL_NORM && c->kind != OX_CALL_ROTATE))
            return refuse(w, "something but norm and rotation lies between q, k and attention");
        const bool is_q = x == &q;
        if (c->kind == OX_CALL_NORM) {
            if (c->term->group != t->head_size || c->term->centre || c->term->bias)
                return refuse(w, "q and k are normed otherwise than a head at a time");
            if ((is_q ? l->q_rotate : l->k_rotate) >= 0)
                return refuse(w, "q and k are normed after the rotation");
            *(is_q ? &l->q_norm : &l->k_norm) = index_of(w, c);
        } else {
            *(is_q ? &l->q_rotate : &l->k_rotate) = index_of(w, c);
        }
        *x = c->out;
        w->at++;
    }
    w->at++;
    const ox_call *attend = take(w, OX_CALL_ATTEND);
    if (!attend || !same(append->in[1], k) || !same(append->in[2], v) || !same(attend->in[0], q))
        return refuse(w, "attention does not read the layer's own q, k and v");
    if ((l->q_norm < 0) != (l->k_norm < 0)) return refuse(w, "only one of q and k is normed");
    if (l->q_rotate < 0 || l->k_rotate < 0) return refuse(w, "q and k are not rotated");
    if (m->n_heads && (m->n_heads != t->n_heads || m->n_kv_heads != t->n_kv_heads ||
                       m->head_size != t->head_size))
        return refuse(w, "layers have different heads");
    m->n_heads = t->n_heads;
    m->n_kv_heads = t->n_kv_heads;
    m->head_size = t->head_size;
    l->append = index_of(w, append);
    l->attend = index_of(w, attend);
    return true;
}

/* One layer behind its first norm; *r is the residual, before and after. */
static bool take_layer(walk *w, ox_match *m, ox_match_layer *l, const ox_call *norm1, ox_operand *r)
{
    const ox_call *qkv = take_linear(w, norm1->out);
    if (!qkv || qkv->pairs || qkv->add.buffer.i >= 0)
        return refuse(w, "no linear reads a layer's first norm");
    l->norm1 = index_of(w, norm1);
    l->qkv = index_of(w, qkv);
    if (!take_queries(w, m, l, qkv)) return false;
    const ox_call *o = take_linear(w, w->calls[l->attend].out);
    if (!o || o->n_weights != 1 || o->pairs || !same(o->add, *r))
        return refuse(w, "attention's output is not added to the residual by one linear");
    l->o = index_of(w, o);
    const ox_call *norm2 = take_norm(w, o->out);
    if (!norm2) return refuse(w, "no norm follows attention's residual");
    l->norm2 = index_of(w, norm2);
    const ox_call *gate_up = take_linear(w, norm2->out);
    if (!gate_up || !gate_up->pairs || gate_up->add.buffer.i >= 0)
        return refuse(w, "the second half of a layer is not a gated pair of linears");
    l->gate_up = index_of(w, gate_up);
    const ox_call *down = take_linear(w, gate_up->out);
    if (!down || down->n_weights != 1 || down->pairs || !same(down->add, o->out))
        return refuse(w, "the gated pair is not added to the residual by one linear");
    l->down = index_of(w, down);
    m->ffn = gate_up->out.width;
    *r = down->out;
    return true;
}

static bool take_head(walk *w, ox_match *m, const ox_call *norm)
{
    const ox_call *gather = take(w, OX_CALL_GATHER);
    const ox_call *head =
        gather && same(gather->in[0], norm->out) ? take_linear(w, gather->out) : NULL;
    if (!head || head->n_weights != 1) return refuse(w, "no single linear makes the logits");
    const ox_call *scale = take(w, OX_CALL_SCALE);
    if (scale && !same(scale->in[0], head->out)) return refuse(w, "logits are changed afterwards");
    if (peek(w)) return refuse(w, "calls follow the logits");
    m->norm = index_of(w, norm);
    m->head = index_of(w, head);
    m->head_scale = scale ? index_of(w, scale) : -1;
    m->vocab = head->out.width;
    return true;
}

static bool walk_all(walk *w, ox_match *m)
{
    const ox_call *embed = take(w, OX_CALL_EMBED);
    if (!embed) return refuse(w, "the first call is no embedding");
    ox_operand r = embed->out;
    m->embed = index_of(w, embed);
    m->hidden = r.width;
    for (;;) {
        const ox_call *norm = take_norm(w, r), *next = norm ? peek(w) : NULL;
        if (!norm) return refuse(w, "a layer does not begin with a norm of the residual");
        if (next && next->kind == OX_CALL_GATHER)
            return m->layers.n ? take_head(w, m, norm) : refuse(w, "no layers");
        ox_match_layer l;
        for (int32_t *p = (int32_t *)&l; p < (int32_t *)(&l + 1); p++)
            *p = -1;
        if (!take_layer(w, m, &l, norm, &r)) return false;
        if (!ox_vec_push(&m->layers, l)) {
            w->why = NULL;
            return false;
        }
    }
}

bool ox_chain_matches(ox_match *out, const ox_call *calls, size_t n, const char **why)
{
    walk w = {.calls = calls, .n = n};
    *out = (ox_match){0};
    const bool ok = walk_all(&w, out);
    *why = w.why;
    if (!ok) ox_match_free(out);
    return ok;
}

void ox_match_free(ox_match *m)
{
    ox_vec_deinit(&m->layers);
    *m = (ox_match){0};
}
