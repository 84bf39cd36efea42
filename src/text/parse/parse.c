/* parse.c - the parser's way between content, reasoning and calls: bytes come in one by one, those
 * that may begin a mark are held back, a whole mark changes the state, the others belong to what
 * the state says. The insides of calls are in json.c, tags.c and literals.c. */
#include "text/parse/parse_internal.h"

#include "base/mem.h"

#include <string.h>

/* ---- giving out ---- */

static void hand_over(ox_parse *p)
{
    if (!p->out.n) return;
    const bool call = p->out_part >= OX_PART_CALL;
    const ox_parser_event e = {p->out_part, call ? p->n_calls - 1 : 0, p->out.p, p->out.n};
    p->fn(p->user, &e);
    ox_buf_clear(&p->out);
}

void ox_parse_put(ox_parse *p, ox_part part, const char *text, size_t n)
{
    const bool whole =
        part != OX_PART_CONTENT && part != OX_PART_REASONING && part != OX_PART_ARGUMENTS;
    if (part != p->out_part || whole) hand_over(p);
    p->out_part = part;
    if (whole) {
        const ox_parser_event e = {part, p->n_calls - 1, text, n};
        p->fn(p->user, &e);
        return;
    }
    ox_buf_put(&p->out, text, n);
}

bool ox_parse_keep(ox_parse *p, ox_buf *b, const char *text, size_t n, size_t most)
{
    if (b->n + n > most) {
        if (most == OX_PARSE_HELD) p->too_large = true;
        return false;
    }
    ox_buf_put(b, text, n);
    return true;
}

void ox_parse_args(ox_parse *p, const char *text, size_t n)
{
    if (p->named)
        ox_parse_put(p, OX_PART_ARGUMENTS, text, n);
    else
        ox_parse_keep(p, &p->early, text, n, OX_PARSE_HELD);
}

/* Newlines wait: the last before a mark may be the mark's. */
static void give_newlines(ox_parse *p, ox_part part, size_t fewer)
{
    for (; p->n_newlines > fewer; p->n_newlines--)
        ox_parse_put(p, part, "\n", 1);
    p->n_newlines = 0;
}

static void one(ox_parse *p, ox_part part, char c)
{
    if (c == '\n') {
        p->n_newlines++;
        return;
    }
    give_newlines(p, part, 0);
    ox_parse_put(p, part, &c, 1);
}

static ox_part part_here(const ox_parse *p)
{
    return p->at == AT_REASONING ? OX_PART_REASONING : OX_PART_CONTENT;
}

static void content(ox_parse *p, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char c = text[i];
        const bool space = c == ' ' || c == '\n' || c == '\r' || c == '\t';
        if (p->skip_lines && c == '\n') {
            p->skip_lines--;
            continue;
        }
        p->skip_lines = 0;
        if (p->skip_space && space) continue;
        p->skip_space = false;
        if (!space) p->at_start = false;
        one(p, OX_PART_CONTENT, c);
    }
}

void ox_parse_content(ox_parse *p, char c)
{
    p->skip_space = false;
    content(p, &c, 1);
}

static void reasoning(ox_parse *p, const char *text, size_t n)
{
    if (p->skip_lines && n && *text == '\n') {
        text++;
        n--;
    }
    if (n) p->skip_lines = 0;
    for (size_t i = 0; i < n; i++)
        one(p, OX_PART_REASONING, text[i]);
}

/* ---- tools ---- */

static const ox_json *tool_named(const ox_parse *p, ox_str name)
{
    for (size_t i = 0; i < ox_json_n(p->tools); i++) {
        const ox_json *t = ox_json_at(p->tools, i), *f = ox_json_get(t, "function");
        if (f) t = f;
        if (ox_str_eq(ox_json_str(ox_json_get(t, "name")), name)) return t;
    }
    return NULL;
}

char ox_parse_type(const ox_parse *p, ox_str name, ox_str key)
{
    const ox_json *of =
        ox_json_get_str(ox_json_path(tool_named(p, name), "parameters.properties"), key);
    const ox_str type = ox_json_str(ox_json_get(of, "type"));
    return !type.n ? '?' : ox_str_is(type, "string") ? 's' : ox_str_is(type, "boolean") ? 'b' : 'j';
}

/* ---- calls ---- */

static bool is_name(ox_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        const char c = s.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || c == '-' || c == '.'))
            return false;
    }
    return s.n > 0;
}

