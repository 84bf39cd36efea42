/* json_internal.h - the hash index that lies behind the members of a large object: built by json.c,
 * read by json_get.c. Linear probing, at most half full; member 0 is a free slot. */
#ifndef OX_BASE_JSON_INTERNAL_H
#define OX_BASE_JSON_INTERNAL_H
#include "base/json.h"

enum { OX_JSON_INDEX_FROM = 16, OX_JSON_MAX_PROBES = 512 };

typedef struct ox_json_index {
    uint32_t hash, member; /* upper half of the hash; position + 1 */
} ox_json_index;

static inline size_t ox_json_index_size(uint32_t n_members)
{
    size_t size = 32;
    while (size < (size_t)n_members * 2)
        size *= 2;
    return size;
}
#endif
