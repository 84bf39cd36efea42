/* fs.c - see fs.h. */
#define _GNU_SOURCE
#include "base/fs.h"

#include "base/mem.h"
#include "base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

ox_status ox_mapping_open(ox_mapping *out, const char *path, ox_err *err)
{
    ox_status st = OX_OK;
    struct stat s;

    *out = (ox_mapping){0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not hold us up */
    if (fd < 0)
        return OX_FAIL(err, errno == ENOENT ? OX_NOT_FOUND : OX_IO, "%s: cannot open: %s", path,
                       strerror(errno));
    if (fstat(fd, &s) || !S_ISREG(s.st_mode)) {
        st = OX_FAIL(err, OX_BAD_FILE, "%s: expected a regular file", path);
        goto fail;
    }
    out->n = (size_t)s.st_size;
    out->path = ox_strdup_n(path, strlen(path));
    if (!out->path) {
        st = OX_FAIL(err, OX_NO_MEMORY, "%s: no memory for its name", path);
        goto fail;
    }
    if (out->n) {
        void *p = mmap(NULL, out->n, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED) {
            st = OX_FAIL(err, OX_IO, "%s: cannot map %zu bytes: %s", path, out->n, strerror(errno));
            goto fail;
        }
        out->bytes = p;
    }
    close(fd);
    return OX_OK;
fail:
    close(fd);
    ox_free(out->path);
    *out = (ox_mapping){0};
    return st;
}

void ox_mapping_close(ox_mapping *m)
{
    if (m->bytes) munmap((void *)(uintptr_t)m->bytes, m->n);
    ox_free(m->path);
    *m = (ox_mapping){0};
}

static void advise(const void *begin, size_t n, int advice, bool inner)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t a = (uintptr_t)begin, b = a + n;
    if (inner) {
        a = (a + page - 1) / page * page;
        b = b / page * page;
    } else {
        a = a / page * page;
    }
    if (b > a) madvise((void *)a, b - a, advice);
}

void ox_mapping_drop(const ox_mapping *m, const void *begin, size_t n)
{
    if (m->bytes) advise(begin, n, MADV_DONTNEED, true);
}

void ox_mapping_want(const ox_mapping *m, const void *begin, size_t n)
{
    if (m->bytes) advise(begin, n, MADV_WILLNEED, false);
}

char *ox_path_join(const char *dir, const char *name)
{
    const size_t nd = strlen(dir), nn = strlen(name);
    char *p = ox_alloc(nd + nn + 2);
    if (!p) return NULL;
    memcpy(p, dir, nd);
    size_t at = nd;
    if (nd && p[nd - 1] != '/') p[at++] = '/';
    memcpy(p + at, name, nn + 1);
    return p;
}

char *ox_path_real(const char *path)
{
    char *real = realpath(path, NULL);
    char *copy = real ? ox_strdup_n(real, strlen(real)) : NULL;
    free(real);
    return copy;
}

char *ox_path_dir(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash) return ox_strdup_n(".", 1);
    return ox_strdup_n(path, slash == path ? 1 : (size_t)(slash - path));
}

const char *ox_path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool ox_path_exists(const char *path)
{
    struct stat s;
    return !stat(path, &s);
}

bool ox_path_is_dir(const char *path)
{
    struct stat s;
    return !stat(path, &s) && S_ISDIR(s.st_mode);
}

bool ox_path_is_file(const char *path)
{
    struct stat s;
    return !stat(path, &s) && S_ISREG(s.st_mode);
}

/* A hub snapshot is <repo>/snapshots/<rev>/ with links into <repo>/blobs/. */
static bool is_below(const char *real, const char *root)
{
    const size_t n = strlen(root);
    if (!strncmp(real, root, n) && (real[n] == '/' || (n && root[n - 1] == '/'))) return true;
    const char *snap = strstr(root, "/snapshots/");
    if (!snap || strchr(snap + strlen("/snapshots/"), '/')) return false;
    const size_t repo = (size_t)(snap - root);
    return !strncmp(real, root, repo) && !strncmp(real + repo, "/blobs/", strlen("/blobs/"));
}

ox_status ox_path_beneath(char **path, const char *dir, ox_str name, ox_err *err)
{
    char *joined = NULL, *z = NULL, *real = NULL, *root = NULL;
    ox_status st = OX_OK;

    *path = NULL;
    bool bad =
        !name.n || name.p[0] == '/' || memchr(name.p, 0, name.n) || memchr(name.p, '\\', name.n);
    for (size_t i = 0; !bad && i < name.n;) {
        size_t j = i;
        while (j < name.n && name.p[j] != '/')
            j++;
        bad = j - i == 2 && name.p[i] == '.' && name.p[i + 1] == '.';
        i = j + 1;
    }
    if (bad)
        return OX_FAIL(err, OX_BAD_FILE,
                       "the file names '%.*s', which is outside the model folder %s; expected a "
                       "relative path without '..'",
                       OX_STR_ARGS(name), dir);
    z = ox_strdup_n(name.p, name.n);
    joined = z ? ox_path_join(dir, z) : NULL;
    if (!joined) {
        st = OX_FAIL(err, OX_NO_MEMORY, "no memory for a path");
        goto fail;
    }
    real = realpath(joined, NULL);
    const int why = errno;
    root = real ? realpath(dir, NULL) : NULL;
    if (!real || !root) {
        st =
            OX_FAIL(err, OX_NOT_FOUND, "%s: cannot open: %s", joined, strerror(real ? errno : why));
        goto fail;
    }
    if (!is_below(real, root)) {
        st = OX_FAIL(err, OX_BAD_FILE,
                     "%s is a link to %s, outside the model folder; expected a file inside it",
                     joined, real);
        goto fail;
    }
    *path = joined;
    joined = NULL;
fail:
    free(real);
    free(root);
    ox_free(joined);
    ox_free(z);
    return st;
}

