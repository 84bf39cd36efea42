/* families.c - the list of all kernel families, from families.def. */
#include "kernel/kernel.h"

#define OX_KERNEL_FAMILY(name) extern const ox_kernel_row ox_##name##_rows[];
#include "kernel/families.def"
#undef OX_KERNEL_FAMILY

const ox_kernel_family ox_kernel_families[] = {
#define OX_KERNEL_FAMILY(name) {#name, ox_##name##_rows},
#include "kernel/families.def"
#undef OX_KERNEL_FAMILY
    {NULL, NULL},
};
