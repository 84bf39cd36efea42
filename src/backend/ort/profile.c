/* profile.c - ONNX Runtime's profile as a table: time per operator type and per node. Its file is a
 * Chrome trace, one event a line; events of category Node named "<node>_kernel_time" count. */
#include "backend/ort/ort.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_NODES = 1 << 20, SHOWN_NODES = 40, LINE_MAX = 1 << 20 };

typedef struct tally {
    ox_str name, type; /* in the table's arena; of an operator type: type is empty */
    uint64_t calls;
    double us, bytes;
} tally;

typedef struct tallies {
    OX_VEC(tally) list;
    size_t hint; /* events of a run repeat: the next one is likely behind the last */
} tallies;

typedef struct table {
    ox_arena arena;
    tallies nodes, types;
    double us;
} table;

/* The entry of a name, made when it is new; NULL = no memory or too many. */
static tally *entry(tallies *t, ox_arena *arena, ox_str name, ox_str type)
{
    for (size_t i = 0; i < t->list.n; i++) {
        const size_t at = (t->hint + i) % t->list.n;
        if (!ox_str_eq(t->list.p[at].name, name)) continue;
        t->hint = at + 1;
        return &t->list.p[at];
    }
    const tally fresh = {.name = {ox_arena_copy(arena, name.p, name.n), name.n},
                         .type = {ox_arena_copy(arena, type.p, type.n), type.n}};
    if (!fresh.name.p || !fresh.type.p || t->list.n == MOST_NODES || !ox_vec_push(&t->list, fresh))
        return NULL;
    t->hint = t->list.n;
    return &t->list.p[t->list.n - 1];
}

/* The library writes numbers in args as strings. */
static double number(const ox_json *args, const char *key)
{
    const ox_json *v = ox_json_get(args, key);
    double f = 0;
    if (ox_json_is(v, OX_JSON_STRING)) return ox_str_to_f64(ox_json_str(v), &f) ? f : 0;
    return ox_json_f64(v);
}

static ox_status count(table *t, const ox_json *event, ox_err *err)
{
    const ox_str suffix = OX_STR("_kernel_time");
    ox_str name = ox_json_str(ox_json_get(event, "name"));
    if (!ox_str_is(ox_json_str(ox_json_get(event, "cat")), "Node") || !ox_str_ends(name, suffix))
        return OX_OK;
    name.n -= suffix.n;
    const ox_json *args = ox_json_get(event, "args");
    const ox_str type = ox_json_str(ox_json_get(args, "op_name"));
    tally *both[] = {entry(&t->nodes, &t->arena, name, type),
                     entry(&t->types, &t->arena, type, OX_STR(""))};
    const double us = ox_json_f64(ox_json_get(event, "dur"));
    t->us += us;
    for (size_t i = 0; i < OX_COUNT(both); i++) {
        if (!both[i]) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a profile");
        both[i]->calls++;
        both[i]->us += us;
        both[i]->bytes += number(args, "parameter_size") + number(args, "activation_size") +
                          number(args, "output_size");
    }
    return OX_OK;
}

static ox_status read_line(table *t, ox_str line, ox_err *err)
{
    const ox_json *event = NULL;
    ox_arena arena = OX_ARENA_INIT;
    while (line.n && (line.p[line.n - 1] == ',' || line.p[line.n - 1] == '\r'))
        line.n--;
    if (line.n < 2 || line.p[0] != '{' || line.n > LINE_MAX) return OX_OK;
    ox_status st = ox_json_parse(&event, &arena, line, NULL);
    if (st == OX_NO_MEMORY)
        OX_FAIL(err, st, "no memory for a profile");
    else
        st = st ? OX_OK : count(t, event, err); /* a line that was cut short is left out */
    ox_arena_deinit(&arena);
    return st;
}

static int slower_first(const void *a, const void *b)
{
    const double x = ((const tally *)a)->us, y = ((const tally *)b)->us;
    return x < y ? 1 : x > y ? -1 : 0;
}

static void put_list(const table *t, ox_buf *out, tallies *list, const char *head, size_t most)
{
    if (list->list.n) qsort(list->list.p, list->list.n, sizeof(tally), slower_first);
    ox_buf_printf(out, "%10s %7s %10s %9s %8s   %s\n", "ms", "share", "calls", "us/call", "GB/s",
                  head);
    for (size_t i = 0; i < list->list.n && i < most; i++) {
        const tally *y = &list->list.p[i];
        ox_buf_printf(out, "%10.3f %6.1f%% %10llu %9.1f %8.2f   %.*s", y->us / 1e3,
                      t->us > 0 ? 100 * y->us / t->us : 0, (unsigned long long)y->calls,
                      y->us / (double)y->calls, y->us > 0 ? y->bytes / y->us / 1e3 : 0,
                      OX_STR_ARGS(y->name));
        if (y->type.n) ox_buf_printf(out, " (%.*s)", OX_STR_ARGS(y->type));
        ox_buf_put_c(out, '\n');
    }
    if (list->list.n > most) ox_buf_printf(out, "%10s and %zu more\n", "", list->list.n - most);
}

ox_status ox_ort_profile_table(ox_buf *out, const char *path, ox_err *err)
{
    ox_mapping m = {0};
    table t = {.us = 0};
    OX_TRY(ox_mapping_open(&m, path, err));
    ox_status st = OX_OK;
    for (size_t at = 0; !st && at < m.n;) {
        const uint8_t *end = memchr(m.bytes + at, '\n', m.n - at);
        const size_t n = end ? (size_t)(end - m.bytes) - at : m.n - at;
        st = read_line(&t, (ox_str){(const char *)m.bytes + at, n}, err);
        at += n + 1;
    }
    if (!st) {
        ox_buf_printf(out,
                      "%.3f ms in operators of ONNX Runtime (GB/s: whole inputs and outputs, also "
                      "where only rows of them are touched)\n",
                      t.us / 1e3);
        put_list(&t, out, &t.types, "operator type", SIZE_MAX);
        put_list(&t, out, &t.nodes, "node", SHOWN_NODES);
        if (out->failed) st = OX_FAIL(err, OX_NO_MEMORY, "no memory for a profile");
    }
    ox_vec_deinit(&t.nodes.list);
    ox_vec_deinit(&t.types.list);
    ox_arena_deinit(&t.arena);
    ox_mapping_close(&m);
    return st;
}
