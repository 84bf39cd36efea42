/* cache.c - what reading a tokenizer's file takes long to build, kept in a file of the user's cache
 * folder: $XDG_CACHE_HOME/oxgen/tokenizers (~/.cache without that variable). A file is named by the
 * hash of what it was made from, begins with the version of its layout and carries a checksum. One
 * that is damaged, of another version or inconsistent is ignored and written anew; writers rename
 * into place, so that readers see a whole file or none. Byte order and layout are this machine's:
 * the version holds a mark of both. */
#include "text/tok/cache.h"
#include "base/fs.h"
#include "base/outfile.h"
#include "text/tok/bpe.h"

enum { VERSION = 1, MOST_SECTIONS = 24, ALIGN = 16, MOST_FILES = 256, LEAST_FILE = 1 << 18 };

static const char magic[8] = "oxtok\r\n";

typedef struct head {
    char magic[8];
    uint32_t version, head_bytes;
    uint64_t key[2];
    uint64_t checksum; /* of all that follows */
    uint64_t n_file;
    uint64_t n_string_bytes, n_entries, n_slots, n_ids, n_merge_slots, n_merges, n_merge_bits;
    uint64_t n_raw_ranks, n_char_ids, n_edges, n_trie, n_nodes, n_scores, n_piece_bytes;
    uint64_t n_piece_at, n_prefix, n_suffix, n_rest, n_config;
    uint64_t max_chars;
    double unk_score;
    int32_t unk;
    uint32_t model;
    uint8_t fuse_unk, byte_fallback, ignore_merges, single_precision, cuts, strips_first_space;
    uint8_t raw, unused;
    uint8_t joins[256];
    int32_t byte_ids[256], raw_ids[256];
    uint32_t roots[256];
} head;

typedef struct section {
    void **place; /* where the tokenizer points to it */
    uint64_t n;   /* bytes */
} section;

/* Four sums side by side, so that the processor need not wait for one product after the other. */
static void hash_two(ox_str s, uint64_t out[2])
{
    const uint64_t m0 = 0x9e3779b97f4a7c15u, m1 = 0xe7037ed1a0b428dbu, m2 = 0x8ebc6af09c88c6e3u,
                   m3 = 0x589965cc75374cc3u;
    uint64_t a = s.n, b = m1, c = m2, d = m3, v[4];
    size_t i = 0;
    for (; i + 32 <= s.n; i += 32) {
        memcpy(v, s.p + i, 32);
        a = ((a ^ v[0]) * m0) ^ (a >> 31); /* the sum before, turned: high bits come down */
        b = ((b ^ v[1]) * m1) ^ (b >> 31);
        c = ((c ^ v[2]) * m2) ^ (c >> 31);
        d = ((d ^ v[3]) * m3) ^ (d >> 31);
    }
    memset(v, 0, sizeof(v));
    if (i < s.n) memcpy(v, s.p + i, s.n - i);
    a = (a ^ v[0]) * m0;
    b = (b ^ v[1]) * m1;
    c = (c ^ v[2]) * m2;
    d = (d ^ v[3]) * m3;
    a ^= a >> 32;
    b ^= b >> 32;
    c ^= c >> 32;
    d ^= d >> 32;
    out[0] = (a * m1 ^ b) * m2 ^ c ^ (d << 17 | d >> 47);
    out[1] = (d * m0 ^ c) * m3 ^ b ^ (a << 31 | a >> 33);
    out[0] ^= out[0] >> 29;
    out[1] ^= out[1] >> 29;
}

