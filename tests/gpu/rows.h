/* rows.h - the harness of the CUDA row tests: guarded device matrices, seeded values, comparison.
 */
#ifndef OX_TESTS_GPU_ROWS_H
#define OX_TESTS_GPU_ROWS_H
#include "backend/cuda/cuda.h"

/* A matrix on the device between guard bands, its gaps and guards filled with NaN; `v` holds the
 * same values as float32 (rounded to its type), [rows, ld]. */
typedef struct mat {
    ox_dev_matrix d;
    float *v;
    int32_t rows, cols, ld;
    char *raw;
    size_t bytes;
} mat;

enum { T_GUARD = 512 };

uint64_t t_bits(void);
float t_uniform(float lo, float hi);
int32_t t_range(int32_t lo, int32_t hi); /* both included */
int32_t t_type(void);                    /* float16, float32 or bfloat16 */
float t_round(int32_t dtype, float v);

void *t_upload(const void *host, size_t bytes); /* device memory, freed by t_drop */
void t_drop(void);
mat t_mat(int32_t rows, int32_t cols, int32_t dtype, float lo, float hi);
mat t_out(int32_t rows, int32_t cols, int32_t dtype); /* NaN everywhere */
/* Brings m.v up to date; a changed guard or gap is a failure. */
void t_fetch(mat *m);
void t_mat_free(mat *m);

/* Runs the row, waits, and counts a failure when CUDA complains. */
void t_run(const ox_kernel_row *row, const void *args);
void t_fail(const char *fmt, ...) OX_PRINTF(1, 2);
/* |got - want| <= rel * |want| + abs, after rounding to the type of `got`. */
void t_same(const mat *got, const float *want, int32_t ldw, double rel, double abs,
            const char *what);

typedef void t_family_fn(const ox_kernel_row *row);
#endif
