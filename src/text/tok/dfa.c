/* dfa.c - the table of a pattern. Code points fall into classes that no set of the pattern tells
 * apart. A state is the list of steps that could go on, the preferred ones first; what comes after
 * a finished step in the list can't win any more and is dropped, which is what backtracking would
 * find. Whether a look-ahead holds, and so whether a match is over, is known one character later:
 * hence the mark on transitions instead of states. */
#include "text/tok/dfa.h"

#include "text/tok/dfa_internal.h"
#include "text/unicode.h"

enum { MAX_STATES = 4000, MAX_CLASSES = 250, MAX_LIST = 512 };

typedef struct ox_dfa_high {
    uint32_t first;
    uint8_t class_;
} ox_dfa_high;

typedef OX_VEC(ox_dfa_high) highs;

/* ---- classes */

typedef struct classes {
    uint64_t members[MAX_CLASSES]; /* which sets a class lies in */
    size_t n;
    highs high;
} classes;

static bool class_for(classes *c, uint64_t members, uint8_t *number)
{
    for (size_t i = 0; i < c->n; i++) {
        if (c->members[i] != members) continue;
        *number = (uint8_t)i;
        return true;
    }
    if (c->n == MAX_CLASSES) return false;
    *number = (uint8_t)c->n;
    c->members[c->n++] = members;
    return true;
}

static uint64_t members_at(const ox_dfa_program *prog, uint32_t code)
{
    uint64_t bits = 0;
    for (size_t s = 0; s < prog->n_sets; s++) {
        size_t low = 0, high = prog->sets[s].n;
        while (low < high) {
            const size_t middle = (low + high) / 2;
            if (code > prog->sets[s].p[middle].last)
                low = middle + 1;
            else
                high = middle;
        }
        if (low < prog->sets[s].n && prog->sets[s].p[low].first <= code) bits |= 1ull << s;
    }
    return bits;
}

/* Borders of all sets beyond the table, in order. */
static bool find_high(const ox_dfa_program *prog, classes *c)
{
    for (uint32_t at = OX_DFA_LOW; at <= 0x10ffff;) {
        uint32_t next = 0x110000;
        ox_dfa_high h = {at, 0};
        if (!class_for(c, members_at(prog, at), &h.class_) || !ox_vec_push(&c->high, h))
            return false;
        for (size_t s = 0; s < prog->n_sets; s++) {
            for (size_t i = prog->sets[s].n; i-- > 0 && prog->sets[s].p[i].last >= at;) {
                const ox_dfa_range r = prog->sets[s].p[i];
                if (r.first > at && r.first < next) next = r.first;
                if (r.last + 1 < next) next = r.last + 1;
            }
        }
        at = next;
    }
    return true;
}

/* Sets flip their bit where a range begins and behind it: one pass finds every code point's. */
static bool find_low(const ox_dfa_program *prog, classes *c, uint8_t *class_of)
{
    uint64_t *flips = ox_calloc(OX_DFA_LOW + 1, sizeof(*flips)), now = 0;
    bool ok = flips != NULL;
    uint8_t number = 0;
    for (size_t s = 0; ok && s < prog->n_sets; s++) {
        for (size_t i = 0; i < prog->sets[s].n; i++) {
            const ox_dfa_range r = prog->sets[s].p[i];
            if (r.first < OX_DFA_LOW) flips[r.first] ^= 1ull << s;
            if (r.last < OX_DFA_LOW) flips[r.last + 1] ^= 1ull << s;
        }
    }
    for (uint32_t code = 0; ok && code < OX_DFA_LOW; code++) {
        if (flips[code] || !code) {
            now ^= flips[code];
            ok = class_for(c, now, &number);
        }
        class_of[code] = number;
    }
    ox_free(flips);
    return ok;
}

/* ---- states */

typedef OX_VEC(uint16_t) step_list;

