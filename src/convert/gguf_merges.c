/* gguf_merges.c - see gguf_merges.h. */
#include "convert/gguf_merges.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/vec.h"

#include <stdlib.h>

enum { LONGEST_CUT = 512, MAX_MERGES = 1 << 23 }; /* bytes of a token that is cut up */

void ox_gguf_spell(ox_str token, size_t id, bool respell, ox_buf *out)
{
    size_t n_spaces = 0;
    while (n_spaces < token.n && token.p[n_spaces] == ' ')
        n_spaces++;
    if (!token.n) {
        ox_buf_printf(out, "[EMPTY_%zu]", id);
    } else if (respell && n_spaces == token.n) {
        for (size_t i = 0; i < n_spaces; i++)
            ox_buf_put_z(out, "\xe2\x96\x81");
    } else {
        ox_buf_put_str(out, token);
    }
}

typedef struct merge {
    int32_t whole, left, right; /* ids */
    uint32_t n_left, n_right;   /* characters */
    double score;
    uint32_t order;
} merge;

typedef struct builder {
    ox_map ids; /* spelling -> id */
    ox_arena arena;
    ox_str *names; /* [n] spelling */
    OX_VEC(merge) merges;
} builder;

static void builder_deinit(builder *b)
{
    ox_map_deinit(&b->ids);
    ox_arena_deinit(&b->arena);
    ox_vec_deinit(&b->merges);
}

static ox_status no_memory(ox_err *err)
{
    return OX_FAIL(err, OX_NO_MEMORY, "out of memory for the merges of the tokenizer");
}

static ox_status builder_init(builder *b, const ox_gguf_vocab *v, bool respell, ox_err *err)
{
    ox_buf name = {0};
    b->names = ox_arena_take_n(&b->arena, v->n, sizeof(*b->names));
    bool ok = b->names && ox_map_reserve(&b->ids, v->n);
    for (size_t id = 0; ok && id < v->n; id++) {
        ox_buf_clear(&name);
        ox_gguf_spell(v->tokens[id], id, respell, &name);
        const char *copy = ox_arena_copy(&b->arena, name.p, name.n);
        b->names[id] = (ox_str){copy, name.n};
        ok = copy && !name.failed && ox_map_put(&b->ids, b->names[id], id);
    }
    ox_buf_deinit(&name);
    return ok ? OX_OK : no_memory(err);
}

static void put_pair(ox_json_writer *w, ox_str left, ox_str right)
{
    ox_json_begin_array(w);
    ox_json_put_str(w, left);
    ox_json_put_str(w, right);
    ox_json_end_array(w);
}

static bool is_known(const builder *b, ox_str whole, ox_str left, ox_str right)
{
    return ox_map_get(&b->ids, left, NULL) && ox_map_get(&b->ids, right, NULL) &&
           ox_map_get(&b->ids, whole, NULL);
}

ox_status ox_gguf_put_merges(ox_json_writer *w, const ox_gguf_vocab *v, ox_err *err)
{
    builder b = {0};
    ox_buf whole = {0};
    ox_status st = OX_OK;
    OX_TRY_GOTO(builder_init(&b, v, false, err));
    ox_json_put_key(w, "merges");
    ox_json_begin_array(w);
    for (size_t i = 0; i < v->n_merges; i++) {
        const ox_str m = v->merges[i];
        const size_t space = m.n ? ox_str_find(m, OX_STR(" "), 1) : SIZE_MAX;
        if (space == SIZE_MAX) continue;
        const ox_str left = {m.p, space}, right = {m.p + space + 1, m.n - space - 1};
        ox_buf_clear(&whole);
        ox_buf_put_str(&whole, left);
        ox_buf_put_str(&whole, right);
        if (is_known(&b, ox_buf_view(&whole), left, right)) put_pair(w, left, right);
    }
    ox_json_end_array(w);
    if (whole.failed) st = no_memory(err);
fail:
    ox_buf_deinit(&whole);
    builder_deinit(&b);
    return st;
}

static uint32_t n_chars(ox_str s)
{
    uint32_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
    return n;
}

static int compare_i64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Within one token: by the ids of the parts. */
static int by_parts(const void *pa, const void *pb)
{
    const merge *a = pa, *b = pb;
    const int left = compare_i64(a->left, b->left);
    return left ? left : compare_i64(a->right, b->right);
}

static int by_rank(const void *pa, const void *pb)
{
    const merge *a = pa, *b = pb;
    if (a->score > b->score || a->score < b->score) return a->score > b->score ? -1 : 1;
    if (a->n_left != b->n_left) return compare_i64(b->n_left, a->n_left);
    if (a->n_right != b->n_right) return compare_i64(b->n_right, a->n_right);
    return compare_i64(a->order, b->order);
}

static ox_status cut_token(builder *b, size_t id, double score, ox_err *err)
{
    const ox_str s = b->names[id];
    const size_t first = b->merges.n;
    if (s.n > LONGEST_CUT) return OX_OK;
    for (size_t i = 1; i < s.n; i++) {
        uint64_t left, right;
        if (((unsigned char)s.p[i] & 0xc0) == 0x80) continue;
        const ox_str a = {s.p, i}, c = {s.p + i, s.n - i};
        if (!ox_map_get(&b->ids, a, &left) || !ox_map_get(&b->ids, c, &right)) continue;
        const merge m = {
            (int32_t)id, (int32_t)left, (int32_t)right, n_chars(a), n_chars(c), score, 0};
        if (b->merges.n >= MAX_MERGES || !ox_vec_push(&b->merges, m)) return no_memory(err);
    }
    if (b->merges.n > first)
        qsort(b->merges.p + first, b->merges.n - first, sizeof(merge), by_parts);
    return OX_OK;
}

ox_status ox_gguf_put_merges_by_score(ox_json_writer *w, const ox_gguf_vocab *v, bool by_position,
                                      ox_err *err)
{
    builder b = {0};
    ox_status st = OX_OK;
    if (!v->scores && !by_position)
        return OX_FAIL(err, OX_BAD_FILE, "the tokenizer has neither merges nor scores");
    OX_TRY_GOTO(builder_init(&b, v, by_position, err));
    for (size_t id = 0; id < v->n; id++) {
        const double score = by_position ? -(double)id : (double)v->scores[id];
        OX_TRY_GOTO(cut_token(&b, id, score == score ? score : 0, err));
    }
    for (size_t i = 0; i < b.merges.n; i++)
        b.merges.p[i].order = (uint32_t)i;
    if (b.merges.n) qsort(b.merges.p, b.merges.n, sizeof(merge), by_rank);
    ox_json_put_key(w, "merges");
    ox_json_begin_array(w);
    for (size_t i = 0; i < b.merges.n; i++)
        put_pair(w, b.names[b.merges.p[i].left], b.names[b.merges.p[i].right]);
    ox_json_end_array(w);
fail:
    builder_deinit(&b);
    return st;
}
