/* trie.c - an edge is (node, byte) -> node. The table is at most half full. Node numbers are given
 * in order of insertion, so a file can hardly aim at a long probe; puts are
 * bounded all the same. */
#include "text/tok/trie.h"

enum { MAX_NODES = 1 << 24, MAX_PROBES = 512 };

static size_t home_of(uint32_t key, size_t cap)
{
    return (size_t)((key * 0x9e3779b97f4a7c15u) >> 32) & (cap - 1);
}

static bool insert(ox_trie_edge *edges, size_t cap, ox_trie_edge e)
{
    size_t at = home_of(e.key, cap);
    for (size_t probes = 0; edges[at].child; at = (at + 1) & (cap - 1)) {
        if (++probes > MAX_PROBES) return false;
    }
    edges[at] = e;
    return true;
}

static bool grow_edges(ox_trie *t)
{
    if (t->n < t->cap / 2) return true;
    const size_t cap = t->cap ? t->cap * 2 : 256;
    ox_trie_edge *bigger = ox_calloc(cap, sizeof(*bigger));
    if (!bigger) return false;
    for (size_t i = 0; i < t->cap; i++) {
        if (t->edges[i].child && !insert(bigger, cap, t->edges[i])) {
            ox_free(bigger);
            return false;
        }
    }
    ox_free(t->edges);
    t->edges = bigger;
    t->cap = cap;
    return true;
}

static bool new_node(ox_trie *t, uint32_t *node)
{
    if (t->n_nodes == MAX_NODES) return false;
    if (t->n_nodes == t->nodes_cap) {
        const size_t cap = t->nodes_cap ? t->nodes_cap * 2 : 64;
        int32_t *bigger = ox_realloc(t->values, cap * sizeof(*bigger));
        if (!bigger) return false;
        t->values = bigger;
        t->nodes_cap = cap;
    }
    t->values[t->n_nodes] = -1;
    *node = (uint32_t)t->n_nodes++;
    return true;
}

uint32_t ox_trie_step(const ox_trie *t, uint32_t node, uint8_t byte)
{
    if (!node) return t->roots[byte];
    const uint32_t key = node << 8 | byte;
    for (size_t at = home_of(key, t->cap);; at = (at + 1) & (t->cap - 1)) {
        const ox_trie_edge *e = &t->edges[at];
        if (!e->child || e->key == key) return e->child;
    }
}

static bool add_child(ox_trie *t, uint32_t node, uint8_t byte, uint32_t *child)
{
    if (!grow_edges(t) || !new_node(t, child)) return false;
    if (!node) {
        t->roots[byte] = *child;
        return true;
    }
    t->n++;
    return insert(t->edges, t->cap, (ox_trie_edge){node << 8 | byte, *child});
}

bool ox_trie_put(ox_trie *t, ox_str s, int32_t value)
{
    uint32_t node = 0;
    if (!t->n_nodes && (!new_node(t, &node) || !grow_edges(t))) return false;
    for (size_t i = 0; i < s.n; i++) {
        const uint8_t byte = (uint8_t)s.p[i];
        uint32_t child = ox_trie_step(t, node, byte);
        if (!child && !add_child(t, node, byte, &child)) return false;
        node = child;
    }
    t->values[node] = value;
    return true;
}

bool ox_trie_has(const ox_trie *t, ox_str s)
{
    uint32_t node = 0;
    for (size_t i = 0; i < s.n; i++) {
        node = t->n_nodes ? ox_trie_step(t, node, (uint8_t)s.p[i]) : 0;
        if (!node) return false;
    }
    return t->n_nodes && t->values[node] >= 0;
}

void ox_trie_deinit(ox_trie *t)
{
    ox_free(t->edges);
    ox_free(t->values);
    *t = (ox_trie){0};
}
