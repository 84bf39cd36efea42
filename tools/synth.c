/* synth.c - writes models with random weights in the shapes of synth_shapes.def, for speed
 * measurements and tests: a Q4_0 GGUF file, or the ORT-GenAI folder that `oxgen convert` makes of
 * it.
 *
 * The same shape and seed give the same bytes whatever the number of threads: every block is a
 * function of (seed, tensor, block). Matrices have a standard deviation of about 1/sqrt(columns),
 * so that activations keep their size from layer to layer. The vocabulary is 256 bytes, three
 * control tokens, pairs of lower-case letters with their merges, and fillers. */
#include "base/cpu.h"
#include "base/fs.h"
#include "base/outfile.h"
#include "base/team.h"
#include "base/vec.h"
#include "file/gguf.h"
#include "oxgen/oxgen.h"
#include "tensor/half.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { TIED = 1, QKV_BIAS = 2, QK_NORM = 4, FUSED = 8, POST_NORMS = 16 };
enum { ALIGNMENT = 32, BLOCK = 32, BLOCK_BYTES = 18, STRIPE_BYTES = 1 << 18 };
enum { N_BYTES = 256, END_OF_TEXT = N_BYTES, TURN_START, TURN_END, FIRST_PAIR };
enum { FILE_TYPE_Q4_0 = 2, TOKEN_NORMAL = 1, TOKEN_CONTROL = 3 };

typedef struct shape {
    const char *name, *arch;
    int32_t n_layers, hidden, n_ff, n_heads, n_kv_heads, head_size, vocab, context, rotary;
    double theta, epsilon;
    int32_t window;
    unsigned flags;
} shape;

static const shape shapes[] = {
#define SYNTH_SHAPE(...) {__VA_ARGS__},
#include "synth_shapes.def"
#undef SYNTH_SHAPE
};

typedef enum part { MATRIX, GAMMA, BIAS } part;

typedef struct tensor {
    char name[48];
    part kind;
    int64_t rows, cols;
    size_t row_bytes;
    uint64_t offset; /* in the data part */
} tensor;

typedef struct model {
    const shape *shape;
    uint64_t seed;
    OX_VEC(tensor) tensors;
    uint64_t data_bytes;
    bool failed; /* memory was short */
} model;

