"""Writes cases of operators that only ONNX Runtime defines, in the form of the ONNX node tests; the
expected outputs are ONNX Runtime's (CPU).

usage: gen_ort_tests.py OUT
"""
import os
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

MS = "com.microsoft"
rng = np.random.default_rng(7)
f32, f16 = np.float32, np.float16


def rand(*shape, dtype=f32, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(dtype)


def info(name, a):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)


def case(out, name, *a, **k):
    try:
        write_case(out, name, *a, **k)
    except Exception as e:
        print("left out", name + ":", " ".join(str(e).split())[:160])


def write_case(out, name, op, inputs, outputs, domain=MS, constant=(), **attrs):
    """inputs: list of arrays or None; outputs: number, or list of flags (False = absent)."""
    flags = [True] * outputs if isinstance(outputs, int) else outputs
    names = [f"i{k}" if a is not None else "" for k, a in enumerate(inputs)]
    out_names = [f"o{k}" if w else "" for k, w in enumerate(flags)]
    node = helper.make_node(op, names, out_names, domain=domain, name="n", **attrs)
    feeds = {n: a for n, a in zip(names, inputs) if n and n not in constant}
    init = [numpy_helper.from_array(a, n) for n, a in zip(names, inputs) if n in constant]
    graph = helper.make_graph(
        [node], name, [info(n, a) for n, a in feeds.items()],
        [onnx.ValueInfoProto(name=n) for n in out_names if n], init)
    model = helper.make_model(graph, ir_version=10, opset_imports=[
        helper.make_opsetid("", 21), helper.make_opsetid(MS, 1)])
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results = session.run(None, feeds)
    data = f"{out}/{name}/test_data_set_0"
    os.makedirs(data, exist_ok=True)
    for k, (n, a) in enumerate(zip([n for n in out_names if n], results)):
        graph.output[k].CopyFrom(info(n, a))
    model = helper.make_model(graph, ir_version=10, opset_imports=model.opset_import)
    with open(f"{out}/{name}/model.onnx", "wb") as f:
        f.write(model.SerializeToString())
    for k, (n, a) in enumerate(feeds.items()):
        with open(f"{data}/input_{k}.pb", "wb") as f:
            f.write(numpy_helper.from_array(a, n).SerializeToString())
    for k, a in enumerate(results):
        with open(f"{data}/output_{k}.pb", "wb") as f:
            f.write(numpy_helper.from_array(a, f"o{k}").SerializeToString())


