"""Damaged and hostile inputs, each through the real program: the exit code, one line that names what is wrong, no crash,
no hang (time limit), bounded memory (address space limit), no half-written folder.

usage: test_bad_input.py --oxgen BIN [--flips N] [--seconds S] [--only TEXT] [--keep DIR]

Bases are tiny random models made here (tiny_models.py) and what `oxgen convert` makes of them. A case is a name, the
arguments, the exit code and words that the message must hold. Random flips may give any documented exit code.
"""
import argparse
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import tiny_models as tiny
from tiny_models import ARRAY, F32, I32, STRING, U32, U64, gguf, gguf_keys, hf_folder, patched, write

p = argparse.ArgumentParser()
p.add_argument('--oxgen', required=True)
p.add_argument('--flips', type=int, default=60)
p.add_argument('--seconds', type=float, default=20)
p.add_argument('--seed', type=int, default=1)
p.add_argument('--only', default='')
p.add_argument('--keep')
a = p.parse_args()
BIN = os.path.abspath(a.oxgen)
SANITIZED = b'__asan_init' in open(BIN, 'rb').read()
CODES = {0, 1, 2, 3, 4, 5, 130}
MEMORY_KB = 4 << 20
WORK = a.keep or tempfile.mkdtemp(prefix='oxgen-bad-')
os.makedirs(WORK, exist_ok=True)
ENV = {k: v for k, v in os.environ.items() if not k.startswith('OXGEN_')}
ENV['ASAN_OPTIONS'] = 'detect_leaks=1:abort_on_error=0:exitcode=99:allocator_may_return_null=1:max_allocation_size_mb=4096'
ENV['UBSAN_OPTIONS'] = 'print_stacktrace=1:exitcode=99'
cases = []


def at(*parts):
    path = os.path.join(WORK, *parts)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path


WALL = 8 * a.seconds  # the machine may be busy: a hang is CPU time that does not end, or a sleep that doesn't


def shell(limits=()):
    """Limits are set by a shell, so that they hold for the program alone."""
    lines = [] if SANITIZED else [f'ulimit -v {MEMORY_KB}']
    return ['bash', '-c', '; '.join(['ulimit -c 0', f'ulimit -t {int(a.seconds)}', *lines, *limits, 'exec "$@"']), 'sh']


def fault_of(code, err, want, words):
    """Why this ending is wrong; empty = it is right."""
    text = err.decode('utf-8', 'replace')
    lines = [l for l in text.splitlines() if 'WARNING: AddressSanitizer failed to allocate' not in l]
    text = ''.join(l + '\n' for l in lines) if text.endswith('\n') or not text else text
    if code in (None, -signal.SIGKILL, -signal.SIGXCPU):
        return f'hangs: no end after {a.seconds:.0f} s of CPU time or {WALL:.0f} s'
    if code < 0 or code > 130 or code == 99 or 'Sanitizer' in text or 'runtime error' in text:
        return f'crash: exit {code}: ' + ' | '.join(l for l in lines if l.strip())[:1500]
    if code not in (want if isinstance(want, set) else {want}):
        return f'exit {code}, expected {want}: {text[:300]!r}'
    if code == 0:
        missing = [w for w in words if w not in text] if want == 0 else []
        return f'standard error lacks {missing}: {text[:300]!r}' if missing else ''
    if len(lines) != 1 or not text.endswith('\n') or not lines[0].startswith('oxgen: '):
        return f'exit {code}; expected one line "oxgen: …", found {text[:400]!r}'
    if '(null)' in text or any(ord(c) < 32 and c != '\n' for c in text) or len(text) > 1100:
        return f'a message not fit for a terminal: {text[:300]!r}'
    missing = [w for w in words if w not in text]
    return f'the message lacks {missing}: {text[:300]!r}' if missing else ''


def run_case(c):
    name, argv, want, words, o = c
    start = time.time()
    out = o.get('out')
    command = [*o.get('prefix', ()), BIN, *map(str, argv)]
    stdout = o.get('stdout', subprocess.PIPE)
    q = subprocess.Popen(shell(o.get('limits', ())) + command, stdin=subprocess.PIPE, stdout=stdout() if callable(stdout) else stdout,
                         stderr=subprocess.PIPE, env={**ENV, **o.get('env', {})}, cwd=o.get('cwd'))
    try:
        if 'interrupt' in o:
            stdout_bytes, err = interrupted(q, o)
        else:
            stdout_bytes, err = q.communicate(o.get('stdin', b''), timeout=WALL)
        code = q.returncode
    except subprocess.TimeoutExpired:
        q.kill()
        _, err = q.communicate()
        code = None
    fault = fault_of(code, err, want, words)
    left = [] if not out else [f for f in os.listdir(os.path.dirname(out)) if f.startswith(os.path.basename(out))]
    if not fault and left and code:
        fault = f'left behind: {left}'
    for path in o.get('absent', ()):
        if not fault and os.path.exists(path):
            fault = f'left behind: {path}'
    if not fault and o.get('after'):
        fault = o['after'](stdout_bytes, code) or ''
    return name, code, err.decode('utf-8', 'replace').strip(), fault, time.time() - start


def interrupted(q, o):
    """SIGINT once the program is at work: o['interrupt']() says so."""
    q.stdin.write(o.get('stdin', b''))
    q.stdin.flush()
    end = time.time() + WALL
    while q.poll() is None and time.time() < end and not o['interrupt'](q):
        time.sleep(0.01)
    time.sleep(0.05)
    q.send_signal(signal.SIGINT)
    if not o.get('open_stdin'):
        return q.communicate(timeout=WALL)
    out, err = q.stdout.read(), q.stderr.read()
    q.wait(WALL)
    return out, err


def case(name, argv, want, *words, **options):
    if a.only in name:
        cases.append((name, argv, want, words, options))


def refused(name, path, *words, want=3, command=('generate',), tail=('hi', '-n', '2'), **options):
    case(name, [command[0], path, *command[1:], *tail], want, *words, **options)


# ---- bases ------------------------------------------------------------------------------------------------------------

BASE, AT = gguf()
GGUF = write(at('base.gguf'), BASE)
HF = hf_folder(at('hf'))
OGA = at('oga')


def make_base():
    shutil.rmtree(OGA, ignore_errors=True)
    r = subprocess.run([BIN, 'convert', GGUF, '-o', OGA], capture_output=True, env=ENV)
    assert r.returncode == 0, r.stderr
    for path in (GGUF, HF, OGA):
        r = subprocess.run([BIN, 'generate', path, 'hello', '-n', '3', '--ignore-eos'], capture_output=True, env=ENV)
        assert r.returncode == 0 and not r.stderr, r.stderr


def gguf_file(name, content):
    return write(at(name.replace(' ', '-').replace('/', '-') + '.gguf'), content)


def bad_gguf(name, content, *words, **options):
    refused('gguf: ' + name, gguf_file(name, content), *words, **options)


def keys(**changes):
    """gguf_keys() with changes; names with _ for the last dots are spelled with __; None takes a key away."""
    k = gguf_keys()
    for name, v in changes.items():
        name = name.replace('__', '.')
        if v is None:
            del k[name]
        else:
            k[name] = v
    return k


