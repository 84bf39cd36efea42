/* Team: every worker runs, barriers order phases, splits cover everything once. */
#include "base/team.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

typedef struct work {
    ox_team *team;
    atomic_int count;
    int seen[8][64]; /* [worker][phase] */
} work;

static void phases(void *user, int i, int n)
{
    work *w = user;
    for (int p = 0; p < 64; p++) {
        atomic_fetch_add(&w->count, 1);
        ox_team_barrier(w->team);
        w->seen[i][p] = atomic_load(&w->count);
        ox_team_barrier(w->team);
        (void)n;
    }
}

static void barrier_separates_phases(void **state)
{
    (void)state;
    for (int n = 1; n <= 8; n++) {
        work w = {0};
        assert_int_equal(ox_team_open(&w.team, n, NULL), OX_OK);
        for (int job = 0; job < 20; job++) {
            atomic_store(&w.count, 0);
            ox_team_run(w.team, phases, &w);
            for (int i = 0; i < n; i++)
                for (int p = 0; p < 64; p++)
                    assert_int_equal(w.seen[i][p], (p + 1) * n);
        }
        ox_team_close(&w.team);
    }
}

static void split_covers_all_once(void **state)
{
    (void)state;
    for (size_t n = 0; n < 200; n += 7)
        for (size_t step = 1; step < 40; step += 13)
            for (int workers = 1; workers < 6; workers++) {
                size_t at = 0;
                for (int i = 0; i < workers; i++) {
                    size_t begin, end;
                    ox_team_split(n, step, i, workers, &begin, &end);
                    assert_int_equal(begin, at);
                    assert_true(begin == n || begin % step == 0);
                    at = end;
                }
                assert_int_equal(at, n);
            }
}

static void too_many_threads_are_refused(void **state)
{
    (void)state;
    ox_team *t;
    ox_err err = OX_ERR_INIT;
    assert_int_equal(ox_team_open(&t, OX_TEAM_MAX + 1, &err), OX_BAD_ARGUMENT);
    assert_null(t);
    assert_true(err.msg[0] != 0);
}

static void count_one(void *user, int i, int n)
{
    (void)i;
    (void)n;
    atomic_fetch_add((atomic_int *)user, 1);
}

/* Teams come and go: idle, in the middle of spinning, after one job, parked. */
static void ten_thousand_teams(void **state)
{
    (void)state;
    for (int k = 0; k < 10000; k++) {
        const int n = 2 + k % 3, jobs = k % 4;
        atomic_int ran = 0;
        ox_team *t;
        assert_int_equal(ox_team_open(&t, n, NULL), OX_OK);
        for (int j = 0; j < jobs; j++)
            ox_team_run(t, count_one, &ran);
        ox_team_close(&t);
        assert_null(t);
        assert_int_equal(atomic_load(&ran), n * jobs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_thousand_teams),
        cmocka_unit_test(barrier_separates_phases),
        cmocka_unit_test(split_covers_all_once),
        cmocka_unit_test(too_many_threads_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
