/* chain.cu - the host's side of the chain: buffers, choice of rows, capture, tokens.
 *
 * Kernels: linear.cuh, attend.cuh, head.cuh; layouts: kernel/qlinear/cuda_pack.cuh and
 * kernel/attend/cuda_kv.cuh. A graph holds up to eight tokens; it ends with `advance`, which hands
 * the tokens to the host's pinned ring and moves the position, so launches follow each other
 * without the host. Graphs are kept by (tokens, splits). */
#include "backend/cuda/chain/rows.cuh"

#include <stdio.h>
#include <string.h>

/* ---- rows ---- */
#define Q KIND_Q
#define O KIND_O
#define G KIND_G
#define D KIND_D
static const linear_row linear_rows[N_LINEAR_ROWS] = {
#define OX_LINEAR_ROW(kinds, fold, pairs, window, ri, mode, warps, blocks, ctas)                   \
    {kinds, fold, pairs, window, ri, MODE_##mode, warps, ctas},
#include "backend/cuda/chain/linear.def"
#undef OX_LINEAR_ROW
};
#undef Q
#undef O
#undef G
#undef D
static const linear_fns *const linear_fns_of[LINEAR_KINDS] = {
    ox_chain_qkv_rows, ox_chain_o_rows, ox_chain_gate_rows, ox_chain_down_rows};

static_assert(sizeof(ox_dev_pack) == sizeof(ox_cuda_weight), "two names of one struct");
static_assert(sizeof(ox_chain_kv) == sizeof(ox_cuda_kv), "two names of one struct");
static ox_cuda_weight as_weight(const ox_dev_pack &p)
{
    ox_cuda_weight w;
    memcpy(&w, &p, sizeof w);
    return w;
}
static ox_cuda_kv as_cache(const ox_chain_kv &p)
{
    ox_cuda_kv c;
    memcpy(&c, &p, sizeof c);
    return c;
}

/* ---- the chain ---- */
typedef struct linear_plan {
    const void *fn, *fn_other; /* of the usual form; of qkv with embedding, of o with merging */
    int row, warps, tiles, groups, grid, shared;
} linear_plan;

enum { MAX_GRAPHS = 64 };
typedef struct chain_graph {
    int tokens, splits, loops;
    const attend_row *attend;
    cudaGraphExec_t exec;
} chain_graph;

struct ox_chain {
    ox_chain_model m;
    ox_chain_layer *layers;
    cudaStream_t stream;
    int sms, seq, store;
    chain_state st;
    int *base;
    u64 *sampling;
    char **table;
    int table_pages;
    void *memory;
    volatile u64 *ring; /* pinned, [RING]: position + 1 << 32 | token */
    u64 *ring_device;
    linear_plan linear[LINEAR_KINDS];
    const attend_row *attend_first, *attend_long; /* the latter for longer contexts, or NULL */
    const attend_row *attend;                     /* of the graph being captured or launched */
    const head_row *head;
    int attend_subs, attend_shared, head_shared, head_format;
    chain_graph graphs[MAX_GRAPHS];
    int n_graphs;
};

/* Hands the tokens of the graph to the host and moves on. */
static __global__ void advance(chain_state st, int *base, u64 *ring, int n)
{
    pdl_trigger();
    pdl_wait();
    const int from = *base;
    if ((int)threadIdx.x < n) {
        const int pos = from + (int)threadIdx.x;
        const u32 token = ~(u32)ld_dep_u64(st.best + (pos & (OX_CHAIN_RING - 1)));
        const u64 word = (u64)(u32)(pos + 1) << 32 | token;
        asm volatile("st.relaxed.sys.global.u64 [%0],%1;" ::"l"(ring + (pos & (OX_CHAIN_RING - 1))),
                     "l"(word)
                     : "memory");
    }
    __syncwarp();
    if (threadIdx.x == 0) *base = from + n;
}

static __global__ void set_start(chain_state st, int *base, u64 *sampling, int pos, u32 token,
                                 u64 invt, u64 seed)
{
    const int i = threadIdx.x;
    if (i < OX_CHAIN_RING) st.best[i] = i == ((pos - 1) & (OX_CHAIN_RING - 1)) ? (u32)~token : 0;
    if (i == 0) {
        *base = pos;
        sampling[0] = invt;
        sampling[1] = seed;
    }
}

static int fail(char *why, size_t n, const char *text)
{
    if (why && n) snprintf(why, n, "%s", text);
    return -1;
}
static int check(cudaError_t e, char *why, size_t n)
{
    return e == cudaSuccess ? 0 : fail(why, n, cudaGetErrorString(e));
}

static int log2i(int x)
{
    int n = 0;
    while (1 << (n + 1) <= x)
        n++;
    return n;
}

static int format_of(const ox_cuda_weight *w)
{
    return w->bits == 16 ? 0 : w->scale_f32 ? FORMAT_F32 : w->zero;
}

/* Does row r take phase `kind` of n_tiles x k_units? Fills warps, tiles, groups, grid. */
static bool accepts(int row, int kind, const ox_cuda_weight *w, int sms, int silu, linear_plan *p)
{
    const bool norm = kind == LINEAR_QKV || kind == LINEAR_GATE;
    const int f = format_of(w), s = kind != LINEAR_GATE || silu;
    const linear_row *r = &linear_rows[row];
    if (w->bits != 4 && w->bits != 8) return false;
    const linear_fns *fns = &linear_fns_of[kind][row];
    p->fn = fns->fn[w->bits == 8][f][s];
    p->fn_other = kind == LINEAR_QKV || kind == LINEAR_O ? fns->fn[w->bits == 8][f][0] : 0;
    if (!p->fn) return false;
    p->warps = (w->k_units + r->pairs * r->fold - 1) / (r->pairs * r->fold);
    if (p->warps > r->warps) return false;
    p->groups = r->fold == 1 ? (w->n_tiles + 1) / 2 : w->n_tiles;
    const int most = r->ctas && r->ctas < sms ? r->ctas : sms;
    p->tiles = (p->groups + most - 1) / most;
    if (r->fold == 2 && norm) p->tiles += p->tiles & 1;
    if (r->mode == MODE_WINDOW && p->tiles > r->window) return false;
    if (r->mode == MODE_WINDOW && p->tiles > p->warps * (r->fold == 2 && norm ? 2 : 1))
        return false;
    p->grid = (p->groups + p->tiles - 1) / p->tiles;
    /* sums of all warps there can be, whole epilogue groups of them (linear.cuh) */
    const int slots = r->mode == MODE_WINDOW ? r->window : p->tiles;
    p->shared = (r->warps + 3) / 4 * 4 * slots * (r->fold == 1 ? 16 : 8) * 4;
    return p->shared <= 200 * 1024;
}

static bool choose_linear(linear_plan *p, int kind, const ox_cuda_weight *w, int sms, int silu,
                          int force)
{
    for (int i = 0; i < N_LINEAR_ROWS; i++) {
        if (force >= 0 && i != force) continue;
        if (accepts(i, kind, w, sms, silu, p)) {
            p->row = i;
            return true;
        }
    }
    return false;
}

static bool same_shape(const ox_dev_pack *a, const ox_dev_pack *b)
{
    return a->n == b->n && a->k == b->k && a->bits == b->bits && a->block == b->block &&
           a->zero == b->zero && a->scale_f32 == b->scale_f32;
}

static int choose_rows(ox_chain *c, char *why, size_t n)
{
    const ox_chain_model *m = &c->m;
    const ox_chain_linear *of[4] = {&c->layers[0].qkv, &c->layers[0].o, &c->layers[0].gate_up,
                                    &c->layers[0].down};
    static const char *names[4] = {"qkv", "o", "gate", "down"};
    for (int k = 0; k < LINEAR_KINDS; k++) {
        if (of[k]->w.block < 32) return fail(why, n, "blocks below 32");
        const ox_cuda_weight w = as_weight(of[k]->w);
        if (!choose_linear(&c->linear[k], k, &w, c->sms, m->act == 0, m->force_rows[k])) {
            if (why)
                snprintf(why, n, "no row for phase %s of %d x %d at %d bits", names[k], of[k]->w.n,
                         of[k]->w.k, of[k]->w.bits);
            return -1;
        }
    }
    for (int l = 1; l < m->n_layers; l++) {
        const ox_chain_layer *a = &c->layers[0], *b = &c->layers[l];
        if (!same_shape(&a->qkv.w, &b->qkv.w) || !same_shape(&a->o.w, &b->o.w) ||
            !same_shape(&a->gate_up.w, &b->gate_up.w) || !same_shape(&a->down.w, &b->down.w) ||
            !a->q_norm != !b->q_norm)
            return fail(why, n, "layers differ in shape or format");
    }
    const int group = m->n_heads / m->n_kv_heads;
    /* a row that has room for the whole group, else one that shares it out among CTAs */
    const attend_row *const end = ox_chain_attend_rows + N_ATTEND_ROWS;
    for (int width = 8; width <= 1024 && !c->attend_first; width *= 128)
        for (const attend_row *r = ox_chain_attend_rows; r < end; r++) {
            const attend_row **to = r->from ? &c->attend_long : &c->attend_first;
            if (m->force_attend >= 0 && r != ox_chain_attend_rows + m->force_attend) continue;
            if (!*to && r->head_size == m->head_size && r->normed == (c->layers[0].q_norm != 0) &&
                (group <= width * r->halves || r->halves == 2))
                *to = r;
        }
    if (!c->attend_first) c->attend_first = c->attend_long;
    if (!c->attend_first) return fail(why, n, "no attention row for this head size and group");
    c->attend = c->attend_first;
    if (c->attend_long &&
        (c->attend_long->halves != c->attend->halves || c->attend_long->warps != c->attend->warps))
        c->attend_long = 0;
    const int wide = 8 * c->attend->halves;
    c->attend_subs = (group + wide - 1) / wide;
    c->attend_shared = c->attend->warps * (group < wide ? group : wide) * (m->head_size + 4) * 4;
    const ox_cuda_weight hw = as_weight(m->head.w);
    c->head_format = format_of(&hw);
    const int steps = m->head.w.k_units * (m->head.w.bits == 16 ? 4 : 1);
    int best = 1 << 30;
    for (const head_row *r = ox_chain_head_rows; r < ox_chain_head_rows + N_HEAD_ROWS; r++) {
        const int waste = (steps + r->ring - 1) / r->ring * r->ring - steps;
        if (r->bits != m->head.w.bits || !r->fn[c->head_format] || waste >= best) continue;
        best = waste;
        c->head = r;
    }
    if (!c->head) return fail(why, n, "no head row for this format");
    c->head_shared = m->head.w.bits == 16 ? ((steps + c->head->ring) * 4 + 4) * 16
                                          : (steps + c->head->ring) * 512;
    return 0;
}

static int allow_shared(const ox_chain_model *m, const void *fn, int bytes)
{
    if (!fn) return 0;
    /* one carve-out for all: a change of it drains the SM */
    return cudaFuncSetAttribute(fn, cudaFuncAttributePreferredSharedMemoryCarveout, m->carve) !=
               0 ||
           cudaFuncSetAttribute(fn, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) != 0;
}

static size_t place(size_t *at, size_t bytes)
{
    const size_t here = *at;
    *at += (bytes + 511) & ~(size_t)511;
    return here;
}

static int make_buffers(ox_chain *c, char *why, size_t n)
{
    const ox_chain_model *m = &c->m;
    const size_t copies = 4, width = (size_t)m->n_heads * m->head_size;
    const size_t qkv = width + 2 * (size_t)m->n_kv_heads * m->head_size;
    size_t at = 0;
    const size_t resid = place(&at, copies * m->hidden * 2), act = place(&at, copies * m->ffn * 2);
    const size_t q = place(&at, qkv * 2), o = place(&at, copies * OX_CHAIN_SPLITS * width * 2);
    const size_t ml = place(&at, copies * OX_CHAIN_SPLITS * m->n_heads * 8);
    const size_t logits = place(&at, (size_t)m->vocab * 2), best = place(&at, OX_CHAIN_RING * 8);
    const size_t base = place(&at, 64), table = place(&at, (size_t)c->table_pages * 8);
    char *p = 0;
    if (check(cudaMalloc(&c->memory, at), why, n)) return -1;
    if (check(cudaMemset(c->memory, 0, at), why, n) || check(cudaDeviceSynchronize(), why, n))
        return -1;
    p = (char *)c->memory;
    void *ring = 0;
    if (check(cudaHostAlloc(&ring, OX_CHAIN_RING * 8, cudaHostAllocMapped), why, n)) return -1;
    memset(ring, 0, OX_CHAIN_RING * 8);
    c->ring = (volatile u64 *)ring;
    if (check(cudaHostGetDevicePointer((void **)&c->ring_device, ring, 0), why, n)) return -1;
    c->base = (int *)(p + base);
    c->sampling = (u64 *)(p + base + 16);
    c->table = (char **)(p + table);
    chain_state s = {(__half *)(p + resid),
                     (__half *)(p + act),
                     (__half *)(p + q),
                     (__half *)(p + o),
                     (float2 *)(p + ml),
                     (__half *)(p + logits),
                     (u64 *)(p + best),
                     c->base,
                     c->table,
                     (const __half *)m->embedding,
                     c->sampling,
                     m->hidden,
                     m->ffn,
                     m->vocab,
                     4,
                     m->n_heads,
                     m->n_kv_heads,
                     m->head_size,
                     m->rotary,
                     m->interleaved,
                     m->act,
                     m->epsilon};
    c->st = s;
    return 0;
}

void ox_chain_close(ox_chain **chain)
{
    ox_chain *c = *chain;
    if (!c) return;
    for (int i = 0; i < c->n_graphs; i++)
        cudaGraphExecDestroy(c->graphs[i].exec);
    if (c->ring) cudaFreeHost((void *)c->ring);
    cudaFree(c->memory);
    *chain = 0;
}

static int shape_fits(const ox_chain_model *m, char *why, size_t n)
{
    if (m->n_layers < 1 || m->n_kv_heads < 1 || m->n_heads % m->n_kv_heads)
        return fail(why, n, "query heads are no multiple of the KV heads");
    if (m->hidden % 8 || m->ffn % 8 || m->head_size % 16)
        return fail(why, n, "widths are no multiples of 8 (head size: 16)");
    if (m->rotary % (m->interleaved ? 2 : 16) || m->rotary > m->head_size)
        return fail(why, n, "rotary width");
    if (m->layers[0].q_norm && !m->interleaved && m->rotary % 64)
        return fail(why, n, "rotary width with normed queries");
    return 0;
}

size_t ox_chain_bytes(int32_t n_layers)
{
    return sizeof(ox_chain) + (size_t)n_layers * sizeof(ox_chain_layer);
}

int ox_chain_open(ox_chain **out, void *memory, const ox_chain_model *m, void *stream, char *why,
                  size_t why_bytes)
{
    if (shape_fits(m, why, why_bytes)) return -1;
    ox_chain *c = (ox_chain *)memory;
    c->m = *m;
    c->stream = (cudaStream_t)stream;
    c->layers = (ox_chain_layer *)(c + 1);
    memcpy(c->layers, m->layers, sizeof *c->layers * (size_t)m->n_layers);
    c->m.layers = c->layers;
    c->table_pages = (m->max_positions + OX_CUDA_PAGE - 1) / OX_CUDA_PAGE + OX_CHAIN_SPLITS * 8;
    int device = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&c->sms, cudaDevAttrMultiProcessorCount, device);
    if (choose_rows(c, why, why_bytes) || make_buffers(c, why, why_bytes)) {
        ox_chain_close(&c);
        return -1;
    }
    bool bad = allow_shared(m, c->attend->fn[0], c->attend_shared) ||
               allow_shared(m, c->attend->fn[1], c->attend_shared) ||
               allow_shared(m, c->attend_long ? c->attend_long->fn[0] : 0, c->attend_shared) ||
               allow_shared(m, c->attend_long ? c->attend_long->fn[1] : 0, c->attend_shared) ||
               allow_shared(m, c->head->fn[c->head_format], c->head_shared);
    bad = bad || allow_shared(m, (const void *)advance, 0) || allow_shared(m, ox_chain_merge, 0);
    for (int k = 0; k < LINEAR_KINDS; k++)
        bad = bad || allow_shared(m, c->linear[k].fn, c->linear[k].shared) ||
              allow_shared(m, c->linear[k].fn_other, c->linear[k].shared);
    if (bad) {
        ox_chain_close(&c);
        return fail(why, why_bytes, "shared memory");
    }
    *out = c;
    return 0;
}

