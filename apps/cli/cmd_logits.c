/* cmd_logits.c - logits of every position of a list of ids, as .npy or as text. */
#include "cli/cli.h"

#include "base/clock.h"
#include "base/fs.h"

#include <stdio.h>
#include <string.h>

typedef struct sink {
    ox_buf rows; /* float32 [n, vocab] */
    size_t vocab;
} sink;

static ox_status on_logits(void *user, size_t position, const float *logits, size_t vocab)
{
    sink *s = user;
    (void)position;
    s->vocab = vocab;
    ox_buf_put(&s->rows, logits, vocab * sizeof(float));
    return s->rows.failed ? OX_NO_MEMORY : cli_interrupted() ? OX_CANCELLED : OX_OK;
}

/* NumPy format 1.0: magic, version, header length, a Python dict padded to 64 bytes, raw data. */
static ox_status write_npy(const char *path, const sink *s, size_t n, ox_err *err)
{
    char dict[256];
    ox_buf b = {0};
    int len =
        snprintf(dict, sizeof(dict),
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu), }", n, s->vocab);
    const size_t padded = ((size_t)len + 10 + 1 + 63) / 64 * 64 - 10;
    ox_buf_put(&b, "\x93NUMPY\x01\x00", 8);
    ox_buf_put_c(&b, (char)(padded & 0xff));
    ox_buf_put_c(&b, (char)(padded >> 8));
    ox_buf_put(&b, dict, (size_t)len);
    for (size_t i = (size_t)len; i + 1 < padded; i++)
        ox_buf_put_c(&b, ' ');
    ox_buf_put_c(&b, '\n');
    ox_buf_put(&b, s->rows.p, s->rows.n);
    const ox_status st = b.failed ? OX_FAIL(err, OX_NO_MEMORY, "no memory for the logits")
                                  : ox_file_write_atomic(path, ox_buf_view(&b), err);
    ox_buf_deinit(&b);
    return st;
}

static int print_best(const sink *s, const int32_t *ids, size_t n)
{
    ox_buf b = {0};
    for (size_t i = 0; i < n; i++) {
        const float *row = (const float *)(const void *)s->rows.p + i * s->vocab;
        size_t best = 0;
        for (size_t k = 1; k < s->vocab; k++)
            if (row[k] > row[best]) best = k;
        ox_buf_printf(&b, "%zu id %d best %zu logit %.9g\n", i, ids[i], best, (double)row[best]);
    }
    const int code = cli_stdout(ox_buf_view(&b));
    ox_buf_deinit(&b);
    return code;
}

int cmd_logits(const cli_options *o)
{
    ox_model *m = NULL;
    ox_session *session = NULL;
    ox_err err = OX_ERR_INIT;
    sink s = {0};
    int32_t *ids = NULL;
    size_t n = 0;
    int code = 0;

    if (!o->args.n || !o->ids)
        return cli_usage("expected: oxgen logits MODEL --ids 1,2,3 [-o F.npy]");
    if (o->has_chunk && o->chunk < 1) return cli_usage("--chunk expects 1 or more");
    ox_status st = cli_parse_ids(&ids, &n, o->ids, &err);
    if (!st) st = cli_open_model(&m, o, o->args.p[0], 0, &err);
    if (!st) st = ox_session_open(&session, m, &err);
    const double start = ox_clock_seconds();
    if (!st) st = ox_session_all_logits(session, ids, n, (size_t)o->chunk, on_logits, &s, &err);
    const cli_stages stages = {.n_prompt = n, .prefill = ox_clock_seconds() - start};
    if (!st) cli_verbose_answer(o, session, &stages);
    if (st == OX_CANCELLED && !err.status) OX_FAIL(&err, OX_CANCELLED, "interrupted");
    if (st == OX_NO_MEMORY && !err.status) OX_FAIL(&err, OX_NO_MEMORY, "no memory for the logits");
    if (!st && o->output) st = write_npy(o->output, &s, n, &err);
    if (st)
        code = cli_fail(&err);
    else if (!o->output)
        code = print_best(&s, ids, n);
    ox_buf_deinit(&s.rows);
    ox_free(ids);
    ox_session_close(&session);
    return cli_close_model(&m, o, code);
}
