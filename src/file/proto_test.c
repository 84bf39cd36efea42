/* proto_test.c - the wire format at its edges: varints, lengths, groups, packed counts, writing. */
#include "file/proto.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static ox_proto reader(const char *bytes, size_t n)
{
    return ox_proto_of((ox_str){bytes, n});
}

#define READER(lit) reader((lit), sizeof(lit) - 1)

static void reads_varints_up_to_64_bits(void **state)
{
    (void)state;
    uint64_t v;
    ox_proto r = READER("\x00\x7f\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x80\x00");
    const uint64_t want[] = {0, 127, 128, UINT64_MAX, 0};
    for (size_t i = 0; i < OX_COUNT(want); i++) {
        assert_true(ox_proto_varint(&r, &v));
        assert_true(v == want[i]);
    }
    assert_false(ox_proto_varint(&r, &v));
    assert_non_null(r.bad);
    r = READER("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"); /* 65 bits */
    assert_false(ox_proto_varint(&r, &v));
    r = READER("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"); /* eleven bytes */
    assert_false(ox_proto_varint(&r, &v));
    r = READER("\x80\x80");
    assert_false(ox_proto_varint(&r, &v));
}

static void walks_fields_in_order(void **state)
{
    (void)state;
    ox_proto r = READER("\x08\x96\x01\x12\x03"
                        "abc\x1d\x00\x00\x80\x3f\x21\x01\x00\x00\x00\x00\x00\x00\x80");
    ox_proto_field f;
    assert_true(ox_proto_next(&r, &f) && f.number == 1 && ox_proto_is_varint(&f) && f.value == 150);
    assert_true(ox_proto_next(&r, &f) && f.number == 2 && ox_str_is(f.bytes, "abc"));
    assert_true(ox_proto_next(&r, &f) && f.wire == OX_PROTO_I32 && f.value == 0x3f800000);
    assert_true(ox_proto_next(&r, &f) && f.wire == OX_PROTO_I64 && f.value == 0x8000000000000001);
    assert_false(ox_proto_next(&r, &f));
    assert_null(r.bad);
}

static void stops_at_damage_and_stays_there(void **state)
{
    (void)state;
    const struct {
        ox_str bytes;
        const char *bad;
    } rows[] = {
        {OX_STR("\x00\x01"), "a field number is out of range"},
        {OX_STR("\x80\x80\x80\x80\x80\x80\x01\x00"), "a field number is out of range"},
        {OX_STR("\x0e"), "an unknown wire type"},
        {OX_STR("\x0a\x02x"), "a length runs past the end"},
        {OX_STR("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "a length runs past the end"},
        {OX_STR("\x0d\x01\x02\x03"), "a fixed-width field runs past the end"},
        {OX_STR("\x09\x01\x02\x03"), "a fixed-width field runs past the end"},
        {OX_STR("\x08"), "a varint runs past the end"},
        {OX_STR("\x0b\x08\x01"), "a varint runs past the end"}, /* a group left open */
        {OX_STR("\x0c"), "a group ends that did not begin"},
        {OX_STR("\x0b\x14"), "a group ends that did not begin"},
    };
    for (size_t i = 0; i < OX_COUNT(rows); i++) {
        ox_proto r = ox_proto_of(rows[i].bytes);
        ox_proto_field f;
        assert_false(ox_proto_next(&r, &f));
        assert_string_equal(r.bad, rows[i].bad);
        assert_false(ox_proto_next(&r, &f));
    }
}

static void bounds_the_depth_of_groups(void **state)
{
    (void)state;
    char bytes[2 * (OX_PROTO_MAX_GROUPS + 1)];
    ox_proto_field f;
    for (size_t n = OX_PROTO_MAX_GROUPS; n <= OX_PROTO_MAX_GROUPS + 1; n++) {
        memset(bytes, 0x0b, n);
        memset(bytes + n, 0x0c, n);
        ox_proto r = reader(bytes, 2 * n);
        assert_false(ox_proto_next(&r, &f));
        assert_true(!r.bad == (n == OX_PROTO_MAX_GROUPS));
    }
}

static void counts_packed_and_single_numbers(void **state)
{
    (void)state;
    const ox_proto_field one = {1, OX_PROTO_VARINT, 5, {"", 0}};
    const ox_proto_field packed = {1, OX_PROTO_LEN, 0, OX_STR("\x01\x80\x01\x7f\x00\x00\x00\x00")};
    const ox_proto_field open = {1, OX_PROTO_LEN, 0, OX_STR("\x01\x80")};
    assert_int_equal(ox_proto_count(&one, OX_PROTO_VARINT), 1);
    assert_true(ox_proto_count(&one, OX_PROTO_I32) == SIZE_MAX);
    assert_int_equal(ox_proto_count(&packed, OX_PROTO_VARINT), 7);
    assert_int_equal(ox_proto_count(&packed, OX_PROTO_I32), 2);
    assert_int_equal(ox_proto_count(&packed, OX_PROTO_I64), 1);
    assert_true(ox_proto_count(&open, OX_PROTO_VARINT) == SIZE_MAX);
    assert_true(ox_proto_count(&open, OX_PROTO_I32) == SIZE_MAX);
}

static void writes_what_it_reads(void **state)
{
    (void)state;
    ox_buf out = {0}, part = {0};
    ox_proto_put_int(&out, 1, 150);
    ox_proto_put_int(&out, 16, -1);
    ox_proto_put_f32(&out, 3, 1.0f);
    ox_proto_put_len(&part, 2, OX_STR("abc"));
    ox_proto_put_part(&out, 4, &part);
    assert_int_equal(part.n, 0);
    const char want[] = "\x08\x96\x01\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
                        "\x1d\x00\x00\x80\x3f\x22\x05\x12\x03"
                        "abc";
    assert_int_equal(out.n, sizeof(want) - 1);
    assert_memory_equal(out.p, want, out.n);
    part.failed = true;
    ox_proto_put_part(&out, 4, &part);
    assert_true(out.failed);
    ox_buf_deinit(&out);
    ox_buf_deinit(&part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_varints_up_to_64_bits),
        cmocka_unit_test(walks_fields_in_order),
        cmocka_unit_test(stops_at_damage_and_stays_there),
        cmocka_unit_test(bounds_the_depth_of_groups),
        cmocka_unit_test(counts_packed_and_single_numbers),
        cmocka_unit_test(writes_what_it_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
