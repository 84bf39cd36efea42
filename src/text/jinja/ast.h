/* ast.h - tokens and the tree that the parser makes of a template; literals are ready values.
 *
 * Built once, never changed afterwards, so any number of renders may read it at once. Names are
 * numbers (index into the table of names of the template). nodes.def lists the kinds; the
 * evaluator has one function for each. */
#ifndef OX_TEXT_JINJA_AST_H
#define OX_TEXT_JINJA_AST_H
#include "base/arena.h"
#include "base/hash.h"
#include "base/vec.h"
#include "text/jinja/value.h"

/* token, text that stands for it in messages */
#define OX_JTOKEN_LIST(X)                                                                          \
    X(EOF, "end of template")                                                                      \
    X(DATA, "text")                                                                                \
    X(BLOCK_BEGIN, "{%")                                                                           \
    X(BLOCK_END, "%}")                                                                             \
    X(VAR_BEGIN, "{{")                                                                             \
    X(VAR_END, "}}")                                                                               \
    X(NAME, "name")                                                                                \
    X(STRING, "string")                                                                            \
    X(INT, "integer")                                                                              \
    X(FLOAT, "float")                                                                              \
    X(ADD, "+")                                                                                    \
    X(SUB, "-")                                                                                    \
    X(MUL, "*")                                                                                    \
    X(DIV, "/")                                                                                    \
    X(FLOORDIV, "//")                                                                              \
    X(MOD, "%")                                                                                    \
    X(POW, "**")                                                                                   \
    X(TILDE, "~")                                                                                  \
    X(LBRACKET, "[")                                                                               \
    X(RBRACKET, "]")                                                                               \
    X(LPAREN, "(")                                                                                 \
    X(RPAREN, ")")                                                                                 \
    X(LBRACE, "{")                                                                                 \
    X(RBRACE, "}")                                                                                 \
    X(EQ, "==")                                                                                    \
    X(NE, "!=")                                                                                    \
    X(GT, ">")                                                                                     \
    X(GE, ">=")                                                                                    \
    X(LT, "<")                                                                                     \
    X(LE, "<=")                                                                                    \
    X(ASSIGN, "=")                                                                                 \
    X(DOT, ".")                                                                                    \
    X(COLON, ":")                                                                                  \
    X(PIPE, "|")                                                                                   \
    X(COMMA, ",")                                                                                  \
    X(SEMICOLON, ";")                                                                              \
    X(IN, "in")                                                                                    \
    X(NOT_IN, "not in")

typedef enum ox_jtoken_kind {
#define X(name, text) OX_JTOKEN_##name,
    OX_JTOKEN_LIST(X)
#undef X
        OX_JTOKEN_COUNT
} ox_jtoken_kind;

const char *ox_jtoken_text(ox_jtoken_kind kind);

typedef struct ox_jtoken {
    ox_jtoken_kind kind;
    uint32_t line;
    ox_str text; /* DATA, NAME, STRING (unescaped): in the template's arena */
    union {
        int64_t i;
        double f;
    } u;
} ox_jtoken;

typedef OX_VEC(ox_jtoken) ox_jtokens;

/* Splits normalised source into tokens, the last one EOF. text outlives the tokens. */
ox_status ox_jlex(ox_jtokens *out, ox_arena *arena, ox_str source, ox_err *err);

typedef enum ox_jop {
#define OX_JEXPR(name, fn) OX_JOP_##name,
#define OX_JSTMT(name, fn) OX_JOP_##name,
#include "text/jinja/nodes.def"
#undef OX_JSTMT
#undef OX_JEXPR
    OX_JOP_COUNT
} ox_jop;

typedef struct ox_jnodes {
    ox_jnode **p;
    size_t n;
} ox_jnodes;

typedef struct ox_jkeyword {
    ox_str name;
    ox_jnode *value;
} ox_jkeyword;

typedef struct ox_jcallargs {
    ox_jnodes pos;
    ox_jkeyword *kw;
    size_t n_kw;
    ox_jnode *more_pos, *more_kw; /* *args and **kwargs, or NULL */
} ox_jcallargs;

typedef struct ox_jparam {
    uint32_t name;
    ox_jnode *value; /* default, or NULL */
} ox_jparam;

typedef struct ox_jsignature {
    ox_str name;
    ox_jparam *params;
    size_t n_params;
    ox_jnodes body;
    bool takes_more_pos, takes_more_kw, takes_caller; /* the body names varargs, kwargs, caller */
} ox_jsignature;

enum { OX_JNODE_NEGATED = 1, OX_JNODE_RECURSIVE = 2 };

struct ox_jnode {
    uint8_t op;   /* ox_jop */
    uint8_t flag; /* OX_JNODE_… */
    uint32_t line;
    uint32_t name; /* NAME, GETATTR, NSREF, MACRO, FILTER, TEST */
    ox_jnode *a;   /* operand, object, iterable, condition */
    ox_jnode *b;   /* second operand, index, target */
    ox_jnode *c;   /* else value, filter of a loop */
    union {
        ox_jval value;          /* CONST, TEXT; GETATTR and NSREF: the attribute as a string */
        ox_jnodes list;         /* items, statements; BODY */
        struct {                /* CALL, FILTER, TEST */
            ox_jcallargs *args; /* NULL = no arguments */
            const ox_jbuiltin *builtin;
        } call;
        struct { /* COMPARE: list[i] compared by ops[i] */
            ox_jnodes list;
            uint8_t *ops; /* ox_jtoken_kind */
        } compare;
        struct { /* FOR, IF, SET_BLOCK, WITH: bodies */
            ox_jnodes body, other;
        } block;
        struct { /* MACRO, CALL_BLOCK */
            ox_jsignature *sig;
        } macro;
    } u;
    const ox_jbuiltin *const *methods; /* GETATTR: rows by receiver, see builtin.h; or NULL */
};

/* A parsed template. Everything is in `arena`. */
typedef struct ox_jtree {
    ox_arena arena;
    ox_str source;
    ox_map ids; /* name -> number */
    ox_str *names;
    size_t n_names, cap_names;
    ox_jnodes body;
} ox_jtree;

/* Parses; on failure the tree is empty and *err names the line. Deinit in any case. */
ox_status ox_jparse(ox_jtree *tree, ox_str source, ox_err *err);
void ox_jtree_deinit(ox_jtree *tree);
#endif
