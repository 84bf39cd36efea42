/* session.c - token history and cache of one conversation; decides the rows of each step. */
#include "engine/engine_internal.h"

#include <string.h>

ox_status ox_session_open(ox_session **out, ox_model *model, ox_err *err)
{
    *out = NULL;
    if (!model->plan && !model->interp && !model->ort)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "the model was opened for text only");
    ox_session *s = ox_calloc(1, sizeof(*s));
    if (!s) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a session");
    s->model = model;
    s->logits = ox_calloc((size_t)ox_model_vocab(model), sizeof(float));
    ox_status st = s->logits ? OX_OK : OX_FAIL(err, OX_NO_MEMORY, "no memory for logits");
    if (!st && model->interp) st = ox_interp_state_open(&s->interp, model->interp, err);
    if (!st && model->ort) st = ox_ort_state_open(&s->ort, model->ort, err);
    if (st) {
        ox_session_close(&s);
        return st;
    }
    if (model->kv) ox_kv_seq_open(&s->kv, model->kv);
    *out = s;
    return OX_OK;
}

void ox_session_close(ox_session **session)
{
    ox_session *s = *session;
    if (!s) return;
    ox_kv_seq_close(&s->kv);
    ox_interp_state_close(&s->interp);
    ox_ort_state_close(&s->ort);
    ox_vec_deinit(&s->ids);
    if (s->device_logits) ox_exec_drop(s->model->exec, &s->device_logits);
    ox_free(s->logits);
    ox_free(s);
    *session = NULL;
}

const ox_model *ox_session_model(const ox_session *s)
{
    return s->model;
}

static ox_status check_ids(const ox_session *s, const int32_t *ids, size_t n, ox_err *err)
{
    const int64_t vocab = ox_model_vocab(s->model);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= vocab)
            return OX_FAIL(err, OX_BAD_ARGUMENT,
                           "token id %d at index %zu is outside the vocabulary of %lld", ids[i], i,
                           (long long)vocab);
    if (s->ids.n + n > (size_t)s->model->context)
        return OX_FAIL(err, OX_LIMIT,
                       "%zu tokens do not fit the context of %lld; shorten the prompt or raise "
                       "--context (the model declares %lld)",
                       s->ids.n + n, (long long)s->model->context,
                       (long long)s->model->source->facts.context_length);
    return OX_OK;
}

static ox_status keep_logits(void *user, size_t position, const float *logits, size_t vocab)
{
    ox_session *s = user;
    (void)position;
    memcpy(s->logits, logits, vocab * sizeof(float));
    s->has_logits = true;
    s->on_device = false;
    return OX_OK;
}

static ox_status device_failed(const ox_model *m, ox_err *err)
{
    const char *complaint = m->backend ? m->backend->ops->complaint(m->backend) : NULL;
    return OX_FAIL(err, OX_FAILED, "%s", complaint ? complaint : "the device gave no logits");
}

/* Logits of a device stay there until somebody looks. */
static ox_status keep_there(ox_session *s, const ox_step *step, int32_t i, ox_err *err)
{
    OX_TRY(ox_exec_keep(s->model->exec, step, i, &s->device_logits, err));
    s->has_logits = s->on_device = true;
    return OX_OK;
}

/* One step over the planned calls: ids[0..n) at the session's end, in a sequence that will have
 * `total` tokens after the whole request; the last n_wanted rows' logits go to fn. */
