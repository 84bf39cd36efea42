/* arith.c - + - * / // % ** with Python's meaning: integers of 64 bits that refuse to overflow,
 * floats, and what strings and lists do with them. */
#include "text/jinja/builtin.h"

#include <math.h>

static ox_status overflow(ox_jstate *j)
{
    return OX_JFAIL(j, "an integer result does not fit in 64 bits");
}

static ox_status zero_division(ox_jstate *j)
{
    return OX_JFAIL(j, "division by zero");
}

static ox_status int_power(ox_jstate *j, int64_t a, int64_t b, ox_jval *out)
{
    if (b < 0) {
        if (!a) return zero_division(j);
        *out = ox_jfloat(pow((double)a, (double)b));
        return OX_OK;
    }
    int64_t r = 1, base = a;
    for (int64_t e = b; e; e >>= 1) {
        if ((e & 1) && __builtin_mul_overflow(r, base, &r)) return overflow(j);
        if (e > 1 && __builtin_mul_overflow(base, base, &base)) return overflow(j);
    }
    *out = ox_jint(r);
    return OX_OK;
}

static ox_status int_divide(ox_jstate *j, ox_jop op, int64_t a, int64_t b, ox_jval *out)
{
    if (!b) return zero_division(j);
    if (op == OX_JOP_DIV) {
        *out = ox_jfloat((double)((long double)a / (long double)b));
        return OX_OK;
    }
    if (a == INT64_MIN && b == -1) {
        if (op == OX_JOP_FLOORDIV) return overflow(j);
        *out = ox_jint(0);
        return OX_OK;
    }
    int64_t q = a / b, r = a % b;
    if (r && (r < 0) != (b < 0)) {
        q--;
        r += b;
    }
    *out = ox_jint(op == OX_JOP_MOD ? r : q);
    return OX_OK;
}

static ox_status int_arith(ox_jstate *j, ox_jop op, int64_t a, int64_t b, ox_jval *out)
{
    int64_t r = 0;
    switch (op) {
    case OX_JOP_ADD:
        if (__builtin_add_overflow(a, b, &r)) return overflow(j);
        break;
    case OX_JOP_SUB:
        if (__builtin_sub_overflow(a, b, &r)) return overflow(j);
        break;
    case OX_JOP_MUL:
        if (__builtin_mul_overflow(a, b, &r)) return overflow(j);
        break;
    case OX_JOP_POW:
        return int_power(j, a, b, out);
    default:
        return int_divide(j, op, a, b, out);
    }
    *out = ox_jint(r);
    return OX_OK;
}

/* Python's float // and %: the remainder has the sign of the divisor. */
static void float_divmod(double a, double b, double *quotient, double *rest)
{
    double mod = fmod(a, b), div = (a - mod) / b;
    if (mod < 0 || mod > 0) {
        if ((b < 0) != (mod < 0)) {
            mod += b;
            div -= 1.0;
        }
    } else {
        mod = copysign(0.0, b);
    }
    double whole = floor(div);
    if (div - whole > 0.5) whole += 1.0;
    *quotient = div < 0 || div > 0 ? whole : copysign(0.0, a / b);
    *rest = mod;
}

static ox_status float_arith(ox_jstate *j, ox_jop op, double a, double b, ox_jval *out)
{
    double q = 0, r = 0;
    const bool divides = op == OX_JOP_DIV || op == OX_JOP_FLOORDIV || op == OX_JOP_MOD;
    const bool b_zero = !(b < 0 || b > 0 || isnan(b));
    if (divides && b_zero) return zero_division(j);
    switch (op) {
    case OX_JOP_ADD:
        r = a + b;
        break;
    case OX_JOP_SUB:
        r = a - b;
        break;
    case OX_JOP_MUL:
        r = a * b;
        break;
    case OX_JOP_DIV:
        r = a / b;
        break;
    case OX_JOP_FLOORDIV:
        float_divmod(a, b, &r, &q);
        break;
    case OX_JOP_MOD:
        float_divmod(a, b, &q, &r);
        break;
    default:
        if (b < 0 && !(a < 0 || a > 0 || isnan(a))) return zero_division(j);
        if (a < 0 && b != floor(b)) return OX_JFAIL(j, "** with a complex result");
        r = pow(a, b);
        if (isinf(r) && !isinf(a) && !isinf(b)) return OX_JFAIL(j, "** result out of range");
        break;
    }
    *out = ox_jfloat(r);
    return OX_OK;
}

static ox_status add_seqs(ox_jstate *j, ox_jval a, ox_jval b, ox_jval *out)
{
    const ox_jseq *x = a.u.seq, *y = b.u.seq;
    ox_jseq *s;
    OX_TRY(ox_jspend(j, x->n + y->n));
    OX_TRY(ox_jseq_new(j, x->n + y->n, &s));
    for (size_t i = 0; i < x->n; i++)
        OX_TRY(ox_jseq_push(j, s, x->p[i]));
    for (size_t i = 0; i < y->n; i++)
        OX_TRY(ox_jseq_push(j, s, y->p[i]));
    *out = ox_jseqval((ox_jkind)a.kind, s);
    return OX_OK;
}

