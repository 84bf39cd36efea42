#!/usr/bin/env python3
"""Synthetic tokenizer.json files that cross normalizers, pre-tokenizers, models, post-processors,
decoders and added tokens, compared with the `tokenizers` library: ids and decoded text, with and
without special tokens.

    python tests/e2e/cross_tokenizers.py --bridge build/release/tools/text_bridge [-n 6000] [--seed N]

The first differences are printed with the file that shows them (--keep FOLDER writes it). Texts
keep to characters that old and new Unicode agree on: the two sides carry different tables.
"""
import argparse
import collections
import json
import pathlib
import random
import sys
import unicodedata

from tokenizers import Regex, Tokenizer, decoders, normalizers as N, pre_tokenizers as P

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
sys.path.insert(0, str(ROOT / "tests/e2e"))
import gen_tokenizer_golden as golden  # noqa: E402
from text_bridge import Bridge, Refused  # noqa: E402

PATTERNS = [r"\w+|[^\w\s]", r"\s+", r"\b", r"\d{1,3}(?=(?:\d{3})*\b)", r"(?i:'s|'t|'re|'ll)|\p{L}+|\p{N}|\s+(?!\S)|\s+",
            r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
            r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            r"[^\n]+|[\n]+", r"a*", r"(?=a)|x", r"[\p{L}&&[^\p{Han}]]+", r"(?<=a)b|\p{P}", r"^\s*|\S+$"]
# The library falls over (a Rust panic): nothing to compare with.
PANICS = ["index out of bounds", "char boundary", "bad split", "slice index", "out of range", "begin <= end", "overflow"]
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
TEXTS = golden.TEXTS + [
    "  ", "\n", "\u2581", "\u2581\u2581a\u2581", "a\u2581b c", "##a ##b", "the the cat", "aaabbb aXb", "\u00e9\u0301\u0323 \u1100\u1161\u11a8",
    "\u3042\u30ab\u30fc\u6f22\u5b57 abc\u0431\u0432\u0433 \u03b1\u03b2 \u05d0\u05d1", "<x> <x>y z<x>  <x>", "a<tok>  <tok>b \u00a0<tok>",
    "</s><s>\u3000<s> </s>", "don't DON'T 'S 's '\u017f 123,456 1234567", "tab\tnl\r\n\r\nx\n \n y", "\ufb01 \uff21\uff42 \u2460 \u00bd \u212b \u1e9b\u0323",
    "i\u0307 \u0130 \u03a3\u03a3 \u01c5", "x" * 130, "a b" * 40, "!?.,;:(){}[]\u3002\u3001\uff01", "\u0e01\u0e33\u0e49 \u0915\u094d\u0937\u093f", "\u200b\u200d\u2060\ufeff\ufffd",
    "I do n't ca n't 's 've . , ? !", "|a||b| <pad><pad>", "<0x41><0x0A><0xE4>", "\U0001f600\U0001f468\u200d\U0001f469 \U0001f3fd \U0001f1e9\U0001f1ea\U0001f1eb"]


def js(x):
    return json.loads(x.__getstate__())


def normalizer_list(r):
    forms = [N.NFC, N.NFD, N.NFKC, N.NFKD, N.Lowercase, N.StripAccents, N.Nmt, N.ByteLevel]
    out = [None] + [js(f()) for f in forms] + [js(N.Strip(a, b)) for a in (True, False) for b in (True, False)]
    for a in range(16):
        out.append(js(N.BertNormalizer(bool(a & 1), bool(a & 2), [None, True, False][a % 3], bool(a & 4))))
    out += [js(N.Replace(" ", "\u2581")), js(N.Replace("a", "")), js(N.Replace(Regex(r"\s+"), " ")), js(N.Replace(Regex(r"\d"), "##")),
            js(N.Replace(Regex("a?b"), "-")), js(N.Prepend("\u2581")), {"type": "Precompiled", "precompiled_charsmap": golden.charsmap()}]
    return out


