"""SmolLM2 against transformers on the weights that the gguf package dequantises: logits, greedy tokens of ten prompts in many
scripts and lengths, perplexity.

usage: all_models.py --oxgen BIN [PART ...]    (environment OXGEN_TEST_MODEL = SmolLM2 GGUF; needs gguf, torch, transformers)
"""
import argparse, json, os, sys, tempfile

os.environ['HF_HUB_OFFLINE'] = '1'
import numpy as np

try:
    import gguf
    import torch
    import transformers as hf
except ImportError:
    sys.exit('skipped: gguf, torch or transformers is not installed')
import test_models
from test_models import check, close, greedy_agrees, ours, run

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NEW = 32
WINDOW = 512
NAMES = {'attn_q': 'self_attn.q_proj', 'attn_k': 'self_attn.k_proj', 'attn_v': 'self_attn.v_proj',
         'attn_output': 'self_attn.o_proj', 'ffn_gate': 'mlp.gate_proj', 'ffn_up': 'mlp.up_proj', 'ffn_down': 'mlp.down_proj',
         'attn_norm': 'input_layernorm', 'ffn_norm': 'post_attention_layernorm'}
TOPS = {'token_embd': 'model.embed_tokens', 'output_norm': 'model.norm', 'output': 'lm_head'}


def text_of(*names):
    return '\n'.join(open(os.path.join(ROOT, n), encoding='utf-8').read() for n in names)


LONG_TEXT = text_of('docs/templates.md', 'docs/speed.md')


PROMPTS = {
    'chat': '<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n',
    'two turns': '<|im_start|>system\nAnswer in one sentence.<|im_end|>\n<|im_start|>user\nMy name is Ada.<|im_end|>\n'
                 '<|im_start|>assistant\nHello Ada!<|im_end|>\n<|im_start|>user\nWhat is my name?<|im_end|>\n'
                 '<|im_start|>assistant\n',
    'code': 'def quicksort(items):\n    """Sorts a list."""\n    if len(items) <= 1:\n        return items\n    pivot =',
    'Chinese': '中国的首都是北京。法国的首都是',
    'Arabic': 'عاصمة فرنسا هي باريس، وعاصمة ألمانيا هي',
    'Hindi': 'भारत की राजधानी नई दिल्ली है। फ्रांस की राजधानी',
    'emoji': 'I love pizza 🍕🍕 and ice cream 🍦! My favourite emoji are 👩‍👩‍👧‍👦 🏳️‍🌈 and',
    'whitespace': 'name      \t\tage\n\n\n\n    Ada   \t   36\n\t\t\n      Alan  \t  41\n\n',
    'numbers': '1, 2, 3, 5, 8, 13, 21, 34, 55,',
    'long': None,  # 1,100 tokens of LONG_TEXT
}


def halves_together(w, n_heads):
    """Rows of a head from pairs (2i, 2i+1), as the file has them, to halves (i, i + n/2)."""
    return w.reshape(n_heads, w.shape[0] // n_heads // 2, 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def load(path):
    r = gguf.GGUFReader(path)
    get = lambda key: r.fields[key].contents() if key in r.fields else None
    arch = get('general.architecture')
    heads, kv = get(arch + '.attention.head_count'), get(arch + '.attention.head_count_kv')
    tensors = {t.name: t for t in r.tensors}
    config = hf.LlamaConfig(
        hidden_size=get(arch + '.embedding_length'), intermediate_size=get(arch + '.feed_forward_length'),
        num_hidden_layers=get(arch + '.block_count'), num_attention_heads=heads, num_key_value_heads=kv,
        rms_norm_eps=float(get(arch + '.attention.layer_norm_rms_epsilon')), max_position_embeddings=get(arch + '.context_length'),
        vocab_size=len(r.fields['tokenizer.ggml.tokens'].data), tie_word_embeddings='output.weight' not in tensors,
        bos_token_id=get('tokenizer.ggml.bos_token_id'), eos_token_id=get('tokenizer.ggml.eos_token_id'),
        rope_parameters=dict(rope_type='default', rope_theta=float(get(arch + '.rope.freq_base'))))
    state = {}
    for name, t in tensors.items():
        w = gguf.dequantize(t.data, t.tensor_type).astype(np.float32).reshape([int(n) for n in reversed(t.shape)])
        part = name.split('.')
        if part[0] == 'blk':
            if part[2] in ('attn_q', 'attn_k'):
                w = halves_together(w, heads if part[2] == 'attn_q' else kv)
            key = f'model.layers.{part[1]}.{NAMES[part[2]]}.{part[3]}'
        else:
            key = f'{TOPS[part[0]]}.{part[1]}'
        state[key] = torch.from_numpy(np.ascontiguousarray(w))
    model = hf.LlamaForCausalLM(config).float().eval()
    missing, extra = model.load_state_dict(state, strict=False)
    assert not extra and set(missing) <= {'lm_head.weight'}, (missing, extra)
    model.tie_weights()
    return model


def oracle_logits(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].numpy()


def oracle_greedy(model, ids, new):
    with torch.no_grad():
        r = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long), max_new_tokens=new,
                           do_sample=False, output_logits=True, return_dict_in_generate=True, pad_token_id=0)
    return r.sequences[0, len(ids):].tolist(), torch.cat(r.logits).numpy()


