/* dfa_internal.h - between the two halves of dfa.h: a pattern as a program of small steps
 * (dfa_parse.c), and its table (dfa.c). */
#ifndef OX_TEXT_TOK_DFA_INTERNAL_H
#define OX_TEXT_TOK_DFA_INTERNAL_H
#include "base/vec.h"
#include "text/tok/dfa.h"

enum { OX_DFA_MAX_SETS = 62, OX_DFA_MAX_STEPS = 4000, OX_DFA_MAX_POSSESSIVE = 16 };

typedef struct ox_dfa_range {
    uint32_t first, last;
} ox_dfa_range;

/* A set of code points: sorted ranges that do not touch. */
typedef OX_VEC(ox_dfa_range) ox_dfa_set;

typedef enum ox_dfa_op {
    OX_DFA_CHAR,  /* a character of set a, then the next step */
    OX_DFA_SPLIT, /* step a, or if that fails step b */
    OX_DFA_JUMP,  /* step a */
    OX_DFA_AHEAD, /* the next character is of set a; b: is not */
    OX_DFA_DONE
} ox_dfa_op;

typedef struct ox_dfa_step {
    uint16_t op, a, b;
} ox_dfa_step;

typedef struct ox_dfa_program {
    OX_VEC(ox_dfa_step) steps;
    ox_dfa_set sets[OX_DFA_MAX_SETS];
    size_t n_sets;
    struct {
        uint16_t set, after; /* a run of this set that gives nothing back, then this step */
    } possessive[OX_DFA_MAX_POSSESSIVE];
    size_t n_possessive;
    bool failed; /* out of memory */
} ox_dfa_program;

/* false: the pattern needs more than a table, or memory is short (prog->failed). */
bool ox_dfa_parse(ox_dfa_program *prog, ox_str pattern);
void ox_dfa_program_deinit(ox_dfa_program *prog);
#endif