/* ---- launches ---- */
static int launch(ox_chain *c, const void *fn, dim3 grid, int threads, int shared, void **args)
{
    cudaLaunchConfig_t cfg = {};
    cudaLaunchAttribute at[1];
    at[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    at[0].val.programmaticStreamSerializationAllowed = c->m.plain ? 0 : 1;
    cfg.gridDim = grid;
    cfg.blockDim = dim3((unsigned)threads);
    cfg.dynamicSmemBytes = (size_t)shared;
    cfg.stream = c->stream;
    cfg.attrs = at;
    cfg.numAttrs = 1;
    return cudaLaunchKernelExC(&cfg, fn, args) != cudaSuccess;
}

static split_rule splits_of(const ox_chain *c, const ox_chain_layer *l, int splits, int loops)
{
    const attend_row *r = c->attend;
    split_rule s = {r->warps * 16 * r->groups * loops, l->window, splits};
    if (l->window > 0 && l->window / s.positions + 2 < splits) s.n = l->window / s.positions + 2;
    return s;
}

static int launch_linear(ox_chain *c, chain_state st, int kind, int layer, int step, split_rule s,
                         bool other)
{
    const ox_chain_layer *l = &c->layers[layer];
    const ox_chain_linear *x = kind == LINEAR_QKV    ? &l->qkv
                               : kind == LINEAR_O    ? &l->o
                               : kind == LINEAR_GATE ? &l->gate_up
                                                     : &l->down;
    const linear_plan *p = &c->linear[kind];
    linear_args a = {};
    a.w = as_weight(x->w);
    a.bias = x->bias;
    a.gamma = (const __half *)(kind == LINEAR_QKV ? l->norm1 : l->norm2);
    a.rotary = (const float2 *)l->rotary;
    a.sinks = l->sinks;
    a.kv = as_cache(l->kv);
    a.split = s;
    a.step = step;
    a.seq = c->seq++;
    a.tiles = p->tiles;
    a.groups = p->groups;
    a.shift = log2i(x->w.block);
    a.raw_qk = l->q_norm != 0;
    a.inv_hidden = 1.0f / (float)c->m.hidden;
    void *args[] = {&st, &a};
    return launch(c, other ? p->fn_other : p->fn, dim3((unsigned)p->grid), p->warps * 32, p->shared,
                  args);
}

static int launch_attend(ox_chain *c, chain_state st, int layer, int step, split_rule s, int loops,
                         bool merge)
{
    const ox_chain_layer *l = &c->layers[layer];
    attend_args a = {};
    a.kv = as_cache(l->kv);
    a.q_norm = (const __half *)l->q_norm;
    a.k_norm = (const __half *)l->k_norm;
    a.rotary = (const float2 *)l->rotary;
    a.split = s;
    a.scale = c->m.scale;
    a.softcap = c->m.attend_softcap;
    a.step = step;
    a.seq = c->seq++;
    a.loops = loops;
    a.copies = merge ? 1 : st.copies;
    void *args[] = {&st, &a, (void *)&l->sinks};
    const int bad = launch(c, c->attend->fn[loops > 1 || c->m.attend_softcap > 0.0f],
                           dim3((unsigned)(c->m.n_kv_heads * c->attend_subs), (unsigned)s.n),
                           c->attend->warps * 32, c->attend_shared, args);
    if (bad || !merge) return bad;
    return launch(c, ox_chain_merge, dim3((unsigned)c->m.n_heads), 128, 0, args);
}

static int launch_head(ox_chain *c, chain_state st, int step)
{
    head_args a = {};
    a.w = as_weight(c->m.head.w);
    a.gamma = (const __half *)c->m.norm;
    a.bias = c->m.head.bias;
    a.softcap = c->m.logit_softcap;
    a.step = step;
    a.seq = c->seq++;
    a.inv_hidden = 1.0f / (float)c->m.hidden;
    a.shift = log2i(a.w.block);
    a.store = c->store;
    void *args[] = {&st, &a};
    return launch(c, c->head->fn[c->head_format], dim3((unsigned)c->sms), c->head->warps * 32,
                  c->head_shared, args);
}

static int launch_tokens(ox_chain *c, int tokens, int splits, int loops)
{
    int bad = 0;
    chain_state st = c->st;
    st.copies = c->m.copies ? c->m.copies : c->m.hidden < 1024 && splits < 3 ? 1 : 4;
    c->seq = 0;
    for (int t = 0; t < tokens && !bad; t++) {
        for (int l = 0; l < c->m.n_layers && !bad; l++) {
            const split_rule s = splits_of(c, &c->layers[l], splits, loops);
            const int skip = c->m.skip;
            /* one split needs no merging, few are merged by o, many by a phase of their own */
            const bool merge = s.n >= c->m.merge_from;
            const bool by_o = !merge && (s.n > 1 || c->layers[l].sinks);
            if (!(skip & 1)) bad |= launch_linear(c, st, LINEAR_QKV, l, t, s, l == 0);
            if (!(skip & 2)) bad |= launch_attend(c, st, l, t, s, loops, merge);
            if (!(skip & 4)) bad |= launch_linear(c, st, LINEAR_O, l, t, s, by_o);
            if (!(skip & 8)) bad |= launch_linear(c, st, LINEAR_GATE, l, t, s, false);
            if (!(skip & 16)) bad |= launch_linear(c, st, LINEAR_DOWN, l, t, s, false);
        }
        if (!(c->m.skip & 32)) bad |= launch_head(c, st, t);
    }
    u64 *ring = c->ring_device;
    void *args[] = {&st, &c->base, &ring, &tokens};
    return bad | launch(c, (const void *)advance, dim3(1), 32, 0, args);
}

static chain_graph *capture(ox_chain *c, int tokens, int splits, int loops)
{
    if (c->n_graphs == MAX_GRAPHS) { /* full: forget all */
        cudaStreamSynchronize(c->stream);
        for (int i = 0; i < c->n_graphs; i++)
            cudaGraphExecDestroy(c->graphs[i].exec);
        c->n_graphs = 0;
    }
    cudaGraph_t graph;
    if (cudaStreamBeginCapture(c->stream, cudaStreamCaptureModeThreadLocal)) return 0;
    const int bad = launch_tokens(c, tokens, splits, loops);
    if (cudaStreamEndCapture(c->stream, &graph) || bad) return 0;
    chain_graph *g = &c->graphs[c->n_graphs];
    g->tokens = tokens;
    g->splits = splits;
    g->loops = loops;
    g->attend = c->attend;
    const cudaError_t e = cudaGraphInstantiate(&g->exec, graph, 0);
    cudaGraphDestroy(graph);
    if (e) return 0;
    c->n_graphs++;
    return g;
}

int ox_chain_start(ox_chain *c, int32_t pos, int32_t token, char *const *table, int32_t n_pages,
                   const ox_chain_sampling *s)
{
    if (n_pages > c->table_pages) return -1;
    if (cudaMemcpyAsync(c->table, table, (size_t)n_pages * 8, cudaMemcpyDefault, c->stream))
        return -1;
    const float invt = s && s->temperature > 0.0f ? 1.0f / s->temperature : 0.0f;
    u32 bits;
    memcpy(&bits, &invt, 4);
    set_start<<<1, OX_CHAIN_RING, 0, c->stream>>>(c->st, c->base, c->sampling, pos, (u32)token,
                                                  bits, s ? s->seed : 0);
    memset((void *)c->ring, 0, OX_CHAIN_RING * 8);
    return cudaGetLastError() != cudaSuccess ? -1 : 0;
}

int ox_chain_enqueue(ox_chain *c, int32_t tokens, int32_t capacity)
{
    static const int steps[] = {1, 2, 3, 4, 6, 8, 12, 17, 24, 34, 48, 64};
    enum { FEW_SPLITS = 24 };
    const attend_row *l = c->attend_long;
    c->attend = l && capacity >= l->from && capacity <= FEW_SPLITS * l->warps * 16 * l->groups
                    ? l
                    : c->attend_first;
    const int positions = c->attend->warps * 16 * c->attend->groups;
    int splits = 0, loops = 1;
    while (!splits) {
        const int need = (capacity + positions * loops - 1) / (positions * loops);
        for (unsigned i = 0; i < sizeof steps / sizeof *steps && !splits; i++)
            if (need <= steps[i]) splits = steps[i];
        if (!splits) loops *= 2;
    }
    for (int i = 0; i < c->n_graphs; i++)
        if (c->graphs[i].tokens == tokens && c->graphs[i].splits == splits &&
            c->graphs[i].loops == loops && c->graphs[i].attend == c->attend)
            return cudaGraphLaunch(c->graphs[i].exec, c->stream) != cudaSuccess ? -1 : 0;
    chain_graph *g = capture(c, tokens, splits, loops);
    return !g || cudaGraphLaunch(g->exec, c->stream) != cudaSuccess ? -1 : 0;
}

int32_t ox_chain_token(const ox_chain *c, int32_t pos)
{
    const u64 word = c->ring[pos & (OX_CHAIN_RING - 1)];
    return (u32)(word >> 32) == (u32)(pos + 1) ? (int32_t)(u32)word : -1;
}

const void *ox_chain_logits(const ox_chain *c)
{
    return c->st.logits;
}

void ox_chain_store_logits(ox_chain *c, int on)
{
    if (c->store == on) return;
    c->store = on;
    for (int i = 0; i < c->n_graphs; i++)
        cudaGraphExecDestroy(c->graphs[i].exec);
    c->n_graphs = 0;
}

void ox_chain_describe(const ox_chain *c, char *out, size_t n)
{
    static const char *names[4] = {"qkv", "o", "gate", "down"};
    size_t at = 0;
    for (int k = 0; k < 4 && at < n; k++) {
        const linear_plan *p = &c->linear[k];
        const linear_row *r = &linear_rows[p->row];
        cudaFuncAttributes fa;
        memset(&fa, 0, sizeof fa);
        cudaFuncGetAttributes(&fa, p->fn);
        at += (size_t)snprintf(out + at, n - at,
                               "%s row %d fold %d pairs %d window %d mode %d: %d CTAs x %d warps "
                               "x %d tiles, %d regs, %zu local, %d shared\n",
                               names[k], p->row, r->fold, r->pairs, r->window, r->mode, p->grid,
                               p->warps, p->tiles, fa.numRegs, fa.localSizeBytes, p->shared);
    }
}

static __global__ void to_halves(__half *to, const float *from, int64_t n)
{
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * blockDim.x)
        to[i] = __float2half_rn(from[i]);
}
static __global__ void to_pairs(float2 *to, const float *c, const float *s, int64_t n)
{
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * blockDim.x)
        to[i] = make_float2(c[i], s[i]);
}
static __global__ void to_table(__half *to, ox_cuda_weight w, bool packed, ox_dev_fweight f,
                                int rows, int cols, float scale)
{
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < (int64_t)rows * cols;
         i += (int64_t)gridDim.x * blockDim.x) {
        const int r = (int)(i / cols), k = (int)(i % cols);
        const int type = f.dtype == OX_DEV_F32 ? 0 : f.dtype == OX_DEV_F16 ? 1 : 2;
        const float v = packed ? ox_cuda_weight_at(&w, r, k)
                               : ox_cuda_source_float(f.p, type, (size_t)r * (size_t)f.ld + k);
        to[i] = __float2half_rn(scale == 1.0f ? v : round_half(v) * scale);
    }
}

