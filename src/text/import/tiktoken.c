/* tiktoken.c - files of lines "base64 rank": the bytes of a token and its place, which is its id
 * and at the same time the rank of every merge that makes it. The pattern that cuts text is not in
 * the file; tokenizer_config.json tells it by the name of a class. */
#include "base/mem.h"
#include "base/vec.h"
#include "convert/gguf_vocab.h"
#include "text/import/import.h"
#include "text/tok/tok_internal.h"

typedef struct token {
    size_t at, n; /* in the bytes */
    uint32_t rank;
} token;

typedef struct tokens {
    OX_VEC(token) list;
    ox_buf bytes;
} tokens;

/* The next line; false at the end. */
static bool next_line(ox_str *rest, ox_str *line)
{
    if (!rest->n) return false;
    const size_t end = ox_str_find(*rest, OX_STR("\n"), 0);
    *line = (ox_str){rest->p, end == SIZE_MAX ? rest->n : end};
    const size_t used = end == SIZE_MAX ? rest->n : end + 1;
    *rest = (ox_str){rest->p + used, rest->n - used};
    if (line->n && line->p[line->n - 1] == '\r') line->n--;
    return true;
}

static bool split_line(ox_str line, ox_str *base64, uint64_t *rank)
{
    const size_t space = ox_str_find(line, OX_STR(" "), 0);
    if (space == SIZE_MAX || !space || line.n - space > 11) return false;
    *base64 = (ox_str){line.p, space};
    return ox_str_to_u64((ox_str){line.p + space + 1, line.n - space - 1}, rank);
}

bool ox_tok_is_tiktoken(ox_str file)
{
    ox_str rest = file, line, base64;
    uint64_t rank;
    ox_buf bytes = {0};
    if (!next_line(&rest, &line) || line.n > 4096) return false;
    const bool is = split_line(line, &base64, &rank) && ox_base64_read(base64, &bytes);
    ox_buf_deinit(&bytes);
    return is;
}

static ox_status read_tokens(ox_str file, tokens *t, ox_err *err)
{
    ox_str line, base64;
    for (size_t n = 1; next_line(&file, &line); n++) {
        uint64_t rank = 0;
        const size_t at = t->bytes.n;
        if (!line.n) continue;
        if (!split_line(line, &base64, &rank) || !ox_base64_read(base64, &t->bytes) ||
            t->bytes.n == at || rank >= OX_IMPORT_MAX_TOKENS ||
            t->bytes.n - at > OX_TOK_MAX_CONTENT)
            return OX_FAIL(err, OX_BAD_FILE,
                           "line %zu is not a token in base64, a space and a rank below %d", n,
                           (int)OX_IMPORT_MAX_TOKENS);
        if (t->bytes.failed || !ox_vec_push(&t->list, (token){at, t->bytes.n - at, (uint32_t)rank}))
            return OX_FAIL(err, OX_NO_MEMORY, "out of memory for a tokenizer");
    }
    return OX_OK;
}

static void put_model(ox_json_writer *w, const tokens *t)
{
    ox_buf name = {0};
    size_t n = 0;
    ox_tokj_begin(w, "BPE");
    ox_tokj_flag(w, "ignore_merges", true);
    ox_json_put_key(w, "vocab");
    ox_json_begin_object(w);
    for (size_t i = 0; i < t->list.n; i++) {
        const token *k = &t->list.p[i];
        ox_buf_clear(&name);
        ox_bytes_to_chars((ox_str){t->bytes.p + k->at, k->n}, &name);
        ox_json_put_key_str(w, ox_buf_view(&name));
        ox_json_put_u64(w, k->rank);
        n = k->rank >= n ? k->rank + 1u : n;
    }
    ox_json_end_object(w);
    ox_json_put_key(w, "merges");
    ox_json_begin_array(w);
    ox_json_end_array(w);
    ox_tokj_pair(w, "ranks", "by id");
    ox_json_end_object(w);
    if (name.failed) w->out->failed = true;
    ox_buf_deinit(&name);
}

static void put_split(ox_json_writer *w, const char *pattern)
{
    ox_tokj_begin(w, "Split");
    ox_json_put_key(w, "pattern");
    ox_json_begin_object(w);
    ox_tokj_pair(w, "Regex", pattern);
    ox_json_end_object(w);
    ox_tokj_pair(w, "behavior", "Isolated");
    ox_tokj_flag(w, "invert", false);
    ox_json_end_object(w);
}

static void put_file(ox_json_writer *w, const tokens *t, const char *split)
{
    const char *const *patterns = ox_gguf_split(split);
    ox_json_begin_object(w);
    ox_json_put_key(w, "pre_tokenizer");
    ox_tokj_begin(w, "Sequence");
    ox_json_put_key(w, "pretokenizers");
    ox_json_begin_array(w);
    for (; patterns && *patterns; patterns++)
        put_split(w, *patterns);
    ox_tokj_begin(w, "ByteLevel");
    ox_tokj_flag(w, "add_prefix_space", false);
    ox_tokj_flag(w, "use_regex", false);
    ox_json_end_object(w);
    ox_json_end_array(w);
    ox_json_end_object(w);
    ox_json_put_key(w, "decoder");
    ox_tokj_begin(w, "ByteLevel");
    ox_json_end_object(w);
    ox_json_put_key(w, "model");
    put_model(w, t);
    ox_json_end_object(w);
}

static ox_status split_of(ox_str config, const char **split, ox_err *err)
{
    static const char *const rows[][2] = {
#define OX_TIKTOKEN(name, split) {name, split},
#include "text/import/tiktoken.def"
#undef OX_TIKTOKEN
    };
    ox_arena arena = OX_ARENA_INIT;
    const ox_json *root = NULL;
    ox_status st = OX_OK;
    *split = rows[0][1];
    if (!config.n) return OX_OK;
    st = ox_json_parse_with(&root, &arena, config, OX_JSON_NONFINITE, err);
    const ox_str name = ox_json_str(ox_json_get(root, "tokenizer_class"));
    for (size_t i = 1; !st && i < OX_COUNT(rows); i++) {
        if (ox_str_is(name, rows[i][0])) *split = rows[i][1];
    }
    ox_arena_deinit(&arena);
    return st;
}

ox_status ox_tok_import_tiktoken(ox_str file, ox_str config, ox_buf *json, ox_err *err)
{
    tokens t = {.bytes = {0}};
    ox_json_writer w = {.out = json};
    const char *split;
    ox_status st = split_of(config, &split, err);
    if (!st) st = read_tokens(file, &t, err);
    if (!st) put_file(&w, &t, split);
    ox_vec_deinit(&t.list);
    ox_buf_deinit(&t.bytes);
    return st;
}
