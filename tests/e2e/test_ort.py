"""ONNX Runtime as a backend and ORT-GenAI as an arm: the same tokens as both libraries driven from Python, the cache's ways
back, graphs that oxgen's own kernels do not run, and every way in which a library can be missing.

usage: test_ort.py --oxgen BIN     (environment OXGEN_TEST_MODEL = SmolLM2 GGUF; onnxruntime and onnxruntime-genai in this
Python's environment)
"""
import argparse, json, os, shutil, signal, struct, subprocess, sys, tempfile, time
import numpy as np
import onnxruntime as ort

import onnx_decoder, ort_graphs, tiny_models

p = argparse.ArgumentParser()
p.add_argument('--oxgen', required=True)
a = p.parse_args()
BIN = os.path.abspath(a.oxgen)
LIB = os.path.join(os.path.dirname(BIN), 'liboxgen.so')
HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = os.environ.get('OXGEN_TEST_MODEL', '')
ENV = {k: v for k, v in os.environ.items() if not k.startswith('OXGEN_') and k not in ('VIRTUAL_ENV', 'CONDA_PREFIX')}
VENV = dict(ENV, VIRTUAL_ENV=sys.prefix)
passed = failed = 0


def check(name, ok, detail=''):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    print(('ok   ' if ok else 'FAIL ') + name + (f': {detail}' if detail != '' and not ok else ''), flush=True)


def oxgen(*argv, env=VENV, stdin=None):
    return subprocess.run([BIN, *map(str, argv)], capture_output=True, text=True, timeout=280, env=env, input=stdin)


def refused(name, r, code, *words):
    """One line on stderr, that exit code, those words."""
    lines = r.stderr.strip().split('\n')
    check(name, r.returncode == code and len(lines) == 1 and lines[0].startswith('oxgen: ') and r.stdout == '' and
          all(w in r.stderr for w in words), (r.returncode, r.stderr[-400:], words))


def lib(*argv, env=VENV):
    r = subprocess.run([sys.executable, os.path.join(HERE, 'oxlib.py'), LIB, *map(str, argv)], capture_output=True, text=True,
                       timeout=280, env=env)
    return json.loads(r.stdout) if r.returncode == 0 else {'status': r.returncode, 'error': r.stderr[-400:]}


def generate(model, ids, n, backend, *more):
    r = oxgen('generate', model, '--ids', ','.join(map(str, ids)), '-n', n, '--greedy', '--ignore-eos', '--json', '-t', 1,
              '--backend', backend, *more)
    return json.loads(r.stdout)['ids'] if r.returncode == 0 else r.stderr


def logits(model, ids, *more):
    with tempfile.TemporaryDirectory() as d:
        r = oxgen('logits', model, '--ids', ','.join(map(str, ids)), '-o', d + '/l.npy', '-t', 1, *more)
        return np.load(d + '/l.npy') if r.returncode == 0 else np.full((1, 1), np.nan) * print(r.stderr)


def genai(folder, ids, n):
    """ONNX Runtime GenAI from Python, end of text ignored: its tokens, in a process of its own."""
    code = f'''
import json, onnxruntime_genai as og
c = og.Config({folder!r}); c.overlay(json.dumps({{"model": {{"eos_token_id": 259}}}})); m = og.Model(c)
p = og.GeneratorParams(m); p.set_search_options(max_length={len(ids) + n}, do_sample=False)
g = og.Generator(m, p); g.append_tokens({ids}); out = []
while len(out) < {n} and not g.is_done():
    g.generate_next_token(); out.append(int(g.get_next_tokens()[0]))
print(json.dumps(out))'''
    r = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, timeout=120)
    return json.loads(r.stdout) if r.returncode == 0 else r.stderr[-300:]


# --- models --------------------------------------------------------------------------------------

