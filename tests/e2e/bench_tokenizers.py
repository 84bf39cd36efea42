#!/usr/bin/env python3
"""Speed of encoding and decoding beside the `tokenizers` library, one thread, in one run, by the
time that each process spends on the processor.

    python tests/e2e/bench_tokenizers.py --bridge build/release/tools/text_bridge --corpus DIR VOCABULARY ...

VOCABULARY: a tokenizer.json, or a GGUF file. DIR: what tools/make_text_corpus.py wrote.
"""
import argparse
import os
import pathlib
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from tokenizers import Tokenizer  # noqa: E402
from text_bridge import Bridge  # noqa: E402


def load(bridge, path):
    if path.endswith(".gguf"):
        return bridge.from_gguf(path)[0]
    return pathlib.Path(path).read_bytes()


def adversarial(n):
    return {"one word": b"abcdefgh" * (n // 8), "letters": b"a" * n, "spaces": b" " * n, "newlines": b"\n" * n, "marks": ("e" + "\u0301" * (n // 2)).encode(),
            "scripts": ("a\u4e00\u0431\u05d0" * (n // 8)).encode(), "digits": b"7" * n, "han": ("\u4e2d\u6587" * (n // 6)).encode(), "emoji": ("\U0001f468\u200d" * (n // 7)).encode()}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--bridge", required=True)
    p.add_argument("--corpus", required=True, type=pathlib.Path)
    p.add_argument("--peer-bytes", type=int, default=400000)
    p.add_argument("--hostile", type=int, default=0, help="also hostile texts of so many bytes")
    p.add_argument("vocabularies", nargs="+")
    a = p.parse_args()
    bridge = Bridge(a.bridge)
    for v in a.vocabularies:
        source = load(bridge, v)
        t0 = time.process_time()
        oracle = Tokenizer.from_str(source.decode())
        t1 = time.process_time()
        took = bridge.open(source)
        print(f"{v.split('/')[-1]}: load {took:.1f} ms (peer {1e3 * (t1 - t0):.0f} ms)")
        rates = []
        for name in ("english", "code", "chinese", "japanese"):
            text = (a.corpus / f"{name}.txt").read_bytes()
            ids, mb, dec = bridge.bench(text)
            part = text[:a.peer_bytes].decode(errors="ignore")
            encode, decode = [], []
            for _ in range(3):
                t0 = time.process_time()
                enc = oracle.encode_batch_fast([part], add_special_tokens=False)[0].ids
                t1 = time.process_time()
                oracle.decode(enc, skip_special_tokens=False)
                encode.append(t1 - t0)
                decode.append(time.process_time() - t1)
            peer, peer_decode = len(part.encode()) / min(encode) / 1e6, len(enc) / min(decode) / 1e6
            rates.append(mb)
            print(f"   {name:9} encode {mb:7.1f} MB/s peer {peer:5.2f}: x{mb / peer:5.1f}; decode {dec:6.1f} M/s peer {peer_decode:5.2f}: x{dec / peer_decode:5.1f}", flush=True)
        if a.hostile:
            median = sorted(rates)[len(rates) // 2]
            for name, text in adversarial(a.hostile).items():
                mb = bridge.bench(text)[1]
                print(f"   {name:9} encode {mb:7.1f} MB/s, {median / mb:.2f} times the median's time per byte", flush=True)


if __name__ == "__main__":
    main()
