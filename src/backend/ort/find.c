/* find.c - the order in which a library is looked for, and a look into its file before the loader
 * gets it. A file is found by listing folders; one that exists twice under different contents is
 * refused, since nobody could say which was measured. */
#include "backend/ort/find.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/vec.h"

#include <string.h>

typedef OX_VEC(char *) paths;

static void paths_free(paths *v)
{
    for (size_t i = 0; i < v->n; i++)
        ox_free(v->p[i]);
    ox_vec_deinit(v);
}

static ox_status no_memory(ox_err *err)
{
    return OX_FAIL(err, OX_NO_MEMORY, "no memory for a path");
}

/* Takes path, also on failure. */
static ox_status add(paths *v, char *path, ox_err *err)
{
    if (path && ox_vec_push(v, path)) return OX_OK;
    ox_free(path);
    return no_memory(err);
}

/* A folder that is absent or cannot be read holds nothing for us. */
static ox_status list_if_there(char ***names, size_t *n, const char *dir, ox_err *err)
{
    if (!ox_path_is_dir(dir)) return OX_OK;
    return ox_dir_list(names, n, dir, NULL) == OX_NO_MEMORY ? no_memory(err) : OX_OK;
}

/* root/between/python3*_/last for every such folder; between and last may not be NULL. */
static ox_status add_sites(paths *v, const char *root, const char *between, const char *last,
                           ox_err *err)
{
    char **names = NULL;
    size_t n = 0;
    char *lib = ox_path_join(root, between);
    if (!lib) return no_memory(err);
    ox_status st = list_if_there(&names, &n, lib, err);
    for (size_t i = 0; !st && i < n; i++) {
        if (!ox_str_starts(ox_str_of(names[i]), OX_STR("python3"))) continue;
        char *python = ox_path_join(lib, names[i]);
        st = python ? add(v, ox_path_join(python, last), err) : no_memory(err);
        ox_free(python);
    }
    if (names) ox_dir_list_free(names, n);
    ox_free(lib);
    return st;
}

/* The folder above the first bin/python3 of PATH; NULL = there is none. */
static ox_status python_root(char **root, ox_err *err)
{
    const char *at = ox_env("PATH");
    *root = NULL;
    while (at && *at && !*root) {
        const size_t n = strcspn(at, ":");
        char *dir = ox_strdup_n(at, n);
        char *exe = dir ? ox_path_join(dir, "python3") : NULL;
        const bool is = exe && ox_path_is_file(exe);
        if (is) *root = ox_path_dir(dir);
        const bool failed = !exe || (is && !*root);
        ox_free(dir);
        ox_free(exe);
        if (failed) return no_memory(err);
        at += n + (at[n] == ':');
    }
    return OX_OK;
}

static ox_status python_sites(paths *v, ox_err *err)
{
    const char *home = ox_env("HOME");
    char *root = NULL;
    OX_TRY(python_root(&root, err));
    if (!root) return OX_OK;
    ox_status st = add_sites(v, root, "lib", "site-packages", err);
    if (!st) st = add_sites(v, root, "lib", "dist-packages", err);
    if (!st) st = add_sites(v, root, "local/lib", "dist-packages", err);
    char *venv = ox_path_join(root, "pyvenv.cfg");
    if (!venv) st = no_memory(err);
    if (!st && home && *home && !ox_path_is_file(venv))
        st = add_sites(v, home, ".local/lib", "site-packages", err);
    ox_free(venv);
    ox_free(root);
    return st;
}

/* Adds the real path of dir/name unless it is there already (a link to it). */
static ox_status add_real(paths *found, const char *dir, const char *name, ox_err *err)
{
    char *path = ox_path_join(dir, name);
    if (!path) return no_memory(err);
    const bool there = ox_path_is_file(path); /* else a link to nowhere */
    char *real = there ? ox_path_real(path) : NULL;
    ox_free(path);
    if (!real) return there ? no_memory(err) : OX_OK;
    for (size_t i = 0; i < found->n; i++)
        if (!strcmp(found->p[i], real)) {
            ox_free(real);
            return OX_OK;
        }
    return add(found, real, err);
}

static ox_status look_in(paths *found, const char *site, const ox_find_what *what, ox_err *err)
{
    char **names = NULL;
    size_t n = 0;
    const ox_str stem = ox_str_of(what->stem);
    char *dir = ox_path_join(site, what->folder);
    if (!dir) return no_memory(err);
    ox_status st = list_if_there(&names, &n, dir, err);
    for (size_t i = 0; !st && i < n; i++) {
        const ox_str name = ox_str_of(names[i]);
        if (ox_str_starts(name, stem) && (name.n == stem.n || name.p[stem.n] == '.'))
            st = add_real(found, dir, names[i], err);
    }
    if (names) ox_dir_list_free(names, n);
    ox_free(dir);
    return st;
}

