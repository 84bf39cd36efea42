/* clock.c - see clock.h. */
#define _GNU_SOURCE
#include "base/clock.h"

#include "base/compiler.h"

#include <time.h>

double ox_clock_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

uint64_t ox_clock_cycles(void)
{
#if OX_ARCH_X86
    return __builtin_ia32_rdtsc();
#else
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
#endif
}

double ox_clock_cycles_per_second(void)
{
    static double known;
    if (known > 0) return known;
    const double t0 = ox_clock_seconds();
    const uint64_t c0 = ox_clock_cycles();
    double t1;
    do
        t1 = ox_clock_seconds();
    while (t1 - t0 < 0.02);
    known = (double)(ox_clock_cycles() - c0) / (t1 - t0);
    return known;
}

int64_t ox_clock_unix(void)
{
    return (int64_t)time(NULL);
}

int32_t ox_clock_utc_offset(int64_t unix_seconds)
{
    const time_t t = (time_t)unix_seconds;
    struct tm local;
    return localtime_r(&t, &local) ? (int32_t)local.tm_gmtoff : 0;
}