typedef struct builder {
    const ox_dfa_program *prog;
    const classes *classes;
    step_list lists; /* of all states, one behind the other */
    OX_VEC(size_t) begins;
    OX_VEC(uint16_t) next;
    unsigned stride, end_class;
    step_list now;   /* of the state that is being built */
    uint32_t *seen;  /* by step: the round that reached it */
    uint32_t *taken; /* by step: the round that put it into `now` */
    uint32_t round;
    bool done, failed;
} builder;

static bool has(const builder *b, unsigned class_, uint16_t set)
{
    return class_ != b->end_class && b->classes->members[class_] >> set & 1;
}

/* Follows step `at` as far as it goes without a character; depth is bounded by the steps. */
static void follow(builder *b, uint16_t at, unsigned class_)
{
    while (!b->done && !b->failed && b->seen[at] != b->round) {
        const ox_dfa_step s = b->prog->steps.p[at];
        b->seen[at] = b->round;
        if (s.op == OX_DFA_DONE) {
            b->done = true;
        } else if (s.op == OX_DFA_CHAR) {
            const uint16_t to = (uint16_t)(at + 1);
            if (!has(b, class_, s.a) || b->taken[to] == b->round) return;
            b->taken[to] = b->round;
            if (b->now.n >= MAX_LIST || !ox_vec_push(&b->now, to)) b->failed = true;
            return;
        } else if (s.op == OX_DFA_AHEAD) {
            if (has(b, class_, s.a) == (s.b != 0)) return;
            at++;
        } else {
            if (s.op == OX_DFA_SPLIT) {
                follow(b, s.a, class_);
                at = s.b;
            } else {
                at = s.a;
            }
        }
    }
}

/* The number of the state with the list `now`, made when it is new. */
static uint16_t state_of(builder *b)
{
    const size_t n_states = b->begins.n - 1;
    if (!b->now.n) return 0;
    for (size_t i = 1; i < n_states; i++) {
        const size_t begin = b->begins.p[i], n = b->begins.p[i + 1] - begin;
        if (n == b->now.n && !memcmp(b->lists.p + begin, b->now.p, n * sizeof(uint16_t)))
            return (uint16_t)i;
    }
    if (n_states == MAX_STATES || !ox_vec_reserve(&b->lists, b->lists.n + b->now.n)) {
        b->failed = true;
        return 0;
    }
    memcpy(b->lists.p + b->lists.n, b->now.p, b->now.n * sizeof(uint16_t));
    b->lists.n += b->now.n;
    if (!ox_vec_push(&b->begins, b->lists.n)) b->failed = true;
    return (uint16_t)n_states;
}

static uint16_t transition(builder *b, size_t state, unsigned class_)
{
    b->round++;
    b->done = false;
    b->now.n = 0;
    for (size_t i = b->begins.p[state]; i < b->begins.p[state + 1] && !b->done; i++)
        follow(b, b->lists.p[i], class_);
    const bool done = b->done;
    return (uint16_t)(state_of(b) | (done ? OX_DFA_MATCH : 0));
}

static bool build(builder *b)
{
    bool ok = ox_vec_push(&b->begins, 0) && ox_vec_push(&b->begins, 0) &&
              ox_vec_push(&b->lists, 0) && ox_vec_push(&b->begins, 1);
    for (size_t state = 0; ok && state + 1 < b->begins.n; state++) {
        for (unsigned c = 0; ok && c < b->stride; c++) {
            const bool real = state && c <= b->end_class;
            const uint16_t to = real ? transition(b, state, c) : 0;
            ok = !b->failed && ox_vec_push(&b->next, to);
        }
    }
    return ok;
}

/* ---- runs that give nothing back: equal to greedy ones when what follows begins differently */

static bool differs(const ox_dfa_program *prog, const classes *c, uint16_t set, uint16_t at,
                    bool *seen)
{
    if (seen[at]) return true;
    seen[at] = true;
    const ox_dfa_step s = prog->steps.p[at];
    if (s.op == OX_DFA_DONE) return true;
    if (s.op == OX_DFA_AHEAD) return false;
    if (s.op == OX_DFA_CHAR) {
        for (size_t i = 0; i < c->n; i++) {
            if (c->members[i] >> set & 1 && c->members[i] >> s.a & 1) return false;
        }
        return true;
    }
    return differs(prog, c, set, s.a, seen) &&
           (s.op == OX_DFA_JUMP || differs(prog, c, set, s.b, seen));
}