static ox_str trimmed(ox_str s)
{
    while (s.n && (unsigned char)s.p[0] <= ' ')
        s.p++, s.n--;
    while (s.n && (unsigned char)s.p[s.n - 1] <= ' ')
        s.n--;
    return s;
}

bool ox_parse_commit(ox_parse *p)
{
    ox_str name = trimmed(ox_buf_view(&p->name));
    if (p->named) return true;
    if (!name.n || (p->f->name_plain && !is_name(name))) return false;
    if (!p->tagged && p->tools && !tool_named(p, name)) return false;
    if (p->n_calls == OX_PARSE_CALLS) {
        p->too_large = true;
        return false;
    }
    if (ox_str_starts(name, OX_STR("functions."))) {
        size_t colon = name.n;
        while (colon && name.p[colon - 1] != ':')
            colon--;
        if (colon && !p->id.n) ox_buf_put_str(&p->id, name); /* its id is functions.N:INDEX */
        if (colon) name.n = colon - 1;
        name.p += 10;
        name.n -= 10;
    }
    hand_over(p);
    p->n_calls++;
    ox_parse_put(p, OX_PART_CALL, name.p, name.n);
    const ox_str id = trimmed(ox_buf_view(&p->id));
    if (id.n) ox_parse_put(p, OX_PART_CALL_ID, id.p, id.n);
    p->named = true;
    if (p->early.n) ox_parse_put(p, OX_PART_ARGUMENTS, p->early.p, p->early.n);
    ox_buf_clear(&p->raw);
    return true;
}

static void leave_call(ox_parse *p)
{
    p->in_call = p->named = p->has_args = false;
    ox_buf *all[] = {&p->raw, &p->name, &p->id, &p->early, &p->key, &p->val};
    for (size_t i = 0; i < OX_COUNT(all); i++)
        ox_buf_clear(all[i]);
}

void ox_parse_end_call(ox_parse *p)
{
    if (!p->has_args) ox_parse_put(p, OX_PART_ARGUMENTS, "{}", 2);
    ox_parse_put(p, OX_PART_CALL_END, "", 0);
    leave_call(p);
    p->skip_space = true;
    p->at = AT_CONTENT;
}

void ox_parse_give_up(ox_parse *p)
{
    if (p->named) {
        leave_call(p);
        p->at = AT_LOST;
        return;
    }
    p->at = AT_CONTENT;
    p->skip_space = false;
    ox_buf raw = p->raw;
    p->raw = (ox_buf){0};
    leave_call(p);
    content(p, raw.p ? raw.p : "", raw.n);
    p->at_start = false;
    ox_buf_deinit(&raw);
}

void ox_parse_begin_call(ox_parse *p)
{
    static const where first[] = {[OX_BODY_JSON] = AT_JSON,
                                  [OX_BODY_NAMED] = AT_NAME,
                                  [OX_BODY_TAGS] = AT_TAGS,
                                  [OX_BODY_PYTHON] = AT_PYTHON,
                                  [OX_BODY_BRACES] = AT_BRACES};
    p->in_call = true;
    p->depth = 0;
    p->quote = 0;
    p->escaped = false;
    p->n_keys = 0;
    p->at = first[p->f->body];
    if (p->at == AT_TAGS && !p->f->fn_open) p->at = AT_TAG_NAME;
    if (p->at == AT_JSON) ox_parse_json_start(p);
}

/* ---- marks ---- */

typedef enum action {
    DO_DROP,
    DO_THINK,
    DO_ANSWER, /* reasoning ends */
    DO_OPEN,
    DO_CLOSE,
    DO_NAME_END,
    DO_NAME_SKIP,
    DO_ID,
    DO_FUNCTION,
    DO_FUNCTION_END,
    DO_KEY,
    DO_KEY_END,
    DO_KEY_END_TEXT,
    DO_KEY_END_JSON,
    DO_VALUE,
    DO_VALUE_END,
    DO_HEADER,
    DO_MESSAGE,
    DO_SPACE,
} action;

typedef struct mark_row {
    const char *text;
    action what;
} mark_row;

enum { MOST_MARKS = 20 };

typedef struct marks {
    mark_row list[MOST_MARKS];
    size_t n;
} marks;

static void add(marks *m, const char *text, action what)
{
    if (text && m->n < MOST_MARKS) m->list[m->n++] = (mark_row){text, what};
}

