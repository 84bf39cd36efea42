/* parity.c - do two arms say the same, and if not, is that a near tie or a fault? After the timing
 * every arm is run once more over the tokens in question, forced, and shows its logits.
 * docs/compare.md has the rules; the bound of a class of numerics is parity_bound. */
#define _GNU_SOURCE
#include "cli/compare/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* How far a class of numerics rounds, relative and as a root mean square: operands of a matrix
 * product, and what a key/value cache holds. float32 sums of some thousand terms: 2^-23 *
 * sqrt(1000). Half precision: 2^-11/sqrt(3), a few roundings between two products; bfloat16 eight
 * times that. 16- and 8-bit codes of a block of 32: docs/numerics.md. */
static const struct {
    const char *name;
    double product, cache;
} classes[] = {
    {"exact", 4e-6, 4e-6},
    {"fast", 2e-5, 2.8e-4},
    {"faster", 5e-3, 2.8e-4},
    {"float32", 4e-6, 4e-6},
    {"float16", 8e-4, 2.8e-4},
    {"bfloat16", 6.4e-3, 2.3e-3},
    {"8-bit products", 5e-3, 2.8e-4},
};
enum { EXACT, FAST, FASTER, FLOAT32, FLOAT16, BFLOAT16, INT8 };

/* Fewer steps before the divergence say too little about how far two arms lie apart. */
enum { STEPS_ENOUGH = 4 };
static const double ODD_GAP =
    1e-4; /* of the largest logit: more is no rounding of a repeated run */

static size_t class_of(const comparison *c, const arm *a)
{
    const char *numerics = a->spec.numerics ? a->spec.numerics : c->o->numerics;
    const char *device = a->spec.device ? a->spec.device : c->o->device;
    if (strcmp(a->spec.kind, "native"))
        return c->int8_products ? INT8 : c->bfloat16 ? BFLOAT16 : c->float16 ? FLOAT16 : FLOAT32;
    if (numerics && !strcmp(numerics, "exact")) return EXACT;
    if (numerics && !strcmp(numerics, "faster")) return FASTER;
    return device && !strncmp(device, "cuda", 4) ? FLOAT16 : FAST;
}

/* A cache of a type that was asked for, or that a bfloat16 graph declares. */
static double cache_unit(const comparison *c, const arm *a, double usual)
{
    const char *kv = a->spec.kv ? a->spec.kv : c->o->kv;
    if (!strcmp(a->spec.kind, "native") && kv)
        return !strcmp(kv, "f32")    ? classes[FLOAT32].cache
               : !strcmp(kv, "bf16") ? classes[BFLOAT16].cache
                                     : classes[FLOAT16].cache;
    return c->bfloat16 && usual < classes[BFLOAT16].cache && usual > classes[EXACT].cache
               ? classes[BFLOAT16].cache
               : usual;
}

/* Independent roundings add as the root of the sum of their squares. Six times that: what follows a
 * rounding may amplify it, and the worst of many steps is looked at. Measured: docs/compare.md. */
double parity_bound(const comparison *c, const arm *a)
{
    const double products = c->n_products > 0 ? (double)c->n_products : 256,
                 caches = c->n_caches > 0 ? 2 * (double)c->n_caches : products / 4;
    const size_t k = class_of(c, a);
    const double product = classes[k].product, cache = cache_unit(c, a, classes[k].cache);
    return 6 * sqrt(products * product * product + caches * cache * cache);
}

/* ---- one forced run ---- */

typedef struct watched {
    parity_side *side;
    size_t last;             /* the step in question */
    bool before_too;         /* the difference of the last step counts as one before */
    bool has_last, is_other; /* is_other: is compared with a file */
} watched;

static double number(const ox_json *e, const char *key)
{
    const ox_json *v = ox_json_get(e, key);
    return ox_json_is(v, OX_JSON_NUMBER) ? ox_json_f64(v) : (double)NAN;
}

static void on_step(void *user, ox_str kind, const ox_json *e)
{
    watched *w = user;
    if (!ox_str_is(kind, "step")) return;
    const size_t i = (size_t)ox_json_i64(ox_json_get(e, "i"));
    parity_side *s = w->side;
    const parity_step step = {.first = ox_json_i64(ox_json_get(e, "first")),
                              .second = ox_json_i64(ox_json_get(e, "second")),
                              .margin = number(e, "margin"),
                              .gap = number(e, "gap"),
                              .difference = number(e, "difference"),
                              .relative = number(e, "relative"),
                              .ref_first = ox_json_i64(ox_json_get(e, "ref_first")),
                              .ref_margin = number(e, "ref_margin"),
                              .asked = {number(e, "ask0"), number(e, "ask1")}};
    if (step.gap > ODD_GAP * number(e, "largest") && !(s->odd_gap > 0)) {
        s->odd_gap = step.gap;
        s->odd_step = i;
    }
    /* A difference that is no number is the largest of all. */
    const double all = isnan(step.relative) && w->is_other ? (double)INFINITY : step.relative;
    if (all > s->relative) s->relative = all;
    if ((i < w->last || w->before_too) && step.difference > s->difference)
        s->difference = step.difference;
    if (i == w->last) {
        s->last = step;
        w->has_last = true;
    }
}

