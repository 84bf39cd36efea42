/* search.c - what a model's own files say about searching, as options of sampler and beam search.
 *
 * generation_config.json means what Hugging Face means: with do_sample, temperature 1 and top_k 50
 * unless stated. genai_config.json means what ORT-GenAI means: with do_sample, temperature 1, top_k
 * 50 and top_p 0 unless stated; top_p 0 or 1 is off, but top_k 0 with top_p 0 is greedy. A value
 * outside an option's range is left out with a warning. */
#include "engine/engine_internal.h"

#include "base/json.h"

#include <string.h>

enum { MOST_BEAMS = 32, MOST_LISTED = 65536 };

struct ox_model_search {
    ox_sampler_options sampler; /* its arrays are those below */
    ox_beam_options beams;
    OX_VEC(int32_t) suppress, begin_suppress, words;
    OX_VEC(size_t) word_ends;
    OX_VEC(ox_token_list) bad_words;
    OX_VEC(ox_forced_token) forced;
};

typedef struct setting_row {
    const char *key, *option;
    bool only_sampled;
} setting_row;

#define WHEN_ALWAYS false
#define WHEN_SAMPLE true
static const setting_row rows[] = {
#define OX_SETTING(key, option, when) {key, #option, WHEN_##when},
#include "engine/search.def"
#undef OX_SETTING
};

static ox_status read_numbers(ox_model *m, struct ox_model_search *s, const ox_json *from,
                              bool do_sample, ox_err *err)
{
    for (size_t i = 0; i < OX_COUNT(rows); i++) {
        const ox_json *v = ox_json_get(from, rows[i].key);
        ox_err why = OX_ERR_INIT;
        if (!ox_json_is(v, OX_JSON_NUMBER) || (rows[i].only_sampled && !do_sample)) continue;
        if (!ox_sampler_options_set(&s->sampler, rows[i].option, ox_json_f64(v), &why)) continue;
        OX_TRY(ox_source_warn(m->source, "%s of the model's files is left out: %s", rows[i].key,
                              why.msg) == OX_OK
                   ? OX_OK
                   : OX_FAIL(err, OX_NO_MEMORY, "no memory for a warning"));
    }
    return OX_OK;
}

/* Defaults that hold where the file is silent, and what its zeros mean. */
static void read_sampling(struct ox_model_search *s, const ox_search *f)
{
    ox_sampler_options *o = &s->sampler;
    const ox_json *top_p = ox_json_get(f->stated, "top_p");
    if (!f->do_sample) return;
    if (!ox_json_is(ox_json_get(f->stated, "temperature"), OX_JSON_NUMBER)) o->temperature = 1.0f;
    if (!ox_json_is(ox_json_get(f->stated, "top_k"), OX_JSON_NUMBER)) o->top_k = 50;
    if (f->is_genai && !o->top_k && (!ox_json_is(top_p, OX_JSON_NUMBER) || o->top_p == 0.0f))
        o->temperature = 0.0f;
}

static bool is_id(const ox_json *v)
{
    return ox_json_is_i64(v) && ox_json_i64(v) >= 0 && ox_json_i64(v) <= INT32_MAX;
}

#define TAKE_IDS(list, from)                                                                       \
    do {                                                                                           \
        for (size_t i_ = 0; i_ < ox_json_n(from) && (list).n < MOST_LISTED; i_++)                  \
            if (is_id(ox_json_at(from, i_)) &&                                                     \
                !ox_vec_push(&(list), (int32_t)ox_json_i64(ox_json_at(from, i_))))                 \
                return false;                                                                      \
    } while (0)

static bool read_bad_words(struct ox_model_search *s, const ox_json *from)
{
    for (size_t w = 0; w < ox_json_n(from) && s->words.n < MOST_LISTED; w++) {
        const size_t begin = s->words.n;
        TAKE_IDS(s->words, ox_json_at(from, w));
        if (s->words.n > begin && !ox_vec_push(&s->word_ends, s->words.n)) return false;
    }
    size_t begin = 0;
    for (size_t w = 0; w < s->word_ends.n; w++) { /* words moves no more */
        const size_t end = s->word_ends.p[w];
        if (!ox_vec_push(&s->bad_words, (ox_token_list){s->words.p + begin, end - begin}))
            return false;
        begin = end;
    }
    return true;
}

