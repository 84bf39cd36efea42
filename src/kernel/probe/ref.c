/* Reference: the obvious loops. */
#include "kernel/probe/probe.h"

void ox_probe_ref(ox_probe_args *a, size_t begin, size_t end)
{
    for (int lane = 0; lane < 8; lane++)
        a->out[lane] = 0;
    for (size_t i = begin; i < end; i++)
        a->out[i % 8] ^= a->words[i];
    volatile int32_t sum = 0;
    volatile float fsum = 0;
    for (size_t r = 0; r < a->repeats && !a->floats; r++)
        sum = sum + (int32_t)(r & 127) * 3;
    for (size_t r = 0; r < a->repeats && a->floats; r++)
        fsum = fsum + (float)(r & 127) * 3.0f;
    a->ops = 2.0 * (double)a->repeats;
}
