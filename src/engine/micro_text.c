/* micro_text.c - encoding and decoding with a tokenizer of 32 whole words. It says nothing about
 * byte-pair merges; it is here because the public table has it. */
#include "engine/micro.h"

#include "base/mem.h"
#include "base/vec.h"
#include "text/tokenizer.h"

static const char *const words[32] = {
    "<pad>", "<unk>", "<bos>", "<eos>", "the",   "quick", "brown", "fox", "jumps", "over", "lazy",
    "dog",   ".",     "hello", "world", "a",     "b",     "c",     "d",   "e",     "one",  "two",
    "three", "red",   "green", "blue",  "small", "large", "and",   "or",  "not",   "is"};

typedef struct text_case {
    ox_tokenizer *tok;
    ox_buf text, out;
    ox_ids ids, got;
} text_case;

static void text_close(void *state)
{
    text_case *s = state;
    ox_tokenizer_close(&s->tok);
    ox_buf_deinit(&s->text);
    ox_buf_deinit(&s->out);
    ox_vec_deinit(&s->ids);
    ox_vec_deinit(&s->got);
    ox_free(s);
}

static void put_file(ox_buf *b)
{
    ox_buf_put_z(b, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[");
    for (int i = 0; i < 4; i++)
        ox_buf_printf(b,
                      "%s{\"id\":%d,\"content\":\"%s\",\"single_word\":false,\"lstrip\":false,"
                      "\"rstrip\":false,\"normalized\":false,\"special\":true}",
                      i ? "," : "", i, words[i]);
    ox_buf_put_z(b, "],\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"Whitespace\"},"
                    "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":["
                    "{\"SpecialToken\":{\"id\":\"<bos>\",\"type_id\":0}},"
                    "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},"
                    "{\"SpecialToken\":{\"id\":\"<eos>\",\"type_id\":0}}],"
                    "\"pair\":[{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},"
                    "{\"Sequence\":{\"id\":\"B\",\"type_id\":1}}],\"special_tokens\":{"
                    "\"<bos>\":{\"id\":\"<bos>\",\"ids\":[2],\"tokens\":[\"<bos>\"]},"
                    "\"<eos>\":{\"id\":\"<eos>\",\"ids\":[3],\"tokens\":[\"<eos>\"]}}},"
                    "\"decoder\":null,\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"<unk>\","
                    "\"vocab\":{");
    for (size_t i = 0; i < OX_COUNT(words); i++)
        ox_buf_printf(b, "%s\"%s\":%zu", i ? "," : "", words[i], i);
    ox_buf_put_z(b, "}}}");
}

static ox_status encode(ox_micro_case *c, ox_err *err)
{
    text_case *s = c->state;
    s->got.n = 0;
    return ox_tokenizer_encode(s->tok, ox_buf_view(&s->text), 0, &s->got, err);
}

static ox_status decode(ox_micro_case *c, ox_err *err)
{
    text_case *s = c->state;
    ox_buf_clear(&s->out);
    OX_TRY(ox_tokenizer_decode(s->tok, s->ids.p, s->ids.n, false, &s->out, err));
    return s->out.failed ? OX_FAIL(err, OX_NO_MEMORY, "no memory for the decoded text") : OX_OK;
}

/* kind 0: a sentence of 10 tokens a times to ids; 1: those ids b times to text */
ox_status ox_micro_text(ox_micro_case *c, const micro_row *row, ox_err *err)
{
    ox_buf json = {0};
    text_case *s = c->state = ox_calloc(1, sizeof(*s));
    if (!s) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a micro-benchmark");
    c->close = text_close;
    put_file(&json);
    for (int32_t i = 0; i < row->a; i++)
        ox_buf_put_z(&s->text, "the quick brown fox jumps over the lazy dog. ");
    const ox_status st = json.failed || s->text.failed
                             ? OX_FAIL(err, OX_NO_MEMORY, "no memory for a micro-benchmark")
                             : ox_tokenizer_open(&s->tok, ox_buf_view(&json), OX_STR(""), err);
    ox_buf_deinit(&json);
    OX_TRY(st);
    OX_TRY(encode(c, err));
    if (s->got.n != (size_t)row->a * 10)
        return OX_FAIL(err, OX_FAILED, "%zu tokens, expected %d", s->got.n, row->a * 10);
    for (int32_t k = 0; k < row->b; k++)
        for (size_t i = 0; i < s->got.n; i++)
            if (!ox_vec_push(&s->ids, s->got.p[i]))
                return OX_FAIL(err, OX_NO_MEMORY, "no memory for a micro-benchmark");
    c->run = row->kind ? decode : encode;
    c->cost.unit = "token";
    c->cost.work = (double)(row->kind ? s->ids.n : s->got.n);
    return OX_OK;
}
