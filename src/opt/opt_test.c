/* opt_test.c - every rule: a small graph as a file would spell it, and the terms it must become,
 * both printed. */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include "opt/opt_test_bench.h"

#include <math.h>

static void a_decoder_layer_with_packed_attention_becomes_terms(void **state)
{
    bench b;
    (void)state;
    begin(&b);
    input(&b, "attention_mask", OX_DTYPE_I64);
    input(&b, "past.0.key", OX_DTYPE_F16);
    input(&b, "past.0.value", OX_DTYPE_F16);
    embedding(&b);
    floats(&b, "g1", HIDDEN, 0);
    floats(&b, "g2", HIDDEN, 0);
    floats(&b, "g3", HIDDEN, 0);
    floats(&b, "qkv", HIDDEN, 64);
    floats(&b, "qkv_bias", 64, 0);
    floats(&b, "o", HIDDEN, HIDDEN);
    floats(&b, "gate", HIDDEN, 40);
    floats(&b, "up", HIDDEN, 40);
    floats(&b, "down", 40, HIDDEN);
    floats(&b, "cos", 64, 4);
    floats(&b, "sin", 64, 4);
    ints(&b, "one", 1, 1);
    op(&b, "ReduceSum", "attention_mask one", "sum", "keepdims=0");
    op(&b, "Sub", "sum one", "less", "");
    op(&b, "Cast", "less", "lengths", "to=6");
    op(&b, "SimplifiedLayerNormalization", "x g1", "h", "axis=-1 epsilon=1e-6f");
    op(&b, "MatMul", "h qkv", "p", "");
    op(&b, "Add", "p qkv_bias", "pb", "");
    op_in(&b, "com.microsoft", "GroupQueryAttention",
          "pb _ _ past.0.key past.0.value lengths lengths cos sin",
          "a present.0.key present.0.value",
          "num_heads=4 kv_num_heads=2 do_rotary=1 local_window_size=-1 scale=.25f");
    op(&b, "MatMul", "a o", "ao", "");
    op_in(&b, "com.microsoft", "SkipSimplifiedLayerNormalization", "x ao g2", "h2 _ _ x2",
          "epsilon=1e-6f");
    op(&b, "MatMul", "h2 gate", "ga", "");
    op(&b, "MatMul", "h2 up", "u", "");
    op(&b, "Sigmoid", "ga", "sg", "");
    op(&b, "Mul", "ga sg", "si", "");
    op(&b, "Mul", "si u", "m", "");
    op(&b, "MatMul", "m down", "d", "");
    op_in(&b, "com.microsoft", "SkipSimplifiedLayerNormalization", "x2 d g3", "h3",
          "epsilon=1e-6f");
    logits(&b, "h3");
    assert_true(ox_vec_push(&b.g->outputs, named(&b, "present.0.key", 13)));
    assert_true(ox_vec_push(&b.g->outputs, named(&b, "present.0.value", 15)));
    run(&b);
    assert_true(b.report.is_terms);
    prints(&b, "  %n0[float32 rowsx32] = embed(%input_ids) weight=table:f32 48x32 scale=1\n"
               "  %n4[float32 rowsx32] = norm(%n0) weight=g1:f32 1x32 rms eps=1e-06 group=0\n"
               "  %n6[float32 rowsx64] = linear(%n4) weight=qkv:f32 64x32 bias=qkv_bias\n"
               "  %n7/q[float32 rowsx32] = slice(%n6) first=0 width=32\n"
               "  %n7/k[float32 rowsx16] = slice(%n6) first=32 width=16\n"
               "  %n7/v[float32 rowsx16] = slice(%n6) first=48 width=16\n"
               "  %n7/q_rotate[float32 rowsx32] = rotate(%n7/q) heads=4 x 8 rotary=8\n"
               "  %n7/k_rotate[float32 rowsx16] = rotate(%n7/k) heads=2 x 8 rotary=8\n"
               "  %n7[float32 rowsx32] = attend(%n7/q_rotate, %n7/k_rotate, %n7/v) "
               "heads=4/2 x 8/8 cache=0 window=0 scale=0.25\n"
               "  %n8[float32 rowsx32] = linear(%n7) weight=o:f32 32x32\n"
               "  %n9/sum[float32 rowsx32] = add(%n0, %n8)\n"
               "  %n9[float32 rowsx32] = norm(%n9/sum) weight=g2:f32 1x32 rms eps=1e-06 group=0\n"
               "  %n10[float32 rowsx40] = linear(%n9) weight=gate:f32 40x32\n"
               "  %n11[float32 rowsx40] = linear(%n9) weight=up:f32 40x32\n"
               "  %n14[float32 rowsx40] = glu(%n10, %n11) act=0\n"
               "  %n15[float32 rowsx32] = linear(%n14) weight=down:f32 32x40\n"
               "  %n16/sum[float32 rowsx32] = add(%n9/sum, %n15)\n"
               "  %n16[float32 rowsx32] = norm(%n16/sum) weight=g3:f32 1x32 rms eps=1e-06 group=0\n"
               "  %logits[float32 rows_wantedx48] = head(%n16) weight=head:f32 48x32 scale=1\n");
    assert_int_equal(b.g->inputs.n, 1);
    assert_int_equal(b.g->outputs.n, 1);
    assert_int_equal(b.g->caches.n, 1);
    const ox_cache *c = &b.g->caches.p[0];
    assert_int_equal(c->n_kv_heads, 2);
    assert_int_equal(c->head_size, 8);
    assert_int_equal(c->v_head_size, 8);
    assert_int_equal(c->dtype, OX_DTYPE_F16);
    assert_true(ox_str_is(c->past_k, "past.0.key"));
    assert_true(ox_str_is(c->past_v, "past.0.value"));
    assert_true(ox_str_is(c->present_k, "present.0.key"));
    assert_true(ox_str_is(c->present_v, "present.0.value"));
    end(&b);
}

