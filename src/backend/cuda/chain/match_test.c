/* What the chain takes and what it refuses, on hand-made lists of calls. */
#include "backend/cuda/chain/match.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { HIDDEN = 64, HEADS = 4, KV_HEADS = 2, HEAD = 16, FFN = 96, VOCAB = 100, MOST = 64 };

typedef struct list {
    ox_call calls[MOST];
    ox_term terms[MOST];
    size_t n;
    int32_t n_buffers;
} list;

static ox_operand fresh(list *l, int32_t width)
{
    return (ox_operand){{l->n_buffers++}, 0, width};
}

static ox_call *add(list *l, ox_call_kind kind, ox_operand in, ox_operand out)
{
    ox_call *c = &l->calls[l->n];
    *c = (ox_call){.kind = kind, .term = &l->terms[l->n], .in[0] = in, .out = out};
    c->in[1] = c->in[2] = c->add = OX_NO_OPERAND;
    c->n_weights = 1;
    l->terms[l->n++] = (ox_term){.n_heads = HEADS,
                                 .n_kv_heads = KV_HEADS,
                                 .head_size = HEAD,
                                 .v_head_size = HEAD,
                                 .scale = 1.0f};
    return c;
}

static ox_operand part(ox_operand x, int32_t first, int32_t width)
{
    return (ox_operand){x.buffer, x.first + first, width};
}

static ox_operand layer(list *l, ox_operand r, bool normed)
{
    const int32_t nq = HEADS * HEAD, nk = KV_HEADS * HEAD;
    const ox_operand n = fresh(l, HIDDEN), qkv = fresh(l, nq + 2 * nk), o = fresh(l, HIDDEN);
    ox_operand q = part(qkv, 0, nq), k = part(qkv, nq, nk);
    add(l, OX_CALL_NORM, r, n);
    add(l, OX_CALL_LINEAR_EXACT, n, qkv)->n_weights = 3;
    if (normed) {
        const ox_operand q2 = fresh(l, nq), k2 = fresh(l, nk);
        add(l, OX_CALL_NORM, q, q2);
        l->terms[l->n - 1].group = HEAD;
        add(l, OX_CALL_NORM, k, k2);
        l->terms[l->n - 1].group = HEAD;
        q = q2;
        k = k2;
    }
    add(l, OX_CALL_ROTATE, q, q);
    add(l, OX_CALL_ROTATE, k, k);
    ox_call *append = add(l, OX_CALL_APPEND, q, OX_NO_OPERAND);
    append->in[1] = k;
    append->in[2] = part(qkv, nq + nk, nk);
    const ox_operand a = fresh(l, nq);
    add(l, OX_CALL_ATTEND, q, a);
    add(l, OX_CALL_LINEAR_EXACT, a, o)->add = r;
    const ox_operand n2 = fresh(l, HIDDEN), g = fresh(l, FFN), down = fresh(l, HIDDEN);
    add(l, OX_CALL_NORM, o, n2);
    add(l, OX_CALL_LINEAR_EXACT, n2, g)->pairs = true;
    add(l, OX_CALL_LINEAR_EXACT, g, down)->add = o;
    return down;
}

static void decoder_of(list *l, int n_layers, bool normed)
{
    *l = (list){0};
    ox_operand r = fresh(l, HIDDEN);
    add(l, OX_CALL_EMBED, OX_NO_OPERAND, r);
    for (int i = 0; i < n_layers; i++)
        r = layer(l, r, normed);
    const ox_operand n = fresh(l, HIDDEN), rows = fresh(l, HIDDEN);
    add(l, OX_CALL_NORM, r, n);
    add(l, OX_CALL_GATHER, n, rows);
    add(l, OX_CALL_LINEAR_EXACT, rows, fresh(l, VOCAB));
}

static const char *verdict(list *l, ox_match *m)
{
    const char *why = NULL;
    return ox_chain_matches(m, l->calls, l->n, &why) ? NULL : why ? why : "no memory";
}

static void a_plain_decoder_is_a_chain(void **state)
{
    (void)state;
    list l;
    ox_match m;
    decoder_of(&l, 3, false);
    assert_null(verdict(&l, &m));
    assert_int_equal(m.layers.n, 3);
    assert_int_equal(m.hidden, HIDDEN);
    assert_int_equal(m.ffn, FFN);
    assert_int_equal(m.vocab, VOCAB);
    assert_int_equal(m.n_heads, HEADS);
    assert_int_equal(m.layers.p[1].q_norm, -1);
    assert_int_equal(l.calls[m.layers.p[2].down].kind, OX_CALL_LINEAR_EXACT);
    ox_match_free(&m);
}

static void norms_of_q_and_k_belong_to_it(void **state)
{
    (void)state;
    list l;
    ox_match m;
    decoder_of(&l, 2, true);
    assert_null(verdict(&l, &m));
    assert_true(m.layers.p[1].q_norm > 0 && m.layers.p[1].k_norm > 0);
    ox_match_free(&m);
}

static void other_shapes_are_refused_with_a_reason(void **state)
{
    (void)state;
    list l;
    ox_match m;
    decoder_of(&l, 2, false);
    l.terms[1].centre = true; /* layer normalisation */
    assert_non_null(strstr(verdict(&l, &m), "norm"));
    decoder_of(&l, 2, false);
    l.calls[7].add = OX_NO_OPERAND; /* no residual around attention */
    assert_non_null(strstr(verdict(&l, &m), "residual"));
    decoder_of(&l, 2, false);
    l.calls[9].pairs = false; /* no gate */
    assert_non_null(strstr(verdict(&l, &m), "gated"));
    decoder_of(&l, 2, false);
    l.calls[3].kind = OX_CALL_ACT; /* q is not rotated but changed */
    assert_non_null(strstr(verdict(&l, &m), "between"));
    decoder_of(&l, 2, false);
    add(&l, OX_CALL_ACT, l.calls[0].out, l.calls[0].out);
    assert_non_null(strstr(verdict(&l, &m), "follow"));
    decoder_of(&l, 0, false);
    assert_non_null(strstr(verdict(&l, &m), "layers"));
    l.n = 0;
    assert_non_null(strstr(verdict(&l, &m), "embedding"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_decoder_is_a_chain),
        cmocka_unit_test(norms_of_q_and_k_belong_to_it),
        cmocka_unit_test(other_shapes_are_refused_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
