/* sampling.c - options of the sampler from the command line over those of the model's own files. */
#include "cli/cli.h"

#include <string.h>

static ox_status read_bias(cli_sampling *s, const cli_options *o, const ox_model *m, ox_err *err)
{
    for (size_t i = 0; i < o->logit_bias.n; i++) {
        const char *text = o->logit_bias.p[i], *eq = strchr(text, '=');
        int64_t id;
        double bias;
        if (!eq || !ox_str_to_i64((ox_str){text, (size_t)(eq - text)}, &id) || id < 0 ||
            id >= ox_model_vocab(m) || !ox_str_to_f64(ox_str_of(eq + 1), &bias) || !(bias < 3e38))
            return OX_FAIL(err, OX_BAD_ARGUMENT,
                           "--logit-bias expects ID=NUMBER with an id below %lld, found '%s'",
                           (long long)ox_model_vocab(m), text);
        if (!ox_vec_push(&s->bias, (ox_logit_bias){(int32_t)id, (float)bias}))
            return OX_FAIL(err, OX_NO_MEMORY, "no memory");
    }
    s->o.bias = s->bias.p;
    s->o.n_bias = s->bias.n;
    return OX_OK;
}

/* Each word is forbidden at the beginning of a text and behind a space. */
static ox_status read_words(cli_sampling *s, const cli_options *o, const ox_model *m, ox_err *err)
{
    ox_status st = OX_OK;
    for (size_t i = 0; !st && i < 2 * o->bad_word.n; i++) {
        const char *word = o->bad_word.p[i / 2];
        ox_buf text = {0};
        int32_t *ids = NULL;
        size_t n = 0;
        if (!*word) return OX_FAIL(err, OX_BAD_ARGUMENT, "--bad-word is empty; expected text");
        ox_buf_printf(&text, "%s%s", i & 1 ? " " : "", word);
        st = cli_check_text(ox_buf_view(&text), "--bad-word", err);
        if (!st) st = ox_model_encode(m, text.p, text.n, OX_TEXT_PLAIN_SPECIAL, &ids, &n, err);
        ox_buf_deinit(&text);
        if (st || !n) continue;
        if (!ox_vec_push(&s->words, (ox_token_list){ids, n})) {
            ox_release(ids);
            st = OX_FAIL(err, OX_NO_MEMORY, "no memory");
        }
        s->n_own = s->words.n;
    }
    if (st || !s->n_own) return st;
    for (size_t i = 0; i < s->o.n_bad_words; i++) /* the model's own stay */
        if (!ox_vec_push(&s->words, s->o.bad_words[i]))
            return OX_FAIL(err, OX_NO_MEMORY, "no memory");
    s->o.bad_words = s->words.p;
    s->o.n_bad_words = s->words.n;
    return OX_OK;
}

/* Every token whose text holds one of the texts: a repetition does not reach across it. */
static ox_status read_breakers(cli_sampling *s, const cli_options *o, const ox_model *m,
                               ox_err *err)
{
    static const char *const usual[] = {"\n", ":", "\"", "*"};
    const char *const *texts = o->dry_breaker.n ? o->dry_breaker.p : usual;
    const size_t n_texts = o->dry_breaker.n ? o->dry_breaker.n : OX_COUNT(usual);
    if (s->o.dry_multiplier <= 0.0f || (n_texts == 1 && !strcmp(texts[0], "none"))) return OX_OK;
    for (size_t k = 0; k < n_texts; k++)
        if (!*texts[k])
            return OX_FAIL(err, OX_BAD_ARGUMENT, "--dry-breaker is empty; expected text or none");
    for (int32_t id = 0; id < ox_model_vocab(m); id++) {
        char *text;
        size_t n;
        ox_err ignored = OX_ERR_INIT;
        if (ox_model_decode(m, &id, 1, 0, &text, &n, &ignored)) continue; /* a hole */
        bool breaks = false;
        for (size_t k = 0; k < n_texts; k++)
            breaks |= ox_str_find((ox_str){text, n}, ox_str_of(texts[k]), 0) != SIZE_MAX;
        ox_release(text);
        if (breaks && !ox_vec_push(&s->breakers, id))
            return OX_FAIL(err, OX_NO_MEMORY, "no memory");
    }
    s->o.dry_breakers = s->breakers.p;
    s->o.n_dry_breakers = s->breakers.n;
    return OX_OK;
}

/* Every option of the group G_SAMPLER: its member is named as the sampler's. */
static ox_status read_numbers(ox_sampler_options *so, const cli_options *o, ox_err *err)
{
#define SET_FLAG(member)
#define SET_STRING(member)
#define SET_LIST(member)
#define SET_MAYBE(member)
#define SET_NUMBER(member)                                                                         \
    if (o->has_##member) OX_TRY(ox_sampler_options_set(so, #member, (double)o->member, err));
#define SET_INT(member) SET_NUMBER(member)
#define SET_FLOAT(member) SET_NUMBER(member)
#define OX_OPTION(name, letter, kind, member, value, groups, help)                                 \
    if ((groups)&G_SAMPLER) {                                                                      \
        SET_##kind(member)                                                                         \
    }
#include "cli/options.def"
#undef OX_OPTION
    return OX_OK;
}

ox_status cli_sampling_open(cli_sampling *s, const cli_options *o, const ox_model *m, ox_err *err)
{
    *s = (cli_sampling){0};
    ox_model_sampler_options(m, &s->o);
    OX_TRY(read_numbers(&s->o, o, err));
    if (o->greedy) s->o.temperature = 0.0f;
    if (o->has_seed) s->o.seed = (uint64_t)o->seed;
    s->o.order = o->samplers;
    OX_TRY(read_bias(s, o, m, err));
    OX_TRY(read_words(s, o, m, err));
    return read_breakers(s, o, m, err);
}

void cli_sampling_close(cli_sampling *s)
{
    for (size_t i = 0; i < s->n_own; i++)
        ox_release((void *)(uintptr_t)s->words.p[i].ids);
    ox_vec_deinit(&s->words);
    ox_vec_deinit(&s->bias);
    ox_vec_deinit(&s->breakers);
}
