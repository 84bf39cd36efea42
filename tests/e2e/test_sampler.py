"""Every step of sampling against numpy: the kept set and its probabilities; edge values; hostile values; the order.

usage: test_sampler.py --oxgen BIN [--rounds N] [--seed S]

A border that lies within rounding counts as kept when the reference's sets for slightly smaller and slightly larger
options enclose it; that this is rare is itself checked.
"""
import argparse
import math
import sys

import numpy as np

import sampler_library as ref

p = argparse.ArgumentParser()
p.add_argument('--oxgen', required=True)
p.add_argument('--rounds', type=int, default=4)
p.add_argument('--seed', type=int, default=1)
a = p.parse_args()
lib = ref.Library(a.oxgen)
rng = np.random.default_rng(a.seed)
passed = failed = 0


def check(name, ok, detail=''):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print(f'FAIL {name}: {detail}')


def kept_ids(x):
    return set(np.flatnonzero(np.isfinite(x)).tolist())


def same(got, want):
    """Probabilities of the same set."""
    ids, probs = got
    q = ref.softmax(want)
    return np.allclose(probs, q[ids], rtol=3e-5, atol=1e-12) and abs(float(probs.sum(dtype=np.float64)) - 1) < 1e-4


borders = {}

# step, option, values (off first), reference
CUTS = [('top_k', 'top_k', (0, 1, 2, 40, 1000, 10**6), ref.top_k),
        ('top_p', 'top_p', (1.0, 0.0, 1e-6, 0.05, 0.5, 0.9, 0.95, 0.999, 0.9999999), ref.top_p),
        ('min_p', 'min_p', (0.0, 1e-6, 0.05, 0.3, 1.0), ref.min_p),
        ('top_a', 'top_a', (0.0, 0.01, 0.2, 1.0), ref.top_a),
        ('typical_p', 'typical_p', (1.0, 0.0, 0.02, 0.2, 0.9, 0.99), ref.typical_p),
        ('epsilon', 'epsilon_cutoff', (0.0, 3e-4, 0.01, 1.0), ref.epsilon),
        ('eta', 'eta_cutoff', (0.0, 3e-4, 0.01, 1.0), ref.eta),
        ('top_n_sigma', 'top_n_sigma', (0.0, 0.5, 1.0, 3.0, 100.0), ref.top_n_sigma),
        ('tail_free', 'tail_free', (1.0, 0.0, 0.1, 0.5, 0.95), ref.tail_free)]


def cuts(sizes):
    for step, option, values, fn in CUTS:
        for n in sizes:
            for kind in ref.KINDS:
                x = ref.logits(rng, kind, n).astype(np.float32).astype(np.float64)
                for i, v in enumerate(values):
                    v = v if isinstance(v, int) else float(np.float32(v))
                    for t in (1.0, 0.7):
                        s = lib.sampler(temperature=t, order=f'temperature,{step}', **{option: v})
                        got = s.kept(x)
                        off = i == 0 or (v == 0 and step in ('top_p', 'typical_p', 'tail_free'))
                        y = x / float(np.float32(t))
                        want = y if off else fn(y, v)
                        ids, name = set(got[0].tolist()), f'{step} {v} {kind} n={n} t={t}'
                        exact = ids == kept_ids(want)
                        count = borders.setdefault(step, [0, 0])
                        count[0] += 1
                        if not exact and not off:
                            count[1] += 1
                            sets = [kept_ids(fn(y, v * f)) for f in (1 - 3e-5, 1 + 3e-5)]
                            small, large = sorted(sets, key=len)
                            exact = small <= ids <= large
                            want = ref.keep(y, got[0])
                        check(name, exact, f'kept {len(ids)}, reference {len(kept_ids(want))}')
                        check(name + ' probabilities', same(got, want))
    for step, (n, off) in borders.items():
        check(f'{step}: borders within rounding are rare', off <= 0.02 * n, f'{off} of {n}')


