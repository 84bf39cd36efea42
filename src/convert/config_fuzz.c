/* config_fuzz.c - any bytes as a config.json: hyperparameters or a refusal with a message. */
#include "convert/arch.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    ox_arena arena = OX_ARENA_INIT;
    ox_hparams hp = {0};
    ox_err err = OX_ERR_INIT;
    const ox_json *root = NULL;
    if (!ox_json_parse(&root, &arena, (ox_str){(const char *)bytes, n}, NULL) &&
        ox_hparams_from_config(&hp, root, &arena, &err))
        assert(err.msg[0]);
    ox_arena_deinit(&arena);
    return 0;
}