ox_status ox_file_read(ox_buf *out, const char *path, size_t max, ox_err *err)
{
    const bool is_stdin = !strcmp(path, "-");
    FILE *f = is_stdin ? stdin : fopen(path, "rbe");
    if (!f)
        return OX_FAIL(err, errno == ENOENT ? OX_NOT_FOUND : OX_IO, "%s: cannot open: %s", path,
                       strerror(errno));
    ox_status st = OX_OK;
    for (;;) {
        char chunk[16384];
        const size_t n = fread(chunk, 1, sizeof(chunk), f);
        if (!n) break;
        if (out->n + n > max) {
            st = OX_FAIL(err, OX_LIMIT, "%s: larger than the limit of %zu bytes", path, max);
            break;
        }
        ox_buf_put(out, chunk, n);
    }
    if (!st && ferror(f)) st = OX_FAIL(err, OX_IO, "%s: cannot read: %s", path, strerror(errno));
    if (!st && out->failed) st = OX_FAIL(err, OX_NO_MEMORY, "%s: no memory to read it", path);
    if (!is_stdin) fclose(f);
    return st;
}

static ox_status write_all(int fd, ox_str bytes, const char *path, ox_err *err)
{
    while (bytes.n) {
        const ssize_t n = write(fd, bytes.p, bytes.n < (1u << 30) ? bytes.n : (1u << 30));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return OX_FAIL(err, OX_IO, "%s: cannot write: %s", path, strerror(errno));
        bytes.p += n;
        bytes.n -= (size_t)n;
    }
    return OX_OK;
}

/* Devices and pipes are written to; a rename would put a file in their place. */
static bool is_special(const char *path)
{
    struct stat s;
    return !stat(path, &s) && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode);
}

static ox_status write_special(const char *path, ox_str bytes, ox_err *err)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return OX_FAIL(err, OX_IO, "%s: cannot open: %s", path, strerror(errno));
    ox_status st = write_all(fd, bytes, path, err);
    if (close(fd) && !st) st = OX_FAIL(err, OX_IO, "%s: cannot write: %s", path, strerror(errno));
    return st;
}

ox_status ox_file_write_atomic(const char *path, ox_str bytes, ox_err *err)
{
    ox_buf tmp = {0};
    ox_status st = OX_OK;

    if (is_special(path)) return write_special(path, bytes, err);
    ox_buf_printf(&tmp, "%s.part%ld", path, (long)getpid());
    if (tmp.failed) {
        ox_buf_deinit(&tmp);
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for a path");
    }
    const int fd = open(tmp.p, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) {
        st = OX_FAIL(err, OX_IO, "%s: cannot create: %s", path, strerror(errno));
        ox_buf_deinit(&tmp);
        return st;
    }
    st = write_all(fd, bytes, path, err);
    if (close(fd) && !st) st = OX_FAIL(err, OX_IO, "%s: cannot write: %s", path, strerror(errno));
    if (!st && rename(tmp.p, path))
        st = OX_FAIL(err, OX_IO, "%s: cannot replace: %s", path, strerror(errno));
    if (st) unlink(tmp.p);
    ox_buf_deinit(&tmp);
    return st;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

ox_status ox_dir_list(char ***names, size_t *n, const char *path, ox_err *err)
{
    OX_VEC(char *) v = {0};
    DIR *d = opendir(path);

    *names = NULL;
    *n = 0;
    if (!d) return OX_FAIL(err, OX_IO, "%s: cannot list: %s", path, strerror(errno));
    for (const struct dirent *e; (e = readdir(d));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        char *copy = ox_strdup_n(e->d_name, strlen(e->d_name));
        if (!copy || !ox_vec_push(&v, copy)) {
            ox_free(copy);
            closedir(d);
            ox_dir_list_free(v.p, v.n);
            return OX_FAIL(err, OX_NO_MEMORY, "%s: no memory to list it", path);
        }
    }
    closedir(d);
    if (v.n) qsort(v.p, v.n, sizeof(*v.p), by_name);
    *names = v.p;
    *n = v.n;
    return OX_OK;
}

void ox_dir_list_free(char **names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ox_free(names[i]);
    ox_free(names);
}

const char *ox_env(const char *name)
{
    return getenv(name);
}
