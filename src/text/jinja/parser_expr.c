/* parser_expr.c - expressions, loosest first: conditional, or, and, not, comparison, + -, ~,
 * * / // %, **, unary, then what follows a value: .name [index] (call) |filter is test.
 *
 * The order is Jinja's, which differs from Python's: ~ binds tighter than +, a filter tighter than
 * every operator, and a sign tighter than a filter's operand. Next: parser.c. */
#include "text/jinja/parser.h"

static ox_status binary(ox_jparser *p, ox_jop op, uint32_t line, ox_jnode *a, ox_jnode *b,
                        ox_jnode **out)
{
    OX_TRY(ox_jp_node(p, op, line, out));
    (*out)->a = a;
    (*out)->b = b;
    return OX_OK;
}

static ox_status constant(ox_jparser *p, uint32_t line, ox_jval v, ox_jnode **out)
{
    OX_TRY(ox_jp_node(p, OX_JOP_CONST, line, out));
    (*out)->u.value = v;
    return OX_OK;
}

static ox_status string_value(ox_jparser *p, ox_str text, ox_jval *out)
{
    ox_jstr *s = ox_arena_take(&p->tree->arena, sizeof(*s));
    if (!s) return ox_jp_no_memory(p);
    *s = (ox_jstr){.p = text.n ? text.p : "", .n = text.n};
    *out = ox_jstrval(s);
    return OX_OK;
}

/* Items separated by commas up to `end`, a final comma allowed; the end is skipped. */
static ox_status parse_items(ox_jparser *p, ox_jtoken_kind end, bool pairs, ox_jnodes *out)
{
    ox_jnode_vec items = {0};
    ox_status st = OX_OK;
    ox_jnode *n = NULL;
    while (!ox_jp_is(p, end)) {
        if (items.n) {
            OX_TRY_GOTO(ox_jp_expect(p, OX_JTOKEN_COMMA));
            if (ox_jp_is(p, end)) break;
        }
        OX_TRY_GOTO(ox_jp_expression(p, &n));
        if (!ox_vec_push(&items, n)) OX_TRY_GOTO(ox_jp_no_memory(p));
        if (!pairs) continue;
        OX_TRY_GOTO(ox_jp_expect(p, OX_JTOKEN_COLON));
        OX_TRY_GOTO(ox_jp_expression(p, &n));
        if (!ox_vec_push(&items, n)) OX_TRY_GOTO(ox_jp_no_memory(p));
    }
    ox_jp_next(p);
    return ox_jp_keep(p, &items, out);
fail:
    ox_vec_deinit(&items);
    return st;
}

static ox_status parse_strings(ox_jparser *p, ox_jnode **out)
{
    const uint32_t line = p->at->line;
    ox_str text = p->at->text;
    ox_jval v;
    ox_jp_next(p);
    if (ox_jp_is(p, OX_JTOKEN_STRING)) { /* 'a' 'b' is one literal */
        ox_buf all = {0};
        ox_buf_put_str(&all, text);
        for (; ox_jp_is(p, OX_JTOKEN_STRING); ox_jp_next(p))
            ox_buf_put_str(&all, p->at->text);
        text = (ox_str){ox_arena_copy(&p->tree->arena, all.p ? all.p : "", all.n), all.n};
        const bool failed = all.failed || !text.p;
        ox_buf_deinit(&all);
        if (failed) return ox_jp_no_memory(p);
    }
    OX_TRY(string_value(p, text, &v));
    return constant(p, line, v, out);
}

static void note_special_name(ox_jparser *p, ox_str name)
{
    if (!p->sig) return;
    if (ox_str_is(name, "varargs")) p->sig->takes_more_pos = true;
    if (ox_str_is(name, "kwargs")) p->sig->takes_more_kw = true;
    if (ox_str_is(name, "caller")) p->sig->takes_caller = true;
}