/* The forced tokens: the common ones, then the arm's own. */
static void force(comparison *c, const arm *a, const parity *p, int own, const char *write,
                  const char *against, parity_side *side)
{
    const arm *from = &c->arms[own ? p->b : p->a];
    arm_request r = {.mode = "logits",
                     .prompt = c->prompt,
                     .n_prompt = c->n_prompt,
                     .forced = from->runs[0].ids,
                     .n_forced = p->same ? p->n : p->index + 1,
                     .ask = {p->same ? -1 : p->ids[0], p->same ? -1 : p->ids[1]},
                     .write = write,
                     .against = against};
    r.n_new = r.n_forced;
    watched w = {.side = side, .last = r.n_new - 1, .is_other = against != NULL};
    w.before_too = p->same || p->index < STEPS_ENOUGH;
    if (c->context.interrupted) {
        snprintf(side->reason, sizeof(side->reason), "interrupted");
        return;
    }
    side->known = arm_execute(&c->context, a, &r, on_step, &w, side->reason) && w.has_last;
    if (!side->known && !side->reason[0])
        snprintf(side->reason, sizeof(side->reason), "showed no logits");
}

/* ---- verdicts ---- */

static void say(parity *p, const char *verdict, const char *fmt, ...) OX_PRINTF(3, 4);
static void say(parity *p, const char *verdict, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p->why, sizeof(p->why), fmt, ap);
    va_end(ap);
    p->verdict = verdict;
}

static bool say_odd(comparison *c, parity *p)
{
    for (int k = 0; k < 2; k++) {
        const parity_side *s = &p->side[k];
        if (!(s->odd_gap > 0)) continue;
        say(p, "fault",
            "%s took a token at step %zu whose logit lies %.3g below its own best: the choice is "
            "wrong, "
            "not the numbers",
            c->arms[k ? p->b : p->a].spec.name, s->odd_step, s->odd_gap);
        return true;
    }
    return false;
}

static bool say_far(comparison *c, parity *p)
{
    for (int k = 0; k < 2; k++) {
        const parity_side *s = &p->side[k];
        const double bound = p->has_oracle ? parity_bound(c, &c->arms[k ? p->b : p->a]) : p->bound;
        if (!(s->relative > bound)) continue;
        say(p, "fault",
            "logits of %s lie %.2g of their spread from %s, more than the %.2g that numerics "
            "explain",
            c->arms[k ? p->b : p->a].spec.name, s->relative,
            p->has_oracle ? "the oracle" : c->arms[p->a].spec.name, bound);
        return true;
    }
    return false;
}

static void judge_against_oracle(comparison *c, parity *p)
{
    const parity_side *a = &p->side[0], *b = &p->side[1];
    const int64_t best = a->last.ref_first;
    const double margin = a->last.ref_margin;
    double apart = 0;
    p->sides_with = best == p->ids[0]   ? c->arms[p->a].spec.name
                    : best == p->ids[1] ? c->arms[p->b].spec.name
                                        : "neither";
    if (best != p->ids[0]) apart = a->difference;
    if (best != p->ids[1] && b->difference > apart) apart = b->difference;
    if (margin <= 2 * apart)
        say(p, "near tie",
            "the oracle's first two lie %.3g apart, twice the largest difference before is %.3g",
            margin, 2 * apart);
    else
        say(p, "fault",
            "the oracle's first two lie %.3g apart, more than twice the largest difference before "
            "(%.3g)",
            margin, 2 * apart);
}

static void judge_each_other(parity *p)
{
    const double ma = p->side[0].last.asked[0] - p->side[0].last.asked[1],
                 mb = p->side[1].last.asked[1] - p->side[1].last.asked[0],
                 margin = ma > mb ? ma : mb, apart = p->side[1].difference;
    if (margin <= 2 * apart)
        say(p, "near tie", "margins %.3g and %.3g, twice the largest difference before is %.3g", ma,
            mb, 2 * apart);
    else
        say(p, "fault", "a margin of %.3g, more than twice the largest difference before (%.3g)",
            margin, 2 * apart);
}

