/* team.c - workers wait on a job counter: they spin for SPIN_SECONDS, then park on a futex.
 *
 * Orders: the job's fields are published by the release store of `job` and read after its acquire
 * load; results are published by the release add on `done` (or `arrived`) and read after the
 * acquire load that sees the full count. Denormals are flushed in every worker (design: a denormal
 * product costs an order of magnitude), and the caller's mode is restored after each job. */
#define _GNU_SOURCE
#include "base/team.h"

#include "base/clock.h"
#include "base/mem.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>
#if OX_ARCH_X86
#include <immintrin.h>
#endif

static const double SPIN_SECONDS = 100e-6; /* between jobs */
enum { BARRIER_SPINS = 1000 };             /* inside a job: 20 to 50 us of pauses */

struct ox_team {
    _Alignas(64) atomic_uint job; /* odd bit unused; every change is a new job */
    _Alignas(64) atomic_uint sleepers;
    _Alignas(64) atomic_uint done;
    _Alignas(64) atomic_int arrived;
    _Alignas(64) atomic_uint phase;
    atomic_uint phase_sleepers; /* parked at the barrier or, the caller, at the end of a job */
    _Alignas(64) ox_team_fn *fn;
    void *user;
    int n_workers, n_started;
    int spins; /* pauses before parking; 0 when there are more workers than CPUs */
    atomic_bool quit;
    pthread_t threads[OX_TEAM_MAX];
    struct worker {
        ox_team *team;
        int index;
    } workers[OX_TEAM_MAX];
};

static void relax(void)
{
#if OX_ARCH_X86
    _mm_pause();
#endif
}

static unsigned denormals_off(void)
{
#if OX_ARCH_X86
    const unsigned old = _mm_getcsr();
    _mm_setcsr(old | 0x8040); /* flush to zero, denormals are zero */
    return old;
#else
    return 0;
#endif
}

static void denormals_restore(unsigned old)
{
#if OX_ARCH_X86
    _mm_setcsr(old);
#else
    (void)old;
#endif
}

static void futex_wait(atomic_uint *word, unsigned seen)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake_all(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* Waits until *word leaves `seen`: spins for a while, then parks, so that a worker whose partner
 * was preempted gives its CPU away instead of burning it. */
static void wait_change(ox_team *t, atomic_uint *word, unsigned seen)
{
    for (int i = 0; i < t->spins; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != seen) return;
        relax();
    }
    atomic_fetch_add(&t->phase_sleepers, 1);
    while (atomic_load(word) == seen)
        futex_wait(word, seen);
    atomic_fetch_sub(&t->phase_sleepers, 1);
}

static void wake_if_parked(ox_team *t, atomic_uint *word)
{
    if (atomic_load(&t->phase_sleepers)) futex_wake_all(word);
}

static unsigned wait_for_job(ox_team *t, unsigned seen)
{
    const double limit = ox_clock_seconds() + SPIN_SECONDS;
    for (int i = 0;; i++) {
        const unsigned now = atomic_load_explicit(&t->job, memory_order_acquire);
        if (now != seen) return now;
        relax();
        if (t->spins && (i % 64 || ox_clock_seconds() < limit)) continue;
        atomic_fetch_add(&t->sleepers, 1);
        while (atomic_load(&t->job) == seen)
            futex_wait(&t->job, seen);
        atomic_fetch_sub(&t->sleepers, 1);
    }
}

static void *worker_main(void *arg)
{
    const struct worker *w = arg;
    ox_team *t = w->team;
    unsigned seen = 0;
    denormals_off();
    for (;;) {
        seen = wait_for_job(t, seen);
        if (atomic_load_explicit(&t->quit, memory_order_acquire)) return NULL;
        t->fn(t->user, w->index, t->n_workers);
        atomic_fetch_add(&t->done, 1);
        wake_if_parked(t, &t->done);
    }
}

ox_status ox_team_open(ox_team **out, int n_workers, ox_err *err)
{
    *out = NULL;
    if (n_workers < 1 || n_workers > OX_TEAM_MAX)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "%d threads asked for; expected 1 to %d", n_workers,
                       OX_TEAM_MAX);
    ox_team *t = ox_pages_alloc(sizeof(*t));
    if (!t) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a team of %d threads", n_workers);
    t->n_workers = n_workers;
    cpu_set_t set;
    const int cpus = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
    t->spins = n_workers <= cpus ? BARRIER_SPINS : 0;
    for (int i = 1; i < n_workers; i++) {
        t->workers[i] = (struct worker){t, i};
        if (pthread_create(&t->threads[i], NULL, worker_main, &t->workers[i])) {
            t->n_started = i;
            ox_team_close(&t);
            return OX_FAIL(err, OX_NO_MEMORY, "the system refused thread %d of %d", i + 1,
                           n_workers);
        }
        t->n_started = i + 1;
    }
    *out = t;
    return OX_OK;
}

static void start_job(ox_team *t)
{
    atomic_fetch_add_explicit(&t->job, 1, memory_order_seq_cst);
    if (atomic_load(&t->sleepers)) futex_wake_all(&t->job);
}

void ox_team_close(ox_team **team)
{
    ox_team *t = *team;
    if (!t) return;
    atomic_store_explicit(&t->quit, true, memory_order_release);
    start_job(t);
    for (int i = 1; i < t->n_started; i++)
        pthread_join(t->threads[i], NULL);
    ox_pages_free(t, sizeof(*t));
    *team = NULL;
}

int ox_team_size(const ox_team *team)
{
    return team ? team->n_workers : 1;
}

void ox_team_run(ox_team *t, ox_team_fn *fn, void *user)
{
    const unsigned mode = denormals_off();
    if (!t || t->n_workers == 1) {
        fn(user, 0, 1);
        denormals_restore(mode);
        return;
    }
    t->fn = fn;
    t->user = user;
    atomic_store_explicit(&t->done, 0, memory_order_relaxed);
    start_job(t);
    fn(user, 0, t->n_workers);
    for (unsigned n;
         (n = atomic_load_explicit(&t->done, memory_order_acquire)) != (unsigned)t->n_workers - 1;)
        wait_change(t, &t->done, n);
    denormals_restore(mode);
}

void ox_team_barrier(ox_team *t)
{
    if (!t || t->n_workers == 1) return;
    const unsigned phase = atomic_load_explicit(&t->phase, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&t->arrived, 1, memory_order_acq_rel) == t->n_workers - 1) {
        atomic_store_explicit(&t->arrived, 0, memory_order_relaxed);
        atomic_store(&t->phase, phase + 1);
        wake_if_parked(t, &t->phase);
        return;
    }
    wait_change(t, &t->phase, phase);
}
