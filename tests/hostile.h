/* hostile.h - what every reader of outside bytes must survive: cuts and flips of each byte of a
 * sound file, and each allocation failing. For test programs. */
#ifndef OX_TESTS_HOSTILE_H
#define OX_TESTS_HOSTILE_H
#include "base/fs.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* Reads bytes; returns its status. Must free everything. */
typedef ox_status hostile_fn(ox_str bytes, ox_err *err);

/* On a copy of exactly these bytes, so that the sanitizer sees any read beyond. */
static inline ox_status hostile_try(hostile_fn *read, const char *bytes, size_t n, ox_err *err)
{
    char *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    if (n) memcpy(copy, bytes, n);
    const ox_status st = read((ox_str){copy, n}, err);
    if (st && err) assert_int_not_equal(err->msg[0], 0);
    free(copy);
    return st;
}

static inline void hostile_bytes(hostile_fn *read, const char *path)
{
    static const unsigned char masks[] = {1, 2, 4, 8, 16, 32, 64, 128, 255};
    ox_buf b = {0};
    assert_int_equal(ox_file_read(&b, path, 1 << 20, NULL), OX_OK);
    for (size_t n = 0; n < b.n; n++) {
        ox_err cut = OX_ERR_INIT;
        const char old = b.p[n];
        hostile_try(read, b.p, n, &cut);
        for (size_t j = 0; j < sizeof(masks); j++) {
            ox_err flip = OX_ERR_INIT;
            b.p[n] = (char)(old ^ (char)masks[j]);
            hostile_try(read, b.p, b.n, &flip);
        }
        b.p[n] = old;
    }
    ox_buf_deinit(&b);
}

static inline void hostile_memory(hostile_fn *read, const char *path)
{
    ox_buf b = {0};
    assert_int_equal(ox_file_read(&b, path, 1 << 20, NULL), OX_OK);
    for (long n = 1;; n++) {
        ox_err err = OX_ERR_INIT;
        ox_mem_fail_after(n);
        const ox_status st = read(ox_buf_view(&b), &err);
        ox_mem_fail_after(0);
        if (!st) break;
        assert_int_equal(st, OX_NO_MEMORY);
        assert_true(n < 10000);
    }
    ox_buf_deinit(&b);
}
#endif