static ox_status parse_name(ox_jparser *p, bool namespaces, ox_jnode **out)
{
    static const struct {
        const char *name;
        ox_jval value;
    } literals[] = {
        {"true", {.kind = OX_JKIND_BOOL, .u.b = true}},
        {"True", {.kind = OX_JKIND_BOOL, .u.b = true}},
        {"false", {.kind = OX_JKIND_BOOL}},
        {"False", {.kind = OX_JKIND_BOOL}},
        {"none", {.kind = OX_JKIND_NONE}},
        {"None", {.kind = OX_JKIND_NONE}},
    };
    const uint32_t line = p->at->line;
    const ox_str name = p->at->text;
    ox_jp_next(p);
    for (size_t i = 0; i < OX_COUNT(literals); i++)
        if (ox_str_is(name, literals[i].name)) return constant(p, line, literals[i].value, out);
    uint32_t id;
    OX_TRY(ox_jp_name_id(p, name, &id));
    if (namespaces && ox_jp_skip(p, OX_JTOKEN_DOT)) {
        ox_str attribute;
        OX_TRY(ox_jp_take_name(p, &attribute));
        OX_TRY(ox_jp_node(p, OX_JOP_NSREF, line, out));
        (*out)->name = id;
        return string_value(p, attribute, &(*out)->u.value);
    }
    note_special_name(p, name);
    OX_TRY(ox_jp_node(p, OX_JOP_NAME, line, out));
    (*out)->name = id;
    return OX_OK;
}

static ox_status parse_primary(ox_jparser *p, bool namespaces, ox_jnode **out)
{
    const ox_jtoken t = *p->at;
    switch (t.kind) {
    case OX_JTOKEN_NAME:
        return parse_name(p, namespaces, out);
    case OX_JTOKEN_STRING:
        return parse_strings(p, out);
    case OX_JTOKEN_INT:
        ox_jp_next(p);
        return constant(p, t.line, ox_jint(t.u.i), out);
    case OX_JTOKEN_FLOAT:
        ox_jp_next(p);
        return constant(p, t.line, ox_jfloat(t.u.f), out);
    case OX_JTOKEN_LPAREN:
        ox_jp_next(p);
        OX_TRY(ox_jp_tuple(p, &(ox_jtuple_rule){.parentheses = true}, out));
        return ox_jp_expect(p, OX_JTOKEN_RPAREN);
    case OX_JTOKEN_LBRACKET:
        ox_jp_next(p);
        OX_TRY(ox_jp_node(p, OX_JOP_LIST, t.line, out));
        return parse_items(p, OX_JTOKEN_RBRACKET, false, &(*out)->u.list);
    case OX_JTOKEN_LBRACE:
        ox_jp_next(p);
        OX_TRY(ox_jp_node(p, OX_JOP_DICT, t.line, out));
        return parse_items(p, OX_JTOKEN_RBRACE, true, &(*out)->u.list);
    default:
        return ox_jp_unexpected(p, "an expression");
    }
}

/* ---- calls ---- */

typedef OX_VEC(ox_jkeyword) keyword_vec;

static ox_status bad_call(ox_jparser *p)
{
    return ox_jsyntax(p->err, OX_BAD_FILE, p->at->line,
                      "arguments of a call must be in the order: values, names=, *list, **dict");
}

static ox_status parse_argument(ox_jparser *p, ox_jcallargs *a, ox_jnode_vec *pos, keyword_vec *kw)
{
    if (ox_jp_skip(p, OX_JTOKEN_MUL)) {
        if (a->more_pos || a->more_kw) return bad_call(p);
        return ox_jp_expression(p, &a->more_pos);
    }
    if (ox_jp_skip(p, OX_JTOKEN_POW)) {
        if (a->more_kw) return bad_call(p);
        return ox_jp_expression(p, &a->more_kw);
    }
    if (ox_jp_is(p, OX_JTOKEN_NAME) && p->at[1].kind == OX_JTOKEN_ASSIGN) {
        if (a->more_kw) return bad_call(p);
        ox_jkeyword k = {.name = p->at->text};
        p->at += 2;
        OX_TRY(ox_jp_expression(p, &k.value));
        for (size_t i = 0; i < kw->n; i++)
            if (ox_str_eq(kw->p[i].name, k.name))
                return ox_jsyntax(p->err, OX_BAD_FILE, p->at->line, "argument %.*s given twice",
                                  OX_STR_ARGS(k.name));
        return ox_vec_push(kw, k) ? OX_OK : ox_jp_no_memory(p);
    }
    if (a->more_pos || a->more_kw || kw->n) return bad_call(p);
    ox_jnode *n = NULL;
    OX_TRY(ox_jp_expression(p, &n));
    return ox_vec_push(pos, n) ? OX_OK : ox_jp_no_memory(p);
}

