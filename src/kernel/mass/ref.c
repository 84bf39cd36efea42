/* Reference: the defined order in plain C. */
#include "simd/scalar.h"
#define MASS_NAME ox_mass_ref
#include "kernel/mass/body.h"
