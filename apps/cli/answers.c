/* answers.c - several answers to one prompt: the best of a beam search, or draws with seeds that
 * follow each other, each from a fork of the session that holds the prompt. */
#include "cli/cli.h"

#include <string.h>

int cli_wants_several(const cli_options *o, const ox_model *m, const ox_sampler_options *so)
{
    ox_beam_options b;
    ox_model_beam_options(m, &b);
    if (o->has_num_beams || o->has_num_return) return o->num_beams > 1 || o->num_return > 1;
    return !o->greedy && so->temperature == 0.0f && b.n_beams > 1;
}

void cli_answers_free(cli_answers *a)
{
    for (size_t i = 0; i < a->n; i++) {
        ox_vec_deinit(&a->p[i].ids);
        ox_buf_deinit(&a->p[i].text);
    }
    ox_vec_deinit(a);
}

static ox_status beam_options(ox_beam_options *b, const cli_options *o, const ox_model *m,
                              const ox_sampler_options *so, ox_err *err)
{
    ox_model_beam_options(m, b);
    if (o->has_num_beams) {
        b->n_beams = o->num_beams > 32 || o->num_beams < 1 ? 0 : (int32_t)o->num_beams;
        if (b->n_return > b->n_beams) b->n_return = 1;
    }
    if (b->n_beams < 1)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "--num-beams expects 1 to 32, found %lld",
                       o->num_beams);
    if (o->has_num_return) {
        if (o->num_return < 1 || o->num_return > b->n_beams)
            return OX_FAIL(err, OX_BAD_ARGUMENT,
                           "--num-return-sequences %lld: expected 1 to the number of beams, %d, or "
                           "a --temperature above 0 to draw",
                           o->num_return, b->n_beams);
        b->n_return = (int32_t)o->num_return;
    }
    if (o->has_length_penalty) {
        if (!(o->length_penalty >= -100 && o->length_penalty <= 100))
            return OX_FAIL(err, OX_BAD_ARGUMENT, "--length-penalty expects -100 to 100, found %g",
                           o->length_penalty);
        b->length_penalty = (float)o->length_penalty;
    }
    if (o->early_stopping) {
        static const char *const names[] = {"no", "yes", "never"};
        int k = 0;
        while (k < 3 && strcmp(o->early_stopping, names[k]))
            k++;
        if (k == 3)
            return OX_FAIL(err, OX_BAD_ARGUMENT,
                           "--early-stopping expects yes, no or never, found '%s'",
                           o->early_stopping);
        b->early_stopping = (ox_early_stopping)k;
    }
    if (o->stop.n || o->has_logprobs)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "--%s does not go with beams; take --num-beams 1",
                       o->stop.n ? "stop" : "logprobs");
    b->max_new = o->has_max_new ? o->max_new : -1;
    b->ignore_eos = o->ignore_eos;
    b->sampler = so;
    b->progress = cli_progress;
    b->user = (void *)(uintptr_t)o;
    return OX_OK;
}

static ox_status by_beams(cli_answers *out, ox_session *s, const ox_model *m,
                          const ox_beam_options *bo, ox_err *err)
{
    ox_beams *beams;
    ox_status st = ox_beam_search(&beams, s, bo, err);
    cli_progress_end();
    for (size_t i = 0; !st && i < ox_beams_n(beams); i++) {
        ox_beam b;
        char *text = NULL;
        size_t n = 0;
        cli_answer a = {0};
        ox_beams_get(beams, i, &b);
        a.score = b.score;
        a.finish = b.ended ? "stop" : "length";
        if (!ox_vec_reserve(&a.ids, b.n_ids + 1) || !a.ids.p) {
            st = OX_FAIL(err, OX_NO_MEMORY, "no memory for an answer");
            break;
        }
        memcpy(a.ids.p, b.ids, b.n_ids * sizeof(*b.ids));
        a.ids.n = b.n_ids;
        if (ox_model_has_tokenizer(m))
            st = ox_model_decode(m, b.ids, b.n_ids, OX_TEXT_SKIP_SPECIAL, &text, &n, err);
        ox_buf_put(&a.text, text ? text : "", n);
        ox_release(text);
        if (!ox_vec_push(out, a)) {
            ox_vec_deinit(&a.ids);
            ox_buf_deinit(&a.text);
            st = OX_FAIL(err, OX_NO_MEMORY, "no memory for an answer");
        }
    }
    if (!st) ox_beams_close(&beams);
    return st;
}

static int take_token(void *user, const char *text, size_t n, int32_t id)
{
    cli_answer *a = user;
    ox_buf_put(&a->text, text, n);
    return (id >= 0 && !ox_vec_push(&a->ids, id)) || cli_interrupted();
}

/* Draw i has seed + i; the prompt is computed once. */
static ox_status by_draws(cli_answers *out, ox_session *s, const cli_options *o,
                          const ox_sampler_options *so, int *code, ox_err *err)
{
    if (!ox_vec_reserve(out, (size_t)o->num_return))
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for answers");
    for (long long i = 0; i < o->num_return && !*code; i++) {
        ox_sampler_options with = *so;
        ox_generate_options go;
        ox_finish why;
        ox_session *one;
        cli_answer *a = &out->p[out->n++];
        *a = (cli_answer){0};
        OX_TRY(ox_session_fork(&one, s, err));
        ox_generate_options_init(&go);
        with.seed = so->seed + (uint64_t)i;
        go.sampler = &with;
        go.max_new = o->has_max_new ? o->max_new : -1;
        go.stops = o->stop.p;
        go.n_stops = o->stop.n;
        go.ignore_eos = o->ignore_eos;
        go.on_text = take_token;
        go.user = a;
        const ox_status st = ox_generate(one, &go, &why, err);
        ox_session_close(&one);
        if (st) return st;
        a->finish = cli_finish_name(why);
        if (why == OX_FINISH_CANCELLED) *code = 130;
    }
    return OX_OK;
}

ox_status cli_several(cli_answers *out, ox_session *s, const cli_options *o,
                      const ox_sampler_options *so, int *code, ox_err *err)
{
    ox_beam_options bo;
    const ox_model *m = ox_session_model(s);
    if (o->has_num_return && (o->num_return < 1 || o->num_return > 1024))
        return OX_FAIL(err, OX_BAD_ARGUMENT, "--num-return-sequences expects 1 to 1024, found %lld",
                       o->num_return);
    if (so->temperature == 0.0f) {
        OX_TRY(beam_options(&bo, o, m, so, err));
        return by_beams(out, s, m, &bo, err);
    }
    if (o->num_beams > 1)
        return OX_FAIL(err, OX_BAD_ARGUMENT,
                       "beams are not drawn: give --greedy with --num-beams, or leave it out");
    if (o->has_logprobs || so->guidance_scale != 1.0f)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "--%s goes with one answer only",
                       o->has_logprobs ? "logprobs" : "guidance-scale");
    return by_draws(out, s, o, so, code, err);
}
