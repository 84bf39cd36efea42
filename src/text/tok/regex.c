/* regex.c - patterns by table (dfa.h) where they allow it, else PCRE2 with its JIT compiler. The
 * classes of regex_dialect.c already say what \s, \w and \b mean to the files' own engine; here are
 * options, limits and memory. */
#include "text/tok/regex.h"

#include "base/clock.h"
#include "base/mem.h"
#include "text/tok/dfa.h"
#include "text/unicode.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum {
    MATCH_LIMIT = 20 * 1000 * 1000, /* steps of one match */
    HEAP_LIMIT_KIB = 256 << 10,
    STACK_MIN = 64 << 10,
    STACK_MAX = 64 << 20,
    STEPS_PER_BYTE = 200,
    CHECK_EVERY = 64 /* matches between two looks at the clock */
};

struct ox_regex {
    ox_dfa *dfa; /* or */
    pcre2_code *code;
    bool jit;
};

static void *take(size_t n, void *unused)
{
    (void)unused;
    return ox_alloc(n);
}

static void give(void *p, void *unused)
{
    (void)unused;
    ox_free(p);
}

static ox_status compile(ox_regex *re, ox_str pattern, bool table, pcre2_general_context *memory,
                         ox_err *err)
{
    ox_status st = OX_OK;
    ox_buf translated = {0};
    pcre2_compile_context *context = pcre2_compile_context_create(memory);
    OX_TRY_GOTO(ox_regex_translate(pattern, &translated, err));
    if (table) OX_TRY_GOTO(ox_dfa_open(&re->dfa, ox_buf_view(&translated), err));
    if (re->dfa) goto fail; /* done */
    st = OX_NO_MEMORY;
    if (!context || translated.failed) goto fail;
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(context, 100);
    int code = 0;
    size_t at = 0;
    re->code = pcre2_compile((PCRE2_SPTR)translated.p, translated.n,
                             PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_DUPNAMES |
                                 PCRE2_NEVER_BACKSLASH_C,
                             &code, &at, context);
    st = OX_OK;
    if (re->code) {
        re->jit = pcre2_jit_compile(re->code, PCRE2_JIT_COMPLETE) == 0;
    } else {
        unsigned char text[120] = "";
        pcre2_get_error_message(code, text, sizeof(text));
        st = OX_FAIL(err, OX_UNSUPPORTED,
                     "pattern \"%.200s\" can't be compiled: %s at byte %zu of its "
                     "translation",
                     translated.p, (const char *)text, at);
    }
fail:
    if (st == OX_NO_MEMORY) OX_FAIL(err, st, "out of memory for a pattern");
    if (context) pcre2_compile_context_free(context);
    ox_buf_deinit(&translated);
    return st;
}

ox_status ox_regex_open(ox_regex **out, ox_str pattern, ox_err *err)
{
    return ox_regex_open_with(out, pattern, true, err);
}

ox_status ox_regex_open_with(ox_regex **out, ox_str pattern, bool table, ox_err *err)
{
    if (pattern.n > OX_REGEX_MAX_BYTES)
        return OX_FAIL(err, OX_LIMIT, "a pattern has %zu bytes, the limit is %d", pattern.n,
                       (int)OX_REGEX_MAX_BYTES);
    ox_regex *re = ox_calloc(1, sizeof(*re));
    pcre2_general_context *memory = pcre2_general_context_create(take, give, NULL);
    if (!re || !memory) {
        ox_free(re);
        if (memory) pcre2_general_context_free(memory);
        return OX_FAIL(err, OX_NO_MEMORY, "out of memory for a pattern");
    }
    const ox_status st = compile(re, pattern, table, memory, err);
    pcre2_general_context_free(memory);
    if (st) {
        ox_regex_close(&re);
        return st;
    }
    *out = re;
    return OX_OK;
}

void ox_regex_close(ox_regex **re)
{
    if (!*re) return;
    if ((*re)->code) pcre2_code_free((*re)->code);
    ox_dfa_close(&(*re)->dfa);
    ox_free(*re);
    *re = NULL;
}

const ox_dfa *ox_regex_table(const ox_regex *re)
{
    return re->dfa;
}

