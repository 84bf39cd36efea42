"""liboxgen's sampler through ctypes, and every step again in numpy, written from the papers' formulas.

A reference takes logits (float64, -inf = no candidate) and returns logits again: -inf where it drops a candidate.
"""
import ctypes as C
import math
import os
import re

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Bias(C.Structure):
    _fields_ = [('id', C.c_int32), ('bias', C.c_float)]


class TokenList(C.Structure):
    _fields_ = [('ids', C.POINTER(C.c_int32)), ('n', C.c_size_t)]


class Forced(C.Structure):
    _fields_ = [('position', C.c_uint64), ('id', C.c_int32)]


def options_struct():
    """The struct as include/oxgen/sampler.h declares it."""
    text = open(os.path.join(ROOT, 'include/oxgen/sampler.h')).read()
    body = re.search(r'typedef struct ox_sampler_options \{(.*?)\} ox_sampler_options;', text, re.S)[1]
    body = re.sub(r'/\*.*?\*/', '', body, flags=re.S)
    kinds = {'uint32_t': C.c_uint32, 'int32_t': C.c_int32, 'float': C.c_float, 'uint64_t': C.c_uint64,
             'size_t': C.c_size_t, 'const ox_logit_bias *': C.POINTER(Bias), 'const int32_t *': C.POINTER(C.c_int32),
             'const char *': C.c_char_p, 'const ox_token_list *': C.POINTER(TokenList),
             'const ox_forced_token *': C.POINTER(Forced)}
    fields = []
    for part in body.split(';'):
        part = ' '.join(part.split())
        if part:
            kind, name = re.match(r'(.*?[ *])(\w+)$', part).groups()
            fields.append((name, kinds[kind.strip()]))
    return type('Options', (C.Structure,), {'_fields_': fields})


Options = options_struct()


class Err(C.Structure):
    _fields_ = [('status', C.c_int), ('where', C.c_char_p), ('msg', C.c_char * 1024)]


class Library:
    def __init__(self, oxgen):
        self.so = C.CDLL(os.path.join(os.path.dirname(os.path.abspath(oxgen)), 'liboxgen.so'))
        self.so.ox_sampler_step.restype = C.c_char_p
        o = Options()
        self.so.ox_sampler_options_init(C.byref(o))
        assert o.struct_size == C.sizeof(Options), (o.struct_size, C.sizeof(Options))

    def steps(self):
        i, names = 0, []
        while (name := self.so.ox_sampler_step(C.c_size_t(i))) is not None:
            names.append(name.decode())
            i += 1
        return names

    def sampler(self, **options):
        return Sampler(self, options)


class Sampler:
    """Options by member name; lists as Python lists; history = [(id, is_new)…]."""

    def __init__(self, library, options):
        self.so, self.keep = library.so, []
        o, err = Options(), Err()
        self.so.ox_sampler_options_init(C.byref(o))
        for name, value in options.items():
            if name in ('suppress', 'end_ids', 'begin_suppress', 'dry_breakers'):
                array = (C.c_int32 * len(value))(*value)
            elif name == 'bias':
                array = (Bias * len(value))(*value)
            elif name == 'forced':
                array = (Forced * len(value))(*value)
            elif name == 'bad_words':
                words = [(C.c_int32 * len(w))(*w) for w in value]
                self.keep += words
                array = (TokenList * len(value))(*[TokenList(C.cast(w, C.POINTER(C.c_int32)), len(w)) for w in words])
            else:
                setattr(o, name, value.encode() if isinstance(value, str) else value)
                continue
            self.keep.append(array)
            setattr(o, name, C.cast(array, dict(Options._fields_)[name]))
            setattr(o, 'n_' + name, len(value))
        self.p = C.c_void_p()
        self.status = self.so.ox_sampler_open(C.byref(self.p), C.byref(o), C.byref(err))
        self.message = err.msg

    def __del__(self):
        if getattr(self, 'p', None):
            self.so.ox_sampler_close(C.byref(self.p))

    def accept(self, ids, is_new=1):
        for i in ids:
            assert self.so.ox_sampler_accept(self.p, int(i), is_new, None) == 0

    def rewind(self, n):
        self.so.ox_sampler_rewind(self.p, C.c_size_t(n))

    def pick(self, logits, position=0):
        x = np.ascontiguousarray(logits, np.float32)
        got = C.c_int32(-1)
        status = self.so.ox_sampler_pick(self.p, x.ctypes.data_as(C.c_void_p), C.c_size_t(x.size),
                                         C.c_uint64(position), C.byref(got), None)
        return got.value if status == 0 else -abs(status)

    def draws(self, logits, n, start=0):
        """n picks at the positions from start on."""
        x = np.ascontiguousarray(logits, np.float32)
        got, out = C.c_int32(-1), np.empty(n, np.int32)
        at, size, where, pick = x.ctypes.data_as(C.c_void_p), C.c_size_t(x.size), C.byref(got), self.so.ox_sampler_pick
        for i in range(n):
            pick(self.p, at, size, C.c_uint64(start + i), where, None)
            out[i] = got.value
        return out

    def kept(self, logits, position=0):
        """(ids, probabilities), likeliest first."""
        x = np.ascontiguousarray(logits, np.float32)
        ids, probs, n = np.empty(x.size, np.int32), np.empty(x.size, np.float32), C.c_size_t(0)
        status = self.so.ox_sampler_kept(self.p, x.ctypes.data_as(C.c_void_p), C.c_size_t(x.size), C.c_uint64(position),
                                         ids.ctypes.data_as(C.c_void_p), probs.ctypes.data_as(C.c_void_p),
                                         C.c_size_t(x.size), C.byref(n), None)
        assert status == 0, status
        return ids[:n.value], probs[:n.value]


