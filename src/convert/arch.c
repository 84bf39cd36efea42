/* arch.c - look-up in the tables of arch.h, and the checks that both readers of hparams share. */
#include "convert/arch.h"

static const ox_arch archs[OX_ARCH_COUNT] = {
#define OX_ARCH(suffix, gguf, hf, word, traits) {gguf, hf, word, traits},
#include "convert/arch.def"
#undef OX_ARCH
};

static const struct {
    const char *gguf, *hf, *hf_post, *node;
} roles[OX_ROLE_COUNT] = {
#define OX_ROLE(suffix, gguf, hf, hf_post, node) {gguf, hf, hf_post, node},
#include "convert/roles.def"
#undef OX_ROLE
};

const ox_arch *ox_arch_find_gguf(ox_str name)
{
    for (size_t i = 0; i < OX_ARCH_COUNT; i++)
        if (archs[i].gguf && ox_str_is(name, archs[i].gguf)) return &archs[i];
    return NULL;
}

const ox_arch *ox_arch_find_hf(ox_str name)
{
    for (size_t i = 0; i < OX_ARCH_COUNT; i++)
        if (ox_str_is(name, archs[i].hf)) return &archs[i];
    return NULL;
}

void ox_arch_list(ox_buf *out, bool gguf)
{
    const char *separator = "";
    for (size_t i = 0; i < OX_ARCH_COUNT; i++) {
        const char *name = gguf ? archs[i].gguf : archs[i].hf;
        if (!name) continue;
        ox_buf_printf(out, "%s%s", separator, name);
        separator = ", ";
    }
}

const char *ox_role_pattern(const ox_hparams *hp, ox_role role)
{
    if (hp->is_gguf) return roles[role].gguf;
    const bool post = hp->post_norms && roles[role].hf_post;
    return post ? roles[role].hf_post : roles[role].hf;
}

const char *ox_role_node(const ox_hparams *hp, ox_role role)
{
    if (role == OX_ROLE_FFN_NORM && hp->post_norms)
        return "/model/layers.%d/pre_feedforward_layernorm/LayerNorm";
    return roles[role].node;
}

static ox_status check_range(const char *what, int64_t v, int64_t least, int64_t most, ox_err *err)
{
    if (v >= least && v <= most) return OX_OK;
    return OX_FAIL(err, OX_BAD_FILE, "%s is %lld, expected %lld to %lld: the file is damaged", what,
                   (long long)v, (long long)least, (long long)most);
}

ox_status ox_hparams_check(const ox_hparams *hp, ox_err *err)
{
    const struct {
        const char *what;
        int64_t v, most;
    } sizes[] = {
        {"the number of layers", hp->n_layers, OX_LAYERS_MAX},
        {"the hidden size", hp->hidden, 1 << 20},
        {"the size of the MLP", hp->n_ff, 1 << 24},
        {"the number of heads", hp->n_heads, 1 << 16},
        {"the number of key/value heads", hp->n_kv_heads, hp->n_heads},
        {"the head size", hp->head_size, 1 << 16},
        {"the vocabulary", hp->vocab, INT32_MAX},
        {"the context length", hp->context, 1 << 26},
        {"the number of rotary channels", hp->rope[0].rotary, hp->head_size},
    };
    for (size_t i = 0; i < OX_COUNT(sizes); i++)
        OX_TRY(check_range(sizes[i].what, sizes[i].v, 1, sizes[i].most, err));
    if (hp->n_heads % hp->n_kv_heads)
        return OX_FAIL(err, OX_BAD_FILE, "%d heads do not divide among %d key/value heads",
                       hp->n_heads, hp->n_kv_heads);
    for (int i = 0; i < (hp->local_rope ? 2 : 1); i++) {
        const ox_rope_rule *r = &hp->rope[i];
        if (r->rotary % 2 || r->rotary > hp->head_size)
            return OX_FAIL(err, OX_BAD_FILE,
                           "%d rotary channels of heads of %d: expected an even "
                           "number, at most the head size",
                           r->rotary, hp->head_size);
        if (!(r->theta > 0)) return OX_FAIL(err, OX_BAD_FILE, "the rotary base is %g", r->theta);
        if (r->kind != OX_ROPE_PLAIN && r->kind != OX_ROPE_LONG && !(r->factor > 0))
            return OX_FAIL(err, OX_BAD_FILE, "the rotary scaling factor is %g", r->factor);
        if (r->kind >= OX_ROPE_LLAMA3)
            OX_TRY(check_range("the context before rotary scaling", r->original, 1, 1 << 26, err));
    }
    if (!(hp->epsilon >= 0))
        return OX_FAIL(err, OX_BAD_FILE, "the norms' epsilon is %g", (double)hp->epsilon);
    return check_range("the attention window", hp->window, 0, INT32_MAX, err);
}
