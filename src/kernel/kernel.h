/* kernel.h - how every kernel family describes its implementations.
 *
 * A family is a folder: family.h (formula, argument struct = contract, function type), kernels.def
 * (rows, best first, reference last), ref.c, one file per ISA, test.c. Rows are picked when a plan
 * is built, never while one runs. */
#ifndef OX_KERNEL_KERNEL_H
#define OX_KERNEL_KERNEL_H
#include "base/cpu.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct ox_stream ox_stream; /* a device queue; opaque outside backend/ */
typedef void ox_any_fn(void);       /* cast back to the family's type before calling */

typedef enum ox_device { OX_DEVICE_NONE, OX_DEVICE_CPU, OX_DEVICE_CUDA } ox_device;

/* Distance allowed between a row and the reference. EXACT rows are bit-equal to the reference on
 * every tier. SUM rows re-associate a float sum of k terms: |got - want| <= eps*(2 + sqrt(k)) *
 * sum|terms|. ROUND rows differ by elementary-function error: a few ulp of the result. HALF rows
 * round one factor of every term to float16 on the way: 2^-11 * sum|terms| beside SUM's. */
typedef enum ox_tol { OX_TOL_EXACT, OX_TOL_ROUND, OX_TOL_SUM, OX_TOL_HALF } ox_tol;

enum { OX_SM_90A = 0x1000 + 90 }; /* instructions that no later SM has */

typedef struct ox_kernel_row {
    const char *name;
    ox_device device; /* OX_DEVICE_NONE ends a list */
    unsigned needs;   /* CPU: feature bits; CUDA: lowest SM, or OX_SM_90A: that one alone */
    ox_tol tol;
    bool (*accepts)(const void *args); /* NULL = any shape */
    ox_any_fn *fn;
} ox_kernel_row;

typedef struct ox_machine {
    unsigned cpu_features, cuda_sm;
} ox_machine;

typedef struct ox_kernel_family {
    const char *name;
    const ox_kernel_row *rows;
} ox_kernel_family;

/* Every family, in families.def order; a row with name NULL ends it. */
extern const ox_kernel_family ox_kernel_families[];

static inline bool ox_kernel_runs_on(const ox_kernel_row *r, const ox_machine *m)
{
    return r->device == OX_DEVICE_CPU ? (r->needs & m->cpu_features) == r->needs
                                      : m->cuda_sm && r->needs <= m->cuda_sm;
}

/* The first row that the machine has and that accepts the arguments; NULL if none. Reference rows
 * accept everything their family's contract allows, so on a CPU NULL means a broken contract. */
static inline const ox_kernel_row *ox_kernel_pick(const ox_kernel_row *r, ox_device device,
                                                  const ox_machine *m, const void *args)
{
    for (; r->device; r++)
        if (r->device == device && ox_kernel_runs_on(r, m) && (!r->accepts || r->accepts(args)))
            return r;
    return NULL;
}
#endif
