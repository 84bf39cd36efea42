/* detok.h - token ids to text while they arrive, and stop strings across token borders.
 *
 * Both are values of one thread: zero or _init, use, _deinit. Text that leaves is whole UTF-8. */
#ifndef OX_TEXT_DETOK_H
#define OX_TEXT_DETOK_H
#include "text/tokenizer.h"

typedef struct ox_detok {
    const ox_tokenizer *tok;
    bool show_special; /* write special tokens out instead of dropping them */
    bool at_start;   /* nothing came before: one leading space is dropped where the file says so */
    uint8_t held[4]; /* bytes of a character that is not complete yet */
    uint8_t n_held;
} ox_detok;

/* at_start: the ids begin a text. False when they continue a prompt. tok must outlive d. */
void ox_detok_init(ox_detok *d, const ox_tokenizer *tok, bool show_special, bool at_start);
/* Appends what can be shown now to *out (check out->failed). Holds back at most 3 bytes. */
void ox_detok_push(ox_detok *d, int32_t id, ox_buf *out);
/* End of the stream: an incomplete character becomes U+FFFD. */
void ox_detok_flush(ox_detok *d, ox_buf *out);

/* Finds the first of several stop strings in a stream of text. Holds back text that may be the
 * beginning of one, so a stop string is never shown, not even in part. */
typedef struct ox_stops {
    struct ox_stop *list;
    size_t n;
    ox_buf held;
    bool hit;     /* a stop string was found; later text is dropped */
    size_t which; /* valid when hit: position in the list given to init */
} ox_stops;

enum { OX_STOPS_MAX = 64, OX_STOPS_MAX_BYTES = 4096 };

/* Copies the strings. Empty strings and more or longer ones than the limits are refused. */
ox_status ox_stops_init(ox_stops *s, const ox_str *strings, size_t n, ox_err *err);
/* Takes text, appends to *out what is certain to lie before any stop string. */
void ox_stops_push(ox_stops *s, ox_str text, ox_buf *out);
/* End of the stream: what was held back and stopped nothing. */
void ox_stops_flush(ox_stops *s, ox_buf *out);
void ox_stops_deinit(ox_stops *s);
#endif
