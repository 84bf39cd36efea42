/* json_fuzz.c - any bytes: parse ends; what parses is written and parses again to the same text. */
#include "base/json.h"

#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool round_trip(ox_str text, ox_buf *out)
{
    ox_arena arena = OX_ARENA_INIT;
    const ox_json *root = NULL;
    ox_err err = OX_ERR_INIT;
    const bool ok = ox_json_parse_with(&root, &arena, text, OX_JSON_NONFINITE, &err) == OX_OK;
    if (ok) ox_json_put_node(&(ox_json_writer){.out = out, .indent = (int)(text.n % 3)}, root);
    ox_json_path(root, "a.0.b");
    ox_arena_deinit(&arena);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ox_buf once = {0}, twice = {0};
    if (round_trip((ox_str){(const char *)data, n}, &once)) {
        if (!round_trip(ox_buf_view(&once), &twice)) abort();
    }
    ox_buf_deinit(&once);
    ox_buf_deinit(&twice);
    return 0;
}