static ox_status keep_keywords(ox_jparser *p, keyword_vec *kw, ox_jcallargs *a)
{
    if (!kw->n) return OX_OK;
    a->kw = ox_arena_take_n(&p->tree->arena, kw->n, sizeof(*kw->p));
    if (!a->kw) return ox_jp_no_memory(p);
    memcpy(a->kw, kw->p, kw->n * sizeof(*kw->p));
    a->n_kw = kw->n;
    return OX_OK;
}

static ox_status parse_arguments(ox_jparser *p, ox_jcallargs **out)
{
    ox_jnode_vec pos = {0};
    keyword_vec kw = {0};
    ox_status st = OX_OK;
    bool more = false;
    ox_jcallargs *a = ox_arena_take(&p->tree->arena, sizeof(*a));
    if (!a) return ox_jp_no_memory(p);
    OX_TRY(ox_jp_expect(p, OX_JTOKEN_LPAREN));
    while (!ox_jp_is(p, OX_JTOKEN_RPAREN)) {
        if (more) {
            OX_TRY_GOTO(ox_jp_expect(p, OX_JTOKEN_COMMA));
            if (ox_jp_is(p, OX_JTOKEN_RPAREN)) break;
        }
        OX_TRY_GOTO(parse_argument(p, a, &pos, &kw));
        more = true;
    }
    ox_jp_next(p);
    OX_TRY_GOTO(keep_keywords(p, &kw, a));
    OX_TRY_GOTO(ox_jp_keep(p, &pos, &a->pos));
    *out = a;
fail:
    ox_vec_deinit(&pos);
    ox_vec_deinit(&kw);
    return st;
}

static ox_status parse_call(ox_jparser *p, ox_jnode *f, ox_jnode **out)
{
    OX_TRY(ox_jp_node(p, OX_JOP_CALL, p->at->line, out));
    (*out)->a = f;
    return parse_arguments(p, &(*out)->u.call.args);
}

/* ---- subscripts ---- */

static ox_status parse_subscript(ox_jparser *p, ox_jnode **out)
{
    const uint32_t line = p->at->line;
    ox_jnode *first = NULL, *bounds[3] = {NULL, NULL, NULL};
    if (!ox_jp_is(p, OX_JTOKEN_COLON)) {
        OX_TRY(ox_jp_expression(p, &first));
        if (!ox_jp_is(p, OX_JTOKEN_COLON)) {
            *out = first;
            return OX_OK;
        }
    }
    bounds[0] = first;
    for (int i = 1; i < 3 && ox_jp_skip(p, OX_JTOKEN_COLON); i++) {
        const bool none = ox_jp_is(p, OX_JTOKEN_COLON) || ox_jp_is(p, OX_JTOKEN_RBRACKET) ||
                          ox_jp_is(p, OX_JTOKEN_COMMA);
        if (!none) OX_TRY(ox_jp_expression(p, &bounds[i]));
    }
    OX_TRY(ox_jp_node(p, OX_JOP_SLICE, line, out));
    (*out)->a = bounds[0];
    (*out)->b = bounds[1];
    (*out)->c = bounds[2];
    return OX_OK;
}

static ox_status cache_methods(ox_jparser *p, ox_jnode *n, ox_str name)
{
    static const ox_jkind receivers[] = {OX_JKIND_STR, OX_JKIND_LIST, OX_JKIND_DICT};
    const ox_jbuiltin *rows[OX_COUNT(receivers)];
    bool any = false;
    for (size_t i = 0; i < OX_COUNT(receivers); i++) {
        rows[i] = ox_jmethod_find(receivers[i], name);
        any |= rows[i] != NULL;
    }
    if (!any) return OX_OK;
    const ox_jbuiltin **kept = ox_arena_take(&p->tree->arena, sizeof(rows));
    if (!kept) return ox_jp_no_memory(p);
    memcpy(kept, rows, sizeof(rows));
    n->methods = kept;
    return OX_OK;
}

