"""Whole models against ONNX Runtime and ONNX Runtime GenAI: tiny random models of every shape of tools/synth, and SmolLM2.

usage: test_models.py --oxgen BIN [NAME ...]     (environment OXGEN_TEST_MODEL = SmolLM2 GGUF)

Where greedy tokens differ, the oracle's margin between its first and second logit at that step must be at most twice the
largest difference between the two programs' logits at the steps up to there: a near tie. Folders are made with
accuracy_level 0, so that the oracle computes in float.
"""
import argparse, json, os, subprocess, sys, tempfile
import numpy as np
from onnx_decoder import difference, logits as ort_logits

SHAPES = ('tiny-llama', 'tiny-qwen2', 'tiny-qwen3', 'tiny-gemma3', 'tiny-phi3', 'tiny-glm')
PROMPTS = ('The capital of France is', 'def fibonacci(n):\n    ', 'Once upon a time, in a land far away,')
EXACT, FAST = 1e-4, 1e-3  # of the largest logit
passed = failed = 0


def check(name, ok, detail=''):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    print(('ok   ' if ok else 'FAIL ') + name + (f': {detail}' if detail else ''), flush=True)


def run(*argv):
    r = subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=280)
    if r.returncode:
        raise AssertionError(f'{" ".join(map(str, argv))}: exit {r.returncode}: {r.stderr[-300:]}')
    return r.stdout


def ours(oxgen, model, ids, *more):
    with tempfile.TemporaryDirectory() as d:
        run(oxgen, 'logits', model, '--ids', ','.join(map(str, ids)), '-o', d + '/l.npy', *more)
        return np.load(d + '/l.npy')


def close(name, got, want, limit):
    d = difference(got, want)
    check(name, got.shape == want.shape and d <= limit, f'{d:.1e} (at most {limit:.0e})')


def oracle_greedy(model, ids, new):
    """(tokens, logits [steps, vocab]) of ONNX Runtime GenAI; ends early at end of text."""
    import onnxruntime_genai as og
    params = og.GeneratorParams(model)
    params.set_search_options(max_length=len(ids) + new, do_sample=False)
    g = og.Generator(model, params)
    g.append_tokens(np.array([ids], np.int32))
    rows, tokens = [], []
    while not g.is_done() and len(tokens) < new:
        rows.append(np.array(g.get_logits(), np.float32).reshape(-1))
        g.generate_next_token()
        tokens.append(int(g.get_next_tokens()[0]))
    return tokens, np.stack(rows)


def greedy_agrees(name, oxgen, model, ids, oracle, limit, *more):
    tokens, want = oracle
    r = json.loads(run(oxgen, 'generate', model, '--ids', ','.join(map(str, ids)), '--greedy', '-n', len(tokens), '--json', *more))
    at = next((i for i, (a, b) in enumerate(zip(r['ids'], tokens)) if a != b), min(len(r['ids']), len(tokens)))
    got = ours(oxgen, model, ids + tokens[:-1], *more)[len(ids) - 1:]
    rel = difference(got, want)
    top = np.sort(want, axis=1)[:, -2:]
    margins = (top[:, 1] - top[:, 0]) / np.abs(want).max()
    detail = f'{at} of {len(tokens)} equal, logits differ by {rel:.1e}, smallest margin {margins.min():.1e} of the largest logit'
    if at < len(tokens) and at < len(r['ids']):
        off = np.abs(got[:at + 1] - want[:at + 1]).max()
        margin = top[at, 1] - top[at, 0]
        detail += f'; at {at}: {r["ids"][at]} instead of {tokens[at]}, margin {margin:.3g}, difference {off:.3g}'
        check(name, margin <= 2 * off and rel <= limit, detail)
    else:  # the last token may be end of text, which is not listed
        check(name, len(r['ids']) >= len(tokens) - 1 and rel <= limit, detail)


def tiny(oxgen, synth, work, shape):
    import onnxruntime_genai as og
    gguf, folder, int4 = (os.path.join(work, shape + s) for s in ('.gguf', '-f32', '-int4'))
    run(synth, shape, '-o', gguf)
    run(oxgen, 'convert', gguf, '-o', folder, '--quant', 'f32')
    run(synth, shape, '-o', int4, '--accuracy', '0')
    ids = np.random.default_rng(1).integers(0, 256, 40).tolist()
    want = ort_logits(folder, ids)
    close(f'{shape}: exact, folder', ours(oxgen, folder, ids, '--numerics', 'exact'), want, EXACT)
    close(f'{shape}: exact, GGUF', ours(oxgen, gguf, ids, '--numerics', 'exact'), want, EXACT)
    close(f'{shape}: fast, folder', ours(oxgen, folder, ids), want, FAST)
    close(f'{shape}: fast, GGUF', ours(oxgen, gguf, ids), want, FAST)
    steps = ort_logits(folder, ids, [30] + [1] * 10)
    close(f'{shape}: steps, folder', ours(oxgen, folder, ids, '--numerics', 'exact', '--chunk', 1), steps, EXACT)
    close(f'{shape}: steps, GGUF', ours(oxgen, gguf, ids, '--chunk', 1), steps, FAST)
    close(f'{shape}: int4 by ONNX Runtime', ort_logits(int4, ids), want, EXACT)
    oracle = oracle_greedy(og.Model(int4), ids[:12], 16)
    greedy_agrees(f'{shape}: int4 greedy, fast', oxgen, int4, ids[:12], oracle, FAST)
    greedy_agrees(f'{shape}: int4 greedy, exact', oxgen, int4, ids[:12], oracle, EXACT, '--numerics', 'exact')


def smollm2(oxgen, work):
    import onnxruntime_genai as og
    gguf, folder = os.environ['OXGEN_TEST_MODEL'], os.path.join(work, 'smollm2')
    run(oxgen, 'convert', gguf, '-o', folder, '--accuracy', '0')
    model = og.Model(folder)
    for prompt in PROMPTS:
        ids = json.loads(run(oxgen, 'tokenize', gguf, prompt, '--json'))['ids']
        oracle = oracle_greedy(model, ids, 24)
        greedy_agrees(f'SmolLM2 folder, {prompt[:12]!r}', oxgen, folder, ids, oracle, FAST)
        greedy_agrees(f'SmolLM2 GGUF, {prompt[:12]!r}', oxgen, gguf, ids, oracle, FAST)


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--oxgen', required=True)
    p.add_argument('names', nargs='*')
    a = p.parse_args()
    synth = os.path.join(os.path.dirname(os.path.abspath(a.oxgen)), 'tools', 'synth')
    parts = {s: lambda work, s=s: tiny(a.oxgen, synth, work, s) for s in SHAPES}
    parts['smollm2'] = lambda work: smollm2(a.oxgen, work)
    for name in a.names or parts:
        with tempfile.TemporaryDirectory() as work:
            try:
                parts[name](work)
            except Exception as e:  # whatever the oracle throws is a failure of this part only
                check(name, False, f'{type(e).__name__}: {e}')
    print(f'{passed} passed, {failed} failed')
    return failed != 0


if __name__ == '__main__':
    sys.exit(main())
