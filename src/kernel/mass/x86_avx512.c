#include "simd/avx512.h"
#define MASS_NAME ox_mass_avx512
#include "kernel/mass/body.h"
