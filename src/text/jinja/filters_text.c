/* filters_text.c - filters whose value is text, numbers and JSON. */
#include "text/jinja/builtin.h"

#include <math.h>

static ox_status recased(ox_jstate *j, const ox_jbuiltin_call *c, ox_jcase how, ox_jval *out)
{
    const ox_jstr *s;
    OX_TRY(ox_jself_str(j, c, &s));
    return ox_jrecase(j, s, how, out);
}

ox_status ox_jf_filter_upper(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return recased(j, c, OX_JCASE_UPPER, out);
}

ox_status ox_jf_filter_lower(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return recased(j, c, OX_JCASE_LOWER, out);
}

ox_status ox_jf_filter_title(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return recased(j, c, OX_JCASE_WORDS, out);
}

ox_status ox_jf_filter_capitalize(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return recased(j, c, OX_JCASE_CAPITALIZE, out);
}

ox_status ox_jf_filter_string(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return ox_jto_str(j, c->self, out);
}

ox_status ox_jf_filter_trim(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    const ox_jstr *s, *chars;
    size_t begin, end;
    OX_TRY(ox_jself_str(j, c, &s));
    OX_TRY(ox_jarg_str(j, c, 0, &chars));
    OX_TRY(ox_jspend_pairs(j, s->n, chars ? chars->n : 0));
    const ox_str set = chars ? (ox_str){chars->p, chars->n} : (ox_str){NULL, 0};
    ox_jstrip((ox_str){s->p, s->n}, set, true, true, &begin, &end);
    return ox_jstr_sub(j, s, begin, end, out);
}

ox_status ox_jf_filter_replace(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    const ox_jstr *s;
    ox_jval old, with;
    int64_t count;
    OX_TRY(ox_jself_str(j, c, &s));
    OX_TRY(ox_jto_str(j, c->arg[0], &old));
    OX_TRY(ox_jto_str(j, c->arg[1], &with));
    OX_TRY(ox_jarg_int(j, c, 2, -1, &count));
    return ox_jreplace(j, s, old.u.str, with.u.str, count, out);
}

ox_status ox_jf_filter_center(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    const ox_jstr *s;
    int64_t width;
    OX_TRY(ox_jself_str(j, c, &s));
    OX_TRY(ox_jarg_int(j, c, 0, 80, &width));
    OX_TRY(ox_jspend_bytes(j, s->n));
    const int64_t n = (int64_t)ox_jutf8_count((ox_str){s->p, s->n});
    const int64_t room = width > n ? width - n : 0, left = room / 2 + (room & width & 1);
    return ox_jpad(j, s, left, room - left, OX_STR(" "), out);
}

ox_status ox_jf_filter_indent(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    if (!ox_jis(c->self, OX_JKIND_STR))
        return OX_JFAIL(j, "indent needs a string, found %s", ox_jkind_name(c->self));
    const ox_jstr *s = c->self.u.str;
    const ox_str text = {s->p, s->n};
    const bool first = ox_jtruth(c->arg[1]), blank = ox_jtruth(c->arg[2]);
    ox_jval indent;
    OX_TRY(ox_jstr_borrow(j, " ", 1, OX_JFROM_TEMPLATE, &indent));
    if (ox_jis(c->arg[0], OX_JKIND_STR)) {
        indent = c->arg[0];
    } else {
        int64_t width;
        OX_TRY(ox_jarg_int(j, c, 0, 4, &width));
        OX_TRY(ox_jarith(j, OX_JOP_MUL, indent, ox_jint(width), &indent));
    }
    ox_jbuf b = {0};
    OX_TRY(ox_jspend_bytes(j, s->n));
    if (first) OX_TRY(ox_jbuf_put_str(j, &b, indent.u.str));
    for (size_t at = 0, line = 0; at < text.n || !line; line++) {
        size_t end;
        const size_t next = ox_jline(text, at, &end);
        if (line) OX_TRY(ox_jbuf_put_z(j, &b, "\n"));
        if (line && (blank || end > at)) OX_TRY(ox_jbuf_put_str(j, &b, indent.u.str));
        OX_TRY(ox_jbuf_put_sub(j, &b, s, at, end));
        /* text that ends with a line end has one more, empty, line */
        if (next == text.n && end < text.n) {
            OX_TRY(ox_jbuf_put_z(j, &b, "\n"));
            if (blank) OX_TRY(ox_jbuf_put_str(j, &b, indent.u.str));
        }
        at = next;
    }
    return ox_jbuf_take(j, &b, out);
}

