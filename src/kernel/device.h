/* device.h - arguments of the CUDA rows of every family: the CPU contracts on device memory.
 *
 * What a row computes is said in its family's header (kernel/norm/norm.h, ...). Here are the
 * argument structs, readable from C and from CUDA C++. All pointers are device memory. A matrix has
 * elements of one type: float32, float16 or bfloat16; arithmetic is float32, each result is rounded
 * to its matrix' type once. Rows are launched on a stream and return nothing: the backend looks for
 * errors after the step. Sizes that vary from step to step while a captured graph stays (positions,
 * lengths, ids, page tables) are read from the step record in device memory. */
#ifndef OX_KERNEL_DEVICE_H
#define OX_KERNEL_DEVICE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types, numbered as ox_dtype. */
enum { OX_DEV_F32 = 1, OX_DEV_F16 = 10, OX_DEV_BF16 = 16 };

typedef struct ox_dev_matrix {
    void *p;       /* NULL = absent */
    int64_t ld;    /* elements from row to row */
    int32_t dtype; /* OX_DEV_* */
} ox_dev_matrix;

/* The step record on the device. Row r: token ids[r] of sequence seq[r] at position pos[r]; page p
 * of sequence s is pages[first[s] + p]. wanted[i] = row whose logits come i-th. tiles: the rows of
 * a prompt in runs of consecutive positions of one sequence (kernel/attend/cuda_flash.h). */
typedef struct ox_dev_step {
    const int32_t *ids, *pos, *seq, *wanted;
    const int32_t *first;
    void *const *pages;
    const void *tiles;
    int32_t n_tiles; /* host: 0 = the step has none */
} ox_dev_step;

/* A float matrix [n, k], row-major. */
typedef struct ox_dev_fweight {
    const void *p;
    int32_t n, k, dtype;
    int64_t ld;
} ox_dev_fweight;

enum { OX_DEV_ZERO_MIDDLE, OX_DEV_ZERO_CODE, OX_DEV_ZERO_MIN }; /* as ox_zero_kind */

/* A block-quantised matrix; the bytes behind it: kernel/qlinear/cuda_pack.cuh, whose ox_cuda_weight
 * this is. */
typedef struct ox_dev_pack {
    const void *codes, *scales, *zeros;
    int32_t n, k, n_tiles, k_units, bits, block, zero, scale_f32;
} ox_dev_pack;

/* Where a pack's rows [n0, n0 + rows) come from: ox_cuda_source, all in device memory. */
typedef struct ox_dev_source {
    const void *codes, *scales, *zeros;
    int32_t rows, k, bits, block, scale_type, zeros_type, spread, n0;
} ox_dev_source;

typedef struct ox_dev_embed_args {
    const ox_dev_pack *pack; /* table in packed form (host memory), or NULL: the float table */
    ox_dev_fweight table;
    const int32_t *ids;
    ox_dev_matrix y;
    int32_t rows, dim;
    float scale;
} ox_dev_embed_args;

typedef struct ox_dev_norm_args {
    ox_dev_matrix x, y;
    const float *gamma, *beta; /* [dim]; beta NULL = none */
    int32_t rows, groups, dim; /* each row holds `groups` groups of dim channels */
    float eps;
    int32_t centre;
} ox_dev_norm_args;

/* y = act(x*W^T + bias) (* up) (+ add); qlinear.h and qexact.h say how pairs and act work. */
typedef struct ox_dev_linear_args {
    const ox_dev_pack *pack; /* quantised weights (host memory), or NULL: */
    ox_dev_fweight w;        /* float weights */
    ox_dev_matrix x, y, add;
    const float *bias;  /* [n] or NULL */
    int32_t rows, n, k; /* n = rows of W; y has n, or n/2 columns with pairs */
    int32_t pairs;
    int32_t act; /* -1 none, else ox_act; of the gate with pairs */
    int32_t n_sm;
    void *scratch; /* the backend's own, for rows that need some; see scratch_bytes */
    size_t scratch_bytes;
} ox_dev_linear_args;

typedef struct ox_dev_rotate_args {
    ox_dev_matrix x; /* in place */
    const int32_t *pos;
    const float *cos_table, *sin_table; /* [positions, rotary/2] */
    int32_t rows, n_heads, head_size, rotary, interleaved;
} ox_dev_rotate_args;

/* One cache of the paged key/value memory: kernel/attend/cuda_kv.cuh says how a page lies. */
typedef struct ox_dev_cache {
    ox_dev_step step;
    size_t k_offset, v_offset; /* bytes */
    int32_t n_kv_heads, head_size, v_head_size, dtype;
} ox_dev_cache;

typedef struct ox_dev_append_args {
    ox_dev_matrix k, v;
    int32_t rows;
    ox_dev_cache cache;
} ox_dev_append_args;

/* Both rotations of a step and the append of what they made, at once. */
typedef struct ox_dev_rotate_append_args {
    ox_dev_rotate_args q, k;
    ox_dev_append_args append; /* append.k is k.x */
} ox_dev_rotate_append_args;

typedef struct ox_dev_attend_args {
    ox_dev_matrix q, y;
    int32_t rows, n_heads;
    float scale, softcap;
    int32_t window;
    const float *sinks; /* [n_heads] or NULL */
    ox_dev_cache cache;
    int32_t one_sequence; /* all rows belong to one sequence */
    int32_t total;        /* no row's position reaches this: grids are sized by it */
    int32_t n_sm;
    void *scratch; /* as of linear */
    size_t scratch_bytes;
} ox_dev_attend_args;

/* act: x -> y; glu: act(x) * x2 -> y; add: x + x2 -> y; scale: x*scale, soft-cap -> y; gather:
 * rows index[i] of x -> y (index NULL = row i). */
typedef struct ox_dev_map_args {
    ox_dev_matrix x, x2, y;
    const int32_t *index;
    int32_t rows, dim, act;
    float scale, softcap;
} ox_dev_map_args;

typedef void ox_dev_fn(const void *args, void *stream); /* what every row is called through */

/* Shape of a pack: everything but the pointers; bytes of its three arrays. */
ox_dev_pack ox_dev_pack_shape(int32_t n, int32_t k, int32_t bits, int32_t block, int32_t zero,
                              int32_t scale_f32, size_t bytes[3]);
void ox_dev_pack_fill(const ox_dev_pack *pack, const ox_dev_source *source, void *stream);
/* rows x cols elements of type `from`, without gaps (transposed: [cols, rows]), to `to`, row-major
 * with ld elements from row to row. */
void ox_dev_convert(const void *in, int32_t from, int32_t transposed, void *out, int32_t to,
                    int64_t ld, int64_t rows, int64_t cols, void *stream);

#define OX_CUDA_KERNEL(family, fn, sm, tol, accepts) void fn(const void *args, void *stream);
#include "kernel/cuda.def"
#undef OX_CUDA_KERNEL

#define OX_DEV_ACCEPTS(fn) bool fn(const void *args);
OX_DEV_ACCEPTS(ox_attend_cuda_accepts)
OX_DEV_ACCEPTS(ox_attend_cuda_wgmma_accepts)
OX_DEV_ACCEPTS(ox_matmul_cuda_wgmma_accepts)
OX_DEV_ACCEPTS(ox_qexact_cuda_wgmma_accepts)
OX_DEV_ACCEPTS(ox_few_cuda_accepts)

#ifdef __cplusplus
}
#endif
#endif
