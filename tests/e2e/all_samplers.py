"""Steps of sampling against llama.cpp's library and Hugging Face's processors; a million draws per distribution.

usage: all_samplers.py --oxgen BIN [--llama libllama.so] [--draws N]

Without --llama the library comes from OXGEN_LIBLLAMA or tools/get-libllama (built once, several minutes).
"""
import argparse
import ctypes as C
import math
import os
import subprocess
import sys

import numpy as np

import sampler_library as ref

p = argparse.ArgumentParser()
p.add_argument('--oxgen', required=True)
p.add_argument('--llama', default=os.environ.get('OXGEN_LIBLLAMA'))
p.add_argument('--draws', type=int, default=1000000)
p.add_argument('--seed', type=int, default=1)
a = p.parse_args()
lib = ref.Library(a.oxgen)
rng = np.random.default_rng(a.seed)
passed = failed = 0


def check(name, ok, detail=''):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print(f'FAIL {name}: {detail}', flush=True)


# ---- llama.cpp ----

class Token(C.Structure):
    _fields_ = [('id', C.c_int32), ('logit', C.c_float), ('p', C.c_float)]


class Tokens(C.Structure):
    _fields_ = [('data', C.POINTER(Token)), ('size', C.c_size_t), ('selected', C.c_int64), ('sorted', C.c_bool)]


class LogitBias(C.Structure):
    _fields_ = [('token', C.c_int32), ('bias', C.c_float)]


def open_llama():
    path = a.llama
    if not path:
        tool = os.path.join(ref.ROOT, 'tools/get-libllama')
        run = subprocess.run([tool, os.path.join(ref.ROOT, 'build/llama')], stdout=subprocess.PIPE, text=True,
                             env=dict(os.environ, PYTHON=sys.executable))
        path = run.stdout.strip()
    if not os.path.isfile(path):
        check('llama.cpp is built', False, 'tools/get-libllama failed; give --llama')
        return None
    so = C.CDLL(path)
    kinds = {'top_k': [C.c_int32], 'top_p': [C.c_float, C.c_size_t], 'min_p': [C.c_float, C.c_size_t],
             'typical': [C.c_float, C.c_size_t], 'temp': [C.c_float], 'temp_ext': [C.c_float] * 3,
             'xtc': [C.c_float, C.c_float, C.c_size_t, C.c_uint32], 'top_n_sigma': [C.c_float],
             'mirostat': [C.c_int32, C.c_uint32, C.c_float, C.c_float, C.c_int32],
             'mirostat_v2': [C.c_uint32, C.c_float, C.c_float],
             'penalties': [C.c_int32, C.c_int32, C.c_float, C.c_float, C.c_float],
             'dry': [C.c_void_p, C.c_float, C.c_float, C.c_int32, C.c_int32, C.c_void_p, C.c_size_t],
             'logit_bias': [C.c_int32, C.c_int32, C.POINTER(LogitBias)]}
    for name, types in kinds.items():
        f = getattr(so, 'llama_sampler_init_' + name)
        f.restype, f.argtypes = C.c_void_p, types
    so.llama_sampler_apply.argtypes = [C.c_void_p, C.POINTER(Tokens)]
    so.llama_sampler_accept.argtypes = [C.c_void_p, C.c_int32]
    so.llama_sampler_free.argtypes = [C.c_void_p]
    return so


def llama_kept(so, x, steps, history=()):
    """{id: probability} behind the steps: [(name, arguments)…]."""
    x = x.astype(np.float32)
    array = (Token * x.size)(*[(i, float(v), 0.0) for i, v in enumerate(x)])
    t = Tokens(array, x.size, -1, False)
    for name, args in steps:
        s = getattr(so, 'llama_sampler_init_' + name)(*args)
        for h in history:
            so.llama_sampler_accept(s, h)
        so.llama_sampler_apply(s, C.byref(t))
        so.llama_sampler_free(s)
    ids = np.array([t.data[i].id for i in range(t.size)])
    logit = np.array([t.data[i].logit for i in range(t.size)], np.float64)
    q = ref.softmax(logit)
    return {int(i): float(v) for i, v, l in zip(ids, q, logit) if l > -np.inf}