static ox_status parse_dot(ox_jparser *p, ox_jnode *a, ox_jnode **out)
{
    const uint32_t line = p->at->line;
    ox_jp_next(p);
    const ox_jtoken t = *p->at;
    if (t.kind == OX_JTOKEN_INT) {
        ox_jnode *index;
        ox_jp_next(p);
        OX_TRY(constant(p, t.line, ox_jint(t.u.i), &index));
        return binary(p, OX_JOP_GETITEM, line, a, index, out);
    }
    if (t.kind != OX_JTOKEN_NAME) return ox_jp_unexpected(p, "a name or number behind the dot");
    ox_jp_next(p);
    OX_TRY(ox_jp_node(p, OX_JOP_GETATTR, line, out));
    (*out)->a = a;
    OX_TRY(cache_methods(p, *out, t.text));
    return string_value(p, t.text, &(*out)->u.value);
}

static ox_status parse_brackets(ox_jparser *p, ox_jnode *a, ox_jnode **out)
{
    const uint32_t line = p->at->line;
    ox_jnode_vec items = {0};
    ox_status st = OX_OK;
    ox_jnode *index = NULL;
    ox_jp_next(p);
    while (!ox_jp_is(p, OX_JTOKEN_RBRACKET)) {
        if (items.n) OX_TRY_GOTO(ox_jp_expect(p, OX_JTOKEN_COMMA));
        OX_TRY_GOTO(parse_subscript(p, &index));
        if (!ox_vec_push(&items, index)) OX_TRY_GOTO(ox_jp_no_memory(p));
    }
    ox_jp_next(p);
    if (items.n != 1) {
        OX_TRY_GOTO(ox_jp_node(p, OX_JOP_TUPLE, line, &index));
        OX_TRY_GOTO(ox_jp_keep(p, &items, &index->u.list));
    }
    st = binary(p, OX_JOP_GETITEM, line, a, index, out);
fail:
    ox_vec_deinit(&items);
    return st;
}

static ox_status parse_postfix(ox_jparser *p, ox_jnode *n, ox_jnode **out)
{
    for (;;) {
        if (ox_jp_is(p, OX_JTOKEN_DOT))
            OX_TRY(parse_dot(p, n, &n));
        else if (ox_jp_is(p, OX_JTOKEN_LBRACKET))
            OX_TRY(parse_brackets(p, n, &n));
        else if (ox_jp_is(p, OX_JTOKEN_LPAREN))
            OX_TRY(parse_call(p, n, &n));
        else
            break;
    }
    *out = n;
    return OX_OK;
}

/* ---- filters and tests ---- */

/* Remembers the first name that has no row; refused at the end unless a condition guards it. */
static void note_unknown(ox_jparser *p, const ox_jtoken *name)
{
    if (!p->soft && !p->unknown) p->unknown = name;
}

ox_status ox_jp_filters(ox_jparser *p, ox_jnode *n, bool without_bar, ox_jnode **out)
{
    while (without_bar || ox_jp_skip(p, OX_JTOKEN_PIPE)) {
        ox_jnode *f;
        ox_str name = {0};
        without_bar = false;
        OX_TRY(ox_jp_node(p, OX_JOP_FILTER, p->at->line, &f));
        const ox_jtoken *at = p->at;
        OX_TRY(ox_jp_take_name(p, &name));
        OX_TRY(ox_jp_name_id(p, name, &f->name));
        f->a = n;
        f->u.call.builtin = ox_jfilter_find(name);
        if (!f->u.call.builtin) note_unknown(p, at);
        if (ox_jp_is(p, OX_JTOKEN_LPAREN)) OX_TRY(parse_arguments(p, &f->u.call.args));
        n = f;
    }
    *out = n;
    return OX_OK;
}

/* Whether a test's single argument may begin here without brackets: "is divisibleby 3". */
static bool bare_argument(const ox_jparser *p)
{
    switch (p->at->kind) {
    case OX_JTOKEN_NAME:
        return !ox_jp_is_name(p, "else") && !ox_jp_is_name(p, "or") && !ox_jp_is_name(p, "and");
    case OX_JTOKEN_STRING:
    case OX_JTOKEN_INT:
    case OX_JTOKEN_FLOAT:
    case OX_JTOKEN_LBRACKET:
    case OX_JTOKEN_LBRACE:
        return true;
    default:
        return false;
    }
}

