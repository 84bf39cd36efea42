/* numbers.c - the numeric options as a table: defaults, setting by name, ranges. */
#include "base/str.h"
#include "sample/sample.h"
#include "sample/sample_internal.h"

#include <math.h>
#include <string.h>

typedef struct number_row {
    const char *name;
    size_t member; /* offset */
    bool is_int;
    double initial, least, most;
    const char *expected;
} number_row;

#define IS_F false
#define IS_I true
static const number_row rows[] = {
#define OX_NUMBER(member, kind, initial, least, most, expected)                                    \
    {#member, offsetof(ox_sampler_options, member), IS_##kind, initial, least, most, expected},
#include "sample/numbers.def"
#undef OX_NUMBER
};

static void put(ox_sampler_options *o, const number_row *r, double v)
{
    void *at = (char *)o + r->member;
    if (r->is_int)
        *(int32_t *)at = (int32_t)v;
    else
        *(float *)at = (float)v;
}

static double get(const ox_sampler_options *o, const number_row *r)
{
    const void *at = (const char *)o + r->member;
    return r->is_int ? (double)*(const int32_t *)at : (double)*(const float *)at;
}

static ox_status check(const number_row *r, double v, ox_err *err)
{
    const double slack = r->is_int ? 0 : 1e-6; /* a bound as a float may lie outside */
    if (v >= r->least - slack * fabs(r->least) && v <= r->most + slack * fabs(r->most) &&
        (!r->is_int || v == floor(v)))
        return OX_OK;
    char name[40];
    size_t n = 0;
    for (; r->name[n] && n + 1 < sizeof(name); n++)
        name[n] = r->name[n] == '_' ? '-' : r->name[n];
    name[n] = 0;
    return OX_FAIL(err, OX_BAD_ARGUMENT, "%s must be %s, found %g", name, r->expected, v);
}

void ox_sampler_options_init(ox_sampler_options *o)
{
    *o = (ox_sampler_options){.struct_size = sizeof(*o)};
    for (size_t i = 0; i < OX_COUNT(rows); i++)
        put(o, &rows[i], rows[i].initial);
}

static bool same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (*a != *b && !(*a == '-' && *b == '_')) return false;
    return *a == *b;
}

ox_status ox_sampler_options_set(ox_sampler_options *o, const char *name, double value, ox_err *err)
{
    for (size_t i = 0; i < OX_COUNT(rows); i++) {
        if (!same_name(name, rows[i].name)) continue;
        if (rows[i].member >= o->struct_size) break;
        OX_TRY(check(&rows[i], value, err));
        put(o, &rows[i], value);
        return OX_OK;
    }
    return OX_FAIL(err, OX_BAD_ARGUMENT, "sampler option '%s' is not known; see docs/samplers.md",
                   name);
}

bool ox_sampler_is_basic(const ox_sampler_options *o)
{
    static const char *const basic[] = {
        "temperature",       "top_k",           "top_p", "min_p", "repetition_penalty",
        "frequency_penalty", "presence_penalty"};
    for (size_t i = 0; i < OX_COUNT(rows); i++) {
        bool known = false;
        for (size_t k = 0; k < OX_COUNT(basic); k++)
            known |= !strcmp(rows[i].name, basic[k]);
        if (!known && get(o, &rows[i]) != (double)(float)rows[i].initial) return false;
    }
    return !o->order && !o->n_bias && !o->n_suppress && !o->n_begin_suppress && !o->n_bad_words &&
           !o->n_forced;
}

ox_status ox_sampler_check(const ox_sampler_options *o, ox_err *err)
{
    for (size_t i = 0; i < OX_COUNT(rows); i++)
        OX_TRY(check(&rows[i], get(o, &rows[i]), err));
    return OX_OK;
}
