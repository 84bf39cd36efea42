/* tokenizer.h - text to token ids and back, and chat templates, of an open model. Thread safe. */
#ifndef OXGEN_TOKENIZER_H
#define OXGEN_TOKENIZER_H
#include "oxgen/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Buffers returned here are owned by the caller and freed with ox_release. */
OX_API void ox_release(void *p);

enum {
    OX_TEXT_ADD_SPECIAL = 1,   /* add begin/end tokens as the tokenizer's file says */
    OX_TEXT_PLAIN_SPECIAL = 2, /* special tokens inside the text are ordinary text */
    OX_TEXT_SKIP_SPECIAL = 4,
};

/* UTF-8 text [n] to ids. Invalid UTF-8 is OX_BAD_ARGUMENT with the byte offset. */
OX_API ox_status ox_model_encode(const ox_model *m, const char *text, size_t n, uint32_t flags,
                                 int32_t **ids, size_t *n_ids, ox_err *err);
/* Bytes [begin, end) of a text. */
typedef struct ox_text_range {
    size_t begin, end;
} ox_text_range;

/* The same, and for each id the bytes of text that it stands for. A token that holds a part of a
 * character, or characters that were composed into one, has the range of them all; one that was
 * added around the text has an empty range. White space at the ends of a token counts unless the
 * tokenizer's file trims it. ids and ranges are freed with ox_release. Slower than without. */
OX_API ox_status ox_model_encode_ranges(const ox_model *m, const char *text, size_t n,
                                        uint32_t flags, int32_t **ids, ox_text_range **ranges,
                                        size_t *n_ids, ox_err *err);
/* ids to UTF-8 text, NUL-terminated. Ids outside the vocabulary are OX_BAD_ARGUMENT. */
OX_API ox_status ox_model_decode(const ox_model *m, const int32_t *ids, size_t n_ids,
                                 uint32_t flags, char **text, size_t *n, ox_err *err);
/* The piece of one id as the vocabulary writes it, NUL-terminated, owned by the
 * model; NULL = none. */
OX_API const char *ox_model_piece(const ox_model *m, int32_t id, size_t *n);

/* Renders the chat template. messages_json is an array of {"role","content",…}; tools_json an array
 * or NULL; vars_json an object of further variables or NULL. Without a template the contents are
 * joined as they are ("no chat template means raw"). */
OX_API ox_status ox_model_template(const ox_model *m, const char *messages_json,
                                   const char *tools_json, const char *vars_json,
                                   int32_t add_generation_prompt, char **text, size_t *n,
                                   ox_err *err);
/* Renders and encodes: control tokens written by the template count, those
 * inside messages do not. */
OX_API ox_status ox_model_chat_ids(const ox_model *m, const char *messages_json,
                                   const char *tools_json, const char *vars_json,
                                   int32_t add_generation_prompt, int32_t **ids, size_t *n_ids,
                                   ox_err *err);

/* Streaming: bytes come out as soon as they are whole characters. One owner. */
typedef struct ox_stream_text ox_stream_text;
/* stops: n_stops strings that end the text; NULL = none. */
OX_API ox_status ox_stream_text_open(ox_stream_text **out, const ox_model *m,
                                     const char *const *stops, size_t n_stops, int32_t show_special,
                                     ox_err *err);
/* Feeds one id; *text (owned by the stream, valid until the next call) is what may be shown now.
 * *stopped becomes 1 when a stop string was completed: nothing after it is shown. */
OX_API ox_status ox_stream_text_feed(ox_stream_text *s, int32_t id, const char **text, size_t *n,
                                     int32_t *stopped, ox_err *err);
/* What is still held back at the end. */
OX_API ox_status ox_stream_text_flush(ox_stream_text *s, const char **text, size_t *n, ox_err *err);
OX_API void ox_stream_text_close(ox_stream_text **s);

#ifdef __cplusplus
}
#endif
#endif
