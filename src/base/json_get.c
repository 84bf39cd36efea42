/* json_get.c - lookup in a parsed tree and the typed getters that name the key path they missed. */
#include "base/json_internal.h"

#include "base/hash.h"

static const char *const kind_names[] = {"null",     "a boolean", "a number",
                                         "a string", "an array",  "an object"};

const char *ox_json_kind_name(const ox_json *node)
{
    return node ? kind_names[node->kind] : "missing";
}

const ox_json *ox_json_get_str(const ox_json *object, ox_str key)
{
    if (!ox_json_is(object, OX_JSON_OBJECT)) return NULL;
    const ox_json_member *m = object->u.members;
    if (object->n <= OX_JSON_INDEX_FROM) {
        for (size_t i = object->n; i-- > 0;) {
            if (ox_str_eq(ox_json_str(&m[i].key), key)) return &m[i].value;
        }
        return NULL;
    }
    const ox_json_index *index = (const ox_json_index *)(const void *)(m + object->n);
    const size_t mask = ox_json_index_size(object->n) - 1;
    const uint64_t h = ox_hash64(key.p ? key.p : "", key.n);
    for (size_t at = (size_t)h & mask; index[at].member; at = (at + 1) & mask) {
        const ox_json_member *hit = &m[index[at].member - 1];
        if (index[at].hash == (uint32_t)(h >> 32) && ox_str_eq(ox_json_str(&hit->key), key))
            return &hit->value;
    }
    return NULL;
}

const ox_json *ox_json_get(const ox_json *object, const char *key)
{
    return ox_json_get_str(object, ox_str_of(key));
}

const ox_json *ox_json_path(const ox_json *root, const char *path)
{
    const ox_json *node = root;
    while (node && *path) {
        const ox_str step = {path, strcspn(path, ".")};
        uint64_t i;
        if (node->kind == OX_JSON_ARRAY)
            node = ox_str_to_u64(step, &i) && i < node->n ? ox_json_at(node, (size_t)i) : NULL;
        else
            node = ox_json_get_str(node, step);
        path += step.n;
        if (*path == '.') path++;
    }
    return node;
}

static ox_status want(const ox_json *root, const char *path, ox_json_kind kind, bool needed,
                      const ox_json **out, ox_err *err)
{
    const ox_json *node = ox_json_path(root, path);
    *out = NULL;
    if (ox_json_is(node, kind)) {
        *out = node;
        return OX_OK;
    }
    if (!needed && ox_json_is_null(node)) return OX_OK;
    return OX_FAIL(err, OX_BAD_FILE, "\"%s\" must be %s, found %s", path, kind_names[kind],
                   node ? ox_json_kind_name(node) : "nothing");
}

static ox_status get_str(const ox_json *root, const char *path, bool needed, ox_str *out,
                         ox_err *err)
{
    const ox_json *node;
    OX_TRY(want(root, path, OX_JSON_STRING, needed, &node, err));
    if (node) *out = ox_json_str(node);
    return OX_OK;
}

/* A float that is a whole number counts: some exporters write 32.0 for 32. */
static ox_status get_i64(const ox_json *root, const char *path, bool needed, const int64_t range[2],
                         int64_t *out, ox_err *err)
{
    const ox_json *node;
    OX_TRY(want(root, path, OX_JSON_NUMBER, needed, &node, err));
    if (!node) return OX_OK;
    int64_t v = node->u.i;
    if (!node->is_int) {
        const double f = node->u.f;
        if (!(f >= -9e15 && f <= 9e15) || (double)(int64_t)f != f)
            return OX_FAIL(err, OX_BAD_FILE, "\"%s\" must be an integer, found %g", path, f);
        v = (int64_t)f;
    }
    if (v < range[0] || v > range[1])
        return OX_FAIL(err, OX_BAD_FILE, "\"%s\" must be between %lld and %lld, found %lld", path,
                       (long long)range[0], (long long)range[1], (long long)v);
    *out = v;
    return OX_OK;
}

static ox_status get_f64(const ox_json *root, const char *path, bool needed, double *out,
                         ox_err *err)
{
    const ox_json *node;
    OX_TRY(want(root, path, OX_JSON_NUMBER, needed, &node, err));
    if (node) *out = ox_json_f64(node);
    return OX_OK;
}

static ox_status get_bool(const ox_json *root, const char *path, bool needed, bool *out,
                          ox_err *err)
{
    const ox_json *node;
    OX_TRY(want(root, path, OX_JSON_BOOL, needed, &node, err));
    if (node) *out = node->truth;
    return OX_OK;
}

ox_status ox_json_need_str(const ox_json *root, const char *path, ox_str *out, ox_err *err)
{
    return get_str(root, path, true, out, err);
}

ox_status ox_json_need_i64(const ox_json *root, const char *path, int64_t lo, int64_t hi,
                           int64_t *out, ox_err *err)
{
    return get_i64(root, path, true, (const int64_t[2]){lo, hi}, out, err);
}

ox_status ox_json_need_f64(const ox_json *root, const char *path, double *out, ox_err *err)
{
    return get_f64(root, path, true, out, err);
}

ox_status ox_json_need_bool(const ox_json *root, const char *path, bool *out, ox_err *err)
{
    return get_bool(root, path, true, out, err);
}

ox_status ox_json_need(const ox_json *root, const char *path, ox_json_kind kind,
                       const ox_json **out, ox_err *err)
{
    return want(root, path, kind, true, out, err);
}

ox_status ox_json_opt_str(const ox_json *root, const char *path, ox_str *out, ox_err *err)
{
    return get_str(root, path, false, out, err);
}

ox_status ox_json_opt_i64(const ox_json *root, const char *path, int64_t lo, int64_t hi,
                          int64_t *out, ox_err *err)
{
    return get_i64(root, path, false, (const int64_t[2]){lo, hi}, out, err);
}

ox_status ox_json_opt_f64(const ox_json *root, const char *path, double *out, ox_err *err)
{
    return get_f64(root, path, false, out, err);
}

ox_status ox_json_opt_bool(const ox_json *root, const char *path, bool *out, ox_err *err)
{
    return get_bool(root, path, false, out, err);
}

ox_status ox_json_opt(const ox_json *root, const char *path, ox_json_kind kind, const ox_json **out,
                      ox_err *err)
{
    const ox_json *node;
    OX_TRY(want(root, path, kind, false, &node, err));
    if (node) *out = node;
    return OX_OK;
}
