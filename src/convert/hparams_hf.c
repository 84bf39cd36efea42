/* hparams_hf.c - ox_hparams from a Hugging Face config.json. Both spellings of rotary settings are
 * read: rope_theta + rope_scaling, and rope_parameters (maybe one set a kind of layer). */
#include "convert/arch.h"

#include <math.h>
#include <stdio.h>

enum { SIZE_MAX_INT = INT32_MAX };

static ox_status need_size(const ox_json *c, const char *key, int32_t *out, ox_err *err)
{
    int64_t v;
    if (*out && ox_json_is_null(ox_json_get(c, key))) return OX_OK;
    OX_TRY(ox_json_need_i64(c, key, 1, SIZE_MAX_INT, &v, err));
    *out = (int32_t)v;
    return OX_OK;
}

static ox_status opt_size(const ox_json *c, const char *key, int32_t *out, ox_err *err)
{
    int64_t v = *out;
    OX_TRY(ox_json_opt_i64(c, key, 0, SIZE_MAX_INT, &v, err));
    *out = (int32_t)v;
    return OX_OK;
}

static ox_status opt_float(const ox_json *c, const char *key, float *out, ox_err *err)
{
    double v = (double)*out;
    OX_TRY(ox_json_opt_f64(c, key, &v, err));
    *out = (float)v;
    return OX_OK;
}

static ox_status read_act(const ox_json *c, ox_hparams *hp, ox_err *err)
{
    static const struct {
        const char *name;
        ox_act act;
    } acts[] = {{"silu", OX_ACT_SILU},
                {"swish", OX_ACT_SILU},
                {"gelu", OX_ACT_GELU},
                {"gelu_new", OX_ACT_GELU_TANH},
                {"gelu_fast", OX_ACT_GELU_TANH},
                {"gelu_pytorch_tanh", OX_ACT_GELU_TANH},
                {"quick_gelu", OX_ACT_QUICK_GELU},
                {"relu", OX_ACT_RELU},
                {"relu2", OX_ACT_RELU2}};
    /* Architectures of the GELU trait state hidden_activation; their hidden_act is a leftover that
     * nothing reads. */
    const bool gelu = hp->arch->traits & OX_TRAIT_GELU;
    ox_str name = gelu ? OX_STR("gelu_pytorch_tanh") : OX_STR("silu");
    OX_TRY(ox_json_opt_str(c, gelu ? "hidden_activation" : "hidden_act", &name, err));
    for (size_t i = 0; i < OX_COUNT(acts); i++)
        if (ox_str_is(name, acts[i].name)) {
            hp->act = acts[i].act;
            return OX_OK;
        }
    return OX_FAIL(err, OX_UNSUPPORTED,
                   "config.json: the activation \"%.*s\" is not one that oxgen "
                   "knows",
                   OX_STR_ARGS(name));
}

static ox_status read_factors(const ox_json *rope, const char *key, int32_t rotary,
                              const float **out, ox_arena *arena, ox_err *err)
{
    const ox_json *list;
    OX_TRY(ox_json_need(rope, key, OX_JSON_ARRAY, &list, err));
    if (ox_json_n(list) != (size_t)(rotary / 2))
        return OX_FAIL(err, OX_BAD_FILE,
                       "config.json: %s has %zu numbers, expected %d (half of the "
                       "rotary channels)",
                       key, ox_json_n(list), rotary / 2);
    float *f = ox_arena_take_n(arena, ox_json_n(list), sizeof *f);
    if (!f) return OX_FAIL(err, OX_NO_MEMORY, "out of memory for rotary factors");
    for (size_t i = 0; i < ox_json_n(list); i++) {
        f[i] = (float)ox_json_f64(ox_json_at(list, i));
        if (!(f[i] > 0))
            return OX_FAIL(err, OX_BAD_FILE,
                           "config.json: %s holds %g, expected "
                           "positive numbers",
                           key, (double)f[i]);
    }
    *out = f;
    return OX_OK;
}

static double yarn_magnitude(double factor, double m)
{
    return factor <= 1 ? 1 : 0.1 * m * log(factor) + 1;
}

