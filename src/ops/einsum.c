/* einsum.c - Einsum: explicit and implicit output, ellipsis, repeated letters. Every letter is one
 * loop; the ellipsis takes the numbered labels behind the letters. */
#include "ops/op_internal.h"

enum { LETTERS = 52, LABELS = LETTERS + OX_RANK_MAX };

typedef struct term {
    int label[2 * OX_RANK_MAX];
    int n;
} term;

static int letter_of(char ch)
{
    if (ch >= 'A' && ch <= 'Z') return ch - 'A';
    return ch >= 'a' && ch <= 'z' ? ch - 'a' + 26 : -1;
}

/* One term with `dots` dimensions behind its ellipsis; false when malformed. */
static bool parse_term(ox_str s, int dots, int dots_most, term *t)
{
    t->n = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == ' ') continue;
        if (s.p[i] == '.') {
            if (i + 2 >= s.n || s.p[i + 1] != '.' || s.p[i + 2] != '.' || dots < 0) return false;
            for (int k = 0; k < dots; k++) {
                if (t->n == OX_RANK_MAX) return false;
                t->label[t->n++] = LETTERS + dots_most - dots + k;
            }
            i += 2;
            continue;
        }
        const int l = letter_of(s.p[i]);
        if (l < 0 || t->n == OX_RANK_MAX) return false;
        t->label[t->n++] = l;
    }
    return true;
}

static int letters_in(ox_str s, bool *ellipsis)
{
    int n = 0;
    *ellipsis = false;
    for (size_t i = 0; i < s.n; i++) {
        n += letter_of(s.p[i]) >= 0;
        *ellipsis |= s.p[i] == '.';
    }
    return n;
}

typedef struct einsum {
    size_t n_in;
    const ox_tensor *in[OX_OP_LIST];
    double *v[OX_OP_LIST];
    term terms[OX_OP_LIST], out;
    int64_t size[LABELS]; /* -1 = unused */
} einsum;

static ox_status read_equation(ox_op_ctx *c, einsum *e)
{
    const ox_str eq = ox_node_str(c->node, "equation", "");
    const size_t arrow = ox_str_find(eq, OX_STR("->"), 0);
    ox_str left = {eq.p, arrow == SIZE_MAX ? eq.n : arrow}, parts[OX_OP_LIST];
    size_t n = 0, from = 0;
    int most = 0, count[LABELS] = {0}, dots[OX_OP_LIST];
    bool any = false;
    for (size_t i = 0; i <= left.n; i++) {
        if (i < left.n && left.p[i] != ',') continue;
        if (n == OX_OP_LIST) return OP_FAIL_AS(c, OX_UNSUPPORTED, "has too many terms");
        parts[n++] = (ox_str){left.p + from, i - from};
        from = i + 1;
    }
    if (n != e->n_in) return OP_FAIL(c, "its equation has %zu terms for %zu inputs", n, e->n_in);
    for (size_t i = 0; i < n; i++) {
        bool ellipsis;
        dots[i] = e->in[i]->rank - letters_in(parts[i], &ellipsis);
        if (!ellipsis && dots[i]) return OP_FAIL(c, "term %zu does not fit its input's rank", i);
        if (ellipsis && dots[i] > most) most = dots[i];
        any |= ellipsis;
    }
    for (size_t i = 0; i < n; i++) {
        if (!parse_term(parts[i], dots[i], most, &e->terms[i]) || e->terms[i].n != e->in[i]->rank)
            return OP_FAIL(c, "its equation is malformed");
        for (int k = 0; k < e->terms[i].n; k++)
            count[e->terms[i].label[k]]++;
    }
    if (arrow != SIZE_MAX) {
        const ox_str right = {eq.p + arrow + 2, eq.n - arrow - 2};
        if (!parse_term(right, most, most, &e->out)) return OP_FAIL(c, "its equation is malformed");
        return OX_OK;
    }
    for (int k = 0; any && k < most; k++)
        e->out.label[e->out.n++] = LETTERS + k;
    for (int l = 0; l < LETTERS; l++)
        if (count[l] == 1 && e->out.n < OX_RANK_MAX) e->out.label[e->out.n++] = l;
    return OX_OK;
}

