/* outfile.c - see outfile.h. */
#define _GNU_SOURCE
#include "base/outfile.h"

#include "base/fs.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { MODE_FILE = 0666, MODE_DIR = 0777, LARGEST_WRITE = 1 << 30 };

static ox_status failed(const char *what, const char *path, ox_err *err)
{
    const int e = errno;
    const char *hint = e == ENOSPC || e == EDQUOT ? ": free some room and try again" : "";
    return OX_FAIL(err, OX_IO, "%s %s failed: %s%s", what, path, strerror(e), hint);
}

ox_status ox_outfile_open(ox_outfile *f, const char *path, bool keep, ox_err *err)
{
    const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (keep ? 0 : O_TRUNC);
    f->path = path;
    f->fd = open(path, flags, MODE_FILE);
    return f->fd < 0 ? failed("creating", path, err) : OX_OK;
}

ox_status ox_outfile_write_at(const ox_outfile *f, uint64_t at, const void *bytes, size_t n,
                              ox_err *err)
{
    const char *p = bytes;
    while (n) {
        const size_t part = n < LARGEST_WRITE ? n : LARGEST_WRITE;
        const ssize_t done = pwrite(f->fd, p, part, (off_t)at);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return failed("writing", f->path, err);
        p += done;
        at += (uint64_t)done;
        n -= (size_t)done;
    }
    return OX_OK;
}

ox_status ox_outfile_resize(const ox_outfile *f, uint64_t n, ox_err *err)
{
    return ftruncate(f->fd, (off_t)n) ? failed("resizing", f->path, err) : OX_OK;
}

ox_status ox_outfile_sync(const ox_outfile *f, ox_err *err)
{
    return fdatasync(f->fd) ? failed("writing", f->path, err) : OX_OK;
}

ox_status ox_outfile_close(ox_outfile *f, ox_err *err)
{
    if (f->fd < 0) return OX_OK;
    ox_status st = ox_outfile_sync(f, err);
    const int bad = close(f->fd);
    f->fd = -1;
    if (!st && bad) st = failed("closing", f->path, err);
    return st;
}

void ox_outfile_abandon(ox_outfile *f)
{
    if (f->fd >= 0) (void)close(f->fd);
    f->fd = -1;
}

void ox_file_remove(const char *path)
{
    (void)unlink(path);
}

ox_status ox_dir_make(const char *path, ox_err *err)
{
    if (!mkdir(path, MODE_DIR)) return OX_OK;
    if (errno == EEXIST && ox_path_is_dir(path)) return OX_OK;
    return failed("making folder", path, err);
}

void ox_dir_remove(const char *path)
{
    char **names = NULL;
    size_t n = 0;
    if (ox_dir_list(&names, &n, path, NULL)) return;
    for (size_t i = 0; i < n; i++) {
        char *inside = ox_path_join(path, names[i]);
        if (inside) (void)unlink(inside);
        ox_free(inside);
    }
    ox_dir_list_free(names, n);
    (void)rmdir(path);
}

ox_status ox_path_move(const char *from, const char *to, ox_err *err)
{
    return rename(from, to) ? failed("renaming to", to, err) : OX_OK;
}

uint64_t ox_disk_free(const char *path)
{
    struct statvfs v;
    if (statvfs(path, &v)) return UINT64_MAX;
    return (uint64_t)v.f_bavail * v.f_frsize;
}
