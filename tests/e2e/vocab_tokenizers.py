#!/usr/bin/env python3
"""Vocabularies of GGUF files against the ids that llama.cpp's source package ships with them.

    python tests/e2e/vocab_tokenizers.py --bridge build/release/tools/text_bridge FOLDER

FOLDER: models/ of that package (ggml-vocab-*.gguf with .inp and .out beside it).
"""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from text_bridge import Bridge, Refused  # noqa: E402


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--bridge", required=True)
    p.add_argument("folder", type=pathlib.Path)
    a = p.parse_args()
    bridge, bad = Bridge(a.bridge), 0
    for f in sorted(a.folder.glob("ggml-vocab-*.gguf")):
        inputs = pathlib.Path(f"{f}.inp")
        if not inputs.exists():
            print(f"{f.name}: no expected ids")
            continue
        try:
            json, config = bridge.from_gguf(f)
            bridge.open(json, config)
        except Refused as e:
            print(f"{f.name}: {e}")
            continue
        texts = inputs.read_bytes().decode().split("\n__ggml_vocab_test__\n")
        want = [[int(x) for x in line.split()] for line in pathlib.Path(f"{f}.out").read_text().split("\n")]
        n = 0
        for t, w in zip(texts, want):
            got = bridge.encode(t.encode(), special=False)
            if got != w:
                n += 1
                print(f"   {f.name}: {t!r}: expected {w} got {got}") if n < 3 else None
        bad += n
        print(f"{f.name}: {len(texts)} texts, {n} differ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
