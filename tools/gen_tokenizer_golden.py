#!/usr/bin/env python3
"""Writes tests/data/tokenizers/golden.json: small tokenizers of every kind with the ids and texts
that the `tokenizers` library gives for them. src/text/tokenizer_test.c replays the file.

usage: gen_tokenizer_golden.py            (needs: pip install tokenizers==0.23.*)

Characters newer than Unicode 9 are left out of the texts: the library's parts disagree about them.
"""
import json
import pathlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers as pre
from tokenizers import processors, trainers

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests/data/tokenizers/golden.json"

TEXTS = [
    "", "a", " ", "Hello, world!  It's 2024\u2026 ", "  two  spaces\n\n\tand\r\n lines \n",
    "def f(x):\n    return x+1 # don't WE'LL", "\u4f60\u597d\uff0c\u4e16\u754c\uff01 \u65e5\u672c\u8a9e\u30c6\u30ad\u30b9\u30c8",
    "1234567 \u00bd \u0663\u0664 3.14", "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea x\ufe0f",
    "e\u0301 \u00e9 n\u0303a\u0301\u0327 \u1e9e \u0130 \u017f \ufb01 \u00c5 \ud55c\uad6d\uc5b4",
    "\x00\x01\x7f\u0085\u00a0\u200b\ufeff\u180e\u2028", "<s>hi</s> <tok> <x>y<x>z <s> <TOK>",
    "\u2581a \u2581 \u0120b <0x41>", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "(a)[b]{c}=>d;//e\\f \"g\" 'h' $5 <=> ^_^ ~",
]
CORPUS = TEXTS[3:9] * 4 + [
    "the quick brown fox jumps over the lazy dog and the cat", "Hello hello world the there then them",
    "it's what they've said, isn't it? 12 123 1234", "\u4f60\u597d\u4e16\u754c \u4f60\u597d", "aaaa aaa aa a",
]


def byte_alphabet():
    return sorted(pre.ByteLevel.alphabet())


def byte_bpe(n=420, **options):
    t = Tokenizer(models.BPE(**options))
    t.pre_tokenizer = pre.ByteLevel(add_prefix_space=False)
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=n, initial_alphabet=byte_alphabet(), show_progress=False))
    return json.loads(t.to_str())["model"] | {k: v for k, v in options.items()}


def bytes_only():
    """Ids show the bytes: for normalizers, and for pieces when a space is put before each."""
    return {"type": "BPE", "vocab": {c: i for i, c in enumerate(byte_alphabet())}, "merges": []}


def trained_bpe(prefix=None, suffix=None, n=120, **options):
    t = Tokenizer(models.BPE(unk_token="<unk>", **options))
    t.pre_tokenizer = pre.Whitespace()
    extra = {"continuing_subword_prefix": prefix, "end_of_word_suffix": suffix}
    extra = {k: v for k, v in extra.items() if v}
    ascii_only = ["".join(c for c in x if ord(c) < 128) for x in CORPUS]
    t.train_from_iterator(ascii_only, trainers.BpeTrainer(vocab_size=n, special_tokens=["<unk>"], show_progress=False, **extra))
    return json.loads(t.to_str())["model"] | options


def spm_bpe():
    """Metaspace vocabulary with byte tokens."""
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.Replace(" ", "\u2581")
    ascii_only = ["".join(c for c in x if ord(c) < 128) for x in CORPUS]
    t.pre_tokenizer = pre.Split("\u2581", "merged_with_next")
    t.train_from_iterator(ascii_only, trainers.BpeTrainer(vocab_size=150, show_progress=False))
    m = json.loads(t.to_str())["model"]
    names = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256)]
    vocab = {x: i for i, x in enumerate(names)}
    for x in sorted(m["vocab"], key=m["vocab"].get):
        vocab.setdefault(x, len(vocab))
    return {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True, "vocab": vocab, "merges": m["merges"]}


