"""Golden blocks of ONNX Runtime's own quantiser for src/convert/quantize_test.c.

usage: python tools/gen_quantize_golden.py > tests/data/convert/quantize.txt   (needs onnxruntime)

A line: bits block symmetric columns | float32 inputs as hex words | codes | scales as hex words |
zero points. Codes of columns past the end, and the unused half of a last zero point, are cleared.
"""
import numpy as np
from onnxruntime.capi._pybind_state import quantize_matmul_4bits, quantize_matmul_8bits

rng = np.random.default_rng(7)


def rows(cols):
    w = rng.standard_normal(cols).astype(np.float32)
    yield w
    yield np.abs(w) * np.float32(1e-3)
    yield -np.abs(w) * np.float32(40)
    yield np.zeros(cols, np.float32)
    yield np.full(cols, 1, np.float32)
    yield np.round(w * 2) / np.float32(8)  # ties


def words(a):
    return ' '.join(f'{v:08x}' for v in a.view(np.uint32))


for bits, quantise in ((4, quantize_matmul_4bits), (8, quantize_matmul_8bits)):
    for block in (16, 32, 64):
        for symmetric in (True, False):
            for cols in (64, 37):
                for w in rows(cols):
                    n = -(-cols // block)
                    codes = np.zeros((1, n, block * bits // 8), np.uint8)
                    scales = np.zeros((1, n), np.float32)
                    zeros = np.zeros((1, (n * bits + 7) // 8), np.uint8)
                    quantise(codes, np.ascontiguousarray(w.reshape(1, -1).T), scales, zeros, block,
                             1, cols, symmetric)
                    flat = codes.reshape(-1)
                    if bits == 4:
                        q = np.stack([flat & 15, flat >> 4], -1).reshape(-1)[:cols]
                        z = np.stack([zeros & 15, zeros >> 4], -1).reshape(-1)[:n]
                    else:
                        q, z = flat[:cols], zeros.reshape(-1)[:n]
                    print(bits, block, int(symmetric), cols, '|', words(w), '|', *q, '|',
                          words(scales.reshape(-1)), '|', *([] if symmetric else z))
