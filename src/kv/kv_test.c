/* Pages are taken as a sequence grows, shared by forks, copied on write, given back. */
#include "kernel/kv_append/kv.h"
#include "kv/kv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const ox_cache caches[] = {
    {.n_kv_heads = 2, .head_size = 8, .v_head_size = 8, .dtype = OX_DTYPE_F16},
    {.n_kv_heads = 1, .head_size = 4, .v_head_size = 12, .dtype = OX_DTYPE_F16},
};

static ox_kv_pool *open_pool(size_t max_pages)
{
    ox_kv_pool *p, *probe;
    assert_int_equal(ox_kv_pool_open(&probe, caches, 2, OX_DTYPE_F16, 0, NULL), OX_OK);
    const size_t page = ox_kv_pool_page_bytes(probe);
    ox_kv_pool_close(&probe);
    assert_int_equal(ox_kv_pool_open(&p, caches, 2, OX_DTYPE_F16, max_pages * page, NULL), OX_OK);
    return p;
}

static void caches_lie_side_by_side(void **state)
{
    (void)state;
    ox_kv_pool *p = open_pool(0);
    const ox_kv_place *at = ox_kv_pool_places(p);
    assert_int_equal(at[0].k_offset, 0);
    assert_int_equal(at[0].v_offset, 2 * 8 * OX_KV_PAGE * 2);
    assert_true(at[1].k_offset >= at[0].v_offset + 2 * 8 * OX_KV_PAGE * 2);
    assert_int_equal(at[1].k_offset % 64, 0);
    assert_true(ox_kv_pool_page_bytes(p) >= at[1].v_offset + 12 * OX_KV_PAGE * 2);
    ox_kv_pool_close(&p);
}

static void pages_follow_the_length(void **state)
{
    (void)state;
    ox_kv_pool *p = open_pool(0);
    ox_kv_seq s;
    ox_kv_seq_open(&s, p);
    assert_int_equal(ox_kv_seq_reserve(&s, 1, NULL), OX_OK);
    s.n_positions = 1;
    assert_int_equal(s.pages.n, 1);
    assert_int_equal(ox_kv_seq_reserve(&s, 2 * OX_KV_PAGE + 1, NULL), OX_OK);
    s.n_positions = 2 * OX_KV_PAGE + 1;
    assert_int_equal(s.pages.n, 3);
    assert_int_equal(ox_kv_pool_used_bytes(p), 3 * ox_kv_pool_page_bytes(p));
    ox_kv_seq_truncate(&s, OX_KV_PAGE);
    assert_int_equal(s.pages.n, 1);
    assert_int_equal(ox_kv_pool_used_bytes(p), ox_kv_pool_page_bytes(p));
    ox_kv_seq_close(&s);
    assert_int_equal(ox_kv_pool_used_bytes(p), 0);
    ox_kv_pool_close(&p);
}

static void forks_share_until_written(void **state)
{
    (void)state;
    ox_kv_pool *p = open_pool(0);
    ox_kv_seq a, b;
    ox_kv_seq_open(&a, p);
    assert_int_equal(ox_kv_seq_reserve(&a, OX_KV_PAGE + 3, NULL), OX_OK);
    a.n_positions = OX_KV_PAGE + 3;
    memset(a.table.p[1], 7, ox_kv_pool_page_bytes(p));
    assert_int_equal(ox_kv_seq_fork(&b, &a, NULL), OX_OK);
    assert_int_equal(ox_kv_pool_used_bytes(p), 2 * ox_kv_pool_page_bytes(p));
    assert_ptr_equal(a.table.p[0], b.table.p[0]);
    assert_int_equal(ox_kv_seq_reserve(&b, OX_KV_PAGE + 4, NULL), OX_OK);
    assert_ptr_equal(a.table.p[0], b.table.p[0]); /* full: nobody writes it again */
    assert_ptr_not_equal(a.table.p[1], b.table.p[1]);
    assert_memory_equal(a.table.p[1], b.table.p[1], ox_kv_pool_page_bytes(p));
    ox_kv_seq_close(&a);
    assert_int_equal(((char *)b.table.p[1])[5], 7);
    ox_kv_seq_close(&b);
    assert_int_equal(ox_kv_pool_used_bytes(p), 0);
    ox_kv_pool_close(&p);
}

static void a_full_pool_refuses_and_changes_nothing(void **state)
{
    (void)state;
    ox_kv_pool *p = open_pool(2);
    ox_kv_seq s;
    ox_err err = OX_ERR_INIT;
    ox_kv_seq_open(&s, p);
    assert_int_equal(ox_kv_seq_reserve(&s, OX_KV_PAGE, NULL), OX_OK);
    s.n_positions = OX_KV_PAGE;
    assert_int_equal(ox_kv_seq_reserve(&s, 3 * OX_KV_PAGE, &err), OX_NO_MEMORY);
    assert_non_null(strstr(err.msg, "--context"));
    assert_int_equal(s.pages.n, 1);
    assert_int_equal(ox_kv_seq_reserve(&s, 2 * OX_KV_PAGE, NULL), OX_OK);
    ox_kv_seq_close(&s);
    ox_kv_pool_close(&p);
}

/* Memory that counts what it is asked and lets the n-th page fail. */
typedef struct counted {
    int n_taken, n_given, n_copied, most;
} counted;

static void *take(void *user, size_t bytes)
{
    counted *c = user;
    return c->most && c->n_taken == c->most ? NULL : (c->n_taken++, ox_alloc(bytes));
}

static void give(void *user, void *p, size_t bytes)
{
    (void)bytes;
    ((counted *)user)->n_given++;
    ox_free(p);
}

static void copy(void *user, void *to, const void *from, size_t bytes)
{
    ((counted *)user)->n_copied++;
    memcpy(to, from, bytes);
}

static void pages_come_from_a_device(void **state)
{
    (void)state;
    counted c = {.most = 4};
    const ox_kv_memory memory = {&c, take, give, copy};
    ox_err err = OX_ERR_INIT;
    ox_kv_pool *p = open_pool(0);
    ox_kv_seq s, f;
    ox_kv_pool_use(p, &memory);
    ox_kv_seq_open(&s, p);
    assert_int_equal(ox_kv_seq_reserve(&s, OX_KV_PAGE + 1, NULL), OX_OK);
    s.n_positions = OX_KV_PAGE + 1;
    memset(s.table.p[1], 7, ox_kv_pool_page_bytes(p));
    assert_int_equal(ox_kv_seq_fork(&f, &s, NULL), OX_OK);
    assert_int_equal(ox_kv_seq_reserve(&f, OX_KV_PAGE + 2, NULL), OX_OK);
    assert_int_equal(c.n_copied, 1);
    assert_memory_equal(f.table.p[1], s.table.p[1], ox_kv_pool_page_bytes(p));
    assert_int_equal(ox_kv_seq_reserve(&s, 4 * OX_KV_PAGE, &err), OX_NO_MEMORY);
    assert_int_equal(s.pages.n, 2);
    assert_int_equal(c.n_taken, 4);
    ox_kv_seq_close(&f);
    ox_kv_seq_close(&s);
    ox_kv_pool_close(&p);
    assert_int_equal(c.n_given, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(caches_lie_side_by_side),
        cmocka_unit_test(pages_follow_the_length),
        cmocka_unit_test(forks_share_until_written),
        cmocka_unit_test(a_full_pool_refuses_and_changes_nothing),
        cmocka_unit_test(pages_come_from_a_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