def unigram(**options):
    t = Tokenizer(models.Unigram())
    t.pre_tokenizer = pre.Metaspace()
    ascii_only = ["".join(c for c in x if ord(c) < 128) for x in CORPUS]
    t.train_from_iterator(ascii_only, trainers.UnigramTrainer(vocab_size=130, special_tokens=["<unk>", "<s>"], unk_token="<unk>", show_progress=False))
    m = json.loads(t.to_str())["model"]
    for pair in m["vocab"]:
        pair[1] = round(pair[1], 4)
    if options.get("byte_fallback"):
        m["vocab"] += [["<0x%02X>" % b, -9.5] for b in range(256)]
    return m | options


def words(kind):
    seen = {"[UNK]": 0}
    for x in CORPUS:
        for w, _ in pre.BertPreTokenizer().pre_tokenize_str(x.lower()):
            seen.setdefault(w, len(seen))
            if kind == "WordPiece":
                for k in range(1, len(w)):
                    seen.setdefault("##" + w[k:], len(seen))
    keep = dict(list(seen.items())[:150])
    if kind == "WordLevel":
        return {"type": kind, "unk_token": "[UNK]", "vocab": keep}
    return {"type": kind, "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 20, "vocab": keep}


def part(x):
    return json.loads(x.__getstate__())


def charsmap():
    """A double array for: e with acute (2 bytes) -> "e", fi ligature -> "fi", U+3000 -> " "."""
    import base64
    import struct
    keys = {"\u00e9".encode(): 0, "\ufb01".encode(): 2, "\u3000".encode(): 5}
    blob = b"e\0fi\0 \0"
    units = {0: [0, False, 0]}
    used = {0}
    arrays = {}

    def place(prefix):
        labels = sorted({k[len(prefix)] for k in keys if k.startswith(prefix) and len(k) > len(prefix)} |
                        ({0} if prefix in keys else set()))
        base = 256
        while any((base ^ c) in used for c in labels):
            base += 256
        arrays[prefix] = base
        for c in labels:
            used.add(base ^ c)
        for c in labels:
            if c:
                place(prefix + bytes([c]))

    place(b"")
    size = max(used) + 1
    size = (size + 255) // 256 * 256
    table = [0] * size

    def offset_bits(position, base):
        off = position ^ base
        return off << 10 if off < 1 << 21 else (off >> 8) << 10 | 1 << 9

    table[0] = offset_bits(0, arrays[b""])
    for prefix, base in arrays.items():
        labels = {k[len(prefix)] for k in keys if k.startswith(prefix) and len(k) > len(prefix)}
        for c in labels:
            child = prefix + bytes([c])
            position = base ^ c
            table[position] = c | offset_bits(position, arrays[child]) | (1 << 8 if child in keys else 0)
        if prefix in keys:
            table[base] = 1 << 31 | keys[prefix]
    trie = struct.pack("<%dI" % size, *table)
    return base64.b64encode(struct.pack("<I", len(trie)) + trie + blob).decode()


def cases():
    bl = part(pre.ByteLevel(add_prefix_space=False, use_regex=False))
    show = part(pre.ByteLevel(add_prefix_space=True, use_regex=False))
    bytes_decoder = part(decoders.ByteLevel())
    N, P = normalizers, pre
    norms = {
        "nfc": N.NFC(), "nfd": N.NFD(), "nfkc": N.NFKC(), "nfkd": N.NFKD(), "lowercase": N.Lowercase(),
        "strip": N.Strip(), "strip left": N.Strip(True, False), "strip right": N.Strip(False, True),
        "accents": N.Sequence([N.NFD(), N.StripAccents()]), "bert": N.BertNormalizer(),
        "bert plain": N.BertNormalizer(True, False, False, False), "nmt": N.Nmt(), "replace": N.Replace(" ", "_x"),
        "replace regex": N.Replace(Regex(r"\s{2,}|\d+"), "#"), "prepend": N.Prepend("\u2581"),
        "empty": N.Sequence([]),
    }
    for name, n in norms.items():
        yield f"normalizer {name}", dict(model="bytes", normalizer=part(n), pre_tokenizer=bl, decoder=bytes_decoder)
    yield "normalizer charsmap", dict(model="bytes", normalizer={"type": "Precompiled", "precompiled_charsmap": charsmap()}, pre_tokenizer=bl, decoder=bytes_decoder)
    yield "normalizer bytes", dict(model="bytes", normalizer=part(N.ByteLevel()), decoder=bytes_decoder)
    pres = {
        "bytes": P.ByteLevel(True), "punctuation": P.Punctuation(), "punctuation runs": P.Punctuation("contiguous"),
        "digits": P.Digits(True), "digit runs": P.Digits(False), "whitespace": P.Whitespace(), "space": P.WhitespaceSplit(),
        "bert": P.BertPreTokenizer(), "delimiter": P.CharDelimiterSplit("e"), "length": P.FixedLength(3),
        "scripts": P.UnicodeScripts(),
        "metaspace": P.Metaspace(), "metaspace first": P.Metaspace("\u2581", "first"), "metaspace never": P.Metaspace("\u2581", "never"),
        "metaspace whole": P.Metaspace("\u2581", "always", split=False),
        "literal next": P.Split("a", "merged_with_next"),
        "border": P.Split(Regex(r"\b"), "isolated"), "han": P.Split(Regex(r"[\p{L}&&[^\p{Han}]]+"), "isolated"),
        "thousands": P.Split(Regex(r"\d{1,3}(?=(?:\d{3})*\b)"), "isolated"), "repeat": P.Split(Regex(r"\p{N}{1,2}+"), "isolated"),
        "fold": P.Split(Regex(r"(?i:'s|'ll|s)"), "isolated"), "not word": P.Split(Regex(r"[^\W\d]+|[\s\S]{3}"), "removed", True),
        "lines": P.Split(Regex(r"^.+$"), "merged_with_previous"), "hex": P.Split(Regex(r"\h+"), "contiguous"),
    }
    for behavior in ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]:
        for invert in (False, True):
            pres[f"{behavior} {invert}"] = P.Split(Regex(r"\w+|[^\w\s]"), behavior, invert)
    for name, p in pres.items():
        yield f"pre-tokenizer {name}", dict(model="bytes", pre_tokenizer={"type": "Sequence", "pretokenizers": [part(p), show]}, decoder=bytes_decoder)
    yield "byte-level bpe", dict(model="byte bpe", pre_tokenizer=part(P.ByteLevel(False)), decoder=bytes_decoder)
    yield "byte-level bpe, whole pieces", dict(model="byte bpe whole", pre_tokenizer=part(P.ByteLevel(False)), decoder=bytes_decoder)
    added = [AddedToken("<s>", special=True, normalized=False), AddedToken("</s>", special=True, normalized=False),
             AddedToken("<tok>", normalized=True, lstrip=True), AddedToken("<x>", single_word=True, normalized=False, rstrip=True)]
    added = [{"id": 0} | json.loads("{}") | {k: getattr(a, k) for k in ("content", "single_word", "lstrip", "rstrip", "normalized", "special")} for a in added]
    template = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}],
                "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}, "</s>": {"id": "</s>", "ids": [2], "tokens": ["</s>"]}}}
    metaspace_decoder = part(decoders.Metaspace())
    legacy = [part(decoders.Replace("\u2581", " ")), part(decoders.ByteFallback()), part(decoders.Fuse()), part(decoders.Strip(" ", 1, 0))]
    yield "spm, prepended", dict(model="spm", normalizer=part(N.Sequence([N.Prepend("\u2581"), N.Replace(" ", "\u2581")])),
                                 decoder={"type": "Sequence", "decoders": legacy}, post_processor=template, added_tokens=added)
    yield "spm, metaspace", dict(model="spm", pre_tokenizer=part(P.Metaspace("\u2581", "first", split=False)), decoder=metaspace_decoder,
                                 post_processor={"type": "Sequence", "processors": [part(processors.ByteLevel()), template]}, added_tokens=added)
    yield "added tokens, lowercase", dict(model="spm", normalizer=part(N.Lowercase()), decoder=metaspace_decoder, added_tokens=added)
    yield "unknowns", dict(model="unk", pre_tokenizer=part(P.Whitespace()))
    yield "fused unknowns", dict(model="unk fused", pre_tokenizer=part(P.Whitespace()))
    yield "word ends", dict(model="suffix", pre_tokenizer=part(P.Whitespace()), decoder=part(decoders.BPEDecoder()))
    yield "continuing pieces", dict(model="prefix", pre_tokenizer=part(P.BertPreTokenizer()), decoder=part(decoders.WordPiece()))
    yield "decoder with a pattern", dict(model="spm", pre_tokenizer=part(P.Metaspace()), decoder=part(decoders.Replace(Regex("[a-f\u2581]+|x*"), "-")))
    yield "unigram", dict(model="unigram", pre_tokenizer=part(P.Metaspace()), decoder=metaspace_decoder)
    yield "unigram with bytes", dict(model="unigram bytes", pre_tokenizer=part(P.Metaspace()), decoder={"type": "Sequence", "decoders": [part(decoders.ByteFallback()), metaspace_decoder]})
    yield "wordpiece", dict(model="wordpiece", normalizer=part(N.BertNormalizer()), pre_tokenizer=part(P.BertPreTokenizer()), decoder=part(decoders.WordPiece(cleanup=True)),
                            post_processor={"type": "BertProcessing", "sep": ["[UNK]", 0], "cls": ["the", 5]})
    yield "wordlevel", dict(model="wordlevel", normalizer=part(N.Lowercase()), pre_tokenizer=part(P.BertPreTokenizer()), decoder=part(decoders.CTC(pad_token="a", word_delimiter_token="the")))


