#!/usr/bin/env python3
"""Gathers text in many scripts from what a Debian system has installed, for comparisons of tokenizers.

    python tools/make_text_corpus.py OUT [--mb 55] [--extra FOLDER ...]

Translation catalogues (*.mo), manual pages of all languages, sources, logs, JSON, and generated
parts: emoji sequences, broken UTF-8 with U+FFFD in place of the bad bytes, runs of all kinds of
white space, random code points. Writes OUT/mixed.txt (about --mb MB) and english.txt, chinese.txt,
japanese.txt, code.txt (for speed). --extra: folders with unpacked packages (manpages-ja, manpages-zh).
"""
import argparse
import gettext
import gzip
import json
import pathlib
import random
import re
import unicodedata

SPACES = [" ", "\t", "\n", "\r\n", "\r", "\u00a0", "\u2003", "\u3000", "\u2028", "\u0085", "\v", "\f", "\u200b", "\u180e"]


def catalogues(roots, size):
    by_language = {}
    for root in roots:
        for path in sorted(root.glob("**/LC_MESSAGES/*.mo")):
            language = path.parent.parent.name
            have = by_language.setdefault(language, [0, []])
            if have[0] > size:
                continue
            try:
                with open(path, "rb") as f:
                    table = gettext.GNUTranslations(f)._catalog
            except Exception:
                continue
            text = "\n".join(v for v in table.values() if isinstance(v, str))
            have[0] += len(text.encode("utf-8", "replace"))
            have[1].append(text)
    return {k: "\n".join(v[1]) for k, v in by_language.items()}


def manuals(roots, size):
    by_language = {}
    for root in roots:
        for path in sorted(root.glob("**/man*/*.gz")):
            language = path.parent.parent.name
            language = "en" if language == "man" else language
            have = by_language.setdefault(language, [0, []])
            if have[0] > size:
                continue
            try:
                text = gzip.open(path).read().decode("utf-8")
            except Exception:
                continue
            text = re.sub(r"^[.'].*$|\\f[A-Z]|\\", "", text, flags=re.M)
            have[0] += len(text.encode())
            have[1].append(text)
    return {k: "\n".join(v[1]) for k, v in by_language.items()}


def read_some(paths, size):
    out, n = [], 0
    for p in paths:
        try:
            b = pathlib.Path(p).read_bytes()[:400000]
        except OSError:
            continue
        out.append(b.decode("utf-8", "replace"))
        n += len(b)
        if n > size:
            break
    return "\n".join(out)


def emoji(r, n):
    people = ["\U0001f468", "\U0001f469", "\U0001f9d1", "\U0001f44d", "\U0001f64b", "\u270c"]
    tones = [chr(c) for c in range(0x1f3fb, 0x1f400)]
    out = []
    for _ in range(n):
        k = r.random()
        if k < .3:
            out.append("\u200d".join(r.choice(people) + r.choice(tones + [""]) for _ in range(r.randint(1, 4))))
        elif k < .5:
            out.append(chr(0x1f1e6 + r.randrange(26)) + chr(0x1f1e6 + r.randrange(26)))
        elif k < .6:
            out.append(r.choice("0123456789#*") + "\ufe0f\u20e3")
        elif k < .7:
            out.append("\U0001f3f4" + "".join(chr(0xe0000 + ord(c)) for c in "gbeng") + "\U000e007f")
        else:
            out.append(chr(r.randrange(0x1f300, 0x1f6d0)) + r.choice(["", "\ufe0f", "\ufe0e", " ", "!"]))
    return "".join(out)


def spaces(r, n):
    return "".join(r.choice([r.choice(SPACES) * r.randint(1, 40), "x", "\u4e00", "if", "1"]) for _ in range(n))


def broken(r, text):
    b = bytearray(text.encode())
    for _ in range(len(b) // 40):
        b[r.randrange(len(b))] = r.randrange(256)
    return b.decode("utf-8", "replace")


def is_old(c):
    return unicodedata.ucd_3_2_0.category(c) == unicodedata.category(c) not in ("Cn", "Cs")


def random_codes(r, n):
    codes = [chr(c) for c in range(1, 0x30000) if is_old(chr(c))]
    return "".join(r.choice(codes) for _ in range(n))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--mb", type=float, default=55)
    p.add_argument("--extra", nargs="*", default=[], type=pathlib.Path)
    a = p.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    r = random.Random(1)
    mos = catalogues([pathlib.Path("/usr/share/locale"), *a.extra], 1200000)
    mans = manuals([pathlib.Path("/usr/share/man"), *a.extra], 3000000)
    sources = [x for g in ("/usr/include/**/*.h", "/usr/lib/python3*/**/*.py", "/usr/share/perl/**/*.pm") for x in sorted(map(str, pathlib.Path("/").glob(g[1:])))]
    r.shuffle(sources)
    code = read_some(sources, 9000000)
    logs = read_some([str(x) for x in pathlib.Path("/var/log").glob("**/*.log")], 3000000)
    jsons = read_some(sorted(map(str, pathlib.Path("/usr/share").glob("**/*.json"))), 3000000) + json.dumps(
        [{"id": i, "name": chr(0x4e00 + i % 500) * 3, "v": r.random(), "s": [None, True, "a\n\"b\\"]} for i in range(5000)])
    parts = {"code": code, "logs": logs, "json": jsons, "emoji": emoji(r, 300000), "space": spaces(r, 60000), "random": random_codes(r, 500000)}
    parts |= {"mo " + k: v for k, v in mos.items()} | {"man " + k: v for k, v in mans.items()}
    parts["broken"] = broken(r, mans.get("en", "")[:500000] + mans.get("ja", "")[:500000] + parts["emoji"][:100000])
    names = list(parts)
    total = sum(len(parts[k].encode("utf-8", "replace")) for k in names)
    keep = min(1.0, a.mb * 1e6 / total)
    mixed = []
    for k in names:
        text = parts[k].encode("utf-8", "replace").decode("utf-8")
        mixed.append(text[:max(int(len(text) * keep), 20000)])
    (a.out / "mixed.txt").write_text("\n".join(mixed), encoding="utf-8", newline="")
    speed = {"english": mans.get("en", ""), "chinese": mos.get("zh_CN", "") + mans.get("zh_CN", "") + mos.get("zh_TW", ""), "japanese": mans.get("ja", "") + mos.get("ja", ""), "code": code}
    for k, v in speed.items():
        (a.out / f"{k}.txt").write_text(v[:3000000].replace("\0", ""), encoding="utf-8", newline="", errors="replace")
    size = (a.out / "mixed.txt").stat().st_size
    print(f"mixed.txt {size / 1e6:.1f} MB, {len(mos)} languages of catalogues, {len(mans)} of manuals")


if __name__ == "__main__":
    main()
