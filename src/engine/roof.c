/* roof.c - measures the ceilings that benchmarks are compared with, on the same threads. */
#include "base/clock.h"
#include "engine/engine_internal.h"
#include "kernel/probe/probe.h"

/* A timed job reads at least PASS_BYTES, so that starting the threads does not count. */
enum { READ_WORDS = 32, PRODUCT_ROUNDS = 20000, PASS_BYTES = 1 << 20 };

typedef struct roof_job {
    ox_probe_fn *fn;
    const uint64_t *words;
    size_t n_words, repeats, passes; /* passes over the words a job */
    bool floats;
    double ops[OX_TEAM_MAX];
} roof_job;

static void work(void *user, int i, int n)
{
    roof_job *j = user;
    size_t begin, end;
    ox_team_split(j->n_words, READ_WORDS, i, n, &begin, &end);
    ox_probe_args a = {
        .words = j->words, .n_words = j->n_words, .repeats = j->repeats, .floats = j->floats};
    for (size_t k = 0; k < j->passes; k++)
        j->fn(&a, begin, end);
    j->ops[i] = a.ops;
}

/* Best of the repetitions that fit into `seconds`: a roof is what is possible,
 * not what is usual. */
static ox_status measure(roof_job *j, int32_t n_threads, double seconds, double *best, ox_err *err)
{
    ox_team *team = NULL;
    ox_machine m = {0};
    OX_TRY(ox_cpu_features(&m.cpu_features, err));
    OX_TRY(ox_team_open(&team, n_threads, err));
    j->fn = (ox_probe_fn *)ox_kernel_pick(ox_probe_rows, OX_DEVICE_CPU, &m, NULL)->fn;
    *best = 1e30;
    const double stop = ox_clock_seconds() + seconds;
    do {
        const double start = ox_clock_seconds();
        ox_team_run(team, work, j);
        const double took = ox_clock_seconds() - start;
        if (took < *best) *best = took;
    } while (ox_clock_seconds() < stop);
    ox_team_close(&team);
    return OX_OK;
}

ox_status ox_roof_read(size_t bytes, int32_t n_threads, double seconds, double *bytes_per_s,
                       ox_err *err)
{
    const size_t n = bytes / (READ_WORDS * 8) * (READ_WORDS * 8);
    double best;
    if (!n) return OX_FAIL(err, OX_BAD_ARGUMENT, "%zu bytes are too few to time a read", bytes);
    uint64_t *words = ox_pages_alloc(n);
    if (!words) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a read of %zu bytes", n);
    for (size_t i = 0; i < n / 8; i++)
        words[i] = i;
    roof_job job = {.words = words, .n_words = n / 8, .passes = 1 + PASS_BYTES / n};
    const ox_status st = measure(&job, n_threads, seconds, &best, err);
    ox_pages_free(words, n);
    if (!st) *bytes_per_s = (double)n * (double)job.passes / best;
    return st;
}

static ox_status products(bool floats, int32_t n_threads, double seconds, double *rate, ox_err *err)
{
    double best, ops = 0;
    roof_job job = {.repeats = PRODUCT_ROUNDS, .passes = 1, .floats = floats};
    OX_TRY(measure(&job, n_threads, seconds, &best, err));
    for (int32_t i = 0; i < n_threads; i++)
        ops += job.ops[i];
    *rate = ops / best;
    return OX_OK;
}

ox_status ox_roof_int8(int32_t n_threads, double seconds, double *ops_per_s, ox_err *err)
{
    return products(false, n_threads, seconds, ops_per_s, err);
}

ox_status ox_roof_float(int32_t n_threads, double seconds, double *ops_per_s, ox_err *err)
{
    return products(true, n_threads, seconds, ops_per_s, err);
}