ox_status ox_op_eval_einsum(ox_op_ctx *c)
{
    einsum e = {.n_in = c->n_in};
    int order[LABELS], n_labels = 0;
    int64_t sizes[LABELS], at[LABELS] = {0}, dims[OX_RANK_MAX];
    size_t strides[OX_OP_LIST + 1][LABELS] = {{0}}, s[OX_RANK_MAX];
    bool in_out[LABELS] = {false};
    ox_tensor *y;
    void *q;
    if (c->n_in > 16) return OP_FAIL_AS(c, OX_UNSUPPORTED, "has %zu inputs", c->n_in);
    for (size_t i = 0; i < e.n_in; i++)
        e.in[i] = ox_op_in(c, i);
    OX_TRY(read_equation(c, &e));
    for (int l = 0; l < LABELS; l++)
        e.size[l] = -1;
    for (size_t i = 0; i < e.n_in; i++) {
        for (int k = 0; k < e.terms[i].n; k++) {
            int64_t *d = &e.size[e.terms[i].label[k]];
            if (*d >= 0 && *d != 1 && e.in[i]->dims[k] != 1 && *d != e.in[i]->dims[k])
                return OP_FAIL(c, "its inputs disagree about a dimension");
            if (*d < 0 || *d == 1) *d = e.in[i]->dims[k];
        }
    }
    for (int k = 0; k < e.out.n; k++) {
        const int l = e.out.label[k];
        if (e.size[l] < 0 || in_out[l]) return OP_FAIL(c, "its output names a letter badly");
        in_out[l] = true;
        order[n_labels++] = l;
        dims[k] = e.size[l];
    }
    for (int l = 0; l < LABELS; l++)
        if (e.size[l] >= 0 && !in_out[l]) order[n_labels++] = l;
    size_t inner = 1;
    for (int k = 0; k < n_labels; k++) {
        sizes[k] = e.size[order[k]];
        if (k >= e.out.n && !ox_size_mul(inner, (size_t)sizes[k], &inner))
            return OP_FAIL_AS(c, OX_LIMIT, "is too large");
    }
    for (size_t i = 0; i < e.n_in; i++) {
        ox_op_strides(e.in[i], e.in[i]->rank, s);
        for (int k = 0; k < n_labels; k++)
            for (int m = 0; m < e.terms[i].n; m++)
                if (e.terms[i].label[m] == order[k]) strides[i][k] += s[m];
        OX_TRY(ox_op_doubles(c, e.in[i], &e.v[i]));
    }
    OX_TRY(ox_op_out(c, 0, e.in[0]->dtype, e.out.n, dims, &y));
    const size_t n = ox_op_size(y);
    OX_TRY(ox_op_work(c, n, inner, e.n_in));
    OX_TRY(ox_op_temp(c, n, sizeof(ox_lane), &q));
    ox_lane *out = q;
    for (size_t o = 0; o < n; o++) {
        double sum = 0;
        for (size_t i = 0; i < inner; i++) {
            double p = 1;
            for (size_t k = 0; k < e.n_in; k++)
                p *= e.v[k][ox_op_offset(at, strides[k], n_labels)];
            sum += p;
            if (!(i & 0xfffff)) OX_TRY(ox_op_cancelled(c));
            (void)ox_op_next(at, sizes, n_labels);
        }
        if (ox_dtype_is_float(y->dtype))
            out[o].f = sum;
        else
            out[o].i = ox_lane_int(sum);
        if (!(o & 1023)) OX_TRY(ox_op_cancelled(c));
    }
    ox_lane_store(y->dtype, y->data, 0, n, out);
    return OX_OK;
}