static void add(model *m, part kind, int32_t layer, const char *name, int64_t rows, int64_t cols)
{
    tensor t = {.kind = kind, .rows = rows, .cols = cols, .offset = m->data_bytes};
    if (layer < 0)
        snprintf(t.name, sizeof t.name, "%s", name);
    else
        snprintf(t.name, sizeof t.name, "blk.%d.%s", layer, name);
    t.row_bytes = kind == MATRIX ? (size_t)cols / BLOCK * BLOCK_BYTES : (size_t)cols * 4;
    m->data_bytes += (uint64_t)rows * t.row_bytes;
    m->data_bytes = (m->data_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (!ox_vec_push(&m->tensors, t)) m->failed = true;
}

static void add_attention(model *m, int32_t l)
{
    const shape *s = m->shape;
    const int64_t q = (int64_t)s->n_heads * s->head_size,
                  kv = (int64_t)s->n_kv_heads * s->head_size;
    const struct {
        const char *weight, *bias;
        int64_t rows;
    } separate[] = {{"attn_q.weight", "attn_q.bias", q},
                    {"attn_k.weight", "attn_k.bias", kv},
                    {"attn_v.weight", "attn_v.bias", kv}},
      fused[] = {{"attn_qkv.weight", "attn_qkv.bias", q + 2 * kv}};
    const bool is_fused = s->flags & FUSED;
    add(m, GAMMA, l, "attn_norm.weight", 1, s->hidden);
    for (size_t i = 0; i < (is_fused ? OX_COUNT(fused) : OX_COUNT(separate)); i++) {
        const char *weight = is_fused ? fused[i].weight : separate[i].weight;
        const char *bias = is_fused ? fused[i].bias : separate[i].bias;
        const int64_t rows = is_fused ? fused[i].rows : separate[i].rows;
        add(m, MATRIX, l, weight, rows, s->hidden);
        if (s->flags & QKV_BIAS) add(m, BIAS, l, bias, 1, rows);
    }
    if (s->flags & QK_NORM) {
        add(m, GAMMA, l, "attn_q_norm.weight", 1, s->head_size);
        add(m, GAMMA, l, "attn_k_norm.weight", 1, s->head_size);
    }
    add(m, MATRIX, l, "attn_output.weight", s->hidden, q);
    if (s->flags & POST_NORMS) add(m, GAMMA, l, "post_attention_norm.weight", 1, s->hidden);
}

static void add_mlp(model *m, int32_t l)
{
    const shape *s = m->shape;
    add(m, GAMMA, l, "ffn_norm.weight", 1, s->hidden);
    if (s->flags & FUSED) {
        add(m, MATRIX, l, "ffn_up.weight", 2 * (int64_t)s->n_ff, s->hidden);
    } else {
        add(m, MATRIX, l, "ffn_gate.weight", s->n_ff, s->hidden);
        add(m, MATRIX, l, "ffn_up.weight", s->n_ff, s->hidden);
    }
    add(m, MATRIX, l, "ffn_down.weight", s->hidden, s->n_ff);
    if (s->flags & POST_NORMS) add(m, GAMMA, l, "post_ffw_norm.weight", 1, s->hidden);
}

static void add_tensors(model *m)
{
    const shape *s = m->shape;
    add(m, MATRIX, -1, "token_embd.weight", s->vocab, s->hidden);
    for (int32_t l = 0; l < s->n_layers; l++) {
        add_attention(m, l);
        add_mlp(m, l);
    }
    add(m, GAMMA, -1, "output_norm.weight", 1, s->hidden);
    if (!(s->flags & TIED)) add(m, MATRIX, -1, "output.weight", s->vocab, s->hidden);
}

/* ---- random bytes ---- */

/* splitmix64: a counter in, 64 well-mixed bits out. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Sixteen random nibbles of 1 to 15 around 8: code 0 becomes 8, so that the mean is zero. */
static uint64_t nibbles(uint64_t x)
{
    const uint64_t ones = 0x1111111111111111u;
    return x | (~(x | x >> 1 | x >> 2 | x >> 3) & ones) << 3;
}

static void fill_blocks(uint8_t *out, size_t n_blocks, uint64_t counter, const uint16_t scales[16])
{
    for (size_t i = 0; i < n_blocks; i++, out += BLOCK_BYTES) {
        const uint64_t at = counter + 2 * i;
        const uint64_t raw = mix(at), low = nibbles(raw), high = nibbles(mix(at + 1));
        memcpy(out, &scales[mix(raw) & 15], 2);
        memcpy(out + 2, &low, 8);
        memcpy(out + 10, &high, 8);
    }
}

static void fill_floats(uint8_t *out, size_t n, uint64_t counter, float mean)
{
    for (size_t i = 0; i < n; i++, out += 4) {
        const float f = mean + ((float)(mix(counter + i) >> 40) * 0x1p-24f - 0.5f) * 0.4f;
        memcpy(out, &f, 4);
    }
}

/* Scales of 0.75 to 1.25 times what gives the codes (deviation 4.27) 1/sqrt(columns). */
static void scale_table(uint16_t out[16], int64_t cols)
{
    for (int i = 0; i < 16; i++)
        out[i] = ox_f32_to_f16((float)((0.75 + i / 30.0) / (4.27 * sqrt((double)cols))));
}

typedef struct filler {
    const model *m;
    const ox_outfile *file;
    uint64_t data_at;
    ox_status st[OX_TEAM_MAX];
    ox_err err[OX_TEAM_MAX];
} filler;

/* Rows [begin, end) of a tensor into the file. */
static ox_status fill_rows(const filler *f, const tensor *t, uint8_t *buf, int64_t begin,
                           int64_t end, ox_err *err)
{
    const uint64_t base = mix(f->m->seed) ^ mix((uint64_t)(t - f->m->tensors.p) + 1) << 1;
    const size_t bytes = (size_t)(end - begin) * t->row_bytes;
    if (t->kind == MATRIX) {
        uint16_t scales[16];
        const uint64_t blocks = (uint64_t)t->cols / BLOCK;
        scale_table(scales, t->cols);
        fill_blocks(buf, bytes / BLOCK_BYTES, base + 2 * blocks * (uint64_t)begin, scales);
    } else {
        fill_floats(buf, (size_t)t->cols, base, t->kind == GAMMA ? 1.0f : 0.0f);
    }
    const uint64_t at = f->data_at + t->offset + (uint64_t)begin * t->row_bytes;
    return ox_outfile_write_at(f->file, at, buf, bytes, err);
}

static void fill_job(void *user, int i_worker, int n_workers)
{
    filler *f = user;
    ox_err *err = &f->err[i_worker];
    size_t buf_bytes = STRIPE_BYTES;
    uint64_t i_stripe = 0;
    for (size_t i = 0; i < f->m->tensors.n; i++)
        if (f->m->tensors.p[i].row_bytes > buf_bytes) buf_bytes = f->m->tensors.p[i].row_bytes;
    uint8_t *buf = ox_alloc(buf_bytes);
    if (!buf) f->st[i_worker] = OX_FAIL(err, OX_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < f->m->tensors.n && !f->st[i_worker]; i++) {
        const tensor *t = &f->m->tensors.p[i];
        const int64_t step = (int64_t)(buf_bytes / t->row_bytes);
        for (int64_t r = 0; r < t->rows && !f->st[i_worker]; r += step) {
            if ((int)(i_stripe++ % (uint64_t)n_workers) != i_worker) continue;
            const int64_t end = r + step < t->rows ? r + step : t->rows;
            f->st[i_worker] = fill_rows(f, t, buf, r, end, err);
        }
    }
    ox_free(buf);
}

/* ---- the head of the file ---- */

static void put_u32(ox_buf *b, uint32_t v)
{
    ox_buf_put(b, &v, 4);
}

static void put_u64(ox_buf *b, uint64_t v)
{
    ox_buf_put(b, &v, 8);
}

static void put_str(ox_buf *b, const char *z)
{
    put_u64(b, strlen(z));
    ox_buf_put_z(b, z);
}

typedef struct keys {
    ox_buf b;
    uint32_t n;
    const char *arch;
} keys;

/* ".x" stands below the architecture's name. */
static void put_key(keys *k, const char *name, ox_gguf_type type)
{
    char key[96];
    snprintf(key, sizeof key, "%s%s", name[0] == '.' ? k->arch : "", name);
    put_str(&k->b, key);
    put_u32(&k->b, (uint32_t)type);
    k->n++;
}

static void put_int(keys *k, const char *name, int32_t v)
{
    put_key(k, name, OX_GGUF_U32);
    put_u32(&k->b, (uint32_t)v);
}

static void put_float(keys *k, const char *name, double v)
{
    put_key(k, name, OX_GGUF_F32);
    put_u32(&k->b, ox_f32_bits((float)v));
}

static void put_text(keys *k, const char *name, const char *text)
{
    put_key(k, name, OX_GGUF_STRING);
    put_str(&k->b, text);
}

static void put_array(keys *k, const char *name, ox_gguf_type item, uint64_t n)
{
    put_key(k, name, OX_GGUF_ARRAY);
    put_u32(&k->b, (uint32_t)item);
    put_u64(&k->b, n);
}

static void put_sizes(keys *k, const shape *s)
{
    put_text(k, "general.architecture", s->arch);
    put_text(k, "general.name", "random weights");
    put_int(k, "general.file_type", FILE_TYPE_Q4_0);
    put_int(k, "general.quantization_version", 2);
    put_int(k, ".block_count", s->n_layers);
    put_int(k, ".context_length", s->context);
    put_int(k, ".embedding_length", s->hidden);
    put_int(k, ".feed_forward_length", s->n_ff);
    put_int(k, ".attention.head_count", s->n_heads);
    put_int(k, ".attention.head_count_kv", s->n_kv_heads);
    put_int(k, ".attention.key_length", s->head_size);
    put_int(k, ".attention.value_length", s->head_size);
    put_float(k, ".attention.layer_norm_rms_epsilon", s->epsilon);
    put_int(k, ".rope.dimension_count", s->rotary);
    put_float(k, ".rope.freq_base", s->theta);
    put_int(k, ".vocab_size", s->vocab);
    if (s->window) put_int(k, ".attention.sliding_window", s->window);
}

/* The code point that byte-level vocabularies write a byte as, in UTF-8. */
static void byte_text(char out[8], int byte)
{
    int other = 0;
    for (int b = 0; b <= byte; b++) {
        const bool is_itself = (b > 32 && b < 127) || (b > 160 && b != 173);
        if (b == byte && is_itself) other = -1;
        if (b < byte && !is_itself) other++;
    }
    const int c = other < 0 ? byte : 256 + other;
    if (c < 128)
        snprintf(out, 8, "%c", c);
    else
        snprintf(out, 8, "%c%c", (char)(0xc0 | c >> 6), (char)(0x80 | (c & 63)));
}

static bool is_pair(int32_t id)
{
    return id >= FIRST_PAIR && id < FIRST_PAIR + 26 * 26;
}

static void put_tokens(keys *k, const shape *s)
{
    static const char *const controls[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
    put_array(k, "tokenizer.ggml.tokens", OX_GGUF_STRING, (uint64_t)s->vocab);
    for (int32_t id = 0; id < s->vocab; id++) {
        char text[24];
        const int32_t pair = id - FIRST_PAIR;
        if (id < N_BYTES)
            byte_text(text, id);
        else if (id < FIRST_PAIR)
            snprintf(text, sizeof text, "%s", controls[id - N_BYTES]);
        else if (is_pair(id))
            snprintf(text, sizeof text, "%c%c", 'a' + pair / 26, 'a' + pair % 26);
        else
            snprintf(text, sizeof text, "<%d>", id);
        put_str(&k->b, text);
    }
    put_array(k, "tokenizer.ggml.token_type", OX_GGUF_I32, (uint64_t)s->vocab);
    for (int32_t id = 0; id < s->vocab; id++)
        put_u32(&k->b, id >= N_BYTES && id < FIRST_PAIR ? TOKEN_CONTROL : TOKEN_NORMAL);
    const int32_t last = s->vocab < FIRST_PAIR + 26 * 26 ? s->vocab : FIRST_PAIR + 26 * 26;
    put_array(k, "tokenizer.ggml.merges", OX_GGUF_STRING, (uint64_t)(last - FIRST_PAIR));
    for (int32_t pair = 0; pair < last - FIRST_PAIR; pair++) {
        char text[8];
        snprintf(text, sizeof text, "%c %c", 'a' + pair / 26, 'a' + pair % 26);
        put_str(&k->b, text);
    }
}

static void put_tokenizer(keys *k, const shape *s)
{
    put_text(k, "tokenizer.ggml.model", "gpt2");
    put_text(k, "tokenizer.ggml.pre", "gpt-2");
    put_tokens(k, s);
    put_int(k, "tokenizer.ggml.bos_token_id", END_OF_TEXT);
    put_int(k, "tokenizer.ggml.eos_token_id", END_OF_TEXT);
    put_key(k, "tokenizer.ggml.add_bos_token", OX_GGUF_BOOL);
    ox_buf_put_c(&k->b, 0);
    put_text(k, "tokenizer.chat_template",
             "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
             "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}");
}

static void put_head(ox_buf *out, const model *m)
{
    const shape *s = m->shape;
    keys k = {.arch = s->arch};
    put_sizes(&k, s);
    put_tokenizer(&k, s);
    ox_buf_put(out, "GGUF", 4);
    put_u32(out, 3);
    put_u64(out, m->tensors.n);
    put_u64(out, k.n);
    ox_buf_put_str(out, ox_buf_view(&k.b));
    for (size_t i = 0; i < m->tensors.n; i++) {
        const tensor *t = &m->tensors.p[i];
        const bool is_matrix = t->kind == MATRIX;
        put_str(out, t->name);
        put_u32(out, is_matrix ? 2 : 1);
        put_u64(out, (uint64_t)t->cols);
        if (is_matrix) put_u64(out, (uint64_t)t->rows);
        put_u32(out, is_matrix ? 2 : 0); /* Q4_0, F32 */
        put_u64(out, t->offset);
    }
    while (out->n % ALIGNMENT && !out->failed)
        ox_buf_put_c(out, 0);
    out->failed |= k.b.failed;
    ox_buf_deinit(&k.b);
}

static ox_status write_data(const model *m, const ox_outfile *file, uint64_t data_at, int n_threads,
                            ox_err *err)
{
    ox_team *team = NULL;
    filler *f = ox_calloc(1, sizeof *f);
    ox_status st = f ? OX_OK : OX_FAIL(err, OX_NO_MEMORY, "out of memory");
    if (!st) st = ox_team_open(&team, n_threads, err);
    if (!st) {
        f->m = m;
        f->file = file;
        f->data_at = data_at;
        ox_team_run(team, fill_job, f);
        for (int i = 0; i < ox_team_size(team) && !st; i++)
            if (f->st[i]) st = OX_FAIL(err, f->st[i], "%s", f->err[i].msg);
    }
    ox_team_close(&team);
    ox_free(f);
    return st;
}

/* Not synced: a file that a power cut loses is made again in seconds. */
static ox_status write_gguf(const shape *s, const char *path, uint64_t seed, int n_threads,
                            ox_err *err)
{
    model m = {.shape = s, .seed = seed};
    ox_outfile file = OX_OUTFILE_INIT;
    ox_buf head = {0}, partial = {0};
    ox_status st = OX_OK;
    add_tensors(&m);
    put_head(&head, &m);
    ox_buf_printf(&partial, "%s.part", path);
    if (m.failed || head.failed || partial.failed) st = OX_FAIL(err, OX_NO_MEMORY, "out of memory");
    if (st) goto fail;
    OX_TRY_GOTO(ox_outfile_open(&file, partial.p, false, err));
    OX_TRY_GOTO(ox_outfile_resize(&file, head.n + m.data_bytes, err));
    OX_TRY_GOTO(ox_outfile_write_at(&file, 0, head.p, head.n, err));
    OX_TRY_GOTO(write_data(&m, &file, head.n, n_threads, err));
    OX_TRY_GOTO(ox_path_move(partial.p, path, err));
fail:
    ox_outfile_abandon(&file);
    if (st && partial.p) ox_file_remove(partial.p);
    ox_vec_deinit(&m.tensors);
    ox_buf_deinit(&head);
    ox_buf_deinit(&partial);
    return st;
}

static ox_status write_folder(const shape *s, const char *dir, const char *accuracy, uint64_t seed,
                              int n_threads, ox_err *err)
{
    ox_convert_options o;
    ox_buf gguf = {0};
    char *report = NULL;
    ox_status st;
    ox_convert_options_init(&o);
    o.accuracy = accuracy ? (int32_t)strtol(accuracy, NULL, 10) : 4;
    ox_buf_printf(&gguf, "%s.synth.gguf", dir);
    if (gguf.failed) return OX_FAIL(err, OX_NO_MEMORY, "out of memory");
    OX_TRY_GOTO(write_gguf(s, gguf.p, seed, n_threads, err));
    OX_TRY_GOTO(ox_convert(gguf.p, dir, &o, &report, err));
fail:
    ox_file_remove(gguf.p);
    ox_release(report);
    ox_buf_deinit(&gguf);
    return st;
}

static const shape *find_shape(const char *name)
{
    for (size_t i = 0; i < OX_COUNT(shapes); i++)
        if (!strcmp(shapes[i].name, name)) return &shapes[i];
    return NULL;
}

static int usage(void)
{
    fprintf(stderr, "usage: synth SHAPE -o FILE.gguf|FOLDER [--seed N] [--threads N] "
                    "[--accuracy 0..4]\nshapes:");
    for (size_t i = 0; i < OX_COUNT(shapes); i++)
        fprintf(stderr, " %s", shapes[i].name);
    fprintf(stderr, "\n");
    return 2;
}

int main(int argc, char **argv)
{
    const char *out = NULL, *seed = "1", *threads = NULL, *accuracy = NULL, *name = NULL;
    const struct {
        const char *flag, **value;
    } flags[] = {
        {"-o", &out}, {"--seed", &seed}, {"--threads", &threads}, {"--accuracy", &accuracy}};
    for (int i = 1; i < argc; i++) {
        size_t f = 0;
        while (f < OX_COUNT(flags) && strcmp(argv[i], flags[f].flag))
            f++;
        if (f < OX_COUNT(flags) && i + 1 < argc)
            *flags[f].value = argv[++i];
        else if (argv[i][0] != '-' && !name)
            name = argv[i];
        else
            return usage();
    }
    const shape *s = name ? find_shape(name) : NULL;
    if (!s || !out) return usage();
    const int n = threads ? (int)strtol(threads, NULL, 10) : ox_cpu_count();
    const uint64_t seed_number = strtoull(seed, NULL, 10);
    ox_err err = OX_ERR_INIT;
    const ox_status st = ox_str_ends(ox_str_of(out), OX_STR(".gguf"))
                             ? write_gguf(s, out, seed_number, n, &err)
                             : write_folder(s, out, accuracy, seed_number, n, &err);
    if (st) fprintf(stderr, "synth: %s\n", err.msg);
    return st ? 1 : 0;
}