def pre_list(r):
    out = [None] + [js(P.ByteLevel(a, use_regex=b)) for a in (True, False) for b in (True, False)]
    out += [js(P.Whitespace()), js(P.WhitespaceSplit()), js(P.BertPreTokenizer()), js(P.CharDelimiterSplit("e")), js(P.CharDelimiterSplit("\u2581")),
            js(P.Digits(True)), js(P.Digits(False)), js(P.UnicodeScripts()), js(P.FixedLength(3)), js(P.FixedLength(1))]
    out += [js(P.Punctuation(b)) for b in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous")]
    out += [js(P.Metaspace("\u2581", s, split=b)) for s in ("first", "always", "never") for b in (True, False)]
    out += [{"type": "Metaspace", "replacement": "_", "add_prefix_space": True}, {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "never", "add_prefix_space": False}]
    for p in PATTERNS:
        for _ in range(2):
            out.append({"type": "Split", "pattern": {"Regex": p}, "behavior": r.choice(BEHAVIORS), "invert": r.random() < 0.4})
    for s in (" ", "a", "\u2581", "e\u0301"):
        out.append({"type": "Split", "pattern": {"String": s}, "behavior": r.choice(BEHAVIORS), "invert": r.random() < 0.4})
    return out


def sequence(r, kind, key, items):
    chosen = [x for x in (r.choice(items) for _ in range(r.randint(0, 3))) if x]
    return {"type": kind, key: chosen}


def decoder_list():
    D = decoders
    return [None, js(D.ByteLevel()), js(D.ByteFallback()), js(D.Fuse()), js(D.Replace("\u2581", " ")), js(D.Replace("a", "")), js(D.Replace(Regex(r"[ab]+"), "<>")), js(D.Strip(" ", 1, 0)),
            js(D.Strip("a", 2, 1)), js(D.Metaspace()), js(D.Metaspace("\u2581", "never")), js(D.Metaspace("\u2581", "first")), js(D.WordPiece()),
            js(D.WordPiece("##", False)), js(D.BPEDecoder()), js(D.CTC()), js(D.CTC("a", "b", False))]


def template(r):
    ids = {"<s>": r.randint(0, 40), "</s>": r.randint(0, 40), "[X]": r.randint(0, 40)}
    def special():
        return {"SpecialToken": {"id": r.choice(list(ids)), "type_id": 0}}
    single = [special() for _ in range(r.randint(0, 2))] + [{"Sequence": {"id": "A", "type_id": 0}}] + [special() for _ in range(r.randint(0, 2))]
    return {"type": "TemplateProcessing", "single": single, "pair": single + [{"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {k: {"id": k, "ids": [v] * r.randint(1, 2), "tokens": [k] * 2} for k, v in ids.items()}}


def fix_template(t):
    for s in t["special_tokens"].values():
        s["tokens"] = s["tokens"][:len(s["ids"])]
    return t


def processor(r, depth=0):
    k = r.randint(0, 6 if depth else 7)
    if k == 0 or (k == 6 and not depth):
        return None if not depth else {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    if k == 1:
        return {"type": "BertProcessing", "sep": ["[UNK]", r.randint(0, 30)], "cls": ["the", r.randint(0, 30)]}
    if k == 2:
        return {"type": "RobertaProcessing", "sep": ["[UNK]", r.randint(0, 30)], "cls": ["the", r.randint(0, 30)], "trim_offsets": r.random() < 0.5, "add_prefix_space": r.random() < 0.5}
    if k == 3:
        return {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    if k == 7:
        some = [processor(r, 1) for _ in range(r.randint(0, 3))]
        writers = [x for x in some if x["type"] != "ByteLevel"]  # two that add ids make the library give up or mix texts
        return {"type": "Sequence", "processors": [x for x in some if x not in writers[1:]]}
    return fix_template(template(r))


def added(r):
    contents = ["<s>", "</s>", "<tok>", "<x>", " ", "\u2581", "the", "A", "\u00e9", "a b", "[UNK]", "\n\n", "  ", "x", "\u3042", "do"]
    # Two tokens with one normal form: the library takes either, from run to run.
    # What normalizers may strip to nothing would be matched everywhere by the library.
    return [{"id": i, "content": c} | {f: r.random() < p and not (f == "normalized" and (c.isspace() or c in ("\u2581", "[UNK]"))) for f, p in (("single_word", .3), ("lstrip", .3), ("rstrip", .3), ("normalized", .4), ("special", .5))}
            for i, c in enumerate(r.sample(contents, r.choice([0, 0, 1, 3, 6])))]


def is_old(c):
    return unicodedata.category(c) == "So" and c >= "\U0001f300" or unicodedata.ucd_3_2_0.category(c) == unicodedata.category(c) != "Cn"


def random_text(r):
    pools = [(0x20, 0x7f)] * 4 + [(0xa0, 0x250), (0x300, 0x370), (0x370, 0x500), (0x4e00, 0x4e40), (0x3040, 0x3100), (0x1f300, 0x1f650), (0x600, 0x700), (0x900, 0xa00), (0xac00, 0xac50), (0x2000, 0x2070), (0xff00, 0xffef)]
    s = []
    for _ in range(r.randint(1, 30)):
        lo, hi = r.choice(pools)
        s.append(r.choice([chr(r.randrange(lo, hi)), r.choice(" \n\ta\u2581"), r.choice(["<s>", "<x>", "the ", "12", "'s"])]))
    return "".join(c for c in s if len(c) > 1 or is_old(c) or c in "\n\t")


def combination(r, models, lists):
    norms, pres, decs = lists
    name = r.choice(list(models))
    one = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added(r),
           "normalizer": r.choice(norms) if r.random() < .6 else sequence(r, "Sequence", "normalizers", norms),
           "pre_tokenizer": r.choice(pres) if r.random() < .6 else sequence(r, "Sequence", "pretokenizers", pres),
           "model": models[name], "post_processor": processor(r),
           "decoder": r.choice(decs) if r.random() < .6 else sequence(r, "Sequence", "decoders", decs)}
    if r.random() < .1:
        one["truncation"] = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
        one["padding"] = {"strategy": {"Fixed": 40}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "a"}
    for key in ("normalizer", "pre_tokenizer", "post_processor", "decoder", "truncation", "padding"):
        if one[key] is None and r.random() < .3:
            del one[key]
    return name, one


def try_(f):
    try:
        return f()
    except Refused as e:
        return "refused", str(e)
    except BaseException as e:  # the library panics with an exception of its own base class
        if isinstance(e, (KeyboardInterrupt, RuntimeError)):
            raise
        return "refused", str(e)


def compare(bridge, one, texts):
    """None, or (what, text, expected, got)."""
    source = json.dumps(one)
    oracle = try_(lambda: Tokenizer.from_str(source))
    ours = try_(lambda: bridge.open(source.encode()))
    if isinstance(oracle, tuple) or isinstance(ours, tuple):
        if isinstance(oracle, tuple) and any(x in oracle[1] for x in PANICS):
            return None
        both = isinstance(oracle, tuple) and isinstance(ours, tuple)
        return None if both else ("open", "", oracle if isinstance(oracle, tuple) else "opens", ours if isinstance(ours, tuple) else "opens")
    oracle.no_truncation()
    oracle.no_padding()
    for text in texts:
        for special in (True, False):
            oracle.encode_special_tokens = not special
            want = try_(lambda: oracle.encode(text, add_special_tokens=special).ids)
            got = try_(lambda: bridge.encode(text.encode(), special, special))
            if isinstance(want, tuple) and any(x in want[1] for x in PANICS):
                continue
            if want != got and not (isinstance(want, tuple) and isinstance(got, tuple)):
                return "encode", text, want, got
        if isinstance(want, tuple):
            continue
        for skip in (True, False):
            shown, ours = try_(lambda: oracle.decode(want, skip_special_tokens=skip)), try_(lambda: bridge.decode(want, skip))
            if isinstance(shown, tuple) and (isinstance(ours, tuple) or any(x in shown[1] for x in PANICS)):
                continue
            if isinstance(shown, tuple) or isinstance(ours, tuple) or shown.encode() != ours:
                return "decode", want, shown, ours
    return None


def describe(one):
    def short(x):
        if not x:
            return "-"
        for key in ("normalizers", "pretokenizers", "decoders", "processors"):
            if key in x:
                return "[" + ",".join(short(y) for y in x[key]) + "]"
        return x["type"]
    return " | ".join(short(one.get(k)) for k in ("normalizer", "pre_tokenizer", "post_processor", "decoder"))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--bridge", required=True)
    p.add_argument("-n", type=int, default=6000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--show", type=int, default=12)
    p.add_argument("--keep")
    a = p.parse_args()
    r = random.Random(a.seed)
    models = {
        "bytes": golden.bytes_only(), "byte bpe": golden.byte_bpe(), "byte bpe whole": golden.byte_bpe(330, ignore_merges=True), "spm": golden.spm_bpe(),
        "unk": golden.trained_bpe(), "unk fused": golden.trained_bpe(fuse_unk=True), "suffix": golden.trained_bpe(suffix="</w>"), "prefix": golden.trained_bpe(prefix="##"),
        "unigram": golden.unigram(), "unigram bytes": golden.unigram(byte_fallback=True), "wordpiece": golden.words("WordPiece"), "wordlevel": golden.words("WordLevel")}
    lists = normalizer_list(r), pre_list(r), decoder_list()
    bridge, seen, n_bad = Bridge(a.bridge), collections.Counter(), 0
    for i in range(a.n):
        name, one = combination(r, models, lists)
        texts = r.sample(TEXTS, 10) + [random_text(r) for _ in range(6)]
        bad = compare(bridge, one, texts)
        if not bad:
            continue
        n_bad += 1
        what = f"{bad[0]} {name}: {describe(one)}"
        seen[bad[0]] += 1
        if n_bad <= a.show:
            print(f"{i} {what}\n   {bad[1]!r}\n   expected {bad[2]!r}\n   got      {bad[3]!r}")
        if a.keep:
            pathlib.Path(a.keep, f"{i}.json").write_text(json.dumps(one))
    print(f"seed {a.seed}: {a.n} combinations, {n_bad} differ {dict(seen)}")
    return 1 if n_bad else 0


if __name__ == "__main__":
    sys.exit(main())