static void decide(comparison *c, parity *p)
{
    for (int k = 0; k < 2; k++)
        if (!p->side[k].known) {
            say(p, p->same ? "same" : "not known", "%s: %s", c->arms[k ? p->b : p->a].spec.name,
                p->side[k].reason);
            return;
        }
    if (say_odd(c, p) || say_far(c, p)) return;
    if (p->same)
        say(p, "same", "%zu tokens, logits at most %.2g of their spread apart", p->n,
            fmax(p->side[0].relative, p->side[1].relative));
    else if (p->has_oracle)
        judge_against_oracle(c, p);
    else
        judge_each_other(p);
}

/* ---- a pair ---- */

static bool open_rows(FILE **f, char path[64])
{
    *f = tmpfile();
    if (*f) snprintf(path, 64, "/proc/%d/fd/%d", (int)getpid(), fileno(*f));
    return *f != NULL;
}

/* The oracle: this program's reference rows, which sum in double, on float32 everything. */
static bool run_oracle(comparison *c, parity *p, const char *path)
{
    parity_side ignored = {0};
    arm oracle = {
        .spec = {
            .name = "oracle", .kind = "native", .numerics = "exact", .kv = "f32", .tier = "ref"}};
    force(c, &oracle, p, 0, path, NULL, &ignored);
    if (!ignored.known) say(p, p->same ? "same" : "not known", "the oracle: %s", ignored.reason);
    return ignored.known;
}

static void judge(comparison *c, parity *p)
{
    char path[64];
    FILE *rows = NULL;
    const arm *a = &c->arms[p->a], *b = &c->arms[p->b];
    p->has_oracle = c->o->oracle;
    p->bound = hypot(parity_bound(c, a), parity_bound(c, b));
    if (!open_rows(&rows, path)) {
        say(p, "not known", "no temporary file for logits");
        return;
    }
    if (!p->has_oracle || run_oracle(c, p, path)) {
        force(c, a, p, 0, p->has_oracle ? NULL : path, p->has_oracle ? path : NULL, &p->side[0]);
        if (p->side[0].known) force(c, b, p, 1, NULL, path, &p->side[1]);
        decide(c, p);
    }
    fclose(rows);
}

static void decode(const comparison *c, parity *p)
{
    ox_err ignored = OX_ERR_INIT;
    size_t n;
    for (int k = 0; k < 2 && c->text && !p->same; k++)
        (void)ox_model_decode(c->text, &p->ids[k], 1, 0, &p->text[k], &n, &ignored);
}

/* Runs of one arm must agree before two arms can be compared. */
static bool steady(const arm *a, size_t *run, size_t *index)
{
    for (size_t k = 1; k < a->n_runs; k++)
        for (size_t i = 0; i < a->runs[k].n_new && i < a->runs[0].n_new; i++)
            if (a->runs[k].ids[i] != a->runs[0].ids[i]) {
                *run = k;
                *index = i;
                return false;
            }
    return true;
}

static void compare_pair(comparison *c, parity *p)
{
    const arm *a = &c->arms[p->a], *b = &c->arms[p->b];
    size_t run, index;
    p->n = a->runs[0].n_new < b->runs[0].n_new ? a->runs[0].n_new : b->runs[0].n_new;
    while (p->index < p->n && a->runs[0].ids[p->index] == b->runs[0].ids[p->index])
        p->index++;
    p->same = p->index == p->n;
    p->known = true;
    for (int k = 0; k < 2 && !p->same; k++)
        p->ids[k] = (k ? b : a)->runs[0].ids[p->index];
    decode(c, p);
    for (int k = 0; k < 2; k++)
        if (!steady(k ? b : a, &run, &index)) {
            say(p, "fault",
                "%s does not repeat itself: run %zu differs from the first at token %zu",
                (k ? b : a)->spec.name, run + 1, index);
            return;
        }
    judge(c, p);
}

void parity_judge(comparison *c)
{
    for (size_t i = 0; i < c->n_pairs; i++) {
        parity *p = &c->pairs[i];
        cli_progress((void *)(uintptr_t)c->o, "parity", i, c->n_pairs);
        if (!c->arms[p->a].n_runs || !c->arms[p->b].n_runs)
            say(p, "not known", "%s has no complete run",
                c->arms[c->arms[p->a].n_runs ? p->b : p->a].spec.name);
        else if (c->context.interrupted)
            say(p, "not known", "interrupted");
        else
            compare_pair(c, p);
    }
    cli_progress_end();
}
