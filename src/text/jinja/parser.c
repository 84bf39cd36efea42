/* parser.c - statements and the template as a whole; see parser_expr.c for expressions.
 *
 * One row of `statements` for each tag. Tags that load other templates (extends, include, import)
 * or that no chat template has are refused by name. Next: expr.c, which evaluates the tree. */
#include "text/jinja/parser.h"

enum { SOURCE_MAX = 8 << 20 };

typedef ox_status (*statement_fn)(ox_jparser *p, uint32_t line, ox_jnode **out);

static ox_status parse_body(ox_jparser *p, const char *const *ends, ox_jnodes *out);

ox_status ox_jp_no_memory(ox_jparser *p)
{
    return OX_FAIL(p->err, OX_NO_MEMORY, "template: out of memory while parsing it");
}

ox_status ox_jp_unexpected(ox_jparser *p, const char *expected)
{
    if (ox_jp_is(p, OX_JTOKEN_EOF))
        return ox_jsyntax(p->err, OX_BAD_FILE, p->at->line,
                          "the template ends where %s must follow", expected);
    const bool named = ox_jp_is(p, OX_JTOKEN_NAME) || ox_jp_is(p, OX_JTOKEN_STRING);
    const ox_str text = named ? p->at->text : ox_str_of(ox_jtoken_text(p->at->kind));
    return ox_jsyntax(p->err, OX_BAD_FILE, p->at->line, "expected %s, found '%.*s'", expected,
                      OX_STR_ARGS(text));
}

ox_status ox_jp_enter(ox_jparser *p)
{
    if (++p->depth > OX_JPARSE_DEPTH_MAX)
        return ox_jsyntax(p->err, OX_UNSUPPORTED, p->at->line,
                          "the template is nested more than %d deep", OX_JPARSE_DEPTH_MAX);
    return OX_OK;
}

ox_status ox_jp_node(ox_jparser *p, ox_jop op, uint32_t line, ox_jnode **out)
{
    ox_jnode *n = ox_arena_take(&p->tree->arena, sizeof(*n));
    if (!n) return ox_jp_no_memory(p);
    n->op = (uint8_t)op;
    n->line = line;
    *out = n;
    return OX_OK;
}

ox_status ox_jp_keep(ox_jparser *p, ox_jnode_vec *v, ox_jnodes *out)
{
    ox_jnode **kept = ox_arena_take_n(&p->tree->arena, v->n + !v->n, sizeof(*kept));
    if (kept && v->n) memcpy(kept, v->p, v->n * sizeof(*kept));
    *out = (ox_jnodes){kept, v->n};
    ox_vec_deinit(v);
    return kept ? OX_OK : ox_jp_no_memory(p);
}

ox_status ox_jp_name_id(ox_jparser *p, ox_str name, uint32_t *id)
{
    ox_jtree *t = p->tree;
    uint64_t known;
    if (ox_map_get(&t->ids, name, &known)) {
        *id = (uint32_t)known;
        return OX_OK;
    }
    if (t->n_names == t->cap_names) {
        const size_t cap = t->cap_names ? t->cap_names * 2 : 64;
        ox_str *names = ox_arena_take_n(&t->arena, cap, sizeof(*names));
        if (!names) return ox_jp_no_memory(p);
        if (t->n_names) memcpy(names, t->names, t->n_names * sizeof(*names));
        t->names = names;
        t->cap_names = cap;
    }
    if (!ox_map_put(&t->ids, name, t->n_names)) return ox_jp_no_memory(p);
    *id = (uint32_t)t->n_names;
    t->names[t->n_names++] = name;
    return OX_OK;
}

bool ox_jp_skip(ox_jparser *p, ox_jtoken_kind kind)
{
    if (!ox_jp_is(p, kind)) return false;
    ox_jp_next(p);
    return true;
}

bool ox_jp_skip_name(ox_jparser *p, const char *name)
{
    if (!ox_jp_is_name(p, name)) return false;
    ox_jp_next(p);
    return true;
}

ox_status ox_jp_expect(ox_jparser *p, ox_jtoken_kind kind)
{
    if (ox_jp_skip(p, kind)) return OX_OK;
    char want[24] = "'";
    const char *text = ox_jtoken_text(kind);
    const size_t n = strlen(text);
    memcpy(want + 1, text, n < 20 ? n : 20);
    want[n < 20 ? n + 1 : 21] = '\'';
    return ox_jp_unexpected(p, want);
}