static ox_status parse_bare_argument(ox_jparser *p, ox_jnode *test)
{
    ox_jnode *n = NULL;
    if (ox_jp_is_name(p, "is"))
        return ox_jsyntax(p->err, OX_BAD_FILE, p->at->line, "tests with 'is' can't be chained");
    OX_TRY(parse_primary(p, false, &n));
    OX_TRY(parse_postfix(p, n, &n));
    ox_jcallargs *a = ox_arena_take(&p->tree->arena, sizeof(*a) + sizeof(ox_jnode *));
    if (!a) return ox_jp_no_memory(p);
    a->pos.p = (ox_jnode **)(a + 1);
    a->pos.p[0] = n;
    a->pos.n = 1;
    test->u.call.args = a;
    return OX_OK;
}

static ox_status parse_test(ox_jparser *p, ox_jnode *a, ox_jnode **out)
{
    ox_str name = {0};
    OX_TRY(ox_jp_node(p, OX_JOP_TEST, p->at->line, out));
    ox_jnode *t = *out;
    ox_jp_next(p);
    if (ox_jp_skip_name(p, "not")) t->flag = OX_JNODE_NEGATED;
    const ox_jtoken *at = p->at;
    OX_TRY(ox_jp_take_name(p, &name));
    OX_TRY(ox_jp_name_id(p, name, &t->name));
    t->a = a;
    t->u.call.builtin = ox_jtest_find(name);
    if (!t->u.call.builtin) note_unknown(p, at);
    if (ox_jp_is(p, OX_JTOKEN_LPAREN)) return parse_arguments(p, &t->u.call.args);
    return bare_argument(p) ? parse_bare_argument(p, t) : OX_OK;
}

static ox_status parse_filter_expr(ox_jparser *p, ox_jnode *n, ox_jnode **out)
{
    for (;;) {
        if (ox_jp_is(p, OX_JTOKEN_PIPE))
            OX_TRY(ox_jp_filters(p, n, false, &n));
        else if (ox_jp_is_name(p, "is"))
            OX_TRY(parse_test(p, n, &n));
        else if (ox_jp_is(p, OX_JTOKEN_LPAREN))
            OX_TRY(parse_call(p, n, &n));
        else
            break;
    }
    *out = n;
    return OX_OK;
}

/* ---- operators ---- */

static ox_status parse_unary(ox_jparser *p, bool filters, ox_jnode **out)
{
    const uint32_t line = p->at->line;
    const bool minus = ox_jp_is(p, OX_JTOKEN_SUB);
    ox_jnode *n = NULL;
    if (minus || ox_jp_is(p, OX_JTOKEN_ADD)) {
        OX_TRY(ox_jp_enter(p));
        ox_jp_next(p);
        OX_TRY(parse_unary(p, false, &n));
        OX_TRY(binary(p, minus ? OX_JOP_NEG : OX_JOP_POS, line, n, NULL, &n));
        p->depth--;
    } else {
        OX_TRY(parse_primary(p, false, &n));
    }
    OX_TRY(parse_postfix(p, n, &n));
    if (filters) OX_TRY(parse_filter_expr(p, n, &n));
    *out = n;
    return OX_OK;
}

typedef struct level {
    ox_jtoken_kind token;
    ox_jop op;
} level;

static ox_status parse_left(ox_jparser *p, const level *ops, size_t n_ops,
                            ox_status (*tighter)(ox_jparser *, ox_jnode **), ox_jnode **out)
{
    ox_jnode *a, *b;
    uint32_t line = p->at->line;
    OX_TRY(tighter(p, &a));
    for (size_t i = 0; i < n_ops;) {
        if (!ox_jp_skip(p, ops[i].token)) {
            i++;
            continue;
        }
        OX_TRY(tighter(p, &b));
        OX_TRY(binary(p, ops[i].op, line, a, b, &a));
        line = p->at->line;
        i = 0;
    }
    *out = a;
    return OX_OK;
}

static ox_status parse_signed(ox_jparser *p, ox_jnode **out)
{
    return parse_unary(p, true, out);
}

static ox_status parse_power(ox_jparser *p, ox_jnode **out)
{
    static const level ops[] = {{OX_JTOKEN_POW, OX_JOP_POW}};
    return parse_left(p, ops, OX_COUNT(ops), parse_signed, out);
}

static ox_status parse_product(ox_jparser *p, ox_jnode **out)
{
    static const level ops[] = {{OX_JTOKEN_MUL, OX_JOP_MUL},
                                {OX_JTOKEN_DIV, OX_JOP_DIV},
                                {OX_JTOKEN_FLOORDIV, OX_JOP_FLOORDIV},
                                {OX_JTOKEN_MOD, OX_JOP_MOD}};
    return parse_left(p, ops, OX_COUNT(ops), parse_power, out);
}