int ox_chain_halves(void *to, const float *from, int64_t n, void *stream)
{
    to_halves<<<64, 256, 0, (cudaStream_t)stream>>>((__half *)to, from, n);
    return cudaGetLastError() != cudaSuccess;
}

int ox_chain_pairs(float *to, const float *cos_table, const float *sin_table, int64_t n,
                   void *stream)
{
    to_pairs<<<256, 256, 0, (cudaStream_t)stream>>>((float2 *)to, cos_table, sin_table, n);
    return cudaGetLastError() != cudaSuccess;
}

int ox_chain_table(void *to, const ox_dev_pack *pack, const ox_dev_fweight *floats, int32_t rows,
                   int32_t cols, float scale, void *stream)
{
    const ox_dev_fweight none = {0, 0, 0, OX_DEV_F32, 0};
    ox_cuda_weight w = {};
    if (pack) w = as_weight(*pack);
    to_table<<<4096, 256, 0, (cudaStream_t)stream>>>((__half *)to, w, pack != 0,
                                                     floats ? *floats : none, rows, cols, scale);
    return cudaGetLastError() != cudaSuccess;
}

static __global__ void to_head(ox_cuda_weight w, ox_dev_fweight f)
{
    const int type = f.dtype == OX_DEV_F32 ? 0 : f.dtype == OX_DEV_F16 ? 1 : 2;
    const int64_t cols = w.k_units * 128, rows = (int64_t)w.n_tiles * 8;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < rows * cols;
         i += (int64_t)gridDim.x * blockDim.x) {
        const int n = (int)(i / cols), k = (int)(i % cols);
        const size_t unit = (size_t)(n >> 3) * (size_t)w.k_units + (size_t)(k >> 7);
        const float v = n < f.n && k < f.k
                            ? ox_cuda_source_float(f.p, type, (size_t)n * (size_t)f.ld + (size_t)k)
                            : 0.0f;
        __half *out = (__half *)(w.codes + unit * 128);
        out[((k >> 5 & 3) * 32 + (n & 7) * 4 + (k >> 3 & 3)) * 8 + (k & 7)] = __float2half_rn(v);
    }
}

size_t ox_chain_head_bytes(int32_t rows, int32_t cols)
{
    const ox_cuda_weight w = ox_cuda_weight_shape(rows, cols, 16, 128, 0, 0);
    return ox_cuda_code_bytes(&w);
}

int ox_chain_head(ox_dev_pack *pack, void *to, const ox_dev_fweight *floats, void *stream)
{
    ox_cuda_weight w = ox_cuda_weight_shape(floats->n, floats->k, 16, 128, 0, 0);
    w.codes = (const uint4 *)to;
    to_head<<<4096, 256, 0, (cudaStream_t)stream>>>(w, *floats);
    memcpy(pack, &w, sizeof w);
    return cudaGetLastError() != cudaSuccess;
}
