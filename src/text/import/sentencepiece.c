/* sentencepiece.c - ModelProto of SentencePiece: pieces with scores and kinds, and how text is
 * normalized. BPE models have no list of merges: a better score is an earlier merge. */
#include "base/mem.h"
#include "base/vec.h"
#include "text/import/import.h"
#include "text/tok/tok_internal.h"
#include "text/unicode.h"

#include <stdlib.h>

#define MARK "\xe2\x96\x81"

enum { NORMAL = 1, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE };
enum { UNIGRAM = 1, BPE, WORD, CHAR };

typedef struct piece {
    ox_str text;
    float score;
    int type;
} piece;

typedef struct proto {
    OX_VEC(piece) pieces;
    int model;
    bool byte_fallback, suffix, prefix, one_space, escape;
    ox_str charsmap;
    int64_t unk, bos, eos, pad;
} proto;

/* ---- the wire format */

typedef struct field {
    unsigned number, wire;
    uint64_t value; /* of wire types 0 and 5 */
    ox_str bytes;   /* of wire type 2 */
} field;

static bool varint(ox_str *rest, uint64_t *v)
{
    *v = 0;
    for (unsigned shift = 0; shift < 64 && rest->n; shift += 7) {
        const uint8_t b = (uint8_t)*rest->p;
        *rest = (ox_str){rest->p + 1, rest->n - 1};
        *v |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80) return true;
    }
    return false;
}

static bool take(ox_str *rest, uint64_t n, ox_str *out)
{
    if (n > rest->n) return false;
    *out = (ox_str){rest->p, (size_t)n};
    *rest = (ox_str){rest->p + n, rest->n - (size_t)n};
    return true;
}

static bool next_field(ox_str *rest, field *f)
{
    uint64_t key, n;
    ox_str raw;
    if (!varint(rest, &key) || key >> 3 > 0x1fffffff) return false;
    *f = (field){(unsigned)(key >> 3), key & 7, 0, {"", 0}};
    if (f->wire == 0) return varint(rest, &f->value);
    if (f->wire == 2) return varint(rest, &n) && take(rest, n, &f->bytes);
    if (f->wire == 1) return take(rest, 8, &raw);
    if (f->wire != 5 || !take(rest, 4, &raw)) return false;
    uint32_t v;
    memcpy(&v, raw.p, 4);
    f->value = v;
    return true;
}

static bool read_piece(ox_str in, piece *p)
{
    field f;
    *p = (piece){{"", 0}, 0, NORMAL};
    while (in.n) {
        if (!next_field(&in, &f)) return false;
        const uint32_t bits = (uint32_t)f.value;
        if (f.number == 1 && f.wire == 2) p->text = f.bytes;
        if (f.number == 2 && f.wire == 5) memcpy(&p->score, &bits, 4);
        if (f.number == 3 && f.wire == 0) p->type = f.value < 100 ? (int)f.value : NORMAL;
    }
    return ox_utf8_check(p->text) == p->text.n && p->text.n <= OX_TOK_MAX_CONTENT;
}

static bool read_trainer(ox_str in, proto *m)
{
    field f;
    while (in.n) {
        if (!next_field(&in, &f)) return false;
        if (f.wire != 0) continue;
        const int64_t id = (int32_t)(uint32_t)f.value;
        if (f.number == 3) m->model = (int)(f.value & 7);
        if (f.number == 24) m->suffix = f.value != 0;
        if (f.number == 35) m->byte_fallback = f.value != 0;
        if (f.number == 40) m->unk = id;
        if (f.number == 41) m->bos = id;
        if (f.number == 42) m->eos = id;
        if (f.number == 43) m->pad = id;
    }
    return true;
}

static bool read_normalizer(ox_str in, proto *m)
{
    field f;
    while (in.n) {
        if (!next_field(&in, &f)) return false;
        if (f.number == 2 && f.wire == 2) m->charsmap = f.bytes;
        if (f.wire != 0) continue;
        if (f.number == 3) m->prefix = f.value != 0;
        if (f.number == 4) m->one_space = f.value != 0;
        if (f.number == 5) m->escape = f.value != 0;
    }
    return true;
}

