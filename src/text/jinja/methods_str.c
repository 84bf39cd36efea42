/* methods_str.c - methods of strings. Positions are code points, as in Python. */
#include "text/jinja/builtin.h"

#include <utf8proc.h>

static ox_str self_view(const ox_jbuiltin_call *c)
{
    return ox_jview(c->self);
}

#define CASE_METHOD(name, how)                                                                     \
    ox_status ox_jf_str_##name(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)              \
    {                                                                                              \
        return ox_jrecase(j, c->self.u.str, how, out);                                             \
    }
CASE_METHOD(upper, OX_JCASE_UPPER)
CASE_METHOD(lower, OX_JCASE_LOWER)
CASE_METHOD(title, OX_JCASE_TITLE)
CASE_METHOD(capitalize, OX_JCASE_CAPITALIZE)
CASE_METHOD(swapcase, OX_JCASE_SWAP)

/* ---- questions ---- */

static bool is_digit(uint32_t cp)
{
    return cp < 0xDC80 && utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_ND;
}

static bool is_numeric(uint32_t cp)
{
    return ox_jis_alnum(cp) && utf8proc_category((utf8proc_int32_t)cp) >= UTF8PROC_CATEGORY_ND;
}

static bool is_alpha(uint32_t cp)
{
    return ox_jis_alnum(cp) && !is_numeric(cp);
}

static ox_status all_are(ox_jstate *j, const ox_jbuiltin_call *c, bool (*is)(uint32_t),
                         ox_jval *out)
{
    const ox_str s = self_view(c);
    bool yes = s.n != 0;
    OX_TRY(ox_jspend_bytes(j, s.n));
    for (size_t i = 0; i < s.n && yes;) {
        uint32_t cp;
        i += ox_jutf8_read(s, i, &cp);
        yes = is(cp);
    }
    *out = ox_jbool(yes);
    return OX_OK;
}

#define ALL_METHOD(name, is)                                                                       \
    ox_status ox_jf_str_##name(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)              \
    {                                                                                              \
        return all_are(j, c, is, out);                                                             \
    }
ALL_METHOD(isalnum, ox_jis_alnum)
ALL_METHOD(isalpha, is_alpha)
ALL_METHOD(isdigit, is_digit)
ALL_METHOD(isnumeric, is_numeric)
ALL_METHOD(isspace, ox_jspace)

ox_status ox_jf_str_isascii(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    const ox_str s = self_view(c);
    bool yes = true;
    OX_TRY(ox_jspend_bytes(j, s.n));
    for (size_t i = 0; i < s.n; i++)
        yes = yes && (unsigned char)s.p[i] < 0x80;
    *out = ox_jbool(yes);
    return OX_OK;
}

ox_status ox_jf_str_islower(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    OX_TRY(ox_jspend_bytes(j, c->self.u.str->n));
    *out = ox_jbool(ox_jis_lower(self_view(c)));
    return OX_OK;
}

ox_status ox_jf_str_isupper(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    OX_TRY(ox_jspend_bytes(j, c->self.u.str->n));
    *out = ox_jbool(ox_jis_upper(self_view(c)));
    return OX_OK;
}

/* ---- searching ---- */

/* The bytes that optional arguments 1 and 2 (start, end) select; false: the range is empty beyond
 * the end, where not even "" is found. */
static ox_status window(ox_jstate *j, const ox_jbuiltin_call *c, size_t *begin, size_t *end,
                        bool *any)
{
    const ox_str s = self_view(c);
    *begin = 0;
    *end = s.n;
    *any = true;
    OX_TRY(ox_jspend_bytes(j, s.n));
    if (!ox_jgiven(c->arg[1]) && !ox_jgiven(c->arg[2])) return OX_OK;
    const int64_t n = (int64_t)ox_jutf8_count(s);
    int64_t from, to;
    OX_TRY(ox_jarg_int(j, c, 1, 0, &from));
    OX_TRY(ox_jarg_int(j, c, 2, n, &to));
    if (from < 0) from = from + n < 0 ? 0 : from + n;
    if (to < 0) to = to + n < 0 ? 0 : to + n;
    if (to > n) to = n;
    *any = from <= to;
    if (!*any) from = to;
    *begin = ox_jutf8_offset(s, (size_t)from);
    *end = ox_jutf8_offset(s, (size_t)to);
    return OX_OK;
}

