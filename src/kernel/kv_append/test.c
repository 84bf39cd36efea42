/* Every row stores the reference's bytes and nothing else: two sequences, page borders, all types,
 * odd head sizes, idle rows. */
#include "kernel/kv_append/kv_append.h"
#include "tests/ktest/ktest.h"

#include <string.h>

enum { ROWS = 6, PAGES = 3 };

static void check(const ox_kernel_row *row, ox_dtype t, int32_t heads, int32_t size, int32_t v_size)
{
    const int32_t seq[ROWS] = {0, 0, 1, 1, 0, 1}, pos[ROWS] = {63, 64, 0, 17, -1, 127};
    const size_t other = 128, k_bytes = ox_kv_bytes(heads, size, t);
    const size_t bytes = other + k_bytes + ox_kv_bytes(heads, v_size, t);
    const size_t ldk = (size_t)(heads * size) + 3, ldv = (size_t)(heads * v_size) + 5;
    ktest_buf k = ktest_floats(ROWS * ldk), v = ktest_floats(ROWS * ldv), page[2][2 * PAGES];
    void *table[2][2 * PAGES];
    for (size_t i = 0; i < 2; i++)
        for (size_t p = 0; p < 2 * PAGES; p++) {
            page[i][p] = ktest_bytes(bytes);
            memset(page[i][p].p, 0x5a, bytes);
            table[i][p] = page[i][p].p;
        }
    ktest_fill(k.p, ROWS * ldk, -4.0f, 4.0f);
    ktest_fill(v.p, ROWS * ldv, -4.0f, 4.0f);
    for (size_t i = 0; i < 2; i++) {
        void *const *tables[2] = {table[i], table[i] + PAGES};
        const ox_kv_append_args a = {
            k.p, v.p, ROWS,
            ldk, ldv, {tables, seq, pos, t, other, other + k_bytes, heads, size, v_size}};
        if (i == 0) {
            ox_kv_append_ref(&a, 0, ROWS);
        } else {
            ((ox_kv_append_fn *)row->fn)(&a, 3, ROWS);
            ((ox_kv_append_fn *)row->fn)(&a, 0, 3);
        }
    }
    for (size_t p = 0; p < 2 * PAGES; p++)
        if (memcmp(page[0][p].p, page[1][p].p, bytes))
            ktest_fail("page %zu: heads=%d size=%d v=%d type=%d", p, heads, size, v_size, (int)t);
    for (size_t p = 0; p < 2 * PAGES; p++) {
        ktest_free(&page[0][p]);
        ktest_free(&page[1][p]);
    }
    ktest_free(&k);
    ktest_free(&v);
}

void ktest_kv_append(void);
void ktest_kv_append(void)
{
    static const ox_dtype types[] = {OX_DTYPE_F32, OX_DTYPE_F16, OX_DTYPE_BF16};
    for (const ox_kernel_row *row = ox_kv_append_rows; row->device; row++) {
        if (!ktest_begin(row)) continue;
        for (size_t t = 0; t < OX_COUNT(types); t++) {
            check(row, types[t], 2, 64, 64);
            check(row, types[t], 1, 128, 96);
            check(row, types[t], 3, 80, 40);
            check(row, types[t], 2, 7, 5);
        }
        ktest_end(row);
    }
}
