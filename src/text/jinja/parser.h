/* parser.h - what the two halves of the parser share: expressions (parser_expr.c) and statements
 * (parser.c). Nothing outside the parser includes this. */
#ifndef OX_TEXT_JINJA_PARSER_H
#define OX_TEXT_JINJA_PARSER_H
#include "text/jinja/builtin.h"

typedef struct ox_jparser {
    ox_jtree *tree;
    const ox_jtoken *at; /* never beyond the EOF token */
    ox_err *err;
    ox_jsignature *sig; /* of the macro being read, or NULL */
    unsigned depth;
    const ox_jtoken *unknown; /* first filter or test without a row, or NULL */
    unsigned soft;  /* inside a condition: an unknown filter or test fails only when reached */
    unsigned loops; /* enclosing loops, for break and continue */
} ox_jparser;

typedef OX_VEC(ox_jnode *) ox_jnode_vec;

ox_status ox_jp_no_memory(ox_jparser *p) OX_FAILS;
ox_status ox_jp_unexpected(ox_jparser *p, const char *expected) OX_FAILS;
ox_status ox_jp_enter(ox_jparser *p); /* one level deeper; leave with p->depth-- */
ox_status ox_jp_node(ox_jparser *p, ox_jop op, uint32_t line, ox_jnode **out);
ox_status ox_jp_keep(ox_jparser *p, ox_jnode_vec *v, ox_jnodes *out); /* moves v to the arena */
ox_status ox_jp_name_id(ox_jparser *p, ox_str name, uint32_t *id);

static inline bool ox_jp_is(const ox_jparser *p, ox_jtoken_kind kind)
{
    return p->at->kind == kind;
}
static inline bool ox_jp_is_name(const ox_jparser *p, const char *name)
{
    return p->at->kind == OX_JTOKEN_NAME && ox_str_is(p->at->text, name);
}
static inline void ox_jp_next(ox_jparser *p)
{
    if (p->at->kind != OX_JTOKEN_EOF) p->at++;
}
bool ox_jp_skip(ox_jparser *p, ox_jtoken_kind kind);
bool ox_jp_skip_name(ox_jparser *p, const char *name);
ox_status ox_jp_expect(ox_jparser *p, ox_jtoken_kind kind);
ox_status ox_jp_take_name(ox_jparser *p, ox_str *name);

typedef struct ox_jtuple_rule {
    bool no_condition; /* a bare "x if y" is not read (the if belongs to the for) */
    bool parentheses;  /* inside ( ): may be empty */
    bool target;       /* names only, for assignments */
    bool namespaces;   /* ns.x counts as a name */
    const char *end;   /* a name that ends it, or NULL */
} ox_jtuple_rule;

ox_status ox_jp_expression(ox_jparser *p, ox_jnode **out);
ox_status ox_jp_tuple(ox_jparser *p, const ox_jtuple_rule *rule, ox_jnode **out);
ox_status ox_jp_target(ox_jparser *p, const ox_jtuple_rule *rule, ox_jnode **out);
/* The chain |a|b after `operand` (NULL: what a block caught); inline: the first has no bar. */
ox_status ox_jp_filters(ox_jparser *p, ox_jnode *operand, bool without_bar, ox_jnode **out);
#endif
