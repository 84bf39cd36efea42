/* ports.c - which input and output of a decoder graph plays which role. Names that a config gave
 * are kept where the graph has them; the rest is derived from the words in a name, its element type
 * and rank. A cache name becomes a template: its last number is the layer, "past.%d.key". */
#include "model/model_internal.h"

typedef enum role {
    ROLE_NONE,
    ROLE_IDS,
    ROLE_MASK,
    ROLE_POSITIONS,
    ROLE_KEY,
    ROLE_VALUE,
    ROLE_STATE, /* recurrent, convolution, cross attention: found by other layers */
} role;

/* Words that name a role; the last word of a name that is in this table decides. */
static const struct {
    const char *word;
    role role;
} words[] = {
    {"ids", ROLE_IDS},
    {"tokens", ROLE_IDS},
    {"mask", ROLE_MASK},
    {"position", ROLE_POSITIONS},
    {"positions", ROLE_POSITIONS},
    {"pos", ROLE_POSITIONS},
    {"key", ROLE_KEY},
    {"keys", ROLE_KEY},
    {"k", ROLE_KEY},
    {"value", ROLE_VALUE},
    {"values", ROLE_VALUE},
    {"v", ROLE_VALUE},
};
/* Words that make a name something else, wherever they stand. */
static const char *const state_words[] = {"state",   "states", "conv", "recurrent",
                                          "encoder", "cross",  "ssm",  "scale"};

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool next_word(ox_str name, size_t *at, ox_str *word)
{
    while (*at < name.n && !is_word_char(name.p[*at]))
        ++*at;
    const size_t begin = *at;
    while (*at < name.n && is_word_char(name.p[*at]))
        ++*at;
    *word = (ox_str){name.p + begin, *at - begin};
    return word->n > 0;
}

static bool has_word(ox_str name, const char *wanted)
{
    ox_str word;
    for (size_t at = 0; next_word(name, &at, &word);)
        if (ox_str_is(word, wanted)) return true;
    return false;
}

static role role_of(ox_str name)
{
    role found = ROLE_NONE;
    ox_str word;
    for (size_t i = 0; i < OX_COUNT(state_words); i++)
        if (has_word(name, state_words[i])) return ROLE_STATE;
    if (has_word(name, "position")) return ROLE_POSITIONS; /* position_ids */
    for (size_t at = 0; next_word(name, &at, &word);)
        for (size_t i = 0; i < OX_COUNT(words); i++)
            if (ox_str_is(word, words[i].word)) found = words[i].role;
    return found;
}

static bool is_integer(const ox_onnx_value *v)
{
    return v->dtype == OX_DTYPE_I64 || v->dtype == OX_DTYPE_I32;
}

static const ox_onnx_value *find(const ox_onnx_value *v, size_t n, ox_str name)
{
    for (size_t i = 0; name.n && i < n; i++)
        if (ox_str_eq(v[i].name, name)) return &v[i];
    return NULL;
}

/* The last run of digits in a name; false when there is none. */
static bool last_number(ox_str name, size_t *begin, size_t *end)
{
    size_t e = name.n;
    while (e && !(name.p[e - 1] >= '0' && name.p[e - 1] <= '9'))
        e--;
    size_t b = e;
    while (b && name.p[b - 1] >= '0' && name.p[b - 1] <= '9')
        b--;
    *begin = b;
    *end = e;
    return e > b;
}

static bool fits_template(ox_str template, ox_str name)
{
    const size_t at = ox_str_find(template, OX_STR("%d"), 0);
    size_t b, e;
    if (at == SIZE_MAX || !last_number(name, &b, &e)) return false;
    const ox_str head = {name.p, b}, tail = {name.p + e, name.n - e};
    return ox_str_eq(head, (ox_str){template.p, at}) &&
           ox_str_eq(tail, (ox_str){template.p + at + 2, template.n - at - 2});
}

static ox_status template_of(ox_source *s, ox_str name, ox_str *out, ox_err *err)
{
    size_t b, e;
    *out = (ox_str){"", 0};
    if (!last_number(name, &b, &e)) return OX_OK;
    char *p = ox_arena_take(&s->arena, name.n + 3);
    if (!p) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a name");
    memcpy(p, name.p, b);
    memcpy(p + b, "%d", 2);
    memcpy(p + b + 2, name.p + e, name.n - e);
    *out = (ox_str){p, b + 2 + name.n - e};
    return OX_OK;
}

/* Keeps a template that some port fits, else derives one from the first port of that role. */
static ox_status find_template(ox_source *s, const ox_onnx_value *v, size_t n, role want,
                               ox_str *name, ox_err *err)
{
    for (size_t i = 0; name->n && i < n; i++)
        if (fits_template(*name, v[i].name)) return OX_OK;
    *name = (ox_str){"", 0};
    for (size_t i = 0; !name->n && i < n; i++) {
        const bool is_cache = v[i].rank == 4 || (v[i].rank < 0 && !is_integer(&v[i]));
        if (is_cache && role_of(v[i].name) == want) OX_TRY(template_of(s, v[i].name, name, err));
    }
    return OX_OK;
}

