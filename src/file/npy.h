/* npy.h - NumPy's .npy files (versions 1 to 3, little-endian, C order) to and from tensors.
 *
 * bfloat16 has no NumPy name: it is written, and read, as '<V2'. Strings, objects, records, big
 * endian and Fortran-ordered arrays of two and more dimensions are refused. */
#ifndef OX_FILE_NPY_H
#define OX_FILE_NPY_H
#include "base/arena.h"
#include "tensor/tensor.h"

enum { OX_NPY_MAX_HEADER = 1 << 20 };

/* t views `bytes` when the data is aligned to its element size, else a copy in the arena. */
ox_status ox_npy_parse(ox_tensor *out, ox_arena *arena, ox_str bytes, ox_err *err);
/* Reads a whole file of at most max_bytes into the arena; "-" is standard input. */
ox_status ox_npy_read(ox_tensor *out, ox_arena *arena, const char *path, size_t max_bytes,
                      ox_err *err);
/* Appends a version 1 file to *out. OX_UNSUPPORTED for types NumPy has no name for. */
ox_status ox_npy_put(ox_buf *out, const ox_tensor *t, ox_err *err);
ox_status ox_npy_write(const char *path, const ox_tensor *t, ox_err *err);
#endif
