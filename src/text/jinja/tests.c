/* tests.c - what may follow "is". */
#include "text/jinja/builtin.h"

static ox_status yes(bool b, ox_jval *out)
{
    *out = ox_jbool(b);
    return OX_OK;
}

static ox_status remainder_is(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval by, int64_t want,
                              ox_jval *out)
{
    ox_jval r;
    bool same;
    OX_TRY(ox_jarith(j, OX_JOP_MOD, c->self, by, &r));
    OX_TRY(ox_jequal(j, r, ox_jint(want), &same));
    return yes(same, out);
}

ox_status ox_jf_test_odd(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return remainder_is(j, c, ox_jint(2), 1, out);
}

ox_status ox_jf_test_even(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return remainder_is(j, c, ox_jint(2), 0, out);
}

ox_status ox_jf_test_divisibleby(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return remainder_is(j, c, c->arg[0], 0, out);
}

#define KIND_TEST(name, condition)                                                                 \
    ox_status ox_jf_test_##name(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)             \
    {                                                                                              \
        const ox_jval v = c->self;                                                                 \
        (void)j;                                                                                   \
        return yes(condition, out);                                                                \
    }

KIND_TEST(defined, v.kind != OX_JKIND_UNDEFINED)
KIND_TEST(undefined, v.kind == OX_JKIND_UNDEFINED)
KIND_TEST(none, v.kind == OX_JKIND_NONE)
KIND_TEST(boolean, v.kind == OX_JKIND_BOOL)
KIND_TEST(true, v.kind == OX_JKIND_BOOL && v.u.b)
KIND_TEST(false, v.kind == OX_JKIND_BOOL && !v.u.b)
KIND_TEST(integer, v.kind == OX_JKIND_INT)
KIND_TEST(float, v.kind == OX_JKIND_FLOAT)
KIND_TEST(number, v.kind == OX_JKIND_FLOAT || ox_jis_int(v))
KIND_TEST(string, v.kind == OX_JKIND_STR)
KIND_TEST(mapping, v.kind == OX_JKIND_DICT)
KIND_TEST(sequence, v.kind == OX_JKIND_STR || v.kind == OX_JKIND_LIST || v.kind == OX_JKIND_TUPLE ||
                        v.kind == OX_JKIND_RANGE || v.kind == OX_JKIND_DICT ||
                        v.kind == OX_JKIND_UNDEFINED)
KIND_TEST(iterable, v.kind == OX_JKIND_STR || ox_jis_seq(v) || v.kind == OX_JKIND_DICT ||
                        v.kind == OX_JKIND_UNDEFINED || v.kind == OX_JKIND_LOOP)
KIND_TEST(callable, v.kind == OX_JKIND_MACRO || v.kind == OX_JKIND_BUILTIN ||
                        v.kind == OX_JKIND_BOUND || v.kind == OX_JKIND_LOOP ||
                        v.kind == OX_JKIND_JOINER || v.kind == OX_JKIND_UNDEFINED)
KIND_TEST(filter, v.kind == OX_JKIND_STR && ox_jfilter_find(ox_jview(v)))
KIND_TEST(test, v.kind == OX_JKIND_STR && ox_jtest_find(ox_jview(v)))
KIND_TEST(escaped, false && v.kind)

ox_status ox_jf_test_lower(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    const ox_jstr *s;
    OX_TRY(ox_jself_str(j, c, &s));
    OX_TRY(ox_jspend_bytes(j, s->n));
    return yes(ox_jis_lower((ox_str){s->p, s->n}), out);
}

ox_status ox_jf_test_upper(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    const ox_jstr *s;
    OX_TRY(ox_jself_str(j, c, &s));
    OX_TRY(ox_jspend_bytes(j, s->n));
    return yes(ox_jis_upper((ox_str){s->p, s->n}), out);
}

/* The same object; small values are the same when they are equal. */
ox_status ox_jf_test_sameas(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    bool same = c->self.kind == c->arg[0].kind;
    if (same && c->self.kind >= OX_JKIND_LIST)
        same = c->self.u.seq == c->arg[0].u.seq;
    else if (same)
        OX_TRY(ox_jequal(j, c->self, c->arg[0], &same));
    return yes(same, out);
}

ox_status ox_jf_test_in(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    bool found;
    OX_TRY(ox_jcontains(j, c->self, c->arg[0], &found));
    return yes(found, out);
}

ox_status ox_jf_test_eq(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    bool same;
    OX_TRY(ox_jequal(j, c->self, c->arg[0], &same));
    return yes(same, out);
}

ox_status ox_jf_test_ne(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    bool same;
    OX_TRY(ox_jequal(j, c->self, c->arg[0], &same));
    return yes(!same, out);
}

ox_status ox_jf_test_lt(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    int order;
    OX_TRY(ox_jcompare(j, c->self, c->arg[0], "<", &order));
    return yes(order == -1, out);
}

ox_status ox_jf_test_le(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    int order;
    OX_TRY(ox_jcompare(j, c->self, c->arg[0], "<=", &order));
    return yes(order == -1 || order == 0, out);
}

ox_status ox_jf_test_gt(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    int order;
    OX_TRY(ox_jcompare(j, c->self, c->arg[0], ">", &order));
    return yes(order == 1, out);
}

ox_status ox_jf_test_ge(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    int order;
    OX_TRY(ox_jcompare(j, c->self, c->arg[0], ">=", &order));
    return yes(order == 1 || order == 0, out);
}
