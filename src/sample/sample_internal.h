/* sample_internal.h - what a sampler is made of. */
#ifndef OX_SAMPLE_SAMPLE_INTERNAL_H
#define OX_SAMPLE_SAMPLE_INTERNAL_H
#include "base/status.h"
#include "oxgen/sampler.h"
#include "sample/pool.h"

typedef struct ox_accepted {
    int32_t id;
    bool is_new;
    float mu; /* mirostat's running value behind this token */
} ox_accepted;

/* An id of the sequence: how often it stands in the window that penalties look at. */
typedef struct ox_seen {
    int32_t id;
    int32_t n_all, n_new;
    int32_t repeat; /* scratch of dry */
} ox_seen;

/* The sequence: history.c. */
typedef struct ox_history {
    OX_VEC(ox_accepted) tokens;
    size_t n_new;  /* tokens of the answer */
    size_t window; /* the last so many are counted; 0 = all */
    OX_VEC(ox_seen) seen;
    OX_VEC(uint32_t) slots; /* hash table: place in seen + 1, 0 = free; a power of two */
} ox_history;

bool ox_history_push(ox_history *h, int32_t id, bool is_new, float mu);
void ox_history_pop(ox_history *h);
ox_seen *ox_history_find(const ox_history *h, int32_t id); /* NULL: never there */
void ox_history_deinit(ox_history *h);

typedef OX_VEC(int32_t) ox_sample_ids;

struct ox_sampler {
    ox_sampler_options o; /* its pointers are NULL: the copies are below */
    OX_VEC(ox_logit_bias) bias;
    OX_VEC(ox_forced_token) forced;
    ox_sample_ids suppress, begin_suppress, end_ids, breakers;
    ox_sample_ids words;      /* ids of bad words one behind the other */
    OX_VEC(size_t) word_ends; /* where each ends */
    OX_VEC(uint8_t) order;    /* rows of samplers.def */
    ox_history history;
    ox_pool pool;
    const float *guide; /* [n_guide], for one choice */
    size_t n_guide;
    OX_VEC(int32_t) scratch;
    uint64_t position; /* of the choice that runs */
    size_t n_logits;
    float mu;             /* mirostat's running value */
    float mu_next;        /* once picked is accepted */
    int32_t picked;       /* -1: none */
    double mirostat_mass; /* of the kept set, 0 = mirostat did not run */
    bool no_memory;
};

/* A step over s->pool. OX_FAIL only for what the caller did wrong; memory sets s->no_memory. */
typedef ox_status ox_step_fn(ox_sampler *s, ox_err *err);

/* rules.c, cuts.c */
#define OX_SAMPLER(name, fn, kind, options) ox_step_fn ox_step_##fn;
#include "sample/samplers.def"
#undef OX_SAMPLER

ox_status ox_sampler_check(const ox_sampler_options *o, ox_err *err); /* numbers.c */
#endif