static ox_status planned_step(ox_session *s, const int32_t *ids, size_t n, size_t total,
                              size_t n_wanted, ox_logits_fn *fn, void *user, ox_err *err)
{
    ox_model *m = s->model;
    int32_t pos[OX_ROWS_MAX], wanted[OX_WANTED_ROWS];
    const size_t at = s->kv.n_positions;

    OX_TRY(ox_kv_seq_reserve(&s->kv, at + n, err));
    for (size_t i = 0; i < n; i++)
        pos[i] = (int32_t)(at + i);
    for (size_t i = 0; i < n_wanted; i++)
        wanted[i] = (int32_t)(n - n_wanted + i);
    void *const *table = s->kv.table.p;
    const ox_step step = {.rows = (int32_t)n,
                          .ids = ids,
                          .pos = pos,
                          .tables = &table,
                          .total = (int32_t)total,
                          .n_wanted = (int32_t)n_wanted,
                          .wanted = wanted};
    const bool there = fn == keep_logits && ox_exec_keeps(m->exec);
    const float *logits = NULL;
    if (there)
        ox_exec_step(m->exec, &step, m->kv);
    else
        logits = ox_exec_run(m->exec, &step, m->kv);
    const char *complaint = m->backend->ops->complaint(m->backend);
    if (complaint) return OX_FAIL(err, OX_FAILED, "%s", complaint);
    s->kv.n_positions = at + n;
    if (there) return n_wanted ? keep_there(s, &step, 0, err) : OX_OK;
    for (size_t i = 0; i < n_wanted; i++)
        OX_TRY(fn(user, at + (size_t)wanted[i], logits + i * (size_t)m->plan->vocab,
                  (size_t)m->plan->vocab));
    return OX_OK;
}

/* A state that could not go back only as far as a rewind asked is made again first. */
static ox_status ort_step(ox_session *s, const int32_t *ids, size_t n, size_t n_wanted,
                          ox_logits_fn *fn, void *user, ox_err *err)
{
    ox_ort_state_make_room(s->ort, s->ids.n + n);
    const size_t has = ox_ort_state_length(s->ort);
    if (has < s->ids.n)
        OX_TRY(ox_ort_append(s->ort, s->ids.p + has, s->ids.n - has, 0, NULL, NULL, err));
    return ox_ort_append(s->ort, ids, n, n_wanted, fn, user, err);
}

/* Most rows of one step. */
static size_t most_rows(const ox_session *s)
{
    return s->model->plan ? (size_t)s->model->plan->max_rows[OX_CLASS_MANY] : OX_MANY_ROWS;
}

static ox_status step(ox_session *s, const int32_t *ids, size_t n, size_t total, size_t n_wanted,
                      ox_logits_fn *fn, void *user, ox_err *err)
{
    if (!ox_vec_reserve(&s->ids, s->ids.n + n))
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for the token history");
    if (s->ort)
        OX_TRY(ort_step(s, ids, n, n_wanted, fn, user, err));
    else if (s->model->interp)
        OX_TRY(ox_interp_append(s->model->interp, s->interp, ids, n, n_wanted, fn, user, err));
    else
        OX_TRY(planned_step(s, ids, n, total, n_wanted, fn, user, err));
    memcpy(s->ids.p + s->ids.n, ids, n * sizeof(*ids));
    s->ids.n += n;
    return OX_OK;
}

static ox_status reserve_all(ox_session *const *sessions, size_t n, const int32_t *ids, ox_err *err)
{
    for (size_t i = 0; i < n; i++) {
        ox_session *s = sessions[i];
        if (s->model != sessions[0]->model)
            return OX_FAIL(err, OX_BAD_ARGUMENT, "sessions of one step must share their model");
        OX_TRY(check_ids(s, &ids[i], 1, err));
        OX_TRY(ox_kv_seq_reserve(&s->kv, s->kv.n_positions + 1, err));
        if (!ox_vec_reserve(&s->ids, s->ids.n + 1))
            return OX_FAIL(err, OX_NO_MEMORY, "no memory for the token history");
    }
    return OX_OK;
}