static bool possessive_is_greedy(const ox_dfa_program *prog, const classes *c)
{
    bool ok = true;
    for (size_t i = 0; ok && i < prog->n_possessive; i++) {
        bool *seen = ox_calloc(prog->steps.n, sizeof(*seen));
        ok = seen && differs(prog, c, prog->possessive[i].set, prog->possessive[i].after, seen);
        ox_free(seen);
    }
    return ok;
}

/* ---- the whole */

static bool fill(ox_dfa *d, const ox_dfa_program *prog)
{
    classes c = {.n = 0};
    builder b = {.prog = prog, .classes = &c, .stride = 1};
    d->class_of = ox_alloc(OX_DFA_LOW);
    bool ok = d->class_of && find_low(prog, &c, d->class_of) && find_high(prog, &c) &&
              possessive_is_greedy(prog, &c);
    b.end_class = (unsigned)c.n;
    while (b.stride <= b.end_class)
        b.stride *= 2;
    b.seen = ox_calloc(prog->steps.n, sizeof(*b.seen));
    b.taken = ox_calloc(prog->steps.n, sizeof(*b.taken));
    ok = ok && b.seen && b.taken && build(&b);
    d->high = c.high.p;
    d->n_high = c.high.n;
    d->next = b.next.p;
    d->n_states = b.begins.n ? b.begins.n - 1 : 0;
    d->stride = b.stride;
    d->end_class = (uint8_t)b.end_class;
    ox_vec_deinit(&b.lists);
    ox_vec_deinit(&b.begins);
    ox_vec_deinit(&b.now);
    ox_free(b.seen);
    ox_free(b.taken);
    return ok;
}

ox_status ox_dfa_open(ox_dfa **out, ox_str pattern, ox_err *err)
{
    ox_dfa_program prog = {.n_sets = 0};
    ox_dfa *d = NULL;
    *out = NULL;
    const bool known = ox_dfa_parse(&prog, pattern);
    if (known) d = ox_calloc(1, sizeof(*d));
    const bool no_memory = prog.failed || (known && !d);
    if (d && !fill(d, &prog)) ox_dfa_close(&d); /* too large, or memory is short: PCRE2 does it */
    ox_dfa_program_deinit(&prog);
    if (no_memory) return OX_FAIL(err, OX_NO_MEMORY, "out of memory for a pattern");
    *out = d;
    return OX_OK;
}

void ox_dfa_close(ox_dfa **dfa)
{
    if (!*dfa) return;
    ox_free((*dfa)->next);
    ox_free((*dfa)->class_of);
    ox_free((*dfa)->high);
    ox_free(*dfa);
    *dfa = NULL;
}

uint8_t ox_dfa_class_high(const ox_dfa *d, uint32_t c)
{
    size_t i = d->n_high;
    while (i > 1 && d->high[i - 1].first > c)
        i--;
    return d->high[i - 1].class_;
}

size_t ox_dfa_match(const ox_dfa *d, ox_str text, size_t at, size_t *steps)
{
    const char *p = text.p + at;
    const char *const begin = p, *const end = text.p + text.n;
    size_t last = SIZE_MAX, state = OX_DFA_START;
    while (p < end) {
        const char *here = p;
        const uint32_t c = ox_utf8_next(&p);
        const uint8_t k = c < OX_DFA_LOW ? d->class_of[c] : ox_dfa_class_high(d, c);
        const uint16_t to = d->next[state * d->stride + k];
        if (to & OX_DFA_MATCH) last = (size_t)(here - text.p);
        state = to & (OX_DFA_MATCH - 1u);
        if (!state) {
            *steps += (size_t)(p - begin);
            return last;
        }
    }
    *steps += (size_t)(p - begin);
    return d->next[state * d->stride + d->end_class] & OX_DFA_MATCH ? text.n : last;
}
