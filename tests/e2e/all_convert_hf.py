"""Random tiny Hugging Face models of every architecture that is imported: convert, run with ONNX
Runtime, compare logits with transformers.

usage: python tests/e2e/all_convert_hf.py --oxgen BIN [NAME …]   (needs torch and transformers)
"""
import argparse
import os
import subprocess
import sys
import tempfile

os.environ['HF_HUB_OFFLINE'] = '1'
os.environ['TRANSFORMERS_VERBOSITY'] = 'error'
import numpy as np

from onnx_decoder import difference, logits

try:
    import torch
    import transformers as hf
except ImportError:
    sys.exit('skipped: torch or transformers is not installed')
hf.utils.logging.disable_progress_bar()

BASE = dict(hidden_size=64, intermediate_size=160, num_hidden_layers=3, num_attention_heads=4,
            num_key_value_heads=2, vocab_size=512, max_position_embeddings=256, bos_token_id=1,
            eos_token_id=2, pad_token_id=0)
LOCAL = dict(num_hidden_layers=7, head_dim=32, sliding_window=8)


def rope(**k):
    return dict(rope_parameters=k)


MODELS = {
    'llama': (hf.LlamaConfig, {}),
    'llama-tied': (hf.LlamaConfig, dict(tie_word_embeddings=True)),
    'llama-bias': (hf.LlamaConfig, dict(attention_bias=True, mlp_bias=True)),
    'llama-wide-heads': (hf.LlamaConfig, dict(head_dim=32)),
    'llama-llama3': (hf.LlamaConfig, rope(rope_type='llama3', rope_theta=5e5, factor=8.0,
                                          low_freq_factor=1.0, high_freq_factor=4.0,
                                          original_max_position_embeddings=64)),
    'llama-linear': (hf.LlamaConfig, rope(rope_type='linear', rope_theta=1e4, factor=4.0)),
    'llama-yarn': (hf.LlamaConfig, rope(rope_type='yarn', rope_theta=1e4, factor=4.0,
                                        original_max_position_embeddings=64)),
    'mistral': (hf.MistralConfig, dict(sliding_window=8)),
    'qwen2': (hf.Qwen2Config, {}),
    'qwen2-window': (hf.Qwen2Config, dict(use_sliding_window=True, sliding_window=8,
                                          max_window_layers=1)),
    'qwen3': (hf.Qwen3Config, dict(head_dim=32)),
    'gemma': (hf.GemmaConfig, dict(head_dim=32)),
    'gemma2': (hf.Gemma2Config, dict(LOCAL, query_pre_attn_scalar=24,
                                     attn_logit_softcapping=2.0, final_logit_softcapping=2.0)),
    'gemma3': (hf.Gemma3TextConfig, dict(LOCAL, query_pre_attn_scalar=24)),
    'gemma3-cap': (hf.Gemma3TextConfig, dict(LOCAL, final_logit_softcapping=2.0)),
    'glm': (hf.GlmConfig, dict(head_dim=32, partial_rotary_factor=0.5, attention_bias=True)),
    'phi3': (hf.Phi3Config, dict(sliding_window=12)),
    'phi3-long': (hf.Phi3Config, dict(
        num_attention_heads=2, num_key_value_heads=1, original_max_position_embeddings=32,
        partial_rotary_factor=0.5,
        rope_parameters=dict(rope_type='longrope', rope_theta=1e4, partial_rotary_factor=0.5,
                             short_factor=[1.0 + 0.1 * i for i in range(8)],
                             long_factor=[1.0 + 0.7 * i for i in range(8)],
                             original_max_position_embeddings=32))),
}
LONG_SWITCH = 32  # of phi3-long: the cached keys of one set don't fit the other


def make(name, folder, dtype=torch.float32):
    kind, changes = MODELS[name]
    torch.manual_seed(1)
    model = hf.AutoModelForCausalLM.from_config(kind(**{**BASE, **changes}))
    noise = torch.Generator().manual_seed(3)
    for p in model.parameters():  # strong weights, so that every part of the graph shows
        p.data = p.data * 6 if p.dim() > 1 else p.data + 0.3 * torch.randn(p.shape, generator=noise)
    model.to(dtype).save_pretrained(folder)


def reference(folder, ids):
    model = hf.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32,
                                                    attn_implementation='eager').eval()
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].numpy()


def convert(oxgen, source, out, *options):
    r = subprocess.run([oxgen, 'convert', source, '-o', out, *options], capture_output=True,
                       text=True)
    assert r.returncode == 0, r.stderr
    return r.stdout + r.stderr


def own_logits(oxgen, model, ids, work, *options):
    """What oxgen itself computes, in float32."""
    out = os.path.join(work, 'logits.npy')
    r = subprocess.run([oxgen, 'logits', model, '--ids', ','.join(map(str, ids)), '-o', out,
                        '--numerics', 'exact', '--kv', 'f32', *options], capture_output=True,
                       text=True)
    assert r.returncode == 0, r.stderr
    return np.load(out)


def check(name, got, want, limit):
    d = difference(got, want)
    print(f'{"ok  " if d <= limit else "FAIL"} {name}: {d:.1e} (at most {limit:.0e})')
    return d <= limit


