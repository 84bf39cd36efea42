"""Small decoders that oxgen's own exporter does not write: a cache that a Concat makes longer, a recurrent state of fixed
size, float16 ports, a graph that gives the last token's logits only, and inputs of many exporters."""
import os

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

VOCAB, HIDDEN, HEADS, HEAD = 260, 32, 2, 16


def weights(seed=3):
    r = np.random.default_rng(seed)
    m = lambda *s: (r.standard_normal(s) * 0.3).astype(np.float32)
    return {'table': m(VOCAB, HIDDEN), 'wq': m(HIDDEN, HIDDEN), 'wk': m(HIDDEN, HIDDEN), 'wv': m(HIDDEN, HIDDEN),
            'wo': m(HIDDEN, HIDDEN), 'head': m(HIDDEN, VOCAB), 'places': m(512, HIDDEN)}


def ints(name, *values):
    return nh.from_array(np.array(values, np.int64), name)


def save(folder, nodes, inputs, outputs, constants, opset=17):
    g = h.make_graph(nodes, 'g', inputs, outputs, constants)
    m = h.make_model(g, opset_imports=[h.make_opsetid('', opset), h.make_opsetid('com.microsoft', 1)], ir_version=8)
    os.makedirs(folder, exist_ok=True)
    onnx.save(m, os.path.join(folder, 'model.onnx'))
    return folder


def value(name, dtype, *dims):
    return h.make_tensor_value_info(name, dtype, dims)


def concat_decoder(folder, half=False, last_only=False, positions='position_ids', extra=(), strange=False):
    """One attention layer over past + Concat; the mask comes from attention_mask and the rows' number. strange: with an
    operator that oxgen's interpreter does not have."""
    dtype = T.FLOAT16 if half else T.FLOAT
    cast = lambda a: a.astype(np.float16) if half else a
    w = [nh.from_array(cast(a), n) for n, a in weights().items()]
    consts = w + [ints('split', 0, -1, HEADS, HEAD), ints('join', 0, -1, HIDDEN), ints('one', 1), ints('zero', 0),
                  ints('two', 2), ints('minus', -1), nh.from_array(cast(np.float32([0.25])), 'scale'),
                  nh.from_array(cast(np.float32([-1e4])), 'low')]
    n = h.make_node
    nodes = [n('Gather', ['table', 'input_ids'], ['e0']), n('Gather', ['places', positions], ['e1']),
             n('Add', ['e0', 'e1'], ['e'])]
    for x in 'qkv':
        nodes += [n('MatMul', ['e', 'w' + x], [x + '0']), n('Reshape', [x + '0', 'split'], [x + '1']),
                  n('Transpose', [x + '1'], [x + '2'], perm=[0, 2, 1, 3])]
    nodes += [n('Concat', ['past_key_values.0.key', 'k2'], ['present.0.key'], axis=2),
              n('Concat', ['past_key_values.0.value', 'v2'], ['present.0.value'], axis=2),
              n('Transpose', ['present.0.key'], ['kt'], perm=[0, 1, 3, 2]), n('MatMul', ['q2', 'kt'], ['s0']),
              n('Mul', ['s0', 'scale'], ['s1']),
              # column j is seen by row i of n when j <= total - n + i
              n('Shape', ['attention_mask'], ['m_shape']), n('Gather', ['m_shape', 'one'], ['total']),
              n('Shape', ['input_ids'], ['i_shape']), n('Gather', ['i_shape', 'one'], ['rows']),
              n('Sub', ['total', 'rows'], ['before']), n('Squeeze', ['total', 'zero'], ['total_s']),
              n('Squeeze', ['rows', 'zero'], ['rows_s']), n('Squeeze', ['zero', 'zero'], ['zero_s']),
              n('Squeeze', ['one', 'zero'], ['one_s']),
              n('Range', ['zero_s', 'total_s', 'one_s'], ['columns']), n('Range', ['zero_s', 'rows_s', 'one_s'], ['r0']),
              n('Add', ['r0', 'before'], ['r1']), n('Unsqueeze', ['r1', 'one'], ['r2']),
              n('Greater', ['columns', 'r2'], ['hidden']), n('Cast', ['hidden'], ['hf'], to=dtype),
              n('Mul', ['hf', 'low'], ['bias']), n('Add', ['s1', 'bias'], ['s2']), n('Softmax', ['s2'], ['p'], axis=-1),
              n('MatMul', ['p', 'present.0.value'], ['a0']), n('Transpose', ['a0'], ['a1'], perm=[0, 2, 1, 3]),
              n('Reshape', ['a1', 'join'], ['a2']), n('MatMul', ['a2', 'wo'], ['a3']), n('Add', ['a3', 'e'], ['x'])]
    if last_only:
        nodes += [n('Gather', ['x', 'minus'], ['xl'], axis=1), n('MatMul', ['xl', 'head'], ['logits'])]
    elif strange:
        consts += [nh.from_array(np.ones((1, 1), np.float32), 'unit')]
        nodes += [n('Inverse', ['unit'], ['inverse'], domain='com.microsoft'), n('MatMul', ['x', 'head'], ['y']), n('Mul', ['y', 'inverse'], ['logits'])]
    else:
        nodes += [n('MatMul', ['x', 'head'], ['logits'])]
    for name, _ in extra:
        nodes += [n('Identity', [name], ['seen.' + name])]
    cache = lambda name, length: value(name, dtype, 'batch', HEADS, length, HEAD)
    inputs = [value('input_ids', T.INT64, 'batch', 'sequence'), value('attention_mask', T.INT64, 'batch', 'total'),
              value(positions, T.INT64, 'batch', 'sequence')] + [value(e, t, 1) for e, t in extra]
    inputs += [cache('past_key_values.0.key', 'past'), cache('past_key_values.0.value', 'past')]
    outputs = [value('logits', dtype, 'batch', 1 if last_only else 'sequence', VOCAB), cache('present.0.key', 'total'),
               cache('present.0.value', 'total')]
    return save(folder, nodes, inputs, outputs, consts)