/* The first input of a role that is neither cache nor state; empty when there is none. */
static void find_input(const ox_onnx_graph *g, role want, bool integer, ox_str *name)
{
    if (find(g->inputs, g->n_inputs, *name)) return;
    *name = (ox_str){"", 0};
    for (size_t i = 0; !name->n && i < g->n_inputs; i++)
        if (role_of(g->inputs[i].name) == want && (!integer || is_integer(&g->inputs[i])))
            *name = g->inputs[i].name;
}

static ox_status find_ids(ox_source *s, const ox_onnx_graph *g, ox_err *err)
{
    size_t n_plain = 0;
    ox_str plain = {"", 0};
    if (!s->in_ids.n) s->in_ids = OX_STR("input_ids");
    find_input(g, ROLE_IDS, true, &s->in_ids);
    for (size_t i = 0; !s->in_ids.n && i < g->n_inputs; i++) {
        const ox_onnx_value *v = &g->inputs[i];
        if (role_of(v->name) != ROLE_NONE || !is_integer(v) || v->rank != 2) continue;
        plain = v->name;
        n_plain++;
    }
    if (s->in_ids.n) return OX_OK;
    if (n_plain == 1) {
        s->in_ids = plain;
        return OX_OK;
    }
    if (find(g->inputs, g->n_inputs, OX_STR("inputs_embeds")))
        return OX_FAIL(err, OX_UNSUPPORTED,
                       "the graph reads embeddings (inputs_embeds); expected a decoder that reads "
                       "token ids");
    return OX_FAIL(
        err, OX_UNSUPPORTED,
        "the graph has no input of token ids (int64 [batch, sequence]); is it a decoder?");
}

static ox_status find_logits(ox_source *s, const ox_onnx_graph *g, ox_err *err)
{
    size_t n_plain = 0;
    ox_str plain = {"", 0};
    if (!s->out_logits.n) s->out_logits = OX_STR("logits");
    if (find(g->outputs, g->n_outputs, s->out_logits)) return OX_OK;
    for (size_t i = 0; i < g->n_outputs; i++) {
        const ox_onnx_value *v = &g->outputs[i];
        if (has_word(v->name, "logits")) {
            s->out_logits = v->name;
            return OX_OK;
        }
        if (role_of(v->name) != ROLE_NONE || is_integer(v) || (v->rank >= 0 && v->rank != 3))
            continue;
        plain = v->name;
        n_plain++;
    }
    if (n_plain != 1)
        return OX_FAIL(
            err, OX_UNSUPPORTED,
            "the graph has no output of logits (float [batch, sequence, vocabulary]); is "
            "it a decoder?");
    s->out_logits = plain;
    return OX_OK;
}

static bool has_default(const ox_onnx_graph *g, ox_str name)
{
    for (size_t i = 0; i < g->n_initializers; i++)
        if (ox_str_eq(g->initializers[i].name, name)) return true;
    return false;
}

ox_status ox_model_warn_inputs(ox_source *s, const ox_onnx_graph *g)
{
    for (size_t i = 0; i < g->n_inputs; i++) {
        const ox_str name = g->inputs[i].name;
        const role r = role_of(name);
        if (ox_str_eq(name, s->in_ids) || ox_str_eq(name, s->in_mask) ||
            ox_str_eq(name, s->in_positions) || r == ROLE_KEY || r == ROLE_VALUE ||
            r == ROLE_STATE || has_default(g, name))
            continue;
        OX_TRY(ox_source_warn(s, "input %.*s of the graph has no role that oxgen knows",
                              OX_STR_ARGS(name)));
    }
    return OX_OK;
}

ox_status ox_model_find_ports(ox_source *s, const ox_onnx_graph *g, ox_err *err)
{
    const ox_onnx_value *in = g->inputs, *out = g->outputs;
    OX_TRY(find_ids(s, g, err));
    OX_TRY(find_logits(s, g, err));
    find_input(g, ROLE_MASK, false, &s->in_mask);
    find_input(g, ROLE_POSITIONS, true, &s->in_positions);
    OX_TRY(find_template(s, in, g->n_inputs, ROLE_KEY, &s->in_past_k, err));
    OX_TRY(find_template(s, in, g->n_inputs, ROLE_VALUE, &s->in_past_v, err));
    OX_TRY(find_template(s, out, g->n_outputs, ROLE_KEY, &s->out_present_k, err));
    OX_TRY(find_template(s, out, g->n_outputs, ROLE_VALUE, &s->out_present_v, err));
    const bool k = s->in_past_k.n, v = s->in_past_v.n;
    if (k != v || k != (s->out_present_k.n > 0) || v != (s->out_present_v.n > 0))
        return OX_FAIL(err, OX_UNSUPPORTED,
                       "the graph's caches do not pair up: past keys '%.*s', past values '%.*s', "
                       "present keys '%.*s', present values '%.*s'",
                       OX_STR_ARGS(s->in_past_k), OX_STR_ARGS(s->in_past_v),
                       OX_STR_ARGS(s->out_present_k), OX_STR_ARGS(s->out_present_v));
    const ox_onnx_value *logits = find(out, g->n_outputs, s->out_logits);
    if (logits->rank > 0 && logits->dims[logits->rank - 1].value > 0)
        s->facts.vocab_size = logits->dims[logits->rank - 1].value;
    return OX_OK;
}