/* ---- one rule at a time */

static void casts_reshapes_and_identities_vanish(void **state)
{
    bench b;
    (void)state;
    begin(&b);
    embedding(&b);
    ints(&b, "shape", 3, 0, -1, HIDDEN);
    op(&b, "Cast", "x", "c", "to=10");
    op(&b, "Identity", "c", "i", "");
    op(&b, "Reshape", "i shape", "r", "");
    logits(&b, "r");
    becomes(&b, "");
}

static void a_norm_over_heads_gets_its_group(void **state)
{
    bench b;
    (void)state;
    begin(&b);
    embedding(&b);
    floats(&b, "gamma", 8, 0);
    ints(&b, "heads", 3, 0, -1, 8);
    ints(&b, "rows", 3, 0, -1, HIDDEN);
    op(&b, "Reshape", "x heads", "h", "");
    op(&b, "SimplifiedLayerNormalization", "h gamma", "n", "epsilon=1e-6f");
    op(&b, "Reshape", "n rows", "r", "");
    logits(&b, "r");
    becomes(&b, "  %n2[float32 rowsx32] = norm(%n0) weight=gamma:f32 1x8 rms eps=1e-06 group=8\n");
}

static void a_layer_norm_keeps_its_bias(void **state)
{
    bench b;
    (void)state;
    begin(&b);
    embedding(&b);
    floats(&b, "gamma", HIDDEN, 0);
    floats(&b, "beta", HIDDEN, 0);
    op(&b, "LayerNormalization", "x gamma beta", "n", "epsilon=1e-5f");
    logits(&b, "n");
    becomes(&b, "  %n1[float32 rowsx32] = norm(%n0) weight=gamma:f32 1x32 bias=beta layer "
                "eps=1e-05 group=0\n");
}

static void norm_chain(bool layer, const char *want)
{
    bench b;
    begin(&b);
    embedding(&b);
    floats(&b, "gamma", HIDDEN, 0);
    floats(&b, "beta", HIDDEN, 0);
    number(&b, "two", 2);
    number(&b, "eps", 1e-6f);
    const char *x = "x";
    if (layer) {
        op(&b, "ReduceMean", "x", "mean", "axes=-1,");
        op(&b, "Sub", "x mean", "xc", "");
        x = "xc";
    }
    char operands[16];
    op(&b, "Cast", x, "f", "to=1");
    op(&b, "Pow", "f two", "sq", "");
    op(&b, "ReduceMean", "sq", "ms", "axes=-1,");
    op(&b, "Add", "ms eps", "mse", "");
    op(&b, "Sqrt", "mse", "root", "");
    if (layer) {
        snprintf(operands, sizeof(operands), "%s root", x);
        op(&b, "Div", operands, "y", "");
    } else {
        op(&b, "Reciprocal", "root", "inv", "");
        op(&b, "Mul", "f inv", "y", "");
    }
    op(&b, "Cast", "y", "yc", "to=10");
    op(&b, "Mul", "gamma yc", "n", "");
    op(&b, "Add", "n beta", "nb", "");
    logits(&b, layer ? "nb" : "n");
    becomes(&b, want);
}

static void a_norm_spelled_out_is_one_term(void **state)
{
    (void)state;
    norm_chain(false,
               "  %n9[float32 rowsx32] = norm(%n0) weight=gamma:f32 1x32 rms eps=1e-06 group=0\n");
    norm_chain(true, "  %n11[float32 rowsx32] = norm(%n0) weight=gamma:f32 1x32 bias=beta layer "
                     "eps=1e-06 group=0\n");
}

