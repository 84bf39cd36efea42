/* dfa.h - patterns as tables: one step a character, no backtracking.
 *
 * Takes the part of PCRE2's language that needs no memory of the past: classes, groups,
 * alternatives, greedy and lazy repeats, look-ahead at one character. The match is the one that
 * backtracking finds. Categories are those of text/unicode_ranges.def. Constant after open. */
#ifndef OX_TEXT_TOK_DFA_H
#define OX_TEXT_TOK_DFA_H
#include "base/status.h"
#include "base/str.h"

enum { OX_DFA_LOW = 0x32400 }; /* code points with a table entry of their own */

typedef struct ox_dfa {
    uint16_t *next;    /* [n_states][stride]: state, OX_DFA_MATCH: a match ended before this one */
    uint8_t *class_of; /* [OX_DFA_LOW] */
    struct ox_dfa_high *high;
    size_t n_high, n_states;
    unsigned stride; /* power of two; the last class is the end of text */
    uint8_t end_class;
} ox_dfa;

enum { OX_DFA_MATCH = 0x8000, OX_DFA_START = 1 }; /* state 0: nothing can match any more */

/* *out is NULL when the pattern (in PCRE2's dialect) needs more than this. */
ox_status ox_dfa_open(ox_dfa **out, ox_str pattern, ox_err *err);
void ox_dfa_close(ox_dfa **dfa); /* NULL allowed */

uint8_t ox_dfa_class_high(const ox_dfa *d, uint32_t c);

/* End of the match that begins at `at`, or SIZE_MAX. *steps grows by the characters looked at. */
size_t ox_dfa_match(const ox_dfa *d, ox_str text, size_t at, size_t *steps);
#endif
