/* fs.h - files: mapped read-only, read whole, written atomically, opened beneath a folder. */
#ifndef OX_BASE_FS_H
#define OX_BASE_FS_H
#include "base/status.h"
#include "base/str.h"

/* A whole file mapped read-only. Zero is closed. Bytes stay valid until close; a file that another
 * process truncates meanwhile is outside the contract (SIGBUS), as with every mapping. */
typedef struct ox_mapping {
    const uint8_t *bytes; /* [n]; NULL when the file is empty */
    size_t n;
    char *path; /* for messages; owned */
} ox_mapping;

ox_status ox_mapping_open(ox_mapping *out, const char *path, ox_err *err);
void ox_mapping_close(ox_mapping *m);
/* Tells the kernel that [begin, begin+n) is no longer needed (pages dropped, content intact) or
 * will be needed soon. Both are hints. */
void ox_mapping_drop(const ox_mapping *m, const void *begin, size_t n);
void ox_mapping_want(const ox_mapping *m, const void *begin, size_t n);

/* Resolves `name` (a relative path out of a model file) below folder `dir` into *path (owned by
 * the caller). Refuses absolute paths, "..", backslashes, and links that leave the folder's real
 * location, except into the blob store beside a model-hub snapshot folder. */
ox_status ox_path_beneath(char **path, const char *dir, ox_str name, ox_err *err);

char *ox_path_join(const char *dir, const char *name); /* owned by the caller; NULL = no memory */
char *ox_path_dir(const char *path);                   /* owned by the caller */
const char *ox_path_base(const char *path);            /* borrowed from path */
/* Links followed; owned by the caller; NULL = there is no such file. */
char *ox_path_real(const char *path);
bool ox_path_is_dir(const char *path);
bool ox_path_is_file(const char *path);
bool ox_path_exists(const char *path); /* whatever it is */

/* The whole file (at most max bytes) appended to *out; "-" is standard input. */
ox_status ox_file_read(ox_buf *out, const char *path, size_t max, ox_err *err);
/* Writes beside the target and renames, so that readers see the old or the new file, never half. */
ox_status ox_file_write_atomic(const char *path, ox_str bytes, ox_err *err);

/* Sorted names of a folder's entries, without "." and ".."; free each and
 * the array with ox_free. */
ox_status ox_dir_list(char ***names, size_t *n, const char *path, ox_err *err);
void ox_dir_list_free(char **names, size_t n);

/* The environment's value or NULL; the only getenv outside tests. */
const char *ox_env(const char *name);
#endif
