/* outfile.h - writing what is too large for one buffer: a new file written at any offset, and
 * folders that appear whole by a rename. */
#ifndef OX_BASE_OUTFILE_H
#define OX_BASE_OUTFILE_H
#include "base/status.h"
#include "base/str.h"

/* Owned by one thread while open, except ox_outfile_write_at, which any number may call for
 * disjoint ranges. Start from OX_OUTFILE_INIT. */
typedef struct ox_outfile {
    int fd;           /* -1 = closed */
    const char *path; /* borrowed, for messages */
} ox_outfile;

#define OX_OUTFILE_INIT                                                                            \
    {                                                                                              \
        -1, 0                                                                                      \
    }

/* Creates the file, or opens it with its content kept when keep is set. */
ox_status ox_outfile_open(ox_outfile *f, const char *path, bool keep, ox_err *err);
ox_status ox_outfile_write_at(const ox_outfile *f, uint64_t at, const void *bytes, size_t n,
                              ox_err *err);
/* Length becomes n: cut, or extended by zeros that take no room. */
ox_status ox_outfile_resize(const ox_outfile *f, uint64_t n, ox_err *err);
/* Everything written so far reaches the disk. */
ox_status ox_outfile_sync(const ox_outfile *f, ox_err *err);
/* Syncs and closes; closed in every case afterwards. */
ox_status ox_outfile_close(ox_outfile *f, ox_err *err);
void ox_outfile_abandon(ox_outfile *f);

void ox_file_remove(const char *path); /* absent is fine */
/* Makes the folder; one that exists is fine. The parent must exist. */
ox_status ox_dir_make(const char *path, ox_err *err);
/* Removes the folder with the files in it; folders inside are left alone and then so is it. */
void ox_dir_remove(const char *path);
/* rename(2): atomic within a file system; a folder may replace an empty folder. */
ox_status ox_path_move(const char *from, const char *to, ox_err *err);
/* Free bytes where path is; UINT64_MAX when unknown. */
uint64_t ox_disk_free(const char *path);
#endif