static bool force(struct ox_model_search *s, int64_t position, const ox_json *id)
{
    return position < 0 || !is_id(id) ||
           ox_vec_push(&s->forced, (ox_forced_token){(uint64_t)position, (int32_t)ox_json_i64(id)});
}

static bool read_lists(struct ox_model_search *s, const ox_json *from)
{
    const ox_json *pairs = ox_json_get(from, "forced_decoder_ids");
    TAKE_IDS(s->suppress, ox_json_get(from, "suppress_tokens"));
    TAKE_IDS(s->begin_suppress, ox_json_get(from, "begin_suppress_tokens"));
    if (!force(s, 1, ox_json_get(from, "forced_bos_token_id"))) return false;
    for (size_t i = 0; i < ox_json_n(pairs) && i < MOST_LISTED; i++) {
        const ox_json *at = ox_json_at(ox_json_at(pairs, i), 0);
        if (ox_json_is_i64(at) && !force(s, ox_json_i64(at), ox_json_at(ox_json_at(pairs, i), 1)))
            return false;
    }
    return read_bad_words(s, ox_json_get(from, "bad_words_ids"));
}

static int32_t small_count(const ox_json *v)
{
    const int64_t n = ox_json_i64(v);
    return n > 1 && n <= MOST_BEAMS ? (int32_t)n : 1;
}

static void read_beams(struct ox_model_search *s, const ox_search *f)
{
    const ox_json *penalty = ox_json_get(f->stated, "length_penalty");
    const ox_json *early = ox_json_get(f->stated, "early_stopping");
    ox_beam_options_init(&s->beams);
    s->beams.n_beams = small_count(ox_json_get(f->stated, "num_beams"));
    s->beams.n_return = small_count(ox_json_get(f->stated, "num_return_sequences"));
    if (s->beams.n_return > s->beams.n_beams) s->beams.n_return = s->beams.n_beams;
    if (ox_json_is(penalty, OX_JSON_NUMBER) && ox_json_f64(penalty) >= -100 &&
        ox_json_f64(penalty) <= 100)
        s->beams.length_penalty = (float)ox_json_f64(penalty);
    s->beams.early_stopping = ox_json_true(early) || (f->is_genai && ox_json_is_null(early))
                                  ? OX_EARLY_YES
                              : ox_str_is(ox_json_str(early), "never") ? OX_EARLY_NEVER
                                                                       : OX_EARLY_NO;
    if (f->do_sample) s->beams.n_beams = s->beams.n_return = 1; /* beams are not drawn here */
}

ox_status ox_model_search_open(ox_model *m, ox_err *err)
{
    const ox_search *f = &m->source->facts.search;
    struct ox_model_search *s = m->search = ox_calloc(1, sizeof(*s));
    if (!s) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a model");
    ox_sampler_options *o = &s->sampler;
    ox_sampler_options_init(o);
    OX_TRY(read_numbers(m, s, f->stated, f->do_sample, err));
    read_sampling(s, f);
    read_beams(s, f);
    if (!read_lists(s, f->stated)) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a model");
    if (ox_json_is_i64(ox_json_get(f->stated, "random_seed")) &&
        ox_json_i64(ox_json_get(f->stated, "random_seed")) >= 0)
        o->seed = (uint64_t)ox_json_i64(ox_json_get(f->stated, "random_seed"));
    o->end_ids = m->source->facts.eos;
    o->n_end_ids = (size_t)m->source->facts.n_eos;
    o->suppress = s->suppress.p;
    o->n_suppress = s->suppress.n;
    o->begin_suppress = s->begin_suppress.p;
    o->n_begin_suppress = s->begin_suppress.n;
    o->bad_words = s->bad_words.p;
    o->n_bad_words = s->bad_words.n;
    o->forced = s->forced.p;
    o->n_forced = s->forced.n;
    return OX_OK;
}

void ox_model_search_close(ox_model *m)
{
    struct ox_model_search *s = m->search;
    if (!s) return;
    ox_vec_deinit(&s->suppress);
    ox_vec_deinit(&s->begin_suppress);
    ox_vec_deinit(&s->words);
    ox_vec_deinit(&s->word_ends);
    ox_vec_deinit(&s->bad_words);
    ox_vec_deinit(&s->forced);
    ox_free(s);
    m->search = NULL;
}

void ox_model_sampler_options(const ox_model *m, ox_sampler_options *o)
{
    *o = m->search->sampler;
}

void ox_model_beam_options(const ox_model *m, ox_beam_options *o)
{
    *o = m->search->beams;
}