static ox_status need_str(ox_jstate *j, const ox_jbuiltin_call *c, int i, ox_str *out)
{
    const ox_jstr *s;
    OX_TRY(ox_jarg_str(j, c, i, &s));
    if (!s) return OX_JFAIL(j, "%s: argument %d must be a string", c->row->name, i + 1);
    *out = (ox_str){s->p, s->n};
    return OX_OK;
}

/* Byte offset of the needle in text, from the left or from the right; SIZE_MAX. */
static size_t search(ox_str text, ox_str needle, bool from_right)
{
    if (!from_right) return ox_str_find(text, needle, 0);
    if (needle.n > text.n) return SIZE_MAX;
    for (size_t i = text.n - needle.n + 1; i--;)
        if (!needle.n || !memcmp(text.p + i, needle.p, needle.n)) return i;
    return SIZE_MAX;
}

static ox_status find(ox_jstate *j, const ox_jbuiltin_call *c, bool right, bool must, ox_jval *out)
{
    const ox_str s = self_view(c);
    ox_str needle;
    size_t begin, end;
    bool any;
    OX_TRY(need_str(j, c, 0, &needle));
    OX_TRY(window(j, c, &begin, &end, &any));
    if (right) OX_TRY(ox_jspend_pairs(j, s.n, needle.n));
    const size_t hit = any ? search((ox_str){s.p + begin, end - begin}, needle, right) : SIZE_MAX;
    if (hit == SIZE_MAX && must) return OX_JFAIL(j, "%s: the text is not found", c->row->name);
    *out = ox_jint(hit == SIZE_MAX ? -1 : (int64_t)ox_jutf8_count((ox_str){s.p, begin + hit}));
    return OX_OK;
}

ox_status ox_jf_str_find(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return find(j, c, false, false, out);
}

ox_status ox_jf_str_rfind(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return find(j, c, true, false, out);
}

ox_status ox_jf_str_index(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return find(j, c, false, true, out);
}

ox_status ox_jf_str_rindex(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return find(j, c, true, true, out);
}

ox_status ox_jf_str_count(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    const ox_str s = self_view(c);
    ox_str needle;
    size_t begin, end;
    bool any;
    int64_t n = 0;
    OX_TRY(need_str(j, c, 0, &needle));
    OX_TRY(window(j, c, &begin, &end, &any));
    const ox_str text = {s.p + begin, end - begin};
    if (any && !needle.n) n = (int64_t)ox_jutf8_count(text) + 1;
    for (size_t at = 0; any && needle.n; n++) {
        at = ox_str_find(text, needle, at);
        if (at == SIZE_MAX) break;
        at += needle.n;
    }
    *out = ox_jint(n);
    return ox_jspend(j, (uint64_t)n / 4);
}

/* startswith and endswith: one string or a tuple of them. */
static ox_status affix(ox_jstate *j, const ox_jbuiltin_call *c, bool suffix, ox_jval *out)
{
    const ox_str s = self_view(c);
    const ox_jval one = c->arg[0];
    const ox_jval *p = &one;
    size_t n = 1, begin, end;
    bool any, yes = false;
    if (ox_jis(one, OX_JKIND_TUPLE)) {
        p = one.u.seq->p;
        n = one.u.seq->n;
    }
    OX_TRY(window(j, c, &begin, &end, &any));
    const ox_str text = {s.p + begin, end - begin};
    for (size_t i = 0; i < n && !yes; i++) {
        if (!ox_jis(p[i], OX_JKIND_STR))
            return OX_JFAIL(j, "%s needs a string or a tuple of strings, found %s", c->row->name,
                            ox_jkind_name(p[i]));
        yes = any &&
              (suffix ? ox_str_ends(text, ox_jview(p[i])) : ox_str_starts(text, ox_jview(p[i])));
    }
    *out = ox_jbool(yes);
    return OX_OK;
}