static ox_status read_yarn(const ox_json *rope, ox_rope_rule *r, ox_err *err)
{
    double mscale = 0, mscale_all = 0;
    bool truncate = true;
    r->kind = OX_ROPE_YARN;
    OX_TRY(ox_json_opt_f64(rope, "beta_fast", &r->beta_fast, err));
    OX_TRY(ox_json_opt_f64(rope, "beta_slow", &r->beta_slow, err));
    OX_TRY(ox_json_opt_f64(rope, "mscale", &mscale, err));
    OX_TRY(ox_json_opt_f64(rope, "mscale_all_dim", &mscale_all, err));
    OX_TRY(ox_json_opt_bool(rope, "truncate", &truncate, err));
    r->untruncated = !truncate;
    if (mscale > 0 && mscale_all > 0 && r->attention_factor <= 0)
        r->attention_factor =
            yarn_magnitude(r->factor, mscale) / yarn_magnitude(r->factor, mscale_all);
    return OX_OK;
}

/* rope: the object that holds the rule's numbers, or NULL for the plain rule. */
static ox_status read_rule(const ox_json *config, const ox_json *rope, const ox_hparams *hp,
                           ox_rope_rule *r, ox_arena *arena, ox_err *err)
{
    ox_str type = OX_STR("default");
    r->beta_fast = 32;
    r->beta_slow = 1;
    r->original = hp->context;
    if (!rope) return OX_OK;
    OX_TRY(ox_json_opt_f64(rope, "rope_theta", &r->theta, err));
    OX_TRY(ox_json_opt_str(rope, "type", &type, err));
    OX_TRY(ox_json_opt_str(rope, "rope_type", &type, err));
    OX_TRY(ox_json_opt_f64(rope, "factor", &r->factor, err));
    OX_TRY(ox_json_opt_f64(rope, "attention_factor", &r->attention_factor, err));
    OX_TRY(
        ox_json_opt_i64(config, "original_max_position_embeddings", 1, 1 << 26, &r->original, err));
    OX_TRY(
        ox_json_opt_i64(rope, "original_max_position_embeddings", 1, 1 << 26, &r->original, err));
    if (ox_str_is(type, "default")) return OX_OK;
    if (ox_str_is(type, "linear")) {
        r->kind = OX_ROPE_LINEAR;
        return OX_OK;
    }
    if (ox_str_is(type, "llama3")) {
        r->kind = OX_ROPE_LLAMA3;
        OX_TRY(ox_json_need_f64(rope, "low_freq_factor", &r->low_freq, err));
        OX_TRY(ox_json_need_f64(rope, "high_freq_factor", &r->high_freq, err));
        if (r->low_freq > 0 && r->high_freq > r->low_freq) return OX_OK;
        return OX_FAIL(err, OX_BAD_FILE,
                       "config.json: low_freq_factor %g and high_freq_factor %g: "
                       "expected 0 < low < high",
                       r->low_freq, r->high_freq);
    }
    if (ox_str_is(type, "yarn")) {
        if (!(r->factor > 0)) r->factor = (double)hp->context / (double)r->original;
        return read_yarn(rope, r, err);
    }
    if (ox_str_is(type, "longrope") || ox_str_is(type, "su")) {
        r->kind = OX_ROPE_LONG;
        OX_TRY(read_factors(rope, "short_factor", r->rotary, &r->factors, arena, err));
        return read_factors(rope, "long_factor", r->rotary, &r->long_factors, arena, err);
    }
    return OX_FAIL(err, OX_UNSUPPORTED,
                   "config.json: the rotary scaling \"%.*s\" is not one that "
                   "oxgen knows: default, linear, llama3, yarn, longrope",
                   OX_STR_ARGS(type));
}