def make_folders(d):
    hf = tiny_models.hf_folder(d + '/hf')
    out = {}
    for name, more in (('f32', ('--quant', 'f32', '--head-bits', 16)), ('int4', ('--quant', 'int4', '--accuracy', 0)), ('int8', ('--quant', 'int8', '--accuracy', 0)),
                       ('f16', ('--quant', 'f16', '--head-bits', 16, '--io', 'f16'))):
        r = oxgen('convert', hf, '-o', f'{d}/{name}', *more, '--quiet')
        check(f'convert {name}', r.returncode == 0, r.stderr)
        out[name] = f'{d}/{name}'
    return hf, out


IDS = [5, 60, 33, 119, 7, 250, 81]


def parity(folders):
    for name, folder in folders.items():
        n = 40
        native, on_ort = generate(folder, IDS, n, 'native', '--numerics', 'exact'), generate(folder, IDS, n, 'ort')
        check(f'{name}: native and ort give the same {n} tokens', native == on_ort, (native, on_ort))
        if name == 'f16':
            continue  # ORT-GenAI's CPU build wants float32 ports
        arm = lib('oga', folder, n, ','.join(map(str, IDS)))
        check(f'{name}: oga gives the same {n} tokens', arm.get('ids') == on_ort, arm.get('error') or (arm['ids'], on_ort))
    arm = lib('oga', folders['f32'], 12, ','.join(map(str, IDS)))
    python = genai(folders['f32'], IDS, 12)
    check('oga: the tokens of the library driven from Python', arm['ids'] == python, (arm['ids'], python))
    check('oga: a time for every token, in order', len(arm['ns']) == 12 and sorted(arm['ns']) == arm['ns'] and 0 < arm['prompt_ns'] <= arm['ns'][0])
    check('oga: logits before every choice', [int(np.argmax(r)) for r in arm['logits']] == arm['ids'])
    check('oga: positions of the logits', arm['positions'] == list(range(len(IDS) - 1, len(IDS) + 11)), arm['positions'])
    mine = logits(folders['f32'], IDS + arm['ids'][:-1], '--backend', 'ort')[len(IDS) - 1:]
    check("oga: its logits are ort's", onnx_decoder.difference(np.array(arm['logits']), mine) < 1e-5)
    check('oga: threads and end of text are laid over the config', arm['settings']['model']['decoder']['session_options'] == {'intra_op_num_threads': 1} and
          arm['settings']['model']['eos_token_id'] == tiny_models.VOCAB - 1, arm['settings'])
    forced = [9, 8, 7, 6]
    arm = lib('oga', folders['f32'], 4, ','.join(map(str, IDS)), ','.join(map(str, forced)))
    mine = logits(folders['f32'], IDS + forced[:-1], '--backend', 'ort')[len(IDS) - 1:]
    check('oga: forced tokens give their logits', arm['ids'] == forced and onnx_decoder.difference(np.array(arm['logits']), mine) < 1e-5, arm)
    arm = lib('oga', folders['f32'], 60, ','.join(map(str, IDS)))
    check('oga: more than the context is an error, not a crash', arm['status'] != 0 and 'max_length' in arm['error'], arm.get('error'))


def same_as_python(folders):
    """Bit for bit what onnxruntime gives from Python for the whole prompt; near it in pieces."""
    for name in ('f32', 'int4', 'int8', 'f16'):
        want = onnx_decoder.logits(folders[name], IDS)
        check(f'{name}: logits have the bits of onnxruntime', np.array_equal(logits(folders[name], IDS, '--backend', 'ort'), want))
        for chunk in (1, 3):
            off = onnx_decoder.difference(logits(folders[name], IDS, '--backend', 'ort', '--chunk', chunk), want)
            check(f'{name}: chunks of {chunk}', off < (5e-3 if name == 'f16' else 1e-5), off)