static size_t list_sections(ox_tokenizer *t, ox_tok_parts *parts, const head *h, section *s)
{
    size_t n = 0;
#define PUT(pointer, count)                                                                        \
    s[n++] = (section){(void **)&(pointer), (uint64_t)(count) * sizeof(*(pointer))}
    PUT(t->vocab.bytes.p, h->n_string_bytes);
    PUT(t->vocab.entries, h->n_entries);
    PUT(t->vocab.slots, h->n_slots);
    PUT(t->vocab.entry_of_id, h->n_ids);
    PUT(t->merges, h->n_merge_slots);
    PUT(t->merged, h->n_merges);
    PUT(t->merge_bits, h->n_merge_bits);
    PUT(t->raw_ranks, h->n_raw_ranks);
    PUT(t->char_ids, h->n_char_ids);
    PUT(t->trie.edges, h->n_edges);
    PUT(t->trie.values, h->n_nodes);
    PUT(t->scores, h->n_scores);
    PUT(t->piece_bytes, h->n_piece_bytes);
    PUT(t->piece_at, h->n_piece_at);
    PUT(t->prefix.p, h->n_prefix);
    PUT(t->suffix.p, h->n_suffix);
    PUT(parts->rest.p, h->n_rest);
    PUT(parts->config.p, h->n_config);
#undef PUT
    return n;
}

/* ---- writing */

static head head_of(const ox_tokenizer *t, const ox_tok_parts *parts)
{
    head h = {.version = VERSION, .head_bytes = sizeof(head)};
    memcpy(h.magic, magic, sizeof(magic));
    h.n_string_bytes = t->vocab.bytes.n;
    h.n_entries = t->vocab.n;
    h.n_slots = t->vocab.slots ? t->vocab.mask + 1 : 0;
    h.n_ids = t->vocab.n_ids;
    h.n_merge_slots = t->merges ? t->merge_mask + 1 : 0;
    h.n_merges = t->merges ? t->n_merges + 1 : 0;
    h.n_merge_bits = t->merges ? (t->merge_bits_mask + 1) / 64 : 0;
    h.n_raw_ranks = t->raw ? 65536 : 0;
    h.n_char_ids = t->char_ids ? OX_BPE_CHARS : 0;
    h.n_edges = t->trie.cap;
    h.n_trie = t->trie.n;
    h.n_nodes = t->trie.n_nodes;
    h.n_scores = t->scores ? t->vocab.n_ids : 0;
    h.n_piece_at = t->n_vocab + 1;
    h.n_piece_bytes = ox_tok_piece_bytes(t);
    h.n_prefix = t->prefix.n;
    h.n_suffix = t->suffix.n;
    h.n_rest = parts->rest.n;
    h.n_config = parts->config.n;
    h.max_chars = t->max_chars;
    h.unk_score = t->unk_score;
    h.unk = t->unk;
    h.model = (uint32_t)ox_tok_model_number(t->model);
    h.fuse_unk = t->fuse_unk;
    h.byte_fallback = t->byte_fallback;
    h.ignore_merges = t->ignore_merges;
    h.single_precision = t->single_precision;
    h.cuts = t->cuts;
    h.raw = t->raw;
    h.strips_first_space = t->strips_first_space;
    for (int i = 0; i < 256; i++)
        h.joins[i] = t->joins[i];
    memcpy(h.byte_ids, t->byte_ids, sizeof(h.byte_ids));
    memcpy(h.raw_ids, t->raw_ids, sizeof(h.raw_ids));
    memcpy(h.roots, t->trie.roots, sizeof(h.roots));
    return h;
}

static void pad(ox_buf *out)
{
    static const char zeros[ALIGN];
    if (out->n % ALIGN) ox_buf_put(out, zeros, ALIGN - out->n % ALIGN);
}

enum { SUMMED_FROM = offsetof(head, checksum) + sizeof(uint64_t) };

void ox_tok_pack(ox_tokenizer *t, ox_tok_parts *parts, const uint64_t key[2], ox_buf *out)
{
    section s[MOST_SECTIONS];
    head h = head_of(t, parts);
    const size_t n = list_sections(t, parts, &h, s);
    uint64_t sum[2];
    memcpy(h.key, key, sizeof(h.key));
    ox_buf_put(out, &h, sizeof(h));
    for (size_t i = 0; i < n; i++) {
        pad(out);
        if (s[i].n) ox_buf_put(out, *s[i].place, s[i].n);
    }
    pad(out);
    if (out->failed) return;
    h.n_file = out->n;
    memcpy(out->p, &h, sizeof(h));
    hash_two((ox_str){out->p + SUMMED_FROM, out->n - SUMMED_FROM}, sum);
    h.checksum = sum[0];
    memcpy(out->p, &h, sizeof(h));
}