def ties():
    for n in (5, 17, 300, 5000):
        for kind in ref.KINDS:
            x = ref.logits(rng, kind, n).astype(np.float32).astype(np.float64)
            for k in (1, 2, 7, 40):
                if k < n:
                    want = np.where(x >= np.sort(x)[::-1][k - 1], x, -np.inf)
                    for order in ('top_k', 'top_p,top_k'):
                        got = lib.sampler(temperature=1, top_k=k, top_k_ties=1, order=order).kept(x)
                        check(f'top_k_ties {k} {kind} n={n} {order}', set(got[0].tolist()) == kept_ids(want) and same(got, want))


def chains():
    """Several steps behind each other, and the same set whatever path led there."""
    for n in (50, 3000, 32000):
        for kind in ref.KINDS:
            x = ref.logits(rng, kind, n).astype(np.float32).astype(np.float64)
            s = lib.sampler(temperature=0.8, top_k=50, top_p=0.9, min_p=0.05)
            y = ref.min_p(ref.top_p(ref.top_k(x / np.float32(0.8), 50), float(np.float32(0.9))), float(np.float32(0.05)))
            got = s.kept(x)
            check(f'top_k, top_p, min_p {kind} n={n}', set(got[0].tolist()) == kept_ids(y) and same(got, y))
            y = ref.top_p(ref.typical_p(ref.min_p(x, float(np.float32(1e-3))), float(np.float32(0.9))), float(np.float32(0.8)))
            got = lib.sampler(temperature=1, min_p=1e-3, typical_p=0.9, top_p=0.8, order='min_p,typical_p,top_p').kept(x)
            check(f'min_p, typical_p, top_p {kind} n={n}', set(got[0].tolist()) == kept_ids(y) and same(got, y))
            hist = rng.integers(0, n, 40).tolist()
            s = lib.sampler(temperature=1, repetition_penalty=1.3, top_k=30, frequency_penalty=0.2, presence_penalty=0.1,
                            order='top_k,penalties')
            s.accept(hist)
            y = ref.counted(ref.repetition(ref.top_k(x, 30), hist, float(np.float32(1.3))), hist, 0.2, 0.1)
            got = s.kept(x)
            check(f'penalties behind top_k {kind} n={n}', set(got[0].tolist()) == kept_ids(y) and same(got, y))
            for m in (1, 5, 100):
                for option in ('top_p', 'min_p', 'typical_p', 'epsilon_cutoff'):
                    ids, _ = lib.sampler(temperature=1, min_keep=m, **{option: 0.5}).kept(x)
                    check(f'min_keep {m} {option} {kind}', len(ids) >= min(m, np.isfinite(x).sum()), len(ids))


def dynamic_temperature():
    for n in (2, 50, 3000):
        for kind in ('normal', 'peaked', 'flat', 'ties', 'certain'):
            x = ref.logits(rng, kind, n).astype(np.float32).astype(np.float64)
            for t, r, e in ((1.0, 0.5, 1.0), (0.7, 0.7, 2.0), (0.5, 0.9, 0.5)):
                got = lib.sampler(temperature=t, dynatemp_range=r, dynatemp_exponent=e).kept(x)
                y = ref.temperature(x, float(np.float32(t)), float(np.float32(r)), e)
                check(f'dynamic temperature {t} {r} {e} {kind} n={n}', np.allclose(got[1], ref.softmax(y)[got[0]], rtol=2e-3, atol=1e-9))


