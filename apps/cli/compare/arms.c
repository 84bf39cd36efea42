/* arms.c - the text of an arm: KIND[:DEVICE][@KEY=VALUE]... in pieces. */
#include "cli/compare/compare.h"

#include <stddef.h>

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

ox_status arm_spec_parse(arm_spec *a, const char *text, ox_err *err)
{
    int64_t n;
    *a = (arm_spec){.name = text};
    a->copy = ox_strdup_n(text, strlen(text));
    if (!a->copy) return OX_FAIL(err, OX_NO_MEMORY, "no memory for an arm");
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
                       text, a->threads);
    for (size_t i = 0; i < OX_COUNT(kinds); i++)
        if (!strcmp(kinds[i].name, a->kind))
            return kinds[i].refused ? OX_FAIL(err, OX_UNSUPPORTED, "%s", kinds[i].refused) : OX_OK;
    return OX_FAIL(err, OX_BAD_ARGUMENT,
                   "--arms: there is no arm '%s'; expected native, ort or oga", a->kind);
}

void arm_spec_free(arm_spec *a)
{
    ox_free(a->copy);
    ox_vec_deinit(&a->ort);
    *a = (arm_spec){0};
}
