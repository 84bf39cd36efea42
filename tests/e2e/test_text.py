#!/usr/bin/env python3
"""Tokenizers and templates against the libraries, in small: crossed synthetic files, ranges of
tokens, generated snippets. all_text.py does the same at length and with real vocabularies.

    python tests/e2e/test_text.py --oxgen build/release/oxgen
"""
import argparse
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--oxgen", required=True)
    a = p.parse_args()
    tools = pathlib.Path(a.oxgen).resolve().parent / "tools"
    runs = [["cross_tokenizers.py", "--bridge", tools / "text_bridge", "-n", "250"],
            ["cross_templates.py", "--render", tools / "render_template", "-n", "150"]]
    passed = failed = 0
    for run in runs:
        r = subprocess.run([sys.executable, HERE / run[0], *map(str, run[1:])], capture_output=True, text=True, env=dict(os.environ, RUST_BACKTRACE="0"))
        print(f"{run[0]}: {r.stdout.strip().splitlines()[-1] if r.stdout.strip() else 'no output'}")
        if r.returncode:
            print(f"FAIL {run[0]}\n{r.stdout[-3000:]}{r.stderr[-1000:] if not r.stdout else ''}")
        passed, failed = passed + (not r.returncode), failed + bool(r.returncode)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