def encode(oxgen, path, text):
    with tempfile.TemporaryDirectory() as d:
        with open(d + '/text', 'w', encoding='utf-8', newline='') as f:
            f.write(text)
        return json.loads(run(oxgen, 'tokenize', path, '--file', d + '/text', '--json'))['ids']


def logits_part(oxgen, path, model):
    ids = encode(oxgen, path, LONG_TEXT)[:200]
    want = oracle_logits(model, ids)
    close('200 tokens, exact', ours(oxgen, path, ids, '--numerics', 'exact'), want, 1e-4)
    close('200 tokens, fast', ours(oxgen, path, ids), want, 2e-3)
    close('200 tokens, fast, float caches', ours(oxgen, path, ids, '--kv', 'f32'), want, 1e-3)


def greedy_part(oxgen, path, model):
    for name, text in PROMPTS.items():
        ids = encode(oxgen, path, text) if text else encode(oxgen, path, LONG_TEXT)[:1100]
        greedy_agrees(f'{name} ({len(ids)} tokens)', oxgen, path, ids, oracle_greedy(model, ids, NEW), 2e-3)


def oracle_perplexity(model, ids):
    """As the command says it: windows of 512, the second half scored."""
    nll, n = 0.0, 0
    for at in range(0, len(ids) // WINDOW * WINDOW, WINDOW):
        window = ids[at:at + WINDOW]
        p = torch.log_softmax(torch.tensor(oracle_logits(model, window)).double(), -1)
        for i in range(WINDOW // 2 - 1, WINDOW - 1):
            nll -= float(p[i, window[i + 1]])
            n += 1
    return nll / n


def perplexity_part(oxgen, path, model):
    with tempfile.TemporaryDirectory() as d:
        with open(d + '/text', 'w', encoding='utf-8') as f:
            f.write(LONG_TEXT[:9000])
        ids = encode(oxgen, path, LONG_TEXT[:9000])
        want = oracle_perplexity(model, ids)
        got = {n: json.loads(run(oxgen, 'perplexity', path, '--file', d + '/text', '--json', '--numerics', n))
               for n in ('exact', 'fast', 'faster')}
    for n, limit in (('exact', 1e-4), ('fast', 5e-3), ('faster', 5e-2)):
        ratio = float(np.exp(got[n]['nll'] - want))
        check(f'perplexity over {got[n]["n_tokens"]} tokens, {n}', abs(ratio - 1) <= limit,
              f'{got[n]["ppl"]:.4f}, oracle {np.exp(want):.4f}, off by {abs(ratio - 1):.1e} (at most {limit:.0e})')


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--oxgen', required=True)
    p.add_argument('parts', nargs='*', default=['logits', 'greedy', 'perplexity'])
    a = p.parse_args()
    path = os.environ['OXGEN_TEST_MODEL']
    model = load(path)
    for part in a.parts:
        try:
            globals()[part + '_part'](a.oxgen, path, model)
        except Exception as e:  # whatever the oracle throws is a failure of this part only
            check(part, False, f'{type(e).__name__}: {e}')
    print(f'{test_models.passed} passed, {test_models.failed} failed')
    return test_models.failed != 0


if __name__ == '__main__':
    sys.exit(main())