static void a_skip_norm_gives_sum_and_norm(void **state)
{
    bench b;
    (void)state;
    begin(&b);
    embedding(&b);
    floats(&b, "w", HIDDEN, HIDDEN);
    floats(&b, "gamma", HIDDEN, 0);
    floats(&b, "bias", HIDDEN, 0);
    op(&b, "MatMul", "x w", "y", "");
    op_in(&b, "com.microsoft", "SkipSimplifiedLayerNormalization", "x y gamma bias", "n _ _ s",
          "epsilon=1e-6f");
    op(&b, "Add", "n s", "z", "");
    logits(&b, "z");
    becomes(&b,
            "  %n2/bias[float32 rowsx32] = linear(%n0) weight=w:f32 32x32 bias=bias\n"
            "  %n2/sum[float32 rowsx32] = add(%n0, %n2/bias)\n"
            "  %n2[float32 rowsx32] = norm(%n2/sum) weight=gamma:f32 1x32 rms eps=1e-06 group=0\n"
            "  %n3[float32 rowsx32] = add(%n2, %n2/sum)\n");
}

static void linear_maps_have_many_spellings(void **state)
{
    bench b;
    (void)state;
    begin(&b);
    embedding(&b);
    floats(&b, "w", HIDDEN, HIDDEN);
    floats(&b, "v", HIDDEN, 0);
    op(&b, "Transpose", "w", "wt", "perm=1,0");
    op(&b, "MatMul", "x wt", "a", "");
    op(&b, "Add", "v a", "ab", "");
    op(&b, "Gemm", "ab w v", "c", "transB=1");
    op_in(&b, "com.microsoft", "FusedMatMul", "c w", "d", "transB=1 alpha=.5f");
    logits(&b, "d");
    becomes(&b, "  %n3[float32 rowsx32] = linear(%n0) weight=w:f32 32x32 bias=v\n"
                "  %n4[float32 rowsx32] = linear(%n3) weight=w:f32 32x32 bias=v\n"
                "  %n5[float32 rowsx32] = linear(%n4) weight=w:f32 32x32\n"
                "  %n5/alpha[float32 rowsx32] = scale(%n5) scale=0.5\n");
}

static void nbits(bench *b, const char *name, int64_t n, int64_t k, int64_t block)
{
    const int64_t blocks = (k + block - 1) / block;
    const int64_t codes[3] = {n, blocks, block / 2}, scales[2] = {n, blocks};
    char full[32];
    snprintf(full, sizeof(full), "%s.codes", name);
    tensor(b, full, OX_DTYPE_U8, 3, codes);
    snprintf(full, sizeof(full), "%s.scales", name);
    tensor(b, full, OX_DTYPE_F16, 2, scales);
}

static void tied_block_quantised_tables_share_one_weight(void **state)
{
    bench b;
    (void)state;
    begin(&b);
    nbits(&b, "head", VOCAB, HIDDEN, 16);
    ints(&b, "shape", 2, VOCAB, HIDDEN / 2);
    op(&b, "Reshape", "head.codes shape", "table", "");
    op_in(&b, "com.microsoft", "GatherBlockQuantized", "table input_ids head.scales", "x",
          "bits=4 block_size=16 gather_axis=0 quantize_axis=1");
    op_in(&b, "com.microsoft", "MatMulNBits", "x head.codes head.scales", "logits",
          "K=32 N=48 bits=4 block_size=16 accuracy_level=4");
    assert_true(ox_vec_push(&b.g->outputs, named(&b, "logits", 6)));
    run(&b);
    prints(&b,
           "  %n1[float32 rowsx32] = embed(%input_ids) weight=head.codes:nbits 48x32 scale=1\n"
           "  %logits[float32 rows_wantedx48] = head(%n1) weight=head.codes:nbits 48x32 scale=1\n");
    const ox_term *embed = b.g->nodes.p[0].term, *head = b.g->nodes.p[1].term;
    assert_ptr_equal(embed->weight, head->weight);
    assert_int_equal(head->accuracy_level, 4);
    assert_int_equal(head->weight->nbits.block, 16);
    assert_int_equal(head->weight->nbits.scale_dtype, OX_DTYPE_F16);
    end(&b);
}

static void tied_float_tables_share_one_weight(void **state)
{
    bench b;
    (void)state;
    begin(&b);
    floats(&b, "w", HIDDEN, VOCAB);
    op(&b, "Transpose", "w", "table", "perm=1,0");
    op(&b, "Gather", "table input_ids", "x", "");
    op(&b, "MatMul", "x w", "logits", "");
    assert_true(ox_vec_push(&b.g->outputs, named(&b, "logits", 6)));
    run(&b);
    assert_true(b.report.is_terms);
    assert_ptr_equal(b.g->nodes.p[0].term->weight, b.g->nodes.p[1].term->weight);
    assert_true(b.g->nodes.p[0].term->weight->transposed);
    end(&b);
}

static void a_sum_with_a_vector_needs_a_linear_map(void **state)
{
    bench b;
    (void)state;
    begin(&b);
    embedding(&b);
    floats(&b, "v", HIDDEN, 0);
    op(&b, "Add", "x v", "y", "");
    logits(&b, "y");
    remains(&b, "n1", "not a linear map");
}

