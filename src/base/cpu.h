/* cpu.h - what this CPU may run: cpuid, what the operating system grants, and the user's cap.
 *
 * Tiers are rows of cpu_tiers.def. */
#ifndef OX_BASE_CPU_H
#define OX_BASE_CPU_H
#include "base/status.h"

#include <stddef.h>

enum {
    OX_CPU_AVX2 = 1u << 0,       /* AVX2 + FMA + F16C + BMI2 */
    OX_CPU_AVXVNNI = 1u << 1,    /* 256-bit vpdpbusd without AVX-512 */
    OX_CPU_AVX512 = 1u << 2,     /* F + BW + DQ + VL + VBMI */
    OX_CPU_AVX512VNNI = 1u << 3, /* 512-bit vpdpbusd */
    OX_CPU_AVX512BF16 = 1u << 4,
    OX_CPU_AMX = 1u << 5, /* tiles, int8, bf16, and permission granted by the system */
};

/* Bits the hardware and the system allow, not capped. Constant for a process. */
unsigned ox_cpu_detected(void);
/* Bits allowed after OXGEN_CPU. An unknown value fails with the list of names. */
ox_status ox_cpu_features(unsigned *out, ox_err *err);
/* Bits under a named cap ("avx2"); OX_BAD_ARGUMENT for an unknown name. */
ox_status ox_cpu_cap(unsigned *out, const char *tier, ox_err *err);
/* Name of the highest tier whose bit is in `features`; "ref" for none. */
const char *ox_cpu_tier_name(unsigned features);
/* Brand string of the CPU, static storage. */
const char *ox_cpu_model(void);
/* Workers worth starting: physical cores this process may use, no more than its cgroup's quota;
 * at least 1. A second hardware thread of a core adds nothing to loops that fill its ports. */
int ox_cpu_count(void);
/* The smallest quota of a cgroup (v2) and the groups above it, in whole CPUs; 0 = none. root: where
 * the groups are mounted; membership: the process's cgroup file. */
enum { OX_CPU_MOST = 4096 };
int ox_cpu_quota(const char *root, const char *membership);
#endif
