/* arms.c - the text of an arm: KIND[:DEVICE][@KEY=VALUE]... in pieces. */
#include "cli/compare/compare.h"

#include <stddef.h>
#include <stdio.h>

static const struct {
    const char *name, *refused;
} kinds[] = {
#define OX_ARM(name, refused, what) {name, refused},
#include "cli/compare/arms.def"
#undef OX_ARM
};

static const struct {
    const char *key;
    size_t member;
} keys[] = {
    {"numerics", offsetof(arm_spec, numerics)}, {"kv", offsetof(arm_spec, kv)},
    {"threads", offsetof(arm_spec, threads)},   {"exe", offsetof(arm_spec, exe)},
    {"tier", offsetof(arm_spec, tier)},         {"lib", offsetof(arm_spec, lib)},
    {"model", offsetof(arm_spec, model)},
};

static ox_status set_key(arm_spec *a, char *piece, ox_err *err)
{
    char *eq = strchr(piece, '=');
    if (eq) {
        *eq = 0;
        if (!strcmp(piece, "ort"))
            return ox_vec_push(&a->ort, eq + 1) ? OX_OK : OX_FAIL(err, OX_NO_MEMORY, "no memory");
        for (size_t i = 0; i < OX_COUNT(keys); i++)
            if (!strcmp(keys[i].key, piece)) {
                *(const char **)(void *)((char *)a + keys[i].member) = eq + 1;
                return OX_OK;
            }
    }
    return OX_FAIL(err, OX_BAD_ARGUMENT,
                   "--arms %s: @%s is not known; expected @numerics=, @kv=, @threads=, @exe=, "
                   "@tier=, @lib=, @model= or @ort=K=V",
                   a->name, piece);
}

static ox_status spec_parse(arm_spec *a, ox_str text, ox_err *err)
{
    int64_t n;
    *a = (arm_spec){.text = ox_strdup_n(text.p, text.n), .copy = ox_strdup_n(text.p, text.n)};
    a->name = a->text;
    if (!a->copy || !a->text) return OX_FAIL(err, OX_NO_MEMORY, "no memory for an arm");
    a->kind = a->copy;
    char *next = strchr(a->copy, '@');
    while (next) {
        *next = 0;
        char *piece = next + 1;
        next = strchr(piece, '@');
        if (next) *next = 0;
        OX_TRY(set_key(a, piece, err));
    }
    char *colon = strchr(a->copy, ':');
    if (colon) {
        *colon = 0;
        a->device = colon + 1;
    }
    if (a->threads && (!ox_str_to_i64(ox_str_of(a->threads), &n) || n < 1 || n > 4096))
        return OX_FAIL(err, OX_BAD_ARGUMENT, "--arms %s: threads must be 1 or more, found '%s'",
                       a->name, a->threads);
    for (size_t i = 0; i < OX_COUNT(kinds); i++)
        if (!strcmp(kinds[i].name, a->kind))
            return kinds[i].refused ? OX_FAIL(err, OX_UNSUPPORTED, "%s", kinds[i].refused) : OX_OK;
    return OX_FAIL(err, OX_BAD_ARGUMENT,
                   "--arms: there is no arm '%s'; expected native, ort or oga", a->kind);
}

static void spec_free(arm_spec *a)
{
    ox_free(a->text);
    ox_free(a->copy);
    ox_vec_deinit(&a->ort);
    *a = (arm_spec){0};
}

ox_status arm_list_parse(arm **arms, size_t *n, const char *text, ox_err *err)
{
    *n = 0;
    *arms = ox_calloc(ARMS_MOST, sizeof(**arms));
    if (!*arms) return OX_FAIL(err, OX_NO_MEMORY, "no memory for arms");
    for (const char *at = text;;) {
        const size_t len = strcspn(at, ",");
        ox_err refused = OX_ERR_INIT;
        if (*n == ARMS_MOST)
            return OX_FAIL(err, OX_BAD_ARGUMENT, "--arms: at most %d arms", ARMS_MOST);
        arm *a = &(*arms)[(*n)++];
        const ox_status st = spec_parse(&a->spec, (ox_str){at, len}, &refused);
        if (st == OX_UNSUPPORTED)
            snprintf(a->reason, sizeof(a->reason), "%.*s", REASON_MOST - 1, refused.msg);
        else if (st)
            return OX_FAIL(err, st, "%s", refused.msg);
        if (!at[len]) return OX_OK;
        at += len + 1;
    }
}

void arm_list_free(arm *arms, size_t n)
{
    for (size_t i = 0; i < n; i++)
        spec_free(&arms[i].spec);
    ox_free(arms);
}