static ox_status read_rope(const ox_json *c, ox_hparams *hp, ox_arena *arena, ox_err *err)
{
    const ox_json *all = ox_json_get(c, "rope_parameters"), *local = NULL;
    double theta = 10000, local_theta = 10000, partial = 1;
    if (ox_json_is_null(all)) all = ox_json_get(c, "rope_scaling");
    if (ox_json_is_null(all)) all = NULL;
    if (all && ox_json_get(all, "full_attention")) {
        local = ox_json_get(all, "sliding_attention");
        all = ox_json_get(all, "full_attention");
    }
    OX_TRY(ox_json_opt_f64(c, "rope_theta", &theta, err));
    OX_TRY(ox_json_opt_f64(c, "rope_local_base_freq", &local_theta, err));
    OX_TRY(ox_json_opt_f64(c, "partial_rotary_factor", &partial, err));
    OX_TRY(ox_json_opt_f64(all, "partial_rotary_factor", &partial, err));
    if (!(partial > 0 && partial <= 1))
        return OX_FAIL(err, OX_BAD_FILE,
                       "config.json: partial_rotary_factor is %g, expected 0 to 1", partial);
    const int32_t rotary = (int32_t)(hp->head_size * partial);
    const bool pairs = hp->arch->traits & OX_TRAIT_PAIRS;
    hp->rope[0] = (ox_rope_rule){.rotary = rotary, .interleaved = pairs, .theta = theta};
    OX_TRY(read_rule(c, all, hp, &hp->rope[0], arena, err));
    if (!(hp->arch->traits & OX_TRAIT_LOCAL_ROPE)) return OX_OK;
    hp->local_rope = true;
    hp->rope[1] = (ox_rope_rule){.rotary = rotary, .theta = local_theta};
    return read_rule(c, local, hp, &hp->rope[1], arena, err);
}

/* layer_types says it layer by layer; older files give a period,
 * or count from max_window_layers. */
static ox_status read_windows(const ox_json *c, ox_hparams *hp, ox_err *err)
{
    const uint32_t traits = hp->arch->traits;
    const bool alternating = traits & OX_TRAIT_POST_NORMS;
    bool used = traits & OX_TRAIT_WINDOW;
    int64_t every = !alternating ? 0 : traits & OX_TRAIT_QK_NORM ? 6 : 2, first = 0;
    if (traits & OX_TRAIT_WINDOW_OPTION) {
        OX_TRY(ox_json_opt_bool(c, "use_sliding_window", &used, err));
        OX_TRY(ox_json_opt_i64(c, "max_window_layers", 0, INT32_MAX, &first, err));
    }
    if (!used) return OX_OK;
    OX_TRY(opt_size(c, "sliding_window", &hp->window, err));
    OX_TRY(ox_json_opt_i64(c, "sliding_window_pattern", 1, INT32_MAX, &every, err));
    const ox_json *types = ox_json_get(c, "layer_types");
    for (int32_t l = 0; l < hp->n_layers && hp->window; l++) {
        const ox_json *type = ox_json_at(types, (size_t)l);
        hp->windowed[l] = l >= first && (every <= 0 || (l + 1) % every != 0);
        if (type) hp->windowed[l] = ox_str_is(ox_json_str(type), "sliding_attention");
    }
    return OX_OK;
}

static ox_status read_sizes(const ox_json *c, ox_hparams *hp, ox_err *err)
{
    if (hp->arch->traits & OX_TRAIT_LOCAL_ROPE) { /* such files leave out what is usual */
        hp->n_heads = 8;
        hp->n_kv_heads = 4;
        hp->head_size = 256;
        hp->vocab = 262208;
        hp->context = 131072;
    }
    OX_TRY(need_size(c, "num_hidden_layers", &hp->n_layers, err));
    OX_TRY(need_size(c, "hidden_size", &hp->hidden, err));
    OX_TRY(need_size(c, "intermediate_size", &hp->n_ff, err));
    OX_TRY(need_size(c, "num_attention_heads", &hp->n_heads, err));
    if (!hp->n_kv_heads) hp->n_kv_heads = hp->n_heads;
    OX_TRY(opt_size(c, "num_key_value_heads", &hp->n_kv_heads, err));
    if (!hp->head_size) hp->head_size = hp->hidden / hp->n_heads;
    OX_TRY(opt_size(c, "head_dim", &hp->head_size, err));
    OX_TRY(ox_json_opt_i64(c, "vocab_size", 1, INT32_MAX, &hp->vocab, err));
    OX_TRY(ox_json_opt_i64(c, "max_position_embeddings", 1, 1 << 26, &hp->context, err));
    if (!hp->vocab || !hp->context)
        return OX_FAIL(err, OX_BAD_FILE, "config.json: %s is missing",
                       hp->vocab ? "max_position_embeddings" : "vocab_size");
    hp->epsilon = 1e-6f;
    return opt_float(c, "rms_norm_eps", &hp->epsilon, err);
}

