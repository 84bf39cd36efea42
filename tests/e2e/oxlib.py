"""liboxgen through ctypes, in a process of its own: what no command of the program does (sessions that rewind and fork,
the ORT-GenAI arm). Prints one JSON object.

usage: oxlib.py LIBOXGEN session MODEL BACKEND ID,ID,...      oxlib.py LIBOXGEN oga FOLDER N_NEW ID,ID,... [FORCED,ID,...]
       oxlib.py LIBOXGEN leak MODEL BACKEND TIMES       oxlib.py LIBOXGEN settings MODEL BACKEND
"""
import ctypes as C
import json
import sys

P, SIZE, I32 = C.c_void_p, C.c_size_t, C.c_int32
FLOATS = C.POINTER(C.c_float)
LOGITS_FN = C.CFUNCTYPE(C.c_int, P, SIZE, FLOATS, SIZE)


class Err(C.Structure):
    _fields_ = [('status', C.c_int), ('where', C.c_char_p), ('msg', C.c_char * 1024)]


class ModelOptions(C.Structure):  # as far as it is needed: struct_size says so
    _fields_ = [('struct_size', C.c_uint32), ('n_threads', I32), ('context', C.c_int64), ('backend', C.c_char_p),
                ('device', C.c_char_p), ('numerics', C.c_char_p), ('kv', C.c_char_p), ('quant', C.c_char_p),
                ('quant_block', I32), ('quant_asym', I32), ('head_bits', I32), ('text_only', I32), ('progress', P),
                ('progress_user', P), ('ort_options', C.POINTER(C.c_char_p)), ('n_ort_options', SIZE)]


class OgaOptions(C.Structure):
    _fields_ = [('struct_size', C.c_uint32), ('n_threads', I32), ('device', C.c_char_p), ('ort_options', P),
                ('n_ort_options', SIZE)]


class OgaRequest(C.Structure):
    _fields_ = [('struct_size', C.c_uint32), ('prompt', C.POINTER(I32)), ('n_prompt', SIZE), ('n_new', SIZE),
                ('forced', C.POINTER(I32)), ('on_logits', LOGITS_FN), ('progress', P), ('user', P)]


class OgaTimes(C.Structure):
    _fields_ = [('prompt', C.c_uint64), ('end', C.c_uint64)]


def load(path):
    lib = C.CDLL(path)
    lib.ox_session_logits.restype = FLOATS
    lib.ox_session_length.restype = SIZE
    lib.ox_model_vocab.restype = C.c_int64
    lib.ox_session_kv_bytes.restype = C.c_uint64
    lib.ox_oga_session_json.restype = lib.ox_model_session_json.restype = C.c_char_p
    return lib


def ids_of(text):
    ids = [int(i) for i in text.split(',')]
    return (I32 * len(ids))(*ids), len(ids)


class Session:
    def __init__(self, lib, model, handle=None):
        self.lib, self.model, self.err = lib, model, Err()
        self.s = handle or P()
        if not handle:
            self.must(lib.ox_session_open(C.byref(self.s), model, C.byref(self.err)))

    def must(self, status):
        if status:
            raise SystemExit(f'status {status}: {self.err.msg.decode()}')

    def append(self, ids, chunk=0):
        a = (I32 * len(ids))(*ids)
        self.must(self.lib.ox_session_append(self.s, a, SIZE(len(ids)), SIZE(chunk), None, None, C.byref(self.err)))
        return list(self.lib.ox_session_logits(self.s)[:self.lib.ox_model_vocab(self.model)])

    def rewind(self, n):
        self.must(self.lib.ox_session_rewind(self.s, SIZE(n), C.byref(self.err)))

    def fork(self):
        f = P()
        self.must(self.lib.ox_session_fork(C.byref(f), self.s, C.byref(self.err)))
        return Session(self.lib, self.model, f)

    def close(self):
        self.lib.ox_session_close(C.byref(self.s))