def odd_decoders(d):
    made = {'concat': ort_graphs.concat_decoder(d + '/concat'), 'half': ort_graphs.concat_decoder(d + '/half', half=True),
            'last': ort_graphs.concat_decoder(d + '/last', last_only=True), 'state': ort_graphs.state_decoder(d + '/state')}
    session = ort.InferenceSession(made['state'] + '/model.onnx', providers=['CPUExecutionProvider'])
    want = session.run(['logits'], {'input_ids': np.array([IDS], np.int64), 'past_recurrent.0': np.zeros((1, 1, ort_graphs.HIDDEN), np.float32)})[0][0]
    check('recurrent state: logits have the bits of onnxruntime', np.array_equal(logits(made['state'], IDS, '--backend', 'ort'), want))
    check('recurrent state: one at a time', onnx_decoder.difference(logits(made['state'], IDS, '--backend', 'ort', '--chunk', 1), want) < 1e-5)
    full = logits(made['concat'], IDS, '--backend', 'ort')
    native = logits(made['concat'], IDS, '--numerics', 'exact')
    check('concat: the interpreter agrees', onnx_decoder.difference(full, native) < 1e-5)
    check('concat: float16 ports', onnx_decoder.difference(logits(made['half'], IDS, '--backend', 'ort'), full) < 2e-2)
    check('last token only: every position by single steps', onnx_decoder.difference(logits(made['last'], IDS, '--backend', 'ort'), full) < 1e-5)
    check('last token only: generation', generate(made['last'], IDS, 20, 'ort') == generate(made['concat'], IDS, 20, 'ort'))
    other = ort_graphs.concat_decoder(d + '/other', positions='cache_position', extra=[('past_sequence_length', 6), ('num_logits_to_keep', 7)])
    r = oxgen('logits', other, '--ids', '1,2,3', '--backend', 'ort')
    check('inputs of other exporters are fed', r.returncode == 0, r.stderr)
    strange = ort_graphs.concat_decoder(d + '/strange', strange=True)
    refused("an operator that oxgen does not have, on oxgen's own", oxgen('logits', strange, '--ids', '1,2', '--backend', 'native'), 3, 'Inverse')
    check('the same on ONNX Runtime', onnx_decoder.difference(logits(strange, IDS, '--backend', 'ort'), full) < 1e-5)
    unknown = ort_graphs.concat_decoder(d + '/unknown', extra=[('temperature_of_the_sea', 1)])
    refused('an input without a role', oxgen('logits', unknown, '--ids', '1,2', '--backend', 'ort'), 3, 'temperature_of_the_sea')
    return made


def ways_back(folders, made):
    for name, folder, tolerance in (('f32', folders['f32'], 1e-5), ('int4', folders['int4'], 1e-5), ('f16', folders['f16'], 5e-3), ('concat', made['concat'], 1e-5),
                                    ('half', made['half'], 5e-3), ('state', made['state'], 1e-5), ('last', made['last'], 1e-5)):
        for backend in ('ort', 'ort:caches=library'):
            r = lib('session', folder, backend, ','.join(map(str, IDS + [44, 45])))
            if 'error' in r:
                check(f'{name}: {backend}: sessions', False, r['error'])
                continue
            plain = np.array(r['plain'])
            for way, row in r.items():
                off = onnx_decoder.difference(np.array(row), plain)
                same = way in ('rewound', 'rewound to 0', 'forked', 'back from far') and name != 'state' and backend == 'ort'
                check(f'{name}: {backend}: a session that is {way}', off == 0 if same else off < tolerance, off)