static void damaged_block_sizes_are_refused(void **state)
{
    bench b;
    (void)state;
    begin(&b);
    embedding(&b);
    nbits(&b, "w", VOCAB, HIDDEN, 16);
    op_in(&b, "com.microsoft", "MatMulNBits", "x w.codes w.scales", "logits",
          "K=32 N=48 bits=4 block_size=32");
    assert_true(ox_vec_push(&b.g->outputs, named(&b, "logits", 6)));
    remains(&b, "n1", "scales have not the size");
}

/* Element (n, k) of a signed 4-bit tensor [K, N] with blocks of 16 along K. */
static void dequantized_matrices_keep_their_values(void **state)
{
    bench b;
    (void)state;
    const int64_t dims[2] = {HIDDEN, VOCAB}, scale_dims[2] = {HIDDEN / 16, VOCAB};
    begin(&b);
    embedding(&b);
    uint8_t *codes = tensor(&b, "codes", OX_DTYPE_I4, 2, dims);
    float *scales = tensor(&b, "scales", OX_DTYPE_F32, 2, scale_dims);
    uint8_t *zeros = tensor(&b, "zeros", OX_DTYPE_I4, 2, scale_dims);
    for (int i = 0; i < HIDDEN * VOCAB / 2; i++)
        codes[i] = (uint8_t)(i * 37 + i / 7);
    for (int i = 0; i < HIDDEN / 16 * VOCAB; i++)
        scales[i] = (float)(i % 11 - 5) / 4;
    for (int i = 0; i < HIDDEN / 16 * VOCAB / 2; i++)
        zeros[i] = (uint8_t)(i * 29);
    op(&b, "DequantizeLinear", "codes scales zeros", "w", "axis=0 block_size=16");
    op(&b, "MatMul", "x w", "logits", "");
    assert_true(ox_vec_push(&b.g->outputs, named(&b, "logits", 6)));
    run(&b);
    assert_true(b.report.is_terms);
    const ox_weight *w = b.g->nodes.p[1].term->weight;
    assert_int_equal(ox_weight_check(w, &b.err), OX_OK);
    for (int64_t n = 0; n < VOCAB; n++) {
        float row[HIDDEN];
        ox_weight_row_f32(w, n, row);
        for (int64_t k = 0; k < HIDDEN; k++) {
            const int64_t i = k * VOCAB + n, s = k / 16 * VOCAB + n;
            const int q = (codes[i / 2] >> i % 2 * 4 & 15) ^ 8,
                      z = (zeros[s / 2] >> s % 2 * 4 & 15) ^ 8;
            assert_true(row[k] == scales[s] * (float)(q - z));
        }
    }
    end(&b);
}

static void activations_have_many_spellings(void **state)
{
    static const char *const one[][3] = {{"Gelu", "approximate=tanh", ""},
                                         {"Gelu", "", ""},
                                         {"FastGelu", "", ""},
                                         {"QuickGelu", "", ""},
                                         {"Swish", "", ""},
                                         {"Relu", "", ""}};
    static const int acts[] = {OX_ACT_GELU_TANH,  OX_ACT_GELU, OX_ACT_GELU_TANH,
                               OX_ACT_QUICK_GELU, OX_ACT_SILU, OX_ACT_RELU};
    (void)state;
    for (size_t i = 0; i < OX_COUNT(one); i++) {
        bench b;
        char want[128];
        begin(&b);
        embedding(&b);
        op(&b, one[i][0], "x", "y", one[i][1]);
        logits(&b, "y");
        snprintf(want, sizeof(want), "  %%n1[float32 rowsx32] = act(%%n0) act=%d\n", acts[i]);
        becomes(&b, want);
    }
}

static void gelu_spelled_out_is_one_term(void **state)
{
    bench b;
    (void)state;
    begin(&b);
    embedding(&b);
    number(&b, "half", .5f);
    number(&b, "one", 1);
    number(&b, "root2", 1.41421356f);
    op(&b, "Div", "x root2", "u", "");
    op(&b, "Erf", "u", "e", "");
    op(&b, "Add", "e one", "e1", "");
    op(&b, "Mul", "x e1", "xe", "");
    op(&b, "Mul", "xe half", "y", "");
    logits(&b, "y");
    becomes(&b, "  %n5[float32 rowsx32] = act(%n0) act=1\n");
}

