/* same_bits.c - the logits of a session, bit for bit, whoever shares the step and however its cache
 * came to be. Built and run by test_library.py against the installed library.  usage: same_bits
 * MODEL NUMERICS KV
 *
 * The oracle is a session that got its tokens one prompt at a time and alone. */
#include <oxgen/oxgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 5, PROMPT = 70, NEW = 6 };

static int passed, failed;

static void check(const char *name, int ok)
{
    *(ok ? &passed : &failed) += 1;
    printf("%s %s\n", ok ? "ok  " : "FAIL", name);
}

static void must(ox_status st, const ox_err *err)
{
    if (!st) return;
    printf("FAIL %s\n", err->msg);
    exit(1);
}

static int32_t token(int session, int i)
{
    return 100 + (i * 7919 + session * 104729 + 13) % 40000;
}

static ox_session *prompt(ox_model *m, int session, int n, ox_err *err)
{
    ox_session *s = NULL;
    int32_t ids[PROMPT + NEW];
    for (int i = 0; i < n; i++)
        ids[i] = token(session, i);
    must(ox_session_open(&s, m, err), err);
    must(ox_session_append(s, ids, (size_t)n, 0, NULL, NULL, err), err);
    return s;
}

static int same(const ox_session *a, const ox_session *b, size_t vocab)
{
    const float *x = ox_session_logits(a), *y = ox_session_logits(b);
    return x && y && !memcmp(x, y, vocab * sizeof(float));
}

int main(int argc, char **argv)
{
    ox_err err = OX_ERR_INIT;
    ox_model *m = NULL;
    ox_session *alone[N], *together[N], *other = NULL;
    ox_model_options o;
    ox_model_options_init(&o);
    if (argc != 4) return 2;
    o.numerics = argv[2];
    o.kv = argv[3];
    must(ox_model_open(&m, argv[1], &o, &err), &err);
    const size_t vocab = (size_t)ox_model_vocab(m);

    for (int i = 0; i < N; i++) { /* prompts of different lengths, around a page of the cache */
        alone[i] = prompt(m, i, PROMPT - 3 * i, &err);
        together[i] = prompt(m, i, PROMPT - 3 * i, &err);
    }
    check("prompts differ from each other", !same(alone[0], alone[1], vocab));
    int ok = 1;
    for (int k = 0; k < NEW; k++) {
        int32_t ids[N];
        for (int i = 0; i < N; i++) {
            ids[i] = token(i, PROMPT - 3 * i + k);
            must(ox_session_append(alone[i], &ids[i], 1, 0, NULL, NULL, &err), &err);
        }
        must(ox_sessions_step(together, ids, N, &err), &err);
        for (int i = 0; i < N; i++)
            ok &= same(alone[i], together[i], vocab);
    }
    check("sessions that share steps", ok);

    const int32_t next = token(0, PROMPT + NEW), wrong = next + 1;
    must(ox_session_fork(&other, alone[0], &err), &err);
    must(ox_session_append(other, &wrong, 1, 0, NULL, NULL, &err), &err);
    must(ox_session_append(alone[0], &next, 1, 0, NULL, NULL, &err), &err);
    must(ox_session_append(together[0], &next, 1, 0, NULL, NULL, &err), &err);
    check("a fork does not change its origin", same(alone[0], together[0], vocab));
    check("another token gives other logits", !same(alone[0], other, vocab));
    must(ox_session_rewind(other, PROMPT + NEW, &err), &err);
    must(ox_session_append(other, &next, 1, 0, NULL, NULL, &err), &err);
    check("a fork that was rewound", same(alone[0], other, vocab));

    ox_session_close(&other);
    other = prompt(m, 0, PROMPT + NEW, &err);
    must(ox_session_append(other, &next, 1, 0, NULL, NULL, &err), &err);
    check("one prompt in place of single steps", same(alone[0], other, vocab));
    must(ox_session_rewind(other, 10, &err), &err);
    for (int i = 10; i < PROMPT + NEW + 1; i++) {
        const int32_t id = token(0, i);
        must(ox_session_append(other, &id, 1, 0, NULL, NULL, &err), &err);
    }
    check("single steps in place of a prompt", same(alone[0], other, vocab));

    ox_session_close(&other);
    for (int i = 0; i < N; i++) {
        ox_session_close(&alone[i]);
        ox_session_close(&together[i]);
    }
    ox_model_close(&m);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