static ox_status read_proto(ox_str in, proto *m, ox_err *err)
{
    field f;
    *m = (proto){.model = UNIGRAM,
                 .prefix = true,
                 .one_space = true,
                 .escape = true,
                 .bos = 1,
                 .eos = 2,
                 .pad = -1};
    while (in.n) {
        bool ok = next_field(&in, &f);
        if (ok && f.number == 1 && f.wire == 2) {
            piece p;
            ok = read_piece(f.bytes, &p);
            if (m->pieces.n == OX_IMPORT_MAX_TOKENS)
                return OX_FAIL(err, OX_LIMIT, "the model has more than %d pieces",
                               (int)OX_IMPORT_MAX_TOKENS);
            if (!ox_vec_push(&m->pieces, p))
                return OX_FAIL(err, OX_NO_MEMORY, "out of memory for a tokenizer");
        }
        if (ok && f.number == 2 && f.wire == 2) ok = read_trainer(f.bytes, m);
        if (ok && f.number == 3 && f.wire == 2) ok = read_normalizer(f.bytes, m);
        if (!ok)
            return OX_FAIL(err, OX_BAD_FILE, "the SentencePiece model is damaged behind piece %zu",
                           m->pieces.n);
    }
    for (size_t i = 0; i < m->pieces.n; i++) {
        if (m->pieces.p[i].type == UNKNOWN) m->unk = (int64_t)i;
    }
    if (m->model == WORD)
        return OX_FAIL(err, OX_UNSUPPORTED,
                       "SentencePiece models of whole words are not supported");
    if (!m->pieces.n || m->model < UNIGRAM || m->model > CHAR)
        return OX_FAIL(err, OX_BAD_FILE, "the SentencePiece model has %zu pieces and model type %d",
                       m->pieces.n, m->model);
    return OX_OK;
}

bool ox_tok_is_sentencepiece(ox_str file)
{
    field f;
    piece p;
    ox_str rest = file;
    if (!file.n || file.p[0] != 0x0a || !next_field(&rest, &f) || f.wire != 2) return false;
    return read_piece(f.bytes, &p) && p.text.n;
}

/* ---- tokenizer.json */

static ox_str piece_at(const proto *m, int64_t id)
{
    return id >= 0 && (size_t)id < m->pieces.n ? m->pieces.p[id].text : (ox_str){"", 0};
}

static void put_added(ox_json_writer *w, const proto *m)
{
    ox_json_put_key(w, "added_tokens");
    ox_json_begin_array(w);
    for (size_t i = 0; i < m->pieces.n; i++) {
        const piece *p = &m->pieces.p[i];
        const bool special = p->type == CONTROL || p->type == UNKNOWN;
        if (p->text.n && (special || p->type == USER_DEFINED))
            ox_tokj_added(w, p->text, i, special);
    }
    ox_json_end_array(w);
}

static void put_normalizer(ox_json_writer *w, const proto *m)
{
    ox_buf base64 = {0};
    ox_base64_put(&base64, m->charsmap);
    ox_json_put_key(w, "normalizer");
    ox_tokj_begin(w, "SentencePiece");
    ox_json_put_key(w, "precompiled_charsmap");
    ox_json_put_str(w, ox_buf_view(&base64));
    ox_tokj_flag(w, "add_dummy_prefix", m->prefix && !m->suffix);
    ox_tokj_flag(w, "add_dummy_suffix", m->prefix && m->suffix);
    ox_tokj_flag(w, "remove_extra_whitespaces", m->one_space);
    ox_tokj_flag(w, "escape_whitespaces", m->escape);
    ox_json_end_object(w);
    if (base64.failed) w->out->failed = true;
    ox_buf_deinit(&base64);
}

static void put_decoder(ox_json_writer *w, const proto *m)
{
    ox_json_put_key(w, "decoder");
    ox_tokj_begin(w, "Sequence");
    ox_json_put_key(w, "decoders");
    ox_json_begin_array(w);
    ox_tokj_begin(w, "Replace");
    ox_json_put_key(w, "pattern");
    ox_json_begin_object(w);
    ox_tokj_pair(w, "String", MARK);
    ox_json_end_object(w);
    ox_tokj_pair(w, "content", " ");
    ox_json_end_object(w);
    ox_tokj_begin(w, "ByteFallback");
    ox_json_end_object(w);
    ox_tokj_begin(w, "Fuse");
    ox_json_end_object(w);
    if (m->prefix) {
        ox_tokj_begin(w, "Strip");
        ox_tokj_pair(w, "content", " ");
        ox_json_put_key(w, "start");
        ox_json_put_i64(w, m->suffix ? 0 : 1);
        ox_json_put_key(w, "stop");
        ox_json_put_i64(w, m->suffix ? 1 : 0);
        ox_json_end_object(w);
    }
    ox_json_end_array(w);
    ox_json_end_object(w);
}

static void put_unk(ox_json_writer *w, const proto *m)
{
    ox_json_put_key(w, "unk_token");
    if (piece_at(m, m->unk).n)
        ox_json_put_str(w, piece_at(m, m->unk));
    else
        ox_json_put_null(w);
}