static void add_call_marks(const ox_parse *p, marks *m)
{
    const ox_tool_format *f = p->f;
    for (int i = 0; i < 2 && !p->no_calls; i++) {
        add(m, f->open[i], DO_OPEN);
        add(m, f->close[i], DO_CLOSE);
    }
    for (int i = 0; i < 4; i++)
        add(m, f->drop[i], DO_DROP);
}

static void add_channel_marks(const ox_parse *p, marks *m)
{
    if (p->f->body != OX_BODY_CHANNELS) return;
    add(m, "<|start|>", DO_HEADER);
    add(m, "<|channel|>", DO_HEADER);
    add(m, "<|message|>", DO_MESSAGE);
    add(m, "<|end|>", DO_HEADER);
    add(m, "<|call|>", DO_HEADER);
    add(m, "<|return|>", DO_HEADER);
    if (p->at == AT_HEADER) add(m, "<|constrain|>", DO_SPACE);
}

/* The marks that mean something where the parser is. */
static void marks_here(const ox_parse *p, marks *m)
{
    const ox_tool_format *f = p->f;
    m->n = 0;
    switch (p->at) {
    case AT_CONTENT:
    case AT_LOST:
        add(m, f->think[0], DO_THINK);
        add_call_marks(p, m);
        add_channel_marks(p, m);
        return;
    case AT_REASONING:
        add(m, f->think[1], DO_ANSWER);
        add_channel_marks(p, m);
        return;
    case AT_HEADER:
    case AT_RAW:
        add_channel_marks(p, m);
        return;
    case AT_NAME:
        add(m, f->name_skip, DO_NAME_SKIP);
        add(m, f->id_mark, DO_ID);
        /* fall through */
    case AT_ID:
        add(m, f->name_end[0], DO_NAME_END);
        add(m, f->name_end[1], DO_NAME_END);
        return;
    case AT_TAGS:
        add(m, f->fn_open, DO_FUNCTION);
        add(m, f->close[0], DO_CLOSE);
        add(m, f->close[1], DO_CLOSE);
        return;
    case AT_TAG_NAME:
        add(m, f->fn_name_end, DO_NAME_END);
        add(m, f->key_open, DO_KEY);
        add(m, f->fn_close, DO_FUNCTION_END);
        return;
    case AT_TAG_BODY:
        add(m, f->key_open, DO_KEY);
        add(m, f->fn_close, DO_FUNCTION_END);
        return;
    case AT_TAG_KEY:
        add(m, f->key_end, DO_KEY_END);
        add(m, f->key_end_text, DO_KEY_END_TEXT);
        add(m, f->key_end_json, DO_KEY_END_JSON);
        return;
    case AT_TAG_GAP:
        add(m, f->value_open, DO_VALUE);
        return;
    case AT_TAG_VALUE:
        add(m, f->value_close, DO_VALUE_END);
        return;
    case AT_BRACES:
        add(m, f->close[0], DO_CLOSE);
        return;
    case AT_JSON:
        if (!p->in_call) {
            add(m, f->think[0], DO_THINK);
            add_call_marks(p, m);
            return;
        }
        if (p->json == JSON_IN_KEY || p->json > JSON_COLON)
            return; /* inside values marks are text */
        add(m, f->close[0], DO_CLOSE);
        add(m, f->close[1], DO_CLOSE);
        return;
    case AT_ARGS:
    case AT_PYTHON:
        return;
    }
}

static bool has(ox_str s, const char *word)
{
    return ox_str_find(s, ox_str_of(word), 0) != SIZE_MAX;
}

/* A message's header is complete: which kind is it? */
static void begin_message(ox_parse *p)
{
    const ox_str header = ox_buf_view(&p->key);
    const size_t to = p->no_calls ? SIZE_MAX : ox_str_find(header, OX_STR("to="), 0);
    p->at = has(header, "analysis") ? AT_REASONING : AT_CONTENT;
    if (to != SIZE_MAX) {
        ox_str name = {header.p + to + 3, header.n - to - 3};
        size_t n = 0;
        while (n < name.n && (unsigned char)name.p[n] > ' ' && name.p[n] != '<')
            n++;
        name.n = n;
        ox_buf_clear(&p->name);
        if (ox_str_starts(name, OX_STR("functions."))) name.p += 10, name.n -= 10;
        ox_parse_keep(p, &p->name, name.p, name.n, OX_PARSE_NAME);
        p->in_call = p->tagged = true;
        if (ox_parse_commit(p))
            p->at = AT_RAW;
        else
            leave_call(p);
    }
    ox_buf_clear(&p->key);
}