def processors(rounds):
    n = 300
    for r in range(rounds * 10):
        x = ref.logits(rng, ref.KINDS[r % 4], n).astype(np.float32).astype(np.float64)
        prompt, new = rng.integers(0, 12, rng.integers(0, 40)).tolist(), rng.integers(0, 12, rng.integers(0, 40)).tolist()
        both = prompt + new

        def compare(name, want, position=len(both), **options):
            s = lib.sampler(temperature=1, **options)
            s.accept(prompt, 0)
            s.accept(new, 1)
            s.accept([5, 7, 5], 1)  # and taken back
            s.rewind(len(both))
            got = s.kept(x, position)
            check(f'{name} round {r}', set(got[0].tolist()) == kept_ids(want) and same(got, want))

        f = lambda v: float(np.float32(v))
        compare('repetition', ref.repetition(x, both, f(1.3)), repetition_penalty=1.3)
        compare('repetition below 1', ref.repetition(x, both, f(0.8)), repetition_penalty=0.8)
        compare('frequency, presence', ref.counted(x, new, f(0.3), f(-0.7)), frequency_penalty=0.3, presence_penalty=-0.7)
        compare('all penalties', ref.counted(ref.repetition(x, both, f(1.1)), new, f(0.2), f(0.1)), repetition_penalty=1.1, frequency_penalty=0.2, presence_penalty=0.1)
        for w in (1, 5, 30):
            compare(f'window {w}', ref.counted(ref.repetition(x, both[-w:], f(1.2)), both[max(len(prompt), len(both) - w):], f(0.4), 0), repetition_penalty=1.2, frequency_penalty=0.4, penalty_last_n=w)
        for g in (1, 2, 3, 5):
            compare(f'no_repeat_ngram {g}', ref.no_repeat_ngram(x, both, g), no_repeat_ngram=g)
        words = [rng.integers(0, 12, rng.integers(1, 4)).tolist() for _ in range(20)] + [[299]]
        compare('bad words', ref.bad_words(x, both, words), bad_words=words)
        for allowed, last in ((1, -1), (2, -1), (2, 25), (4, 3), (3, 0)):
            seen = both if last < 0 else both[len(both) - min(last, len(both)):]
            compare(f'dry {allowed} {last}', ref.dry(x, seen, f(0.8), 1.75, allowed), dry_multiplier=0.8, dry_base=1.75, dry_allowed_length=allowed, dry_last_n=last)
        compare('dry with breakers', ref.dry(x, both, f(0.8), 1.75, 1, (3, 4)), dry_multiplier=0.8, dry_base=1.75, dry_allowed_length=1, dry_breakers=[3, 4])
        y = x.copy()
        y[[7, 9]] = -np.inf
        held = y if len(both) < 30 else x
        compare('min_length', held, min_length=30, end_ids=[7, 9, 100000])
        compare('min_new', y if len(new) < 20 else x, min_new=20, end_ids=[7, 9])
        compare('suppress', y, suppress=[7, 9, 7, -4, 100000])
        compare('begin_suppress', y if not new else x, begin_suppress=[7, 9])
        compare('forced', ref.keep(np.zeros_like(x), [11]), forced=[(3, 4), (len(both), 11)])
        compare('forced elsewhere', x, forced=[(len(both) + 1, 11)])
        y = x.copy()
        y[3] += f(2.5)
        y[4] -= 100
        compare('bias', y, bias=[(3, 2.5), (4, -100), (100000, 3), (-1, 3)])
        y[4] = -np.inf
        compare('bias of -inf', y, bias=[(3, 2.5), (4, -math.inf)])


def classifier_free():
    import ctypes as C
    for scale in (1.5, 0.0, -1.0, 3.0):
        x, u = (rng.normal(0, 3, 500).astype(np.float32) for _ in range(2))
        s = lib.sampler(temperature=1, guidance_scale=scale)
        lib.so.ox_sampler_guide(s.p, u.ctypes.data_as(C.c_void_p), C.c_size_t(u.size))
        y = ref.guidance(x.astype(np.float64), u.astype(np.float64), scale)
        got = s.kept(x)
        check(f'guidance {scale}', np.allclose(got[1], ref.softmax(y)[got[0]], rtol=1e-4, atol=1e-9))
        check('guidance without the other logits fails', s.pick(x) < 0)


