/* repr.c - values as Python prints them: str() for what {{ }} writes, repr() for what is inside
 * lists and dicts, and the JSON of the tojson filter.
 *
 * Everything goes through the builder, so text that came from the caller stays marked. */
#include "base/json.h"
#include "text/jinja/state.h"

#include <math.h>

size_t ox_jfloat_repr(char out[OX_JNUMBER_MAX], double v)
{
    ox_buf b = {0};
    if (isnan(v))
        ox_buf_put_z(&b, "nan");
    else if (isinf(v))
        ox_buf_put_z(&b, v < 0 ? "-inf" : "inf");
    else
        ox_json_print_f64(&b, v);
    const size_t n = b.n < OX_JNUMBER_MAX ? b.n : OX_JNUMBER_MAX - 1;
    if (n) memcpy(out, b.p, n);
    ox_buf_deinit(&b);
    return n;
}

static ox_status put_int(ox_jstate *j, ox_jbuf *b, int64_t v)
{
    char text[24];
    size_t i = sizeof(text);
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do {
        text[--i] = (char)('0' + u % 10);
        u /= 10;
    } while (u);
    if (v < 0) text[--i] = '-';
    return ox_jbuf_put(j, b, text + i, sizeof(text) - i, false);
}

static ox_status put_float(ox_jstate *j, ox_jbuf *b, double v)
{
    char text[OX_JNUMBER_MAX];
    const size_t n = ox_jfloat_repr(text, v);
    return n ? ox_jbuf_put(j, b, text, n, false) : ox_jno_memory(j);
}

static ox_status put_hex(ox_jstate *j, ox_jbuf *b, const char *lead, uint32_t v, int digits,
                         bool input)
{
    static const char hex[] = "0123456789abcdef";
    char text[12];
    size_t n = strlen(lead);
    memcpy(text, lead, n);
    while (digits--)
        text[n++] = hex[v >> (4 * digits) & 15];
    return ox_jbuf_put(j, b, text, n, input);
}

typedef struct quoting {
    char quote;
    bool ascii;
} quoting;

/* One stretch of repr(str). */
static ox_status repr_piece(ox_jstate *j, ox_jbuf *b, ox_str s, bool input, void *ctx)
{
    const quoting *q = ctx;
    size_t plain = 0; /* what waits to be copied as it is */
    for (size_t i = 0; i < s.n;) {
        uint32_t cp;
        const size_t n = ox_jutf8_read(s, i, &cp);
        const char *named = cp == '\n' ? "\\n" : cp == '\r' ? "\\r" : cp == '\t' ? "\\t" : NULL;
        const bool slash = cp == '\\' || cp == (unsigned char)q->quote;
        if (!named && !slash && ox_jprintable(cp)) {
            i += n;
            continue;
        }
        OX_TRY(ox_jbuf_put(j, b, s.p + plain, i - plain, input));
        if (named)
            OX_TRY(ox_jbuf_put(j, b, named, 2, input));
        else if (slash)
            OX_TRY(ox_jbuf_put(j, b, (char[]){'\\', (char)cp}, 2, input));
        else if (cp < 0x100)
            OX_TRY(put_hex(j, b, "\\x", cp, 2, input));
        else if (cp < 0x10000)
            OX_TRY(put_hex(j, b, "\\u", cp, 4, input));
        else
            OX_TRY(put_hex(j, b, "\\U", cp, 8, input));
        i += n;
        plain = i;
    }
    return ox_jbuf_put(j, b, s.p + plain, s.n - plain, input);
}

static ox_status put_quoted(ox_jstate *j, ox_jbuf *b, const ox_jstr *s)
{
    const ox_str text = {s->p, s->n};
    OX_TRY(ox_jspend_bytes(j, s->n));
    const bool single = text.n && memchr(text.p, '\'', text.n);
    quoting q = {single && !memchr(text.p, '"', text.n) ? '"' : '\'', false};
    OX_TRY(ox_jbuf_put(j, b, &q.quote, 1, false));
    OX_TRY(ox_jstr_pieces(j, b, s, repr_piece, &q));
    return ox_jbuf_put(j, b, &q.quote, 1, false);
}

static ox_status repr(ox_jstate *j, ox_jbuf *b, ox_jval v, int depth);

