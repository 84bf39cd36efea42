"""GGUF files of tiny random models: one llama in every tensor type, and one of each architecture.
The oracle is transformers with the weights that the gguf package dequantises.

usage: python tests/e2e/all_convert_gguf.py --oxgen BIN   (needs gguf, torch and transformers)
"""
import argparse
import os
import sys
import tempfile

os.environ['HF_HUB_OFFLINE'] = '1'
import numpy as np

try:
    import gguf
    import torch
    import transformers as hf
    from gguf.quants import dequantize, quantize
except ImportError:
    sys.exit('skipped: gguf, torch or transformers is not installed')
from onnx_decoder import logits
from all_convert_hf import check, convert, own_logits

T = gguf.GGMLQuantizationType
SIZES = dict(hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=8,
             num_key_value_heads=2, vocab_size=320, max_position_embeddings=128, bos_token_id=1,
             eos_token_id=2, pad_token_id=0)
# Types that the gguf package reads but does not write: byte offsets of the float16 scales inside a
# block, and their sizes, so that random bytes mean weights of a usual size.
RANDOM = {T.Q2_K: {80: 0.01, 82: 0.008}, T.Q3_K: {108: 0.0015}, T.Q4_K: {0: 1.5e-4, 2: 8e-4},
          T.Q5_K: {0: 8e-5, 2: 8e-4}, T.Q6_K: {208: 3e-5}, T.IQ4_NL: {0: 1e-3}}
TYPES = [T.F32, T.F16, T.BF16, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0, *RANDOM]
ARCHS = {
    'llama': (hf.LlamaConfig, gguf.MODEL_ARCH.LLAMA, {}),
    'qwen2': (hf.Qwen2Config, gguf.MODEL_ARCH.QWEN2, dict(tie_word_embeddings=True)),
    'qwen3': (hf.Qwen3Config, gguf.MODEL_ARCH.QWEN3, dict(head_dim=64)),
    'gemma2': (hf.Gemma2Config, gguf.MODEL_ARCH.GEMMA2,
               dict(head_dim=32, sliding_window=8, query_pre_attn_scalar=32)),
    'gemma3': (hf.Gemma3TextConfig, gguf.MODEL_ARCH.GEMMA3,
               dict(head_dim=32, sliding_window=8, num_hidden_layers=7, query_pre_attn_scalar=32)),
    'phi3': (hf.Phi3Config, gguf.MODEL_ARCH.PHI3, dict(sliding_window=12)),
    'llama-scaled': (hf.LlamaConfig, gguf.MODEL_ARCH.LLAMA, dict(rope_parameters=dict(
        rope_type='llama3', rope_theta=5e5, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=64))),
    'llama-yarn': (hf.LlamaConfig, gguf.MODEL_ARCH.LLAMA, dict(rope_parameters=dict(
        rope_type='yarn', rope_theta=1e4, factor=4.0, original_max_position_embeddings=32))),
    'phi3-long': (hf.Phi3Config, gguf.MODEL_ARCH.PHI3, dict(
        original_max_position_embeddings=32, rope_parameters=dict(
            rope_type='longrope', rope_theta=1e4, partial_rotary_factor=1.0,
            short_factor=[1.0 + 0.1 * i for i in range(16)],
            long_factor=[1.0 + 0.7 * i for i in range(16)],
            original_max_position_embeddings=32))),
}