void ox_regex_run_deinit(ox_regex_run *run)
{
    if (run->data) pcre2_match_data_free(run->data);
    if (run->context) pcre2_match_context_free(run->context);
    if (run->stack) pcre2_jit_stack_free(run->stack);
    *run = (ox_regex_run){0};
}

static bool prepare(ox_regex_run *run, size_t text_bytes)
{
    if (run->data) return true;
    pcre2_general_context *memory = pcre2_general_context_create(take, give, NULL);
    if (!memory) return false;
    run->data = pcre2_match_data_create(1, memory);
    run->context = pcre2_match_context_create(memory);
    pcre2_general_context_free(memory);
    if (!run->data || !run->context) return false;
    pcre2_set_match_limit(run->context, MATCH_LIMIT);
    pcre2_set_heap_limit(run->context, HEAP_LIMIT_KIB);
    /* A hundred times slower than any pattern in use. */
    run->deadline = ox_clock_seconds() + 5 + (double)text_bytes * 2e-6;
    return true;
}

static size_t char_length(char first)
{
    const unsigned char c = (unsigned char)first;
    return c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

static int match(const ox_regex *re, ox_regex_run *run, ox_str text, size_t from)
{
    const PCRE2_SPTR s = (PCRE2_SPTR)(text.p ? text.p : "");
    if (!re->jit)
        return pcre2_match(re->code, s, text.n, from, PCRE2_NO_UTF_CHECK, run->data, run->context);
    int rc = pcre2_jit_match(re->code, s, text.n, from, 0, run->data, run->context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT && !run->stack) {
        run->stack = pcre2_jit_stack_create(STACK_MIN, STACK_MAX, NULL);
        if (!run->stack) return PCRE2_ERROR_NOMEMORY;
        pcre2_jit_stack_assign(run->context, NULL, run->stack);
        rc = pcre2_jit_match(re->code, s, text.n, from, 0, run->data, run->context);
    }
    return rc;
}

/* Tries place after place. */
static ox_status next_by_table(const ox_regex *re, ox_regex_run *run, ox_str text, size_t from,
                               bool *hit, size_t *begin, size_t *end, ox_err *err)
{
    const size_t most = STEPS_PER_BYTE * text.n + (1 << 14);
    *hit = false;
    if (!from) run->n_steps = 0; /* another piece */
    for (size_t at = from; at <= text.n; at += at < text.n ? char_length(text.p[at]) : 1) {
        *end = ox_dfa_match(re->dfa, text, at, &run->n_steps);
        if (*end == SIZE_MAX && run->n_steps <= most) continue;
        if (run->n_steps > most)
            return OX_FAIL(err, OX_LIMIT, "a pattern of the tokenizer takes too long on this text");
        *begin = at;
        *hit = true;
        break;
    }
    return OX_OK;
}

ox_status ox_regex_next(const ox_regex *re, ox_regex_run *run, ox_str text, size_t from, bool *hit,
                        size_t *begin, size_t *end, ox_err *err)
{
    if (re->dfa) return next_by_table(re, run, text, from, hit, begin, end, err);
    if (!prepare(run, text.n)) return OX_FAIL(err, OX_NO_MEMORY, "out of memory for matching");
    if (++run->n_calls % CHECK_EVERY == 0 && ox_clock_seconds() > run->deadline)
        return OX_FAIL(err, OX_LIMIT, "a pattern of the tokenizer takes too long on this text");
    const int rc = match(re, run, text, from);
    if (rc == PCRE2_ERROR_NOMEMORY) return OX_FAIL(err, OX_NO_MEMORY, "out of memory for matching");
    if (rc < 0 && rc != PCRE2_ERROR_NOMATCH) {
        unsigned char message[120] = "";
        pcre2_get_error_message(rc, message, sizeof(message));
        return OX_FAIL(err, OX_LIMIT, "a pattern of the tokenizer fails on this text: %s",
                       (const char *)message);
    }
    *hit = rc >= 0;
    if (*hit) {
        const PCRE2_SIZE *pair = pcre2_get_ovector_pointer(run->data);
        *begin = pair[0];
        *end = pair[1];
        if (*end < *begin) *end = *begin; /* \K in a look-ahead */
    }
    return OX_OK;
}