def compare(name, got, want, borders, slack):
    ids, probs = got
    mine = dict(zip(ids.tolist(), probs.astype(np.float64).tolist()))
    differ = set(mine) ^ set(want)
    borders[0] += 1
    if differ:
        # llama.cpp sums in float: what stands at the border may fall to either side
        borders[1] += 1
        weight = sum((mine if i in mine else want)[i] for i in differ)
        share = 5 if 'typical' in name else 50  # its keys are differences of sums
        check(name, weight <= 1e-4 * (slack > 0) or weight <= slack and len(differ) <= max(1, len(mine) // share),
              (len(mine), len(want), weight))
    else:
        worst = max(abs(mine[i] - want[i]) for i in mine)
        check(name, worst <= 1e-5 + 2e-4 * max(want.values()), worst)


def against_llama():
    so = open_llama()
    if so is None:
        return
    cases = []
    for v in (1, 5, 40, 500):
        cases.append((f'top_k {v}', dict(top_k=v, order='top_k'), [('top_k', (v,))], 0))
    for v in (0.05, 0.5, 0.9, 0.95, 0.999):
        cases.append((f'top_p {v}', dict(top_p=v, order='top_p'), [('top_p', (v, 1))], 1e-3))
        cases.append((f'top_p {v} min_keep 10', dict(top_p=v, min_keep=10, order='top_p'), [('top_p', (v, 10))], 1e-3))
        cases.append((f'typical {v}', dict(typical_p=v, order='typical_p'), [('typical', (v, 1))], 0.15))
    for v in (0.001, 0.05, 0.3, 1.0):
        cases.append((f'min_p {v}', dict(min_p=v, order='min_p'), [('min_p', (v, 1))], 1e-4))
        cases.append((f'min_p {v} min_keep 7', dict(min_p=v, min_keep=7, order='min_p'), [('min_p', (v, 7))], 1e-4))
    for v in (0.5, 1.0, 2.5):
        cases.append((f'top_n_sigma {v}', dict(top_n_sigma=v, order='top_n_sigma'), [('top_n_sigma', (v,))], 1e-3))
    for v in (0.2, 0.7, 1.5):
        cases.append((f'temp {v}', dict(temperature=v), [('temp', (v,))], 0))
        cases.append((f'temp_ext {v}', dict(temperature=v, dynatemp_range=0.15, dynatemp_exponent=1.3, order='temperature'), [('temp_ext', (v, 0.15, 1.3))], 0))
    for v in (0.01, 0.1, 0.4):
        cases.append((f'xtc {v}', dict(xtc_probability=1, xtc_threshold=v, order='xtc'), [('xtc', (1.0, v, 1, 1))], 1e-3))
    for tau in (1.0, 3.0, 5.0):
        cases.append((f'mirostat 2 {tau}', dict(mirostat=2, mirostat_tau=tau, order='mirostat'), [('mirostat_v2', (1, tau, 0.1))], 1e-3))
    bias = (LogitBias * 3)((3, 2.5), (7, -1.5), (1, 0.25))
    cases.append(('logit bias', dict(bias=[(3, 2.5), (7, -1.5), (1, 0.25)]), [('logit_bias', (0, 3, bias))], 0))
    cases.append(('a common chain', dict(top_k=40, top_p=0.95, min_p=0.05, temperature=0.8, order='top_k,typical_p,top_p,min_p,xtc,temperature'),
                  [('top_k', (40,)), ('top_p', (0.95, 1)), ('min_p', (0.05, 1)), ('temp', (0.8,))], 1e-3))
    for name, options, steps, slack in cases:
        borders = [0, 0]
        for n in (2, 30, 1000, 5000):
            for kind in ('normal', 'peaked', 'flat', 'certain'):
                x = ref.logits(rng, kind, n).astype(np.float32)
                if name == 'logit bias' and n < 10:
                    continue
                st = [(s, (n, *args[1:]) if s in ('logit_bias',) else args) for s, args in steps]
                got = lib.sampler(**dict(dict(temperature=1), **options)).kept(x)
                compare(f'llama.cpp {name} {kind} n={n}', got, llama_kept(so, x, st), borders, slack)
        check(f'llama.cpp {name}: borders within rounding are rare', borders[1] <= 0.25 * borders[0], borders)
    for n in (200, 2000):
        for kind in ('normal', 'peaked'):
            x = ref.logits(rng, kind, n).astype(np.float32)
            for tau in (2.0, 4.0):
                got = lib.sampler(temperature=1, mirostat=1, mirostat_tau=tau).kept(x)
                compare(f'llama.cpp mirostat 1 {tau} {kind} n={n}', got, llama_kept(so, x, [('mirostat', (n, 1, tau, 0.1, 100))]), [0, 0], 0.02)
    for r in range(40):
        n, length = 400, int(rng.integers(1, 200))
        x = ref.logits(rng, ref.KINDS[r % 3], n).astype(np.float32)
        history = rng.integers(0, 9, length).tolist()
        last = int(rng.integers(1, 100))
        s = lib.sampler(temperature=1, repetition_penalty=1.2, frequency_penalty=0.1, presence_penalty=0.3, penalty_last_n=last)
        s.accept(history)
        compare(f'llama.cpp penalties {r}', s.kept(x), llama_kept(so, x, [('penalties', (n, last, 1.2, 0.1, 0.3))], history), [0, 0], 0)
        for allowed in (1, 2, 4):
            s = lib.sampler(temperature=1, dry_multiplier=0.7, dry_base=1.5, dry_allowed_length=allowed, dry_last_n=last)
            s.accept(history)
            compare(f'llama.cpp dry {allowed} {r}', s.kept(x), llama_kept(so, x, [('dry', (None, 0.7, 1.5, allowed, last, None, 0))], history), [0, 0], 0)


# ---- Hugging Face ----

def against_transformers():
    import torch
    from transformers.generation import logits_process as hf
    cases = []
    for v in (1, 7, 100):
        cases.append((f'top_k {v}', dict(top_k=v, top_k_ties=1), hf.TopKLogitsWarper(v)))
    for v in (0.1, 0.5, 0.9, 0.99):
        cases.append((f'top_p {v}', dict(top_p=v), hf.TopPLogitsWarper(v)))
        cases.append((f'typical {v}', dict(typical_p=v), hf.TypicalLogitsWarper(v)))
    for v in (0.01, 0.2):
        cases.append((f'min_p {v}', dict(min_p=v), hf.MinPLogitsWarper(v)))
        cases.append((f'epsilon {v}', dict(epsilon_cutoff=v), hf.EpsilonLogitsWarper(v)))
        cases.append((f'eta {v}', dict(eta_cutoff=v), hf.EtaLogitsWarper(v)))
    cases.append(('temperature', dict(temperature=0.6), hf.TemperatureLogitsWarper(0.6)))
    cases.append(('repetition', dict(repetition_penalty=1.4), hf.RepetitionPenaltyLogitsProcessor(1.4)))
    for v in (1, 2, 3):
        cases.append((f'no_repeat_ngram {v}', dict(no_repeat_ngram=v), hf.NoRepeatNGramLogitsProcessor(v)))
    words = [[1, 2], [3], [4, 5, 6], [2, 7]]
    cases.append(('bad words', dict(bad_words=words), lambda i, x: hf.NoBadWordsLogitsProcessor(words, [900])(i, x)))
    cases.append(('min_length', dict(min_length=20, end_ids=[5, 6]), hf.MinLengthLogitsProcessor(20, [5, 6])))
    cases.append(('suppress', dict(suppress=[5, 6]), hf.SuppressTokensLogitsProcessor([5, 6])))
    for name, options, fn in cases:
        off = 0
        for r in range(12):
            n = (50, 1000, 20000)[r % 3]
            x = ref.logits(rng, ('normal', 'peaked', 'flat', 'certain')[r % 4], n).astype(np.float32)
            tokens = rng.integers(0, 9, rng.integers(4, 40)).tolist()
            y = fn(torch.tensor([tokens]), torch.tensor(x[None].copy()))[0].numpy().astype(np.float64)
            s = lib.sampler(**dict(dict(temperature=1), **options))
            s.accept(tokens, 0)
            ids, probs = s.kept(x, len(tokens))
            want = set(np.flatnonzero(np.isfinite(y)).tolist())
            differ, q = set(ids.tolist()) ^ want, ref.softmax(x.astype(np.float64))
            off += bool(differ)
            if differ:
                check(f'Hugging Face {name} round {r}', sum(q[i] for i in differ) < 1e-2 and len(differ) <= max(1, len(want) // 50), (len(ids), len(want)))
            else:
                check(f'Hugging Face {name} round {r}', np.allclose(probs, ref.softmax(y)[ids], rtol=1e-3, atol=1e-8))
        check(f'Hugging Face {name}: borders within rounding are rare', off <= 2, off)


# ---- distributions ----

def million():
    for name, x, options in (
            ('plain', ref.logits(rng, 'peaked', 300), dict()),
            ('temperature', ref.logits(rng, 'normal', 40), dict(temperature=1.7)),
            ('top_k and top_p', ref.logits(rng, 'normal', 500), dict(top_k=30, top_p=0.9)),
            ('min_p', ref.logits(rng, 'peaked', 2000), dict(min_p=0.02)),
            ('typical', ref.logits(rng, 'peaked', 200), dict(typical_p=0.7)),
            ('ties', ref.logits(rng, 'ties', 64), dict())):
        s = lib.sampler(**dict(dict(temperature=1, seed=11), **options))
        ids, probs = s.kept(x)
        count = np.bincount(s.draws(x, a.draws), minlength=len(x))
        want = probs.astype(np.float64) * a.draws
        check(f'{name}: nothing outside the kept set', count.sum() == count[ids].sum())
        sel = want >= 10
        chi, free = float((((count[ids] - want) ** 2) / want)[sel].sum()), int(sel.sum()) - 1
        check(f'{name}: {a.draws} draws fit (chi square {chi:.0f}, {free} degrees)', abs(chi - free) < 5 * math.sqrt(2 * free + 1), chi)


million()
against_transformers()
against_llama()
print(f'{passed} passed, {failed} failed')
sys.exit(failed > 0)
