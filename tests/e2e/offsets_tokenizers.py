#!/usr/bin/env python3
"""Byte ranges of tokens against the `tokenizers` library, whose offsets count characters.

    python tests/e2e/offsets_tokenizers.py --bridge build/release/tools/text_bridge [-n 400] VOCABULARY ...

Without vocabularies the small tokenizers of tests/data/tokenizers/golden.json.
"""
import argparse
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from tokenizers import Tokenizer  # noqa: E402
import cross_tokenizers  # noqa: E402
import parity_tokenizers  # noqa: E402
from text_bridge import Bridge  # noqa: E402


def check(bridge, source, name, texts, show=3):
    oracle = Tokenizer.from_str(source)
    oracle.no_truncation()
    oracle.no_padding()
    oracle.encode_special_tokens = False
    bridge.open(source.encode())
    n = bad = 0
    for t in texts:
        if "\0" in t:
            continue
        try:
            e = oracle.encode(t, add_special_tokens=True)
        except BaseException as x:
            if isinstance(x, KeyboardInterrupt):
                raise
            continue
        at = [0]
        for c in t:
            at.append(at[-1] + len(c.encode()))
        ids, ranges = bridge.encode_ranges(t.encode(), special=True)
        want = [(at[a], at[b]) for a, b in e.offsets]
        n += 1
        if ids != e.ids or want != ranges:
            bad += 1
            if bad <= show:
                k = next((k for k in range(len(want)) if k >= len(ranges) or want[k] != ranges[k]), -1)
                print(f"   {name}: {t[:60]!r} token {k} {e.tokens[k:k + 3]}: expected {want[k:k + 3]} got {ranges[k:k + 3]} ids {ids == e.ids}")
    print(f"{name}: {n} texts, {bad} differ", flush=True)
    return bad


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--bridge", required=True)
    p.add_argument("-n", type=int, default=400)
    p.add_argument("vocabularies", nargs="*")
    a = p.parse_args()
    bridge, bad = Bridge(a.bridge), 0
    made = parity_tokenizers.generator(random.Random(5))
    texts = cross_tokenizers.TEXTS + [next(made) for _ in range(a.n)]
    for v in a.vocabularies:
        source = bridge.from_gguf(v)[0] if v.endswith(".gguf") else pathlib.Path(v).read_bytes()
        bad += check(bridge, source.decode(), pathlib.Path(v).name, texts)
    if not a.vocabularies:
        golden = json.loads((cross_tokenizers.ROOT / "tests/data/tokenizers/golden.json").read_text(encoding="utf-8"))
        for c in golden["cases"]:
            whole = {"version": "1.0", "added_tokens": [], "truncation": None, "padding": None, "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None} | c["parts"]
            bad += check(bridge, json.dumps(whole | {"model": golden["models"][c["parts"]["model"]]}), c["name"], texts, 1)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