ox_status ox_jf_filter_truncate(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    const ox_jstr *end;
    ox_jval cut;
    int64_t length, leeway;
    if (!ox_jis(c->self, OX_JKIND_STR)) { /* what is short enough stays, whatever it is */
        const int64_t items = ox_jlength(c->self);
        OX_TRY(ox_jarg_int(j, c, 0, 255, &length));
        OX_TRY(ox_jarg_int(j, c, 3, 5, &leeway));
        if (items < 0 || length < 3 || leeway < 0 || items > length + leeway)
            return OX_JFAIL(j, "truncate needs a string, found %s", ox_jkind_name(c->self));
        *out = c->self;
        return OX_OK;
    }
    const ox_jstr *s = c->self.u.str;
    const ox_str text = {s->p, s->n};
    OX_TRY(ox_jarg_int(j, c, 0, 255, &length));
    OX_TRY(ox_jarg_str(j, c, 2, &end));
    OX_TRY(ox_jarg_int(j, c, 3, 5, &leeway));
    OX_TRY(ox_jspend_bytes(j, s->n + (end ? end->n : 0)));
    ox_jval dots;
    OX_TRY(ox_jstr_borrow(j, "...", 3, OX_JFROM_TEMPLATE, &dots));
    if (!end) end = dots.u.str;
    const int64_t n_end = (int64_t)ox_jutf8_count((ox_str){end->p, end->n});
    if (length < n_end || leeway < 0) return OX_JFAIL(j, "truncate: the length is too short");
    const int64_t n = (int64_t)ox_jutf8_count(text);
    if (n <= length || n - length <= leeway) {
        *out = c->self;
        return OX_OK;
    }
    size_t keep = ox_jutf8_offset(text, (size_t)(length - n_end));
    if (!ox_jtruth(c->arg[1]))
        for (size_t i = keep; i--;)
            if (s->p[i] == ' ') {
                keep = i;
                break;
            }
    OX_TRY(ox_jstr_sub(j, s, 0, keep, &cut));
    return ox_jstr_concat(j, cut.u.str, end, out);
}

ox_status ox_jf_filter_wordcount(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    const ox_jstr *s;
    int64_t n = 0;
    bool inside = false;
    OX_TRY(ox_jself_str(j, c, &s));
    OX_TRY(ox_jspend_bytes(j, s->n));
    for (size_t i = 0; i < s->n;) {
        uint32_t cp;
        i += ox_jutf8_read((ox_str){s->p, s->n}, i, &cp);
        const bool word = cp == '_' || ox_jis_alnum(cp);
        n += word && !inside;
        inside = word;
    }
    *out = ox_jint(n);
    return OX_OK;
}

static ox_status escape_piece(ox_jstate *j, ox_jbuf *b, ox_str s, bool input, void *ctx)
{
    static const char chars[] = "&<>\"'";
    static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&#34;", "&#39;"};
    (void)ctx;
    for (size_t i = 0; i < s.n; i++) {
        const char *hit = s.p[i] ? strchr(chars, s.p[i]) : NULL;
        const char *name = hit ? names[hit - chars] : NULL;
        OX_TRY(ox_jbuf_put(j, b, name ? name : s.p + i, name ? strlen(name) : 1, input));
    }
    return OX_OK;
}

ox_status ox_jf_filter_escape(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    const ox_jstr *s;
    ox_jbuf b = {0};
    OX_TRY(ox_jself_str(j, c, &s));
    OX_TRY(ox_jspend(j, 1 + s->n / 4));
    OX_TRY(ox_jstr_pieces(j, &b, s, escape_piece, NULL));
    return ox_jbuf_take(j, &b, out);
}