ox_status ox_jp_take_name(ox_jparser *p, ox_str *name)
{
    if (!ox_jp_is(p, OX_JTOKEN_NAME)) return ox_jp_unexpected(p, "a name");
    *name = p->at->text;
    ox_jp_next(p);
    return OX_OK;
}

/* The rest of a tag and the statements up to a tag named in `ends`, which is left to the caller. */
static ox_status body_of_tag(ox_jparser *p, const char *const *ends, ox_jnodes *out)
{
    ox_jp_skip(p, OX_JTOKEN_COLON);
    OX_TRY(ox_jp_expect(p, OX_JTOKEN_BLOCK_END));
    OX_TRY(ox_jp_enter(p));
    OX_TRY(parse_body(p, ends, out));
    p->depth--;
    return OX_OK;
}

/* The same with one possible end, which is skipped. */
static ox_status whole_body(ox_jparser *p, const char *end, ox_jnodes *out)
{
    const char *const ends[] = {end, NULL};
    OX_TRY(body_of_tag(p, ends, out));
    ox_jp_next(p);
    return OX_OK;
}

static ox_status parse_if(ox_jparser *p, uint32_t line, ox_jnode **out)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    ox_jnode_vec items = {0};
    ox_status st = OX_OK;
    ox_jnode *test = NULL, *body = NULL;
    bool more = true;
    OX_TRY(ox_jp_node(p, OX_JOP_IF, line, out));
    p->soft++;
    while (more) {
        OX_TRY_GOTO(ox_jp_tuple(p, &(ox_jtuple_rule){.no_condition = true}, &test));
        OX_TRY_GOTO(ox_jp_node(p, OX_JOP_SCOPE, line, &body));
        OX_TRY_GOTO(body_of_tag(p, ends, &body->u.list));
        if (!ox_vec_push(&items, test) || !ox_vec_push(&items, body))
            OX_TRY_GOTO(ox_jp_no_memory(p));
        more = ox_jp_skip_name(p, "elif");
    }
    if (ox_jp_skip_name(p, "else")) {
        OX_TRY_GOTO(ox_jp_node(p, OX_JOP_SCOPE, line, &body));
        OX_TRY_GOTO(whole_body(p, "endif", &body->u.list));
        if (!ox_vec_push(&items, NULL) || !ox_vec_push(&items, body))
            OX_TRY_GOTO(ox_jp_no_memory(p));
    } else {
        ox_jp_next(p);
    }
    p->soft--;
    return ox_jp_keep(p, &items, &(*out)->u.list);
fail:
    ox_vec_deinit(&items);
    return st;
}

static ox_status parse_for(ox_jparser *p, uint32_t line, ox_jnode **out)
{
    static const char *const ends[] = {"endfor", "else", NULL};
    OX_TRY(ox_jp_node(p, OX_JOP_FOR, line, out));
    ox_jnode *n = *out;
    OX_TRY(ox_jp_target(p, &(ox_jtuple_rule){.target = true, .end = "in"}, &n->b));
    if (!ox_jp_skip_name(p, "in")) return ox_jp_unexpected(p, "'in'");
    OX_TRY(ox_jp_tuple(p, &(ox_jtuple_rule){.no_condition = true, .end = "recursive"}, &n->a));
    if (ox_jp_skip_name(p, "if")) OX_TRY(ox_jp_expression(p, &n->c));
    if (ox_jp_skip_name(p, "recursive")) n->flag = OX_JNODE_RECURSIVE;
    const unsigned soft = p->soft;
    p->soft = 0;
    p->loops++;
    OX_TRY(body_of_tag(p, ends, &n->u.block.body));
    p->loops--;
    if (ox_jp_skip_name(p, "else"))
        OX_TRY(whole_body(p, "endfor", &n->u.block.other));
    else
        ox_jp_next(p);
    p->soft = soft;
    return OX_OK;
}

