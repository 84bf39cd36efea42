/* find_test.c - which files are handed to the loader. How folders are searched is tested end to end
 * (tests/e2e/test_ort.py). */
#define _GNU_SOURCE
#include "backend/ort/find.h"

#include "base/fs.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* A header that fits this program, with one loadable segment of `asked` bytes. */
static void make_header(uint8_t h[120], uint64_t asked)
{
    FILE *f = fopen("/proc/self/exe", "rb");
    assert_non_null(f);
    assert_int_equal(fread(h, 1, 64, f), 64);
    fclose(f);
    memset(h + 32, 0, 88);
    h[16] = 3;  /* shared object */
    h[32] = 64; /* segments behind the header */
    h[56] = 1;
    h[64] = 1; /* loadable */
    memcpy(h + 64 + 32, &asked, 8);
}

static ox_status check_bytes(const void *bytes, size_t n, ox_err *err)
{
    char path[] = "/tmp/oxgen-find-??????";
    memset(strchr(path, '?'), 'X', 6); /* as mkstemp wants it */
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
    close(fd);
    *err = (ox_err)OX_ERR_INIT;
    const ox_status st = ox_find_check(path, err);
    unlink(path);
    return st;
}

static void a_whole_library_passes(void **state)
{
    uint8_t h[120];
    ox_err err;
    (void)state;
    make_header(h, sizeof(h));
    assert_int_equal(check_bytes(h, sizeof(h), &err), OX_OK);
}

static void a_file_that_asks_for_more_is_damaged(void **state)
{
    static const uint64_t asked[] = {121, 1u << 30, UINT64_MAX};
    uint8_t h[120];
    ox_err err;
    (void)state;
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        make_header(h, asked[i]);
        assert_int_equal(check_bytes(h, sizeof(h), &err), OX_NO_DEVICE);
        assert_non_null(strstr(err.msg, "damaged"));
    }
    make_header(h, 100);
    memset(h + 72, 0xff, 8); /* offset + bytes overflows */
    assert_int_equal(check_bytes(h, sizeof(h), &err), OX_NO_DEVICE);
}

static void every_cut_is_refused(void **state)
{
    uint8_t h[120];
    ox_err err;
    (void)state;
    make_header(h, sizeof(h));
    for (size_t n = 0; n < sizeof(h); n++)
        assert_int_equal(check_bytes(h, n, &err), OX_NO_DEVICE);
}

static void another_machine_is_named(void **state)
{
    uint8_t h[120];
    ox_err err;
    (void)state;
    make_header(h, sizeof(h));
    h[18] = 183;
    h[19] = 0;
    assert_int_equal(check_bytes(h, sizeof(h), &err), OX_NO_DEVICE);
    assert_non_null(strstr(err.msg, "aarch64"));
    make_header(h, sizeof(h));
    h[16] = 2; /* a program */
    assert_int_equal(check_bytes(h, sizeof(h), &err), OX_NO_DEVICE);
    assert_non_null(strstr(err.msg, "no shared library"));
}

static void no_bytes_of_a_header_crash_it(void **state)
{
    uint8_t h[120];
    ox_err err;
    (void)state;
    for (size_t at = 0; at < sizeof(h); at++)
        for (int value = 0; value < 256; value += 85) {
            make_header(h, sizeof(h));
            h[at] = (uint8_t)value;
            check_bytes(h, sizeof(h), &err);
        }
}

static void a_named_file_that_is_absent(void **state)
{
    static const ox_find_what what = {
        .name = "X", .env = "OXGEN_FIND_TEST", .folder = "x", .stem = "libx.so", .needs = "1"};
    ox_err err = OX_ERR_INIT;
    char *path = NULL;
    (void)state;
    setenv("OXGEN_FIND_TEST", "/nonexistent/libx.so", 1);
    assert_int_equal(ox_find_library(&path, &what, &err), OX_NO_DEVICE);
    assert_null(path);
    setenv("OXGEN_FIND_TEST", "/proc/self/exe", 1);
    err = (ox_err)OX_ERR_INIT;
    assert_int_equal(ox_find_library(&path, &what, &err), OX_OK);
    assert_string_equal(path, "/proc/self/exe");
    ox_free(path);
    unsetenv("OXGEN_FIND_TEST");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_library_passes),
        cmocka_unit_test(a_file_that_asks_for_more_is_damaged),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(another_machine_is_named),
        cmocka_unit_test(no_bytes_of_a_header_crash_it),
        cmocka_unit_test(a_named_file_that_is_absent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