static ox_status parse_concat(ox_jparser *p, ox_jnode **out)
{
    ox_jnode_vec items = {0};
    ox_status st = OX_OK;
    const uint32_t line = p->at->line;
    ox_jnode *n = NULL;
    OX_TRY(parse_product(p, &n));
    if (!ox_jp_is(p, OX_JTOKEN_TILDE)) {
        *out = n;
        return OX_OK;
    }
    if (!ox_vec_push(&items, n)) return ox_jp_no_memory(p);
    while (ox_jp_skip(p, OX_JTOKEN_TILDE)) {
        OX_TRY_GOTO(parse_product(p, &n));
        if (!ox_vec_push(&items, n)) OX_TRY_GOTO(ox_jp_no_memory(p));
    }
    OX_TRY_GOTO(ox_jp_node(p, OX_JOP_CONCAT, line, out));
    return ox_jp_keep(p, &items, &(*out)->u.list);
fail:
    ox_vec_deinit(&items);
    return st;
}

static ox_status parse_sum(ox_jparser *p, ox_jnode **out)
{
    static const level ops[] = {{OX_JTOKEN_ADD, OX_JOP_ADD}, {OX_JTOKEN_SUB, OX_JOP_SUB}};
    return parse_left(p, ops, OX_COUNT(ops), parse_concat, out);
}

/* The comparison operator here, skipped; EOF when there is none. */
static ox_jtoken_kind take_comparison(ox_jparser *p)
{
    const ox_jtoken_kind kind = p->at->kind;
    if (kind >= OX_JTOKEN_EQ && kind <= OX_JTOKEN_LE) {
        ox_jp_next(p);
        return kind;
    }
    if (ox_jp_skip_name(p, "in")) return OX_JTOKEN_IN;
    if (ox_jp_is_name(p, "not") && p->at[1].kind == OX_JTOKEN_NAME &&
        ox_str_is(p->at[1].text, "in")) {
        p->at += 2;
        return OX_JTOKEN_NOT_IN;
    }
    return OX_JTOKEN_EOF;
}

static ox_status parse_comparison(ox_jparser *p, ox_jnode **out)
{
    ox_jnode_vec items = {0};
    OX_VEC(uint8_t) ops = {0};
    ox_status st = OX_OK;
    const uint32_t line = p->at->line;
    ox_jnode *a, *n;
    OX_TRY(parse_sum(p, &a));
    for (;;) {
        const ox_jtoken_kind kind = take_comparison(p);
        if (kind == OX_JTOKEN_EOF) break;
        OX_TRY_GOTO(parse_sum(p, &n));
        if (!ox_vec_push(&items, n) || !ox_vec_push(&ops, (uint8_t)kind))
            OX_TRY_GOTO(ox_jp_no_memory(p));
    }
    *out = a;
    if (!items.n) return OX_OK;
    OX_TRY_GOTO(ox_jp_node(p, OX_JOP_COMPARE, line, out));
    (*out)->a = a;
    (*out)->u.compare.ops = (uint8_t *)ox_arena_copy(&p->tree->arena, (char *)ops.p, ops.n);
    if (!(*out)->u.compare.ops) OX_TRY_GOTO(ox_jp_no_memory(p));
    st = ox_jp_keep(p, &items, &(*out)->u.compare.list);
fail:
    ox_vec_deinit(&items);
    ox_vec_deinit(&ops);
    return st;
}

static ox_status parse_not(ox_jparser *p, ox_jnode **out)
{
    const uint32_t line = p->at->line;
    ox_jnode *n = NULL;
    if (!ox_jp_skip_name(p, "not")) return parse_comparison(p, out);
    OX_TRY(ox_jp_enter(p));
    OX_TRY(parse_not(p, &n));
    p->depth--;
    return binary(p, OX_JOP_NOT, line, n, NULL, out);
}

static ox_status parse_and(ox_jparser *p, ox_jnode **out)
{
    ox_jnode *b;
    const uint32_t line = p->at->line;
    OX_TRY(parse_not(p, out));
    while (ox_jp_skip_name(p, "and")) {
        OX_TRY(parse_not(p, &b));
        OX_TRY(binary(p, OX_JOP_AND, line, *out, b, out));
    }
    return OX_OK;
}