def plain_graphs(d):
    for name, (path, feeds) in ort_graphs.plain_graphs(d + '/plain').items():
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        session = ort.InferenceSession(path, options, providers=['CPUExecutionProvider'])
        want = dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))
        args = []
        for k, v in feeds.items():
            np.save(f'{d}/{k}.npy', v)
            args += ['--in', f'{k}={d}/{k}.npy']
        r = oxgen('forward', path, '--backend', 'ort', '-t', 1, *args, '-o', f'{d}/out')
        got = {k: np.load(f'{d}/out/{k}.npy') for k in want} if r.returncode == 0 else {}
        check(f'forward {name}', got and all(np.array_equal(got[k], v) and got[k].dtype == v.dtype for k, v in want.items()), r.stderr)
    path = ort_graphs.plain_graphs(d + '/plain')['matmul'][0]
    refused('forward: a missing input', oxgen('forward', path, '--backend', 'ort', '--in', f'a={d}/a.npy'), 1, 'ONNX Runtime')
    refused('forward: an input that is not there', oxgen('forward', path, '--backend', 'ort', '--in', f'zz={d}/a.npy'), 2, 'zz')
    with open(d + '/broken.onnx', 'wb') as f:
        f.write(open(path, 'rb').read()[:60])
    refused('forward: a damaged graph', oxgen('forward', d + '/broken.onnx', '--backend', 'ort'), 3, 'broken.onnx')


# --- commands and options ------------------------------------------------------------------------

def commands(hf, folders, d):
    f32 = folders['f32']
    text = 'hello he said, and the hills were ' * 12
    with open(d + '/text', 'w') as f:
        f.write(text)
    nll = [json.loads(oxgen('perplexity', f32, '--file', d + '/text', '--context', 32, '--json', '--backend', b, *m).stdout)['nll']
           for b, m in (('native', ('--numerics', 'exact')), ('ort', ()))]
    check('perplexity agrees', abs(nll[0] - nll[1]) < 1e-4, nll)
    lines = 'hello\nwhat is he\n'
    r = [oxgen('run', f32, '-n', 8, '--greedy', '--backend', b, *m, stdin=lines).stdout for b, m in (('native', ('--numerics', 'exact')), ('ort', ()))]
    check('a conversation agrees', r[0] == r[1] and r[0], r)
    bench = json.loads(oxgen('bench', f32, '--backend', 'ort', '-p', 8, '-n', 8, '-r', 2, '-t', 1, '--json').stdout)
    check('bench measures', all(m['median'] > 0 and m['roof'] > 0 for m in bench['measurements']), bench)
    one = json.loads(oxgen('generate', f32, '--ids', '5,6', '-n', 2, '--json', '--backend', 'ort').stdout)
    check('generate --json names the backend', (one['backend'], one['device']) == ('ort', 'cpu'), one)
    sampled = ('--temperature', '0.8', '--seed', 7)
    check('sampling is the same engine', generate(f32, IDS, 12, 'ort', *sampled) == generate(f32, IDS, 12, 'native', '--numerics', 'exact', *sampled))
    for o in ('graph_optimization_level=disable', 'spinning=0', 'execution_mode=parallel', 'session.disable_prepacking=1', 'enable_cpu_mem_arena=0',
              'enable_mem_pattern=0', 'inter_op_num_threads=2', 'caches=library'):
        check(f'--ort-option {o}', generate(f32, IDS, 8, 'ort', '--ort-option', o) == generate(f32, IDS, 8, 'ort'))
    for o in ('spinning=2', 'graph_optimization_level=most', 'intra_op_num_threads=x', 'nosuch=1', 'novalue', '=3'):
        refused(f'--ort-option {o}', oxgen('generate', f32, 'hi', '--backend', 'ort', '--ort-option', o), 2, o)
    refused('--ort-option without the backend', oxgen('generate', f32, 'hi', '--ort-option', 'spinning=0'), 2, '--backend ort')
    refused('a provider that is not there', oxgen('generate', f32, 'hi', '--backend', 'ort', '--ort-option', 'provider=Toaster'), 5, 'Toaster', 'CPUExecutionProvider')
    refused('--device cuda without CUDA', oxgen('generate', f32, 'hi', '--backend', 'ort', '--device', 'cuda'), 5, 'CUDA')
    refused('safetensors', oxgen('generate', hf, 'hi', '--backend', 'ort'), 3, 'oxgen convert')
    with open(d + '/tiny.gguf', 'wb') as f:
        f.write(tiny_models.gguf()[0])
    refused('a .gguf file', oxgen('generate', d + '/tiny.gguf', 'hi', '--backend', 'ort'), 3, 'oxgen convert')
    refused('plan', oxgen('plan', f32, '--backend', 'ort'), 3, 'no plan')
    r = oxgen('generate', f32, '--ids', '5,6', '-n', 2, '--backend', 'ort', '--kv', 'f16')
    check('flags without effect are said', r.returncode == 0 and '--kv f16' in r.stderr, r.stderr)
    r = oxgen('generate', f32, '--ids', '5,6,7', '-n', 6, '--backend', 'ort', '--profile')
    check('--profile: operator types and nodes', 'operator type' in r.stderr and 'GroupQueryAttention' in r.stderr and '100.0%' not in r.stderr.split('node')[0], r.stderr[:300])
    oxgen('generate', f32, '--ids', '5,6,7', '-n', 6, '--backend', 'ort', f'--profile={d}/trace.json')
    trace = json.load(open(d + '/trace.json'))
    check('--profile=F.json: a Chrome trace', any(e.get('cat') == 'Node' for e in trace))
    check('--profile leaves no other file', [f for f in os.listdir(d) if f.startswith('trace.json')] == ['trace.json'])
    oxgen('bench', f32, '--backend', 'ort', '-p', 8, '-n', 4, '-r', 1, f'--profile={d}/table.txt')
    check('--profile=F: the table', 'operator type' in open(d + '/table.txt').read())
    refused('--profile without the backend', oxgen('generate', f32, 'hi', '--profile'), 2, '--backend ort')
    inspect = json.loads(oxgen('inspect', f32, '--backend', 'ort', '--json').stdout)
    check('inspect asks ONNX Runtime', inspect['backends']['ort'] == f'runs on ONNX Runtime {ort.__version__}', inspect['backends'])
    inspect = json.loads(oxgen('inspect', f32, '--backend', 'ort', '--json', env=dict(ENV, PATH='/nonexistent')).stdout)
    check('inspect says that it is missing', inspect['backends']['ort'].startswith('missing: '), inspect['backends'])
    said = json.loads(oxgen('version', '--json').stdout)
    check('version names both libraries', said['onnxruntime']['version'] == ort.__version__ and 'CPUExecutionProvider' in said['onnxruntime']['providers'] and
          said['onnxruntime_genai']['version'] and os.path.exists(said['onnxruntime_genai']['path']), said)