/* ---- reading: a checksum finds accidents, these checks keep the rest from doing harm */

static bool power_of_two(uint64_t n)
{
    return n && !(n & (n - 1));
}

static bool vocab_is_sound(const ox_vocab *v, uint64_t n_ids)
{
    uint64_t used = 0;
    for (size_t i = 0; i < v->n; i++) {
        const ox_vocab_entry e = v->entries[i];
        if ((uint64_t)e.at + e.n > v->bytes.n || e.id < 0 || (uint64_t)e.id >= n_ids) return false;
    }
    for (size_t i = 0; i <= v->mask; i++) {
        used += v->slots[i].entry != 0;
        if (v->slots[i].entry > v->n) return false;
    }
    for (size_t i = 0; i < v->n_ids; i++) {
        if (v->entry_of_id[i] > v->n) return false;
    }
    return used <= v->mask; /* one is free, or looking would not end */
}

static bool merges_are_sound(const ox_tokenizer *t, const head *h)
{
    const int64_t n_ids = (int64_t)h->n_ids;
    uint64_t used = 0;
    for (uint64_t i = 0; i < h->n_merge_slots; i++) {
        if (t->merges[i] == UINT64_MAX) continue;
        used++;
        if ((t->merges[i] & ((1u << OX_BPE_RANK_BITS) - 1)) >= h->n_merges) return false;
    }
    for (uint64_t i = 0; i < h->n_merges; i++) {
        if (t->merged[i] < 0 || t->merged[i] >= n_ids) return false;
    }
    for (uint64_t i = 0; i < h->n_raw_ranks; i++) {
        if (t->raw_ranks[i] != OX_BPE_NONE && t->raw_ranks[i] >= h->n_merges) return false;
    }
    for (uint64_t i = 0; i < h->n_char_ids; i++) {
        if (t->char_ids[i] < -1 || t->char_ids[i] >= n_ids) return false;
    }
    return used < h->n_merge_slots;
}

static bool trie_is_sound(const ox_tokenizer *t, const head *h)
{
    uint64_t used = 0;
    for (uint64_t i = 0; i < h->n_edges; i++) {
        used += t->trie.edges[i].child != 0;
        if (t->trie.edges[i].child >= h->n_nodes) return false;
    }
    for (uint64_t i = 0; i < h->n_nodes; i++) {
        if (t->trie.values[i] < -1 || t->trie.values[i] >= (int64_t)h->n_scores) return false;
    }
    for (int i = 0; i < 256; i++) {
        if (h->roots[i] && h->roots[i] >= h->n_nodes) return false;
    }
    return !h->n_edges || (power_of_two(h->n_edges) && used < h->n_edges);
}

static bool ids_are_sound(const head *h)
{
    for (int i = 0; i < 256; i++) {
        if (h->byte_ids[i] < -1 || h->byte_ids[i] >= (int64_t)h->n_ids) return false;
        if (h->raw && (h->raw_ids[i] < 0 || h->raw_ids[i] >= (int64_t)h->n_ids)) return false;
    }
    return h->unk >= OX_TOK_UNK_MISSING && h->unk < (int64_t)h->n_ids;
}

