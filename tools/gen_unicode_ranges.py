#!/usr/bin/env python3
"""Writes unicode_ranges.def, han.def and scripts.def in src/text: categories and scripts of all code
points as the `tokenizers` library sees them (its pattern engine and its UnicodeScripts table).

usage: gen_unicode_ranges.py            (needs: pip install tokenizers==0.23.*)
"""
import pathlib

from tokenizers import Regex, pre_tokenizers as P

OUT = pathlib.Path(__file__).resolve().parent.parent / "src/text"
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co".split()
CODES = [c for c in range(0x110000) if not 0xd800 <= c < 0xe000]
TEXT = "".join(map(chr, CODES))


def runs(of, default):
    """[first, last, value] of equal neighbours, without the default."""
    out = []
    for c in CODES:
        v = of.get(c, default)
        if out and out[-1][2] == v and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c, v])
    return [r for r in out if r[2] != default]


def categories():
    of = {}
    for name in CATEGORIES:
        for _, (a, b) in P.Split(Regex(r"\p{%s}" % name), "removed", invert=True).pre_tokenize_str(TEXT):
            for k in range(a, b):
                of[CODES[k]] = name.upper()
    return runs(of, "CN")


def han():
    cut = P.Split(Regex(r"\p{Han}"), "removed", invert=True)
    return runs({CODES[k]: "HAN" for _, (a, b) in cut.pre_tokenize_str(TEXT) for k in range(a, b)}, None)


def scripts():
    """Runs of one script are pieces; two runs are of one script when they are not cut apart."""
    split = P.UnicodeScripts()

    def together(a, b):
        return len(split.pre_tokenize_str(chr(a) + chr(b))) == 1

    anything = {c for c in CODES if together(c, 0x41) and together(c, 0x3b1)}
    known, of = [0x41], {}
    last = None
    for c in CODES:
        if c in anything:
            of[c] = 0
            continue
        if last is None or not together(last, c):
            number = next((i for i, k in enumerate(known) if together(k, c)), len(known))
            if number == len(known):
                known.append(c)
        of[c] = number + 1
        last = c
    return runs(of, max(set(of.values()), key=list(of.values()).count)), of


def write(name, head, macro, rows):
    cells = [f"{macro}({a:#x}, {b:#x}, {v})" for a, b, v in rows]
    lines, line = [], ""
    for c in cells:
        if line and len(line) + len(c) + 1 > 100:
            lines.append(line)
            line = ""
        line = f"{line} {c}" if line else c
    (OUT / name).write_text(f"/* {head}\n * Written by tools/gen_unicode_ranges.py. */\n" + "\n".join(lines + [line]) + "\n")
    print(name, len(rows), "rows", len(lines), "lines")


def main():
    write("unicode_ranges.def", "U(first, last, category): code points that are assigned.", "U", categories())
    write("han.def", "Code points of the Han script.", "H", [(a, b, 1) for a, b, _ in han()])
    rows, of = scripts()
    write("scripts.def", "S(first, last, number): scripts; what is not listed goes with any.", "S", rows)
    print("scripts", len(set(of.values())))


if __name__ == "__main__":
    main()
