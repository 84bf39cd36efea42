/* generate_test.c - generation through a device's own loop gives what going token by token gives:
 * the ids, the history, the logits behind them, for every way to end. The device is the CPU backend
 * with a loop put on it, which computes some tokens too many, as devices do. */
#include "engine/engine_internal.h"
#include "tests/tiny_gguf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { TOO_MANY = 3, MOST = 80 };

static char path[64];
static ox_model *m;
static ox_backend_ops looping;
static const ox_backend_ops *plain;
static int n_loops;

static int32_t next_of(ox_backend *b, const ox_decode_plan *p, const ox_decode_request *q,
                       const ox_kv_pool *kv, int32_t id, int32_t pos)
{
    const int32_t zero = 0;
    const ox_step step = {.rows = 1,
                          .ids = &id,
                          .pos = &pos,
                          .tables = &q->table,
                          .total = pos + 1,
                          .n_wanted = 1,
                          .wanted = &zero};
    b->ops->run(b, p->calls, p->n_calls, p->buffers, p->offsets, p->arena, &step, kv);
    const float *logits = (const float *)(void *)(p->arena + p->offsets[p->logits.buffer.i]);
    int32_t best = 0;
    for (int32_t i = 1; i < p->vocab; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

static ox_status loop(ox_backend *b, const ox_decode_plan *p, const ox_decode_request *q,
                      const ox_kv_pool *kv, ox_decode_token_fn *token, void *user, int64_t *n_done,
                      ox_err *err)
{
    int32_t id = q->last, pos = q->position;
    (void)err;
    n_loops++;
    *n_done = 0;
    for (bool go = true; go && *n_done < q->n_tokens;) {
        id = next_of(b, p, q, kv, id, pos++);
        ++*n_done;
        go = token(user, id);
        for (size_t i = 0; i < q->n_stops; i++)
            go = go && q->stops[i] != id;
    }
    for (int i = 0; i < TOO_MANY && pos < q->position + q->n_tokens; i++)
        id = next_of(b, p, q, kv, id, pos++);
    return OX_OK;
}

static int setup(void **state)
{
    const tiny_gguf t = {.arch = "llama", .n_layers = 2, .format = OX_FORMAT_Q4_0};
    ox_model_options o;
    ox_err err = OX_ERR_INIT;
    (void)state;
    snprintf(path, sizeof path, "/tmp/oxgen_generate_%ld.gguf", (long)getpid());
    assert_true(tiny_gguf_write(&t, path));
    ox_model_options_init(&o);
    o.device = "cpu";
    o.n_threads = 1;
    if (ox_model_open(&m, path, &o, &err)) fail_msg("%s", err.msg);
    plain = m->backend->ops;
    looping = *plain;
    looping.decode = loop;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    m->backend->ops = plain;
    ox_model_close(&m);
    return unlink(path);
}

typedef struct result {
    int32_t ids[MOST], history[MOST];
    size_t n, n_history, cancel_at;
    ox_finish why;
    float logits[TINY_VOCAB];
    bool has_logits;
} result;

static int on_text(void *user, const char *text, size_t n, int32_t id)
{
    result *r = user;
    (void)text, (void)n;
    if (id >= 0 && r->n < MOST) r->ids[r->n++] = id;
    return r->cancel_at && r->n == r->cancel_at;
}

static void run(result *r, bool device, int64_t max_new, size_t cancel_at, int32_t ignore_eos)
{
    static const int32_t prompt[] = {5, 9, 14};
    ox_generate_options o;
    ox_session *s = NULL;
    ox_err err = OX_ERR_INIT;
    *r = (result){.cancel_at = cancel_at};
    m->backend->ops = device ? &looping : plain;
    assert_int_equal(ox_session_open(&s, m, &err), OX_OK);
    assert_int_equal(ox_session_append(s, prompt, 3, 0, NULL, NULL, &err), OX_OK);
    ox_generate_options_init(&o);
    o.max_new = max_new;
    o.ignore_eos = ignore_eos;
    o.on_text = on_text;
    o.user = r;
    if (ox_generate(s, &o, &r->why, &err)) fail_msg("%s", err.msg);
    r->n_history = ox_session_length(s);
    assert_true(r->n_history <= MOST);
    memcpy(r->history, ox_session_ids(s), r->n_history * sizeof(int32_t));
    assert_int_equal(s->kv.n_positions, r->n_history);
    r->has_logits = ox_session_logits(s) != NULL;
    if (r->has_logits) memcpy(r->logits, ox_session_logits(s), sizeof(r->logits));
    ox_session_close(&s);
    m->backend->ops = plain;
}

static void same(int64_t max_new, size_t cancel_at, int32_t ignore_eos)
{
    static result a, b;
    run(&a, false, max_new, cancel_at, ignore_eos);
    run(&b, true, max_new, cancel_at, ignore_eos);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.ids, b.ids, a.n * sizeof(int32_t));
    assert_int_equal(a.why, b.why);
    assert_int_equal(a.n_history, b.n_history);
    assert_memory_equal(a.history, b.history, a.n_history * sizeof(int32_t));
    if (b.has_logits) assert_memory_equal(a.logits, b.logits, sizeof(a.logits));
    if (a.why == OX_FINISH_LENGTH) assert_true(b.has_logits == a.has_logits);
}

static void test_lengths(void **state)
{
    static const int64_t lengths[] = {0, 1, 2, 3, 17, 60, 61, 62, 300}; /* 61 fill the context */
    (void)state;
    n_loops = 0;
    for (size_t i = 0; i < OX_COUNT(lengths); i++)
        same(lengths[i], 0, 1);
    assert_true(n_loops > 0);
}

static void test_cancel(void **state)
{
    (void)state;
    for (size_t at = 1; at < 6; at++)
        same(40, at, 1);
}

static void test_end_of_text(void **state)
{
    static result a;
    (void)state;
    run(&a, false, 40, 0, 1);
    const int32_t eos = m->source->facts.eos[0];
    for (size_t i = 0; i < 8; i++) { /* each token of the stream as the end of text */
        m->source->facts.eos[0] = a.ids[i];
        same(40, 0, 0);
    }
    m->source->facts.eos[0] = eos;
}

static void test_keep_logits(void **state)
{
    (void)state;
    ox_generate_options o;
    ox_session *s = NULL;
    ox_err err = OX_ERR_INIT;
    result r = {0};
    m->backend->ops = &looping;
    n_loops = 0;
    assert_int_equal(ox_session_open(&s, m, &err), OX_OK);
    assert_int_equal(ox_session_append(s, (const int32_t[]){7}, 1, 0, NULL, NULL, &err), OX_OK);
    ox_generate_options_init(&o);
    o.max_new = 5;
    o.keep_logits = 1;
    o.on_text = on_text;
    o.user = &r;
    assert_int_equal(ox_generate(s, &o, NULL, &err), OX_OK);
    assert_int_equal(n_loops, 0);
    ox_session_close(&s);
    m->backend->ops = plain;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_end_of_text),
        cmocka_unit_test(test_keep_logits),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
