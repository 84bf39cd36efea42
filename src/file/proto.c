/* proto.c - see proto.h. */
#include "file/proto.h"

#include "tensor/half.h"

static bool damage(ox_proto *r, const char *what)
{
    if (!r->bad) r->bad = what;
    return false;
}

bool ox_proto_varint(ox_proto *r, uint64_t *out)
{
    uint64_t v = 0;
    const uint8_t *p = r->p;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (p == r->end) return damage(r, "a varint runs past the end");
        const uint8_t b = *p++;
        v |= shift < 63 ? (uint64_t)(b & 0x7fu) << shift : (uint64_t)(b & 1u) << 63;
        if (b < 0x80) {
            if (shift == 63 && b > 1) return damage(r, "a varint does not fit 64 bits");
            r->p = p;
            *out = v;
            return true;
        }
    }
    return damage(r, "a varint is longer than ten bytes");
}

static bool fixed(ox_proto *r, size_t n, uint64_t *out)
{
    if ((size_t)(r->end - r->p) < n) return damage(r, "a fixed-width field runs past the end");
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)r->p[i] << (8 * i);
    r->p += n;
    *out = v;
    return true;
}

static bool body(ox_proto *r, ox_proto_field *f)
{
    f->value = 0;
    f->bytes = (ox_str){"", 0};
    switch (f->wire) {
    case OX_PROTO_VARINT:
        return ox_proto_varint(r, &f->value);
    case OX_PROTO_I64:
        return fixed(r, 8, &f->value);
    case OX_PROTO_I32:
        return fixed(r, 4, &f->value);
    default:
        break;
    }
    uint64_t n;
    if (!ox_proto_varint(r, &n)) return false;
    if (n > (uint64_t)(r->end - r->p)) return damage(r, "a length runs past the end");
    f->bytes = (ox_str){(const char *)r->p, (size_t)n};
    r->p += n;
    return true;
}

bool ox_proto_next(ox_proto *r, ox_proto_field *f)
{
    uint32_t groups[OX_PROTO_MAX_GROUPS];
    size_t depth = 0;
    uint64_t tag;

    while (!r->bad && (r->p != r->end || depth)) {
        if (!ox_proto_varint(r, &tag)) return false;
        const uint64_t number = tag >> 3;
        if (!number || number > 0x1fffffffu) return damage(r, "a field number is out of range");
        f->number = (uint32_t)number;
        f->wire = (int32_t)(tag & 7u);
        if (f->wire > OX_PROTO_I32) return damage(r, "an unknown wire type");
        if (f->wire == 3) {
            if (depth == OX_PROTO_MAX_GROUPS) return damage(r, "groups nest too deeply");
            groups[depth++] = f->number;
        } else if (f->wire == 4) {
            if (!depth || groups[--depth] != f->number)
                return damage(r, "a group ends that did not begin");
        } else {
            if (!body(r, f)) return false;
            if (!depth) return true;
        }
    }
    return false;
}

size_t ox_proto_count(const ox_proto_field *f, int32_t wire)
{
    if (f->wire == wire) return 1;
    if (f->wire != OX_PROTO_LEN) return SIZE_MAX;
    if (wire == OX_PROTO_I32) return f->bytes.n % 4 ? SIZE_MAX : f->bytes.n / 4;
    if (wire == OX_PROTO_I64) return f->bytes.n % 8 ? SIZE_MAX : f->bytes.n / 8;
    size_t n = 0;
    for (size_t i = 0; i < f->bytes.n; i++)
        n += !((uint8_t)f->bytes.p[i] & 0x80u);
    if (f->bytes.n && (uint8_t)f->bytes.p[f->bytes.n - 1] & 0x80u) return SIZE_MAX;
    return n;
}

void ox_proto_put_varint(ox_buf *out, uint64_t v)
{
    uint8_t b[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        b[n++] = (uint8_t)(v | 0x80u);
    b[n++] = (uint8_t)v;
    ox_buf_put(out, b, n);
}

static void put_tag(ox_buf *out, uint32_t number, uint32_t wire)
{
    ox_proto_put_varint(out, (uint64_t)number << 3 | wire);
}

void ox_proto_put_int(ox_buf *out, uint32_t number, int64_t v)
{
    put_tag(out, number, OX_PROTO_VARINT);
    ox_proto_put_varint(out, (uint64_t)v);
}

void ox_proto_put_f32(ox_buf *out, uint32_t number, float v)
{
    const uint32_t u = ox_f32_bits(v);
    const uint8_t b[4] = {(uint8_t)u, (uint8_t)(u >> 8), (uint8_t)(u >> 16), (uint8_t)(u >> 24)};
    put_tag(out, number, OX_PROTO_I32);
    ox_buf_put(out, b, sizeof(b));
}

void ox_proto_put_head(ox_buf *out, uint32_t number, size_t n)
{
    put_tag(out, number, OX_PROTO_LEN);
    ox_proto_put_varint(out, n);
}

void ox_proto_put_len(ox_buf *out, uint32_t number, ox_str bytes)
{
    ox_proto_put_head(out, number, bytes.n);
    ox_buf_put_str(out, bytes);
}

void ox_proto_put_part(ox_buf *out, uint32_t number, ox_buf *part)
{
    ox_proto_put_len(out, number, ox_buf_view(part));
    if (part->failed) out->failed = true;
    ox_buf_clear(part);
}
