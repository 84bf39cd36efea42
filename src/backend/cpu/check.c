/* check.c - OXGEN_CHECK=1: every call once more on its family's reference row, compared by the
 * row's tolerance. One worker does everything; the first call beyond its tolerance is remembered.
 *
 * Calls that update their output in place run the reference on a copy of what was there before.
 * Append writes into cache pages and has no output of its own: attention shows its faults. */
#include "backend/cpu/check.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Rows of c's output as one block of floats; NULL without an output. */
static float *output_rows(const ox_cpu_run *r, const ox_call *c, size_t *ld, size_t *rows)
{
    if (c->out.buffer.i < 0 || r->buffers[c->out.buffer.i].quant_block) return NULL;
    *rows = ox_cpu_rows(r, c);
    return ox_cpu_floats(r, c->out, ld);
}

static void copy_out(float *to, const float *from, size_t rows, size_t ld, size_t width)
{
    for (size_t i = 0; i < rows; i++)
        memcpy(to + i * width, from + i * ld, width * sizeof(float));
}

static void copy_back(float *to, const float *from, size_t rows, size_t ld, size_t width)
{
    for (size_t i = 0; i < rows; i++)
        memcpy(to + i * ld, from + i * width, width * sizeof(float));
}

/* Largest difference over the largest value of a row, over the rows. */
static double distance(const float *got, const float *want, size_t rows, size_t width)
{
    double worst = 0;
    for (size_t i = 0; i < rows; i++) {
        double off = 0, size = FLT_MIN;
        for (size_t k = 0; k < width; k++) {
            const double w = (double)want[i * width + k], g = (double)got[i * width + k];
            if (isnan(w) != isnan(g)) return INFINITY;
            if (fabs(w) > size) size = fabs(w);
            if (fabs(g - w) > off) off = fabs(g - w);
        }
        if (off / size > worst) worst = off / size;
    }
    return worst;
}

/* Terms in the sum behind one output element, for rows that re-associate it. */
static double n_terms(const ox_cpu_run *r, const ox_call *c)
{
    if (c->n_weights) return (double)c->weights[0]->cols;
    return c->kind == OX_CALL_ATTEND ? (double)r->step->total * c->term->head_size
                                     : (double)(c->in[0].width > 0 ? c->in[0].width : 1);
}

static double allowed(const ox_cpu_run *r, const ox_call *c, const ox_cpu_bound *bound)
{
    const double ulp = (double)FLT_EPSILON;
    switch (bound->tol[c->wanted ? r->wanted : r->all]) {
    case OX_TOL_EXACT:
        return 0;
    case OX_TOL_ROUND:
        return 16 * ulp;
    case OX_TOL_HALF:
        return 0x1p-11 + 4 * ulp * (2 + sqrt(n_terms(r, c)));
    case OX_TOL_SUM:
        break;
    }
    return 4 * ulp * (2 + sqrt(n_terms(r, c)));
}

void ox_cpu_check_call(ox_cpu_check *k, const ox_cpu_run *r, const ox_call *c, ox_cpu_run_fn *run)
{
    ox_cpu_bound *bound = c->bound;
    size_t ld = 0, rows = 0;
    float *out = output_rows(r, c, &ld, &rows);
    const size_t width = out ? (size_t)c->out.width : 0, n = rows * width;
    float *before = NULL, *got = NULL;
    if (out && bound->ref && !k->found) {
        before = ox_alloc(n * sizeof(float));
        got = ox_alloc(n * sizeof(float));
    }
    if (!before || !got) {
        run(r, c, bound, 0, 1);
        ox_free(before);
        ox_free(got);
        return;
    }
    copy_out(before, out, rows, ld, width);
    run(r, c, bound, 0, 1);
    copy_out(got, out, rows, ld, width);
    copy_back(out, before, rows, ld, width);
    ox_any_fn *const fast[OX_CLASS_COUNT] = {bound->fn[0], bound->fn[1], bound->fn[2]};
    for (int i = 0; i < OX_CLASS_COUNT; i++)
        bound->fn[i] = bound->ref;
    run(r, c, bound, 0, 1);
    memcpy(bound->fn, fast, sizeof(fast));
    copy_out(before, out, rows, ld, width); /* now what the reference says */
    const double off = distance(got, before, rows, width), most = allowed(r, c, bound);
    k->n_checked++;
    if (!(off <= most)) {
        k->found = true;
        snprintf(
            k->message, sizeof(k->message),
            "OXGEN_CHECK: node %s: kernel row %s is %.3g of the row's largest value away from its "
            "reference, allowed %.3g",
            c->name, c->rows[c->wanted ? r->wanted : r->all], off, most);
    }
    copy_back(out, got, rows, ld, width);
    ox_free(before);
    ox_free(got);
}
