/* Several conversations at once: their next tokens are computed in one step, so that weights are
 * read once for all of them.  usage: batch MODEL QUESTION... */
#include <oxgen/oxgen.h>
#include <stdio.h>

enum { MOST = 8, NEW_TOKENS = 48 };

static int best(const float *logits, int64_t n)
{
    int id = 0;
    for (int64_t i = 1; i < n; i++)
        if (logits[i] > logits[id]) id = (int)i;
    return id;
}

/* A session that holds the question. Quotes and backslashes are the caller's problem here. */
static ox_status ask(ox_session **s, ox_model *m, const char *question, ox_err *err)
{
    char messages[1024];
    int32_t *ids = NULL;
    size_t n = 0;
    snprintf(messages, sizeof(messages), "[{\"role\":\"user\",\"content\":\"%s\"}]", question);
    ox_status st = ox_model_chat_ids(m, messages, NULL, NULL, 1, &ids, &n, err);
    if (!st) st = ox_session_open(s, m, err);
    if (!st) st = ox_session_append(*s, ids, n, 0, NULL, NULL, err);
    ox_release(ids);
    return st;
}

/* One token for every conversation that goes on. Returns how many still do. */
static ox_status step(ox_model *m, ox_session **live, size_t *n_live, ox_err *err)
{
    int32_t ids[MOST];
    size_t n = 0;
    for (size_t i = 0; i < *n_live; i++) {
        ids[n] = best(ox_session_logits(live[i]), ox_model_vocab(m));
        if (!ox_model_is_eos(m, ids[n])) live[n++] = live[i];
    }
    *n_live = n;
    return n ? ox_sessions_step(live, ids, n, err) : OX_OK;
}

static ox_status answer_all(ox_model *m, ox_session **s, char **questions, size_t n, ox_err *err)
{
    ox_session *live[MOST];
    size_t n_live = n, from[MOST];
    ox_status st = OX_OK;
    for (size_t i = 0; i < n && !st; i++) {
        st = ask(&s[i], m, questions[i], err);
        from[i] = s[i] ? ox_session_length(s[i]) : 0;
        live[i] = s[i];
    }
    for (int k = 0; k < NEW_TOKENS && n_live && !st; k++)
        st = step(m, live, &n_live, err);
    for (size_t i = 0; i < n && !st; i++) {
        char *text = NULL;
        const size_t n_new = ox_session_length(s[i]) - from[i];
        st = ox_model_decode(m, ox_session_ids(s[i]) + from[i], n_new, OX_TEXT_SKIP_SPECIAL, &text,
                             NULL, err);
        if (!st) printf("%s\n", text);
        ox_release(text);
    }
    return st;
}

int main(int argc, char **argv)
{
    ox_err err = OX_ERR_INIT;
    ox_model *m = NULL;
    ox_session *s[MOST] = {NULL};
    if (argc < 3 || argc - 2 > MOST) {
        fprintf(stderr, "usage: batch MODEL QUESTION... (at most %d)\n", MOST);
        return 2;
    }
    ox_status st = ox_model_open(&m, argv[1], NULL, &err);
    if (!st) st = answer_all(m, s, argv + 2, (size_t)(argc - 2), &err);
    if (st) fprintf(stderr, "%s\n", err.msg);
    for (int i = 0; i < MOST; i++)
        ox_session_close(&s[i]);
    ox_model_close(&m);
    return st != OX_OK;
}