static bool is_sound(const ox_tokenizer *t, const head *h)
{
    const uint64_t limit = 1u << 30;
    if (!power_of_two(h->n_slots) || h->n_ids > (uint64_t)OX_VOCAB_MAX_ID + 1) return false;
    if (h->n_entries > limit || h->n_merge_bits > limit || h->n_prefix > 256 || h->n_suffix > 256)
        return false;
    if (h->n_merges && (!power_of_two(h->n_merge_slots) || !power_of_two(h->n_merge_bits) ||
                        h->n_char_ids != OX_BPE_CHARS))
        return false;
    if (ox_tok_model_needs_merges(h->model) != (h->n_merges != 0)) return false;
    if (ox_tok_model_needs_scores(h->model) && h->n_scores != h->n_ids) return false;
    if ((h->raw != 0) != (h->n_raw_ranks != 0) || (h->raw && h->n_raw_ranks != 65536)) return false;
    return vocab_is_sound(&t->vocab, h->n_ids) && (!h->n_merges || merges_are_sound(t, h)) &&
           trie_is_sound(t, h) && ids_are_sound(h) && ox_tok_pieces_are_sound(t);
}

static void take_head(ox_tokenizer *t, ox_tok_parts *parts, const head *h)
{
    t->vocab.bytes.n = h->n_string_bytes;
    t->vocab.n = t->vocab.cap = h->n_entries;
    t->vocab.mask = h->n_slots - 1;
    t->vocab.n_ids = t->vocab.ids_cap = h->n_ids;
    t->merge_mask = h->n_merge_slots ? h->n_merge_slots - 1 : 0;
    t->n_merges = h->n_merges ? h->n_merges - 1 : 0;
    t->merge_bits_mask = h->n_merge_bits ? h->n_merge_bits * 64 - 1 : 0;
    t->trie.cap = h->n_edges;
    t->trie.n = h->n_trie;
    t->trie.n_nodes = h->n_nodes;
    t->n_vocab = h->n_piece_at - 1;
    t->n_piece_bytes = h->n_piece_bytes;
    t->prefix.n = h->n_prefix;
    t->suffix.n = h->n_suffix;
    parts->rest.n = h->n_rest;
    parts->config.n = h->n_config;
    t->max_chars = h->max_chars;
    t->unk_score = h->unk_score;
    t->unk = h->unk;
    t->model = ox_tok_model_at(h->model);
    t->fuse_unk = h->fuse_unk != 0;
    t->byte_fallback = h->byte_fallback != 0;
    t->ignore_merges = h->ignore_merges != 0;
    t->single_precision = h->single_precision != 0;
    t->cuts = h->cuts != 0;
    for (int i = 0; i < 256; i++)
        t->joins[i] = h->joins[i] != 0;
    memcpy(t->byte_ids, h->byte_ids, sizeof(t->byte_ids));
    memcpy(t->raw_ids, h->raw_ids, sizeof(t->raw_ids));
    memcpy(t->trie.roots, h->roots, sizeof(t->trie.roots));
}

/* No count is larger than the file, so that no product below overflows. */
static bool counts_are_small(const head *h, size_t n_file)
{
    const uint64_t *first = &h->n_string_bytes;
    const size_t n = (offsetof(head, max_chars) - offsetof(head, n_string_bytes)) / sizeof(*first);
    for (size_t i = 0; i < n; i++) {
        if (first[i] > n_file) return false;
    }
    return true;
}

bool ox_tok_unpack(ox_tokenizer *t, ox_tok_parts *parts, ox_str file, const uint64_t *key)
{
    section s[MOST_SECTIONS];
    uint64_t sum[2], at = sizeof(head);
    head h;
    if (file.n < sizeof(h)) return false;
    memcpy(&h, file.p, sizeof(h));
    if (memcmp(h.magic, magic, sizeof(magic)) != 0 || h.version != VERSION ||
        h.head_bytes != sizeof(h) || h.n_file != file.n || !ox_tok_model_at(h.model) ||
        !h.n_piece_at || !h.n_slots || !counts_are_small(&h, file.n))
        return false;
    if (key && memcmp(h.key, key, sizeof(h.key)) != 0) return false;
    hash_two((ox_str){file.p + SUMMED_FROM, file.n - SUMMED_FROM}, sum);
    if (key && sum[0] != h.checksum) return false; /* without a key: only a test of the checks */
    take_head(t, parts, &h);
    const size_t n = list_sections(t, parts, &h, s);
    t->borrowed = true;
    for (size_t i = 0; i < n; i++) {
        at = (at + ALIGN - 1) / ALIGN * ALIGN;
        if (at > file.n || s[i].n > file.n - at) return false;
        /* never written to; NULL says that the tokenizer has no such list */
        *s[i].place = s[i].n ? (void *)(uintptr_t)(file.p + at) : NULL;
        at += s[i].n;
    }
    return is_sound(t, &h);
}

