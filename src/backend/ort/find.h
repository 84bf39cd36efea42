/* find.h - where a shared library of a Python package is, and whether its file can be loaded here.
 * No Python is run. Shared by the two libraries that are opened at run time. */
#ifndef OX_BACKEND_ORT_FIND_H
#define OX_BACKEND_ORT_FIND_H
#include "base/status.h"

typedef struct ox_find_what {
    const char *name;      /* for messages: "ONNX Runtime" */
    const char *env;       /* variable that names the exact file */
    const char *folder;    /* below site-packages */
    const char *stem;      /* "libx.so": also libx.so.1, libx.so.1.2.3 */
    const char *loader[3]; /* names for the loader's own path; NULL ends them */
    const char *package;   /* Python package, for the advice */
    const char *needs;     /* "1.20 or later" */
} ox_find_what;

/* The file: env's, else the one of the active Python environment ($VIRTUAL_ENV, $CONDA_PREFIX, the
 * first python3 of PATH), else empty, which means the loader's path. *path is the caller's
 * (ox_free). */
ox_status ox_find_library(char **path, const ox_find_what *what, ox_err *err);
/* Refuses a file that the loader would refuse with riddles or die on: no ELF file, for another
 * machine, cut short. */
ox_status ox_find_check(const char *path, ox_err *err);
#endif