static void tanh_gelu_spelled_out_is_one_term(void **state)
{
    bench b;
    (void)state;
    begin(&b);
    embedding(&b);
    number(&b, "half", .5f);
    number(&b, "one", 1);
    number(&b, "three", 3);
    number(&b, "c", .044715f);
    number(&b, "k", .7978845608f);
    op(&b, "Pow", "x three", "x3", "");
    op(&b, "Mul", "x3 c", "cx3", "");
    op(&b, "Add", "x cx3", "s", "");
    op(&b, "Mul", "s k", "u", "");
    op(&b, "Tanh", "u", "t", "");
    op(&b, "Add", "one t", "t1", "");
    op(&b, "Mul", "x half", "hx", "");
    op(&b, "Mul", "hx t1", "y", "");
    logits(&b, "y");
    becomes(&b, "  %n8[float32 rowsx32] = act(%n0) act=2\n");
}

static void squared_relu_is_one_term(void **state)
{
    bench b;
    (void)state;
    begin(&b);
    embedding(&b);
    number(&b, "two", 2);
    op(&b, "Relu", "x", "r", "");
    op(&b, "Pow", "r two", "y", "");
    logits(&b, "y");
    becomes(&b, "  %n2[float32 rowsx32] = act(%n0) act=5\n");
}

static void a_split_row_feeds_a_gate(void **state)
{
    bench b;
    (void)state;
    begin(&b);
    embedding(&b);
    floats(&b, "w", HIDDEN, 2 * HIDDEN);
    op(&b, "MatMul", "x w", "gu", "");
    op(&b, "Split", "gu", "g u", "axis=-1 num_outputs=2");
    op(&b, "Sigmoid", "g", "s", "");
    op(&b, "Mul", "s g", "sg", "");
    op(&b, "Mul", "u sg", "y", "");
    logits(&b, "y");
    becomes(&b, "  %n1[float32 rowsx64] = linear(%n0) weight=w:f32 64x32\n"
                "  %n2/a[float32 rowsx32] = slice(%n1) first=0 width=32\n"
                "  %n2/b[float32 rowsx32] = slice(%n1) first=32 width=32\n"
                "  %n5[float32 rowsx32] = glu(%n2/a, %n2/b) act=0\n");
}

static void scales_and_soft_caps_merge(void **state)
{
    bench b;
    (void)state;
    begin(&b);
    floats(&b, "table", VOCAB, HIDDEN);
    floats(&b, "head", HIDDEN, VOCAB);
    number(&b, "eight", 8);
    number(&b, "thirty", 30);
    number(&b, "half", .5f);
    op(&b, "Gather", "table input_ids", "e", "");
    op(&b, "Mul", "e eight", "x", "");
    op(&b, "MatMul", "x head", "l", "");
    op(&b, "Mul", "half l", "lh", "");
    op(&b, "Div", "lh thirty", "d", "");
    op(&b, "Tanh", "d", "t", "");
    op(&b, "Mul", "t thirty", "logits", "");
    assert_true(ox_vec_push(&b.g->outputs, named(&b, "logits", 6)));
    run(&b);
    prints(&b, "  %n1[float32 rowsx32] = embed(%input_ids) weight=table:f32 48x32 scale=8\n"
               "  %logits[float32 rows_wantedx48] = head(%n1) weight=head:f32 48x32 scale=0.5 "
               "softcap=30\n");
    end(&b);
}

static void the_last_row_alone_still_gives_logits(void **state)
{
    bench b;
    (void)state;
    begin(&b);
    embedding(&b);
    ints(&b, "last", 1, -1);
    op(&b, "Gather", "x last", "y", "axis=1");
    logits(&b, "y");
    becomes(&b, "");
}