def test_model(oxgen, name, work):
    source, out = os.path.join(work, name), os.path.join(work, name + '-out')
    make(name, source)
    convert(oxgen, source, out, '--quant', 'f32')
    ids = np.random.default_rng(1).integers(3, 512, 48).tolist()
    want = reference(source, ids)
    ok = check(name + ' prefill', logits(out, ids), want, 1e-5)
    ok = check(name + ' imported', own_logits(oxgen, source, ids, work, '--quant', 'keep'), want,
               1e-5) and ok
    ok = check(name + ' reopened', own_logits(oxgen, out, ids, work), want, 1e-5) and ok
    if name == 'phi3-long':
        ids = ids[:LONG_SWITCH]
    steps = [20] + [1] * (len(ids) - 20)
    return check(name + ' steps', logits(out, ids, steps), reference(source, ids), 1e-5) and ok


def blocks_of(w, bits, block, asym):
    """w as its block codes say it, by the rule that ONNX Runtime's own quantiser has."""
    rows, cols = w.shape
    x = np.pad(w, ((0, 0), (0, -cols % block))).reshape(rows, -1, block).astype(np.float32)
    least, largest = x.min(-1, keepdims=True), x.max(-1, keepdims=True)
    most, zero = 2 ** bits - 1, np.float32(2 ** (bits - 1))
    away = lambda v: np.sign(v) * np.floor(np.abs(v) + np.float32(0.5))
    inverse = lambda v: np.divide(np.float32(1), v, out=np.zeros_like(v), where=v != 0)
    if asym:
        least, largest = np.minimum(least, 0), np.maximum(largest, 0)
        scale = (largest - least) / np.float32(most)
        zero = away(np.clip(np.divide(-least, scale, out=np.zeros_like(scale), where=scale != 0), 0, most))
    else:
        scale = np.where(np.abs(largest) > np.abs(least), largest, least) / -zero
    q = np.clip(away(x * inverse(scale) + zero), 0, most)
    return ((q - zero) * scale).reshape(rows, -1)[:, :cols]


def with_blocks(source, folder, bits, block, asym, head_bits, tied):
    """The model with every matrix replaced by what its codes say."""
    model = hf.AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)
    for name, p in model.named_parameters():
        is_head = name.startswith('lm_head') or (tied and 'embed_tokens' in name)
        if p.dim() == 2 and (is_head or 'embed_tokens' not in name):
            b = head_bits if is_head else bits
            if b < 16:
                p.data = torch.tensor(blocks_of(p.data.numpy(), b, block, asym))
    model.save_pretrained(folder)


def test_forms(oxgen, work):
    """Codes mean what the rule says: block sizes, zero points, head bits, tied and untied."""
    ids, ok = list(range(3, 40)), True
    for name in ('llama', 'llama-tied'):
        source, told = os.path.join(work, name + '-forms'), os.path.join(work, name + '-told')
        make(name, source, torch.bfloat16)
        for bits, block, asym, head in ((4, 32, False, 8), (4, 16, True, 8), (8, 64, True, 4),
                                        (4, 128, False, 16), (8, 32, False, 8)):
            flags = ['--quant', f'int{bits}', '--block', str(block), '--head-bits', str(head),
                     *(['--asym'] if asym else [])]
            out = os.path.join(work, name + '-form')
            convert(oxgen, source, out, '--accuracy', '0', *flags)
            with_blocks(source, told, bits, block, asym, head, name.endswith('tied'))
            want = reference(told, ids)
            ok = check(f'{name} {" ".join(flags)}', logits(out, ids), want, 1e-5) and ok
            convert(oxgen, source, out, '--accuracy', '0', '--io', 'f16', *flags)
            ok = check(f'{name} {" ".join(flags)} --io f16', logits(out, ids), want, 2e-2) and ok
        want = reference(source, ids)
        for kind, limit in (('keep', 1e-5), ('f16', 1e-5), ('bf16', 1e-5), ('f32', 1e-5)):
            convert(oxgen, source, out, '--quant', kind)
            ok = check(f'{name} {kind}', logits(out, ids), want, limit) and ok
    return ok


def test_refusals(oxgen, work):
    """Messages name what is wrong."""
    import json
    source = os.path.join(work, 'refused')
    make('llama', source)
    path = os.path.join(source, 'config.json')
    good, ok = json.load(open(path)), True
    for change, words in (({'model_type': 'mamba'}, ['mamba', 'llama', 'qwen2']),
                          ({'num_hidden_layers': 4}, ['layers.3', 'missing']),
                          ({'intermediate_size': 96}, ['gate_proj', '96', '160']),
                          ({'hidden_act': 'mish'}, ['mish']),
                          ({'rope_parameters': {'rope_type': 'dynamic', 'factor': 2.0}},
                           ['dynamic', 'longrope'])):
        json.dump(dict(good, **change), open(path, 'w'))
        out = os.path.join(work, 'never')
        r = subprocess.run([oxgen, 'convert', source, '-o', out], capture_output=True, text=True)
        missing = [w for w in words if w not in r.stderr]
        fine = r.returncode == 3 and not missing and not os.path.exists(out)
        print('ok  ' if fine else 'FAIL', 'refused', change, '' if fine else (r.returncode, r.stderr))
        ok = ok and fine
    return ok


def main():
    a = argparse.ArgumentParser()
    a.add_argument('--oxgen', required=True)
    a.add_argument('names', nargs='*')
    a = a.parse_args()
    ok = True
    with tempfile.TemporaryDirectory() as work:
        for name in a.names or MODELS:
            ok = test_model(a.oxgen, name, work) and ok
        if not a.names:
            ok = test_forms(a.oxgen, work) and ok
            ok = test_refusals(a.oxgen, work) and ok
    sys.exit(0 if ok else 1)


if __name__ == '__main__':
    main()
