/* safetensors.h - one .safetensors file, or a folder of shards, as checked tensor views.
 *
 * After opening, every tensor lies inside its file and has exactly the bytes that its shape and
 * type ask for; the parts of a file follow each other without holes or overlap; names are unique.
 * Data that is not aligned to its element size is copied into the arena. Immutable after open. */
#ifndef OX_FILE_SAFETENSORS_H
#define OX_FILE_SAFETENSORS_H
#include "base/arena.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/vec.h"
#include "tensor/tensor.h"

enum {
    OX_SAFETENSORS_MAX_HEADER = 64 << 20, /* bytes; what the JSON reader takes */
    OX_SAFETENSORS_MAX_TENSORS = 1 << 20,
    OX_SAFETENSORS_MAX_SHARDS = 4096,
};

typedef struct ox_safetensors_tensor {
    ox_str name;
    ox_tensor t; /* dtype NONE: a type oxgen does not know; t.data is there all the same */
    ox_str type; /* the file's word: "BF16" */
    size_t bytes;
    int32_t i_file;
} ox_safetensors_tensor;

typedef struct ox_safetensors {
    OX_VEC(ox_safetensors_tensor) tensors; /* in file order */
    OX_VEC(ox_mapping) files;
    /* internal: */
    ox_arena arena;
    ox_map by_name;
} ox_safetensors;

/* path: a .safetensors file, a model.safetensors.index.json, or a folder that holds one of them. */
ox_status ox_safetensors_open(ox_safetensors **out, const char *path, ox_err *err);
/* One file's bytes; they outlive the result. */
ox_status ox_safetensors_parse(ox_safetensors **out, ox_str bytes, ox_err *err);
void ox_safetensors_close(ox_safetensors **s);

const ox_safetensors_tensor *ox_safetensors_find(const ox_safetensors *s, const char *name);
/* The tensor, or a failure that names it: absent, or of a type that oxgen does not know. */
ox_status ox_safetensors_need(const ox_safetensors *s, const char *name,
                              const ox_safetensors_tensor **out, ox_err *err);
#endif
