/* dfa_parse.c - a pattern in PCRE2's dialect as a program for dfa.c. What it does not know makes it
 * give up: the pattern is then left to PCRE2. */
#include "text/tok/dfa_internal.h"
#include "text/unicode.h"

#include <stdlib.h>

enum { MAX_DEPTH = 40, MAX_REPEAT = 64 };

typedef enum category {
    CN,
    LU,
    LL,
    LT,
    LM,
    LO,
    MN,
    MC,
    ME,
    ND,
    NL,
    NO,
    PC,
    PD,
    PS,
    PE,
    PI,
    PF,
    PO,
    SM,
    SC,
    SK,
    SO,
    ZS,
    ZL,
    ZP,
    CC,
    CF,
    CO,
    N_CATEGORIES
} category;

static const struct {
    uint32_t first, last;
    category category;
} assigned[] = {
#define U(first, last, category) {first, last, category},
#include "text/unicode_ranges.def"
#undef U
};

static const ox_dfa_range han[] = {
#define H(first, last, on) {first, last},
#include "text/han.def"
#undef H
};

typedef struct parser {
    ox_dfa_program *prog;
    ox_str in;
    size_t at;
    int depth;
    bool fold, dot_all;
} parser;

static bool more(const parser *p)
{
    return p->at < p->in.n;
}

static char peek(const parser *p, size_t ahead)
{
    return p->in.n - p->at > ahead ? p->in.p[p->at + ahead] : 0;
}

static bool accept(parser *p, const char *z)
{
    if (!ox_str_starts((ox_str){p->in.p + p->at, p->in.n - p->at}, ox_str_of(z))) return false;
    p->at += strlen(z);
    return true;
}

/* ---- sets */

static bool put_range(parser *p, ox_dfa_set *set, uint32_t first, uint32_t last)
{
    if (ox_vec_push(set, (ox_dfa_range){first, last})) return true;
    p->prog->failed = true;
    return false;
}

