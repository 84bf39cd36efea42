/* vocab.h - token strings and ids: one hash table each way. Ids may have holes. Filled while the
 * tokenizer is read, constant afterwards. */
#ifndef OX_TEXT_TOK_VOCAB_H
#define OX_TEXT_TOK_VOCAB_H
#include "base/status.h"
#include "base/str.h"

enum { OX_VOCAB_MAX_ID = (1 << 23) - 1, OX_VOCAB_MAX_PROBES = 512 };

typedef struct ox_vocab_entry {
    uint32_t at, n;
    int32_t id;
} ox_vocab_entry;

typedef struct ox_vocab_slot {
    uint32_t tag, entry; /* entry + 1, 0 = free */
} ox_vocab_slot;

typedef struct ox_vocab {
    ox_buf bytes; /* all strings one after the other */
    ox_vocab_entry *entries;
    size_t n, cap;
    ox_vocab_slot *slots; /* [mask + 1] */
    size_t mask;
    uint32_t *entry_of_id; /* [ids_cap] entry + 1, 0 = hole */
    size_t n_ids, ids_cap; /* n_ids: highest id + 1 */
} ox_vocab;

/* Room for n strings of n_bytes in all. */
ox_status ox_vocab_init(ox_vocab *v, size_t n, size_t n_bytes, ox_err *err);
/* At most n strings as promised. A string that is there already gets the new id. */
ox_status ox_vocab_put(ox_vocab *v, ox_str token, int64_t id, ox_err *err);
int32_t ox_vocab_find(const ox_vocab *v, ox_str token); /* -1 when unknown */
ox_str ox_vocab_str(const ox_vocab *v, int32_t id);     /* p NULL for a hole */
void ox_vocab_deinit(ox_vocab *v);
#endif
