/* cmd_perplexity.c - negative log-likelihood per token of a text.
 *
 * Windows as llama.cpp's perplexity tool by default: the text's ids are cut into windows of 512,
 * each run alone (its first id replaced by the begin token where the tokenizer adds one), and the
 * second half of every window is scored. --context changes the window. A rest shorter than a window
 * is not scored; a text shorter than one window is one window of its own, all but its first id
 * scored. */
#include "cli/cli.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>

typedef struct score {
    const int32_t *ids; /* of the window */
    size_t n, first;    /* positions first.. predict ids[position + 1] */
    double nll;
    size_t n_scored;
} score;

static ox_status on_logits(void *user, size_t position, const float *logits, size_t vocab)
{
    score *s = user;
    if (cli_interrupted()) return OX_CANCELLED;
    if (position < s->first || position + 1 >= s->n) return OX_OK;
    double highest = -INFINITY, sum = 0;
    for (size_t i = 0; i < vocab; i++)
        if ((double)logits[i] > highest) highest = (double)logits[i];
    for (size_t i = 0; i < vocab; i++)
        sum += exp((double)logits[i] - highest);
    s->nll += highest + log(sum) - (double)logits[s->ids[position + 1]];
    s->n_scored++;
    return OX_OK;
}

static ox_status run_windows(ox_session *session, int32_t *ids, size_t n, size_t window,
                             int32_t bos, const cli_options *o, score *s, ox_err *err)
{
    const size_t n_windows = n < window ? 1 : n / window;
    for (size_t w = 0; w < n_windows; w++) {
        int32_t *part = ids + w * window;
        const size_t len = n < window ? n : window;
        const int32_t kept = part[0];
        if (bos >= 0) part[0] = bos;
        s->ids = part;
        s->n = len;
        s->first = n < window ? 0 : window / 2 - 1;
        const ox_status st = ox_session_all_logits(session, part, len, 0, on_logits, s, err);
        part[0] = kept;
        if (st) return err->status ? st : OX_FAIL(err, st, "interrupted");
        cli_progress((void *)(uintptr_t)o, "score", w + 1, n_windows);
    }
    cli_progress_end();
    return OX_OK;
}

static ox_status measure(const cli_options *o, ox_model *m, score *s, ox_err *err)
{
    ox_session *session = NULL;
    ox_buf text = {0};
    int32_t *ids = NULL, *probe = NULL;
    size_t n = 0, n_probe = 0;
    const size_t window = o->has_context ? (size_t)o->context : 512;

    ox_status st = cli_read_text(&text, o->file, err);
    ox_buf_reserve(&text, 1);
    if (!st) st = ox_model_encode(m, text.p, text.n, OX_TEXT_ADD_SPECIAL, &ids, &n, err);
    if (!st) st = ox_model_encode(m, "", 0, OX_TEXT_ADD_SPECIAL, &probe, &n_probe, err);
    if (!st && n < 2) st = OX_FAIL(err, OX_BAD_ARGUMENT, "%s holds no two tokens", o->file);
    if (!st) st = ox_session_open(&session, m, err);
    const double start = ox_clock_seconds();
    if (!st) st = run_windows(session, ids, n, window, n_probe ? probe[0] : -1, o, s, err);
    const cli_stages stages = {.n_prompt = n, .prefill = ox_clock_seconds() - start};
    if (!st) cli_verbose_answer(o, session, &stages);
    if (!st && !s->n_scored) st = OX_FAIL(err, OX_BAD_ARGUMENT, "%s: nothing to score", o->file);
    ox_session_close(&session);
    ox_release(ids);
    ox_release(probe);
    ox_buf_deinit(&text);
    return st;
}

int cmd_perplexity(const cli_options *o)
{
    ox_model *m = NULL;
    ox_err err = OX_ERR_INIT;
    score s = {0};
    ox_buf b = {0};

    if (!o->args.n || !o->file) return cli_usage("expected: oxgen perplexity MODEL --file F");
    if (o->has_context && o->context < 2) return cli_usage("--context expects 2 or more");
    ox_status st = cli_open_model(&m, o, o->args.p[0], 0, &err);
    if (!st) st = measure(o, m, &s, &err);
    const int profile_code = cli_close_model(&m, o, 0);
    const double nll = st ? 0 : s.nll / (double)s.n_scored;
    if (nll != nll)
        st = OX_FAIL(&err, OX_FAILED,
                     "the model's logits hold NaN: its weights are damaged or too large for "
                     "--numerics; try --numerics exact");
    if (st) return cli_fail(&err);
    if (profile_code) return profile_code;
    if (o->json)
        ox_buf_printf(&b, "{\"nll\":%.9g,\"ppl\":%.9g,\"n_tokens\":%zu}\n", nll, exp(nll),
                      s.n_scored);
    else
        ox_buf_printf(&b,
                      "perplexity %.4f, negative log-likelihood %.6f per token over %zu tokens\n",
                      exp(nll), nll, s.n_scored);
    const int code = cli_stdout(ox_buf_view(&b));
    ox_buf_deinit(&b);
    return code;
}
