/* hash.h - 64-bit hashes and a map from byte strings to 64-bit values.
 *
 * Keys are borrowed: the caller keeps their bytes alive as long as the map. Not thread safe
 * while it changes; any number of readers afterwards. */
#ifndef OX_BASE_HASH_H
#define OX_BASE_HASH_H
#include "base/str.h"

uint64_t ox_hash64(const void *bytes, size_t n);   /* the same everywhere and always */
uint64_t ox_hash_key(const void *bytes, size_t n); /* differs from process to process: for tables */

typedef struct ox_map {
    struct ox_map_slot *slots;
    size_t n, cap; /* cap is a power of two, at most 3/4 full */
} ox_map;

bool ox_map_put(ox_map *m, ox_str key, uint64_t value); /* replaces; false = out of memory */
bool ox_map_get(const ox_map *m, ox_str key, uint64_t *value);
bool ox_map_reserve(ox_map *m, size_t n);
void ox_map_deinit(ox_map *m);
#endif