static void put_vocab_object(ox_json_writer *w, const proto *m)
{
    ox_json_put_key(w, "vocab");
    ox_json_begin_object(w);
    for (size_t i = 0; i < m->pieces.n; i++) {
        ox_json_put_key_str(w, m->pieces.p[i].text);
        ox_json_put_u64(w, i);
    }
    ox_json_end_object(w);
}

typedef struct scored {
    float score;
    uint32_t id;
} scored;

static int best_first(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

/* The rank of each piece as the result of a merge, -1 for those that are not. */
static bool put_ranks(ox_json_writer *w, const proto *m)
{
    scored *order = ox_calloc(m->pieces.n, sizeof(*order));
    int32_t *ranks = ox_calloc(m->pieces.n, sizeof(*ranks));
    size_t n = 0;
    const bool ok = order && ranks;
    for (size_t i = 0; ok && i < m->pieces.n; i++) {
        ranks[i] = -1;
        if (m->pieces.p[i].type == NORMAL && m->model == BPE)
            order[n++] = (scored){m->pieces.p[i].score, (uint32_t)i};
    }
    if (ok) qsort(order, n, sizeof(*order), best_first);
    for (size_t i = 0; ok && i < n; i++)
        ranks[order[i].id] = (int32_t)i;
    ox_json_put_key(w, "ranks");
    ox_json_begin_array(w);
    for (size_t i = 0; ok && i < m->pieces.n; i++)
        ox_json_put_i64(w, ranks[i]);
    ox_json_end_array(w);
    ox_free(order);
    ox_free(ranks);
    return ok;
}

static bool put_bpe(ox_json_writer *w, const proto *m)
{
    ox_tokj_begin(w, "BPE");
    put_unk(w, m);
    ox_tokj_flag(w, "fuse_unk", true);
    ox_tokj_flag(w, "byte_fallback", m->byte_fallback);
    put_vocab_object(w, m);
    ox_json_put_key(w, "merges");
    ox_json_begin_array(w);
    ox_json_end_array(w);
    const bool ok = put_ranks(w, m);
    ox_json_end_object(w);
    return ok;
}

static void put_unigram(ox_json_writer *w, const proto *m)
{
    ox_tokj_begin(w, "Unigram");
    if (m->unk >= 0) {
        ox_json_put_key(w, "unk_id");
        ox_json_put_i64(w, m->unk);
    }
    ox_tokj_flag(w, "byte_fallback", m->byte_fallback);
    ox_tokj_flag(w, "single_precision", true);
    ox_json_put_key(w, "vocab");
    ox_json_begin_array(w);
    for (size_t i = 0; i < m->pieces.n; i++) {
        ox_json_begin_array(w);
        ox_json_put_str(w, m->pieces.p[i].text);
        ox_json_put_f64(w, (double)m->pieces.p[i].score);
        ox_json_end_array(w);
    }
    ox_json_end_array(w);
    ox_json_put_key(w, "hidden"); /* not found in text by the model itself */
    ox_json_begin_array(w);
    for (size_t i = 0; i < m->pieces.n; i++) {
        if (m->pieces.p[i].type != NORMAL) ox_json_put_u64(w, i);
    }
    ox_json_end_array(w);
    ox_json_end_object(w);
}

static void put_config(ox_json_writer *w, const proto *m)
{
    const struct {
        const char *key;
        int64_t id;
    } special[] = {
        {"bos_token", m->bos}, {"eos_token", m->eos}, {"unk_token", m->unk}, {"pad_token", m->pad}};
    ox_json_begin_object(w);
    for (size_t i = 0; i < OX_COUNT(special); i++) {
        if (!piece_at(m, special[i].id).n) continue;
        ox_json_put_key(w, special[i].key);
        ox_json_put_str(w, piece_at(m, special[i].id));
    }
    ox_tokj_flag(w, "add_bos_token", m->model == BPE && piece_at(m, m->bos).n);
    ox_json_end_object(w);
}

ox_status ox_tok_import_sentencepiece(ox_str file, ox_str config, ox_buf *json, ox_buf *config_out,
                                      ox_err *err)
{
    proto m;
    ox_json_writer w = {.out = json}, c = {.out = config_out};
    ox_status st = read_proto(file, &m, err);
    bool ok = true;
    if (!st) {
        ox_json_begin_object(&w);
        put_added(&w, &m);
        put_normalizer(&w, &m);
        put_decoder(&w, &m);
        ox_json_put_key(&w, "model");
        if (m.model == UNIGRAM)
            put_unigram(&w, &m);
        else
            ok = put_bpe(&w, &m);
        ox_json_end_object(&w);
        if (!config.n) put_config(&c, &m);
        if (!ok) st = OX_FAIL(err, OX_NO_MEMORY, "out of memory for a tokenizer");
    }
    ox_vec_deinit(&m.pieces);
    return st;
}
