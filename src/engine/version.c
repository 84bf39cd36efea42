/* version.c - what this build is. */
#include "oxgen/oxgen.h"
#include "oxgen_build.h"

const char *ox_version(void)
{
    return OXGEN_VERSION;
}