static ox_status repr_items(ox_jstate *j, ox_jbuf *b, const ox_jseq *s, const char *open,
                            const char *close, int depth)
{
    OX_TRY(ox_jbuf_put_z(j, b, open));
    for (size_t i = 0; i < s->n; i++) {
        if (i) OX_TRY(ox_jbuf_put_z(j, b, ", "));
        OX_TRY(repr(j, b, s->p[i], depth + 1));
    }
    return ox_jbuf_put_z(j, b, close);
}

static ox_status repr_dict(ox_jstate *j, ox_jbuf *b, const ox_jdict *d, int depth)
{
    OX_TRY(ox_jbuf_put_z(j, b, "{"));
    for (size_t i = 0; i < d->n; i++) {
        if (i) OX_TRY(ox_jbuf_put_z(j, b, ", "));
        OX_TRY(repr(j, b, d->p[i].key, depth + 1));
        OX_TRY(ox_jbuf_put_z(j, b, ": "));
        OX_TRY(repr(j, b, d->p[i].value, depth + 1));
    }
    return ox_jbuf_put_z(j, b, "}");
}

static ox_status repr_range(ox_jstate *j, ox_jbuf *b, const ox_jseq *s)
{
    OX_TRY(ox_jbuf_put_z(j, b, "range("));
    OX_TRY(put_int(j, b, s->start));
    OX_TRY(ox_jbuf_put_z(j, b, ", "));
    OX_TRY(put_int(j, b, s->stop));
    if (s->step != 1) {
        OX_TRY(ox_jbuf_put_z(j, b, ", "));
        OX_TRY(put_int(j, b, s->step));
    }
    return ox_jbuf_put_z(j, b, ")");
}

static ox_status repr_other(ox_jstate *j, ox_jbuf *b, ox_jval v)
{
    OX_TRY(ox_jbuf_put_z(j, b, "<"));
    if (ox_jis(v, OX_JKIND_MACRO)) {
        const ox_str name = v.u.macro->sig->name;
        OX_TRY(ox_jbuf_put_z(j, b, "Macro '"));
        OX_TRY(ox_jbuf_put(j, b, name.p, name.n, false));
        OX_TRY(ox_jbuf_put_z(j, b, "'"));
    } else {
        OX_TRY(ox_jbuf_put_z(j, b, ox_jkind_name(v)));
    }
    return ox_jbuf_put_z(j, b, ">");
}

static ox_status repr(ox_jstate *j, ox_jbuf *b, ox_jval v, int depth)
{
    if (depth > OX_JNEST_MAX)
        return ox_jfail(j, OX_UNSUPPORTED, "a value to print is nested more than %d deep",
                        OX_JNEST_MAX);
    OX_TRY(ox_jspend(j, 1));
    switch (v.kind) {
    case OX_JKIND_UNDEFINED:
        return ox_jbuf_put_z(j, b, "Undefined");
    case OX_JKIND_NONE:
        return ox_jbuf_put_z(j, b, "None");
    case OX_JKIND_BOOL:
        return ox_jbuf_put_z(j, b, v.u.b ? "True" : "False");
    case OX_JKIND_INT:
        return put_int(j, b, v.u.i);
    case OX_JKIND_FLOAT:
        return put_float(j, b, v.u.f);
    case OX_JKIND_STR:
        return put_quoted(j, b, v.u.str);
    case OX_JKIND_LIST:
        return repr_items(j, b, v.u.seq, "[", "]", depth);
    case OX_JKIND_TUPLE:
        return repr_items(j, b, v.u.seq, "(", v.u.seq->n == 1 ? ",)" : ")", depth);
    case OX_JKIND_RANGE:
        return repr_range(j, b, v.u.seq);
    case OX_JKIND_VIEW:
        OX_TRY(ox_jbuf_put_z(j, b, v.u.seq->label ? v.u.seq->label : "view"));
        return repr_items(j, b, v.u.seq, "([", "])", depth);
    case OX_JKIND_DICT:
        return repr_dict(j, b, v.u.dict, depth);
    case OX_JKIND_NAMESPACE:
        OX_TRY(ox_jbuf_put_z(j, b, "<Namespace "));
        OX_TRY(repr_dict(j, b, v.u.dict, depth));
        return ox_jbuf_put_z(j, b, ">");
    default:
        return repr_other(j, b, v);
    }
}

ox_status ox_jput_repr(ox_jstate *j, ox_jbuf *b, ox_jval v)
{
    return repr(j, b, v, 0);
}

