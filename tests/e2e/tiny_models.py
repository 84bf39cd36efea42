"""Tiny random models in every form, written with numpy and the standard library alone: a GGUF file, a Hugging Face
folder with safetensors. What is wrong with them is the caller's choice."""
import json
import os
import struct

import numpy as np

HIDDEN, FF, HEADS, KV, HEAD, LAYERS, CONTEXT = 32, 64, 2, 1, 16, 2, 64
U32, I32, F32, BOOL, STRING, ARRAY, U64 = 4, 5, 6, 7, 8, 9, 10
GGML_F32, GGML_F16, GGML_Q8_0 = 0, 1, 8
TEMPLATE = ("{% for m in messages %}<|start|>{{ m['role'] }} {{ m['content'] }}<|end|>{% endfor %}"
            "{% if add_generation_prompt %}<|start|>assistant {% endif %}")


def byte_letters():
    """The letter of each byte in byte-level vocabularies."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in plain]
    return {**{b: chr(b) for b in plain}, **{b: chr(256 + i) for i, b in enumerate(rest)}}


SPECIAL = ['<|end|>', '<|start|>']
MERGES = ['h e', 'l l', 'he ll', 'hell o']
TOKENS = SPECIAL + [byte_letters()[b] for b in range(256)] + ['he', 'll', 'hell', 'hello']
VOCAB = len(TOKENS)


def random_weights(seed=1):
    """name of GGUF -> float32 array."""
    r = np.random.default_rng(seed)
    m = lambda *shape: (r.standard_normal(shape) * 0.3).astype(np.float32)
    v = lambda n: (1 + 0.1 * r.standard_normal(n)).astype(np.float32)
    w = {'token_embd.weight': m(VOCAB, HIDDEN), 'output_norm.weight': v(HIDDEN), 'output.weight': m(VOCAB, HIDDEN)}
    for i in range(LAYERS):
        b = f'blk.{i}.'
        w.update({b + 'attn_norm.weight': v(HIDDEN), b + 'attn_q.weight': m(HEADS * HEAD, HIDDEN),
                  b + 'attn_k.weight': m(KV * HEAD, HIDDEN), b + 'attn_v.weight': m(KV * HEAD, HIDDEN),
                  b + 'attn_output.weight': m(HIDDEN, HEADS * HEAD), b + 'ffn_norm.weight': v(HIDDEN),
                  b + 'ffn_gate.weight': m(FF, HIDDEN), b + 'ffn_up.weight': m(FF, HIDDEN),
                  b + 'ffn_down.weight': m(HIDDEN, FF)})
    return w


def q8_0(a):
    blocks = a.reshape(-1, 32)
    scale = np.abs(blocks).max(1) / 127
    codes = np.round(np.divide(blocks, scale[:, None], where=scale[:, None] != 0, out=np.zeros_like(blocks)))
    out = np.zeros((len(blocks), 34), np.uint8)
    out[:, :2] = scale.astype(np.float16).view(np.uint8).reshape(-1, 2)
    out[:, 2:] = codes.astype(np.int8).view(np.uint8)
    return out.tobytes()


def gguf_keys():
    a = 'llama.'
    return {'general.architecture': (STRING, 'llama'), 'general.name': (STRING, 'tiny'),
            a + 'block_count': (U32, LAYERS), a + 'embedding_length': (U32, HIDDEN),
            a + 'feed_forward_length': (U32, FF), a + 'attention.head_count': (U32, HEADS),
            a + 'attention.head_count_kv': (U32, KV), a + 'context_length': (U32, CONTEXT),
            a + 'attention.layer_norm_rms_epsilon': (F32, 1e-5), a + 'rope.freq_base': (F32, 1e4),
            'tokenizer.ggml.model': (STRING, 'gpt2'), 'tokenizer.ggml.pre': (STRING, 'gpt-2'),
            'tokenizer.ggml.tokens': (ARRAY, (STRING, TOKENS)),
            'tokenizer.ggml.token_type': (ARRAY, (I32, [3] * len(SPECIAL) + [1] * (VOCAB - len(SPECIAL)))),
            'tokenizer.ggml.merges': (ARRAY, (STRING, MERGES)),
            'tokenizer.ggml.eos_token_id': (U32, 0), 'tokenizer.chat_template': (STRING, TEMPLATE)}


def gguf_string(s):
    b = s.encode() if isinstance(s, str) else s
    return struct.pack('<Q', len(b)) + b


def gguf_value(kind, v):
    if kind == STRING:
        return gguf_string(v)
    if kind == ARRAY:
        return struct.pack('<IQ', v[0], len(v[1])) + b''.join(gguf_value(v[0], x) for x in v[1])
    return struct.pack({U32: '<I', I32: '<i', F32: '<f', BOOL: '<?', U64: '<Q'}[kind], v)


def gguf(keys=None, weights=None, tensors=None):
    """Bytes of the file and where things are in it: {'version', 'n_tensors', 'n_keys', 'key NAME' (its type),
    'dims NAME', 'type NAME', 'offset NAME', 'data': position}. `tensors` = {name: (dims, type, bytes)} replaces tensors
    (None takes one away)."""
    keys = gguf_keys() if keys is None else keys
    listed = {}
    for name, w in (random_weights() if weights is None else weights).items():
        q = w.ndim > 1 and name != 'token_embd.weight'
        listed[name] = (w.shape[::-1], GGML_Q8_0 if q else GGML_F32, q8_0(w) if q else w.tobytes())
    listed.update(tensors or {})
    listed = {k: v for k, v in listed.items() if v is not None}
    out, at, data = bytearray(b'GGUF'), {'version': 4, 'n_tensors': 8, 'n_keys': 16}, bytearray()
    out += struct.pack('<IQQ', 3, len(listed), len(keys))
    for name, (kind, value) in keys.items():
        out += gguf_string(name)
        at['key ' + name] = len(out)
        out += struct.pack('<I', kind) + gguf_value(kind, value)
    for name, (dims, kind, raw) in listed.items():
        out += gguf_string(name) + struct.pack('<I', len(dims))
        at['dims ' + name] = len(out)
        out += b''.join(struct.pack('<Q', d) for d in dims)
        at['type ' + name] = len(out)
        out += struct.pack('<I', kind)
        at['offset ' + name] = len(out)
        data += bytes(-len(data) % 32)
        out += struct.pack('<Q', len(data))
        data += raw
    out += bytes(-len(out) % 32)
    at['data'] = len(out)
    return bytes(out + data), at


def patched(base, at, form, *values):
    b = bytearray(base)
    struct.pack_into('<' + form, b, at, *values)
    return bytes(b)


HF_NAMES = {'token_embd': 'model.embed_tokens', 'output_norm': 'model.norm', 'output': 'lm_head',
            'attn_norm': 'input_layernorm', 'attn_q': 'self_attn.q_proj', 'attn_k': 'self_attn.k_proj',
            'attn_v': 'self_attn.v_proj', 'attn_output': 'self_attn.o_proj', 'ffn_norm': 'post_attention_layernorm',
            'ffn_gate': 'mlp.gate_proj', 'ffn_up': 'mlp.up_proj', 'ffn_down': 'mlp.down_proj'}


def hf_name(name):
    parts = name.split('.')
    if parts[0] == 'blk':
        return f'model.layers.{parts[1]}.{HF_NAMES[parts[2]]}.weight'
    return HF_NAMES[parts[0]] + '.weight'


def hf_config():
    return dict(architectures=['LlamaForCausalLM'], model_type='llama', hidden_size=HIDDEN, intermediate_size=FF,
                num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=KV, head_dim=HEAD,
                vocab_size=VOCAB, max_position_embeddings=CONTEXT, rms_norm_eps=1e-5, rope_theta=1e4,
                hidden_act='silu', tie_word_embeddings=False, eos_token_id=0, torch_dtype='float32')


def safetensors_header(weights=None):
    head, at = {}, 0
    for name, w in (random_weights() if weights is None else weights).items():
        head[hf_name(name)] = {'dtype': 'F32', 'shape': list(w.shape), 'data_offsets': [at, at + w.nbytes]}
        at += w.nbytes
    return head


def safetensors(header=None, weights=None, length=None):
    weights = random_weights() if weights is None else weights
    head = header if isinstance(header, bytes) else json.dumps(safetensors_header(weights) if header is None else header).encode()
    data = b''.join(w.tobytes() for w in weights.values())
    return struct.pack('<Q', len(head) if length is None else length) + head + data


def tokenizer_json():
    added = [{'id': i, 'content': t, 'single_word': False, 'lstrip': False, 'rstrip': False, 'normalized': False, 'special': True}
             for i, t in enumerate(SPECIAL)]
    return {'version': '1.0', 'truncation': None, 'padding': None, 'added_tokens': added, 'normalizer': None,
            'pre_tokenizer': {'type': 'ByteLevel', 'add_prefix_space': False, 'trim_offsets': True, 'use_regex': True},
            'post_processor': None, 'decoder': {'type': 'ByteLevel', 'add_prefix_space': True, 'trim_offsets': True, 'use_regex': True},
            'model': {'type': 'BPE', 'dropout': None, 'unk_token': None, 'continuing_subword_prefix': None,
                      'end_of_word_suffix': None, 'fuse_unk': False, 'byte_fallback': False,
                      'vocab': {t: i for i, t in enumerate(TOKENS)}, 'merges': MERGES}}


def write(path, content):
    if isinstance(content, (dict, list)):
        content = json.dumps(content)
    with open(path, 'wb') as f:
        f.write(content.encode() if isinstance(content, str) else content)
    return path


def hf_folder(folder, **files):
    """files: config, model, tokenizer, tokenizer_config = other contents of that file."""
    os.makedirs(folder, exist_ok=True)
    for key, name, make in (('config', 'config.json', hf_config), ('model', 'model.safetensors', safetensors),
                            ('tokenizer', 'tokenizer.json', tokenizer_json),
                            ('tokenizer_config', 'tokenizer_config.json', lambda: {'chat_template': TEMPLATE, 'eos_token': '<|end|>'})):
        write(os.path.join(folder, name), files[key] if key in files else make())
    return folder
