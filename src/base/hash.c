/* hash.c - open addressing with linear probing over a multiply-fold hash (the mixing step of
 * wyhash: 64x64 -> 128 bits, halves xored). Tables start it from where the system's loader put this
 * code, which the author of a file cannot know: no list of names can be made to probe long. Only
 * the places in a table depend on that, and nothing walks a table by place. */
#include "base/hash.h"

#include "base/mem.h"

typedef struct ox_map_slot {
    ox_str key; /* key.p NULL = free */
    uint64_t value, hash;
} ox_map_slot;

static uint64_t fold(uint64_t a, uint64_t b)
{
    const unsigned __int128 r = (unsigned __int128)a * b;
    return (uint64_t)r ^ (uint64_t)(r >> 64);
}

static uint64_t hash_from(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    h ^= n;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        h = fold(h ^ w, 0xe7037ed1a0b428dbu);
    }
    uint64_t tail = 0;
    if (n) memcpy(&tail, p, n);
    return fold(h ^ tail, 0x8ebc6af09c88c6e3u);
}

uint64_t ox_hash64(const void *bytes, size_t n)
{
    return hash_from(0x9e3779b97f4a7c15u, bytes, n);
}

uint64_t ox_hash_key(const void *bytes, size_t n)
{
    return hash_from(fold((uintptr_t)ox_hash_key, 0x9e3779b97f4a7c15u), bytes, n);
}

static ox_map_slot *slot_for(const ox_map *m, ox_str key, uint64_t hash)
{
    for (size_t i = (size_t)hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
        ox_map_slot *s = &m->slots[i];
        if (!s->key.p || (s->hash == hash && ox_str_eq(s->key, key))) return s;
    }
}

bool ox_map_reserve(ox_map *m, size_t n)
{
    size_t cap = m->cap ? m->cap : 16;
    while (cap / 4 * 3 < n) {
        if (!ox_size_mul(cap, 2, &cap)) return false;
    }
    if (cap == m->cap) return true;
    ox_map bigger = {ox_calloc(cap, sizeof(ox_map_slot)), m->n, cap};
    if (!bigger.slots) return false;
    for (size_t i = 0; i < m->cap; i++) {
        const ox_map_slot *s = &m->slots[i];
        if (s->key.p) *slot_for(&bigger, s->key, s->hash) = *s;
    }
    ox_free(m->slots);
    *m = bigger;
    return true;
}

bool ox_map_put(ox_map *m, ox_str key, uint64_t value)
{
    if (!key.p) key.p = "";
    if (!ox_map_reserve(m, m->n + 1)) return false;
    const uint64_t hash = ox_hash_key(key.p, key.n);
    ox_map_slot *s = slot_for(m, key, hash);
    if (!s->key.p) m->n++;
    *s = (ox_map_slot){key, value, hash};
    return true;
}

bool ox_map_get(const ox_map *m, ox_str key, uint64_t *value)
{
    if (!m->cap) return false;
    const ox_map_slot *s = slot_for(m, key, ox_hash_key(key.p ? key.p : "", key.n));
    if (!s->key.p) return false;
    if (value) *value = s->value;
    return true;
}

void ox_map_deinit(ox_map *m)
{
    ox_free(m->slots);
    *m = (ox_map){0};
}