def exclude_top_choices():
    for kind in ref.KINDS:
        x = ref.logits(rng, kind, 400).astype(np.float32).astype(np.float64)
        for threshold in (0.0, 0.01, 0.1, 0.3, 0.5, 0.51):
            got = lib.sampler(temperature=1, xtc_probability=1, xtc_threshold=threshold).kept(x, 9)
            want = ref.xtc(x, float(np.float32(threshold))) if threshold <= 0.5 else x
            if threshold:
                check(f'xtc {threshold} {kind}', set(got[0].tolist()) == kept_ids(want) and same(got, want))
    x = np.log(np.array([0.5, 0.3, 0.2]))
    s = lib.sampler(temperature=1, xtc_probability=0.3, xtc_threshold=0.1)
    hit = np.mean([len(s.kept(x, i)[0]) == 1 for i in range(20000)])
    check('xtc strikes with its probability', abs(hit - 0.3) < 0.02, hit)


def mirostat():
    for version, fn in ((1, ref.mirostat1), (2, ref.mirostat2)):
        for kind in ('normal', 'peaked', 'ties') if version == 2 else ('normal', 'peaked'):
            tau, rate = float(np.float32(3.0)), float(np.float32(0.2))
            s = lib.sampler(temperature=1, mirostat=version, mirostat_tau=tau, mirostat_eta=rate, seed=5)
            mu, trace = 2 * tau, []
            for i in range(60):
                x = ref.logits(rng, kind, 800).astype(np.float32).astype(np.float64)
                want = fn(x, mu)
                ids, _ = s.kept(x, i)
                check(f'mirostat {version} {kind} step {i}', set(ids.tolist()) == kept_ids(want), (len(ids), len(kept_ids(want))))
                got = s.pick(x, i)
                s.accept([got])
                mu -= rate * (-math.log2(ref.softmax(want)[got]) - tau)
                trace.append(mu)
            s.rewind(0)
            ids, _ = s.kept(x, 0)
            check(f'mirostat {version} starts over behind a rewind', set(ids.tolist()) == kept_ids(fn(x, 2 * tau)))


def draws():
    """The rule itself, word by word, and that truncation does not change who draws what."""
    def gumbel(seed, position, ids):
        M0, M1, mask = 0xD2511F53, 0xCD9E8D57, 0xFFFFFFFF
        out = []
        for i in ids:
            c, k = [i, 0, position & mask, position >> 32], [seed & mask, seed >> 32]
            for _ in range(10):
                p0, p1 = M0 * c[0], M1 * c[2]
                c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & mask, (p0 >> 32) ^ c[3] ^ k[1], p0 & mask]
                k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
            out.append(-math.log(-math.log((c[0] + 0.5) / 2**32)))
        return np.array(out)

    for r in range(30):
        n = int(rng.integers(1, 400))
        x = ref.logits(rng, ref.KINDS[r % 6], n).astype(np.float32).astype(np.float64)
        seed, position, t = int(rng.integers(2**63)), int(rng.integers(2**40)), 0.9
        g = gumbel(seed, position, range(n))
        want = x / np.float32(t) + g
        check(f'draw round {r}', lib.sampler(temperature=t, seed=seed).pick(x, position) == int(np.argmax(want)))
        k = ref.keep(x, ref.order(x)[:10]) / np.float32(t) + g
        check(f'draw behind top_k round {r}', lib.sampler(temperature=t, seed=seed, top_k=10).pick(x, position) == int(np.argmax(k)))
    for kind, n in (('peaked', 200), ('normal', 50), ('ties', 30)):
        x = ref.logits(rng, kind, n).astype(np.float32).astype(np.float64)
        count = np.bincount(lib.sampler(temperature=1, seed=3).draws(x, 50000), minlength=n)
        want = ref.softmax(x) * 50000
        sel = want >= 5
        chi = float((((count - want) ** 2) / want)[sel].sum())
        check(f'{kind}: 50,000 draws fit (chi square)', chi < sel.sum() + 6 * math.sqrt(2 * sel.sum()), chi)


