/* SHA-256 against the examples of FIPS 180-4 and every split of a message. */
#include "base/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void digest(const char *text, size_t split, char hex[65])
{
    ox_sha256 s;
    const size_t n = strlen(text);
    ox_sha256_init(&s);
    ox_sha256_put(&s, text, split);
    ox_sha256_put(&s, text + split, n - split);
    ox_sha256_end(&s, hex);
}

static void known_messages(void **state)
{
    (void)state;
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    char hex[65];
    digest("", 0, hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    digest("abc", 1, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    for (size_t i = 0; i <= strlen(two_blocks); i++) {
        digest(two_blocks, i, hex);
        assert_string_equal(hex,
                            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    }
}

static void lengths_around_the_padding(void **state)
{
    (void)state;
    char text[200] = {0}, hex[65], again[65];
    for (size_t n = 50; n < 140; n++) {
        memset(text, 'x', n);
        text[n] = 0;
        digest(text, 0, hex);
        digest(text, n / 2, again);
        assert_string_equal(hex, again);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_messages),
        cmocka_unit_test(lengths_around_the_padding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