static void rotation_before_standard_attention_in_either_layout(void **state)
{
    (void)state;
    for (int heads_first = 0; heads_first < 2; heads_first++) {
        bench b;
        begin(&b);
        input(&b, "position_ids", OX_DTYPE_I64);
        input(&b, "pk", OX_DTYPE_F32);
        input(&b, "pv", OX_DTYPE_F32);
        embedding(&b);
        floats(&b, "wk", HIDDEN, 16);
        floats(&b, "wv", HIDDEN, 16);
        floats(&b, "cos", 64, 4);
        floats(&b, "sin", 64, 4);
        ints(&b, "four", 4, 0, 0, -1, 8);
        ints(&b, "three", 3, 0, 0, -1);
        op(&b, "MatMul", "x wk", "k0", "");
        op(&b, "MatMul", "x wv", "v0", "");
        if (heads_first) {
            op(&b, "Reshape", "x four", "q1", "");
            op(&b, "Reshape", "k0 four", "k1", "");
            op(&b, "Reshape", "v0 four", "v1", "");
            op(&b, "Transpose", "q1", "q", "perm=0,2,1,3");
            op(&b, "Transpose", "k1", "k", "perm=0,2,1,3");
            op(&b, "Transpose", "v1", "v", "perm=0,2,1,3");
        } else {
            op(&b, "Identity", "x", "q", "");
            op(&b, "Identity", "k0", "k", "");
            op(&b, "Identity", "v0", "v", "");
        }
        const char *heads = heads_first ? "" : "num_heads=4";
        op(&b, "RotaryEmbedding", "q cos sin position_ids", "qr", heads);
        op(&b, "RotaryEmbedding", "k cos sin position_ids", "kr", heads_first ? "" : "num_heads=2");
        op(&b, "Attention", "qr kr v _ pk pv", "a presentk presentv",
           heads_first ? "is_causal=1" : "is_causal=1 q_num_heads=4 kv_num_heads=2");
        if (heads_first) {
            op(&b, "Transpose", "a", "at", "perm=0,2,1,3");
            op(&b, "Reshape", "at three", "y", "");
        } else {
            op(&b, "Identity", "a", "y", "");
        }
        logits(&b, "y");
        becomes(&b, heads_first ? "  %n1[float32 rowsx16] = linear(%n0) weight=wk:f32 16x32\n"
                                  "  %n2[float32 rowsx16] = linear(%n0) weight=wv:f32 16x32\n"
                                  "  %n9[float32 rowsx32] = rotate(%n0) heads=4 x 8 rotary=8\n"
                                  "  %n10[float32 rowsx16] = rotate(%n1) heads=2 x 8 rotary=8\n"
                                  "  %n11[float32 rowsx32] = attend(%n9, %n10, %n2) heads=4/2 x "
                                  "8/8 cache=0 window=0 scale=0.353553\n"
                                : "  %n1[float32 rowsx16] = linear(%n0) weight=wk:f32 16x32\n"
                                  "  %n2[float32 rowsx16] = linear(%n0) weight=wv:f32 16x32\n"
                                  "  %n6[float32 rowsx32] = rotate(%n0) heads=4 x 8 rotary=8\n"
                                  "  %n7[float32 rowsx16] = rotate(%n1) heads=2 x 8 rotary=8\n"
                                  "  %n8[float32 rowsx32] = attend(%n6, %n7, %n2) heads=4/2 x 8/8 "
                                  "cache=0 window=0 scale=0.353553\n");
    }
}

/* [1, rows, total] or [1, 1, rows, total] of what lies behind, at most `window` back (0 = all). */
static void causal_mask(bench *b, const char *out, int window, bool additive)
{
    ints(b, "at1", 1, 1);
    ints(b, "at2", 1, 2);
    ints(b, "at0", 1, 0);
    *(int64_t *)tensor(b, "zero", OX_DTYPE_I64, 0, NULL) = 0;
    *(int64_t *)tensor(b, "one", OX_DTYPE_I64, 0, NULL) = 1;
    *(int64_t *)tensor(b, "window", OX_DTYPE_I64, 0, NULL) = window;
    number(b, "visible", 0);
    number(b, "hidden", -3e38f);
    op(b, "Shape", "attention_mask", "dims", "");
    op(b, "Gather", "dims one", "total", "axis=0");
    op(b, "Range", "zero total one", "keys", "");
    op(b, "Unsqueeze", "position_ids at2", "rows", "");
    op(b, "LessOrEqual", "keys rows", "behind", "");
    if (window) {
        op(b, "Sub", "rows window", "edge", "");
        op(b, "Greater", "keys edge", "near", "");
        op(b, "And", "behind near", "both", "");
    }
    op(b, "Unsqueeze", window ? "both at1" : "behind at1", additive ? "seen" : out, "");
    if (additive) op(b, "Where", "seen visible hidden", out, "");
}

static void projections(bench *b)
{
    input(b, "attention_mask", OX_DTYPE_I64);
    input(b, "position_ids", OX_DTYPE_I64);
    input(b, "pk", OX_DTYPE_F32);
    input(b, "pv", OX_DTYPE_F32);
    embedding(b);
    floats(b, "wk", HIDDEN, 16);
    floats(b, "wv", HIDDEN, 16);
    ints(b, "four", 4, 0, 0, -1, 8);
    floats(b, "wq", HIDDEN, HIDDEN);
    op(b, "MatMul", "x wq", "q0", "");
    op(b, "MatMul", "x wk", "k0", "");
    op(b, "MatMul", "x wv", "v0", "");
    op(b, "Reshape", "q0 four", "q1", "");
    op(b, "Reshape", "k0 four", "k1", "");
    op(b, "Reshape", "v0 four", "v1", "");
    op(b, "Transpose", "q1", "q", "perm=0,2,1,3");
    op(b, "Transpose", "k1", "k", "perm=0,2,1,3");
    op(b, "Transpose", "v1", "v", "perm=0,2,1,3");
    op(b, "Concat", "pk k", "presentk", "axis=2");
    op(b, "Concat", "pv v", "presentv", "axis=-2");
}

