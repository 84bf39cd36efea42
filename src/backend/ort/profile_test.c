/* profile_test.c - the table out of a profile's lines, whole, cut short and odd. */
#define _GNU_SOURCE
#include "backend/ort/ort.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char lines[] =
    "[\n"
    "{\"cat\" : \"Session\",\"dur\" :900,\"name\" :\"model_run\",\"args\" : {}},\n"
    "{\"cat\" : \"Node\",\"dur\" :300,\"name\" :\"/a/MatMul_kernel_time\",\"args\" : {\"op_name\" "
    ": "
    "\"MatMul\",\"parameter_size\" : \"1000\",\"activation_size\" : \"500\",\"output_size\" : "
    "\"500\"}},\n"
    "{\"cat\" : \"Node\",\"dur\" :100,\"name\" :\"/b/MatMul_kernel_time\",\"args\" : {\"op_name\" "
    ": "
    "\"MatMul\"}},\n"
    "{\"cat\" : \"Node\",\"dur\" :50,\"name\" :\"/c/Add_kernel_time\",\"args\" : {\"op_name\" : "
    "\"Add\"}},\n"
    "{\"cat\" : \"Node\",\"dur\" :50,\"name\" :\"/c/Add_fence_before\",\"args\" : {\"op_name\" : "
    "\"Add\"}},\n"
    "{\"cat\" : \"Node\",\"dur\" :300,\"name\" :\"/a/MatMul_kernel_time\",\"args\" : {\"op_name\" "
    ": "
    "\"MatMul\"}}\n"
    "]\n";

static ox_status table_of(ox_buf *out, const char *text, size_t n, ox_err *err)
{
    char path[] = "/tmp/oxgen-profile-??????";
    memset(strchr(path, '?'), 'X', 6); /* as mkstemp wants it */
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, n), (ssize_t)n);
    close(fd);
    const ox_status st = ox_ort_profile_table(out, path, err);
    unlink(path);
    return st;
}

static void types_and_nodes_are_summed(void **state)
{
    ox_buf out = {0};
    ox_err err = OX_ERR_INIT;
    (void)state;
    assert_int_equal(table_of(&out, lines, sizeof(lines) - 1, &err), OX_OK);
    assert_non_null(strstr(out.p, "0.750 ms in operators"));
    assert_non_null(strstr(out.p, "0.700   93.3%          3     233.3"));
    assert_non_null(
        strstr(out.p, "0.600   80.0%          2     300.0     0.00   /a/MatMul (MatMul)"));
    assert_non_null(strstr(out.p, "/c/Add (Add)"));
    assert_null(strstr(out.p, "fence"));
    assert_null(strstr(out.p, "model_run"));
    ox_buf_deinit(&out);
}

static void a_cut_profile_gives_what_is_whole(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof(lines); n++) {
        ox_buf out = {0};
        ox_err err = OX_ERR_INIT;
        assert_int_equal(table_of(&out, lines, n, &err), OX_OK);
        assert_non_null(strstr(out.p, "ms in operators"));
        ox_buf_deinit(&out);
    }
}

static void a_missing_file_is_an_error(void **state)
{
    ox_buf out = {0};
    ox_err err = OX_ERR_INIT;
    (void)state;
    assert_int_not_equal(ox_ort_profile_table(&out, "/nonexistent/profile.json", &err), OX_OK);
    ox_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_and_nodes_are_summed),
        cmocka_unit_test(a_cut_profile_gives_what_is_whole),
        cmocka_unit_test(a_missing_file_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
