#!/usr/bin/env python3
"""Real vocabularies on much text: ids and decoded text against the `tokenizers` library.

    python tests/e2e/parity_tokenizers.py --bridge build/release/tools/text_bridge --corpus DIR [--mb 55] [--random 2000000] VOCABULARY ...

VOCABULARY: tokenizer.json, or GGUF (its tokenizer.json is given to both sides). DIR: what
tools/make_text_corpus.py wrote. Pieces of 200 bytes to 20 kB of the corpus, then random strings of a
generator that knows Unicode. Characters that are not the same in old and new Unicode are left out:
parts of the library carry different tables.
"""
import argparse
import os
import pathlib
import random
import struct
import sys
import time
import unicodedata

os.environ["TOKENIZERS_PARALLELISM"] = "false"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from tokenizers import Tokenizer  # noqa: E402
from text_bridge import Bridge  # noqa: E402

POOLS = [(0x20, 0x7f, 30), (0xa0, 0x250, 4), (0x250, 0x370, 2), (0x370, 0x590, 4), (0x590, 0x700, 3), (0x900, 0xe00, 3), (0xe00, 0x1100, 2), (0x1100, 0x1200, 1), (0x1e00, 0x2000, 2),
         (0x2000, 0x2070, 3), (0x2070, 0x2c00, 2), (0x3000, 0x3100, 4), (0x3400, 0x4db0, 1), (0x4e00, 0x9fa5, 6), (0xac00, 0xd7a3, 3), (0xe000, 0xf8ff, 1), (0xf900, 0xfb00, 1),
         (0xfb00, 0xfe00, 1), (0xfe00, 0xfff0, 2), (0x10000, 0x10400, 1), (0x1d400, 0x1d800, 1), (0x1f000, 0x1fb00, 4), (0x20000, 0x2a6d0, 1), (0xe0000, 0xe01f0, 1)]
BITS = [" ", "  ", "\n", "\n\n", "\r\n", "\t", "'s", "'LL", "'\u017f", "12", "3456", "http://", "()", "the", " The", "\u2581", "<s>", "</s>", "<|endoftext|>", "<|im_start|>", "<0x0A>", "e\u0301", "\u200d", "\ufe0f", "\ufffd"]


def is_old(c):
    return c in "\n\t\r" or unicodedata.category(c) == "So" and c >= "\U0001f300" or unicodedata.ucd_3_2_0.category(c) == unicodedata.category(c) not in ("Cn", "Cs")


def generator(r):
    pools, weights = [], []
    for lo, hi, w in POOLS:
        chars = [chr(c) for c in range(lo, hi) if is_old(chr(c))]
        if chars:
            pools.append(chars)
            weights.append(w)
    while True:
        mine = r.choices(pools, weights, k=r.randint(1, 3))
        out = []
        for _ in range(min(int(r.expovariate(.08)) + 1, 80)):
            out.append(r.choice(BITS) if r.random() < .25 else r.choice(r.choice(mine)))
        yield "".join(out)


def corpus(path, mb, r):
    text = path.read_bytes().decode()
    drop = {c for c in set(text) if not is_old(c)}
    text = text.translate({ord(c): None for c in drop}) if drop else text
    at, done = 0, 0
    while at < len(text) and done < mb * 1e6:
        n = r.choice([200, 1000, 3000, 10000])
        part = text[at:at + n]
        done += len(part.encode())
        at += n
        yield part


def batches(texts, size=400000):
    out, n = [], 0
    for t in texts:
        out.append(t)
        n += len(t)
        if n > size or len(out) > 8000:
            yield out
            out, n = [], 0
    if out:
        yield out


def check(bridge, oracle, texts, what, show, decode_every):
    n = n_bytes = bad = 0
    for part in batches(texts):
        want = oracle.encode_batch_fast(part, add_special_tokens=False)
        got = bridge.encode_many([t.encode() for t in part])
        for i, (t, w, g) in enumerate(zip(part, want, got)):
            ids = w.ids
            if struct.pack(f"<{len(ids)}i", *ids) != g:
                bad += 1
                if bad <= show:
                    mine = struct.unpack(f"<{len(g) // 4}i", g)
                    k = next((k for k in range(min(len(ids), len(mine))) if ids[k] != mine[k]), min(len(ids), len(mine)))
                    print(f"   {what}: token {k} of {len(ids)}: expected {ids[k:k + 6]} {[oracle.id_to_token(x) for x in ids[k:k + 4]]} got {mine[k:k + 6]} {[oracle.id_to_token(x) for x in mine[k:k + 4]]} in {t[:80]!r}")
            elif i % decode_every == 0:
                for skip in (False, True):
                    if oracle.decode(ids, skip_special_tokens=skip).encode() != bridge.decode(ids, skip):
                        bad += 1
                        if bad <= show:
                            print(f"   {what}: decode skip={skip} of {ids[:40]} {t[:60]!r}")
            n += 1
            n_bytes += len(t.encode())
    return n, n_bytes, bad


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--bridge", required=True)
    p.add_argument("--corpus", required=True, type=pathlib.Path)
    p.add_argument("--mb", type=float, default=55)
    p.add_argument("--random", type=int, default=2000000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--show", type=int, default=5)
    p.add_argument("vocabularies", nargs="+")
    a = p.parse_args()
    bridge, total = Bridge(a.bridge), 0
    for v in a.vocabularies:
        t0 = time.time()
        source = bridge.from_gguf(v)[0] if v.endswith(".gguf") else pathlib.Path(v).read_bytes()
        oracle = Tokenizer.from_str(source.decode())
        oracle.no_truncation()
        oracle.no_padding()
        bridge.open(source)
        name = pathlib.Path(v).name
        n, size, bad = check(bridge, oracle, corpus(a.corpus / "mixed.txt", a.mb, random.Random(a.seed)), name, a.show, 1)
        made = generator(random.Random(a.seed))
        m, size2, bad2 = check(bridge, oracle, (next(made) for _ in range(a.random)), name + " random", a.show, 20)
        total += bad + bad2
        print(f"{name}: {size / 1e6:.1f} MB in {n} texts: {bad} differ; {m} random strings ({size2 / 1e6:.1f} MB): {bad2} differ; {time.time() - t0:.0f} s", flush=True)
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