ox_status ox_sessions_step(ox_session *const *sessions, const int32_t *ids, size_t n, ox_err *err)
{
    int32_t pos[OX_WANTED_ROWS], row[OX_WANTED_ROWS];
    void *const *tables[OX_WANTED_ROWS];
    int32_t total = 0;

    if (!n || n > OX_WANTED_ROWS)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "%zu sessions in a step; expected 1 to %d", n,
                       OX_WANTED_ROWS);
    ox_model *m = sessions[0]->model;
    if (m->ort || m->interp || m->switch_length) { /* tables may differ from session to session */
        for (size_t i = 0; i < n; i++)
            OX_TRY(ox_session_append(sessions[i], &ids[i], 1, 0, NULL, NULL, err));
        return OX_OK;
    }
    OX_TRY(reserve_all(sessions, n, ids, err));
    for (size_t i = 0; i < n; i++) {
        const ox_kv_seq *kv = &sessions[i]->kv;
        row[i] = (int32_t)i;
        pos[i] = (int32_t)kv->n_positions;
        tables[i] = kv->table.p;
        if (pos[i] + 1 > total) total = pos[i] + 1;
    }
    const ox_step s = {.rows = (int32_t)n,
                       .ids = ids,
                       .pos = pos,
                       .seq = row,
                       .tables = tables,
                       .total = total,
                       .n_wanted = (int32_t)n,
                       .wanted = row};
    const bool there = ox_exec_keeps(m->exec);
    const float *logits = NULL;
    if (there)
        ox_exec_step(m->exec, &s, m->kv);
    else
        logits = ox_exec_run(m->exec, &s, m->kv);
    const char *complaint = m->backend->ops->complaint(m->backend);
    if (complaint) return OX_FAIL(err, OX_FAILED, "%s", complaint);
    for (size_t i = 0; i < n; i++) {
        ox_session *one = sessions[i];
        one->kv.n_positions++;
        one->ids.p[one->ids.n++] = ids[i];
        if (there)
            OX_TRY(keep_there(one, &s, (int32_t)i, err));
        else
            OX_TRY(
                keep_logits(one, 0, logits + i * (size_t)m->plan->vocab, (size_t)m->plan->vocab));
    }
    return OX_OK;
}

static size_t largest_chunk(const ox_session *s, size_t asked, size_t most)
{
    if (s->model->interp && !asked) return SIZE_MAX; /* one call of the graph a prompt */
    if (s->ort) most = ox_ort_decoder_rows(s->model->ort);
    return asked && asked < most ? asked : most;
}

/* Rotary tables that change with the total length: keys of the other kind are made again. */
static ox_status match_tables(ox_session *s, size_t total, ox_err *err)
{
    const size_t limit = (size_t)s->model->switch_length, n = s->ids.n;
    if (!limit || s->long_keys == (total > limit)) return OX_OK;
    s->long_keys = total > limit;
    if (!n) return OX_OK;
    int32_t *history = ox_alloc(n * sizeof(*history));
    if (!history) return OX_FAIL(err, OX_NO_MEMORY, "no memory for the token history");
    memcpy(history, s->ids.p, n * sizeof(*history));
    ox_status st = ox_session_rewind(s, 0, err);
    for (size_t done = 0; !st && done < n; done += most_rows(s)) {
        const size_t rows = n - done < most_rows(s) ? n - done : most_rows(s);
        st = step(s, history + done, rows, total, 0, NULL, NULL, err);
    }
    ox_free(history);
    return st;
}

ox_status ox_session_append(ox_session *s, const int32_t *ids, size_t n, size_t chunk,
                            ox_progress_fn *progress, void *user, ox_err *err)
{
    if (!n) return OX_OK;
    OX_TRY(check_ids(s, ids, n, err));
    const size_t most = largest_chunk(s, chunk, most_rows(s)), total = s->ids.n + n;
    OX_TRY(match_tables(s, total, err));
    for (size_t done = 0; done < n;) {
        const size_t rows = n - done < most ? n - done : most;
        s->has_logits = false;
        OX_TRY(step(s, ids + done, rows, total, done + rows == n, keep_logits, s, err));
        done += rows;
        if (progress && done < n && progress(user, "prefill", done, n))
            return OX_FAIL(err, OX_CANCELLED, "interrupted after %zu of %zu prompt tokens", done,
                           n);
    }
    return OX_OK;
}

const float *ox_session_logits(const ox_session *s)
{
    ox_session *own = (ox_session *)(uintptr_t)s; /* what it holds stays the same */
    if (!s->has_logits) return NULL;
    if (s->on_device) {
        const float *there = ox_exec_kept(s->model->exec, s->device_logits);
        if (!there) return NULL;
        memcpy(own->logits, there, (size_t)ox_model_vocab(s->model) * sizeof(float));
    }
    own->on_device = false;
    return s->logits;
}

size_t ox_session_length(const ox_session *s)
{
    return s->ids.n;
}

const int32_t *ox_session_ids(const ox_session *s)
{
    return s->ids.p;
}