ox_status ox_jf_str_startswith(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return affix(j, c, false, out);
}

ox_status ox_jf_str_endswith(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return affix(j, c, true, out);
}

ox_status ox_jf_str_removeprefix(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    ox_str fix;
    OX_TRY(need_str(j, c, 0, &fix));
    OX_TRY(ox_jspend_bytes(j, fix.n));
    const size_t cut = ox_str_starts(self_view(c), fix) ? fix.n : 0;
    return ox_jstr_sub(j, c->self.u.str, cut, c->self.u.str->n, out);
}

ox_status ox_jf_str_removesuffix(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    ox_str fix;
    OX_TRY(need_str(j, c, 0, &fix));
    OX_TRY(ox_jspend_bytes(j, fix.n));
    const size_t cut = ox_str_ends(self_view(c), fix) ? fix.n : 0;
    return ox_jstr_sub(j, c->self.u.str, 0, c->self.u.str->n - cut, out);
}

/* ---- cutting ---- */

static ox_status strip(ox_jstate *j, const ox_jbuiltin_call *c, bool left, bool right, ox_jval *out)
{
    const ox_jstr *chars;
    size_t begin, end;
    OX_TRY(ox_jarg_str(j, c, 0, &chars));
    OX_TRY(ox_jspend_pairs(j, c->self.u.str->n, chars ? chars->n : 0));
    ox_jstrip(self_view(c), chars ? (ox_str){chars->p, chars->n} : (ox_str){NULL, 0}, left, right,
              &begin, &end);
    return ox_jstr_sub(j, c->self.u.str, begin, end, out);
}

ox_status ox_jf_str_strip(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return strip(j, c, true, true, out);
}

ox_status ox_jf_str_lstrip(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return strip(j, c, true, false, out);
}

ox_status ox_jf_str_rstrip(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return strip(j, c, false, true, out);
}

static ox_status push_sub(ox_jstate *j, ox_jseq *list, const ox_jstr *s, size_t begin, size_t end)
{
    ox_jval v;
    OX_TRY(ox_jspend(j, 1));
    OX_TRY(ox_jstr_sub(j, s, begin, end, &v));
    return ox_jseq_push(j, list, v);
}

/* Words between white space; the rest after `max` cuts stays together. */
static ox_status split_space(ox_jstate *j, const ox_jstr *s, int64_t max, ox_jseq *list)
{
    const ox_str text = {s->p, s->n}, space = {NULL, 0};
    size_t at = 0;
    while (at < s->n) {
        size_t skip, end;
        ox_jstrip((ox_str){s->p + at, s->n - at}, space, true, false, &skip, &end);
        at += skip;
        if (at == s->n) break;
        if (max-- == 0) {
            ox_jstrip((ox_str){s->p + at, s->n - at}, space, false, true, &skip, &end);
            return push_sub(j, list, s, at, s->n);
        }
        for (end = at; end < s->n;) {
            uint32_t cp;
            const size_t n = ox_jutf8_read(text, end, &cp);
            if (ox_jspace(cp)) break;
            end += n;
        }
        OX_TRY(push_sub(j, list, s, at, end));
        at = end;
    }
    return OX_OK;
}

/* The same from the right; the list comes out backwards. */
static ox_status rsplit_space(ox_jstate *j, const ox_jstr *s, int64_t max, ox_jseq *list)
{
    const ox_str space = {NULL, 0};
    size_t end = s->n, begin, unused;
    while (end) {
        ox_jstrip((ox_str){s->p, end}, space, false, true, &unused, &end);
        if (!end) break;
        if (max-- == 0) return push_sub(j, list, s, 0, end);
        for (begin = end; begin;) { /* back to white space */
            size_t at = begin - 1;
            while (at && begin - at < 4 && ((unsigned char)s->p[at] & 0xC0) == 0x80)
                at--;
            uint32_t cp;
            ox_jutf8_read((ox_str){s->p, end}, at, &cp);
            if (ox_jspace(cp)) break;
            begin = at;
        }
        OX_TRY(push_sub(j, list, s, begin, end));
        end = begin;
    }
    return OX_OK;
}