def folder_settings(folder, d):
    own = d + '/own'
    shutil.copytree(folder, own)
    config = json.load(open(own + '/genai_config.json'))
    options = config['model']['decoder']['session_options']
    options.update({'graph_optimization_level': 'ORT_ENABLE_BASIC', 'enable_mem_pattern': False, 'session.disable_prepacking': '1', 'intra_op_num_threads': 3,
                    'custom_ops_library': '/nonexistent.so', 'session.load_model_format': 'ORT'})
    json.dump(config, open(own + '/genai_config.json', 'w'))
    want = {'intra_op_num_threads': '1', 'graph_optimization_level': 'ORT_ENABLE_BASIC', 'enable_mem_pattern': '0', 'session.disable_prepacking': '1'}
    check("the folder's own settings are followed, as far as they may", lib('settings', own, 'ort') == want, lib('settings', own, 'ort'))
    r = lib('settings', own, 'ort:graph_optimization_level=all')
    check("the user's settings win", r == dict(want, graph_optimization_level='all'), r)
    options['graph_optimization_level'] = 'MOST'
    json.dump(config, open(own + '/genai_config.json', 'w'))
    refused('a setting that does not exist', oxgen('generate', own, 'hi', '--backend', 'ort'), 3, 'genai_config.json', 'MOST')


def interrupted(folder):
    q = subprocess.Popen([BIN, 'bench', folder, '-p', ','.join(['48'] * 8), '-n', '48', '-r', '200', '--backend', 'ort', '-t', '1'], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, env=VENV)
    time.sleep(2)
    check('a long run runs', q.poll() is None, q.returncode)
    q.send_signal(signal.SIGINT)
    start = time.time()
    try:
        q.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        q.kill()
    check('Ctrl-C ends it', q.returncode == 130 and time.time() - start < 15, q.returncode)