# ---- the steps in numpy ----

def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def order(x):
    """Descending, ties to the lower id."""
    return np.argsort(-x, kind='stable')


def entropy(p):
    q = p[p > 0]
    return float(-(q * np.log(q)).sum())


def keep(x, ids):
    y = np.full_like(x, -np.inf)
    y[ids] = x[ids]
    return y


def keep_where(x, mask):
    """The best one always stays, and what equals it."""
    return np.where(mask | (x == x.max()), x, -np.inf)


def temperature(x, t, dynamic=0, exponent=1):
    if dynamic > 0 and np.isfinite(x).sum() > 1:
        h = entropy(softmax(x)) / math.log(x.size)
        lo, hi = max(0, t - dynamic), t + dynamic
        t = lo + (hi - lo) * h ** exponent
    return x / t


def top_k(x, k):
    return keep(x, order(x)[:k]) if k > 0 else x


def top_p(x, p):
    if not 0 < p < 1:
        return x
    o = order(x)
    cumulative = np.cumsum(softmax(x)[o])
    return keep(x, o[:int((cumulative < p).sum()) + 1])


def min_p(x, p):
    q = softmax(x)
    return keep_where(x, q >= p * q.max())


def top_a(x, a):
    q = softmax(x)
    return keep_where(x, q >= a * q.max() ** 2)


def typical_p(x, p):
    if not 0 < p < 1:
        return x
    q = softmax(x)
    with np.errstate(divide='ignore'):
        key = np.abs(-np.log(q) - entropy(q)).astype(np.float32)
    o = np.argsort(key, kind='stable')
    return keep(x, o[:int((np.cumsum(q[o]) < p).sum()) + 1])


def epsilon(x, e):
    return keep_where(x, softmax(x) >= e)


def eta(x, e):
    q = softmax(x)
    return keep_where(x, q >= min(e, math.sqrt(e) * math.exp(-entropy(q))))


def top_n_sigma(x, n):
    f = x[np.isfinite(x)]
    return keep_where(x, x >= f.max() - n * f.std())


def tail_free(x, z):
    o = order(x)
    q = softmax(x)[o]
    q = q[:int(np.isfinite(x).sum())]
    if q.size < 3:
        return x
    second = np.abs(np.diff(np.diff(q)))
    cumulative = np.cumsum(second / second.sum())
    return keep(x, o[:1 + int((cumulative <= z).sum())])


def xtc(x, threshold):
    o = order(x)
    q = softmax(x)[o]
    n = int((q >= threshold).sum())
    return keep(x, o[n - 1:]) if n > 1 else x


def mirostat2(x, mu):
    return keep_where(x, -np.log2(np.maximum(softmax(x), 1e-300)) <= mu)


def mirostat1(x, mu, m=100):
    o = order(x)
    q = softmax(x)[o]
    i = np.arange(min(m, x.size) - 1)
    t, b = np.log((i + 2) / (i + 1)), np.log(q[i] / q[i + 1])
    s = (t * b).sum() / (t * t).sum()
    e = s - 1
    k = (e * 2 ** mu / (1 - x.size ** -e)) ** (1 / s)
    return keep(x, o[:max(int(k), 1)])


def repetition(x, seen, penalty):
    y = x.copy()
    for i in set(seen):
        y[i] = y[i] / penalty if y[i] > 0 else y[i] * penalty
    return y


def counted(x, new, frequency, presence):
    y = x.copy()
    for i in set(new):
        y[i] -= new.count(i) * frequency + presence
    return y


def no_repeat_ngram(x, tokens, n):
    y = x.copy()
    for i in range(len(tokens) - n + 1):
        if tokens[i:i + n - 1] == tokens[len(tokens) - n + 1:]:
            y[tokens[i + n - 1]] = -np.inf
    return y


def bad_words(x, tokens, words):
    y = x.copy()
    for w in words:
        n = len(w) - 1
        if n <= len(tokens) and tokens[len(tokens) - n:] == list(w[:-1]):
            y[w[-1]] = -np.inf
    return y


def dry(x, tokens, multiplier, base, allowed, breakers=()):
    """As defined: for each earlier place, how long a run before it equals the run at the end."""
    longest, n = {}, len(tokens)
    for i in range(n - 1):
        m = 0
        while m <= i and tokens[i - m] == tokens[n - 1 - m] and tokens[n - 1 - m] not in breakers:
            m += 1
        if m >= allowed:
            longest[tokens[i + 1]] = max(longest.get(tokens[i + 1], 0), m)
    y = x.copy()
    for t, m in longest.items():
        y[t] -= multiplier * base ** (m - allowed)
    return y


def guidance(x, u, scale):
    lc, lu = x - x.max(), u - u.max()
    lc, lu = lc - np.log(np.exp(lc).sum()), lu - np.log(np.exp(lu).sum())
    return lu + scale * (lc - lu)


# ---- logits to try ----

def logits(rng, kind, n):
    if kind == 'normal':
        return rng.normal(0, 3, n)
    if kind == 'peaked':
        return -2.2 * np.log(rng.permutation(n) + 1.0) + rng.normal(0, 0.3, n)
    if kind == 'flat':
        return rng.normal(0, 0.01, n)
    if kind == 'ties':
        return rng.integers(0, 6, n) / 2.0
    if kind == 'masked':
        x = rng.normal(0, 3, n)
        x[rng.random(n) < 0.9] = -np.inf
        x[rng.integers(n)] = 1.0
        return x
    if kind == 'certain':
        x = rng.normal(0, 1, n)
        x[rng.integers(n)] = 60.0
        return x
    raise ValueError(kind)


KINDS = ('normal', 'peaked', 'flat', 'ties', 'masked', 'certain')