def state_decoder(folder):
    """logits = running sum of embeddings times a matrix: the sum is a state of fixed size."""
    w = weights()
    n = h.make_node
    nodes = [n('Gather', ['table', 'input_ids'], ['e']), n('CumSum', ['e', 'one'], ['c']),
             n('Add', ['c', 'past_recurrent.0'], ['x']), n('MatMul', ['x', 'head'], ['logits']),
             n('ReduceSum', ['e', 'axes'], ['s'], keepdims=1), n('Add', ['s', 'past_recurrent.0'], ['present_recurrent.0'])]
    consts = [nh.from_array(w['table'], 'table'), nh.from_array(w['head'], 'head'),
              nh.from_array(np.array(1, np.int64), 'one'), ints('axes', 1)]
    return save(folder, nodes, [value('input_ids', T.INT64, 'batch', 'sequence'),
                                value('past_recurrent.0', T.FLOAT, 'batch', 1, HIDDEN)],
                [value('logits', T.FLOAT, 'batch', 'sequence', VOCAB), value('present_recurrent.0', T.FLOAT, 'batch', 1, HIDDEN)],
                consts)


def plain_graphs(folder):
    """name -> (path, inputs): graphs that are no decoders."""
    r = np.random.default_rng(5)
    os.makedirs(folder, exist_ok=True)
    out = {}

    def add(name, nodes, feeds, outputs, consts=(), opset=17):
        inputs = [h.make_tensor_value_info(k, h.np_dtype_to_tensor_dtype(v.dtype), [f'{k}{i}' for i in range(v.ndim)])
                  for k, v in feeds.items()]
        g = h.make_graph(nodes, 'g', inputs, [h.make_empty_tensor_value_info(o) for o in outputs], list(consts))
        path = os.path.join(folder, name + '.onnx')
        onnx.save(h.make_model(g, opset_imports=[h.make_opsetid('', opset)], ir_version=8), path)
        out[name] = (path, feeds)

    n, f = h.make_node, lambda *s: r.standard_normal(s).astype(np.float32)
    add('matmul', [n('MatMul', ['a', 'b'], ['c']), n('Relu', ['c'], ['d'])], {'a': f(3, 40), 'b': f(40, 9)}, ['c', 'd'])
    add('conv', [n('Conv', ['x', 'w'], ['y'], pads=[1, 1, 1, 1])], {'x': f(1, 3, 8, 8), 'w': f(4, 3, 3, 3)}, ['y'])
    add('lstm', [n('LSTM', ['x', 'w', 'r'], ['y', 'h'], hidden_size=6)], {'x': f(5, 1, 4), 'w': f(1, 24, 4), 'r': f(1, 24, 6)}, ['y', 'h'])
    add('topk', [n('TopK', ['x', 'k'], ['v', 'i'])], {'x': f(4, 30)}, ['v', 'i'], [ints('k', 5)])
    add('halves', [n('Cast', ['x'], ['y'], to=T.FLOAT16), n('IsNaN', ['x'], ['b'])], {'x': f(2, 3)}, ['y', 'b'])
    return out