def hostile():
    number = {'temperature': (-1, math.nan, math.inf), 'top_k': (-1, -2**31), 'top_p': (-0.1, 1.1, math.nan),
              'min_p': (-1, 2, math.nan), 'repetition_penalty': (0, -1, math.inf, math.nan),
              'frequency_penalty': (math.inf, math.nan), 'presence_penalty': (-math.inf,), 'penalty_last_n': (-1,),
              'min_keep': (0, -1), 'dynatemp_range': (-1, math.nan), 'dynatemp_exponent': (-1,), 'typical_p': (-1, 2),
              'top_n_sigma': (-1, math.nan), 'epsilon_cutoff': (-1, 1.5), 'eta_cutoff': (-1, 1.5), 'tail_free': (2,),
              'top_a': (-1,), 'xtc_probability': (-1, 2), 'xtc_threshold': (-1, 2), 'dry_multiplier': (-1, math.inf),
              'dry_base': (0.5, math.nan), 'dry_allowed_length': (0,), 'dry_last_n': (-2,), 'mirostat': (3, -1),
              'mirostat_tau': (-1, math.nan), 'mirostat_eta': (-1,), 'no_repeat_ngram': (-1,), 'min_length': (-1,),
              'min_new': (-1,), 'guidance_scale': (math.inf, math.nan), 'top_k_ties': (2, -1)}
    for name, values in number.items():
        for v in values:
            s = lib.sampler(**{name: v})
            text = s.message.decode('utf-8', 'replace')
            check(f'{name} {v} is refused by name', s.status != 0 and name.replace('_', '-') in text and '\n' not in text, text)
    for bad in (dict(order='nonsense'), dict(order='top_k,,top_p'), dict(order='top_k,' * 500), dict(bad_words=[[]]),
                dict(bias=[(1, math.nan)]), dict(bias=[(1, math.inf)])):
        check(f'{bad.keys()} is refused', lib.sampler(**bad).status != 0)
    x = np.zeros(10, np.float32)
    check('all suppressed is an error', lib.sampler(suppress=list(range(10))).pick(x) < 0)
    check('all -inf is an error', lib.sampler().pick(np.full(10, -np.inf)) < 0)
    for t in (0, 1):
        check('NaN is an error', lib.sampler(temperature=t).pick(np.array([1, math.nan, 2])) < 0)
        check('NaN is an error behind top_k', lib.sampler(temperature=t, top_k=1).pick(np.array([1, math.nan, 2])) < 0)
        check('NaN is an error with penalties', lib.sampler(temperature=t, suppress=[0]).pick(np.array([1, math.nan, 2])) < 0)
        check('+inf wins', lib.sampler(temperature=t).pick(np.array([1, math.inf, 2])) == 1)
        check('several +inf: one of them', lib.sampler(temperature=t).pick(np.array([1, math.inf, math.inf])) in (1, 2))
        check('one logit', lib.sampler(temperature=t, top_p=0.5, typical_p=0.5, tail_free=0.5, xtc_probability=1, mirostat=1).pick(np.array([-3.0])) == 0)
    huge = np.array([3e38, -3e38, 3e38, 0])
    check('values at the ends of float', lib.sampler(temperature=1, top_p=0.5).pick(huge) in (0, 2))
    for t in (1e-30, 1e-5, 1e5, 1e30):
        s = lib.sampler(temperature=t, top_p=0.9, min_p=0.01)
        check(f'temperature {t}', s.pick(rng.normal(0, 1, 1000)) >= 0)


def names():
    steps = lib.steps()
    x = ref.logits(rng, 'normal', 100)
    check('the default order is that of the table', lib.sampler(temperature=1, top_k=5, seed=1, order=','.join(steps)).pick(x, 3) == lib.sampler(temperature=1, top_k=5, seed=1).pick(x, 3))
    ids, _ = lib.sampler(temperature=1, top_k=5, order='temperature').kept(x)
    check('a step left out of the list does not run', len(ids) == 100)
    ids, _ = lib.sampler(temperature=1, suppress=[1], order='temperature').kept(x)
    check('rules run even so', len(ids) == 99)


cuts((1, 2, 3, 17, 1000) if a.rounds < 10 else (1, 2, 3, 17, 1000, 32000, 152000))
cuts((32000,))
ties()
chains()
dynamic_temperature()
processors(a.rounds)
classifier_free()
exclude_top_choices()
mirostat()
draws()
hostile()
names()
print(f'{passed} passed, {failed} failed')
sys.exit(failed > 0)