/* A new header begins, or the message ends. */
static void end_message(ox_parse *p, const char *spelled)
{
    if (p->at == AT_RAW) ox_parse_end_call(p);
    if (p->at == AT_HEADER)
        ox_buf_put_c(&p->key, ' ');
    else
        ox_buf_clear(&p->key);
    if (!strcmp(spelled, "<|start|>")) ox_buf_clear(&p->key);
    p->at = AT_HEADER;
}

static void open_call(ox_parse *p, const char *spelled)
{
    ox_buf_clear(&p->raw);
    ox_parse_keep(p, &p->raw, spelled, strlen(spelled), OX_PARSE_HELD);
    p->tagged = true;
    ox_parse_begin_call(p);
}

static void close_call(ox_parse *p, const char *spelled)
{
    if (p->at == AT_CONTENT && !p->skip_space) { /* it closes nothing */
        content(p, spelled, strlen(spelled));
        return;
    }
    if (p->at == AT_BRACES) {
        ox_parse_braces(p);
        if (p->at == AT_BRACES) ox_parse_give_up(p);
        return;
    }
    if (p->in_call && !p->named) { /* nothing inside was a call */
        ox_parse_keep(p, &p->raw, spelled, strlen(spelled), OX_PARSE_HELD);
        ox_parse_give_up(p);
        return;
    }
    if (p->at == AT_JSON && p->named && p->has_args) ox_parse_end_call(p); /* but for a brace */
    leave_call(p);
    p->at = AT_CONTENT;
    p->skip_space = true;
}

static void name_ended(ox_parse *p)
{
    const ox_tool_format *f = p->f;
    const ox_str name = trimmed(ox_buf_view(&p->name));
    if (f->text_name && ox_str_is(name, f->text_name)) {
        leave_call(p);
        p->at = AT_CONTENT;
        return;
    }
    if (!ox_parse_commit(p)) {
        ox_parse_give_up(p);
        return;
    }
    p->at = AT_ARGS;
    p->v = (value){0};
}

static void act(ox_parse *p, const mark_row *m)
{
    const size_t n = strlen(m->text);
    const bool is_border =
        m->what == DO_ANSWER || m->what == DO_THINK || (m->what == DO_OPEN && p->at == AT_CONTENT);
    give_newlines(p, part_here(p), is_border ? 1 : 0);
    if (p->in_call && !p->named && m->what != DO_CLOSE)
        ox_parse_keep(p, &p->raw, m->text, n, OX_PARSE_HELD);
    switch (m->what) {
    case DO_DROP:
        p->skip_space = p->at == AT_LOST || p->skip_space;
        if (p->at == AT_LOST) p->at = AT_CONTENT;
        return;
    case DO_THINK:
        p->at = AT_REASONING;
        p->skip_lines = 1;
        return;
    case DO_ANSWER:
        p->at = AT_CONTENT;
        p->skip_lines = 2;
        return;
    case DO_OPEN:
        open_call(p, m->text);
        return;
    case DO_CLOSE:
        close_call(p, m->text);
        return;
    case DO_NAME_SKIP:
        ox_buf_clear(&p->name);
        return;
    case DO_ID:
        p->at = AT_ID;
        return;
    case DO_NAME_END:
        if (p->at == AT_TAG_NAME)
            ox_parse_tag_name(p);
        else
            name_ended(p);
        return;
    case DO_FUNCTION:
        p->in_call = true;
        p->n_keys = 0;
        p->at = AT_TAG_NAME;
        return;
    case DO_FUNCTION_END:
        if (p->at == AT_TAG_NAME) ox_parse_tag_name(p);
        if (p->at != AT_TAG_BODY) return;
        if (p->n_keys) ox_parse_args(p, "}", 1);
        ox_parse_end_call(p);
        if (p->f->fn_open) p->at = AT_TAGS; /* perhaps another one */
        return;
    case DO_KEY:
        if (p->at == AT_TAG_NAME) ox_parse_tag_name(p);
        if (p->at == AT_TAG_BODY) p->at = AT_TAG_KEY;
        return;
    case DO_KEY_END:
        ox_parse_tag_key(p, 0);
        return;
    case DO_KEY_END_TEXT:
        ox_parse_tag_key(p, 's');
        return;
    case DO_KEY_END_JSON:
        ox_parse_tag_key(p, 'j');
        return;
    case DO_VALUE:
        p->at = AT_TAG_VALUE;
        return;
    case DO_VALUE_END:
        ox_parse_tag_value_end(p);
        return;
    case DO_HEADER:
        end_message(p, m->text);
        return;
    case DO_MESSAGE:
        begin_message(p);
        return;
    case DO_SPACE:
        ox_buf_put_c(&p->key, ' ');
        return;
    }
}