static int by_first(const void *a, const void *b)
{
    const ox_dfa_range *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

static void tidy(ox_dfa_set *set)
{
    size_t n = 0;
    if (set->n) qsort(set->p, set->n, sizeof(*set->p), by_first);
    for (size_t i = 0; i < set->n; i++) {
        if (n && set->p[i].first <= set->p[n - 1].last + 1) {
            if (set->p[i].last > set->p[n - 1].last) set->p[n - 1].last = set->p[i].last;
        } else {
            set->p[n++] = set->p[i];
        }
    }
    set->n = n;
}

/* Adds all that is not in `of`, which is tidy. */
static bool put_rest(parser *p, ox_dfa_set *set, const ox_dfa_set *of)
{
    uint32_t from = 0;
    for (size_t i = 0; i < of->n; i++) {
        if (of->p[i].first > from && !put_range(p, set, from, of->p[i].first - 1)) return false;
        from = of->p[i].last + 1;
    }
    return from > 0x10ffff || put_range(p, set, from, 0x10ffff);
}

/* One or two letters of a general category as a set of bits; 0 when there is none such. */
static uint32_t categories_of(ox_str name)
{
    static const char names[N_CATEGORIES][3] = {
        "Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps",
        "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co"};
    uint32_t bits = 0;
    for (unsigned i = 0; i < N_CATEGORIES; i++) {
        if (name.n >= 1 && name.n <= 2 && !memcmp(names[i], name.p, name.n)) bits |= 1u << i;
    }
    return bits;
}

static bool put_property(parser *p, ox_str name, ox_dfa_set *set)
{
    const uint32_t bits = categories_of(name);
    ox_dfa_set listed = {0};
    bool ok = true;
    if (ox_str_is(name, "sc:Han")) {
        for (size_t i = 0; ok && i < OX_COUNT(han); i++)
            ok = put_range(p, set, han[i].first, han[i].last);
        return ok;
    }
    if (ox_str_is(name, "Any")) return put_range(p, set, 0, 0x10ffff);
    if (!bits) return false;
    for (size_t i = 0; ok && i < OX_COUNT(assigned); i++) {
        if (bits >> assigned[i].category & 1)
            ok = put_range(p, set, assigned[i].first, assigned[i].last);
        if (bits & 1u << CN) ok = ok && put_range(p, &listed, assigned[i].first, assigned[i].last);
    }
    if (ok && bits & 1u << CN) {
        tidy(&listed);
        ok = put_rest(p, set, &listed);
    }
    ox_vec_deinit(&listed);
    return ok;
}

/* At \p{name} or \P{name}, behind the letter. */
static bool property(parser *p, bool inverted, ox_dfa_set *set)
{
    const size_t end = ox_str_find(p->in, OX_STR("}"), p->at);
    if (!accept(p, "{") || end == SIZE_MAX) return false;
    const ox_str name = {p->in.p + p->at, end - p->at};
    ox_dfa_set inner = {0};
    p->at = end + 1;
    if (!inverted) return put_property(p, name, set);
    bool ok = put_property(p, name, &inner);
    tidy(&inner);
    ok = ok && put_rest(p, set, &inner);
    ox_vec_deinit(&inner);
    return ok;
}

static bool hex_escape(parser *p, uint32_t *c)
{
    const bool braces = accept(p, "{");
    size_t digits = 0;
    *c = 0;
    for (; digits < (braces ? 6 : 2); digits++, p->at++) {
        const char d = peek(p, 0);
        if (d >= '0' && d <= '9')
            *c = *c * 16 + (uint32_t)(d - '0');
        else if ((d | 32) >= 'a' && (d | 32) <= 'f')
            *c = *c * 16 + (uint32_t)((d | 32) - 'a' + 10);
        else
            break;
    }
    return digits && *c <= 0x10ffff && (!braces || accept(p, "}"));
}

/* Behind a backslash: a single character into *c, or a class added to *set (*single false). */
static bool escape(parser *p, ox_dfa_set *set, uint32_t *c, bool *single)
{
    static const char letters[][2] = {{'t', '\t'}, {'n', '\n'}, {'r', '\r'},
                                      {'f', '\f'}, {'a', '\a'}, {'e', 27}};
    const char e = peek(p, 0);
    *single = true;
    if (!e) return false;
    if ((e >= '0' && e <= '9') || (e | 32) < 'a' || (e | 32) > 'z' || e < 'A') {
        if (e >= '0' && e <= '9') return false;
        const char *q = p->in.p + p->at;
        *c = ox_utf8_next(&q);
        p->at = (size_t)(q - p->in.p);
        return true;
    }
    p->at++;
    for (size_t i = 0; i < OX_COUNT(letters); i++) {
        if (e != letters[i][0]) continue;
        *c = (uint32_t)letters[i][1];
        return true;
    }
    if (e == 'x') return hex_escape(p, c);
    *single = false;
    if (p->fold) return false;
    if (e == 'p' || e == 'P') return property(p, e == 'P', set);
    if (e == 'd') return put_property(p, OX_STR("Nd"), set);
    return false;
}

static bool is_ascii_letter(uint32_t c)
{
    return (c | 32) >= 'a' && (c | 32) <= 'z' && c < 0x80;
}

/* One character in both cases when cases do not count. */
static bool put_folded(parser *p, ox_dfa_set *set, uint32_t c)
{
    if (!p->fold || (c < 0x80 && !is_ascii_letter(c))) return put_range(p, set, c, c);
    if (c >= 0x80) return false;
    if ((c | 32) == 's' && !put_range(p, set, 0x17f, 0x17f)) return false;
    if ((c | 32) == 'k' && !put_range(p, set, 0x212a, 0x212a)) return false;
    return put_range(p, set, c | 32, c | 32) && put_range(p, set, c & ~32u, c & ~32u);
}

static bool class_char(parser *p, ox_dfa_set *set, uint32_t *c, bool *single)
{
    if (accept(p, "\\")) return escape(p, set, c, single);
    if (peek(p, 0) == '[' && (peek(p, 1) == ':' || peek(p, 1) == '.' || peek(p, 1) == '='))
        return false;
    const char *q = p->in.p + p->at;
    if (!more(p)) return false;
    *c = ox_utf8_next(&q);
    *single = true;
    p->at = (size_t)(q - p->in.p);
    return true;
}

/* Behind the opening bracket. */
static bool class_items(parser *p, ox_dfa_set *set)
{
    for (bool first = true; first || peek(p, 0) != ']'; first = false) {
        uint32_t from, to;
        bool single, single_end;
        if (!more(p) || !class_char(p, set, &from, &single)) return false;
        if (!single) continue;
        if (peek(p, 0) != '-' || peek(p, 1) == ']') {
            if (!put_folded(p, set, from)) return false;
            continue;
        }
        p->at++;
        if (!class_char(p, set, &to, &single_end) || !single_end || to < from || p->fold)
            return false;
        if (!put_range(p, set, from, to)) return false;
    }
    return accept(p, "]");
}

static bool character_class(parser *p, ox_dfa_set *set)
{
    ox_dfa_set items = {0};
    const bool inverted = accept(p, "^");
    bool ok = class_items(p, &items);
    tidy(&items);
    if (!inverted) {
        *set = items;
        return ok;
    }
    ok = ok && put_rest(p, set, &items);
    ox_vec_deinit(&items);
    return ok;
}

/* The number of a set that equals *set, which is taken over. */
static bool number_of(parser *p, ox_dfa_set *set, uint16_t *number)
{
    ox_dfa_program *prog = p->prog;
    tidy(set);
    for (size_t i = 0; i < prog->n_sets; i++) {
        if (prog->sets[i].n != set->n ||
            (set->n && memcmp(prog->sets[i].p, set->p, set->n * sizeof(*set->p)) != 0))
            continue;
        ox_vec_deinit(set);
        *number = (uint16_t)i;
        return true;
    }
    if (prog->n_sets == OX_DFA_MAX_SETS) {
        ox_vec_deinit(set);
        return false;
    }
    *number = (uint16_t)prog->n_sets;
    prog->sets[prog->n_sets++] = *set;
    return true;
}

/* ---- steps */

static bool emit(parser *p, ox_dfa_op op, size_t a, size_t b)
{
    if (p->prog->steps.n >= OX_DFA_MAX_STEPS) return false;
    if (ox_vec_push(&p->prog->steps, (ox_dfa_step){(uint16_t)op, (uint16_t)a, (uint16_t)b}))
        return true;
    p->prog->failed = true;
    return false;
}

static bool is_jump(const ox_dfa_step *s)
{
    return s->op == OX_DFA_SPLIT || s->op == OX_DFA_JUMP;
}

/* Moves the targets of the steps from `begin` on by `by`. */
static void move_targets(parser *p, size_t begin, size_t by)
{
    for (size_t i = begin; i < p->prog->steps.n; i++) {
        ox_dfa_step *s = &p->prog->steps.p[i];
        if (!is_jump(s)) continue;
        s->a = (uint16_t)(s->a + by);
        if (s->op == OX_DFA_SPLIT) s->b = (uint16_t)(s->b + by);
    }
}

/* Makes room for one step before those from `at` on; targets inside move along. */
static bool insert(parser *p, size_t at, ox_dfa_step step)
{
    if (!emit(p, OX_DFA_DONE, 0, 0)) return false;
    ox_dfa_step *s = p->prog->steps.p;
    memmove(s + at + 1, s + at, (p->prog->steps.n - 1 - at) * sizeof(*s));
    for (size_t i = 0; i < p->prog->n_possessive; i++)
        p->prog->possessive[i].after =
            (uint16_t)(p->prog->possessive[i].after + (p->prog->possessive[i].after > at));
    move_targets(p, at + 1, 1);
    s[at] = step;
    return true;
}

/* Another copy of steps [begin, end) at the end of the program. */
static bool copy(parser *p, size_t begin, size_t end)
{
    const size_t at = p->prog->steps.n;
    for (size_t i = begin; i < end; i++) {
        const ox_dfa_step s = p->prog->steps.p[i];
        if (!emit(p, (ox_dfa_op)s.op, s.a, s.b)) return false;
    }
    move_targets(p, at, at - begin);
    return true;
}

static bool optional(parser *p, size_t begin, bool lazy)
{
    const size_t end = p->prog->steps.n + 1;
    ox_dfa_step s = {OX_DFA_SPLIT, (uint16_t)(begin + 1), (uint16_t)end};
    if (lazy) s = (ox_dfa_step){OX_DFA_SPLIT, s.b, s.a};
    return insert(p, begin, s);
}

static bool again(parser *p, size_t begin, bool lazy)
{
    const size_t end = p->prog->steps.n + 1;
    return lazy ? emit(p, OX_DFA_SPLIT, end, begin) : emit(p, OX_DFA_SPLIT, begin, end);
}

/* A repeat of what may be empty would need more care than it is worth. */
static bool may_be_empty(const parser *p, size_t begin)
{
    const size_t end = p->prog->steps.n;
    bool *seen = ox_calloc(end - begin + 1, sizeof(*seen));
    if (!seen) return true;
    seen[0] = true;
    for (bool grown = true; grown;) {
        grown = false;
        for (size_t i = begin; i < end; i++) {
            const ox_dfa_step s = p->prog->steps.p[i];
            if (!seen[i - begin] || s.op == OX_DFA_CHAR) continue;
            const size_t to[2] = {is_jump(&s) ? s.a : i + 1, s.op == OX_DFA_SPLIT ? s.b : i + 1};
            for (size_t k = 0; k < 2; k++) {
                if (k && s.op != OX_DFA_SPLIT) break;
                if (to[k] < begin || to[k] > end || seen[to[k] - begin]) continue;
                seen[to[k] - begin] = grown = true;
            }
        }
    }
    const bool empty = seen[end - begin];
    ox_free(seen);
    return empty;
}

static bool counted(parser *p, size_t begin, size_t least, size_t most, bool lazy)
{
    const size_t end = p->prog->steps.n;
    size_t last = begin;
    for (size_t i = 1; i < least; i++) {
        last = p->prog->steps.n;
        if (!copy(p, begin, end)) return false;
    }
    if (most == SIZE_MAX) return again(p, last, lazy);
    const size_t n = most - least;
    size_t splits[MAX_REPEAT];
    for (size_t i = 0; i < n; i++) {
        splits[i] = p->prog->steps.n;
        if (!emit(p, OX_DFA_SPLIT, 0, 0) || !copy(p, begin, end)) return false;
    }
    for (size_t i = 0; i < n; i++) {
        ox_dfa_step *s = &p->prog->steps.p[splits[i]];
        const uint16_t body = (uint16_t)(splits[i] + 1), out = (uint16_t)p->prog->steps.n;
        *s = (ox_dfa_step){OX_DFA_SPLIT, lazy ? out : body, lazy ? body : out};
    }
    return true;
}

static bool number(parser *p, size_t *n)
{
    const size_t from = p->at;
    *n = 0;
    for (; peek(p, 0) >= '0' && peek(p, 0) <= '9' && p->at < from + 3; p->at++)
        *n = *n * 10 + (size_t)(peek(p, 0) - '0');
    return p->at > from;
}

static bool interval(parser *p, size_t *least, size_t *most)
{
    *least = 0;
    if (!number(p, least) && peek(p, 0) != ',') return false;
    *most = *least;
    if (accept(p, ",") && !number(p, most)) *most = SIZE_MAX;
    return accept(p, "}") && *most >= *least && *least >= 1 && *least <= MAX_REPEAT &&
           (*most == SIZE_MAX || *most - *least <= MAX_REPEAT);
}

typedef struct repeat {
    size_t least, most;
    bool some; /* there is one at all */
} repeat;

static bool read_repeat(parser *p, repeat *r)
{
    *r = (repeat){1, 1, true};
    if (accept(p, "*")) {
        r->least = 0;
        r->most = SIZE_MAX;
    } else if (accept(p, "+")) {
        r->most = SIZE_MAX;
    } else if (accept(p, "?")) {
        r->least = 0;
    } else if (accept(p, "{")) {
        return interval(p, &r->least, &r->most);
    } else {
        r->some = false;
    }
    return true;
}

/* Runs that give nothing back are checked in one place only. */
static bool holds_possessive(const parser *p, size_t begin)
{
    for (size_t i = 0; i < p->prog->n_possessive; i++) {
        if (p->prog->possessive[i].after > begin) return true;
    }
    return false;
}

static bool quantifier(parser *p, size_t begin)
{
    ox_dfa_program *prog = p->prog;
    repeat r;
    if (!read_repeat(p, &r)) return false;
    if (!r.some) return true;
    if (may_be_empty(p, begin) || holds_possessive(p, begin)) return false;
    const bool lazy = accept(p, "?"), possessive = !lazy && accept(p, "+");
    const bool one = prog->steps.n == begin + 1;
    const uint16_t set = prog->steps.p[begin].a;
    if (possessive && (!one || prog->n_possessive == OX_DFA_MAX_POSSESSIVE)) return false;
    if (r.least == 0 && r.most == SIZE_MAX) {
        if (!again(p, begin, lazy) || !optional(p, begin, lazy)) return false;
    } else if (r.least == 0) {
        if (!optional(p, begin, lazy)) return false;
    } else if (!counted(p, begin, r.least, r.most, lazy)) {
        return false;
    }
    if (possessive) {
        prog->possessive[prog->n_possessive].set = set;
        prog->possessive[prog->n_possessive++].after = (uint16_t)prog->steps.n;
    }
    return !more(p) || !strchr("*+?{", peek(p, 0));
}

static bool one_char(parser *p, ox_dfa_set *set)
{
    uint32_t c = 0;
    bool single = true;
    if (accept(p, "[")) return character_class(p, set);
    if (accept(p, "."))
        return p->dot_all ? put_range(p, set, 0, 0x10ffff)
                          : put_range(p, set, 0, 9) && put_range(p, set, 11, 0x10ffff);
    if (accept(p, "\\")) {
        if (!escape(p, set, &c, &single)) return false;
        return !single || put_folded(p, set, c);
    }
    if (!more(p) || strchr("^$*+?{|)(", peek(p, 0))) return false;
    const char *q = p->in.p + p->at;
    c = ox_utf8_next(&q);
    p->at = (size_t)(q - p->in.p);
    return put_folded(p, set, c);
}

static bool set_step(parser *p, ox_dfa_op op, bool negated)
{
    ox_dfa_set set = {0};
    uint16_t n;
    if (!one_char(p, &set)) {
        ox_vec_deinit(&set);
        return false;
    }
    return number_of(p, &set, &n) && emit(p, op, n, negated);
}

static bool alternatives(parser *p);

/* Behind "(". */
static bool group(parser *p)
{
    const bool fold = p->fold, dot_all = p->dot_all;
    if (accept(p, "?=")) return set_step(p, OX_DFA_AHEAD, false) && accept(p, ")");
    if (accept(p, "?!")) return set_step(p, OX_DFA_AHEAD, true) && accept(p, ")");
    if (accept(p, "?<")) {
        const size_t end = ox_str_find(p->in, OX_STR(">"), p->at);
        if (peek(p, 0) == '=' || peek(p, 0) == '!' || end == SIZE_MAX) return false;
        p->at = end + 1;
    } else if (accept(p, "?")) {
        for (; peek(p, 0) == 'i' || peek(p, 0) == 's'; p->at++) {
            p->fold = p->fold || peek(p, 0) == 'i';
            p->dot_all = p->dot_all || peek(p, 0) == 's';
        }
        if (!accept(p, ":")) return false;
    }
    const bool ok = alternatives(p) && accept(p, ")");
    p->fold = fold;
    p->dot_all = dot_all;
    return ok;
}

static bool sequence(parser *p)
{
    while (more(p) && peek(p, 0) != '|' && peek(p, 0) != ')') {
        const size_t begin = p->prog->steps.n;
        if (!(accept(p, "(") ? group(p) : set_step(p, OX_DFA_CHAR, false))) return false;
        if (!quantifier(p, begin)) return false;
    }
    return true;
}

static bool alternatives(parser *p)
{
    OX_VEC(size_t) ends = {0};
    bool ok = ++p->depth <= MAX_DEPTH;
    for (;;) {
        const size_t begin = p->prog->steps.n;
        ok = ok && sequence(p);
        if (!ok || !accept(p, "|")) break;
        ok = insert(p, begin,
                    (ox_dfa_step){OX_DFA_SPLIT, (uint16_t)(begin + 1),
                                  (uint16_t)(p->prog->steps.n + 2)}) &&
             ox_vec_push(&ends, p->prog->steps.n) && emit(p, OX_DFA_JUMP, 0, 0);
    }
    for (size_t i = 0; ok && i < ends.n; i++)
        p->prog->steps.p[ends.p[i]].a = (uint16_t)p->prog->steps.n;
    ox_vec_deinit(&ends);
    p->depth--;
    return ok;
}

bool ox_dfa_parse(ox_dfa_program *prog, ox_str pattern)
{
    parser p = {.prog = prog, .in = pattern};
    return alternatives(&p) && !more(&p) && emit(&p, OX_DFA_DONE, 0, 0) && !prog->failed;
}

void ox_dfa_program_deinit(ox_dfa_program *prog)
{
    for (size_t i = 0; i < prog->n_sets; i++)
        ox_vec_deinit(&prog->sets[i]);
    ox_vec_deinit(&prog->steps);
}
