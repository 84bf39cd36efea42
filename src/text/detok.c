/* detok.c - the streaming side: bytes of tokens become whole characters, then pass the stop
 * strings. Neither keeps more than it must: 3 bytes, and the longest stop string less one. */
#include "text/detok.h"

#include "base/mem.h"
#include "text/unicode.h"

typedef struct ox_stop {
    ox_str text; /* owned */
} ox_stop;

void ox_detok_init(ox_detok *d, const ox_tokenizer *tok, bool show_special, bool at_start)
{
    *d = (ox_detok){.tok = tok, .show_special = show_special, .at_start = at_start};
}

void ox_detok_flush(ox_detok *d, ox_buf *out)
{
    ox_utf8_put_lossy(out, (ox_str){(const char *)d->held, d->n_held});
    d->n_held = 0;
}

/* Completes the held character with bytes of s; returns how many bytes of s it took. */
static size_t complete_held(ox_detok *d, ox_str s, ox_buf *out)
{
    size_t used = 0;
    while (d->n_held && used < s.n) {
        d->held[d->n_held] = (uint8_t)s.p[used];
        const size_t n = d->n_held + 1u;
        if (ox_utf8_length((const char *)d->held, n) == n) {
            ox_buf_put(out, d->held, n);
            d->n_held = 0;
            used++;
        } else if (ox_utf8_partial((const char *)d->held, n)) {
            d->n_held = (uint8_t)n;
            used++;
        } else {
            ox_detok_flush(d, out);
        }
    }
    return used;
}

void ox_detok_push(ox_detok *d, int32_t id, ox_buf *out)
{
    if (ox_tokenizer_is_special(d->tok, id)) {
        ox_detok_flush(d, out); /* bytes never join across a special token */
        if (!d->show_special) return;
    }
    ox_str s = ox_tokenizer_piece(d->tok, id);
    if (!s.n) return;
    if (d->at_start && ox_tokenizer_strips_first_space(d->tok) && s.p[0] == ' ')
        s = (ox_str){s.p + 1, s.n - 1};
    d->at_start = false;
    const size_t used = complete_held(d, s, out);
    s = (ox_str){s.p + used, s.n - used};
    size_t tail = 0; /* bytes at the end that begin a character */
    for (size_t n = s.n < 3 ? s.n : 3; n > 0; n--) {
        if (!ox_utf8_partial(s.p + s.n - n, n)) continue;
        tail = n;
        break;
    }
    ox_utf8_put_lossy(out, (ox_str){s.p, s.n - tail});
    if (tail) {
        memcpy(d->held, s.p + s.n - tail, tail);
        d->n_held = (uint8_t)tail;
    }
}

ox_status ox_stops_init(ox_stops *s, const ox_str *strings, size_t n, ox_err *err)
{
    *s = (ox_stops){0};
    if (n > OX_STOPS_MAX)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "%zu stop strings, the limit is %d", n, OX_STOPS_MAX);
    s->list = ox_calloc(n, sizeof(*s->list));
    if (!s->list) return OX_FAIL(err, OX_NO_MEMORY, "out of memory for %zu stop strings", n);
    for (; s->n < n; s->n++) {
        const ox_str from = strings[s->n];
        if (!from.n || from.n > OX_STOPS_MAX_BYTES) {
            ox_stops_deinit(s);
            return OX_FAIL(err, OX_BAD_ARGUMENT, "a stop string has %zu bytes, expected 1 to %d",
                           from.n, OX_STOPS_MAX_BYTES);
        }
        char *copy = ox_strdup_n(from.p, from.n);
        if (!copy) {
            ox_stops_deinit(s);
            return OX_FAIL(err, OX_NO_MEMORY, "out of memory for %zu stop strings", n);
        }
        s->list[s->n].text = (ox_str){copy, from.n};
    }
    return OX_OK;
}

void ox_stops_deinit(ox_stops *s)
{
    for (size_t i = 0; i < s->n; i++)
        ox_free((char *)(uintptr_t)s->list[i].text.p);
    ox_free(s->list);
    ox_buf_deinit(&s->held);
    *s = (ox_stops){0};
}

/* The earliest stop string in the held text; of several at one place the first in the list. */
static size_t find_stop(ox_stops *s)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < s->n; i++) {
        const size_t at = ox_str_find(ox_buf_view(&s->held), s->list[i].text, 0);
        if (at < best) {
            best = at;
            s->which = i;
        }
    }
    return best;
}

/* Bytes at the end of the held text that may begin a stop string. */
static size_t n_undecided(const ox_stops *s)
{
    const ox_str held = ox_buf_view(&s->held);
    size_t most = 0;
    for (size_t i = 0; i < s->n; i++) {
        const ox_str t = s->list[i].text;
        size_t n = t.n - 1 < held.n ? t.n - 1 : held.n;
        while (n > most && memcmp(held.p + held.n - n, t.p, n) != 0)
            n--;
        if (n > most) most = n;
    }
    return most;
}

void ox_stops_push(ox_stops *s, ox_str text, ox_buf *out)
{
    if (s->hit) return;
    if (!s->n) {
        ox_buf_put_str(out, text);
        return;
    }
    ox_buf_put_str(&s->held, text);
    if (s->held.failed) {
        out->failed = true;
        return;
    }
    const size_t at = find_stop(s);
    s->hit = at != SIZE_MAX;
    const size_t shown = s->hit ? at : s->held.n - n_undecided(s);
    ox_buf_put(out, s->held.p, shown);
    if (s->hit) {
        ox_buf_clear(&s->held);
        return;
    }
    if (shown) memmove(s->held.p, s->held.p + shown, s->held.n - shown);
    s->held.n -= shown;
}

void ox_stops_flush(ox_stops *s, ox_buf *out)
{
    if (!s->hit) ox_buf_put_str(out, ox_buf_view(&s->held));
    ox_buf_clear(&s->held);
}