def nbits(out):
    for bits in (2, 4, 8):
        for block in (16, 32, 128):
            for zero in ("none", "packed", "float"):
                if (bits == 8 and zero == "float") or (bits == 2 and (zero == "float" or block == 16)):
                    continue
                k, n = (block * 3, 24)
                blocks = -(-k // block)
                b = rng.integers(0, 256, (n, blocks, block * bits // 8), dtype=np.uint8)
                scale = rand(n, blocks, scale=0.1)
                z = None
                if zero == "packed":
                    z = rng.integers(0, 256, (n, -(-blocks * bits // 8)), dtype=np.uint8)
                if zero == "float":
                    z = rng.uniform(0, 15, (n, blocks)).astype(f32)
                inputs = [rand(2, 3, k), b, scale, z]
                constant = ("i1", "i2", "i3")
                case(out, f"nbits_{bits}_{block}_{zero}", "MatMulNBits", inputs, 1,
                     constant=constant, K=k, N=n, bits=bits, block_size=block)
    k, n = 40, 8
    b = rng.integers(0, 256, (n, 3, 8), dtype=np.uint8)
    case(out, "nbits_tail_bias", "MatMulNBits",
         [rand(5, k), b, rand(n, 3, scale=0.1), None, None, rand(n)], 1,
         constant=("i1", "i2"), K=k, N=n, bits=4, block_size=16)
    b = rng.integers(0, 256, (n, 2, 16), dtype=np.uint8)
    case(out, "nbits_f16", "MatMulNBits", [rand(5, 64, dtype=f16), b, rand(n, 2, dtype=f16, scale=0.1)], 1,
         constant=("i1", "i2"), K=64, N=n, bits=4, block_size=32)


def gather_blocks(out):
    for bits in (4, 8):
        for block in (16, 32):
            for zero in (False, True):
                rows, cols = 11, 64
                blocks = cols // block
                data = rng.integers(0, 256, (rows, cols * bits // 8), dtype=np.uint8)
                z = rng.integers(0, 256, (rows, -(-blocks * bits // 8)), dtype=np.uint8) if zero else None
                ids = rng.integers(0, rows, (2, 3)).astype(np.int64)
                case(out, f"gather_{bits}_{block}_{zero}", "GatherBlockQuantized",
                     [data, ids, rand(rows, blocks, scale=0.1), z], 1,
                     constant=("i0", "i2", "i3"), bits=bits, block_size=block,
                     gather_axis=0, quantize_axis=1)


def grouped(out, name, b=1, s=5, past=0, nq=4, nkv=2, h=16, packed=False, rotary=0, shared=None,
            lens=None, bias=False, sink=False, dtype=f32, **attrs):
    total = past + s
    cap = shared or past
    lens = lens or [total] * b
    q, k, v = rand(b, s, nq * h, dtype=dtype), rand(b, s, nkv * h, dtype=dtype), rand(b, s, nkv * h, dtype=dtype)
    inputs = [q, k, v]
    if packed:
        inputs = [np.concatenate([q, k, v], 2), None, None]
    inputs += [rand(b, nkv, cap, h, dtype=dtype), rand(b, nkv, cap, h, dtype=dtype)]
    inputs += [np.array([x - 1 for x in lens], np.int32), np.array(total, np.int32)]
    if rotary:
        m = 64
        angle = rng.uniform(-3, 3, (m, rotary // 2))
        inputs += [np.cos(angle).astype(dtype), np.sin(angle).astype(dtype)]
        attrs["do_rotary"] = 1
    if bias or sink:
        inputs += [None] * (10 - len(inputs))
        inputs += [rand(1, nq, s, total, dtype=dtype) if bias else None]
    if sink:
        inputs += [rand(nq, dtype=dtype)]
    outs = 3
    case(out, "gqa_" + name, "GroupQueryAttention", inputs, outs, num_heads=nq, kv_num_heads=nkv, **attrs)


def attention(out):
    grouped(out, "prompt")
    grouped(out, "prompt_batch", b=2)
    grouped(out, "prompt_padded", b=2, lens=[5, 3])
    grouped(out, "prompt_packed", packed=True)
    grouped(out, "decode", s=1, past=6)
    grouped(out, "decode_batch", b=3, s=1, past=6)
    grouped(out, "decode_rotary", b=2, s=1, past=6, rotary=16)
    grouped(out, "prompt_rotary_interleaved", rotary=16, rotary_interleaved=1)
    grouped(out, "decode_rotary_packed", s=1, past=6, rotary=16, packed=True)
    grouped(out, "partial_rotary", h=32, rotary=16, s=3)
    grouped(out, "continued", s=3, past=4, rotary=16)
    grouped(out, "window", s=9, local_window_size=4)
    grouped(out, "window_decode", s=1, past=12, local_window_size=4)
    grouped(out, "softcap", softcap=5.0)
    grouped(out, "scale", scale=0.7)
    grouped(out, "bias", bias=True)
    grouped(out, "sink", sink=True)
    grouped(out, "smooth", smooth_softmax=1)
    grouped(out, "f16", dtype=f16)
    b, s, n, h = 2, 5, 4, 8
    d = n * h
    case(out, "mha_plain", "MultiHeadAttention", [rand(b, s, d), rand(b, s, d), rand(b, s, d)], 1, num_heads=n)
    case(out, "mha_bias", "MultiHeadAttention",
         [rand(b, s, d), rand(b, s, d), rand(b, s, d), rand(3 * d)], 1, num_heads=n)
    case(out, "mha_causal", "MultiHeadAttention",
         [rand(b, s, d), rand(b, s, d), rand(b, s, d)], 1, num_heads=n, unidirectional=1)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    case(out, "mha_mask", "MultiHeadAttention",
         [rand(b, s, d), rand(b, s, d), rand(b, s, d), None, mask], 1, num_heads=n)
    case(out, "mha_attention_bias", "MultiHeadAttention",
         [rand(b, s, d), rand(b, s, d), rand(b, s, d), None, None, rand(1, n, s, s)], 1, num_heads=n)
    case(out, "mha_past", "MultiHeadAttention",
         [rand(b, 1, d), rand(b, 1, d), rand(b, 1, d), None, None, None,
          rand(b, n, 3, h), rand(b, n, 3, h)], 3, num_heads=n)
    for interleaved in (0, 1):
        angle = rng.uniform(-3, 3, (32, 8))
        cs, sn = np.cos(angle).astype(f32), np.sin(angle).astype(f32)
        case(out, f"rotary_{interleaved}", "RotaryEmbedding",
             [rand(2, 3, 64), np.array([[1, 2, 3], [7, 8, 9]], np.int64), cs, sn], 1, interleaved=interleaved)
        case(out, f"rotary_offset_{interleaved}", "RotaryEmbedding",
             [rand(2, 3, 64), np.array([5], np.int64), cs, sn], 1, interleaved=interleaved)
        case(out, f"rotary_4d_{interleaved}", "RotaryEmbedding",
             [rand(2, 4, 3, 16), np.array([[1, 2, 3], [7, 8, 9]], np.int64), cs, sn], 1, interleaved=interleaved)
        case(out, f"rotary_partial_{interleaved}", "RotaryEmbedding",
             [rand(2, 3, 128), np.array([[1, 2, 3], [7, 8, 9]], np.int64), cs, sn], 1,
             interleaved=interleaved, num_heads=4, rotary_embedding_dim=16)


def norms(out):
    x, skip, g, b, bias = rand(2, 3, 32), rand(2, 3, 32), rand(32), rand(32), rand(32)
    case(out, "skip_simplified", "SkipSimplifiedLayerNormalization", [x, skip, g], [True, False, False, True], epsilon=1e-5)
    case(out, "skip_simplified_bias", "SkipSimplifiedLayerNormalization", [x, skip, g, bias],
         [True, False, False, True], epsilon=1e-5)
    case(out, "skip_simplified_f16", "SkipSimplifiedLayerNormalization",
         [x.astype(f16), skip.astype(f16), g.astype(f16)], [True, False, False, True], epsilon=1e-5)
    case(out, "skip_layer_norm", "SkipLayerNormalization", [x, skip, g, b, bias], [True, False, False, True], epsilon=1e-5)
    case(out, "skip_layer_norm_plain", "SkipLayerNormalization", [x, skip, g], 1)
    case(out, "skip_layer_norm_rows", "SkipLayerNormalization", [x, rand(1, 3, 32), g, b], 1)
    case(out, "simplified", "SimplifiedLayerNormalization", [x, g], 1, domain="", epsilon=1e-6)
    case(out, "simplified_stats", "SimplifiedLayerNormalization", [x, g], 2, domain="", epsilon=1e-6, axis=-1)


def rest(out):
    x = rand(3, 4, 16)
    case(out, "gelu", "Gelu", [x], 1)
    case(out, "bias_gelu", "BiasGelu", [x, rand(16)], 1)
    case(out, "fast_gelu", "FastGelu", [x], 1)
    case(out, "fast_gelu_bias", "FastGelu", [x, rand(16)], 1)
    case(out, "quick_gelu", "QuickGelu", [x], 1, alpha=1.5)
    case(out, "quick_gelu_default", "QuickGelu", [x], 1)
    case(out, "fused_matmul", "FusedMatMul", [rand(2, 3, 4), rand(2, 4, 5)], 1, alpha=0.5)
    case(out, "fused_matmul_trans", "FusedMatMul", [rand(2, 4, 3), rand(2, 5, 4)], 1, transA=1, transB=1)
    case(out, "fused_matmul_batch", "FusedMatMul", [rand(3, 2, 4), rand(2, 4, 5)], 1, transBatchA=1)
    case(out, "fused_matmul_batch_trans", "FusedMatMul", [rand(4, 2, 3), rand(2, 4, 5)], 1, transBatchA=1, transA=1)


def hybrid(out):
    a, bq = rand(6, 16), rng.integers(0, 256, (16, 8), dtype=np.uint8)
    case(out, "dynamic_quantize_matmul", "DynamicQuantizeMatMul",
         [a, bq, np.array(0.02, f32), np.array(120, np.uint8)], 1, constant=("i1", "i2", "i3"))
    case(out, "dynamic_quantize_matmul_bias", "DynamicQuantizeMatMul",
         [a, bq.astype(np.int8), rng.uniform(0.01, 0.1, 8).astype(f32), None, rand(8)], 1,
         constant=("i1", "i2", "i4"))
    case(out, "matmul_integer_to_float", "MatMulIntegerToFloat",
         [rng.integers(0, 256, (6, 16), dtype=np.uint8), bq, np.array(0.1, f32), np.array(0.02, f32),
          np.array(3, np.uint8), np.array(7, np.uint8)], 1)
    d, e, inter, tokens = 16, 4, 8, 5
    for act in ("relu", "gelu", "silu"):
        case(out, f"moe_{act}", "MoE",
             [rand(tokens, d), rand(tokens, e), rand(e, inter, d), rand(e, inter), rand(e, d, inter), rand(e, d)],
             1, k=2, activation_type=act, normalize_routing_weights=1)
    case(out, "moe_plain", "MoE",
         [rand(tokens, d), rand(tokens, e), rand(e, inter, d), None, rand(e, d, inter)], 1, k=2)
    case(out, "moe_swiglu", "MoE",
         [rand(tokens, d), rand(tokens, e), rand(e, 2 * inter, d), rand(e, 2 * inter), rand(e, d, inter), rand(e, d)],
         1, k=2, activation_type="swiglu", swiglu_fusion=1, activation_alpha=1.702, activation_beta=1.0,
         swiglu_limit=7.0, normalize_routing_weights=1)
    for bits in (4, 8):
        per = 8 // bits
        d, inter = 64, 32
        case(out, f"qmoe_{bits}", "QMoE",
             [rand(tokens, d), rand(tokens, e), rng.integers(0, 256, (e, 2 * inter, d // per), dtype=np.uint8),
              rand(e, 2 * inter, scale=0.02), rand(e, 2 * inter),
              rng.integers(0, 256, (e, d, inter // per), dtype=np.uint8), rand(e, d, scale=0.02), rand(e, d)],
             1, k=2, activation_type="swiglu", swiglu_fusion=1, activation_alpha=1.702, activation_beta=1.0,
             swiglu_limit=7.0, normalize_routing_weights=1, expert_weight_bits=bits)
        case(out, f"qmoe_blocks_{bits}", "QMoE",
             [rand(tokens, d), rand(tokens, e), rng.integers(0, 256, (e, 2 * inter, d // per), dtype=np.uint8),
              rand(e, 2 * inter, 2, scale=0.02), None,
              rng.integers(0, 256, (e, d, inter // per), dtype=np.uint8), rand(e, d, 1, scale=0.02), None],
             1, k=2, activation_type="swiglu", swiglu_fusion=1, activation_alpha=1.0, activation_beta=0.0,
             normalize_routing_weights=1, expert_weight_bits=bits, block_size=32)
    for rule in ("linear", "gated", "delta", "gated_delta"):
        b, t, hq, dk, dv = 2, 4, 2, 8, 8
        inputs = [rand(b, t, hq * dk), rand(b, t, hq * dk, scale=0.3), rand(b, t, hq * dv), rand(b, hq, dk, dv),
                  -np.abs(rand(b, t, hq)) if "gated" in rule else None,
                  rng.uniform(0, 1, (b, t, hq)).astype(f32) if "delta" in rule else None]
        case(out, f"linear_attention_{rule}", "LinearAttention", inputs, 2, update_rule=rule,
             q_num_heads=hq, kv_num_heads=hq, scale=0.5)
    for act in ("none", "silu"):
        case(out, f"causal_conv_{act}", "CausalConvWithState",
             [rand(2, 6, 5), rand(6, 1, 4), rand(6), rand(2, 6, 3)], 2, activation=act)


def main(out):
    for group in (nbits, gather_blocks, attention, norms, rest, hybrid):
        group(out)
    print(len(os.listdir(out)), "cases")


if __name__ == "__main__":
    main(sys.argv[1])