static ox_status repeat(ox_jstate *j, ox_jval a, int64_t times, ox_jval *out)
{
    const size_t n = ox_jis(a, OX_JKIND_STR) ? a.u.str->n : a.u.seq->n;
    size_t total;
    if (times < 0 || !n) times = 0;
    if (!ox_size_mul(n, (size_t)times, &total) || total > j->memory_max)
        return ox_jfail(j, OX_UNSUPPORTED, "the result of * is too long");
    OX_TRY(ox_jspend(j, (uint64_t)times));
    if (ox_jis(a, OX_JKIND_STR)) {
        ox_jbuf b = {0};
        for (int64_t i = 0; i < times; i++)
            OX_TRY(ox_jbuf_put_str(j, &b, a.u.str));
        return ox_jbuf_take(j, &b, out);
    }
    ox_jseq *s;
    OX_TRY(ox_jspend(j, total));
    OX_TRY(ox_jseq_new(j, total, &s));
    for (int64_t i = 0; i < times; i++)
        for (size_t k = 0; k < n; k++)
            OX_TRY(ox_jseq_push(j, s, a.u.seq->p[k]));
    *out = ox_jseqval((ox_jkind)a.kind, s);
    return OX_OK;
}

static bool repeats(ox_jval v)
{
    return ox_jis(v, OX_JKIND_STR) || ox_jis(v, OX_JKIND_LIST) || ox_jis(v, OX_JKIND_TUPLE);
}

static ox_status percent(ox_jstate *j, ox_jval a, ox_jval b, ox_jval *out)
{
    ox_jargs args = {.pos = &b, .n = 1};
    if (ox_jis(b, OX_JKIND_TUPLE)) args = (ox_jargs){.pos = b.u.seq->p, .n = b.u.seq->n};
    if (ox_jis(b, OX_JKIND_DICT)) {
        void *mem;
        OX_TRY(ox_jtake(j, b.u.dict->n + 1, sizeof(ox_jkwval), &mem));
        args.kw = mem;
        for (size_t i = 0; i < b.u.dict->n; i++)
            if (ox_jis(b.u.dict->p[i].key, OX_JKIND_STR))
                args.kw[args.n_kw++] =
                    (ox_jkwval){ox_jview(b.u.dict->p[i].key), b.u.dict->p[i].value};
    }
    return ox_jpercent(j, a.u.str, &args, out);
}

static const char *symbol(ox_jop op)
{
    static const char *const symbols[] = {"+", "-", "*", "/", "//", "%", "**"};
    return symbols[op - OX_JOP_ADD];
}

ox_status ox_jarith(ox_jstate *j, ox_jop op, ox_jval a, ox_jval b, ox_jval *out)
{
    const bool a_int = ox_jis_int(a), b_int = ox_jis_int(b);
    if (a_int && b_int) return int_arith(j, op, ox_jas_int(a), ox_jas_int(b), out);
    if ((a_int || ox_jis(a, OX_JKIND_FLOAT)) && (b_int || ox_jis(b, OX_JKIND_FLOAT)))
        return float_arith(j, op, a_int ? (double)ox_jas_int(a) : a.u.f,
                           b_int ? (double)ox_jas_int(b) : b.u.f, out);
    if (op == OX_JOP_ADD && a.kind == b.kind) {
        if (ox_jis(a, OX_JKIND_STR)) return ox_jstr_concat(j, a.u.str, b.u.str, out);
        if (ox_jis(a, OX_JKIND_LIST) || ox_jis(a, OX_JKIND_TUPLE)) return add_seqs(j, a, b, out);
    }
    if (op == OX_JOP_MUL && b_int && repeats(a)) return repeat(j, a, ox_jas_int(b), out);
    if (op == OX_JOP_MUL && a_int && repeats(b)) return repeat(j, b, ox_jas_int(a), out);
    if (ox_jis(a, OX_JKIND_UNDEFINED)) return ox_jundefined_error(j, a);
    if (op == OX_JOP_MOD && ox_jis(a, OX_JKIND_STR)) return percent(j, a, b, out);
    if (ox_jis(b, OX_JKIND_UNDEFINED)) return ox_jundefined_error(j, b);
    if (op == OX_JOP_ADD && (ox_jis(a, OX_JKIND_STR) || ox_jis(b, OX_JKIND_STR)))
        return OX_JFAIL(j, "can't add %s and %s; use ~ to join them as text", ox_jkind_name(a),
                        ox_jkind_name(b));
    return OX_JFAIL(j, "'%s' is not possible between %s and %s", symbol(op), ox_jkind_name(a),
                    ox_jkind_name(b));
}
