/* vocab.c - open addressing at most half full; a slot holds 32 bits of the hash, so that most
 * misses touch one cache line. Probes are bounded against strings made to collide. */
#include "text/tok/vocab.h"

#include "base/hash.h"
#include "base/mem.h"

ox_status ox_vocab_init(ox_vocab *v, size_t n, size_t n_bytes, ox_err *err)
{
    *v = (ox_vocab){0};
    size_t size = 16;
    while (size < n * 2)
        size *= 2;
    v->entries = ox_calloc(n, sizeof(*v->entries));
    v->slots = ox_calloc(size, sizeof(*v->slots));
    if (!v->entries || !v->slots || !ox_buf_reserve(&v->bytes, n_bytes)) {
        ox_vocab_deinit(v);
        return OX_FAIL(err, OX_NO_MEMORY, "out of memory for a vocabulary of %zu tokens", n);
    }
    v->cap = n;
    v->mask = size - 1;
    return OX_OK;
}

void ox_vocab_deinit(ox_vocab *v)
{
    ox_buf_deinit(&v->bytes);
    ox_free(v->entries);
    ox_free(v->slots);
    ox_free(v->entry_of_id);
    *v = (ox_vocab){0};
}

static ox_status reserve_id(ox_vocab *v, int64_t id, ox_err *err)
{
    if ((size_t)id >= v->ids_cap) {
        size_t n = v->ids_cap ? v->ids_cap : v->cap + 1;
        while (n <= (size_t)id)
            n *= 2;
        uint32_t *bigger = ox_realloc(v->entry_of_id, n * sizeof(*bigger));
        if (!bigger) return OX_FAIL(err, OX_NO_MEMORY, "out of memory for a vocabulary");
        memset(bigger + v->ids_cap, 0, (n - v->ids_cap) * sizeof(*bigger));
        v->entry_of_id = bigger;
        v->ids_cap = n;
    }
    if ((size_t)id >= v->n_ids) v->n_ids = (size_t)id + 1;
    return OX_OK;
}

/* The slot of token, free or taken; NULL after too many probes. */
static ox_vocab_slot *slot_of(const ox_vocab *v, ox_str token)
{
    const uint64_t h = ox_hash64(token.p, token.n);
    const uint32_t tag = (uint32_t)(h >> 32);
    size_t at = (size_t)h & v->mask;
    for (size_t probes = 0; probes < OX_VOCAB_MAX_PROBES; probes++, at = (at + 1) & v->mask) {
        ox_vocab_slot *s = &v->slots[at];
        if (!s->entry) {
            s->tag = tag;
            return s;
        }
        const ox_vocab_entry *e = &v->entries[s->entry - 1];
        if (s->tag == tag && e->n == token.n && !memcmp(v->bytes.p + e->at, token.p, token.n))
            return s;
    }
    return NULL;
}

ox_status ox_vocab_put(ox_vocab *v, ox_str token, int64_t id, ox_err *err)
{
    if (id < 0 || id > OX_VOCAB_MAX_ID)
        return OX_FAIL(err, OX_BAD_FILE, "token \"%.*s\" has id %lld, expected 0 to %d",
                       OX_STR_ARGS(token), (long long)id, (int)OX_VOCAB_MAX_ID);
    OX_TRY(reserve_id(v, id, err));
    ox_vocab_slot *s = slot_of(v, token);
    if (!s) return OX_FAIL(err, OX_LIMIT, "the tokens of the vocabulary collide on purpose");
    if (s->entry) {
        v->entries[s->entry - 1].id = (int32_t)id;
    } else {
        v->entries[v->n] = (ox_vocab_entry){(uint32_t)v->bytes.n, (uint32_t)token.n, (int32_t)id};
        ox_buf_put_str(&v->bytes, token);
        if (v->bytes.failed || v->n == v->cap)
            return OX_FAIL(err, OX_NO_MEMORY, "out of memory for a vocabulary");
        s->entry = (uint32_t)++v->n;
    }
    v->entry_of_id[id] = s->entry;
    return OX_OK;
}

int32_t ox_vocab_find(const ox_vocab *v, ox_str token)
{
    if (!v->slots) return -1;
    const uint64_t h = ox_hash64(token.p, token.n);
    const uint32_t tag = (uint32_t)(h >> 32);
    for (size_t at = (size_t)h & v->mask;; at = (at + 1) & v->mask) {
        const ox_vocab_slot *s = &v->slots[at];
        if (!s->entry) return -1;
        if (s->tag != tag) continue;
        const ox_vocab_entry *e = &v->entries[s->entry - 1];
        if (e->n == token.n && !memcmp(v->bytes.p + e->at, token.p, token.n)) return e->id;
    }
}

ox_str ox_vocab_str(const ox_vocab *v, int32_t id)
{
    if (id < 0 || (size_t)id >= v->n_ids || !v->entry_of_id[id]) return (ox_str){NULL, 0};
    const ox_vocab_entry *e = &v->entries[v->entry_of_id[id] - 1];
    return (ox_str){v->bytes.p + e->at, e->n};
}