def gguf_cases():
    n = len(BASE)
    for cut in (0, 3, 4, 10, 23, 40, 200, AT['key tokenizer.ggml.tokens'] + 30, AT['dims blk.0.attn_q.weight'] + 3, AT['data'] - 40):
        bad_gguf(f'cut to {cut} bytes', BASE[:cut], '.gguf')
    bad_gguf('cut inside the data', BASE[:-100], 'complete')
    bad_gguf('data cut away', BASE[:AT['data']], '.gguf')
    bad_gguf('wrong magic', b'GGML' + BASE[4:], 'GGUF')
    bad_gguf('big-endian magic', b'FUGG' + BASE[4:], 'GGUF')
    bad_gguf('text', b'hello, this is no model\n' * 100, 'GGUF')
    bad_gguf('zeros', bytes(4096), 'GGUF')
    bad_gguf('version 1', patched(BASE, 4, 'I', 1), 'version 1')
    bad_gguf('version 2^31', patched(BASE, 4, 'I', 1 << 31), 'version')
    for field in ('n_tensors', 'n_keys'):
        for v in (1 << 20, 1 << 40, 1 << 63, (1 << 64) - 1):
            bad_gguf(f'{field} {v}', patched(BASE, AT[field], 'Q', v), '.gguf')
    bad_gguf('n_tensors 0', patched(BASE, AT['n_tensors'], 'Q', 0), '.gguf')
    q = 'blk.0.attn_q.weight'
    for v in (0, 31, 1 << 31, 1 << 40, 1 << 62, 1 << 63, (1 << 64) - 1):
        bad_gguf(f'dimension {v}', patched(BASE, AT['dims ' + q], 'Q', v), q)
    bad_gguf('dimensions multiply to 2^64', patched(BASE, AT['dims ' + q], 'QQ', 1 << 32, 1 << 32), q)
    bad_gguf('9 dimensions', patched(BASE, AT['dims ' + q] - 4, 'I', 9), q)
    bad_gguf('2^32-1 dimensions', patched(BASE, AT['dims ' + q] - 4, 'I', (1 << 32) - 1), q)
    for v in (4, 36, 39, 200, (1 << 32) - 1):
        bad_gguf(f'tensor type {v}', patched(BASE, AT['type ' + q], 'I', v), q)
    for v in (1, 1 << 20, 1 << 40, (1 << 64) - 32, (1 << 64) - 1):
        bad_gguf(f'offset {v}', patched(BASE, AT['offset ' + q], 'Q', v), q)
    tokens = AT['key tokenizer.ggml.tokens']
    for v in (0, 10, 1 << 20, 1 << 40, (1 << 64) - 1):
        bad_gguf(f'token array says {v} items', patched(BASE, tokens + 8, 'Q', v), 'token' if v < 11 else '.gguf')
    bad_gguf('array of arrays', patched(BASE, tokens + 4, 'I', ARRAY), '.gguf')
    bad_gguf('array of type 77', patched(BASE, tokens + 4, 'I', 77), '77')
    bad_gguf('key of type 77', patched(BASE, AT['key llama.block_count'], 'I', 77), '77')
    bad_gguf('string of 2^63 bytes', patched(BASE, AT['key general.architecture'] + 4, 'Q', 1 << 63), '.gguf')
    nested = struct.pack('<IQ', ARRAY, 1) * 20000 + struct.pack('<IQ', U32, 0)
    raw = b'GGUF' + struct.pack('<IQQ', 3, 0, 1) + tiny.gguf_string('x') + struct.pack('<I', ARRAY) + nested
    bad_gguf('arrays nested 20000 deep', raw, '.gguf')
    bad_gguf('alignment 3', gguf(keys(general__alignment=(U32, 3)))[0], 'alignment')
    bad_gguf('alignment 0', gguf(keys(general__alignment=(U32, 0)))[0], 'alignment')
    bad_gguf('duplicate tensor', BASE.replace(b'blk.0.attn_k.weight', b'blk.0.attn_q.weight', 1), q)
    bad_gguf('tensor missing', gguf(tensors={'blk.1.ffn_up.weight': None})[0], 'blk.1.ffn_up.weight')
    bad_gguf('wrong shape', gguf(tensors={'blk.0.ffn_up.weight': ((32, 32), 0, bytes(4096))})[0], 'blk.0.ffn_up.weight')
    bad_gguf('vector too short', gguf(tensors={'output_norm.weight': ((16,), 0, bytes(64))})[0], 'output_norm.weight')
    bad_gguf('unknown architecture', gguf(keys(general__architecture=(STRING, 'hal9000')))[0], 'hal9000')
    bad_gguf('architecture with control bytes', gguf(keys(general__architecture=(STRING, b'a\x1b[2J\n\xff')))[0], '.gguf')
    bad_gguf('architecture is a number', gguf(keys(general__architecture=(U32, 7)))[0], 'general.architecture')
    bad_gguf('no architecture', gguf(keys(general__architecture=None))[0], 'general.architecture')
    for key in ('block_count', 'embedding_length', 'attention.head_count'):
        bad_gguf(f'no {key}', gguf(keys(**{'llama__' + key.replace('.', '__'): None}))[0], key)
    for key, v in (('block_count', 0), ('block_count', (1 << 32) - 1), ('block_count', 3), ('embedding_length', 0),
                   ('embedding_length', 1 << 31), ('attention.head_count', 0), ('attention.head_count', 3),
                   ('attention.head_count', (1 << 32) - 1), ('attention.head_count_kv', 0), ('attention.head_count_kv', 7),
                   ('feed_forward_length', 1 << 30)):
        bad_gguf(f'{key} {v}', gguf(keys(**{'llama__' + key.replace('.', '__'): (U32, v)}))[0], '.gguf')
    bad_gguf('block_count is text', gguf(keys(llama__block_count=(STRING, 'two')))[0], 'block_count')
    bad_gguf('epsilon NaN', gguf(keys(llama__attention__layer_norm_rms_epsilon=(F32, float('nan'))))[0], 'epsilon')
    bad_gguf('rope base -1', gguf(keys(llama__rope__freq_base=(F32, -1.0)))[0], 'rope')
    bad_gguf('rope dimensions 2^31', gguf(keys(llama__rope__dimension_count=(U32, 1 << 31)))[0], 'rope')
    bad_gguf('context 0', gguf(keys(llama__context_length=(U32, 0)))[0], 'context', want=3)
    bad_gguf('context 2^64-1', gguf(keys(llama__context_length=(U64, (1 << 64) - 1)))[0], 'context', want=3)
    bad_gguf('no tokens', gguf(keys(tokenizer__ggml__tokens=None))[0], 'tokenizer')
    bad_gguf('no merges', gguf(keys(tokenizer__ggml__merges=None))[0], want=0)
    bad_gguf('unknown tokenizer', gguf(keys(tokenizer__ggml__model=(STRING, 'spellbook')))[0], 'spellbook')
    bad_gguf('unknown splitting', gguf(keys(tokenizer__ggml__pre=(STRING, 'nowhere')))[0], 'nowhere')
    bad_gguf('end token out of range', gguf(keys(tokenizer__ggml__eos_token_id=(U32, 1 << 31)))[0], want=3)
    bad_gguf('tokens are numbers', gguf(keys(tokenizer__ggml__tokens=(ARRAY, (U32, [1] * tiny.VOCAB))))[0], 'token')
    bad_gguf('more tokens than rows', gguf(keys(tokenizer__ggml__tokens=(ARRAY, (STRING, tiny.TOKENS * 3))))[0], want=3)
    bad_gguf('all tokens alike', gguf(keys(tokenizer__ggml__tokens=(ARRAY, (STRING, ['a'] * tiny.VOCAB))))[0], want=0)
    bad_gguf('merges of nonsense', gguf(keys(tokenizer__ggml__merges=(ARRAY, (STRING, ['', ' ', 'a', 'zz yy', 'h e l']))))[0], want=0)


# ---- ONNX -------------------------------------------------------------------------------------------------------------

def decoder():
    return onnx.load(os.path.join(OGA, 'model.onnx'), load_external_data=False)


def node_of(m, op, k=0):
    return [n for n in m.graph.node if n.op_type == op][k]


def attribute(node, name):
    return next((x for x in node.attribute if x.name == name), None)


def folder_with(name, model=None, **files):
    """A copy of the ORT-GenAI folder with another model.onnx or other files (None = without it)."""
    folder = at(name.replace(' ', '-').replace('/', '-'))
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(OGA, folder)
    if model is not None:
        write(os.path.join(folder, 'model.onnx'), model if isinstance(model, bytes) else model.SerializeToString())
    for file, content in files.items():
        path = os.path.join(folder, {'config': 'genai_config.json', 'tokenizer': 'tokenizer.json', 'data': 'model.onnx.data',
                                     'template': 'chat_template.jinja', 'tokenizer_config': 'tokenizer_config.json'}[file])
        os.remove(path)
        if content is not None:
            write(path, content)
    return folder


def bad_onnx(name, change, *words, **options):
    m = decoder()
    m = change(m) or m
    refused('onnx: ' + name, folder_with('onnx ' + name, m), *words, **options)


def set_attribute(op, name, value, k=0):
    def change(m):
        node = node_of(m, op, k)
        old = attribute(node, name)
        if old is not None:
            node.attribute.remove(old)
        node.attribute.append(helper.make_attribute(name, value))
    return change


def on_tensor(change):
    return lambda m: change(next(t for t in m.graph.initializer if t.data_location == 1 and len(t.dims) > 1)) and None


def short_raw(t):
    t.data_location = 0
    t.ClearField('external_data')
    t.raw_data = bytes(1001)


def external(**entries):
    def change(t):
        for e in t.external_data:
            if e.key in entries:
                e.value = str(entries.pop(e.key))
        for k, v in entries.items():
            t.external_data.add(key=k, value=str(v))
    return on_tensor(change)


def swap_inputs(m):
    n = node_of(m, 'MatMulNBits')
    n.input[0] = node_of(m, 'MatMulNBits', 5).output[0]


