#!/usr/bin/env python3
"""Prints the coefficients of src/simd/math.h and the errors of the fits (needs numpy, mpmath)."""
import numpy as np
from mpmath import exp, log, mp, mpf, ncdf, sqrt, tanh

mp.dps = 40


def fit(name, f, a, b, degree, weight):
    """Reweighted least squares at Chebyshev nodes: close to minimax of weight * error."""
    k = np.arange(1500)
    x = (a + b) / 2 + (b - a) / 2 * np.cos(np.pi * (k + 0.5) / 1500)
    y = np.array([float(f(mpf(float(t)))) for t in x])
    w = np.array([weight(t) for t in x], float)
    basis = np.polynomial.chebyshev.chebvander((2 * x - a - b) / (b - a), degree)
    v, best = np.ones_like(x), (np.inf, None)
    for _ in range(60):
        s = w * np.sqrt(v)
        c = np.linalg.lstsq(basis * s[:, None], y * s, rcond=None)[0]
        e = np.abs((basis @ c - y) * w)
        best = min(best, (e.max(), c), key=lambda t: t[0])
        v *= e / e.max() + 1e-3
        v /= v.max()
    c = np.polynomial.chebyshev.Chebyshev(best[1], domain=[a, b]).convert(kind=np.polynomial.Polynomial)
    print(name, "error %.2e" % best[0], [float(np.float32(t)).hex() for t in c.coef])


r = 0.35
fit("exp: (e^r - 1 - r)/r^2", lambda t: (exp(t) - 1 - t) / t**2, -r, r, 4, lambda t: t * t)
fit("tanh: (tanh(q)/q - 1)/q^2 in q^2", lambda t: (tanh(sqrt(t)) / sqrt(t) - 1) / t, 0, 0.625**2, 4,
    lambda t: t)
fit("gelu: h", lambda t: -log(2 * ncdf(-t)) / t, 0, 7, 10, lambda t: t / (1 + max(0, t - 4)**2))
