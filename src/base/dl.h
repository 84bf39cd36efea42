/* dl.h - shared libraries opened at run time. */
#ifndef OX_BASE_DL_H
#define OX_BASE_DL_H
#include "base/status.h"

#include <stddef.h>

typedef struct ox_dl ox_dl;

/* Opens exactly `path` (or a bare name along the loader's path). OX_NO_DEVICE with the loader's
 * own words when it is missing. */
ox_status ox_dl_open(ox_dl **out, const char *path, ox_err *err);
/* The same; the library stays loaded until the process ends, also after ox_dl_close. For libraries
 * that leave threads or exit handlers behind. */
ox_status ox_dl_open_kept(ox_dl **out, const char *path, ox_err *err);
/* The file that a symbol of a loaded library comes from; empty when it is not known. */
void ox_dl_file_of(const void *symbol, char *path, size_t size);
void *ox_dl_symbol(ox_dl *dl, const char *name); /* NULL = absent */
void ox_dl_close(ox_dl **dl);
/* Folder of the library or program that this code lies in; owned by the caller, NULL = unknown. */
char *ox_dl_own_folder(void);
#endif