def build(models_, case):
    whole = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
             "pre_tokenizer": None, "post_processor": None, "decoder": None} | case
    return Tokenizer.from_str(json.dumps(whole | {"model": models_[case["model"]]}))


def main():
    shared = {
        "bytes": bytes_only(), "byte bpe": byte_bpe(), "byte bpe whole": byte_bpe(330, ignore_merges=True), "spm": spm_bpe(),
        "unk": trained_bpe(), "unk fused": trained_bpe(fuse_unk=True), "suffix": trained_bpe(suffix="</w>"),
        "prefix": trained_bpe(prefix="##"), "unigram": unigram(), "unigram bytes": unigram(byte_fallback=True),
        "wordpiece": words("WordPiece"), "wordlevel": words("WordLevel"),
    }
    golden = []
    for name, case in cases():
        t = build(shared, case)
        results = []
        for x in TEXTS:
            t.encode_special_tokens = False
            with_special = t.encode(x).ids
            t.encode_special_tokens = True
            plain = t.encode(x, add_special_tokens=False).ids
            r = [with_special, plain if plain != with_special else 0]
            r += [t.decode(with_special, skip_special_tokens=False), t.decode(with_special, skip_special_tokens=True)]
            if r[3] == r[2]:
                r[3] = 0
            if r[2] == x:
                r[2] = 0
            results.append(r)
        golden.append({"name": name, "parts": case, "results": results})
    OUT.parent.mkdir(parents=True, exist_ok=True)
    rows = ",\n".join(json.dumps(g, ensure_ascii=False, separators=(",", ":")) for g in golden)
    head = ",\n".join(json.dumps(k) + ":" + json.dumps(v, ensure_ascii=False, separators=(",", ":")) for k, v in shared.items())
    OUT.write_text('{"texts":' + json.dumps(TEXTS, ensure_ascii=False) + ',\n"models":{\n' + head + '},\n"cases":[\n' + rows + "]}\n", encoding="utf-8")
    print(OUT, OUT.stat().st_size, "bytes,", len(golden), "cases")


if __name__ == "__main__":
    main()