static ox_status parse_set(ox_jparser *p, uint32_t line, ox_jnode **out)
{
    ox_jnode *target;
    OX_TRY(ox_jp_target(p, &(ox_jtuple_rule){.target = true, .namespaces = true}, &target));
    const bool direct = ox_jp_skip(p, OX_JTOKEN_ASSIGN);
    OX_TRY(ox_jp_node(p, direct ? OX_JOP_SET : OX_JOP_SET_BLOCK, line, out));
    (*out)->b = target;
    if (direct) return ox_jp_tuple(p, &(ox_jtuple_rule){0}, &(*out)->a);
    OX_TRY(ox_jp_filters(p, NULL, false, &(*out)->a));
    return whole_body(p, "endset", &(*out)->u.block.body);
}

typedef OX_VEC(ox_jparam) param_vec;

static ox_status parse_params(ox_jparser *p, ox_jsignature *sig)
{
    param_vec params = {0};
    ox_status st = OX_OK;
    OX_TRY(ox_jp_expect(p, OX_JTOKEN_LPAREN));
    while (!ox_jp_is(p, OX_JTOKEN_RPAREN)) {
        ox_str name = {0};
        ox_jparam param = {0};
        if (params.n) OX_TRY_GOTO(ox_jp_expect(p, OX_JTOKEN_COMMA));
        OX_TRY_GOTO(ox_jp_take_name(p, &name));
        OX_TRY_GOTO(ox_jp_name_id(p, name, &param.name));
        if (ox_jp_skip(p, OX_JTOKEN_ASSIGN)) {
            OX_TRY_GOTO(ox_jp_expression(p, &param.value));
        } else if (params.n && params.p[params.n - 1].value) {
            OX_TRY_GOTO(ox_jsyntax(p->err, OX_BAD_FILE, p->at->line,
                                   "a parameter without default after one with"));
        }
        if (!ox_vec_push(&params, param)) OX_TRY_GOTO(ox_jp_no_memory(p));
    }
    ox_jp_next(p);
    if (params.n) {
        sig->params = ox_arena_take_n(&p->tree->arena, params.n, sizeof(*params.p));
        if (!sig->params) OX_TRY_GOTO(ox_jp_no_memory(p));
        memcpy(sig->params, params.p, params.n * sizeof(*params.p));
        sig->n_params = params.n;
    }
fail:
    ox_vec_deinit(&params);
    return st;
}

static ox_status macro_body(ox_jparser *p, ox_jsignature *sig, const char *end)
{
    ox_jsignature *const outer = p->sig;
    const unsigned soft = p->soft, loops = p->loops;
    p->sig = sig;
    p->soft = p->loops = 0;
    OX_TRY(whole_body(p, end, &sig->body));
    p->sig = outer;
    p->soft = soft;
    p->loops = loops;
    if (outer) { /* an inner block that uses them makes the outer macro take them */
        outer->takes_more_pos |= sig->takes_more_pos;
        outer->takes_more_kw |= sig->takes_more_kw;
        outer->takes_caller |= sig->takes_caller;
    }
    return OX_OK;
}

static ox_status new_signature(ox_jparser *p, ox_jop op, uint32_t line, ox_jnode **out)
{
    OX_TRY(ox_jp_node(p, op, line, out));
    (*out)->u.macro.sig = ox_arena_take(&p->tree->arena, sizeof(ox_jsignature));
    return (*out)->u.macro.sig ? OX_OK : ox_jp_no_memory(p);
}

static ox_status parse_macro(ox_jparser *p, uint32_t line, ox_jnode **out)
{
    OX_TRY(new_signature(p, OX_JOP_MACRO, line, out));
    ox_jsignature *sig = (*out)->u.macro.sig;
    OX_TRY(ox_jp_take_name(p, &sig->name));
    OX_TRY(ox_jp_name_id(p, sig->name, &(*out)->name));
    OX_TRY(parse_params(p, sig));
    return macro_body(p, sig, "endmacro");
}

static ox_status parse_call_block(ox_jparser *p, uint32_t line, ox_jnode **out)
{
    OX_TRY(new_signature(p, OX_JOP_CALL_BLOCK, line, out));
    ox_jsignature *sig = (*out)->u.macro.sig;
    sig->name = OX_STR("caller");
    if (ox_jp_is(p, OX_JTOKEN_LPAREN)) OX_TRY(parse_params(p, sig));
    OX_TRY(ox_jp_expression(p, &(*out)->a));
    if ((*out)->a->op != OX_JOP_CALL)
        return ox_jsyntax(p->err, OX_BAD_FILE, line, "{%% call %%} needs a call");
    return macro_body(p, sig, "endcall");
}

