/* dl.h - shared libraries opened at run time. */
#ifndef OX_BASE_DL_H
#define OX_BASE_DL_H
#include "base/status.h"

typedef struct ox_dl ox_dl;

/* Opens exactly `path` (or a bare name along the loader's path). OX_NO_DEVICE with the loader's
 * own words when it is missing. */
ox_status ox_dl_open(ox_dl **out, const char *path, ox_err *err);
void *ox_dl_symbol(ox_dl *dl, const char *name); /* NULL = absent */
void ox_dl_close(ox_dl **dl);
#endif