void ox_tok_let_go(ox_tokenizer *t)
{
    section s[MOST_SECTIONS];
    const head none = {.version = 0};
    ox_tok_parts parts = {{NULL, 0}, {NULL, 0}};
    if (!t->borrowed) return;
    const size_t n = list_sections(t, &parts, &none, s);
    for (size_t i = 0; i < n; i++)
        *s[i].place = NULL;
    t->borrowed = false;
}

/* ---- the folder */

static char *folder_make(void)
{
    const char *base = ox_env("XDG_CACHE_HOME"), *home = ox_env("HOME");
    char *cache = NULL, *ours = NULL, *dir = NULL;
    ox_err err = OX_ERR_INIT;
    if (base && *base == '/')
        cache = ox_path_join(base, "");
    else if (home && *home == '/')
        cache = ox_path_join(home, ".cache");
    if (cache) ours = ox_path_join(cache, "oxgen");
    if (ours) dir = ox_path_join(ours, "tokenizers");
    const bool ok =
        dir && !ox_dir_make(cache, &err) && !ox_dir_make(ours, &err) && !ox_dir_make(dir, &err);
    ox_free(cache);
    ox_free(ours);
    if (ok) return dir;
    ox_free(dir);
    return NULL;
}

static char *file_name(const char *dir, const uint64_t key[2])
{
    ox_buf name = {0};
    ox_buf_printf(&name, "%016llx%016llx", (unsigned long long)key[0], (unsigned long long)key[1]);
    char *path = name.failed ? NULL : ox_path_join(dir, name.p);
    ox_buf_deinit(&name);
    return path;
}

static bool is_full(const char *dir)
{
    char **names = NULL;
    size_t n = 0;
    ox_err err = OX_ERR_INIT;
    if (ox_dir_list(&names, &n, dir, &err)) return true;
    ox_dir_list_free(names, n);
    return n >= MOST_FILES;
}

static bool open_file(ox_tokenizer **out, const char *path, const uint64_t key[2])
{
    ox_err err = OX_ERR_INIT;
    ox_mapping map = {0};
    if (!ox_path_is_file(path) || ox_mapping_open(&map, path, &err)) return false;
    return !ox_tok_open_packed(out, &map, key, &err);
}

ox_status ox_tokenizer_open_cached(ox_tokenizer **out, ox_str file, ox_str config, ox_err *err)
{
    uint64_t key[2], other[2];
    ox_tok_parts parts = {{NULL, 0}, {NULL, 0}};
    ox_buf packed = {0}, rest = {0};
    ox_err ignored = OX_ERR_INIT;
    char *dir = file.n >= LEAST_FILE ? folder_make() : NULL, *path = NULL;
    hash_two(file, key);
    hash_two(config, other);
    key[0] ^= other[1];
    key[1] ^= other[0] * 3;
    if (dir) path = file_name(dir, key);
    ox_free(dir);
    if (!path) return ox_tokenizer_open(out, file, config, err);
    ox_status st = OX_OK;
    if (!open_file(out, path, key)) {
        st = ox_tok_open_keeping(out, file, config, &rest, &parts, err);
        dir = ox_path_dir(path);
        if (!st && dir && !is_full(dir)) {
            ox_tok_pack(*out, &parts, key, &packed);
            if (!packed.failed) (void)ox_file_write_atomic(path, ox_buf_view(&packed), &ignored);
        }
        ox_free(dir);
    }
    ox_buf_deinit(&packed);
    ox_buf_deinit(&rest);
    ox_free(path);
    return st;
}
