/* sha256.h - SHA-256 (FIPS 180-4), for model cards and cache keys. */
#ifndef OX_BASE_SHA256_H
#define OX_BASE_SHA256_H
#include "base/status.h"
#include "base/str.h"

typedef struct ox_sha256 {
    uint32_t h[8];
    uint64_t n; /* bytes so far */
    uint8_t block[64];
} ox_sha256;

void ox_sha256_init(ox_sha256 *s);
void ox_sha256_put(ox_sha256 *s, const void *bytes, size_t n);
void ox_sha256_end(ox_sha256 *s, char hex[65]); /* 64 digits and a NUL */
/* Of a file's bytes; of a folder: names and contents of its regular files, sorted, hidden ones and
 * sub-folders left out. */
ox_status ox_sha256_path(char hex[65], const char *path, ox_err *err);
#endif