static void softmax_attention(int window, bool additive)
{
    bench b;
    char want[1024];
    begin(&b);
    projections(&b);
    causal_mask(&b, "mask", window, additive);
    ints(&b, "three", 3, 0, 0, HIDDEN);
    ints(&b, "twice", 5, 1, 2, 2, 1, 8);
    ints(&b, "merged", 4, 1, 4, -1, 8);
    number(&b, "half", .5f);
    for (int i = 0; i < 2; i++) {
        char names_[64];
        snprintf(names_, sizeof(names_), "present%c at2", i ? 'v' : 'k');
        op(&b, "Unsqueeze", names_, i ? "v5" : "k5", "");
        op(&b, "Expand", i ? "v5 twice" : "k5 twice", i ? "ve" : "ke", "");
        op(&b, "Reshape", i ? "ve merged" : "ke merged", i ? "vr" : "kr", "");
    }
    op(&b, "Transpose", "kr", "kt", "perm=0,1,3,2");
    op(&b, "Mul", "q half", "qs", "");
    op(&b, "MatMul", "qs kt", "s", "");
    op(&b, "Mul", "half s", "s2", "");
    if (additive)
        op(&b, "Add", "s2 mask", "sm", "");
    else
        op(&b, "Where", "mask s2 hidden", "sm", "");
    op(&b, "Softmax", "sm", "p", "axis=-1");
    op(&b, "MatMul", "p vr", "a", "");
    snprintf(
        want, sizeof(want),
        "  %%n1[float32 rowsx32] = linear(%%n0) weight=wq:f32 32x32\n"
        "  %%n2[float32 rowsx16] = linear(%%n0) weight=wk:f32 16x32\n"
        "  %%n3[float32 rowsx16] = linear(%%n0) weight=wv:f32 16x32\n"
        "  %%n%zu[float32 rowsx32] = attend(%%n1, %%n2, %%n3) heads=4/2 x 8/8 cache=0 window=%d "
        "scale=0.25\n",
        b.g->nodes.n - 1, window);
    op(&b, "Transpose", "a", "at", "perm=0,2,1,3");
    op(&b, "Reshape", "at three", "y", "");
    logits(&b, "y");
    becomes(&b, want);
}

static void attention_spelled_out_takes_its_window_from_the_mask(void **state)
{
    (void)state;
    softmax_attention(0, true);
    softmax_attention(3, true);
    softmax_attention(70, false);
}

static void a_mask_that_shows_the_future_is_refused(void **state)
{
    bench b;
    (void)state;
    begin(&b);
    projections(&b);
    causal_mask(&b, "behind_only", 0, true);
    op(&b, "Abs", "behind_only", "mask", "");
    op(&b, "Attention", "q presentk presentv mask", "a", "");
    op(&b, "Transpose", "a", "at", "perm=0,2,1,3");
    op(&b, "Reshape", "at four", "y", "");
    logits(&b, "y");
    remains(&b, "n20", "mask");
}

static void rotation_spelled_out(int rotary, const char *want)
{
    bench b;
    begin(&b);
    input(&b, "position_ids", OX_DTYPE_I64);
    embedding(&b);
    const int64_t dims[3] = {1, 1, rotary / 2};
    float *f = tensor(&b, "frequencies", OX_DTYPE_F32, 3, dims);
    for (int i = 0; i < rotary / 2; i++)
        f[i] = 1.0f / (float)(1 + 3 * i);
    ints(&b, "four", 4, 0, 0, -1, 8);
    ints(&b, "at1", 1, 1);
    ints(&b, "at2", 1, 2);
    ints(&b, "zero", 1, 0);
    ints(&b, "half", 1, rotary / 2);
    ints(&b, "whole", 1, rotary);
    ints(&b, "end", 1, INT32_MAX);
    ints(&b, "last", 1, -1);
    op(&b, "Reshape", "x four", "q1", "");
    op(&b, "Transpose", "q1", "q", "perm=0,2,1,3");
    op(&b, "Unsqueeze", "position_ids at2", "p", "");
    op(&b, "Cast", "p", "pf", "to=1");
    op(&b, "Mul", "pf frequencies", "angle", "");
    op(&b, "Concat", "angle angle", "both", "axis=-1");
    op(&b, "Cos", "both", "c0", "");
    op(&b, "Sin", "both", "s0", "");
    op(&b, "Unsqueeze", "c0 at1", "c", "");
    op(&b, "Unsqueeze", "s0 at1", "s", "");
    if (rotary == 8)
        op(&b, "Identity", "q", "h", "");
    else
        op(&b, "Slice", "q zero whole last", "h", "");
    op(&b, "Slice", "h zero half last", "lo", "");
    op(&b, "Slice", "h half end last", "hi", "");
    op(&b, "Neg", "hi", "nhi", "");
    op(&b, "Concat", "nhi lo", "turned", "axis=-1");
    op(&b, "Mul", "turned s", "ts", "");
    op(&b, "Mul", "h c", "hc", "");
    op(&b, "Add", "hc ts", rotary == 8 ? "y" : "part", "");
    if (rotary != 8) {
        op(&b, "Slice", "q whole end last", "rest", "");
        op(&b, "Concat", "part rest", "y", "axis=-1");
    }
    op(&b, "Transpose", "y", "yt", "perm=0,2,1,3");
    ints(&b, "three", 3, 0, 0, HIDDEN);
    op(&b, "Reshape", "yt three", "z", "");
    logits(&b, "z");
    run(&b);
    assert_true(b.report.is_terms);
    const ox_rotary *r = b.g->nodes.p[1].term->rotary;
    assert_int_equal(r->n_positions, 8192);
    assert_float_equal(r->cos_table[5000 * (rotary / 2) + 1], cosf(5000.0f * f[1]), 1e-6);
    assert_float_equal(r->sin_table[8191 * (rotary / 2)], sinf(8191.0f), 1e-6);
    prints(&b, want);
    end(&b);
}

