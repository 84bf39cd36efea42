/* body.h - the row of a SIMD tier. An ISA file includes a lanes header and a dot header, defines
 * QLINEAR_NAME, then includes this. Both loops run the formula of qlinear.h in the same order. */
#include "kernel/qlinear/large.h"
#include "kernel/qlinear/small.h"

void QLINEAR_NAME(const ox_qlinear_args *a, size_t begin, size_t end)
{
    if (a->rows * (size_t)a->x->planes <= 8)
        run_small(a, begin, end);
    else
        run_large(a, begin, end);
}
