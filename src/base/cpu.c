/* cpu.c - cpuid, XCR0, affinity and cgroup quota. Compiled without ISA flags. */
#define _GNU_SOURCE
#include "base/cpu.h"

#include "base/fs.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if OX_ARCH_X86
#include <cpuid.h>
#include <sys/syscall.h>

enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_TILEDATA = 18 };

static unsigned long long xcr0(void)
{
    unsigned lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return ((unsigned long long)hi << 32) | lo;
}

static unsigned detect(void)
{
    unsigned a, b, c, d, have = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
    const unsigned need1 =
        (1u << 12) | (1u << 27) | (1u << 28) | (1u << 29); /* FMA OSXSAVE AVX F16C */
    if ((c & need1) != need1) return 0;
    const unsigned long long x = xcr0();
    if ((x & 6) != 6) return 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    const unsigned b7 = b, c7 = c, d7 = d;
    if (!(b7 & (1u << 5)) || !(b7 & (1u << 8))) return 0; /* AVX2, BMI2 */
    have = OX_CPU_AVX2;
    unsigned a71 = 0;
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) a71 = a;
    if (a71 & (1u << 4)) have |= OX_CPU_AVXVNNI;
    const unsigned f512 = (1u << 16) | (1u << 17) | (1u << 30) | (1u << 31); /* F DQ BW VL */
    if ((x & 0xe6) == 0xe6 && (b7 & f512) == f512 && (c7 & (1u << 1))) {
        have |= OX_CPU_AVX512;
        if (c7 & (1u << 11)) have |= OX_CPU_AVX512VNNI;
        if (a71 & (1u << 5)) have |= OX_CPU_AVX512BF16;
        const unsigned amx = (1u << 22) | (1u << 24) | (1u << 25); /* bf16 tile int8 */
        if ((d7 & amx) == amx && (x & 0x60000) == 0x60000 &&
            !syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_TILEDATA))
            have |= OX_CPU_AMX;
    }
    return have;
}
#else
static unsigned detect(void)
{
    return 0;
}
#endif

unsigned ox_cpu_detected(void)
{
    static unsigned known; /* same value whoever computes it: benign race on one word */
    unsigned v = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (!v) {
        v = detect() | 1u << 31;
        __atomic_store_n(&known, v, __ATOMIC_RELAXED);
    }
    return v & ~(1u << 31);
}

typedef struct tier {
    const char *name;
    unsigned bit, keeps;
} tier;

static const tier tiers[] = {
#define OX_CPU_TIER(name, bit, keeps) {#name, bit, keeps},
#include "base/cpu_tiers.def"
#undef OX_CPU_TIER
};

ox_status ox_cpu_cap(unsigned *out, const char *name, ox_err *err)
{
    for (size_t i = 0; i < OX_COUNT(tiers); i++)
        if (!strcmp(tiers[i].name, name)) {
            *out = ox_cpu_detected() & tiers[i].keeps;
            return OX_OK;
        }
    return OX_FAIL(err, OX_BAD_ARGUMENT,
                   "OXGEN_CPU=%s is not a tier; expected ref, avx2, avxvnni, avx512, avx512vnni, "
                   "avx512bf16 or amx",
                   name);
}

ox_status ox_cpu_features(unsigned *out, ox_err *err)
{
    const char *cap = ox_env("OXGEN_CPU");
    if (cap && *cap) return ox_cpu_cap(out, cap, err);
    *out = ox_cpu_detected();
    return OX_OK;
}

const char *ox_cpu_tier_name(unsigned features)
{
    const char *name = "ref";
    for (size_t i = 0; i < OX_COUNT(tiers); i++)
        if (tiers[i].bit && (features & tiers[i].bit)) name = tiers[i].name;
    return name;
}

const char *ox_cpu_model(void)
{
#if OX_ARCH_X86
    static char text[49];
    unsigned r[12];
    if (text[0]) return text;
    for (unsigned i = 0; i < 3; i++)
        if (!__get_cpuid(0x80000002u + i, &r[4 * i], &r[4 * i + 1], &r[4 * i + 2], &r[4 * i + 3]))
            return "unknown x86-64 CPU";
    memcpy(text, r, 48);
    return text;
#else
    return "unknown CPU";
#endif
}

/* "<quota> <period>" in microseconds, or "max": whole CPUs, rounded up; 0 = no limit known. */
static int quota_in(const char *dir)
{
    char path[4096];
    long quota = 0, period = 0;
    if (snprintf(path, sizeof(path), "%s/cpu.max", dir) >= (int)sizeof(path)) return 0;
    FILE *f = fopen(path, "re");
    if (!f) return 0;
    const int n = fscanf(f, "%ld %ld", &quota, &period);
    fclose(f);
    if (n != 2 || quota <= 0 || period <= 0) return 0;
    const long cpus = (quota + period - 1) / period;
    return cpus < 1 ? 1 : cpus > OX_CPU_MOST ? OX_CPU_MOST : (int)cpus;
}

/* The process's own group (cgroup v2) and those above it: the smallest quota counts. */
int ox_cpu_quota(const char *root, const char *membership)
{
    char dir[4096] = "", line[2048];
    FILE *f = fopen(membership, "re");
    while (f && fgets(line, sizeof(line), f))
        if (!strncmp(line, "0::/", 4)) {
            line[strcspn(line, "\n")] = 0;
            if (strstr(line, "/..") || snprintf(dir, sizeof(dir), "%s%s", root, line + 3) < 0)
                dir[0] = 0;
        }
    if (f) fclose(f);
    int least = quota_in(root);
    for (size_t n = strlen(dir); n > strlen(root); dir[n] = 0) {
        const int here = quota_in(dir);
        if (here && (!least || here < least)) least = here;
        while (n > strlen(root) && dir[--n] != '/')
            continue;
    }
    return least;
}

/* CPUs of the set that are the first of their core in it. */
static int physical_cores(const cpu_set_t *set)
{
    int cores = 0;
    for (size_t i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, set)) continue;
        char path[128];
        size_t first = i, at;
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%zu/topology/thread_siblings_list",
                 i);
        FILE *f = fopen(path, "re");
        while (f && fscanf(f, "%zu", &at) == 1) { /* "0,64" or "0-1" */
            if (at < first && CPU_ISSET(at, set)) first = at;
            fgetc(f);
        }
        if (f) fclose(f);
        cores += first == i;
    }
    return cores;
}

int ox_cpu_count(void)
{
    cpu_set_t set;
    int n = 0;
    if (!sched_getaffinity(0, sizeof(set), &set)) n = physical_cores(&set);
    if (n < 1) n = 1;
    const int quota = ox_cpu_quota("/sys/fs/cgroup", "/proc/self/cgroup");
    if (quota && quota < n) n = quota;
    return n;
}