static ox_status look(paths *found, const ox_find_what *what, ox_err *err)
{
    static const char *const roots[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
    const char *root = NULL;
    paths sites = {0};
    for (size_t i = 0; i < OX_COUNT(roots) && !(root && *root); i++)
        root = ox_env(roots[i]);
    ox_status st = root && *root ? add_sites(&sites, root, "lib", "site-packages", err)
                                 : python_sites(&sites, err);
    for (size_t i = 0; !st && i < sites.n; i++)
        st = look_in(found, sites.p[i], what, err);
    paths_free(&sites);
    return st;
}

ox_status ox_find_library(char **path, const ox_find_what *what, ox_err *err)
{
    const char *exact = ox_env(what->env);
    paths found = {0};
    *path = NULL;
    if (exact && *exact) {
        if (!ox_path_is_file(exact))
            return OX_FAIL(err, OX_NO_DEVICE, "%s=%s: no such file; expected a %s (%s)", what->env,
                           exact, what->stem, what->needs);
        *path = ox_strdup_n(exact, strlen(exact));
        return *path ? OX_OK : no_memory(err);
    }
    ox_status st = look(&found, what, err);
    if (!st && found.n > 1)
        st = OX_FAIL(err, OX_NO_DEVICE, "%s is there twice: %s and %s; name one with %s",
                     what->name, found.p[0], found.p[1], what->env);
    if (!st) {
        *path = found.n ? found.p[0] : ox_strdup_n("", 0);
        if (found.n) found.p[0] = NULL;
        if (!*path) st = no_memory(err);
    }
    paths_free(&found);
    return st;
}

/* --- the file ------------------------------------------------------------------------------- */

enum {
    ELF_HEADER = 64,
    ELF_SEGMENT = 56,
    AT_CLASS = 4, /* 2 = 64 bits */
    AT_ORDER = 5, /* 1 = little-endian */
    AT_TYPE = 16, /* 3 = shared object */
    AT_MACHINE = 18,
    AT_SEGMENTS = 32,
    AT_SEGMENT_COUNT = 56,
    SEGMENT_OFFSET = 8,
    SEGMENT_BYTES = 32,
};

static uint64_t number(const uint8_t *p, int n)
{
    uint64_t v = 0;
    for (int i = n - 1; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

static const char *machine_name(uint64_t machine)
{
    static const struct {
        uint64_t machine;
        const char *name;
    } names[] = {{3, "x86"},       {40, "arm"},     {62, "x86-64"},
                 {183, "aarch64"}, {243, "risc-v"}, {22, "s390"}};
    for (size_t i = 0; i < OX_COUNT(names); i++)
        if (names[i].machine == machine) return names[i].name;
    return "an unknown machine";
}

static bool is_elf64(const ox_mapping *m)
{
    return m->n >= ELF_HEADER && !memcmp(m->bytes, "\177ELF", 4);
}

/* Class, byte order and machine of the running program. */
static ox_status own_header(uint8_t header[ELF_HEADER], ox_err *err)
{
    ox_mapping self = {0};
    OX_TRY(ox_mapping_open(&self, "/proc/self/exe", err));
    const bool good = is_elf64(&self);
    if (good) memcpy(header, self.bytes, ELF_HEADER);
    ox_mapping_close(&self);
    return good ? OX_OK : OX_FAIL(err, OX_FAILED, "/proc/self/exe is no ELF file");
}

/* Bytes that the loadable segments ask for; 0 = the table itself is outside the file. */
static uint64_t bytes_asked(const ox_mapping *m)
{
    const uint64_t at = number(m->bytes + AT_SEGMENTS, 8);
    const uint64_t n = number(m->bytes + AT_SEGMENT_COUNT, 2);
    uint64_t most = 0;
    if (at > m->n || n > (m->n - at) / ELF_SEGMENT) return 0;
    for (uint64_t i = 0; i < n; i++) {
        const uint8_t *s = m->bytes + at + i * ELF_SEGMENT;
        const uint64_t from = number(s + SEGMENT_OFFSET, 8), bytes = number(s + SEGMENT_BYTES, 8);
        const uint64_t end = from + bytes < from ? UINT64_MAX : from + bytes;
        if (number(s, 4) == 1 && end > most) most = end;
    }
    return most;
}

static ox_status check_elf(const ox_mapping *m, ox_err *err)
{
    uint8_t own[ELF_HEADER] = {0};
    OX_TRY(own_header(own, err));
    if (!is_elf64(m))
        return OX_FAIL(err, OX_NO_DEVICE,
                       "%s is damaged or no shared library (%zu bytes); install it again", m->path,
                       m->n);
    const uint64_t theirs = number(m->bytes + AT_MACHINE, 2), ours = number(own + AT_MACHINE, 2);
    if (theirs != ours || m->bytes[AT_CLASS] != own[AT_CLASS] ||
        m->bytes[AT_ORDER] != own[AT_ORDER])
        return OX_FAIL(err, OX_NO_DEVICE, "%s is for %s%s, this program for %s; install that one",
                       m->path, machine_name(theirs), m->bytes[AT_CLASS] == 1 ? " (32 bits)" : "",
                       machine_name(ours));
    if (number(m->bytes + AT_TYPE, 2) != 3)
        return OX_FAIL(err, OX_NO_DEVICE, "%s is no shared library; install it again", m->path);
    const uint64_t asked = bytes_asked(m);
    if (!asked || asked > m->n)
        return OX_FAIL(err, OX_NO_DEVICE,
                       "%s is damaged: it has %zu bytes and asks for %llu; install it again",
                       m->path, m->n, (unsigned long long)asked);
    return OX_OK;
}

ox_status ox_find_check(const char *path, ox_err *err)
{
    ox_mapping m = {0};
    ox_err why = OX_ERR_INIT;
    ox_status st = ox_mapping_open(&m, path, &why);
    if (st)
        return OX_FAIL(err, st == OX_NO_MEMORY ? st : OX_NO_DEVICE, "%s cannot be read: %s", path,
                       why.msg);
    st = check_elf(&m, err);
    ox_mapping_close(&m);
    return st;
}