/* ---- bytes that are no mark ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Arguments behind a name: one JSON value as it comes. */
static void args_byte(ox_parse *p, char c)
{
    if (!p->v.started && is_space(c)) return;
    if (!p->v.started && c != '{' && c != '[') {
        ox_parse_give_up(p);
        return;
    }
    p->has_args = true;
    const value_step step = ox_value_step(&p->v, c);
    ox_parse_args(p, &c, 1);
    if (step != VALUE_MORE) ox_parse_end_call(p);
}

static void text(ox_parse *p, char c)
{
    if (p->in_call && !p->named && !ox_parse_keep(p, &p->raw, &c, 1, OX_PARSE_HELD)) return;
    switch (p->at) {
    case AT_CONTENT:
        if (p->f->bare && !p->no_calls && p->at_start && c == '{') {
            ox_buf_clear(&p->raw);
            ox_buf_put_c(&p->raw, c);
            p->tagged = false;
            ox_parse_begin_call(p);
            ox_parse_json(p, c);
            return;
        }
        content(p, &c, 1);
        return;
    case AT_REASONING:
        reasoning(p, &c, 1);
        return;
    case AT_HEADER:
        if (ox_parse_keep(p, &p->key, &c, 1, OX_PARSE_KEY)) return;
        p->at = AT_CONTENT; /* no header is that long: a model that knows no channels */
        content(p, p->key.p, p->key.n);
        ox_buf_clear(&p->key);
        content(p, &c, 1);
        return;
    case AT_RAW:
        p->has_args = true;
        ox_parse_args(p, &c, 1);
        return;
    case AT_JSON:
        ox_parse_json(p, c);
        return;
    case AT_NAME:
        if ((p->f->name_plain && !is_name((ox_str){&c, 1})) ||
            !ox_parse_keep(p, &p->name, &c, 1, OX_PARSE_NAME))
            ox_parse_give_up(p);
        return;
    case AT_ID:
        if (!ox_parse_keep(p, &p->id, &c, 1, OX_PARSE_NAME)) ox_parse_give_up(p);
        return;
    case AT_ARGS:
        args_byte(p, c);
        return;
    case AT_TAGS:
        if (is_space(c)) return;
        if (!p->in_call) { /* behind a function: the block's close is missing */
            p->at = AT_CONTENT;
            content(p, &c, 1);
            return;
        }
        if (c == '{') { /* the other way to write calls in this mark */
            p->at = AT_JSON;
            ox_parse_json_start(p);
            ox_parse_json(p, c);
            return;
        }
        ox_parse_give_up(p);
        return;
    case AT_TAG_NAME:
        if (!p->name.n && is_space(c)) return;
        if (!p->f->fn_open && !p->name.n && c == '{') {
            p->at = AT_JSON;
            ox_parse_json_start(p);
            ox_parse_json(p, c);
            return;
        }
        if (!ox_parse_keep(p, &p->name, &c, 1, OX_PARSE_NAME)) ox_parse_give_up(p);
        return;
    case AT_TAG_KEY:
        if (!ox_parse_keep(p, &p->key, &c, 1, OX_PARSE_KEY)) ox_parse_give_up(p);
        return;
    case AT_TAG_VALUE:
        ox_parse_tag_value(p, &c, 1);
        return;
    case AT_PYTHON:
        ox_parse_python(p, c);
        return;
    case AT_BRACES:
        ox_parse_keep(p, &p->val, &c, 1, OX_PARSE_HELD);
        return;
    case AT_TAG_BODY:
    case AT_TAG_GAP:
    case AT_LOST:
        return;
    }
}

/* One byte: a mark completed, perhaps one, or text. */
static void byte(ox_parse *p, char c)
{
    ox_buf_put_c(&p->held, c);
    while (p->held.n && !p->held.failed) {
        marks m;
        bool maybe = false;
        marks_here(p, &m);
        for (size_t i = 0; i < m.n; i++) {
            const size_t n = strlen(m.list[i].text);
            if (n < p->held.n || memcmp(m.list[i].text, p->held.p, p->held.n)) continue;
            if (n == p->held.n) {
                ox_buf_clear(&p->held);
                act(p, &m.list[i]);
                return;
            }
            maybe = true;
        }
        if (maybe) return;
        const char first = p->held.p[0];
        memmove(p->held.p, p->held.p + 1, p->held.n - 1);
        p->held.n--;
        text(p, first);
    }
}