def onnx_cases():
    raw = decoder().SerializeToString()
    first = next(t for t in decoder().graph.initializer if t.data_location == 1 and len(t.dims) > 1).name
    gqa = '/model/layers.0/attn/GroupQueryAttention'
    for cut in (1, 2, 100, len(raw) // 2, len(raw) - 1):
        bad_onnx(f'cut to {cut} bytes', lambda m: raw[:cut], 'model.onnx')
    refused('onnx: empty file', folder_with('onnx empty', b''), 'model.onnx')
    bad_onnx('text', lambda m: b'This is text and no model at all.\n' * 50, 'model.onnx')
    bad_onnx('HTML error page', lambda m: b'<!DOCTYPE html><html><body>404</body></html>', 'model.onnx')
    bad_onnx('git-lfs pointer', lambda m: b'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n', 'model.onnx')
    bad_onnx('zeros', lambda m: bytes(5000), 'model.onnx')
    bad_onnx('0xff', lambda m: b'\xff' * 5000, 'model.onnx')
    for v in (-1, -(1 << 63), (1 << 63) - 1, 1 << 40):
        bad_onnx(f'tensor dimension {v}', on_tensor(lambda t: t.dims.__setitem__(0, v)), first)
    bad_onnx('dimensions multiply to 2^64', on_tensor(lambda t: (t.dims.__setitem__(0, 1 << 32), t.dims.__setitem__(1, 1 << 32))), first)
    bad_onnx('raw_data too short', on_tensor(short_raw), first, '1001')
    bad_onnx('element type 99', on_tensor(lambda t: setattr(t, 'data_type', 99)), first, '99')
    bad_onnx('data length lies', external(length=5), first)
    bad_onnx('data offset beyond the file', external(offset=1 << 40), first, 'complete')
    bad_onnx('data offset 2^64-1', external(offset=(1 << 64) - 1), first)
    bad_onnx('data offset -1', external(offset=-1), first, '-1')
    bad_onnx('data offset is text', external(offset='here'), first, 'here')
    for where in ('../base.gguf', '/etc/passwd', 'a/../../base.gguf', '..', '.', 'nothere.bin', 'a\\..\\b', '', 'x\x00y', 'tokenizer.json/x'):
        bad_onnx(f'data in {where!r}', external(location=where), first, want={1} if where in ('nothere.bin', 'tokenizer.json/x') else 3)
    link = folder_with('onnx link out', decoder(), data=None)
    os.symlink('/etc/passwd', os.path.join(link, 'model.onnx.data'))
    refused('onnx: data is a link out of the folder', link, first)
    refused('onnx: data missing', folder_with('onnx data missing', data=None), first, 'model.onnx.data', want=1)
    refused('onnx: data empty', folder_with('onnx data empty', data=b''), first, 'complete')
    refused('onnx: data cut', folder_with('onnx data cut', data=open(os.path.join(OGA, 'model.onnx.data'), 'rb').read()[:5000]), 'complete')
    pipe = folder_with('onnx data fifo', data=None)
    os.mkfifo(os.path.join(pipe, 'model.onnx.data'))
    refused('onnx: data is a pipe', pipe, 'model.onnx.data', want=3)

    def duplicate(m):
        m.graph.node[12].output[0] = m.graph.node[10].output[0]
    bad_onnx('two nodes write one value', duplicate, 'qkv_proj')
    bad_onnx('two tensors of one name', lambda m: m.graph.initializer.append(m.graph.initializer[0]) and None, 'embed')
    bad_onnx('cycle', swap_inputs, '/model/layers.0/attn/qkv_proj', 'cycle')

    def itself(m):
        n = node_of(m, 'Mul')
        n.input[0] = n.output[0]
    bad_onnx('node reads itself', itself, '/model/layers.0/mlp/act_fn/Mul')

    def nowhere(m):
        node_of(m, 'Mul').input[0] = 'from_nowhere'
    bad_onnx('input that nothing makes', nowhere, 'from_nowhere')

    def unknown(m):
        for i, op in enumerate(('Teleport', 'Divinate', 'Enchant')):
            node_of(m, 'Mul').op_type = op
    bad_onnx('several unknown operators', unknown, 'Teleport', 'Divinate', 'Enchant')
    bad_onnx('unknown domain', lambda m: setattr(node_of(m, 'Mul'), 'domain', 'org.nowhere'), 'org.nowhere')
    bad_onnx('softcap -2', set_attribute('GroupQueryAttention', 'softcap', -2.0), 'model.onnx', gqa,
             '(GroupQueryAttention)', 'attribute softcap must be >= 0, found -2', 'damaged or made by a newer exporter')
    bad_onnx('softcap NaN', set_attribute('GroupQueryAttention', 'softcap', float('nan')), gqa, 'softcap')
    bad_onnx('softcap is text', set_attribute('GroupQueryAttention', 'softcap', 'x'), gqa, 'softcap')
    bad_onnx('scale inf', set_attribute('GroupQueryAttention', 'scale', float('inf')), gqa, 'scale')
    bad_onnx('num_heads 0', set_attribute('GroupQueryAttention', 'num_heads', 0), gqa, 'num_heads')
    bad_onnx('num_heads -1', set_attribute('GroupQueryAttention', 'num_heads', -1), gqa, 'num_heads')
    bad_onnx('num_heads 2^62', set_attribute('GroupQueryAttention', 'num_heads', 1 << 62), gqa, 'num_heads')
    bad_onnx('kv_num_heads 3', set_attribute('GroupQueryAttention', 'kv_num_heads', 3), gqa, 'kv_num_heads')
    bad_onnx('local_window_size -7', set_attribute('GroupQueryAttention', 'local_window_size', -7), gqa, 'local_window_size')
    bad_onnx('rotary_interleaved 9', set_attribute('GroupQueryAttention', 'rotary_interleaved', 9), gqa, want=3)
    bits = '/model/layers.0/attn/qkv_proj/MatMulNBits'
    for name, v in (('bits', 3), ('bits', -4), ('bits', 1 << 40), ('block_size', 0), ('block_size', 17), ('block_size', -32),
                    ('block_size', 1 << 40), ('K', 0), ('K', -1), ('K', 1 << 62), ('N', 0), ('N', 1 << 62)):
        bad_onnx(f'MatMulNBits {name} {v}', set_attribute('MatMulNBits', name, v), bits, name)
    bad_onnx('accuracy_level 99', set_attribute('MatMulNBits', 'accuracy_level', 99), want=0)
    bad_onnx('epsilon -1', set_attribute('SimplifiedLayerNormalization', 'epsilon', -1.0), 'input_layernorm', 'epsilon')
    bad_onnx('Gather axis 5', set_attribute('Gather', 'axis', 5, 1), 'embed_tokens', 'axis')
    bad_onnx('Cast to 99', set_attribute('Cast', 'to', 99), 'Cast', '99')
    bad_onnx('opset 1000', lambda m: setattr(m.opset_import[0], 'version', 1000), want=0)
    bad_onnx('opset -1', lambda m: setattr(m.opset_import[0], 'version', -1), want=0)
    bad_onnx('no opset', lambda m: m.ClearField('opset_import'), want=0)
    bad_onnx('no logits', lambda m: m.graph.output.remove(m.graph.output[0]), 'logits')
    bad_onnx('no input_ids', lambda m: m.graph.input.remove(m.graph.input[0]), 'input_ids')
    bad_onnx('no nodes', lambda m: m.graph.ClearField('node'), 'logits')
    bad_onnx('no graph', lambda m: m.ClearField('graph'), 'graph')
    bad_onnx('200 MB of nested graphs', lambda m: nested_graphs(100000), 'model.onnx')
    names = decoder()
    node_of(names, 'Mul').name = 'x' * 100000 + '\x1b[2J'
    node_of(names, 'Mul').op_type = 'N' * 50000
    refused('onnx: names of 100000 bytes', folder_with('onnx long names', names), 'NNNN')
    for op in ('MatMulNBits', 'GroupQueryAttention', 'SkipSimplifiedLayerNormalization', 'Gather', 'Mul'):
        bad_onnx(f'{op} without inputs', lambda m: node_of(m, op, 1).ClearField('input'), op)
        bad_onnx(f'{op} without outputs', lambda m: node_of(m, op, 1).ClearField('output'), 'model.onnx')
        bad_onnx(f'{op} without attributes', lambda m: node_of(m, op, 1).ClearField('attribute'),
                 *([op] if op in ('MatMulNBits', 'GroupQueryAttention') else []), want=3 if op in ('MatMulNBits', 'GroupQueryAttention') else 0)


def varint(n):
    out = b''
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def nested_graphs(depth):
    """ModelProto.graph.node.attribute.g.node.attribute.g… by hand: protobuf's own limit would stop python."""
    body = b''
    for _ in range(depth):
        for tag in (0x32, 0x2a, 0x0a):  # AttributeProto.g, NodeProto.attribute, GraphProto.node
            body = bytes([tag]) + varint(len(body)) + body
        if len(body) > 1 << 18:
            break
    return b'\x08\x0a\x3a' + varint(len(body)) + body


def graph_file(name, nodes, inputs=(), outputs=(), tensors=(), functions=(), opset=21):
    v = lambda n, t, s: helper.make_tensor_value_info(n, t, s)
    g = helper.make_graph(list(nodes), 'g', [v(*i) for i in inputs], [v(*o) for o in outputs], list(tensors))
    m = helper.make_model(g, opset_imports=[helper.make_opsetid('', opset), helper.make_opsetid('local', 1)], functions=list(functions))
    return write(at('graphs', name.replace(' ', '-') + '.onnx'), m.SerializeToString())


def forward(name, path, *words, want=3, arrays=(), **options):
    case('forward: ' + name, ['forward', path, *[x for n, f in arrays for x in ('--in', f'{n}={f}')]], want, *words, **options)


def forward_cases():
    F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
    n = helper.make_node
    const = lambda name, value: numpy_helper.from_array(np.array(value), name)
    body = helper.make_graph([n('Identity', ['c'], ['c2']), n('Identity', ['x'], ['x2'])], 'body',
                             [helper.make_tensor_value_info('i', I, []), helper.make_tensor_value_info('c', B, []),
                              helper.make_tensor_value_info('x', F, [2])],
                             [helper.make_tensor_value_info('c2', B, []), helper.make_tensor_value_info('x2', F, [2])])
    x = at('graphs', 'x.npy')
    np.save(x, np.zeros(2, np.float32))
    endless = graph_file('endless loop', [n('Loop', ['', 'yes', 'x'], ['y'], body=body, name='endless')], [('x', F, [2])], [('y', F, [2])],
                         [const('yes', True)])
    forward('loop without end', endless, 'endless', arrays=[('x', x)], want=1)
    huge = graph_file('2^62 rounds', [n('Loop', ['n', '', 'x'], ['y'], body=body, name='huge')], [('x', F, [2])], [('y', F, [2])],
                      [const('n', np.int64(1 << 62))])
    forward('loop of 2^62 rounds', huge, 'huge', arrays=[('x', x)], want=1)
    grow = helper.make_graph([n('Identity', ['c'], ['c2']), n('Concat', ['x', 'x'], ['x2'], axis=0)], 'body', list(body.input),
                             [helper.make_tensor_value_info('c2', B, []), helper.make_tensor_value_info('x2', F, None)])
    forward('loop that doubles', graph_file('doubling', [n('Loop', ['', 'yes', 'x'], ['y'], body=grow, name='grow')], [('x', F, [2])],
                                            [('y', F, None)], [const('yes', True)]), 'grow', arrays=[('x', x)], want=4, limits=['ulimit -v 1000000'] if not SANITIZED else [])
    f = lambda name, op: helper.make_function('local', name, ['x'], ['y'], [n(op, ['x'], ['y'], domain='local')],
                                              [helper.make_opsetid('local', 1)])
    forward('function calls itself', graph_file('recursion', [n('F', ['x'], ['y'], domain='local')], [('x', F, [2])], [('y', F, [2])],
                                                functions=[f('F', 'F')]), 'F', arrays=[('x', x)])
    forward('functions call each other', graph_file('recursion 2', [n('F', ['x'], ['y'], domain='local')], [('x', F, [2])],
                                                    [('y', F, [2])], functions=[f('F', 'G'), f('G', 'F')]), 'F', arrays=[('x', x)])
    bomb = [helper.make_function('local', f'B{i}', ['x'], ['y'], [n(f'B{i + 1}', ['x'], ['t'], domain='local'), n(f'B{i + 1}', ['t'], ['y'], domain='local')]
                                 if i < 40 else [n('Neg', ['x'], ['y'])], [helper.make_opsetid('local', 1), helper.make_opsetid('', 21)]) for i in range(41)]
    forward('functions that double 40 times', graph_file('bomb', [n('B0', ['x'], ['y'], domain='local')], [('x', F, [2])], [('y', F, [2])],
                                                         functions=bomb), 'bomb.onnx', 'more than', arrays=[('x', x)])
    deep = n('Identity', ['x'], ['y'])
    for i in range(60):
        g = helper.make_graph([deep], f'g{i}', [], [helper.make_tensor_value_info('y', F, [2])])
        deep = n('If', ['yes'], ['y'], then_branch=g, else_branch=helper.make_graph([n('Identity', ['x'], ['y'])], 'e', [], [helper.make_tensor_value_info('y', F, [2])]))
        if i > 24:
            break
    forward('If nested 26 deep', graph_file('nested', [deep], [('x', F, [2])], [('y', F, [2])], [const('yes', True)]), arrays=[('x', x)], want=0)
    forward('ConstantOfShape of 2^60', graph_file('big', [n('ConstantOfShape', ['s'], ['y'], name='big')], [], [('y', F, None)],
                                                  [const('s', np.int64([1 << 30, 1 << 30]))]), 'big', want=4)
    forward('ConstantOfShape of -5', graph_file('negative', [n('ConstantOfShape', ['s'], ['y'], name='big')], [], [('y', F, None)],
                                                [const('s', np.int64([-5]))]), 'big')
    forward('Range of 2^60', graph_file('range', [n('Range', ['a', 'b', 'c'], ['y'], name='big')], [], [('y', I, None)],
                                        [const('a', np.int64(0)), const('b', np.int64(1 << 60)), const('c', np.int64(1))]), 'big', want=1)
    forward('Range by 0', graph_file('range 0', [n('Range', ['a', 'a', 'a'], ['y'], name='zero')], [], [('y', I, None)], [const('a', np.int64(0))]), 'zero')
    forward('Expand to 2^50', graph_file('expand', [n('Expand', ['x', 's'], ['y'], name='wide')], [('x', F, [2])], [('y', F, None)],
                                         [const('s', np.int64([1 << 50, 2]))]), 'wide', arrays=[('x', x)], want=4)
    forward('Tile by 2^40', graph_file('tile', [n('Tile', ['x', 's'], ['y'], name='tiled')], [('x', F, [2])], [('y', F, None)],
                                       [const('s', np.int64([1 << 40]))]), 'tiled', arrays=[('x', x)], want=4)
    forward('Pad by 2^62', graph_file('pad', [n('Pad', ['x', 's'], ['y'], name='padded')], [('x', F, [2])], [('y', F, None)],
                                      [const('s', np.int64([1 << 62, 1 << 62]))]), 'padded', arrays=[('x', x)], want=3)
    forward('Gather out of range', graph_file('gather', [n('Gather', ['x', 's'], ['y'], name='picked')], [('x', F, [2])], [('y', F, None)],
                                              [const('s', np.int64([7]))]), 'picked', '7', arrays=[('x', x)])
    forward('Reshape that does not fit', graph_file('reshape', [n('Reshape', ['x', 's'], ['y'], name='bent')], [('x', F, [2])], [('y', F, None)],
                                                    [const('s', np.int64([3, -1]))]), 'bent', arrays=[('x', x)])
    forward('integer division by zero', graph_file('div', [n('Div', ['a', 'b'], ['y'], name='halved')], [], [('y', I, None)],
                                                   [const('a', np.int64([1])), const('b', np.int64([0]))]), want=0)
    forward('-2^63 / -1', graph_file('div min', [n('Div', ['a', 'b'], ['y'], name='halved'), n('Mod', ['a', 'b'], ['z'])], [],
                                     [('y', I, None), ('z', I, None)], [const('a', np.int64([-(1 << 63)])), const('b', np.int64([-1]))]), want=0)
    forward('shapes that do not meet', graph_file('add', [n('Add', ['x', 'b'], ['y'], name='sum')], [('x', F, [2])], [('y', F, None)],
                                                  [const('b', np.float32([1, 2, 3]))]), 'sum', arrays=[('x', x)])
    forward('Conv with 0 strides', graph_file('conv', [n('Conv', ['a', 'b'], ['y'], name='conv', strides=[0, 0])], [], [('y', F, None)],
                                              [const('a', np.zeros((1, 1, 4, 4), np.float32)), const('b', np.zeros((1, 1, 2, 2), np.float32))]), 'conv')
    good = graph_file('good', [n('Neg', ['x'], ['y'], name='negated')], [('x', F, [2])], [('y', F, [2])])
    forward('an input missing', good, 'x', want=2)
    forward('an input too many', good, 'z', arrays=[('x', x), ('z', x)], want=2)
    forward('input file missing', good, 'gone.npy', arrays=[('x', at('gone.npy'))], want=1)
    for name, content in (('empty', b''), ('cut', open(x, 'rb').read()[:70]), ('text', b'hello'), ('wrong size', open(x, 'rb').read()[:-1]),
                          ('shape 2^62', open(x, 'rb').read().replace(b'(2,)', b'(4611686018427387904,)')),
                          ('pickle', open(x, 'rb').read().replace(b'<f4', b'|O8'))):
        forward(f'.npy {name}', good, '.npy', arrays=[('x', write(at('graphs', name.replace(' ', '-') + '.npy'), content))])
    other = at('graphs', 'other.npy')
    np.save(other, np.zeros((3, 3), np.int32))
    forward('.npy of another type', good, 'x', arrays=[('x', other)], want=2)
    forward('.pb cut', good, '.pb', arrays=[('x', write(at('graphs', 'x.pb'), numpy_helper.from_array(np.zeros(2, np.float32)).SerializeToString()[:-3]))])
    case('forward: --in without =', ['forward', good, '--in', 'x'], 2, '--in')
    case('forward: output folder is a file', ['forward', good, '--in', f'x={x}', '-o', x], 1, 'x.npy')
    forward('missing graph', at('none.onnx'), 'none.onnx', want=1)


# ---- configurations, tokenizers, templates ----------------------------------------------------------------------------

def bad_config(name, change, *words, **options):
    c = json.load(open(os.path.join(OGA, 'genai_config.json')))
    change = change(c) if callable(change) else change
    refused('genai_config: ' + name, folder_with('config ' + name, config=c if change is None else change), *words, **options)


def put(path, value):
    def change(c):
        *way, last = path.split('.')
        for k in way:
            c = c[k]
        if value is None:
            del c[last]
        else:
            c[last] = value
    return change


def config_cases():
    name = 'genai_config.json'
    bad_config('empty', b'', name)
    bad_config('cut', open(os.path.join(OGA, name), 'rb').read()[:300], name)
    bad_config('not JSON', b'model: llama\n', name)
    bad_config('a list', b'[]', name)
    bad_config('a number', b'17', name)
    bad_config('a NUL byte', b'{"model": \x00}', name)
    bad_config('100000 brackets', b'[' * 100000, name)
    bad_config('100000 objects', b'{"a":' * 100000, name)
    bad_config('bad UTF-8', b'{"model": "\xff\xfe"}', name)
    bad_config('no model', put('model', None), name, 'model')
    bad_config('model is text', put('model', 'x'), name, 'model')
    bad_config('no decoder', put('model.decoder', None), name, 'decoder')
    bad_config('decoder is a list', put('model.decoder', []), name, 'decoder')
    for f in ('../base.gguf', '/etc/passwd', 'sub/../../x.onnx'):
        bad_config(f'file name {f}', put('model.decoder.filename', f), f)
    bad_config('file name missing', put('model.decoder.filename', 'gone.onnx'), 'gone.onnx', 'No such file', want=1)
    bad_config('file name is a number', put('model.decoder.filename', 7), 'filename')
    bad_config('file name with NUL', put('model.decoder.filename', 'model.onnx\0.x'), 'model.onnx')
    bad_config('file name is the folder', put('model.decoder.filename', '.'), '.', want=3)
    bad_config('input of another name', put('model.decoder.inputs.input_ids', 'nothere'), 'nothere', want=0)
    bad_config('output of another name', put('model.decoder.outputs.logits', 'nothere'), 'nothere', want=0)
    bad_config('name pattern %s%s%n', put('model.decoder.inputs.past_key_names', '%s%s%n'), '%n', want=0)
    bad_config('name pattern %d%d', put('model.decoder.inputs.past_key_names', 'p.%d.%d'), 'p.%d.%d', want=0)
    bad_config('inputs are a list', put('model.decoder.inputs', [1]), 'inputs')
    bad_config('layers -1', put('model.decoder.num_hidden_layers', -1), want=0)
    bad_config('layers 10^18', put('model.decoder.num_hidden_layers', 10**18), want=0)
    bad_config('layers 10^400', put('model.decoder.num_hidden_layers', 10**400), 'longer than', 'line 1')
    bad_config('layers 2.5', put('model.decoder.num_hidden_layers', 2.5), want=0)
    bad_config('context -5', put('model.context_length', -5), 'context_length')
    bad_config('context 10^30', put('model.context_length', 10**30), 'context_length')
    bad_config('context is text', put('model.context_length', 'long'), 'context_length')
    bad_config('eos is text', put('model.eos_token_id', 'end'), 'eos_token_id')
    bad_config('eos -1', put('model.eos_token_id', -1), want=0)
    bad_config('100000 end tokens', put('model.eos_token_id', list(range(100000))), 'eos_token_id')
    bad_config('temperature -1', put('search.temperature', -1), want=0)
    bad_config('top_k 10^15', lambda c: c['search'].update(do_sample=True, top_k=10**15), 'top_k', want=3)
    bad_config('search is text', put('search', 'x'), 'search must be an object')
    bad_config('type unknown', put('model.type', 'whisper'), want=0)


def bad_tokenizer(name, change, *words, **options):
    t = tiny.tokenizer_json()
    r = change(t) if callable(change) else change
    refused('tokenizer: ' + name, folder_with('tokenizer ' + name, tokenizer=t if r is None else r), *words,
            command=('tokenize',), tail=(options.pop('text', 'hello world'),), **options)


def tokenizer_cases():
    f = 'tokenizer.json'
    whole = json.dumps(tiny.tokenizer_json()).encode()
    bad_tokenizer('empty', b'', f)
    for cut in (1, 100, len(whole) // 2, len(whole) - 1):
        bad_tokenizer(f'cut to {cut} bytes', whole[:cut], f)
    bad_tokenizer('a list', b'[]', f)
    bad_tokenizer('no model', put('model', None), f, 'model')
    bad_tokenizer('model of unknown type', put('model.type', 'Oracle'), f, 'Oracle')
    bad_tokenizer('no vocab', put('model.vocab', None), f, 'vocab')
    bad_tokenizer('vocab is a list', put('model.vocab', [1, 2]), f, 'vocab')
    bad_tokenizer('id is text', put('model.vocab', {'a': 'b'}), f)
    bad_tokenizer('id -1', put('model.vocab', {'a': -1}), f, '-1')
    bad_tokenizer('id 10^9', put('model.vocab', {'a': 10**9}), f, '1000000000')
    bad_tokenizer('id 2^64', put('model.vocab', {'a': 1 << 64}), f)
    bad_tokenizer('one id twice', put('model.vocab', {'a': 1, 'b': 1}), f, want=3)
    bad_tokenizer('merges are text', put('model.merges', 'a b'), f, 'merges')
    bad_tokenizer('merge of unknown tokens', put('model.merges', ['zz yy']), f, 'zz')
    bad_tokenizer('merge of one part', put('model.merges', ['zz']), f, 'merge 0')
    bad_tokenizer('merge of three parts', put('model.merges', [['h', 'e', 'l']]), f, 'merge')
    bad_tokenizer('merge is a number', put('model.merges', [7]), f, 'merge')
    bad_tokenizer('added token id 10^9', put('added_tokens', [{'id': 10**9, 'content': 'x', 'special': True}]), want=0)
    bad_tokenizer('added token without content', put('added_tokens', [{'id': 1}]), f, 'added')
    bad_tokenizer('added tokens are text', put('added_tokens', 'x'), f, 'added')
    bad_tokenizer('unknown pre-tokenizer', put('pre_tokenizer', {'type': 'Psychic'}), f, 'Psychic')
    bad_tokenizer('unknown normalizer', put('normalizer', {'type': 'Psychic'}), f, 'Psychic')
    bad_tokenizer('unknown decoder', put('decoder', {'type': 'Psychic'}), f, 'Psychic', want=3)
    split = lambda pattern: put('pre_tokenizer', {'type': 'Split', 'pattern': {'Regex': pattern}, 'behavior': 'Isolated', 'invert': False})
    bad_tokenizer('pattern with an open bracket', split('(a'), f, '(a')
    bad_tokenizer('pattern of 10^6 brackets', split('(' * 10**6), f)
    bad_tokenizer('pattern that repeats 10^9 times', split('(a{1000}){1000}{1000}'), f, want=3)
    bad_tokenizer('pattern that explodes', split('(a+)+(a+)+(a+)+$'), want=1, text='a' * 5000 + 'b')
    bad_tokenizer('empty pattern', split(''), want=0)
    nested = {'type': 'ByteLevel'}
    for _ in range(400):
        nested = {'type': 'Sequence', 'pretokenizers': [nested]}
    bad_tokenizer('400 sequences within one another', put('pre_tokenizer', nested), f, want=3)
    bad_tokenizer('replacement that grows', put('normalizer', {'type': 'Sequence', 'normalizers': [
        {'type': 'Replace', 'pattern': {'String': 'a'}, 'content': 'a' * 1000}] * 6}), 'Replace', want=1, text='a')
    refused('tokenizer: missing', folder_with('tokenizer missing', tokenizer=None), 'tokenizer', want=3)
    refused('tokenizer: generate with a damaged one', folder_with('tokenizer damaged', tokenizer=whole[:500]), f)


def bad_template(name, text, *words, want=3, **options):
    refused('template: ' + name, folder_with('template ' + name, template=text), *words, want=want, **options)


def template_cases():
    bad_template('never ends', '{% for i in range(100000) %}{% for j in range(100000) %}{% for k in range(100000) %}{% set x = i %}{% endfor %}{% endfor %}{% endfor %}', 'template')
    bad_template('never stops writing', '{% for i in range(100000) %}{% for j in range(100000) %}xxxxxxxxxxxxxxxxxxxx{% endfor %}{% endfor %}', 'template')
    bad_template('text that doubles', "{% set ns = namespace(s='x') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s }}", 'template')
    bad_template('text times 10^12', "{{ 'x' * 1000000000000 }}", 'template')
    bad_template('macro calls itself', '{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}', 'template')
    bad_template('list that holds itself', '{% set l = [] %}{% set _ = l.append(l) %}{{ l }}{{ l | tojson }}', 'template')
    bad_template('syntax error', '{% for m in messages %}{{ m.content }', 'template')
    bad_template('block without end', '{% if true %}x', 'template', 'endif')
    bad_template('unknown tag', '{% teleport %}', 'teleport')
    bad_template('unknown filter', '{{ messages | teleport }}', 'teleport')
    bad_template('unknown function', '{{ teleport() }}', 'teleport', want=1)
    bad_template('raise_exception', "{{ raise_exception('only cats may speak') }}", 'only cats may speak', want=1)
    bad_template('raise_exception with control bytes', "{{ raise_exception('a\nb\x1b[2J') }}", 'template', want=1)
    bad_template('division by zero', '{{ 1 // 0 }}{{ 1 % 0 }}', 'template', want=1)
    bad_template('10^5 brackets', '{{ ' + '(' * 10**5 + '1' + ')' * 10**5 + ' }}', 'template')
    bad_template('10^5 blocks', '{% if 1 %}' * 10**5 + '{% endif %}' * 10**5, 'template')
    bad_template('10^5 minus signs', '{{ ' + '-' * 10**5 + '1 }}', 'template')
    bad_template('10^5 pipes', '{{ 1' + '|abs' * 10**5 + ' }}', want=3)
    bad_template('10^5 dots', '{{ messages' + '.x' * 10**5 + ' }}', want=3)
    bad_template('bad UTF-8', b'\xff\xfe{{ messages[0].content }}', 'template')
    bad_template('empty', '', want=0)
    bad_template('include', "{% include '/etc/passwd' %}", 'include')
    bad_template('reach into internals', "{{ ''.__class__.__mro__ }}", '__class__', want=1)
    for name, content in (('broken', b'[{'), ('an object', b'{}'), ('a number', b'1'), ('list of numbers', b'[1]'), ('empty', b''), ('deep', b'[' * 50000)):
        case(f'messages: {name}', ['template', OGA, '--messages', write(at('messages', name.replace(' ', '-') + '.json'), content)],
             2 if name != 'list of numbers' else 0, name.replace(' ', '-') if name != 'list of numbers' else '')
    case('messages: missing file', ['template', OGA, '--messages', at('gone.json')], 1, 'gone.json')
    case('messages: not given', ['template', OGA], 2, '--messages')


# ---- Hugging Face folders ---------------------------------------------------------------------------------------------

def bad_hf(name, *words, want=3, index=None, **files):
    folder = hf_folder(at(('hf ' + name).replace(' ', '-').replace('/', '-')), **files)
    if index is not None:
        write(os.path.join(folder, 'model.safetensors.index.json'), index)
        os.remove(os.path.join(folder, 'model.safetensors'))
        if 'shard' in name:
            write(os.path.join(folder, 'x.safetensors'), tiny.safetensors())
    refused('safetensors: ' + name, folder, *words, want=want)


def header(name='model.layers.0.self_attn.q_proj.weight', **changes):
    h = tiny.safetensors_header()
    h[name].update(changes)
    return tiny.safetensors(h)


def hf_cases():
    whole, q, f = tiny.safetensors(), 'model.layers.0.self_attn.q_proj.weight', 'model.safetensors'
    for cut in (0, 4, 8, 100, 2000, len(whole) - 4):
        bad_hf(f'cut to {cut} bytes', f, model=whole[:cut])
    for v in (0, 1, 1 << 20, 1 << 40, 1 << 63, (1 << 64) - 1):
        bad_hf(f'header length {v}', f, model=tiny.safetensors(length=v))
    bad_hf('header is not JSON', f, model=tiny.safetensors(b'x' * 64))
    bad_hf('header is a list', f, model=tiny.safetensors(b'[1,2,3]'))
    bad_hf('header of brackets', f, model=tiny.safetensors(b'[' * 60000))
    bad_hf('overlapping tensors', f, model=header(data_offsets=[0, 4096]))
    bad_hf('offsets beyond the file', q, model=header(data_offsets=[1 << 40, (1 << 40) + 4096]))
    bad_hf('offsets backwards', q, model=header(data_offsets=[4096, 0]))
    bad_hf('offset -1', q, model=header(data_offsets=[-1, 4095]))
    bad_hf('offset 1.5', q, model=header(data_offsets=[0, 1.5]))
    bad_hf('three offsets', q, model=header(data_offsets=[0, 4096, 4096]))
    bad_hf('shape too large', q, model=header(shape=[64, 32]))
    bad_hf('shape overflows', q, model=header(shape=[1 << 62, 1 << 62]))
    bad_hf('shape negative', q, model=header(shape=[-32, -32]))
    bad_hf('shape is text', q, model=header(shape='big'))
    bad_hf('20 dimensions', q, model=header(shape=[32, 32] + [1] * 18))
    bad_hf('unknown type', q, 'F13', model=header(dtype='F13'))
    bad_hf('whole numbers as weights', q, model=header(dtype='I32'))
    some = tiny.random_weights()
    del some['blk.1.attn_k.weight']
    bad_hf('tensor missing', 'layers.1.self_attn.k_proj.weight', model=tiny.safetensors(weights=some))
    c = tiny.hf_config()
    bad_hf('config not JSON', 'config.json', config=b'{')
    bad_hf('config empty', 'config.json', config=b'{}')
    bad_hf('unknown model type', 'hal9000', config={**c, 'model_type': 'hal9000'})
    for key, v in (('num_hidden_layers', 0), ('num_hidden_layers', -1), ('num_hidden_layers', 10**10), ('num_hidden_layers', 3), ('hidden_size', 0),
                   ('hidden_size', 33), ('hidden_size', 1 << 40), ('num_attention_heads', 0), ('num_attention_heads', -2), ('num_key_value_heads', 0),
                   ('num_key_value_heads', 5), ('head_dim', -16), ('head_dim', 1 << 40), ('vocab_size', 0), ('vocab_size', 1 << 50),
                   ('rms_norm_eps', 'x'), ('rms_norm_eps', -1), ('rope_theta', 0), ('rope_theta', -1e4), ('hidden_act', 'mish'), ('intermediate_size', -1)):
        bad_hf(f'{key} {v}', {'mish': 'mish', 3: 'layers.2', 33: 'embed_tokens'}.get(v, 'config.json'), config={**c, key: v})
    bad_hf('no layers given', 'num_hidden_layers', config={k: v for k, v in c.items() if k != 'num_hidden_layers'})
    bad_hf('rope scaling unknown', 'warp', config={**c, 'rope_scaling': {'rope_type': 'warp', 'factor': 2}})
    bad_hf('rope factor 0', 'factor', config={**c, 'rope_scaling': {'rope_type': 'linear', 'factor': 0}})
    weights = {tiny.hf_name(k): '../hf/model.safetensors' for k in tiny.random_weights()}
    bad_hf('index out of the folder', '../hf', index={'weight_map': weights})
    bad_hf('index absolute', '/etc/passwd', index={'weight_map': {k: '/etc/passwd' for k in weights}})
    bad_hf('index names a missing shard', 'gone.safetensors', want=1, index={'weight_map': {k: 'gone.safetensors' for k in weights}})
    bad_hf('index is text', 'index.json', index=b'"x"')
    bad_hf('index without map', 'index.json', index={})
    bad_hf('index names numbers', 'index.json', index={'weight_map': {k: 7 for k in weights}})


# ---- prompts, options, streams ----------------------------------------------------------------------------------------

def option_cases():
    g = lambda name, *argv, want=2, words=(), **o: case('option: ' + name, ['generate', OGA, 'hi', '-n', '2', *argv], want, *words, **o)
    for flag, values in {'--logit-bias': ('x', '1', '=1', '1=', 'a=b', '-1=2', '99999999999=1', '1=nan', '1=inf', '100000=1'),
                         '--samplers': ('x', 'top_k,,top_p', ','), '--temperature': ('nan', '-1', 'hot', 'inf', ''),
                         '--top-p': ('nan', '-0.5', '7'), '--min-p': ('-1', '2'), '--top-k': ('-1', 'x', '9999999999', '1.5'),
                         '--repetition-penalty': ('0', '-1', 'nan'), '--frequency-penalty': ('nan', 'inf'), '--presence-penalty': ('x',),
                         '--context': ('0', '-1', 'x', '99999999999999999999'), '--threads': ('0', '-1', 'x', '9999999999', '100000'),
                         '--kv': ('x', '', 'f64'), '--numerics': ('x',), '--quant': ('x',), '--block': ('15', '-32', '48'), '--head-bits': ('5',),
                         '--max-new-tokens': ('-5', 'x'), '--seed': ('x', '1e30'), '--logprobs': ('-1', '100000'), '--ids': ('', ',', '1,x', '-1', '1.5', '99999999999')}.items():
        for v in values:
            g(f'{flag} {v!r}', f'{flag}={v}', words=[flag.split('-')[2].rstrip('s')])
    g('--samplers twice the same', '--samplers', 'top_k,top_k', want=0)
    g('--top-p 0', '--top-p', '0', want=0)
    g('--context 10^18', '--context', 10**18, words=['context'])
    g('--context 2^62', '--context', 1 << 62, words=['context'])
    g('--threads 64', '--threads', 64, want=0)
    g('--device cuda:99', '--device', 'cuda:99', want=5, words=['cuda'])
    g('--device cuda without its library', '--device', 'cuda', want=5, words=['libgone'], env={'OXGEN_CUDA_LIB': '/nonexistent/libgone.so'})
    g('--device cuda, a library that is another', '--device', 'cuda', want=5, env={'OXGEN_CUDA_LIB': 'libc.so.6'}, words=['libc.so.6'])
    g('--device toaster', '--device', 'toaster', want=5, words=['toaster'])
    g('--backend toaster', '--backend', 'toaster', want=5, words=['toaster'])
    g('--backend ort without it', '--backend', 'ort', want=5, words=['OXGEN_ORT_LIB'], env={'OXGEN_ORT_LIB': '/nonexistent/libonnxruntime.so'})
    g('unknown flag', '--temprature', '1', words=['--temperature'])
    g('flag without value', '--temperature', words=['--temperature'])
    for name, value, word in (('OXGEN_THREADS', 'abc', 'abc'), ('OXGEN_THREADS', '0', 'OXGEN_THREADS'), ('OXGEN_THREADS', '-3', 'OXGEN_THREADS'),
                              ('OXGEN_CPU', 'xyz', 'xyz'), ('OXGEN_PASSES', 'nosuch', 'nosuch')):
        g(f'{name}={value}', env={name: value}, words=[word])
    case('option: unknown command', ['genrate'], 2, 'generate')
    case('option: generate without model', ['generate'], 2, 'MODEL')
    case('option: no prompt', ['generate', OGA], 2, 'prompt')
    case('prompt: missing file', ['generate', OGA, '--prompt-file', at('gone.txt')], 1, 'gone.txt')
    case('prompt: file is a folder', ['generate', OGA, '--prompt-file', OGA], 1, 'oga')
    case('prompt: longer than the context', ['generate', OGA, 'x y z ' * 100], 1, 'context')
    case('prompt: longer than --context', ['generate', OGA, 'hello hello hello', '--context', 4], 1, 'context')
    case('prompt: empty', ['generate', OGA, '', '-n', '2'], 0)
    case('prompt: empty and raw', ['generate', OGA, '', '--raw', '-n', '2'], 2, 'empty')
    case('prompt: empty stdin and raw', ['generate', OGA, '-', '--raw', '-n', '2'], 2, 'empty')
    case('prompt: bad UTF-8', ['generate', OGA, b'\xff\xfe\xc3'.decode('utf-8', 'surrogateescape'), '-n', '2'], 2, 'not UTF-8')
    case('prompt: bad UTF-8 in stdin', ['generate', OGA, '-', '-n', '2'], 2, 'not UTF-8: byte 1', stdin=b'a\xed\xa0\x80\xf8\x88\x80\x80\x80\xff')
    case('prompt: NUL in stdin', ['generate', OGA, '-', '-n', '2'], 2, 'NUL', stdin=b'a\0b')
    case('prompt: NUL in stdin of run', ['run', OGA, '-n', '2'], 2, 'NUL', stdin=b'a\0b\n')
    case('prompt: bad UTF-8 in stdin of run', ['run', OGA, '-n', '2'], 2, 'not UTF-8', stdin=b'\xff\xfe\n')
    case('prompt: 3 MB line to run', ['run', OGA, '-n', '2'], 1, 'context', stdin=b'x' * 3000000 + b'\n')
    case('prompt: a conversation longer than the context', ['run', OGA, '-n', '8', '--ignore-eos'], 1, 'context', stdin=b'hello\n' * 40)
    case('prompt: id out of range', ['generate', OGA, '--ids', f'1,{tiny.VOCAB}'], 2, str(tiny.VOCAB))
    case('prompt: logits of an id out of range', ['logits', OGA, '--ids', '2147483647'], 2, '2147483647')
    case('prompt: decode an id out of range', ['tokenize', OGA, '--decode', '--ids', '5,100000'], 2, '100000')
    case('prompt: more ids than the context', ['logits', OGA, '--ids', ','.join(['1'] * 65)], 1, 'context')
    case('perplexity: missing file', ['perplexity', OGA, '--file', at('gone.txt')], 1, 'gone.txt')
    case('perplexity: empty file', ['perplexity', OGA, '--file', write(at('empty.txt'), b'')], 2, 'empty.txt')
    case('perplexity: --context 10^18', ['perplexity', OGA, '--file', write(at('some.txt'), b'hello ' * 50), '--context', 10**18], 2, 'context')
    case('bench: -p 0', ['bench', OGA, '-p', '0', '-n', '1', '-r', '1'], 2)
    for flag, v in (('-p', 'x'), ('-p', '-5'), ('-n', '99999999999999'), ('-r', '0'), ('-r', '-1'), ('-b', '0'), ('-d', 'x'), ('-b', '1000000')):
        case(f'bench: {flag} {v}', ['bench', OGA, '-p', '4', '-n', '2', '-r', '1', flag, v], 1 if len(v) > 9 else 2)


def place_cases():
    case('place: nothing there', ['generate', at('nowhere'), 'x'], 1, 'nowhere')
    case('place: no such .gguf', ['generate', at('nowhere.gguf'), 'x'], 1, 'nowhere.gguf')
    os.makedirs(at('dir.gguf', '.keep'), exist_ok=True)
    case('place: a folder named x.gguf', ['generate', at('dir.gguf'), 'x'], 3, 'dir.gguf')
    os.makedirs(at('dir.onnx', '.keep'), exist_ok=True)
    case('place: a folder named x.onnx', ['forward', at('dir.onnx')], 3, 'dir.onnx')
    os.makedirs(at('hollow', '.keep'), exist_ok=True)
    case('place: a folder without a model', ['generate', at('hollow'), 'x'], 3, 'hollow')
    case('place: a text file', ['generate', write(at('readme.txt'), b'hi'), 'x'], 3, 'readme.txt')
    case('place: a file as a folder', ['generate', GGUF + '/', 'x'], 1, 'base.gguf')
    case('place: below a file', ['generate', GGUF + '/model.gguf', 'x'], 1, 'base.gguf')
    case('place: a name of 5000 bytes', ['generate', '/' + 'x' * 5000, 'x'], 1, 'xxx')
    case('place: an empty name', ['generate', '', 'x'], 1)
    case('place: a device', ['generate', '/dev/zero', 'x'], 1, '/dev/zero')
    for name in ('pipe.gguf', 'pipe.onnx', 'pipe'):
        path = at(name)
        if not os.path.exists(path):
            os.mkfifo(path)
        case(f'place: a pipe named {name}', ['generate' if name != 'pipe.onnx' else 'forward', path] + (['x'] if name != 'pipe.onnx' else []), 1 if name == 'pipe' else 3, name)
    loop = at('loop.gguf')
    os.path.lexists(loop) or os.symlink(loop, loop)
    case('place: a link to itself', ['generate', loop, 'x'], 1, 'loop.gguf')
    locked = write(at('locked.gguf'), BASE)
    os.chmod(locked, 0)
    lower = ['setpriv', '--bounding-set', '-dac_override,-dac_read_search', '--inh-caps', '-all'] if os.geteuid() == 0 else []
    if not lower or shutil.which('setpriv'):
        case('place: no permission', ['generate', locked, 'x'], 1, 'locked.gguf', 'ermission', prefix=lower)
    wrong = folder_with('config is a folder', config=None)
    os.makedirs(os.path.join(wrong, 'genai_config.json'))
    case('place: genai_config.json is a folder', ['generate', wrong, 'x', '-n', '2'], 0)
    wrong = folder_with('tokenizer is a pipe', tokenizer=None)
    os.mkfifo(os.path.join(wrong, 'tokenizer.json'))
    case('place: tokenizer.json is a pipe', ['generate', wrong, 'x'], 3, 'tokenizer.json')
    os.makedirs(at('models', 'deep', 'x'), exist_ok=True)
    os.path.lexists(at('models', 'again')) or os.symlink(at('models'), at('models', 'again'))
    case('place: list of a folder that holds itself', ['list', at('models')], 0)
    case('place: list of nothing', ['list', at('gone')], 1, 'gone')


def closed_pipe():
    r, w = os.pipe()
    os.close(r)
    return os.fdopen(w, 'wb')


def stream_cases():
    argv = {'generate': ['generate', OGA, 'hello', '-n', '4', '--ignore-eos'], 'generate --json': ['generate', OGA, 'hello', '-n', '4', '--json'],
            'inspect': ['inspect', GGUF], 'version': ['version'], 'tokenize': ['tokenize', OGA, 'hello'], 'kernels': ['kernels'], 'plan': ['plan', OGA],
            'help': ['help'], 'logits': ['logits', OGA, '--ids', '1,2']}
    for name, v in argv.items():
        case(f'stdout: {name} to a reader that left', v, 1, 'output', stdout=closed_pipe)
    for name in ('generate', 'inspect', 'version'):
        case(f'stdout: {name} to a full device', argv[name], 1, 'output', stdout=lambda: open('/dev/full', 'wb'))
        case(f'stdout: {name} with stdout closed', argv[name], 1, 'output', limits=['exec >&-'])
    case('stdout: run to a reader that left', ['run', OGA, '-n', '4', '--ignore-eos'], 1, 'output', stdout=closed_pipe, stdin=b'hi\nhi\n')
    case('stdout: logits to a full device', ['logits', OGA, '--ids', '1,2', '-o', '/dev/full'], 1, '/dev/full')


def convert_cases():
    c = lambda name, src, to, want, *words, **o: case('convert: ' + name, ['convert', src, '-o', to], want, *words, **o)
    c('source missing', at('gone.gguf'), at('out-a'), 1, 'gone.gguf', out=at('out-a'))
    c('source cut', gguf_file('conv cut', BASE[:-5000]), at('out-b'), 3, 'complete', out=at('out-b'))
    c('source is an ONNX folder', OGA, at('out-c'), 3, 'oga', out=at('out-c'))
    full = at('full-folder', 'precious.txt')
    write(full, b'mine')
    c('into a folder that is not empty', GGUF, at('full-folder'), 2, 'full-folder', after=lambda o, code: '' if open(full).read() == 'mine' and os.listdir(os.path.dirname(full)) == ['precious.txt'] else 'the folder was touched')
    file = write(at('a-file'), b'mine')
    c('onto a file', GGUF, file, 2, 'a-file', after=lambda o, code: '' if open(file).read() == 'mine' else 'the file was touched')
    c('below a file', GGUF, file + '/x', 1, 'a-file')
    c('below a missing folder', GGUF, at('gone-folder') + '/x/y', 1, 'gone-folder', absent=[at('gone-folder')])
    c('into a read-only place', GGUF, '/proc/x', 1, '/proc/x')
    case('convert: no -o', ['convert', GGUF], 2, '-o')
    for flag, v in (('--quant', 'int3'), ('--block', '7'), ('--block', '999999999999'), ('--head-bits', '5'), ('--io', 'f64'), ('--accuracy', '9')):
        case(f'convert: {flag} {v}', ['convert', HF, '-o', at('out-d'), flag, v], 2, out=at('out-d'))
    c('files limited to 64 KB', GGUF, at('out-e'), 1, 'out-e', limits=['ulimit -f 64'], out=at('out-e'))
    nan = tiny.random_weights()
    nan['blk.0.ffn_up.weight'][3, 5] = np.nan
    nan['blk.0.ffn_down.weight'][3, 5] = np.inf
    hf_folder(at('hf-nan'), model=tiny.safetensors(weights=nan))
    c('NaN weights', at('hf-nan'), at('out-f'), 0)
    disk = at('tiny-disk')
    os.makedirs(disk, exist_ok=True)
    if os.geteuid() == 0 and subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=48k', 'tmpfs', disk], capture_output=True).returncode == 0:
        mounted.append(disk)
        c('disk full', GGUF, disk + '/out', 1, 'out', out=disk + '/out')
        case('convert: logits onto a full disk', ['logits', OGA, '--ids', ','.join(['1'] * 60), '-o', disk + '/big/l.npy'], 1, 'l.npy')
        case('logits: disk full', ['logits', OGA, '--ids', ','.join(['1'] * 64), '-o', disk + '/l.npy'], 1, 'l.npy', 'No space left', absent=[disk + '/l.npy'])


def nan_cases():
    w = tiny.random_weights()
    w['output_norm.weight'][:] = np.nan
    nan = gguf_file('nan', gguf(weights=w)[0])
    for name, argv in (('greedy', ['--greedy']), ('sampled', ['--temperature', '1']), ('top-k', ['--temperature', '1', '--top-k', '5'])):
        case(f'NaN logits: {name}', ['generate', nan, 'hi', '-n', '3', *argv], 1, 'NaN')
    case('NaN logits: run', ['run', nan, '-n', '3'], 1, 'NaN', stdin=b'hi\n')
    case('NaN logits: perplexity', ['perplexity', nan, '--file', write(at('p.txt'), b'hello ' * 30)], 1, 'NaN')
    w['output_norm.weight'][:] = np.inf
    case('infinite logits', ['generate', gguf_file('inf', gguf(weights=w)[0]), 'hi', '-n', '3'], 1, 'NaN')


WORKING = 4 if SANITIZED else 0.8  # seconds until a tiny model is loaded and at work


def interrupt_cases():
    long = keys(llama__context_length=(U32, 1 << 20))
    model = gguf_file('long', gguf(long)[0])
    soon = lambda seconds: (lambda q, t=[]: (t or t.append(time.time())) is not None and time.time() - t[0] > seconds)
    text = write(at('long.txt'), b'hello world, this is a text. ' * 60000)
    ids = ','.join(['5'] * 60000)
    case('Ctrl-C: generate', ['generate', model, 'hi', '-n', '1000000', '--ignore-eos'], 130, 'interrupted', interrupt=soon(WORKING))
    case('Ctrl-C: generate --json', ['generate', model, 'hi', '-n', '1000000', '--ignore-eos', '--json'], 130, 'interrupted', interrupt=soon(WORKING))
    case('Ctrl-C: a long prompt', ['generate', model, '--ids', ids], 130, 'interrupted', interrupt=soon(WORKING))
    case('Ctrl-C: run', ['run', model, '-n', '1000000', '--ignore-eos'], 130, 'interrupted', interrupt=soon(WORKING), stdin=b'hi\n')
    case('Ctrl-C: run that waits for a line', ['run', model], 130, 'interrupted', interrupt=soon(WORKING), open_stdin=True)
    case('Ctrl-C: logits', ['logits', model, '--ids', ids], 130, 'interrupted', interrupt=soon(WORKING))
    case('Ctrl-C: perplexity', ['perplexity', model, '--file', text, '--context', '4096'], 130, 'interrupted', interrupt=soon(WORKING))
    case('Ctrl-C: bench', ['bench', model, '-p', '20000', '-n', '20000', '-r', '50'], 130, 'interrupted', interrupt=soon(WORKING))
    case('Ctrl-C: tokenize', ['tokenize', model, '--file', write(at('longer.txt'), b'hello world, this is a text. ' * 2000000)], 130, 'interrupted', interrupt=soon(WORKING), stdout=lambda: open(os.devnull, 'wb'))
    big = at('big.gguf')
    rows = 3 << 20
    write(big, sparse_gguf(rows))
    out = at('out-int')
    os.truncate(big, os.path.getsize(big) + 2 * rows * 128)
    case('Ctrl-C: convert', ['convert', big, '-o', out, '--quant', 'int8'], 130, 'interrupted', out=out,
         interrupt=lambda q: any(f.startswith('out-int.') for f in os.listdir(WORK)))


def sparse_gguf(rows):
    """A model whose embedding and head, at the end, are a hole in the file."""
    k = keys(tokenizer__ggml__tokens=None, tokenizer__ggml__token_type=None, tokenizer__ggml__merges=None)
    b, where = gguf(k, tensors={'token_embd.weight': ((32, 1), 0, bytes(128)), 'output.weight': ((32, 1), 0, bytes(128))})
    end = (len(b) + 31) // 32 * 32
    for i, name in enumerate(('token_embd.weight', 'output.weight')):
        b = patched(b, where['dims ' + name] + 8, 'Q', rows)
        b = patched(b, where['offset ' + name], 'Q', end - where['data'] + i * rows * 128)
    return b + bytes(end - len(b))


def flip_cases():
    """Random damage, seeded: any documented exit code, one line, in time."""
    r = random.Random(a.seed)
    sources = {'gguf': (BASE, lambda b, n: (gguf_file(n, b), [])),
               'onnx': (decoder().SerializeToString(), lambda b, n: (folder_with(n, b), [])),
               'safetensors': (tiny.safetensors(), lambda b, n: (hf_folder(at(n), model=b), [])),
               'tokenizer': (json.dumps(tiny.tokenizer_json()).encode(), lambda b, n: (folder_with(n, tokenizer=b), [])),
               'config': (open(os.path.join(OGA, 'genai_config.json'), 'rb').read(), lambda b, n: (folder_with(n, config=b), []))}
    heads = {'gguf': AT['data'], 'safetensors': 8 + struct.unpack('<Q', tiny.safetensors()[:8])[0]}
    names = list(sources)
    for i in range(a.flips):
        kind = names[i % len(names)]
        b = bytearray(sources[kind][0])
        for _ in range(r.choice((1, 1, 2, 5, 20))):
            where = r.randrange(heads.get(kind, len(b)) if r.random() < 0.9 else len(b))
            way = r.randrange(4)
            if way == 0:
                b[where] ^= 1 << r.randrange(8)
            elif way == 1:
                b[where] = r.choice((0, 1, 127, 128, 255))
            elif way == 2 and where + 8 < len(b):
                b[where:where + 8] = struct.pack('<q', r.choice((0, -1, 1 << 31, 1 << 62, -(1 << 63), 1 << 20)))
            else:
                del b[where:where + r.randrange(1, 16)]
        path, _ = sources[kind][1](bytes(b), f'flip-{kind}-{a.seed}-{i}')
        out = at(f'flip-out-{i}')
        commands = [['generate', path, 'hello world', '-n', '4']] * 3 + [['inspect', path], ['plan', path], ['logits', path, '--ids', '3,4,5']]
        if kind in ('gguf', 'safetensors'):
            commands += [['convert', path, '-o', out]] * 2
        if kind == 'tokenizer':
            commands += [['tokenize', path, 'hello world, hello'], ['tokenize', path, '--decode', '--ids', '5,6,260']]
        case(f'random damage {a.seed}.{i} of {kind}', r.choice(commands), CODES - {2, 130}, out=out)


mounted = []


def main():
    start = time.time()
    passed = failed = 0
    slow = []
    try:
        make_base()
        for part in (gguf_cases, onnx_cases, forward_cases, config_cases, tokenizer_cases, template_cases, hf_cases, option_cases,
                     place_cases, stream_cases, convert_cases, nan_cases, interrupt_cases, flip_cases):
            part()
        cases[:] = [c for c in cases if a.only in c[0]]
        with ThreadPoolExecutor(2) as pool:
            for name, code, message, fault, seconds in pool.map(run_case, cases):
                passed, failed = passed + (not fault), failed + bool(fault)
                slow.append((seconds, name))
                print(f'FAIL {name}: {fault}' if fault else f'ok {name}: exit {code}: {message}', flush=True)
    finally:
        for disk in mounted:
            subprocess.run(['umount', disk])
        if not a.keep:
            shutil.rmtree(WORK, ignore_errors=True)
    print('slowest: ' + ', '.join(f'{n} {s:.1f} s' for s, n in sorted(slow)[:-4:-1]))
    print(f'{passed} passed, {failed} failed')
    print(f'({time.time() - start:.0f} s)', file=sys.stderr)
    return failed != 0


sys.exit(main())
