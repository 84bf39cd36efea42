/* split.c - cutting pieces at the matches of a pattern, in the five ways that files can ask for. */
#include "text/tok/tok_internal.h"
#include "text/unicode.h"

/* Receives the matches of one piece and the text between them, in order. */
typedef struct sink {
    ox_tok_work *w;
    ox_split_how how;
    bool invert, before, any_empty;
    size_t first; /* of this piece in w->next */
} sink;

static bool push_span(sink *k, size_t begin, size_t end)
{
    k->any_empty = k->any_empty || begin == end;
    return ox_vec_push(&k->w->next, (ox_span){(uint32_t)begin, (uint32_t)(end - begin)});
}

static bool take_segment(sink *k, size_t begin, size_t end, bool match)
{
    ox_spans *next = &k->w->next;
    const bool is = match != k->invert, before = k->before;
    ox_span *last = next->n > k->first ? &next->p[next->n - 1] : NULL;
    bool join = false;
    k->before = is;
    switch (k->how) {
    case OX_SPLIT_REMOVED:
        return is || push_span(k, begin, end);
    case OX_SPLIT_ISOLATED:
        break;
    case OX_SPLIT_WITH_PREVIOUS:
        join = last && is && !before;
        break;
    case OX_SPLIT_WITH_NEXT:
        join = last && !is && before;
        break;
    case OX_SPLIT_CONTIGUOUS:
        join = last && is == before;
        break;
    }
    if (!join) return push_span(k, begin, end);
    last->n = (uint32_t)(end - last->at);
    return true;
}

/* Matches of a regex in text.p[begin, end) as if that were the whole text. */
static ox_status segments_of_regex(sink *k, const ox_regex *re, size_t base, ox_str s)
{
    ox_tok_work *w = k->w;
    size_t done = 0, at = 0, last_end = SIZE_MAX;
    while (at <= s.n) {
        bool hit;
        size_t begin = 0, end = 0;
        OX_TRY(ox_regex_next(re, &w->run, s, at, &hit, &begin, &end, w->err));
        if (!hit) break;
        if (begin == end && end == last_end) { /* empty right behind a match: go on */
            at += at < s.n ? ox_utf8_length(s.p + at, s.n - at) : 1;
            continue;
        }
        at = last_end = end;
        if (done != begin && !take_segment(k, base + done, base + begin, false))
            return ox_tok_no_memory(w);
        if (!take_segment(k, base + begin, base + end, true)) return ox_tok_no_memory(w);
        done = end;
    }
    if (done != s.n && !take_segment(k, base + done, base + s.n, false)) return ox_tok_no_memory(w);
    return OX_OK;
}

static ox_status segments_of_literal(sink *k, ox_str text, size_t base, ox_str s)
{
    size_t done = 0;
    while (text.n) {
        const size_t begin = ox_str_find(s, text, done);
        if (begin == SIZE_MAX) break;
        if (done != begin && !take_segment(k, base + done, base + begin, false))
            return ox_tok_no_memory(k->w);
        done = begin + text.n;
        if (!take_segment(k, base + begin, base + done, true)) return ox_tok_no_memory(k->w);
    }
    if (done != s.n && !take_segment(k, base + done, base + s.n, false))
        return ox_tok_no_memory(k->w);
    return OX_OK;
}

static ox_status segments_of_chars(sink *k, bool (*is)(uint32_t), size_t base, ox_str s)
{
    const char *begin = s.p, *end = s.p + s.n; /* begin: of the text since the last match */
    for (const char *p = s.p; p < end;) {
        const char *at = p;
        if (!is(ox_utf8_next(&p))) continue;
        const size_t from = base + (size_t)(begin - s.p), here = base + (size_t)(at - s.p);
        if (begin != at && !take_segment(k, from, here, false)) return ox_tok_no_memory(k->w);
        if (!take_segment(k, here, base + (size_t)(p - s.p), true)) return ox_tok_no_memory(k->w);
        begin = p;
    }
    if (begin != end && !take_segment(k, base + (size_t)(begin - s.p), base + s.n, false))
        return ox_tok_no_memory(k->w);
    return OX_OK;
}

static void drop_empty(ox_spans *v)
{
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++) {
        if (v->p[i].n) v->p[n++] = v->p[i];
    }
    v->n = n;
}

ox_status ox_tok_split(const ox_pretokenizer *p, ox_tok_work *w)
{
    sink k = {.w = w, .how = p->how, .invert = p->invert};
    w->next.n = 0;
    for (size_t i = 0; i < w->spans.n; i++) {
        const size_t base = w->spans.p[i].at;
        const ox_str s = {w->now.p + base, w->spans.p[i].n};
        k.first = w->next.n;
        k.before = false;
        if (p->regex)
            OX_TRY(segments_of_regex(&k, p->regex, base, s));
        else if (p->is)
            OX_TRY(segments_of_chars(&k, p->is, base, s));
        else
            OX_TRY(segments_of_literal(&k, p->text, base, s));
    }
    const ox_spans old = w->spans;
    w->spans = w->next;
    w->next = old;
    if (k.any_empty) drop_empty(&w->spans);
    return OX_OK;
}

ox_status ox_tok_split_by(ox_tok_work *w, const ox_regex *regex, ox_split_how how, bool invert)
{
    /* The pattern is only read; the row's type owns it elsewhere. */
    const ox_pretokenizer p = {.regex = (ox_regex *)(uintptr_t)regex, .how = how, .invert = invert};
    return ox_tok_split(&p, w);
}

ox_status ox_tok_split_chars(ox_tok_work *w, bool (*is)(uint32_t), ox_split_how how, bool invert)
{
    const ox_pretokenizer p = {.is = is, .how = how, .invert = invert};
    return ox_tok_split(&p, w);
}
