/* trie.h - byte trie with a value at the end of each string; edges in one hash table. Filled while
 * the tokenizer is read, constant afterwards. */
#ifndef OX_TEXT_TOK_TRIE_H
#define OX_TEXT_TOK_TRIE_H
#include "base/mem.h"
#include "base/str.h"

typedef struct ox_trie_edge {
    uint32_t key; /* node << 8 | byte; with child 0 = free */
    uint32_t child;
} ox_trie_edge;

typedef struct ox_trie {
    ox_trie_edge *edges; /* [cap] */
    size_t n, cap;
    int32_t *values; /* by node, -1 = none; node 0 is the root */
    size_t n_nodes, nodes_cap;
    uint32_t roots[256]; /* children of the root, 0 = none */
} ox_trie;

/* Later values replace earlier ones; s must not be empty. false = out of memory or too large. */
bool ox_trie_put(ox_trie *t, ox_str s, int32_t value);
bool ox_trie_has(const ox_trie *t, ox_str s);
/* The child of a node, 0 when there is none. */
uint32_t ox_trie_step(const ox_trie *t, uint32_t node, uint8_t byte);
void ox_trie_deinit(ox_trie *t);

static inline int32_t ox_trie_value(const ox_trie *t, uint32_t node)
{
    return t->values[node];
}
#endif
