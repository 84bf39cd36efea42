/* sha256.c - see sha256.h. The round constants are the fractional parts of the cube roots of the
 * first 64 primes (FIPS 180-4, 4.2.2). */
#include "base/sha256.h"

#include "base/fs.h"
#include "base/mem.h"

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void compress(ox_sha256 *s, const uint8_t *p)
{
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
               (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        const uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    memcpy(v, s->h, sizeof(v));
    for (int i = 0; i < 64; i++) {
        const uint32_t s1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25);
        const uint32_t t1 = v[7] + s1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + K[i] + w[i];
        const uint32_t s0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22);
        const uint32_t t2 = s0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof(v[0]));
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        s->h[i] += v[i];
}

void ox_sha256_init(ox_sha256 *s)
{
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(s->h, start, sizeof(start));
    s->n = 0;
}

void ox_sha256_put(ox_sha256 *s, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    size_t at = (size_t)(s->n % 64);
    s->n += n;
    if (at) {
        const size_t take = n < 64 - at ? n : 64 - at;
        if (take) memcpy(s->block + at, p, take);
        if (at + take < 64) return;
        compress(s, s->block);
        p += take;
        n -= take;
    }
    for (; n >= 64; n -= 64, p += 64)
        compress(s, p);
    if (n) memcpy(s->block, p, n);
}

void ox_sha256_end(ox_sha256 *s, char hex[65])
{
    static const char digits[] = "0123456789abcdef";
    const uint64_t bits = s->n * 8;
    uint8_t tail[72] = {0x80};
    const size_t pad = (size_t)((119 - s->n % 64) % 64) + 1;
    for (int i = 0; i < 8; i++)
        tail[pad + (size_t)i] = (uint8_t)(bits >> (56 - 8 * i));
    ox_sha256_put(s, tail, pad + 8);
    for (int i = 0; i < 64; i++)
        hex[i] = digits[s->h[i / 8] >> (28 - i % 8 * 4) & 15];
    hex[64] = 0;
}

static ox_status put_file(ox_sha256 *s, const char *path, ox_err *err)
{
    ox_mapping m;
    OX_TRY(ox_mapping_open(&m, path, err));
    ox_sha256_put(s, m.bytes, m.n);
    ox_mapping_close(&m);
    return OX_OK;
}

ox_status ox_sha256_path(char hex[65], const char *path, ox_err *err)
{
    ox_sha256 s;
    char **names = NULL;
    size_t n = 0;
    ox_status st = OX_OK;

    ox_sha256_init(&s);
    if (!ox_path_is_dir(path)) {
        OX_TRY(put_file(&s, path, err));
        ox_sha256_end(&s, hex);
        return OX_OK;
    }
    OX_TRY(ox_dir_list(&names, &n, path, err));
    for (size_t i = 0; !st && i < n; i++) {
        char *file = ox_path_join(path, names[i]);
        if (!file) st = OX_FAIL(err, OX_NO_MEMORY, "no memory for a path");
        if (!st && names[i][0] != '.' && ox_path_is_file(file)) {
            ox_sha256_put(&s, names[i], strlen(names[i]) + 1);
            st = put_file(&s, file, err);
        }
        ox_free(file);
    }
    ox_dir_list_free(names, n);
    if (!st) ox_sha256_end(&s, hex);
    return st;
}
