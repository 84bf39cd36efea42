#include "simd/avx2.h"
#define MASS_NAME ox_mass_avx2
#include "kernel/mass/body.h"