static ox_status split_at(ox_jstate *j, const ox_jstr *s, ox_str sep, int64_t max, ox_jseq *list)
{
    const ox_str text = {s->p, s->n};
    size_t at = 0;
    for (; max; max--) {
        const size_t hit = ox_str_find(text, sep, at);
        if (hit == SIZE_MAX) break;
        OX_TRY(push_sub(j, list, s, at, hit));
        at = hit + sep.n;
    }
    return push_sub(j, list, s, at, s->n);
}

static ox_status rsplit_at(ox_jstate *j, const ox_jstr *s, ox_str sep, int64_t max, ox_jseq *list)
{
    size_t end = s->n;
    for (; max; max--) {
        const size_t hit = search((ox_str){s->p, end}, sep, true);
        if (hit == SIZE_MAX) break;
        OX_TRY(push_sub(j, list, s, hit + sep.n, end));
        end = hit;
    }
    return push_sub(j, list, s, 0, end);
}

static void turn_round(ox_jseq *s)
{
    for (size_t i = 0; i < s->n / 2; i++) {
        const ox_jval v = s->p[i];
        s->p[i] = s->p[s->n - 1 - i];
        s->p[s->n - 1 - i] = v;
    }
}

static ox_status split(ox_jstate *j, const ox_jbuiltin_call *c, bool right, ox_jval *out)
{
    const ox_jstr *s = c->self.u.str, *sep;
    int64_t max;
    ox_jseq *list;
    OX_TRY(ox_jarg_str(j, c, 0, &sep));
    OX_TRY(ox_jarg_int(j, c, 1, -1, &max));
    if (max < 0) max = -1;
    if (sep && !sep->n) return OX_JFAIL(j, "%s: the separator is empty", c->row->name);
    OX_TRY(ox_jspend_pairs(j, s->n, sep && right ? sep->n : 0));
    OX_TRY(ox_jseq_new(j, 0, &list));
    if (!sep)
        OX_TRY(right ? rsplit_space(j, s, max, list) : split_space(j, s, max, list));
    else if (right)
        OX_TRY(rsplit_at(j, s, (ox_str){sep->p, sep->n}, max, list));
    else
        OX_TRY(split_at(j, s, (ox_str){sep->p, sep->n}, max, list));
    if (right) turn_round(list);
    *out = ox_jseqval(OX_JKIND_LIST, list);
    return OX_OK;
}

ox_status ox_jf_str_split(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return split(j, c, false, out);
}

ox_status ox_jf_str_rsplit(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return split(j, c, true, out);
}

ox_status ox_jf_str_splitlines(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    const ox_str s = self_view(c);
    const bool keep = ox_jtruth(c->arg[0]);
    ox_jseq *list;
    OX_TRY(ox_jspend_bytes(j, s.n));
    OX_TRY(ox_jseq_new(j, 0, &list));
    for (size_t at = 0; at < s.n;) {
        size_t end;
        const size_t next = ox_jline(s, at, &end);
        OX_TRY(push_sub(j, list, c->self.u.str, at, keep ? next : end));
        at = next;
    }
    *out = ox_jseqval(OX_JKIND_LIST, list);
    return OX_OK;
}

static ox_status partition(ox_jstate *j, const ox_jbuiltin_call *c, bool right, ox_jval *out)
{
    const ox_jstr *s = c->self.u.str;
    ox_str sep;
    ox_jseq *t;
    OX_TRY(need_str(j, c, 0, &sep));
    if (!sep.n) return OX_JFAIL(j, "%s: the separator is empty", c->row->name);
    OX_TRY(ox_jspend_pairs(j, s->n, right ? sep.n : 0));
    OX_TRY(ox_jseq_new(j, 3, &t));
    const size_t hit = search(self_view(c), sep, right);
    const bool none = hit == SIZE_MAX;
    const size_t a = none ? (right ? 0 : s->n) : hit, b = none ? a : hit + sep.n;
    OX_TRY(push_sub(j, t, s, 0, a));
    OX_TRY(push_sub(j, t, s, a, b));
    OX_TRY(push_sub(j, t, s, b, s->n));
    *out = ox_jseqval(OX_JKIND_TUPLE, t);
    return OX_OK;
}

