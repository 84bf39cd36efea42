"""The tokenizer of this tree behind a pipe (build/release/tools/text_bridge)."""
import struct
import subprocess


class Refused(Exception):
    pass


class Bridge:
    def __init__(self, program):
        self.p = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    @staticmethod
    def _text(b):
        return struct.pack("<I", len(b)) + b

    def _read(self, n):
        out = self.p.stdout.read(n)
        if len(out) != n:
            raise RuntimeError(f"text_bridge died with {self.p.wait()}")
        return out

    def _answer(self, has_text):
        status, = struct.unpack("<I", self._read(4))
        if status or has_text:
            body = self._read(struct.unpack("<I", self._read(4))[0])
        if status:
            raise Refused(body.decode(errors="replace"))
        return body if has_text else None

    def _send(self, b):
        self.p.stdin.write(b)
        self.p.stdin.flush()

    def open(self, tokenizer_json, config=b"", cached=False):
        """Milliseconds on the processor."""
        self._send((b"C" if cached else b"O") + self._text(tokenizer_json) + self._text(config))
        return float(self._answer(True))

    def encode(self, text, special=True, parse=True):
        self._send(b"E" + struct.pack("<I", special * 1 + parse * 2) + self._text(text))
        ids = self._answer(True)
        return list(struct.unpack(f"<{len(ids) // 4}i", ids))

    def encode_ranges(self, text, special=False, parse=True):
        self._send(b"R" + struct.pack("<I", special * 1 + parse * 2) + self._text(text))
        ids = self._answer(True)
        ranges = self._read(struct.unpack("<I", self._read(4))[0])
        flat = struct.unpack(f"<{len(ranges) // 4}I", ranges)
        return list(struct.unpack(f"<{len(ids) // 4}i", ids)), list(zip(flat[::2], flat[1::2]))

    def encode_many(self, texts, special=False, parse=True):
        """Ids of each text, as bytes."""
        self._send(b"M" + struct.pack("<I", special * 1 + parse * 2) + self._text(b"".join(map(self._text, texts))))
        answer, out, at = self._answer(True), [], 0
        for _ in texts:
            n, = struct.unpack_from("<I", answer, at)
            out.append(answer[at + 4:at + 4 + 4 * n])
            at += 4 + 4 * n
        return out

    def decode(self, ids, skip_special=True):
        self._send(b"D" + struct.pack("<I", skip_special) + self._text(struct.pack(f"<{len(ids)}i", *ids)))
        return self._answer(True)

    def bench(self, text, flags=2):
        """Ids, MB/s of encoding, million ids/s of decoding: the best of five."""
        self._send(b"B" + struct.pack("<I", flags) + self._text(text))
        ids, encode, decode = self._answer(True).split()
        return int(ids), float(encode), float(decode)

    def from_gguf(self, path):
        """tokenizer.json and tokenizer_config.json of a GGUF file."""
        self._send(b"G" + self._text(str(path).encode()))
        first = self._answer(True)
        return first, self._read(struct.unpack("<I", self._read(4))[0])

    def close(self):
        self.p.stdin.close()
        self.p.wait()
