"""Beam search against the plain algorithm over `oxgen logits`, and `oxgen plan --bisect`, on a tiny random model.

usage: test_search.py --oxgen BIN
"""
import argparse, json, os, subprocess, tempfile

import numpy as np

import tiny_models as tm

p = argparse.ArgumentParser()
p.add_argument('--oxgen', required=True)
a = p.parse_args()
passed = failed = 0
PROMPT, NEW = [5, 9, 100, 33], 5


def check(name, ok, detail=''):
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
    print(('ok   ' if ok else 'FAIL ') + name + (f': {detail}' if detail and not ok else ''), flush=True)


def oxgen(*argv):
    r = subprocess.run([a.oxgen, *map(str, argv)], capture_output=True, text=True, timeout=120)
    if r.returncode:
        raise SystemExit(f'{argv}: exit {r.returncode}: {r.stderr[-300:]}')
    return r.stdout


def log_probabilities(model, ids, folder):
    oxgen('logits', model, '--ids', ','.join(map(str, ids)), '-o', folder + '/l.npy', '--numerics', 'exact', '-t', 1)
    x = np.load(folder + '/l.npy')[-1].astype(np.float64)
    x -= x.max()
    return x - np.log(np.exp(x).sum())


def beams(model, n, folder):
    """[(ids, sum of log-probabilities)], best first; no beam ends."""
    running = [([], 0.0)]
    for _ in range(NEW):
        ranked = []
        for ids, score in running:
            lp = log_probabilities(model, PROMPT + ids, folder)
            ranked += [(ids + [int(t)], score + lp[t]) for t in np.argsort(-lp)[:n + 1]]
        running = sorted(ranked, key=lambda r: -r[1])[:n]
    return running


def search(model, folder):
    for n in (1, 2, 4):
        r = json.loads(oxgen('generate', model, '--ids', ','.join(map(str, PROMPT)), '-n', NEW, '--num-beams', n, '--num-return-sequences', n,
                             '--ignore-eos', '--greedy', '--json', '--numerics', 'exact', '-t', 1))
        want = beams(model, n, folder)
        got = r.get('sequences') or [dict(ids=r['ids'])]
        check(f'{n} beams: the ids of the plain algorithm', [s['ids'] for s in got] == [ids for ids, _ in want], (got, want))
        if n > 1:
            off = max(abs(s['score'] - score / NEW) for s, (_, score) in zip(got, want))
            check(f'{n} beams: scores are mean log-probabilities', off < 1e-5, off)
            check(f'{n} beams: best first', [s['score'] for s in got] == sorted((s['score'] for s in got), reverse=True))
            check(f'{n} beams: the answer is the best', r['ids'] == got[0]['ids'])


def bisect(model):
    lines = oxgen('plan', model, '--bisect').strip().split('\n')
    values = [float(l.split()[-1]) for l in lines[1:]]
    check('bisect: a line for everything and one for each pass left out', len(values) > 3 and lines[1].startswith('everything on'), lines)
    check('bisect: no pass changes the logits', max(values) < 1e-5, lines)


with tempfile.TemporaryDirectory() as tmp:
    gguf = os.path.join(tmp, 'tiny.gguf')
    with open(gguf, 'wb') as f:
        f.write(tm.gguf()[0])
    folder = os.path.join(tmp, 'f32')
    oxgen('convert', gguf, '-o', folder, '--quant', 'f32', '--quiet')
    search(folder, tmp)
    bisect(gguf)
    bisect(folder)
print(f'{passed} passed, {failed} failed')
raise SystemExit(failed > 0)
