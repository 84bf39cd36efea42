"""Runs a decoder folder with ONNX Runtime: the whole prompt at once, or in pieces over a cache."""
import os

import numpy as np
import onnxruntime as ort

TYPES = {'tensor(float)': np.float32, 'tensor(float16)': np.float16}


def logits(folder, ids, pieces=None):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(os.path.join(folder, 'model.onnx'), options,
                                   providers=['CPUExecutionProvider'])
    past = {i.name: np.zeros((1, i.shape[1], 0, i.shape[3]), TYPES[i.type])
            for i in session.get_inputs() if i.name.startswith('past_key_values.')}
    names = [o.name for o in session.get_outputs()]
    out, position = [], 0
    for n in pieces or [len(ids)]:
        feed = dict(past, input_ids=np.array([ids[position:position + n]], np.int64),
                    attention_mask=np.ones((1, position + n), np.int64))
        position += n
        result = dict(zip(names, session.run(names, feed)))
        out.append(result['logits'][0].astype(np.float32))
        past = {k.replace('present', 'past_key_values'): v for k, v in result.items()
                if k.startswith('present.')}
    return np.concatenate(out)


def difference(a, b):
    """Largest difference over the largest value."""
    return float(np.abs(a - b).max() / np.abs(b).max())
