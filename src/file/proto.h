/* proto.h - protocol-buffers wire format: a reader over a byte view and a writer onto ox_buf.
 *
 * The reader walks the fields of one message in file order; it allocates nothing, never recurses
 * and never leaves its view. Damage stops it and leaves a sentence in `bad`. Groups are skipped.
 *     ox_proto r = ox_proto_of(bytes);
 *     ox_proto_field f;
 *     while (ox_proto_next(&r, &f)) switch (f.number) { ... }
 *     if (r.bad) return OX_FAIL(err, OX_BAD_FILE, "%s at byte %zu", r.bad, ox_proto_at(&r));
 * The writer needs no state: nested messages are written as finished byte strings. */
#ifndef OX_FILE_PROTO_H
#define OX_FILE_PROTO_H
#include "base/str.h"

enum { OX_PROTO_VARINT = 0, OX_PROTO_I64 = 1, OX_PROTO_LEN = 2, OX_PROTO_I32 = 5 };
enum { OX_PROTO_MAX_GROUPS = 64 };

typedef struct ox_proto {
    const uint8_t *p, *begin, *end;
    const char *bad; /* NULL = sound so far; static storage */
} ox_proto;

typedef struct ox_proto_field {
    uint32_t number;
    int32_t wire;   /* OX_PROTO_VARINT, _I64, _LEN or _I32 */
    uint64_t value; /* VARINT, I64, I32: the raw bits */
    ox_str bytes;   /* LEN: a view */
} ox_proto_field;

static inline ox_proto ox_proto_of(ox_str bytes)
{
    const uint8_t *p = (const uint8_t *)(bytes.p ? bytes.p : "");
    return (ox_proto){p, p, p + bytes.n, NULL};
}

/* Byte offset of the next unread byte. */
static inline size_t ox_proto_at(const ox_proto *r)
{
    return (size_t)(r->p - r->begin);
}

bool ox_proto_next(ox_proto *r, ox_proto_field *f); /* false: end, or r->bad is set */
bool ox_proto_varint(ox_proto *r, uint64_t *out);   /* the next bare varint of a packed field */

static inline bool ox_proto_is_len(const ox_proto_field *f)
{
    return f->wire == OX_PROTO_LEN;
}
static inline bool ox_proto_is_varint(const ox_proto_field *f)
{
    return f->wire == OX_PROTO_VARINT;
}

/* Numbers in a repeated scalar field f of element wire type `wire`, packed or not; SIZE_MAX when
 * the field's wire type fits neither or the packed bytes are damaged. */
size_t ox_proto_count(const ox_proto_field *f, int32_t wire);

/* Writing: out->failed reports memory. Signed integers use ten bytes when negative, as in proto. */
void ox_proto_put_varint(ox_buf *out, uint64_t v);
void ox_proto_put_int(ox_buf *out, uint32_t number, int64_t v);
void ox_proto_put_f32(ox_buf *out, uint32_t number, float v);
void ox_proto_put_len(ox_buf *out, uint32_t number, ox_str bytes);
/* Tag and length alone; the caller appends exactly n bytes. */
void ox_proto_put_head(ox_buf *out, uint32_t number, size_t n);
/* A message that is complete in `part`: written as field `number`, then part is cleared. A failed
 * part makes out failed. */
void ox_proto_put_part(ox_buf *out, uint32_t number, ox_buf *part);
#endif