static ox_status parse_filter_block(ox_jparser *p, uint32_t line, ox_jnode **out)
{
    OX_TRY(ox_jp_node(p, OX_JOP_FILTER_BLOCK, line, out));
    OX_TRY(ox_jp_filters(p, NULL, true, &(*out)->a));
    return whole_body(p, "endfilter", &(*out)->u.block.body);
}

static ox_status parse_with(ox_jparser *p, uint32_t line, ox_jnode **out)
{
    ox_jnode_vec pairs = {0};
    ox_status st = OX_OK;
    ox_jnode *n = NULL;
    OX_TRY(ox_jp_node(p, OX_JOP_WITH, line, out));
    while (!ox_jp_is(p, OX_JTOKEN_BLOCK_END)) {
        if (pairs.n) OX_TRY_GOTO(ox_jp_expect(p, OX_JTOKEN_COMMA));
        OX_TRY_GOTO(ox_jp_target(p, &(ox_jtuple_rule){.target = true}, &n));
        if (!ox_vec_push(&pairs, n)) OX_TRY_GOTO(ox_jp_no_memory(p));
        OX_TRY_GOTO(ox_jp_expect(p, OX_JTOKEN_ASSIGN));
        OX_TRY_GOTO(ox_jp_expression(p, &n));
        if (!ox_vec_push(&pairs, n)) OX_TRY_GOTO(ox_jp_no_memory(p));
    }
    OX_TRY_GOTO(ox_jp_keep(p, &pairs, &(*out)->u.block.other));
    return whole_body(p, "endwith", &(*out)->u.block.body);
fail:
    ox_vec_deinit(&pairs);
    return st;
}

static ox_status parse_generation(ox_jparser *p, uint32_t line, ox_jnode **out)
{
    OX_TRY(ox_jp_node(p, OX_JOP_SCOPE, line, out));
    return whole_body(p, "endgeneration", &(*out)->u.list);
}

static ox_status parse_jump(ox_jparser *p, ox_jop op, uint32_t line, ox_jnode **out)
{
    if (!p->loops) return ox_jsyntax(p->err, OX_BAD_FILE, line, "break or continue without a loop");
    return ox_jp_node(p, op, line, out);
}

static ox_status parse_break(ox_jparser *p, uint32_t line, ox_jnode **out)
{
    return parse_jump(p, OX_JOP_BREAK, line, out);
}

static ox_status parse_continue(ox_jparser *p, uint32_t line, ox_jnode **out)
{
    return parse_jump(p, OX_JOP_CONTINUE, line, out);
}

static const struct statement_row {
    const char *name;
    statement_fn parse; /* NULL: refused */
} statements[] = {
    {"if", parse_if},
    {"for", parse_for},
    {"set", parse_set},
    {"macro", parse_macro},
    {"call", parse_call_block},
    {"filter", parse_filter_block},
    {"with", parse_with},
    {"generation", parse_generation},
    {"break", parse_break},
    {"continue", parse_continue},
    {"extends", NULL},
    {"include", NULL},
    {"import", NULL},
    {"from", NULL},
    {"block", NULL},
    {"print", NULL},
    {"autoescape", NULL},
};

static ox_status parse_statement(ox_jparser *p, ox_jnode **out)
{
    const uint32_t line = p->at->line;
    ox_str name = {0};
    OX_TRY(ox_jp_take_name(p, &name));
    for (size_t i = 0; i < OX_COUNT(statements); i++) {
        if (!ox_str_is(name, statements[i].name)) continue;
        if (statements[i].parse) return statements[i].parse(p, line, out);
        return ox_jsyntax(p->err, OX_UNSUPPORTED, line, "{%% %.*s %%} is not supported",
                          OX_STR_ARGS(name));
    }
    return ox_jsyntax(p->err, OX_BAD_FILE, line, "unknown tag, or one in the wrong place: '%.*s'",
                      OX_STR_ARGS(name));
}

static bool is_end(const ox_jparser *p, const char *const *ends)
{
    for (size_t i = 0; ends && ends[i]; i++)
        if (ox_jp_is_name(p, ends[i])) return true;
    return false;
}

