/* offsets.c - which bytes of the given text a token stands for. Steps that rewrite text tell where
 * each byte that they put comes from; the model's tokens are laid along their piece by their
 * spelling afterwards, so that the models themselves know nothing of offsets. */
#include "text/tok/tok_internal.h"
#include "text/unicode.h"

static bool continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* The range that byte `at` of `in` comes from: of its whole character. */
static ox_range origin_of(const ox_tok_work *w, ox_str in, size_t at)
{
    if (w->from) return w->from[at];
    size_t begin = at, end = at + 1;
    while (begin > 0 && continues(in.p[begin]))
        begin--;
    while (end < in.n && continues(in.p[end]))
        end++;
    return (ox_range){(uint32_t)(w->base + begin), (uint32_t)(w->base + end)};
}

ox_range ox_tok_origin(const ox_tok_work *w, ox_str in, size_t at, size_t n)
{
    if (!in.n) return (ox_range){(uint32_t)w->base, (uint32_t)w->base};
    const ox_range first = origin_of(w, in, at < in.n ? at : in.n - 1);
    if (!n)
        return at < in.n ? (ox_range){first.begin, first.begin} : (ox_range){first.end, first.end};
    const ox_range last = origin_of(w, in, at + n - 1);
    return (ox_range){first.begin, last.end > first.begin ? last.end : first.end};
}

bool ox_tok_begins_text(const ox_tok_work *w)
{
    return (w->from ? w->from[0].begin : w->base) == 0;
}

void ox_tok_made(ox_tok_work *w, const ox_buf *out, ox_str in, const char *begin, const char *end)
{
    if (!w->track || out->failed || w->made.n >= out->n) return;
    const ox_range r = ox_tok_origin(w, in, (size_t)(begin - in.p), (size_t)(end - begin));
    if (!ox_vec_reserve(&w->made, out->n)) return; /* found out where the count is checked */
    while (w->made.n < out->n)
        w->made.p[w->made.n++] = r;
}

void ox_tok_copied(ox_tok_work *w, const ox_buf *out, ox_str in, const char *begin, const char *end)
{
    if (!w->track || out->failed || !ox_vec_reserve(&w->made, out->n)) return;
    for (const char *p = begin; p < end && w->made.n < out->n; p++)
        w->made.p[w->made.n++] = origin_of(w, in, (size_t)(p - in.p));
}

/* ---- tokens along their piece */

/* Bytes of the piece at `at` that the token spells; SIZE_MAX when it does not stand there. */
static size_t spelled(const ox_tokenizer *tok, int32_t id, ox_str piece, size_t at)
{
    ox_str s = ox_vocab_str(&tok->vocab, id);
    const ox_str rest = {piece.p + at, piece.n - at};
    if (tok->raw) {
        size_t n = 0;
        for (size_t i = 0; i < s.n; i++)
            n += !continues(s.p[i]);
        return n <= rest.n ? n : SIZE_MAX;
    }
    const int byte = ox_tok_byte_token(s);
    if (tok->byte_fallback && byte >= 0 && rest.n && (uint8_t)rest.p[0] == byte) return 1;
    if (at && tok->prefix.n && ox_str_starts(s, tok->prefix))
        s = (ox_str){s.p + tok->prefix.n, s.n - tok->prefix.n};
    if (tok->suffix.n && ox_str_ends(s, tok->suffix) && s.n - tok->suffix.n == rest.n)
        s.n -= tok->suffix.n;
    return ox_str_starts(rest, s) ? s.n : SIZE_MAX;
}

static size_t next_char(ox_str piece, size_t at)
{
    do
        at++;
    while (at < piece.n && continues(piece.p[at]));
    return at;
}

bool ox_tok_measure(ox_tok_work *w, ox_str piece, size_t first)
{
    const size_t n = w->ids->n - first, base = (size_t)(piece.p - w->now.p);
    size_t at = 0;
    if (!w->ranges) return true;
    if (!ox_vec_reserve(w->ranges, w->ranges->n + n)) return false;
    for (size_t i = 0; i < n; i++) {
        const int32_t id = w->ids->p[first + i];
        size_t len = n == 1 ? piece.n : spelled(w->tok, id, piece, at);
        while (len == SIZE_MAX && id != w->tok->unk && at < piece.n) { /* dropped characters */
            at = next_char(piece, at);
            len = spelled(w->tok, id, piece, at);
        }
        if (len == SIZE_MAX) { /* unknown: up to where the next token stands */
            size_t end = at < piece.n ? next_char(piece, at) : at;
            while (i + 1 < n && end < piece.n && w->tok->fuse_unk &&
                   spelled(w->tok, w->ids->p[first + i + 1], piece, end) == SIZE_MAX)
                end = next_char(piece, end);
            if (i + 1 == n) end = piece.n;
            len = end - at;
        }
        w->ranges->p[w->ranges->n++] = ox_tok_origin(w, w->now, base + at, len);
        at += len;
    }
    return true;
}
