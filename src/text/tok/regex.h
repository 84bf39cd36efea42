/* regex.h - the patterns of tokenizer files (Oniguruma's Ruby dialect) run by PCRE2.
 *
 * A compiled pattern is constant and shared; each encode call has its own ox_regex_run. Work per
 * match and per call is bounded: patterns that explode end in OX_LIMIT. */
#ifndef OX_TEXT_TOK_REGEX_H
#define OX_TEXT_TOK_REGEX_H
#include "base/status.h"
#include "base/str.h"

enum { OX_REGEX_MAX_BYTES = 1 << 16 };

typedef struct ox_regex ox_regex;

typedef struct ox_regex_run {
    struct pcre2_real_match_data_8 *data;
    struct pcre2_real_match_context_8 *context;
    struct pcre2_real_jit_stack_8 *stack;
    double deadline; /* seconds of the monotonic clock; 0 = not set yet */
    unsigned n_calls;
    size_t n_steps; /* characters looked at, for patterns that run by table */
} ox_regex_run;

ox_status ox_regex_open(ox_regex **out, ox_str pattern, ox_err *err);
/* table: try a table first, as ox_regex_open does. */
ox_status ox_regex_open_with(ox_regex **out, ox_str pattern, bool table, ox_err *err);
void ox_regex_close(ox_regex **re); /* NULL allowed */

/* First match at or after `from`; *hit false when there is none. text must be UTF-8. */
ox_status ox_regex_next(const ox_regex *re, ox_regex_run *run, ox_str text, size_t from, bool *hit,
                        size_t *begin, size_t *end, ox_err *err);
/* The pattern as a table, NULL when PCRE2 runs it. */
const struct ox_dfa *ox_regex_table(const ox_regex *re);
void ox_regex_run_deinit(ox_regex_run *run);

/* The same pattern in PCRE2's dialect, appended to *out (regex_dialect.c). */
ox_status ox_regex_translate(ox_str pattern, ox_buf *out, ox_err *err);
#endif