ox_status ox_jf_str_partition(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return partition(j, c, false, out);
}

ox_status ox_jf_str_rpartition(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return partition(j, c, true, out);
}

/* ---- making ---- */

ox_status ox_jf_str_replace(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    const ox_jstr *old, *with;
    int64_t count;
    OX_TRY(ox_jarg_str(j, c, 0, &old));
    OX_TRY(ox_jarg_str(j, c, 1, &with));
    OX_TRY(ox_jarg_int(j, c, 2, -1, &count));
    if (!old || !with) return OX_JFAIL(j, "replace needs two strings");
    return ox_jreplace(j, c->self.u.str, old, with, count, out);
}

ox_status ox_jf_str_join(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    ox_jseq *s;
    OX_TRY(ox_jiterate(j, c->arg[0], &s));
    for (size_t i = 0; i < s->n; i++)
        if (!ox_jis(s->p[i], OX_JKIND_STR))
            return OX_JFAIL(j, "join needs strings, item %zu is %s", i, ox_jkind_name(s->p[i]));
    return ox_jjoin(j, c->self.u.str, s, out);
}

ox_status ox_jf_str_format(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return ox_jformat(j, c->self.u.str, c->raw, out);
}

typedef enum side { SIDE_LEFT, SIDE_RIGHT, SIDE_BOTH } side;

static ox_status justify(ox_jstate *j, const ox_jbuiltin_call *c, side where, ox_jval *out)
{
    const ox_jstr *fill;
    int64_t width;
    OX_TRY(ox_jarg_int(j, c, 0, 0, &width));
    OX_TRY(ox_jarg_str(j, c, 1, &fill));
    OX_TRY(ox_jspend_bytes(j, c->self.u.str->n + (fill ? fill->n : 0)));
    const ox_str f = fill ? (ox_str){fill->p, fill->n} : OX_STR(" ");
    if (ox_jutf8_count(f) != 1)
        return OX_JFAIL(j, "%s: the fill must be one character", c->row->name);
    const int64_t n = (int64_t)ox_jutf8_count(self_view(c));
    const int64_t room = width > n ? width - n : 0;
    const int64_t left = where == SIDE_LEFT    ? 0
                         : where == SIDE_RIGHT ? room
                                               : room / 2 + (room & width & 1);
    return ox_jpad(j, c->self.u.str, left, room - left, f, out);
}

ox_status ox_jf_str_ljust(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return justify(j, c, SIDE_LEFT, out);
}

ox_status ox_jf_str_rjust(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return justify(j, c, SIDE_RIGHT, out);
}

ox_status ox_jf_str_center(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    return justify(j, c, SIDE_BOTH, out);
}

ox_status ox_jf_str_zfill(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out)
{
    const ox_jstr *s = c->self.u.str;
    int64_t width;
    OX_TRY(ox_jarg_int(j, c, 0, 0, &width));
    OX_TRY(ox_jspend_bytes(j, s->n));
    const int64_t n = (int64_t)ox_jutf8_count(self_view(c));
    const int64_t room = width > n ? width - n : 0;
    const bool sign = s->n && (s->p[0] == '-' || s->p[0] == '+');
    ox_jval head, tail;
    OX_TRY(ox_jstr_sub(j, s, 0, sign, &head));
    OX_TRY(ox_jstr_sub(j, s, sign, s->n, &tail));
    OX_TRY(ox_jpad(j, tail.u.str, room, 0, OX_STR("0"), &tail));
    return ox_jstr_concat(j, head.u.str, tail.u.str, out);
}
