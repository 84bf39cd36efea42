/* npy_fuzz.c - any bytes as a .npy file; what is read is written and reads back the same. */
#include "file/npy.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ox_arena arena = OX_ARENA_INIT;
    ox_tensor t, again;
    ox_buf out = {0};
    size_t bytes = 0;
    if (!ox_npy_parse(&t, &arena, (ox_str){(const char *)data, n}, NULL)) {
        if (ox_npy_put(&out, &t, NULL) || ox_npy_parse(&again, &arena, ox_buf_view(&out), NULL) ||
            again.rank != t.rank || !ox_tensor_bytes(&t, &bytes) ||
            (bytes && memcmp(t.data, again.data, bytes)))
            abort();
    }
    ox_buf_deinit(&out);
    ox_arena_deinit(&arena);
    return 0;
}
