#!/usr/bin/env python3
"""Writes tests/data/files: small files of every format and what the reference libraries read in them.

Needs onnx, gguf, safetensors, numpy and ml_dtypes. Run it from the repository root; the results are
committed, so the tests themselves need no Python."""
import json
import os
import struct

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto as TP
from onnx import helper as oh
from onnx import numpy_helper

OUT = "tests/data/files"

# --- dumps: the same text that onnx_test.c prints from its records ---

KINDS = {"tensor_type": 0, "sequence_type": 1, "optional_type": 2}


def text(b):
    return (b if isinstance(b, bytes) else b.encode()).hex()


def pack(t, a):
    bits = {TP.UINT4: 4, TP.INT4: 4, TP.FLOAT4E2M1: 4, TP.UINT2: 2, TP.INT2: 2}.get(t.data_type, 0)
    if not bits:
        return a.tobytes()
    codes = np.atleast_1d(a).reshape(-1).view(np.uint8).astype(np.uint32) & ((1 << bits) - 1)
    out = bytearray((len(codes) * bits + 7) // 8)
    for i, c in enumerate(codes):
        out[i * bits // 8] |= int(c) << (i * bits % 8)
    return bytes(out)


def tensor(t, base=""):
    dims = ",".join(str(d) for d in t.dims)
    a = numpy_helper.to_array(t, base)
    if t.data_type == TP.STRING:
        body = " ".join(text(s) for s in np.atleast_1d(a).reshape(-1))
    else:
        body = pack(t, a).hex()
    ext = " external" if t.data_location == TP.EXTERNAL else ""
    return f"{t.name} {t.data_type} [{dims}]{ext} {body}".rstrip()


def sparse(s):
    return f"{','.join(str(d) for d in s.dims)} | {tensor(s.values)} | {tensor(s.indices)}"


def type_of(tp):
    kind, depth = 0, 0
    which = tp.WhichOneof("value")
    while which in ("sequence_type", "optional_type"):
        if depth == 0:
            kind = KINDS[which]
        depth += 1
        tp = getattr(tp, which).elem_type
        which = tp.WhichOneof("value")
    if which is None:
        return f"{kind} 0 ?"
    if which != "tensor_type":
        return "3 0 ?"
    tt = tp.tensor_type
    if not tt.HasField("shape"):
        return f"{kind} {tt.elem_type} ?"
    dims = []
    for d in tt.shape.dim:
        w = d.WhichOneof("value")
        dims.append(str(d.dim_value) if w == "dim_value" else "-1:" + (d.dim_param if w else ""))
    return f"{kind} {tt.elem_type} [{','.join(dims)}]"


def bits(f):
    return struct.pack(">f", f).hex()


def attr(a, ind, out):
    A = onnx.AttributeProto
    t = a.type
    line = f"{ind}attr {a.name} {t}"
    if a.ref_attr_name:
        out.append(line + f" ref {a.ref_attr_name}")
        return
    if t == A.FLOAT:
        out.append(line + " " + bits(a.f))
    elif t == A.INT:
        out.append(line + f" {a.i}")
    elif t == A.STRING:
        out.append((line + " " + text(a.s)).rstrip())
    elif t == A.TENSOR:
        out.append(line + " " + tensor(a.t))
    elif t == A.FLOATS:
        out.append(" ".join([line] + [bits(f) for f in a.floats]))
    elif t == A.INTS:
        out.append(" ".join([line] + [str(i) for i in a.ints]))
    elif t == A.STRINGS:
        out.append(" ".join([line] + [text(s) or "." for s in a.strings]))
    elif t == A.TENSORS:
        out.append(line)
        out.extend(ind + " " + tensor(x) for x in a.tensors)
    elif t == A.GRAPH:
        out.append(line)
        graph(a.g, ind + "  ", out)
    elif t == A.GRAPHS:
        out.append(line)
        for g in a.graphs:
            graph(g, ind + "  ", out)
    elif t == A.TYPE_PROTO:
        out.append(line + " " + type_of(a.tp))
    elif t == A.SPARSE_TENSOR:
        out.append(line + " " + sparse(a.sparse_tensor))
    else:
        out.append(line)


def node(n, ind, out):
    out.append(f"{ind}node {n.name}|{n.op_type}|{n.domain}|{n.overload} "
               f"({','.join(n.input)}) ({','.join(n.output)})")
    for a in n.attribute:
        attr(a, ind + " ", out)


def graph(g, ind, out, base=""):
    out.append(f"{ind}graph {g.name}")
    for word, list_ in (("input", g.input), ("output", g.output), ("value", g.value_info)):
        out.extend(f"{ind}{word} {v.name} {type_of(v.type)}" for v in list_)
    out.extend(f"{ind}init {tensor(t, base)}" for t in g.initializer)
    out.extend(f"{ind}sparse {sparse(s)}" for s in g.sparse_initializer)
    for n in g.node:
        node(n, ind, out)


def dump(m, base=""):
    out = [f"ir {m.ir_version} {m.producer_name} {m.producer_version}"]
    out += [f"opset {o.domain} {o.version}" for o in m.opset_import]
    graph(m.graph, "", out, base)
    for f in m.functions:
        out.append(f"function {f.domain}|{f.name}|{f.overload} ({','.join(f.input)}) "
                   f"({','.join(f.output)}) ({','.join(f.attribute)})")
        out += [f" opset {o.domain} {o.version}" for o in f.opset_import]
        for a in f.attribute_proto:
            attr(a, " ", out)
        for n in f.node:
            node(n, " ", out)
    return "\n".join(out) + "\n"


# --- models ---

VALUES = {
    TP.FLOAT: np.float32([1.5, -2, 0]), TP.UINT8: np.uint8([1, 2, 255]),
    TP.INT8: np.int8([-1, 2, -128]), TP.UINT16: np.uint16([1, 2, 65535]),
    TP.INT16: np.int16([-1, 2, -32768]), TP.INT32: np.int32([-1, 2, -2**31]),
    TP.INT64: np.int64([-1, 2, -2**63]), TP.BOOL: np.array([True, False, True]),
    TP.FLOAT16: np.float16([1.5, -2, 6e-8]), TP.DOUBLE: np.float64([1.5, -2, 1e300]),
    TP.UINT32: np.uint32([1, 2, 2**32 - 1]), TP.UINT64: np.uint64([1, 2, 2**64 - 1]),
    TP.COMPLEX64: np.complex64([1 + 2j, -3j, 0]), TP.COMPLEX128: np.complex128([1 + 2j, -3j, 0]),
    TP.BFLOAT16: np.array([1.5, -2, 3], ml_dtypes.bfloat16),
    TP.FLOAT8E4M3FN: np.array([1.5, -2, 3], ml_dtypes.float8_e4m3fn),
    TP.FLOAT8E4M3FNUZ: np.array([1.5, -2, 3], ml_dtypes.float8_e4m3fnuz),
    TP.FLOAT8E5M2: np.array([1.5, -2, 3], ml_dtypes.float8_e5m2),
    TP.FLOAT8E5M2FNUZ: np.array([1.5, -2, 3], ml_dtypes.float8_e5m2fnuz),
    TP.UINT4: np.array([1, 2, 15], ml_dtypes.uint4), TP.INT4: np.array([-1, 2, -8], ml_dtypes.int4),
    TP.FLOAT4E2M1: np.array([1.5, -2, 3], ml_dtypes.float4_e2m1fn),
    TP.FLOAT8E8M0: np.array([1, 2, 4], ml_dtypes.float8_e8m0fnu),
    TP.UINT2: np.array([1, 2, 3, 0, 1], ml_dtypes.uint2), TP.INT2: np.array([1, -2, -1, 0, 1], ml_dtypes.int2),
}


def typed_tensor(name, dt, a):
    """The values in the typed field, by the rules of onnx.proto."""
    t = TP(name=name, data_type=dt, dims=a.shape)
    flat = a.reshape(-1)
    if dt in (TP.FLOAT, TP.COMPLEX64):
        t.float_data.extend(flat.view(np.float32).tolist())
    elif dt in (TP.DOUBLE, TP.COMPLEX128):
        t.double_data.extend(flat.view(np.float64).tolist())
    elif dt == TP.INT64:
        t.int64_data.extend(flat.tolist())
    elif dt in (TP.UINT32, TP.UINT64):
        t.uint64_data.extend(flat.tolist())
    elif dt in (TP.FLOAT16, TP.BFLOAT16):
        t.int32_data.extend(flat.view(np.uint16).tolist())
    elif dt in (TP.UINT4, TP.INT4, TP.FLOAT4E2M1, TP.UINT2, TP.INT2):
        t.int32_data.extend(pack(t, a))
    elif a.dtype.itemsize == 1 and dt not in (TP.INT8, TP.UINT8, TP.BOOL):
        t.int32_data.extend(flat.view(np.uint8).tolist())
    else:
        t.int32_data.extend(flat.astype(np.int32).tolist())
    return t


def tensors_model():
    inits = []
    for dt, a in VALUES.items():
        raw = TP(name=f"raw{dt}", data_type=dt, dims=a.shape)
        raw.raw_data = pack(raw, a)
        inits += [raw, typed_tensor(f"typed{dt}", dt, a)]
    inits.append(oh.make_tensor("strings", TP.STRING, [2, 2], [b"a", b"", "\u00e9".encode(), b"\x00x"]))
    inits.append(oh.make_tensor("scalar", TP.FLOAT, [], [2.5]))
    inits.append(oh.make_tensor("none", TP.FLOAT, [0, 3], []))
    sp = oh.make_sparse_tensor(oh.make_tensor("sp", TP.FLOAT, [2], [1, 2]),
                               oh.make_tensor("", TP.INT64, [2, 2], [0, 1, 2, 0]), [3, 2])
    sp1 = oh.make_sparse_tensor(oh.make_tensor("sp1", TP.FLOAT, [2], [1, 2]),
                                oh.make_tensor("", TP.INT64, [2], [0, 5]), [3, 2])
    y = oh.make_tensor_value_info("scalar", TP.FLOAT, [])
    g = oh.make_graph([], "tensors", [], [y], inits, sparse_initializer=[sp, sp1])
    return oh.make_model(g, opset_imports=[oh.make_opsetid("", 21)], ir_version=13)


def nodes_model():
    f32 = TP.FLOAT
    inner = oh.make_graph([oh.make_node("Add", ["x", "one"], ["t"], "inner_add")], "then", [],
                          [oh.make_tensor_value_info("t", f32, None)],
                          [oh.make_tensor("one", f32, [], [1.0])])
    other = oh.make_graph([oh.make_node("Identity", ["x"], ["e"])], "else", [],
                          [oh.make_tensor_value_info("e", f32, ["N", 3])])
    sparse_value = oh.make_sparse_tensor(oh.make_tensor("v", f32, [1], [1]),
                                         oh.make_tensor("i", TP.INT64, [1], [0]), [4])
    every = oh.make_node(
        "Every", ["x", "", "y"], ["a", "", "b"], "every", domain="test", overload="two",
        f=1.5, i=-7, s="text", empty="", fs=[1.0, -2.5], is_=[1, -2, 2**62], ss=["a", "", "c"],
        t=oh.make_tensor("tt", TP.INT64, [2], [3, 4]),
        ts=[oh.make_tensor("t0", f32, [1], [3]), oh.make_tensor("t1", TP.STRING, [1], ["s"])],
        gs=[inner, other], tp=oh.make_tensor_type_proto(f32, [1, "Q"]), sp=sparse_value)
    loose = onnx.AttributeProto(name="guess", ints=[5, 6])  # no type: inferred
    packed = onnx.AttributeProto(name="zero", type=onnx.AttributeProto.INT)  # absent value = 0
    every.attribute.extend([loose, packed])
    ref = oh.make_node("Gemm", ["u"], ["v"], "in_function")
    ref.attribute.append(onnx.AttributeProto(name="alpha", type=1, ref_attr_name="scale"))
    fn = oh.make_function("test", "Twice", ["u"], ["v"], [ref], [oh.make_opsetid("", 21)],
                          attributes=["scale"], attribute_protos=[oh.make_attribute("beta", 2.0)])
    cond = oh.make_node("If", ["c"], ["o"], then_branch=inner, else_branch=other)
    values = [
        oh.make_tensor_value_info("a", TP.FLOAT16, ["batch", None, 4]),
        oh.make_value_info("seq", oh.make_sequence_type_proto(oh.make_tensor_type_proto(f32, [2]))),
        oh.make_value_info("opt", oh.make_optional_type_proto(
            oh.make_sequence_type_proto(oh.make_tensor_type_proto(TP.INT64, None)))),
        oh.make_value_info("map", oh.make_map_type_proto(TP.INT64, oh.make_tensor_type_proto(f32, [1]))),
        onnx.ValueInfoProto(name="bare"),
        oh.make_tensor_value_info("wide", f32, [1] * 9),
    ]
    g = oh.make_graph([every, cond], "nodes",
                      [oh.make_tensor_value_info("x", f32, ["N", 3]), oh.make_tensor_value_info("c", TP.BOOL, [])],
                      [oh.make_tensor_value_info("o", f32, None)], value_info=values)
    return oh.make_model(g, functions=[fn], producer_name="gen", producer_version="1",
                         opset_imports=[oh.make_opsetid("", 21), oh.make_opsetid("test", 1)], ir_version=10)


def nodes_dump(m):
    out = dump(m)
    # the reader infers missing types and forgets shapes of more than eight dimensions
    out = out.replace(" attr guess 0\n", " attr guess 7 5 6\n")
    return out.replace("value wide 0 1 [1,1,1,1,1,1,1,1,1]", "value wide 0 1 ?")


def external_model():
    """Two tensors share bytes, one lies unaligned, one has no length."""
    data = np.arange(16, dtype=np.float32).tobytes() + b"\x01" + np.int64([7, 8]).tobytes()
    with open(f"{OUT}/external.data", "wb") as f:
        f.write(data)

    def ref(name, dt, dims, **kw):
        t = TP(name=name, data_type=dt, dims=dims, data_location=TP.EXTERNAL)
        for k, v in dict(location="external.data", **kw).items():
            t.external_data.add(key=k, value=str(v))
        return t

    inits = [ref("whole", TP.FLOAT, [16], offset=0, length=64), ref("part", TP.FLOAT, [2, 2], offset=16, length=16),
             ref("byte", TP.UINT8, [1], offset=64, length=1), ref("odd", TP.INT64, [2], offset=65)]
    g = oh.make_graph([], "external", [], [oh.make_tensor_value_info("whole", TP.FLOAT, [16])], inits)
    return oh.make_model(g, opset_imports=[oh.make_opsetid("", 21)], ir_version=10)


def write_onnx():
    for name, m, to_text in (("tensors", tensors_model(), dump), ("nodes", nodes_model(), nodes_dump),
                             ("external", external_model(), lambda m: dump(m, OUT))):
        with open(f"{OUT}/{name}.onnx", "wb") as f:
            f.write(m.SerializeToString())
        with open(f"{OUT}/{name}.onnx.txt", "w") as f:
            f.write(to_text(m))
    seq = onnx.numpy_helper.from_list([np.float32([1, 2]), np.float32([3])], "s")
    opt = onnx.numpy_helper.from_optional(np.int64([[5]]), "o", onnx.OptionalProto.TENSOR)
    for name, p in (("sequence", seq), ("optional", opt)):
        with open(f"{OUT}/{name}.pb", "wb") as f:
            f.write(p.SerializeToString())


# --- GGUF: dumped as "key type is_array items" and "name [dims] type bytes" from gguf's own reader ---

def write_gguf():
    import gguf
    path = f"{OUT}/small.gguf"
    w = gguf.GGUFWriter(path, "test")
    w.add_uint8("a.u8", 200)
    w.add_int8("a.i8", -5)
    w.add_uint16("a.u16", 60000)
    w.add_int16("a.i16", -300)
    w.add_uint32("a.u32", 4000000000)
    w.add_int32("a.i32", -7)
    w.add_float32("a.f32", 1.5)
    w.add_float64("a.f64", 1e300)
    w.add_uint64("a.u64", 2**63 - 1)
    w.add_int64("a.i64", -2**63)
    w.add_bool("a.bool", True)
    w.add_string("a.string", "text \u00e9")
    w.add_array("a.strings", ["a", "", "c\u00e9"])
    w.add_array("a.ints", [1, -2, 3])
    w.add_array("a.floats", [0.5, -1.5])
    w.add_array("a.bools", [True, False])
    rng = np.random.default_rng(7)
    w.add_tensor("f32", rng.standard_normal((3, 8)).astype(np.float32))
    w.add_tensor("f16", rng.standard_normal(5).astype(np.float16))
    for q in (gguf.GGMLQuantizationType.Q4_0, gguf.GGMLQuantizationType.Q8_0):
        a = gguf.quants.quantize(rng.standard_normal((2, 64)).astype(np.float32), q)
        w.add_tensor(q.name.lower(), a, raw_dtype=q)
    w.add_tensor("odd", np.zeros((1, 136), np.uint8), raw_dtype=gguf.GGMLQuantizationType.IQ4_XS)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    r = gguf.GGUFReader(path)
    out = []
    for f in r.fields.values():
        if f.name.startswith("GGUF."):
            continue
        is_array = f.types[0] == gguf.GGUFValueType.ARRAY
        items = f.contents() if is_array else [f.contents()]
        t = f.types[-1]
        show = {gguf.GGUFValueType.STRING: lambda x: text(x) or ".", gguf.GGUFValueType.FLOAT32: bits,
                gguf.GGUFValueType.FLOAT64: lambda x: struct.pack(">d", x).hex()}.get(t, lambda x: str(int(x)))
        out.append(f"{f.name} {int(t)} {int(is_array)} " + " ".join(show(x) for x in items))
    for t in r.tensors:
        dims = ",".join(str(int(d)) for d in t.shape)
        known = t.name != "odd"
        out.append(f"{t.name} [{dims}] {int(t.tensor_type)} " + (t.data.tobytes().hex() if known else "?"))
    with open(path + ".txt", "w") as f:
        f.write("\n".join(out) + "\n")


# --- safetensors: dumped as "name type [dims] bytes" ---

def write_safetensors():
    from safetensors import safe_open
    from safetensors.numpy import save_file
    arrays = {f"t.{k}": v for k, v in {
        "f32": np.float32([[1, -2, 3]]), "f16": np.float16([1.5]), "i64": np.int64([[-1], [2]]),
        "u8": np.uint8([1, 2, 3]), "bool": np.array([True, False]), "scalar": np.array(7, np.float32),
        "empty": np.zeros((0, 4), np.float32), "bf16": np.array([1.5, -2], ml_dtypes.bfloat16)}.items()}
    save_file(arrays, f"{OUT}/one.safetensors", metadata={"format": "pt"})
    os.makedirs(f"{OUT}/shards", exist_ok=True)
    parts = [{k: v for i, (k, v) in enumerate(arrays.items()) if i % 2 == j} for j in (0, 1)]
    index = {"metadata": {"total_size": 1}, "weight_map": {}}
    for j, part in enumerate(parts):
        name = f"model-0000{j + 1}-of-00002.safetensors"
        save_file(part, f"{OUT}/shards/{name}")
        index["weight_map"].update({k: name for k in part})
    with open(f"{OUT}/shards/model.safetensors.index.json", "w") as f:
        json.dump(index, f, indent=1)
    with safe_open(f"{OUT}/one.safetensors", "numpy") as f:
        out = []
        for k in sorted(f.keys()):
            s = f.get_slice(k)
            dims = ",".join(str(d) for d in s.get_shape())
            out.append(f"{k} {s.get_dtype()} [{dims}] {f.get_tensor(k).tobytes().hex()}".rstrip())
    with open(f"{OUT}/one.safetensors.txt", "w") as f:
        f.write("\n".join(out) + "\n")


# --- npy: "file dtype [dims] bytes" ---

def write_npy():
    arrays = {"f4": np.float32([[1, 2], [3, -4]]), "f2": np.float16([1.5, -2]), "b1": np.array([[True], [False]]),
              "i8": np.int64([-5]), "scalar": np.array(2.5), "u2": np.uint16([1, 65535]),
              "c8": np.complex64([1 + 2j]), "empty": np.zeros((2, 0), np.int32),
              "fortran": np.asfortranarray(np.float32([[1, 2], [3, 4]])), "big": np.array([1, 2], ">i4"),
              "text": np.array(["ab"])}
    code = {"float32": 1, "uint16": 4, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11,
            "complex64": 14}
    out = []
    for name, a in arrays.items():
        np.save(f"{OUT}/{name}.npy", a)
        if name in ("fortran", "big", "text"):
            continue
        b = np.load(f"{OUT}/{name}.npy")
        dims = ",".join(str(d) for d in b.shape)
        out.append(f"{name} {code[b.dtype.name]} [{dims}] {b.tobytes().hex()}".rstrip())
    with open(f"{OUT}/v2.npy", "wb") as f:
        np.lib.format.write_array(f, np.int8([1, -1]), version=(2, 0))
    out.append("v2 3 [2] 01ff")
    with open(f"{OUT}/npy.txt", "w") as f:
        f.write("\n".join(out) + "\n")


# --- model folders: two-layer decoders that do nothing, with every text file ---

def decoder_model(past, present, ids="input_ids", mask="attention_mask", positions=None, external=None):
    """past and present: templates with {} for the layer and {kv} for key or value."""
    f32 = TP.FLOAT
    kv = ["batch", 2, "past", 4]
    ins = [oh.make_tensor_value_info(ids, TP.INT64, ["batch", "seq"]),
           oh.make_tensor_value_info(mask, TP.INT64, ["batch", "total"])]
    if positions:
        ins.append(oh.make_tensor_value_info(positions, TP.INT64, ["batch", "seq"]))
    outs = [oh.make_tensor_value_info("logits", f32, ["batch", "seq", 16])]
    nodes = [oh.make_node("Gather", ["table", ids], ["logits"], "/embed")]
    for i in range(2):
        for k in ("key", "value"):
            a, b = past.format(i, kv=k), present.format(i, kv=k)
            ins.append(oh.make_tensor_value_info(a, f32, kv))
            outs.append(oh.make_tensor_value_info(b, f32, kv))
            nodes.append(oh.make_node("Identity", [a], [b], f"/layer.{i}/{k}"))
    table = oh.make_tensor("table", f32, [16, 16], np.eye(16, dtype=np.float32).tobytes(), raw=True)
    if external:
        data, table.raw_data = table.raw_data, b""
        table.ClearField("raw_data")
        table.data_location = TP.EXTERNAL
        table.external_data.add(key="location", value=os.path.basename(external))
        with open(external, "wb") as f:
            f.write(data)
    g = oh.make_graph(nodes, "decoder", ins, outs, [table])
    return oh.make_model(g, opset_imports=[oh.make_opsetid("", 21)], ir_version=10)


def write_text(path, value):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(value if isinstance(value, str) else json.dumps(value, indent=1) + "\n")


def write_models():
    tokenizer = {"version": "1.0", "added_tokens": [{"id": 15, "content": "<end>", "special": True}],
                 "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "</s>": 2}, "merges": []}}
    d = "tests/data/model/genai"
    write_text(f"{d}/genai_config.json", {
        "model": {"type": "tiny", "vocab_size": 16, "context_length": 128, "bos_token_id": 1,
                  "eos_token_id": [15, 2, 15], "pad_token_id": 15, "new_key": 1,
                  "decoder": {"filename": "model.onnx", "head_size": 4, "hidden_size": 16,
                              "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2,
                              "session_options": {"provider_options": []},
                              "inputs": {"input_ids": "input_ids", "attention_mask": "attention_mask",
                                         "past_key_names": "past_key_values.%d.key",
                                         "past_value_names": "past_key_values.%d.value"},
                              "outputs": {"logits": "logits", "present_key_names": "present.%d.key",
                                          "present_value_names": "present.%d.value"}}},
        "search": {"do_sample": True, "max_length": 128, "temperature": 0.6, "top_k": 20, "top_p": 1.0,
                   "repetition_penalty": 1.1, "num_beams": 1}})
    m = decoder_model("past_key_values.{}.{kv}", "present.{}.{kv}", external=f"{d}/model.onnx.data")
    with open(f"{d}/model.onnx", "wb") as f:
        f.write(m.SerializeToString())
    write_text(f"{d}/tokenizer.json", tokenizer)
    write_text(f"{d}/tokenizer_config.json", {"chat_template": "from config", "bos_token": "a"})
    write_text(f"{d}/special_tokens_map.json", {"bos_token": "b", "eos_token": {"content": "<end>"}})
    write_text(f"{d}/chat_template.jinja", "from file")
    d = "tests/data/model/hub"
    write_text(f"{d}/config.json", {"model_type": "tiny", "bos_token_id": 1, "vocab_size": 99, "eos_token_id": None,
                                    "text_config": {"max_position_embeddings": 64}})
    write_text(f"{d}/generation_config.json", {"do_sample": False, "temperature": 0.5, "top_p": 0.9})
    write_text(f"{d}/tokenizer.json", tokenizer)
    write_text(f"{d}/tokenizer_config.json", {
        "eos_token": "<end>",
        "chat_template": [{"name": "default", "template": "plain"}, {"name": "tool_use", "template": "tools"}]})
    m = decoder_model("past_{kv}_{}", "present_{kv}_{}", ids="tokens", mask="pad_mask", positions="position_ids")
    os.makedirs(f"{d}/onnx", exist_ok=True)
    with open(f"{d}/onnx/model.onnx", "wb") as f:
        f.write(m.SerializeToString())


def main():
    os.makedirs(OUT, exist_ok=True)
    write_onnx()
    write_gguf()
    write_safetensors()
    write_npy()
    write_models()


if __name__ == "__main__":
    main()