#define ROTATED(node, width)                                                                       \
    "  %n0[float32 rowsx32] = embed(%input_ids) weight=table:f32 48x32 scale=1\n"                  \
    "  %" node "[float32 rowsx32] = rotate(%n0) heads=4 x 8 rotary=" width "\n"                    \
    "  %logits[float32 rows_wantedx48] = head(%" node ") weight=head:f32 48x32 scale=1\n"

static void rotation_spelled_out_becomes_tables(void **state)
{
    (void)state;
    rotation_spelled_out(8, ROTATED("n18", "8"));
    rotation_spelled_out(4, ROTATED("n20", "4"));
}

static void what_no_rule_knows_is_named_and_nothing_changes(void **state)
{
    bench b;
    (void)state;
    begin(&b);
    embedding(&b);
    op(&b, "Softmax", "x", "y", "axis=-1");
    op(&b, "Relu", "y", "z", "");
    logits(&b, "z");
    remains(&b, "n1", "no rule knows it");
}

static void a_pass_can_be_switched_off(void **state)
{
    bench b;
    (void)state;
    begin(&b);
    embedding(&b);
    op(&b, "Relu", "x", "y", "");
    logits(&b, "y");
    setenv("OXGEN_PASSES", "-act,-linear+add", 1); /* the second is a fusion of plan/ */
    assert_true(ox_opt_has_pass(OX_STR("act")));
    assert_false(ox_opt_has_pass(OX_STR("linear+add")));
    remains(&b, "n1", "no rule knows it");
    unsetenv("OXGEN_PASSES");
}

static void short_memory_is_reported_and_the_graph_kept(void **state)
{
    (void)state;
    for (long n = 1; n < 400; n++) {
        bench b;
        begin(&b);
        embedding(&b);
        op(&b, "Relu", "x", "y", "");
        logits(&b, "y");
        ox_mem_fail_after(n);
        const ox_status st = ox_opt_run(b.g, NULL, &b.arena, &b.report, &b.err);
        ox_mem_fail_after(0);
        assert_true(st == OX_OK || st == OX_NO_MEMORY);
        assert_int_equal(st == OX_OK, ox_graph_is_terms(b.g));
        end(&b);
        if (st == OX_OK) return;
    }
    fail_msg("it never succeeded");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_decoder_layer_with_packed_attention_becomes_terms),
        cmocka_unit_test(casts_reshapes_and_identities_vanish),
        cmocka_unit_test(a_norm_over_heads_gets_its_group),
        cmocka_unit_test(a_layer_norm_keeps_its_bias),
        cmocka_unit_test(a_norm_spelled_out_is_one_term),
        cmocka_unit_test(a_skip_norm_gives_sum_and_norm),
        cmocka_unit_test(linear_maps_have_many_spellings),
        cmocka_unit_test(tied_block_quantised_tables_share_one_weight),
        cmocka_unit_test(tied_float_tables_share_one_weight),
        cmocka_unit_test(a_sum_with_a_vector_needs_a_linear_map),
        cmocka_unit_test(damaged_block_sizes_are_refused),
        cmocka_unit_test(dequantized_matrices_keep_their_values),
        cmocka_unit_test(activations_have_many_spellings),
        cmocka_unit_test(gelu_spelled_out_is_one_term),
        cmocka_unit_test(tanh_gelu_spelled_out_is_one_term),
        cmocka_unit_test(squared_relu_is_one_term),
        cmocka_unit_test(a_split_row_feeds_a_gate),
        cmocka_unit_test(scales_and_soft_caps_merge),
        cmocka_unit_test(the_last_row_alone_still_gives_logits),
        cmocka_unit_test(rotation_before_standard_attention_in_either_layout),
        cmocka_unit_test(attention_spelled_out_takes_its_window_from_the_mask),
        cmocka_unit_test(a_mask_that_shows_the_future_is_refused),
        cmocka_unit_test(rotation_spelled_out_becomes_tables),
        cmocka_unit_test(what_no_rule_knows_is_named_and_nothing_changes),
        cmocka_unit_test(a_pass_can_be_switched_off),
        cmocka_unit_test(short_memory_is_reported_and_the_graph_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