# --- the libraries -------------------------------------------------------------------------------

FAKE = r'''
typedef struct { const void *(*api)(unsigned); const char *(*version)(void); } base;
static void *ok(void) { return 0; }
static void *table[400];
static const void *api(unsigned v) { (void)v; for (int i = 0; i < 400; i++) table[i] = (void *)ok; return HAVE ? table : 0; }
static const char *version(void) { return VERSION; }
static base b = {api, version};
__attribute__((visibility("default"))) const base *NAME(void) { return BASE ? &b : 0; }
'''


def fake(path, version='1.32.0', have=1, name='OrtGetApiBase', base=1):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    r = subprocess.run(['gcc', '-shared', '-fPIC', '-w', '-x', 'c', '-', '-o', path, f'-DVERSION="{version}"', f'-DHAVE={have}', f'-DNAME={name}', f'-DBASE={base}'],
                       input=FAKE, text=True)
    assert r.returncode == 0
    return path


def patched(src, dst, at, value):
    b = bytearray(open(src, 'rb').read())
    b[at:at + len(value)] = value
    with open(dst, 'wb') as f:
        f.write(b)
    return dst


def missing_libraries(folder, d):
    capi = 'lib/python3.9/site-packages/onnxruntime/capi/libonnxruntime.so'
    good = fake(d + '/fake/good.so')
    run = lambda env: oxgen('generate', folder, 'hello', '--backend', 'ort', env=env)
    files = {'too old': (fake(d + '/fake/old.so', '1.16.3'), ('1.16.3', 'too old', '1.20')),
             'too new': (fake(d + '/fake/new.so', '2.0.0'), ('2.0.0', 'newer')),
             'no table': (fake(d + '/fake/none.so', '1.25.0', have=0), ('1.25.0', 'interface')),
             'no base': (fake(d + '/fake/base.so', base=0), ('not ONNX Runtime',)),
             'odd version': (fake(d + '/fake/odd.so', 'banana'), ('banana',)),
             'another library': (fake(d + '/fake/other.so', name='Other'), ('not ONNX Runtime', 'OrtGetApiBase')),
             'for another machine': (patched(good, d + '/fake/arm.so', 18, struct.pack('<H', 183)), ('aarch64', 'x86-64')),
             'for 32 bits': (patched(good, d + '/fake/32.so', 4, b'\1'), ('32 bits',)),
             'not there': (d + '/fake/absent.so', ('no such file', 'OXGEN_ORT_LIB')),
             'a folder': (d, ('no such file',))}
    for size in (0, 3, 64, 200, 6000):
        with open(f'{d}/fake/cut{size}.so', 'wb') as f:
            f.write(open(good, 'rb').read()[:size])
        files[f'cut to {size} bytes'] = (f'{d}/fake/cut{size}.so', ('damaged',))
    with open(d + '/fake/text.so', 'w') as f:
        f.write('this is no library\n' * 20)
    files['a text'] = (d + '/fake/text.so', ('no shared library',))
    files['segments outside'] = (patched(good, d + '/fake/segments.so', 32, struct.pack('<Q', 1 << 60)), ('damaged',))
    files['zeros behind the header'] = (patched(good, d + '/fake/zeros.so', 64, bytes(6000)), (d,))
    for name, (path, words) in files.items():
        refused(f'ONNX Runtime {name}', run(dict(ENV, OXGEN_ORT_LIB=path)), 5, *words)
        r = oxgen('version', env=dict(ENV, OXGEN_ORT_LIB=path))
        check(f'version: ONNX Runtime {name}', r.returncode == 0 and all(w in r.stdout for w in words), r.stdout)
    nowhere = dict(ENV, PATH='/nonexistent')
    refused('no ONNX Runtime anywhere', run(nowhere), 5, 'there is no ONNX Runtime', 'OXGEN_ORT_LIB')
    for v in ('1.30.0', '1.31.0'):
        fake(f'{d}/two/{capi}.{v}', v)
    refused('ONNX Runtime there twice', run(dict(ENV, VIRTUAL_ENV=d + '/two')), 5, 'twice', 'OXGEN_ORT_LIB')
    fake(f'{d}/linked/{capi}.1.22.0', '1.22.0')
    os.symlink('libonnxruntime.so.1.22.0', f'{d}/linked/{capi}')
    r = oxgen('version', env=dict(ENV, VIRTUAL_ENV=d + '/linked'))
    check('a link beside the file is not a second one', 'onnxruntime: 1.22.0' in r.stdout, r.stdout)
    real = os.path.join(os.path.dirname(ort.__file__), 'capi')
    os.makedirs(d + '/bin')
    os.makedirs(d + '/lib/python3.9/site-packages/onnxruntime')
    os.symlink('/bin/true', d + '/bin/python3')
    os.symlink(real, d + '/lib/python3.9/site-packages/onnxruntime/capi')
    r = oxgen('version', env=dict(ENV, PATH=d + '/bin'))
    check('the python3 of PATH tells the environment', f'onnxruntime: {ort.__version__}' in r.stdout, r.stdout)
    arm = lambda env: lib('oga', folder, 2, '5,6', env=env)
    exact = dict(VENV, OXGEN_OGA_LIB=d + '/fake/absent.so')
    check('no ORT-GenAI', arm(exact).get('status') == -6 and 'OXGEN_OGA_LIB' in arm(exact)['error'], arm(exact))
    other = arm(dict(VENV, OXGEN_OGA_LIB=good))
    check('a library that is not ORT-GenAI', other.get('status') == -6 and 'OgaShutdown' in other['error'], other)
    old = arm(dict(VENV, OXGEN_ORT_LIB=fake(d + '/fake/22.so', '1.22.0')))
    check('ONNX Runtime too old for ORT-GenAI', old.get('status') == -6 and '1.31' in old['error'], old)
    check('ORT-GenAI without ONNX Runtime', arm(dict(nowhere, OXGEN_OGA_LIB=d + '/fake/text.so')).get('status') == -6)


