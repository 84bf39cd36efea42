/* dfa_fuzz.c - the patterns of files in use, by table and by PCRE2, on the same text: equal
 * matches. The first byte picks the pattern, the rest picks characters. Both engines must know a
 * character in the same way: those that PCRE2's older tables have otherwise are left out. */
#include "base/vec.h"
#include "convert/gguf_vocab.h"
#include "text/tok/regex.h"
#include "text/unicode.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char *const splits[] = {
    "gpt2", "cl100k",  "one_digit", "marks", "o200k", "tekken", "han",       "scripts",
    "seed", "bailing", "phrases",   "coder", "plain", "falcon", "sentences", "digits_cl100k"};

/* From this list, so that short inputs reach every class. */
static const uint32_t pool[] = {
    'a',     'Z',    's',    't',    'r',    'e',    'v',     'm',     'l',    'd',    'S',
    '\'',    ' ',    '\n',   '\r',   '\t',   '1',    '9',     '0',     '/',    '!',    '.',
    '_',     '$',    0x17f,  0x212a, 0xa0,   0x3000, 0x2028,  0x85,    0x4e00, 0x9fa5, 0x3042,
    0x30ab,  0xac00, 0x301,  0x903,  0x20dd, 0x1c5,  0x2b0,   0x660,   0x2160, 0xbd,   0x5d0,
    0x1f600, 0x200d, 0xfe0f, 0x3002, 0xff01, 0x180e, 0x10400, 0x20000, 0xe000, 0x800,  0xb,
};

static void put_text(const uint8_t *data, size_t n, ox_buf *text)
{
    for (size_t i = 0; i < n; i++)
        ox_utf8_put(text, pool[data[i] % OX_COUNT(pool)]);
}

static void compare(const char *pattern, ox_str text)
{
    ox_regex *a = NULL, *b = NULL;
    ox_regex_run ra = {0}, rb = {0};
    ox_err err = OX_ERR_INIT;
    if (ox_regex_open(&a, ox_str_of(pattern), &err) ||
        ox_regex_open_with(&b, ox_str_of(pattern), false, &err))
        abort();
    for (size_t at = 0; at <= text.n;) {
        bool hit_a, hit_b;
        size_t begin_a = 0, begin_b = 0, end_a = 0, end_b = 0;
        const ox_status sa = ox_regex_next(a, &ra, text, at, &hit_a, &begin_a, &end_a, &err);
        const ox_status sb = ox_regex_next(b, &rb, text, at, &hit_b, &begin_b, &end_b, &err);
        if (sa || sb) break; /* a limit */
        if (hit_a != hit_b || (hit_a && (begin_a != begin_b || end_a != end_b))) abort();
        if (!hit_a) break;
        at = end_a > begin_a || end_a == text.n
                 ? end_a + (end_a == begin_a)
                 : end_a + ox_utf8_length(text.p + end_a, text.n - end_a);
    }
    ox_regex_run_deinit(&ra);
    ox_regex_run_deinit(&rb);
    ox_regex_close(&a);
    ox_regex_close(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ox_buf text = {0};
    if (!n) return 0;
    const char *const *patterns = ox_gguf_split(splits[data[0] % OX_COUNT(splits)]);
    put_text(data + 1, n - 1 < 400 ? n - 1 : 400, &text);
    for (; patterns && *patterns && text.n; patterns++)
        compare(*patterns, ox_buf_view(&text));
    ox_buf_deinit(&text);
    return 0;
}