/* ---- the object ---- */

static void start_where(ox_parse *p, ox_str prompt)
{
    const ox_tool_format *f = p->f;
    const ox_str end = trimmed(prompt);
    if (f->think[0] && ox_str_ends(end, trimmed(ox_str_of(f->think[0])))) {
        p->at = AT_REASONING;
        p->skip_lines = 1;
    }
    if (f->starts_named && ox_str_ends(end, ox_str_of(f->open[0]))) {
        p->tagged = true;
        ox_parse_begin_call(p);
    }
    if (f->body == OX_BODY_CHANNELS) p->at = AT_HEADER;
}

ox_status ox_parse_open(ox_parse **out, const ox_tool_format *f, ox_str prompt, ox_str tools_json,
                        bool no_calls, ox_err *err)
{
    ox_status st = OX_OK;
    *out = NULL;
    ox_parse *p = ox_calloc(1, sizeof(*p));
    if (!p) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a parser");
    p->f = f;
    p->no_calls = no_calls || f->body == OX_BODY_NONE;
    p->at_start = true;
    p->arena = (ox_arena)OX_ARENA_INIT;
    if (tools_json.n) {
        OX_TRY_GOTO(ox_json_parse(&p->tools, &p->arena, tools_json, err));
        if (!ox_json_is(p->tools, OX_JSON_ARRAY)) {
            st = OX_FAIL(err, OX_BAD_ARGUMENT, "tools must be a JSON array, found %s",
                         ox_json_kind_name(p->tools));
            goto fail;
        }
    }
    start_where(p, prompt);
    *out = p;
    return OX_OK;
fail:
    ox_parse_close(&p);
    return st;
}

void ox_parse_close(ox_parse **parse)
{
    ox_parse *p = *parse;
    if (!p) return;
    ox_buf *all[] = {&p->held, &p->out, &p->raw, &p->name, &p->id, &p->early, &p->key, &p->val};
    for (size_t i = 0; i < OX_COUNT(all); i++)
        ox_buf_deinit(all[i]);
    ox_arena_deinit(&p->arena);
    ox_free(p);
    *parse = NULL;
}

static ox_status verdict(const ox_parse *p, ox_err *err)
{
    const ox_buf *all[] = {&p->held, &p->out,   &p->raw, &p->name,
                           &p->id,   &p->early, &p->key, &p->val};
    for (size_t i = 0; i < OX_COUNT(all); i++)
        if (all[i]->failed) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a parser");
    if (p->too_large)
        return OX_FAIL(err, OX_LIMIT,
                       "a tool call is larger than %d bytes before its name, an argument is, or "
                       "there are more than %d calls",
                       OX_PARSE_HELD, OX_PARSE_CALLS);
    return OX_OK;
}

ox_status ox_parse_feed(ox_parse *p, ox_str s, ox_part_fn *fn, void *user, ox_err *err)
{
    p->fn = fn;
    p->user = user;
    for (size_t i = 0; i < s.n && !p->too_large; i++)
        byte(p, s.p[i]);
    hand_over(p);
    return verdict(p, err);
}

ox_status ox_parse_finish(ox_parse *p, ox_part_fn *fn, void *user, ox_err *err)
{
    p->fn = fn;
    p->user = user;
    while (p->held.n) {
        const char first = p->held.p[0];
        memmove(p->held.p, p->held.p + 1, p->held.n - 1);
        p->held.n--;
        text(p, first);
    }
    give_newlines(p, part_here(p), 0);
    if (p->at == AT_RAW)
        ox_parse_end_call(p);
    else if (p->at == AT_BRACES)
        ox_parse_braces(p);
    if (p->at == AT_HEADER && p->key.n) {
        p->at = AT_CONTENT;
        content(p, p->key.p, p->key.n);
        ox_buf_clear(&p->key);
    }
    if (p->in_call && !p->named) ox_parse_give_up(p);
    give_newlines(p, part_here(p), 0);
    hand_over(p);
    return verdict(p, err);
}

const ox_tool_format *ox_parse_format(const ox_parse *p)
{
    return p->f;
}
