/* check.h - the second run of a call on its reference row (OXGEN_CHECK=1). */
#ifndef OX_BACKEND_CPU_CHECK_H
#define OX_BACKEND_CPU_CHECK_H
#include "backend/cpu/cpu.h"

struct ox_cpu_check {
    bool found; /* message holds the first call beyond its tolerance */
    size_t n_checked;
    char message[512];
};

/* Runs the call (all of it, in this thread) and, unless a fault was found before, its reference. */
void ox_cpu_check_call(ox_cpu_check *k, const ox_cpu_run *r, const ox_call *c, ox_cpu_run_fn *run);
#endif