static ox_status read_attention(const ox_json *c, ox_hparams *hp, ox_err *err)
{
    const uint32_t traits = hp->arch->traits;
    double scalar = hp->head_size;
    if (traits & OX_TRAIT_QUERY_SCALAR)
        OX_TRY(ox_json_opt_f64(c, "query_pre_attn_scalar", &scalar, err));
    if (!(scalar > 0))
        return OX_FAIL(err, OX_BAD_FILE, "config.json: query_pre_attn_scalar is %g", scalar);
    hp->attend_scale = (float)(1 / sqrt(scalar));
    if (traits & OX_TRAIT_CAPS) {
        OX_TRY(opt_float(c, "attn_logit_softcapping", &hp->attend_softcap, err));
        OX_TRY(opt_float(c, "final_logit_softcapping", &hp->logit_softcap, err));
    }
    hp->qk_norm = traits & OX_TRAIT_QK_NORM;
    hp->qkv_bias = traits & OX_TRAIT_QKV_BIAS;
    if (hp->qkv_bias) return OX_OK;
    OX_TRY(ox_json_opt_bool(c, "attention_bias", &hp->qkv_bias, err));
    hp->o_bias = hp->qkv_bias;
    return OX_OK;
}

static const ox_arch *find_arch(const ox_json *c, ox_err *err)
{
    const ox_str type = ox_json_str(ox_json_get(c, "model_type"));
    const ox_arch *arch = ox_arch_find_hf(type);
    if (arch) return arch;
    ox_buf list = {0};
    ox_arch_list(&list, false);
    (void)OX_FAIL(err, OX_UNSUPPORTED,
                  "config.json: the model_type \"%.*s\" is not one that oxgen "
                  "imports: %s",
                  OX_STR_ARGS(type), list.p ? list.p : "");
    ox_buf_deinit(&list);
    return NULL;
}

ox_status ox_hparams_from_config(ox_hparams *hp, const ox_json *config, ox_arena *arena,
                                 ox_err *err)
{
    const ox_json *c = config, *text = ox_json_get(config, "text_config");
    hp->arch = find_arch(config, err);
    if (!hp->arch) return OX_UNSUPPORTED;
    if (ox_json_is(text, OX_JSON_OBJECT)) c = text;
    const uint32_t traits = hp->arch->traits;
    OX_TRY(read_sizes(c, hp, err));
    OX_TRY(read_act(c, hp, err));
    OX_TRY(read_attention(c, hp, err));
    OX_TRY(read_windows(c, hp, err));
    OX_TRY(read_rope(c, hp, arena, err));
    hp->post_norms = traits & OX_TRAIT_POST_NORMS;
    hp->one_plus_norm = traits & OX_TRAIT_ONE_PLUS_NORM;
    hp->fused = traits & OX_TRAIT_FUSED;
    hp->embed_scale = traits & OX_TRAIT_ROOT_EMBED ? sqrtf((float)hp->hidden) : 1;
    hp->tied = traits & OX_TRAIT_TIED;
    OX_TRY(ox_json_opt_bool(config, "tie_word_embeddings", &hp->tied, err));
    OX_TRY(ox_json_opt_bool(c, "tie_word_embeddings", &hp->tied, err));
    OX_TRY(ox_json_opt_bool(c, "mlp_bias", &hp->mlp_bias, err));
    if (!ox_json_is_null(ox_json_get(config, "quantization_config")))
        return OX_FAIL(err, OX_UNSUPPORTED,
                       "config.json: the weights are quantised already "
                       "(quantization_config), which oxgen does not import: use the unquantised "
                       "model");
    return ox_hparams_check(hp, err);
}
