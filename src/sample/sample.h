/* sample.h - what the rest of the library asks about sampling beyond the public sampler.h. */
#ifndef OX_SAMPLE_SAMPLE_H
#define OX_SAMPLE_SAMPLE_H
#include "oxgen/sampler.h"

#include <stdbool.h>

/* Whether only temperature, top_k, top_p, min_p, the three penalties over the whole sequence and
 * the seed are set, in the default order: what a device's own decoding loop may be asked for. */
bool ox_sampler_is_basic(const ox_sampler_options *o);
#endif