static ox_status parse_or(ox_jparser *p, ox_jnode **out)
{
    ox_jnode *b;
    const uint32_t line = p->at->line;
    OX_TRY(parse_and(p, out));
    while (ox_jp_skip_name(p, "or")) {
        OX_TRY(parse_and(p, &b));
        OX_TRY(binary(p, OX_JOP_OR, line, *out, b, out));
    }
    return OX_OK;
}

static ox_status parse_condition(ox_jparser *p, ox_jnode **out)
{
    ox_jnode *value, *test, *other;
    const uint32_t line = p->at->line;
    const ox_jtoken *unknown_before = p->unknown;
    OX_TRY(ox_jp_enter(p));
    OX_TRY(parse_or(p, &value));
    if (ox_jp_is_name(p, "if")) p->unknown = unknown_before; /* "x|f if y" may never reach f */
    while (ox_jp_skip_name(p, "if")) {
        other = NULL;
        p->soft++;
        OX_TRY(parse_or(p, &test));
        if (ox_jp_skip_name(p, "else")) OX_TRY(parse_condition(p, &other));
        p->soft--;
        OX_TRY(binary(p, OX_JOP_COND, line, test, value, &value));
        value->c = other;
    }
    p->depth--;
    *out = value;
    return OX_OK;
}

ox_status ox_jp_expression(ox_jparser *p, ox_jnode **out)
{
    return parse_condition(p, out);
}

static bool tuple_ends(const ox_jparser *p, const ox_jtuple_rule *rule)
{
    return ox_jp_is(p, OX_JTOKEN_VAR_END) || ox_jp_is(p, OX_JTOKEN_BLOCK_END) ||
           ox_jp_is(p, OX_JTOKEN_RPAREN) || (rule->end && ox_jp_is_name(p, rule->end));
}

static ox_status tuple_item(ox_jparser *p, const ox_jtuple_rule *rule, ox_jnode **out)
{
    if (rule->target) return parse_primary(p, rule->namespaces, out);
    if (!rule->no_condition) return ox_jp_expression(p, out);
    OX_TRY(ox_jp_enter(p));
    OX_TRY(parse_or(p, out));
    p->depth--;
    return OX_OK;
}

ox_status ox_jp_tuple(ox_jparser *p, const ox_jtuple_rule *rule, ox_jnode **out)
{
    ox_jnode_vec items = {0};
    ox_status st = OX_OK;
    const uint32_t line = p->at->line;
    bool comma = false;
    ox_jnode *n = NULL;
    for (;;) {
        if (items.n) {
            if (!ox_jp_skip(p, OX_JTOKEN_COMMA)) break;
            comma = true;
        }
        if (tuple_ends(p, rule)) break;
        OX_TRY_GOTO(tuple_item(p, rule, &n));
        if (!ox_vec_push(&items, n)) OX_TRY_GOTO(ox_jp_no_memory(p));
    }
    if (!comma && items.n == 1) {
        *out = items.p[0];
        ox_vec_deinit(&items);
        return OX_OK;
    }
    if (!comma && !rule->parentheses) OX_TRY_GOTO(ox_jp_unexpected(p, "an expression"));
    OX_TRY_GOTO(ox_jp_node(p, OX_JOP_TUPLE, line, out));
    return ox_jp_keep(p, &items, &(*out)->u.list);
fail:
    ox_vec_deinit(&items);
    return st;
}

static bool assignable(const ox_jnode *n, bool namespaces)
{
    if (n->op == OX_JOP_TUPLE) {
        for (size_t i = 0; i < n->u.list.n; i++)
            if (!assignable(n->u.list.p[i], namespaces)) return false;
        return true;
    }
    return n->op == OX_JOP_NAME || (namespaces && n->op == OX_JOP_NSREF);
}

ox_status ox_jp_target(ox_jparser *p, const ox_jtuple_rule *rule, ox_jnode **out)
{
    const uint32_t line = p->at->line;
    OX_TRY(ox_jp_tuple(p, rule, out));
    if (!assignable(*out, rule->namespaces))
        return ox_jsyntax(p->err, OX_BAD_FILE, line, "this can't be assigned to");
    return OX_OK;
}