static ox_status url_piece(ox_jstate *j, ox_jbuf *b, ox_str s, bool input, void *ctx)
{
    static const char hex[] = "0123456789ABCDEF";
    (void)ctx;
    for (size_t i = 0; i < s.n; i++) {
        const unsigned char u = (unsigned char)s.p[i];
        const bool plain = u < 0x80 && (ox_jis_alnum(u) || (u && strchr("_.-~/", u)));
        const char text[3] = {'%', hex[u >> 4], hex[u & 15]};
        OX_TRY(ox_jbuf_put(j, b, plain ? s.p + i : text, plain ? 1 : 3, input));
    }
    return OX_OK;
}

ox_status ox_jf_filter_urlencode(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    const ox_jstr *s;
    ox_jbuf b = {0};
    if (ox_jis_seq(c->self) || ox_jis(c->self, OX_JKIND_DICT))
        return ox_jfail(j, OX_UNSUPPORTED, "urlencode of %s is not supported",
                        ox_jkind_name(c->self));
    OX_TRY(ox_jself_str(j, c, &s));
    OX_TRY(ox_jspend(j, 1 + s->n / 4));
    OX_TRY(ox_jstr_pieces(j, &b, s, url_piece, NULL));
    return ox_jbuf_take(j, &b, out);
}

ox_status ox_jf_filter_format(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    const ox_jstr *s;
    OX_TRY(ox_jself_str(j, c, &s));
    if (c->raw->n && c->raw->n_kw)
        return OX_JFAIL(j, "format takes values or names, not both at once");
    return ox_jpercent(j, s, c->raw, out);
}

/* ---- numbers ---- */

ox_status ox_jf_filter_abs(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    if (ox_jis(c->self, OX_JKIND_FLOAT)) {
        *out = ox_jfloat(fabs(c->self.u.f));
        return OX_OK;
    }
    if (!ox_jis_int(c->self)) return OX_JFAIL(j, "abs needs a number");
    const int64_t i = ox_jas_int(c->self);
    return ox_jarith(j, i < 0 ? OX_JOP_SUB : OX_JOP_ADD, ox_jint(0), ox_jint(i), out);
}

static ox_status float_to_int(ox_jstate *j, const ox_jbuiltin_call *c, double f, ox_jval *out)
{
    (void)j;
    if (f > -9.2e18 && f < 9.2e18)
        *out = ox_jint((int64_t)f);
    else
        *out = ox_jis(c->arg[0], OX_JKIND_MISSING) ? ox_jint(0) : c->arg[0];
    return OX_OK;
}

ox_status ox_jf_filter_int(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    int64_t base, i;
    double f;
    OX_TRY(ox_jarg_int(j, c, 1, 10, &base));
    if (ox_jis(c->self, OX_JKIND_UNDEFINED)) return ox_jundefined_error(j, c->self);
    if (ox_jis_int(c->self)) {
        *out = ox_jint(ox_jas_int(c->self));
        return OX_OK;
    }
    if (ox_jis(c->self, OX_JKIND_FLOAT)) return float_to_int(j, c, c->self.u.f, out);
    if (ox_jis(c->self, OX_JKIND_STR)) {
        OX_TRY(ox_jspend_bytes(j, c->self.u.str->n));
        if (ox_jparse_int(ox_jview(c->self), base, &i)) {
            *out = ox_jint(i);
            return OX_OK;
        }
        if (ox_jparse_float(ox_jview(c->self), &f)) return float_to_int(j, c, f, out);
    }
    return float_to_int(j, c, HUGE_VAL, out);
}

ox_status ox_jf_filter_float(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    double f;
    if (ox_jis(c->self, OX_JKIND_UNDEFINED)) return ox_jundefined_error(j, c->self);
    if (ox_jis(c->self, OX_JKIND_STR)) OX_TRY(ox_jspend_bytes(j, c->self.u.str->n));
    *out = ox_jis(c->arg[0], OX_JKIND_MISSING) ? ox_jfloat(0) : c->arg[0];
    if (ox_jis_int(c->self)) *out = ox_jfloat((double)ox_jas_int(c->self));
    if (ox_jis(c->self, OX_JKIND_FLOAT)) *out = c->self;
    if (ox_jis(c->self, OX_JKIND_STR) && ox_jparse_float(ox_jview(c->self), &f))
        *out = ox_jfloat(f);
    return OX_OK;
}

