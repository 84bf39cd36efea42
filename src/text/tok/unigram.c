/* unigram.c - the segmentation of a piece with the highest sum of scores (Viterbi over byte
 * positions). A character without a token of its own costs the lowest score less 10; neighbouring
 * unknowns are one. On ties the first found stays. */
#include "text/tok/tok_internal.h"
#include "text/unicode.h"

ox_status ox_unigram_read(ox_tokenizer *tok, const ox_json *json, ox_err *err);
ox_status ox_unigram_run(ox_tok_work *w, ox_str piece);

typedef struct node {
    double score;
    uint32_t from; /* where the best last token begins; UINT32_MAX = none yet */
    int32_t id;
} node;

static ox_status read_entry(ox_tokenizer *tok, const ox_json *pair, size_t i, bool hidden,
                            ox_err *err)
{
    const ox_json *token = ox_json_at(pair, 0), *score = ox_json_at(pair, 1);
    if (!ox_json_is(token, OX_JSON_STRING) || !ox_json_is(score, OX_JSON_NUMBER))
        return OX_FAIL(err, OX_BAD_FILE, "vocab[%zu] must be a token and a score", i);
    if (token->n > OX_TOK_MAX_CONTENT)
        return OX_FAIL(err, OX_LIMIT, "vocab[%zu] is longer than %d bytes", i,
                       (int)OX_TOK_MAX_CONTENT);
    OX_TRY(ox_vocab_put(&tok->vocab, ox_json_str(token), (int64_t)i, err));
    tok->scores[i] = ox_json_f64(score);
    if (!hidden && tok->scores[i] < tok->unk_score) tok->unk_score = tok->scores[i];
    if (!hidden && ox_json_str(token).n && !ox_trie_put(&tok->trie, ox_json_str(token), (int32_t)i))
        return OX_FAIL(err, OX_NO_MEMORY, "out of memory for a vocabulary");
    return OX_OK;
}

ox_status ox_unigram_read(ox_tokenizer *tok, const ox_json *json, ox_err *err)
{
    const ox_json *list;
    int64_t unk = -1;
    size_t bytes = 0;
    OX_TRY(ox_json_need(json, "vocab", OX_JSON_ARRAY, &list, err));
    const size_t n = ox_json_n(list);
    OX_TRY(ox_json_opt_i64(json, "unk_id", 0, (int64_t)n - 1, &unk, err));
    OX_TRY(ox_json_opt_bool(json, "byte_fallback", &tok->byte_fallback, err));
    for (size_t i = 0; i < n; i++)
        bytes += ox_json_str(ox_json_at(ox_json_at(list, i), 0)).n;
    OX_TRY(ox_vocab_init(&tok->vocab, n, bytes, err));
    tok->scores = ox_calloc(n, sizeof(*tok->scores));
    if (!tok->scores) return OX_FAIL(err, OX_NO_MEMORY, "out of memory for a vocabulary");
    tok->unk_score = (double)__builtin_inff();
    OX_TRY(ox_json_opt_bool(json, "single_precision", &tok->single_precision, err));
    const ox_json *hidden = ox_json_get(json, "hidden"); /* ids in order */
    for (size_t i = 0, h = 0; i < n; i++) {
        const bool is = ox_json_is_i64(ox_json_at(hidden, h)) &&
                        ox_json_i64(ox_json_at(hidden, h)) == (int64_t)i;
        OX_TRY(read_entry(tok, ox_json_at(list, i), i, is, err));
        h += is;
    }
    tok->unk_score -= 10;
    if (tok->single_precision) tok->unk_score = (double)(float)tok->unk_score;
    tok->unk = (int32_t)unk;
    tok->fuse_unk = true; /* always */
    return OX_OK;
}

static void relax(node *to, double score, size_t from, int32_t id, bool single)
{
    if (single) score = (double)(float)score;
    if (to->from != UINT32_MAX && !(score > to->score)) return;
    *to = (node){score, (uint32_t)from, id};
}

static ox_status forward(ox_tok_work *w, ox_str s, node *best)
{
    const ox_tokenizer *tok = w->tok;
    for (size_t at = 0; at < s.n;) {
        const size_t n_char = ox_utf8_length(s.p + at, s.n - at);
        bool single = false;
        uint32_t state = 0;
        for (size_t end = at; tok->trie.n_nodes && end < s.n;) {
            state = ox_trie_step(&tok->trie, state, (uint8_t)s.p[end++]);
            if (!state) break;
            const int32_t id = ox_trie_value(&tok->trie, state);
            if (id < 0) continue;
            relax(&best[end], tok->scores[id] + best[at].score, at, id, tok->single_precision);
            single = single || end - at == n_char;
        }
        if (!single) {
            if (tok->unk < 0)
                return OX_FAIL(w->err, OX_BAD_FILE,
                               "the text needs an unknown token, and the model "
                               "has no unk_id");
            relax(&best[at + n_char], tok->unk_score + best[at].score, at, tok->unk,
                  tok->single_precision);
        }
        at += n_char;
    }
    return OX_OK;
}

static bool put_token(ox_tok_work *w, ox_str s)
{
    const int32_t id = ox_vocab_find(&w->tok->vocab, s);
    if (id >= 0) return ox_ids_push(w->ids, id);
    if (w->tok->byte_fallback && ox_tok_put_bytes(w->tok, s, w->ids)) return true;
    return ox_ids_push(w->ids, w->tok->unk);
}

ox_status ox_unigram_run(ox_tok_work *w, ox_str piece)
{
    if (!ox_vec_grow(&w->paths, &w->paths_cap, piece.n + 1, sizeof(node)))
        return ox_tok_no_memory(w);
    node *best = w->paths;
    for (size_t i = 0; i <= piece.n; i++)
        best[i] = (node){0, UINT32_MAX, -1};
    OX_TRY(forward(w, piece, best));
    w->pieces.n = 0; /* borders, last first */
    for (size_t end = piece.n; end > 0; end = best[end].from) {
        const bool fuse = w->pieces.n && best[end].id == w->tok->unk &&
                          best[w->pieces.p[w->pieces.n - 1]].id == w->tok->unk;
        if (!fuse && !ox_ids_push(&w->pieces, (int32_t)end)) return ox_tok_no_memory(w);
    }
    size_t begin = 0;
    for (size_t i = w->pieces.n; i-- > 0;) {
        const size_t end = (size_t)w->pieces.p[i];
        if (!put_token(w, (ox_str){piece.p + begin, end - begin})) return ox_tok_no_memory(w);
        begin = end;
    }
    return OX_OK;
}