ox_status ox_jput_str(ox_jstate *j, ox_jbuf *b, ox_jval v)
{
    if (ox_jis(v, OX_JKIND_STR)) return ox_jbuf_put_str(j, b, v.u.str);
    if (ox_jis(v, OX_JKIND_UNDEFINED)) return OX_OK;
    return repr(j, b, v, 0);
}

ox_status ox_jto_str(ox_jstate *j, ox_jval v, ox_jval *out)
{
    if (ox_jis(v, OX_JKIND_STR)) {
        *out = v;
        return OX_OK;
    }
    ox_jbuf b = {0};
    OX_TRY(ox_jput_str(j, &b, v));
    return ox_jbuf_take(j, &b, out);
}

/* ---- JSON ---- */

static ox_status json_piece(ox_jstate *j, ox_jbuf *b, ox_str s, bool input, void *ctx)
{
    static const char plain_names[] = "\b\t\n\f\r\"\\", names[] = "btnfr\"\\";
    const quoting *q = ctx;
    size_t plain = 0;
    for (size_t i = 0; i < s.n;) {
        uint32_t cp = (unsigned char)s.p[i];
        const size_t n = cp < 0x80 ? 1 : ox_jutf8_read(s, i, &cp);
        if (cp >= ' ' && cp != '"' && cp != '\\' && (!q->ascii || cp < 0x80)) {
            i += n;
            continue;
        }
        OX_TRY(ox_jbuf_put(j, b, s.p + plain, i - plain, input));
        const char *hit = cp && cp < 0x80 ? strchr(plain_names, (int)cp) : NULL;
        if (hit) {
            OX_TRY(ox_jbuf_put(j, b, (char[]){'\\', names[hit - plain_names]}, 2, input));
        } else if (cp < 0x10000) {
            OX_TRY(put_hex(j, b, "\\u", cp, 4, input));
        } else {
            OX_TRY(put_hex(j, b, "\\u", 0xD800 + ((cp - 0x10000) >> 10), 4, input));
            OX_TRY(put_hex(j, b, "\\u", 0xDC00 + ((cp - 0x10000) & 0x3FF), 4, input));
        }
        i += n;
        plain = i;
    }
    return ox_jbuf_put(j, b, s.p + plain, s.n - plain, input);
}

static ox_status json_string(ox_jstate *j, ox_jbuf *b, const ox_jstr *s, const ox_jdump *d)
{
    quoting q = {'"', d->ascii};
    OX_TRY(ox_jspend_bytes(j, s->n));
    OX_TRY(ox_jbuf_put_z(j, b, "\""));
    OX_TRY(ox_jstr_pieces(j, b, s, json_piece, &q));
    return ox_jbuf_put_z(j, b, "\"");
}

static ox_status json_float(ox_jstate *j, ox_jbuf *b, double v)
{
    if (isnan(v)) return ox_jbuf_put_z(j, b, "NaN");
    if (isinf(v)) return ox_jbuf_put_z(j, b, v < 0 ? "-Infinity" : "Infinity");
    return put_float(j, b, v);
}

/* True, false, null and numbers; *done tells whether v was one. */
static ox_status json_scalar(ox_jstate *j, ox_jbuf *b, ox_jval v, bool *done)
{
    *done = true;
    switch (v.kind) {
    case OX_JKIND_NONE:
        return ox_jbuf_put_z(j, b, "null");
    case OX_JKIND_BOOL:
        return ox_jbuf_put_z(j, b, v.u.b ? "true" : "false");
    case OX_JKIND_INT:
        return put_int(j, b, v.u.i);
    case OX_JKIND_FLOAT:
        return json_float(j, b, v.u.f);
    default:
        *done = false;
        return OX_OK;
    }
}

static ox_status json_break(ox_jstate *j, ox_jbuf *b, const ox_jdump *d, int depth)
{
    if (!d->pretty) return OX_OK;
    OX_TRY(ox_jbuf_put_z(j, b, "\n"));
    for (int i = 0; i < depth; i++)
        OX_TRY(ox_jbuf_put(j, b, d->indent.p, d->indent.n, false));
    return OX_OK;
}

static ox_status json_between(ox_jstate *j, ox_jbuf *b, const ox_jdump *d, int depth)
{
    if (d->item_separator)
        OX_TRY(ox_jbuf_put_str(j, b, d->item_separator));
    else
        OX_TRY(ox_jbuf_put_z(j, b, d->pretty ? "," : ", "));
    return json_break(j, b, d, depth);
}