ox_status ox_session_rewind(ox_session *s, size_t n, ox_err *err)
{
    if (n > s->ids.n)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "cannot rewind to %zu tokens: the session holds %zu",
                       n, s->ids.n);
    if (n == s->ids.n) return OX_OK;
    s->ids.n = n;
    s->has_logits = false;
    if (s->ort)
        ox_ort_state_truncate(s->ort, n);
    else if (s->interp)
        ox_interp_state_truncate(s->interp, n);
    else
        ox_kv_seq_truncate(&s->kv, n);
    return OX_OK;
}

ox_status ox_session_fork(ox_session **out, const ox_session *s, ox_err *err)
{
    ox_status st = OX_OK;
    *out = NULL;
    if (s->interp)
        return OX_FAIL(err, OX_UNSUPPORTED, "a graph that runs operator by operator cannot fork");
    ox_session *f = NULL;
    OX_TRY(ox_session_open(&f, s->model, err));
    if (s->ort) {
        ox_ort_state_close(&f->ort);
        OX_TRY_GOTO(ox_ort_state_fork(&f->ort, s->ort, err));
    } else {
        OX_TRY_GOTO(ox_kv_seq_fork(&f->kv, &s->kv, err));
    }
    if (!ox_vec_reserve(&f->ids, s->ids.n)) {
        st = OX_FAIL(err, OX_NO_MEMORY, "no memory for the token history");
        goto fail;
    }
    if (s->ids.n) memcpy(f->ids.p, s->ids.p, s->ids.n * sizeof(*f->ids.p));
    f->ids.n = s->ids.n;
    f->has_logits = s->has_logits;
    f->long_keys = s->long_keys;
    const float *logits = ox_session_logits(s);
    if (logits) memcpy(f->logits, logits, (size_t)ox_model_vocab(s->model) * sizeof(float));
    *out = f;
    return OX_OK;
fail:
    ox_session_close(&f);
    return st;
}

ox_status ox_session_sync(ox_session *s, const int32_t *ids, size_t n, ox_progress_fn *progress,
                          void *user, size_t *n_reused, ox_err *err)
{
    size_t same = 0;
    if (!n) return OX_FAIL(err, OX_BAD_ARGUMENT, "an empty prompt has no next token");
    if (n > (size_t)s->model->context) {
        const size_t keep = s->ids.n;
        s->ids.n = 0; /* for the message: the whole prompt counts */
        const ox_status st = check_ids(s, ids, n, err);
        s->ids.n = keep;
        return st;
    }
    while (same < n && same < s->ids.n && ids[same] == s->ids.p[same])
        same++;
    if (same == n && !(same == s->ids.n && s->has_logits)) same--;
    if (n_reused) *n_reused = same;
    OX_TRY(ox_session_rewind(s, same, err));
    return ox_session_append(s, ids + same, n - same, 0, progress, user, err);
}

ox_status ox_session_all_logits(ox_session *s, const int32_t *ids, size_t n, size_t chunk,
                                ox_logits_fn *fn, void *user, ox_err *err)
{
    OX_TRY(ox_session_rewind(s, 0, err));
    OX_TRY(check_ids(s, ids, n, err));
    OX_TRY(match_tables(s, n, err));
    const size_t most = largest_chunk(s, chunk, OX_WANTED_ROWS);
    for (size_t done = 0; done < n;) {
        const size_t rows = n - done < most ? n - done : most;
        OX_TRY(step(s, ids + done, rows, n, rows, fn, user, err));
        done += rows;
    }
    return OX_OK;
}

uint64_t ox_session_kv_bytes(const ox_session *s)
{
    if (s->ort) return ox_ort_state_bytes(s->ort);
    if (s->interp) return ox_interp_state_bytes(s->interp);
    return (uint64_t)s->kv.pages.n * ox_kv_pool_page_bytes(s->model->kv);
}

ox_status ox_session_logprobs(const ox_session *s, int32_t id, size_t k, float *logprob,
                              int32_t *ids, float *values, float *margin, ox_err *err)
{
    if (!s->has_logits) return OX_FAIL(err, OX_BAD_ARGUMENT, "the session holds no logits");
    const float *logits = ox_session_logits(s);
    if (!logits) return device_failed(s->model, err);
    return ox_logprobs(logits, (size_t)ox_model_vocab(s->model), id, k, logprob, ids, values,
                       margin, err);
}
