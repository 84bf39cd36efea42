#!/usr/bin/env python3
"""Compares `oxgen tokenize` with the `tokenizers` library on the tokenizer.json of folders.

    python tests/e2e/test_tokenizer.py --oxgen build/release/oxgen [--seed N] [FOLDER ...]

Each FOLDER holds a tokenizer.json. Without folders the small tokenizers of
tests/data/tokenizers/golden.json are used. The command line needs a graph beside the tokenizer: a
minimal one is written into a scratch folder.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FIXED = [
    "", "a", " ", "Hello world!", "  leading", "trailing  \n\n\n  x",
    "def f(x):\n    return x+1 # c\n\n\tif y:\r\n\t\tpass\r\n", "I'm you're he'll WE'VE 'S",
    "\u4f60\u597d\uff0c\u4e16\u754c\uff01", "\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8", "1234567890 12 3.14",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea", "e\u0301 \u00e9 a\u0301\u0327",
    "\x01\x02\x7f\x80", "\u180e x\u200b z\ufeff", "a\u00a0b\u2003c\u3000d\u2028e\u0085f", "<0x41><0x0A>",
    "\u2581 \u2581\u2581 a", "\n\n\n", "\t\t", "x" * 300, " " * 100 + "x", "\u0663\u0664 \u00bd",
]
POOLS = [(0x20, 0x7f), (0xa0, 0x250), (0x300, 0x370), (0x4e00, 0x4f00), (0x3040, 0x3100), (0x1f300, 0x1f650),
         (0x600, 0x700), (0x900, 0xa00), (0xac00, 0xac50), (0x2000, 0x2070)]


def is_old(c):
    """Assigned since Unicode 3.2 with the category it has now, or a picture: the two sides carry different Unicode versions."""
    return unicodedata.category(c) == "So" and c >= "\U0001f300" or unicodedata.ucd_3_2_0.category(c) == unicodedata.category(c) != "Cn"


def texts(seed, n, specials):
    r = random.Random(seed)
    out = list(FIXED)
    pools = [[c for c in map(chr, range(a, b)) if is_old(c)] for a, b in POOLS] + [list(" \n\t\r")]
    while len(out) < n:
        chosen = [r.choice(pools) for _ in range(r.randint(1, 4))]
        s = []
        for _ in range(r.randint(1, 60)):
            s.append(r.choice(r.choice(chosen)))
            if specials and r.random() < 0.03:
                s.append(r.choice(specials))
        out.append("".join(s))
    return out


def write_graph(folder, n_vocab):
    """logits = one column of zeros a token: enough for a model to open."""
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "length"])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "length", n_vocab])
    table = numpy_helper.from_array(numpy.zeros((n_vocab, 8), numpy.float32), "embed")
    head = numpy_helper.from_array(numpy.zeros((8, n_vocab), numpy.float32), "head")
    nodes = [helper.make_node("Gather", ["embed", "input_ids"], ["x"]), helper.make_node("MatMul", ["x", "head"], ["logits"])]
    graph = helper.make_graph(nodes, "tiny", [ids], [logits], [table, head])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), str(folder / "model.onnx"))


def run(oxgen, folder, text, *flags):
    with tempfile.NamedTemporaryFile("wb", suffix=".txt") as f:
        f.write(text.encode())
        f.flush()
        r = subprocess.run([oxgen, "tokenize", str(folder), "--file", f.name, "--json", *flags], capture_output=True)
    if r.returncode:
        sys.exit(f"oxgen tokenize {folder}: exit {r.returncode}: {r.stderr.decode()}")
    return json.loads(r.stdout)


def check(oxgen, source, name, seed, n):
    oracle = Tokenizer.from_str(source)
    oracle.no_truncation()
    oracle.no_padding()
    oracle.encode_special_tokens = True
    specials = [t.content for t in oracle.get_added_tokens_decoder().values()][:40]
    bad = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        (folder / "tokenizer.json").write_text(source, encoding="utf-8")
        write_graph(folder, max(oracle.get_vocab(True).values()) + 1)
        for text in texts(seed, n, specials):
            if "\0" in text:
                continue
            got = run(oxgen, folder, text, "--no-special")["ids"]
            oracle.encode_special_tokens = False
            parsed = oracle.encode(text, add_special_tokens=False).ids
            oracle.encode_special_tokens = True
            plain = oracle.encode(text, add_special_tokens=False).ids
            if got not in (parsed, plain):
                bad += 1
                print(f"{name}: {text!r}: expected {plain} or {parsed}, got {got}")
    return bad


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--oxgen", required=True)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("-n", type=int, default=60, help="texts a tokenizer")
    p.add_argument("folders", nargs="*")
    a = p.parse_args()
    sources = [(f, (pathlib.Path(f) / "tokenizer.json").read_text(encoding="utf-8")) for f in a.folders]
    if not sources:
        golden = json.loads((ROOT / "tests/data/tokenizers/golden.json").read_text(encoding="utf-8"))
        for c in golden["cases"]:
            if c["name"].startswith(("byte-level", "spm", "unigram", "wordpiece")):
                whole = {"version": "1.0", "added_tokens": [], "truncation": None, "padding": None, "normalizer": None,
                         "pre_tokenizer": None, "post_processor": None, "decoder": None} | c["parts"]
                sources.append((c["name"], json.dumps(whole | {"model": golden["models"][c["parts"]["model"]]})))
    bad = sum(check(a.oxgen, text, name, a.seed, a.n) for name, text in sources)
    print(f"seed {a.seed}: {len(sources)} tokenizers, {bad} texts differ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