def open_model(lib, path, backend):
    backend, *options = backend.split(':')  # ort:K=V:K=V
    o = ModelOptions(struct_size=C.sizeof(ModelOptions), n_threads=1, backend=backend.encode(), n_ort_options=len(options),
                     ort_options=(C.c_char_p * len(options))(*[x.encode() for x in options]))
    m, err = P(), Err()
    if lib.ox_model_open(C.byref(m), path.encode(), C.byref(o), C.byref(err)):
        raise SystemExit(err.msg.decode())
    return m


def session(lib, path, backend, ids):
    """Logits of one token after the same history, reached in different ways."""
    m = open_model(lib, path, backend)
    history, last, other = ids[:-1], ids[-1:], [(i + 1) % 200 + 3 for i in ids]
    out = {}
    plain = Session(lib, m)
    plain.append(history)
    out['plain'] = plain.append(last)
    plain.close()
    for name, chunk in (('ones', 1), ('threes', 3)):
        s = Session(lib, m)
        s.append(history, chunk)
        out[name] = s.append(last)
        s.close()
    s = Session(lib, m)
    s.append(history)
    s.append(other)
    s.rewind(len(history))
    out['rewound'] = s.append(last)
    s.rewind(2)
    s.append(history[2:])
    out['rewound to 2'] = s.append(last)
    s.rewind(0)
    s.append(history)
    out['rewound to 0'] = s.append(last)
    s.rewind(len(history))
    f = s.fork()
    s.append(other)
    out['forked'] = f.append(last)
    f.close()
    # far enough that a buffer has to grow, then back
    s.rewind(len(history))
    for i in range(400 // len(other)):
        if lib.ox_session_length(s.s) + len(other) < lib.ox_model_context(m):
            s.append(other)
    s.rewind(len(history))
    out['back from far'] = s.append(last)
    s.close()
    lib.ox_model_close(C.byref(m))
    return out


def oga(lib, folder, n_new, ids, forced=None):
    g, err, done, times = P(), Err(), SIZE(), OgaTimes()
    o = OgaOptions(C.sizeof(OgaOptions), 1, None, None, 0)
    if lib.ox_oga_open(C.byref(g), folder.encode(), C.byref(o), C.byref(err)):
        return {'status': err.status, 'error': err.msg.decode()}
    rows = []
    keep = LOGITS_FN(lambda user, position, row, n: rows.append((position, row[:n])) or 0)
    prompt, n = ids_of(ids)
    r = OgaRequest(C.sizeof(OgaRequest), prompt, n, n_new, ids_of(forced)[0] if forced else None, keep, None, None)
    new, ns = (I32 * n_new)(), (C.c_uint64 * n_new)()
    status = lib.ox_oga_run(g, C.byref(r), new, ns, C.byref(done), C.byref(times), C.byref(err))
    settings = json.loads(lib.ox_oga_session_json(g))
    lib.ox_oga_close(C.byref(g))
    return {'status': status, 'error': err.msg.decode(), 'ids': list(new)[:done.value], 'ns': list(ns)[:done.value],
            'prompt_ns': times.prompt, 'positions': [p for p, _ in rows], 'logits': [r for _, r in rows],
            'settings': settings}


def resident():
    with open('/proc/self/statm') as f:
        return int(f.read().split()[1]) * 4096


def leak(lib, path, backend, times):
    sizes = []
    for _ in range(times):
        m = open_model(lib, path, backend)
        for _ in range(4):
            s = Session(lib, m)
            s.append([5, 6, 7, 8])
            s.close()
        lib.ox_model_close(C.byref(m))
        sizes.append(resident())
    return {'resident': sizes}


if __name__ == '__main__':
    library, what = load(sys.argv[1]), sys.argv[2]
    if what == 'session':
        result = session(library, sys.argv[3], sys.argv[4], [int(i) for i in sys.argv[5].split(',')])
    elif what == 'settings':
        result = json.loads(library.ox_model_session_json(open_model(library, sys.argv[3], sys.argv[4])))
    elif what == 'leak':
        result = leak(library, sys.argv[3], sys.argv[4], int(sys.argv[5]))
    else:
        result = oga(library, sys.argv[3], int(sys.argv[4]), *sys.argv[5:])
    json.dump(result, sys.stdout)