def encode(w, kind, rng):
    """(bytes as the file has them, the values they mean)"""
    if w.ndim == 1:
        return w, w, T.F32
    if kind in RANDOM:
        block, size = gguf.GGML_QUANT_SIZES[kind]
        raw = rng.integers(0, 256, (w.shape[0], w.shape[1] // block, size), dtype=np.uint8)
        for at, value in RANDOM[kind].items():
            scale = (value * rng.uniform(0.5, 1.5, raw.shape[:2])).astype(np.float16)
            raw[..., at:at + 2] = scale[..., None].view(np.uint8)
        raw = raw.reshape(w.shape[0], -1)
    else:
        raw = quantize(w, kind)
    return raw, dequantize(raw, kind).reshape(w.shape).astype(np.float32), kind


def unpermute(w, n_heads, back):
    """Rows of a head between (half, pair) and (pair, half) order."""
    a, b = (w.shape[0] // n_heads // 2, 2) if back else (2, w.shape[0] // n_heads // 2)
    return w.reshape(n_heads, a, b, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def metadata(out, name, c):
    out.add_context_length(c.max_position_embeddings)
    out.add_embedding_length(c.hidden_size)
    out.add_block_count(c.num_hidden_layers)
    out.add_feed_forward_length(c.intermediate_size)
    out.add_head_count(c.num_attention_heads)
    out.add_head_count_kv(c.num_key_value_heads)
    out.add_layer_norm_rms_eps(c.rms_norm_eps)
    if not name.startswith('llama'):
        head = getattr(c, 'head_dim', None) or c.hidden_size // c.num_attention_heads
        out.add_key_length(head)
        out.add_value_length(head)
    rope = c.rope_parameters
    out.add_rope_freq_base(rope.get('full_attention', rope)['rope_theta'])
    if getattr(c, 'sliding_window', None):
        out.add_sliding_window(c.sliding_window)
    if name == 'gemma2':
        out.add_attn_logit_softcapping(c.attn_logit_softcapping)
        out.add_final_logit_softcapping(c.final_logit_softcapping)
    out.add_vocab_size(c.vocab_size)
    out.add_eos_token_id(2)
    out.add_bos_token_id(1)


def scaling(out, model, c):
    """Rotary scaling as GGUF files state it: divisors as tensors, or numbers."""
    rope, rotary = c.rope_parameters, model.model.rotary_emb
    kind = rope.get('rope_type', 'default')
    if kind == 'llama3':
        plain = rope['rope_theta'] ** -(np.arange(0, 32, 2) / 32)
        out.add_tensor('rope_freqs.weight',
                       (plain / rotary.inv_freq.numpy()).astype(np.float32))
    elif kind == 'longrope':
        for which in ('short', 'long'):
            out.add_tensor(f'rope_factors_{which}.weight', np.array(rope[which + '_factor'], np.float32))
        out.add_rope_scaling_attn_factors(float(rotary.attention_scaling))
        out.add_rope_scaling_orig_ctx_len(rope['original_max_position_embeddings'])
    elif kind == 'yarn':
        out.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        out.add_rope_scaling_factor(rope['factor'])
        out.add_rope_scaling_orig_ctx_len(rope['original_max_position_embeddings'])


def make(path, name, kind, rng):
    """Writes the GGUF and returns the model whose weights are those of the file."""
    config, arch, changes = ARCHS[name]
    torch.manual_seed(2)
    c = config(**{**SIZES, **changes})
    model = hf.AutoModelForCausalLM.from_config(c, attn_implementation='eager').float().eval()
    names = gguf.get_tensor_name_map(arch, c.num_hidden_layers)
    out = gguf.GGUFWriter(path, gguf.MODEL_ARCH_NAMES[arch])
    metadata(out, name, c)
    if not name.startswith('gemma'):
        scaling(out, model, c)
    for key, p in model.named_parameters():
        w = p.data.numpy() * 3 if p.dim() > 1 else \
            p.data.numpy() + 0.3 * rng.standard_normal(p.shape).astype(np.float32)
        heads = {'q_proj': c.num_attention_heads, 'k_proj': c.num_key_value_heads}
        n = next((h for k, h in heads.items() if name.startswith('llama') and k + '.weight' in key), 0)
        plus = 1 if 'norm' in key and name.startswith('gemma') else 0
        raw, means, its = encode(unpermute(w, n, False) if n else w + plus, kind, rng)
        out.add_tensor(names.get_name(key, ('.weight', '.bias')), raw, raw_dtype=its)
        p.data = torch.tensor(unpermute(means, n, True) if n else means - plus)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return model


def run(oxgen, work, name, kind, *flags, limit=1e-5):
    path, out = os.path.join(work, f'{name}-{kind.name}.gguf'), os.path.join(work, f'{name}-{kind.name}')
    model = make(path, name, kind, np.random.default_rng(5))
    ids = list(range(3, 43))
    with torch.no_grad():
        want = model(torch.tensor([ids])).logits[0].numpy()
    text = convert(oxgen, path, out, '--accuracy', '0', *flags)
    print(next(line for line in text.splitlines() if 'down_proj' in line))
    label = f'{name} {kind.name} {" ".join(flags)}'
    ok = check(label, logits(out, ids), want, limit)
    if flags:
        return ok
    ok = check(label + 'imported', own_logits(oxgen, path, ids, work), want, limit) and ok
    return check(label + 'reopened', own_logits(oxgen, out, ids, work), want, limit) and ok


def main():
    a = argparse.ArgumentParser()
    a.add_argument('--oxgen', required=True)
    a = a.parse_args()
    ok = True
    with tempfile.TemporaryDirectory() as work:
        for kind in TYPES:
            ok = run(a.oxgen, work, 'llama', kind) and ok
        for name in ARCHS:
            ok = run(a.oxgen, work, name, T.Q8_0) and ok
            ok = run(a.oxgen, work, name, T.Q4_1) and ok
        ok = run(a.oxgen, work, 'llama', T.Q5_1, '--quant', 'int8', limit=5e-2) and ok
    sys.exit(0 if ok else 1)


if __name__ == '__main__':
    main()