static ox_status dump(ox_jstate *j, ox_jbuf *b, ox_jval v, const ox_jdump *d, int depth);

static ox_status json_list(ox_jstate *j, ox_jbuf *b, const ox_jseq *s, const ox_jdump *d, int depth)
{
    if (!s->n) return ox_jbuf_put_z(j, b, "[]");
    OX_TRY(ox_jbuf_put_z(j, b, "["));
    OX_TRY(json_break(j, b, d, depth + 1));
    for (size_t i = 0; i < s->n; i++) {
        if (i) OX_TRY(json_between(j, b, d, depth + 1));
        OX_TRY(dump(j, b, s->p[i], d, depth + 1));
    }
    OX_TRY(json_break(j, b, d, depth));
    return ox_jbuf_put_z(j, b, "]");
}

static ox_status json_key(ox_jstate *j, ox_jbuf *b, ox_jval key, const ox_jdump *d)
{
    bool done;
    if (ox_jis(key, OX_JKIND_STR)) return json_string(j, b, key.u.str, d);
    OX_TRY(ox_jbuf_put_z(j, b, "\""));
    OX_TRY(json_scalar(j, b, key, &done));
    if (!done) return OX_JFAIL(j, "%s can't be a key in JSON", ox_jkind_name(key));
    return ox_jbuf_put_z(j, b, "\"");
}

/* The entries in the order of their keys. */
static ox_status sorted_entries(ox_jstate *j, const ox_jdict *dict, const ox_jentry **out)
{
    void *mem;
    OX_TRY(ox_jtake(j, dict->n + 1, sizeof(ox_jentry), &mem));
    ox_jentry *e = mem;
    if (dict->n) memcpy(e, dict->p, dict->n * sizeof(*e));
    for (size_t i = 1; i < dict->n; i++) {
        const ox_jentry x = e[i];
        size_t k = i;
        for (; k; k--) {
            int c;
            OX_TRY(ox_jcompare(j, x.key, e[k - 1].key, "<", &c));
            if (c != -1) break;
            e[k] = e[k - 1];
        }
        e[k] = x;
    }
    *out = e;
    return OX_OK;
}

static ox_status json_dict(ox_jstate *j, ox_jbuf *b, const ox_jdict *dict, const ox_jdump *d,
                           int depth)
{
    if (!dict->n) return ox_jbuf_put_z(j, b, "{}");
    const ox_jentry *e = dict->p;
    const size_t n = dict->n;
    if (d->sort) OX_TRY(sorted_entries(j, dict, &e));
    OX_TRY(ox_jbuf_put_z(j, b, "{"));
    OX_TRY(json_break(j, b, d, depth + 1));
    for (size_t i = 0; i < n; i++) {
        if (i) OX_TRY(json_between(j, b, d, depth + 1));
        OX_TRY(json_key(j, b, e[i].key, d));
        if (d->key_separator)
            OX_TRY(ox_jbuf_put_str(j, b, d->key_separator));
        else
            OX_TRY(ox_jbuf_put_z(j, b, ": "));
        OX_TRY(dump(j, b, e[i].value, d, depth + 1));
    }
    OX_TRY(json_break(j, b, d, depth));
    return ox_jbuf_put_z(j, b, "}");
}

static ox_status dump(ox_jstate *j, ox_jbuf *b, ox_jval v, const ox_jdump *d, int depth)
{
    bool done;
    if (depth > OX_JNEST_MAX)
        return ox_jfail(j, OX_UNSUPPORTED, "tojson: nested more than %d deep", OX_JNEST_MAX);
    OX_TRY(ox_jspend(j, 1));
    OX_TRY(json_scalar(j, b, v, &done));
    if (done) return OX_OK;
    if (ox_jis(v, OX_JKIND_STR)) return json_string(j, b, v.u.str, d);
    if (ox_jis(v, OX_JKIND_LIST) || ox_jis(v, OX_JKIND_TUPLE))
        return json_list(j, b, v.u.seq, d, depth);
    if (ox_jis(v, OX_JKIND_DICT)) return json_dict(j, b, v.u.dict, d, depth);
    return OX_JFAIL(j, "tojson: %s has no form in JSON", ox_jkind_name(v));
}

ox_status ox_jput_json(ox_jstate *j, ox_jbuf *b, ox_jval v, const ox_jdump *d)
{
    return dump(j, b, v, d, 0);
}
