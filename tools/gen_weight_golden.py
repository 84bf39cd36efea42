#!/usr/bin/env python3
"""Writes tests/golden/weight.bin: random blocks of every format with the values that others read.

Block formats: the gguf package's dequantize. NBITS: onnxruntime's MatMulNBits of the identity.
Records, little endian: int32 kind (0 block, 1 nbits), then
  block: int32 ggml type, rows, cols, n bytes; bytes; float32 values
  nbits: int32 bits, block, rows, cols, zeros (0 none, 1 codes, 2 floats), n codes, n zero bytes;
         codes; float32 scales; zeros; float32 values
"""
import struct
import sys

import gguf
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

rng = np.random.default_rng(1)
TYPES = {2: [0], 3: [0, 2], 6: [0], 7: [0, 2], 8: [0], 10: [80, 82], 11: [108], 12: [0, 2],
         13: [0, 2], 14: [208], 20: [0]}  # ggml type: offsets of its float16 fields


def block_record(code, halves):
    qt = gguf.GGMLQuantizationType(code)
    n, size = gguf.GGML_QUANT_SIZES[qt]
    rows, per = 2, 3 if n == 32 else 2
    raw = rng.integers(0, 256, (rows * per, size), dtype=np.uint8)
    for at in halves:
        h = rng.integers(0, 0x7c00, rows * per).astype(np.uint16)  # any finite, subnormal included
        h |= (rng.integers(0, 2, rows * per) << 15).astype(np.uint16)
        raw[:, at:at + 2] = h.view(np.uint8).reshape(-1, 2)
    values = gguf.quants.dequantize(raw, qt).astype(np.float32).reshape(rows, per * n)
    head = struct.pack("<6i", 0, code, rows, per * n, raw.size, 0)
    return head + raw.tobytes() + values.tobytes()


def nbits_record(bits, block, rows, cols, zeros):
    kb = -(-cols // block)
    codes = rng.integers(0, 256, (rows, kb, block * bits // 8), dtype=np.uint8)
    scales = (rng.standard_normal((rows, kb)) * 0.1).astype(np.float32)
    names, init = ["A", "B", "S"], [onnx.numpy_helper.from_array(codes, "B"),
                                    onnx.numpy_helper.from_array(scales.reshape(-1), "S")]
    z = np.zeros(0, np.uint8)
    if zeros == 1:
        z = rng.integers(0, 256, (rows, -(-kb * bits // 8)), dtype=np.uint8)
    if zeros == 2:
        z = (rng.random((rows, kb)) * (2**bits - 1)).astype(np.float32)
    if zeros:
        names.append("Z")
        init.append(onnx.numpy_helper.from_array(z.reshape(-1), "Z"))
    node = helper.make_node("MatMulNBits", names, ["Y"], domain="com.microsoft", K=cols, N=rows,
                            bits=bits, block_size=block, accuracy_level=1)
    graph = helper.make_graph([node], "g",
                              [helper.make_tensor_value_info("A", TensorProto.FLOAT, [cols, cols])],
                              [helper.make_tensor_value_info("Y", TensorProto.FLOAT, [cols, rows])], init)
    model = helper.make_model(graph, ir_version=10, opset_imports=[
        helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)])
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    values = session.run(None, {"A": np.eye(cols, dtype=np.float32)})[0].T.astype(np.float32)
    head = struct.pack("<8i", 1, bits, block, rows, cols, zeros, codes.size, z.nbytes)
    return head + codes.tobytes() + scales.tobytes() + z.tobytes() + np.ascontiguousarray(values).tobytes()


with open(sys.argv[1] if len(sys.argv) > 1 else "tests/golden/weight.bin", "wb") as f:
    for code, halves in TYPES.items():
        f.write(block_record(code, halves))
    for bits in (2, 4, 8):
        for block, cols in ((16, 40), (32, 96), (64, 100), (128, 256)):
            for zeros in (0, 1, 2):
                try:
                    f.write(nbits_record(bits, block, 3, cols, zeros))
                except Exception as e:  # onnxruntime lacks the combination
                    print("left out:", bits, block, zeros, str(e).splitlines()[0][:80])