static ox_status parse_text(ox_jparser *p, ox_jnode **out)
{
    OX_TRY(ox_jp_node(p, OX_JOP_TEXT, p->at->line, out));
    ox_jstr *s = ox_arena_take(&p->tree->arena, sizeof(*s));
    if (!s) return ox_jp_no_memory(p);
    *s = (ox_jstr){.p = p->at->text.p, .n = p->at->text.n};
    (*out)->u.value = ox_jstrval(s);
    ox_jp_next(p);
    return OX_OK;
}

static ox_status parse_print(ox_jparser *p, ox_jnode **out)
{
    OX_TRY(ox_jp_node(p, OX_JOP_PRINT, p->at->line, out));
    ox_jp_next(p);
    OX_TRY(ox_jp_tuple(p, &(ox_jtuple_rule){0}, &(*out)->a));
    return ox_jp_expect(p, OX_JTOKEN_VAR_END);
}

/* Text, {{ }} and statements up to a tag in `ends` (its name is the current token afterwards) or,
 * when ends is NULL, to the end of the template. */
static ox_status parse_body(ox_jparser *p, const char *const *ends, ox_jnodes *out)
{
    ox_jnode_vec items = {0};
    ox_status st = OX_OK;
    while (!ox_jp_is(p, OX_JTOKEN_EOF)) {
        ox_jnode *n = NULL;
        if (ox_jp_is(p, OX_JTOKEN_DATA)) {
            OX_TRY_GOTO(parse_text(p, &n));
        } else if (ox_jp_is(p, OX_JTOKEN_VAR_BEGIN)) {
            OX_TRY_GOTO(parse_print(p, &n));
        } else {
            OX_TRY_GOTO(ox_jp_expect(p, OX_JTOKEN_BLOCK_BEGIN));
            if (is_end(p, ends)) return ox_jp_keep(p, &items, out);
            OX_TRY_GOTO(parse_statement(p, &n));
            OX_TRY_GOTO(ox_jp_expect(p, OX_JTOKEN_BLOCK_END));
        }
        if (!ox_vec_push(&items, n)) OX_TRY_GOTO(ox_jp_no_memory(p));
    }
    if (!ends) return ox_jp_keep(p, &items, out);
    for (size_t i = 0; ends[i]; i++)
        if (!ends[i + 1]) OX_TRY_GOTO(ox_jp_unexpected(p, ends[i]));
fail:
    ox_vec_deinit(&items);
    return st;
}

/* A copy with "\n" for every line end, without one final line end. */
static ox_status normalise(ox_jtree *tree, ox_str source, ox_err *err)
{
    if (source.n > SOURCE_MAX)
        return OX_FAIL(err, OX_UNSUPPORTED, "template: %zu bytes, at most %d are allowed", source.n,
                       SOURCE_MAX);
    char *p = ox_arena_take(&tree->arena, source.n + 1);
    if (!p) return OX_FAIL(err, OX_NO_MEMORY, "template: out of memory while reading it");
    size_t n = 0;
    for (size_t i = 0; i < source.n; i++) {
        const char c = source.p[i];
        if (c == '\r' && i + 1 < source.n && source.p[i + 1] == '\n') continue;
        p[n++] = c == '\r' ? '\n' : c;
    }
    if (n && p[n - 1] == '\n') n--;
    tree->source = (ox_str){p, n};
    return OX_OK;
}

ox_status ox_jparse(ox_jtree *tree, ox_str source, ox_err *err)
{
    ox_jtokens tokens = {0};
    ox_jparser p = {.tree = tree, .err = err};
    ox_status st = OX_OK;
    *tree = (ox_jtree){.arena = OX_ARENA_INIT};
    OX_TRY_GOTO(normalise(tree, source, err));
    OX_TRY_GOTO(ox_jlex(&tokens, &tree->arena, tree->source, err));
    p.at = tokens.p;
    OX_TRY_GOTO(parse_body(&p, NULL, &tree->body));
    if (p.unknown)
        st = ox_jsyntax(err, OX_UNSUPPORTED, p.unknown->line, "no filter or test named '%.*s'",
                        OX_STR_ARGS(p.unknown->text));
fail:
    ox_vec_deinit(&tokens);
    if (st) ox_jtree_deinit(tree);
    return st;
}

void ox_jtree_deinit(ox_jtree *tree)
{
    ox_map_deinit(&tree->ids);
    ox_arena_deinit(&tree->arena);
    *tree = (ox_jtree){.arena = OX_ARENA_INIT};
}