/* Half to even on the decimal value, which printing to `precision` places does exactly. */
static ox_status round_common(ox_jstate *j, double v, int64_t precision, double *out)
{
    *out = v;
    if (precision > 300 || !isfinite(v)) return OX_OK;
    if (precision < 0) {
        const double p = precision < -300 ? HUGE_VAL : pow(10, (double)-precision);
        *out = rint(v / p) * (precision < -300 ? 1 : p);
        return OX_OK;
    }
    ox_buf b = {0};
    OX_TRY(ox_jspend(j, 20 + (uint64_t)precision));
    ox_buf_printf(&b, "%.*f", (int)precision, v);
    for (size_t i = 0; i < b.n; i++) /* whatever the locale's decimal point is */
        if (b.p[i] == ',') b.p[i] = '.';
    const bool failed = b.failed;
    if (b.n >= 100 || !ox_str_to_f64(ox_buf_view(&b), out)) *out = v;
    ox_buf_deinit(&b);
    return failed ? ox_jno_memory(j) : OX_OK;
}

ox_status ox_jf_filter_round(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    int64_t precision;
    const ox_jstr *method;
    OX_TRY(ox_jarg_int(j, c, 0, 0, &precision));
    OX_TRY(ox_jarg_str(j, c, 1, &method));
    const ox_str how = method ? (ox_str){method->p, method->n} : OX_STR("common");
    const bool common = ox_str_is(how, "common"), up = ox_str_is(how, "ceil");
    if (!common && !up && !ox_str_is(how, "floor"))
        return OX_JFAIL(j, "round: the method must be common, ceil or floor");
    if (!ox_jis_int(c->self) && !ox_jis(c->self, OX_JKIND_FLOAT))
        return OX_JFAIL(j, "round needs a number, found %s", ox_jkind_name(c->self));
    if (common && ox_jis_int(c->self) && precision >= 0) {
        *out = ox_jint(ox_jas_int(c->self));
        return OX_OK;
    }
    const double v = ox_jis_int(c->self) ? (double)ox_jas_int(c->self) : c->self.u.f;
    const double p = pow(10, (double)precision);
    if (common) {
        double r;
        OX_TRY(round_common(j, v, precision, &r));
        *out = ox_jfloat(r);
        return ox_jis_int(c->self) ? float_to_int(j, c, r, out) : OX_OK;
    }
    *out = ox_jfloat((up ? ceil(v * p) : floor(v * p)) / p);
    return OX_OK;
}

/* ---- JSON ---- */

ox_status ox_jf_filter_tojson(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    ox_jdump d = {.ascii = ox_jtruth(c->arg[0]), .sort = ox_jtruth(c->arg[3])};
    const ox_jval indent = c->arg[1], separators = c->arg[2];
    ox_jval space;
    if (ox_jgiven(indent)) {
        d.pretty = true;
        if (!ox_jis(indent, OX_JKIND_STR)) {
            int64_t width;
            OX_TRY(ox_jarg_int(j, c, 1, 0, &width));
            OX_TRY(ox_jstr_borrow(j, " ", 1, OX_JFROM_TEMPLATE, &space));
            OX_TRY(ox_jarith(j, OX_JOP_MUL, space, ox_jint(width), &space));
        } else {
            space = indent;
        }
        d.indent = ox_jview(space);
    }
    if (ox_jgiven(separators)) {
        const bool pair =
            (ox_jis(separators, OX_JKIND_TUPLE) || ox_jis(separators, OX_JKIND_LIST)) &&
            separators.u.seq->n == 2 && ox_jis(separators.u.seq->p[0], OX_JKIND_STR) &&
            ox_jis(separators.u.seq->p[1], OX_JKIND_STR);
        if (!pair) return OX_JFAIL(j, "tojson: separators must be two strings");
        d.item_separator = separators.u.seq->p[0].u.str;
        d.key_separator = separators.u.seq->p[1].u.str;
    }
    ox_jbuf b = {0};
    OX_TRY(ox_jput_json(j, &b, c->self, &d));
    return ox_jbuf_take(j, &b, out);
}

ox_status ox_jf_filter_from_json(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    if (!ox_jis(c->self, OX_JKIND_STR))
        return OX_JFAIL(j, "%s needs a string, found %s", c->row->name, ox_jkind_name(c->self));
    return ox_jfrom_json(j, c->self.u.str, out);
}