def leaks(folder):
    r = lib('leak', folder, 'ort', 24)
    grown = r['resident'][-1] - r['resident'][8] if 'resident' in r else None
    check('opening and closing does not grow', grown is not None and grown < 3 << 20, grown if grown is not None else r)


def real_model(d):
    if not MODEL:
        return
    r = oxgen('convert', MODEL, '-o', d + '/real', '--accuracy', 0, '--quiet')
    check('convert the real model', r.returncode == 0, r.stderr)
    prompt, n = '504,3575,282,4649,314', 10
    native = json.loads(oxgen('generate', d + '/real', '--ids', prompt, '-n', n, '--greedy', '--ignore-eos', '--json', '--numerics', 'exact').stdout)['ids']
    on_ort = json.loads(oxgen('generate', d + '/real', '--ids', prompt, '-n', n, '--greedy', '--ignore-eos', '--json', '--backend', 'ort', '-t', 1).stdout)['ids']
    arm = lib('oga', d + '/real', n, prompt)
    check(f'real model: three engines, {n} tokens', native == on_ort == arm.get('ids'), (native, on_ort, arm.get('ids') or arm.get('error')))


def main():
    with tempfile.TemporaryDirectory() as d:
        hf, folders = make_folders(d)
        parity(folders)
        same_as_python(folders)
        made = odd_decoders(d)
        ways_back(folders, made)
        plain_graphs(d)
        commands(hf, folders, d)
        folder_settings(folders['f32'], d)
        interrupted(folders['f32'])
        missing_libraries(folders['f32'], d)
        leaks(folders['f32'])
        real_model(d)
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


sys.exit(main())
