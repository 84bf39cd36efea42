"""The capability table on models that differ on purpose: every cell runs, or says in one sentence why not.

usage: test_probe.py --oxgen BIN
"""
import argparse, json, os, shutil, subprocess, sys, tempfile

import onnx

import tiny_models as tm

p = argparse.ArgumentParser()
p.add_argument('--oxgen', required=True)
a = p.parse_args()
ENV = dict(os.environ, VIRTUAL_ENV=sys.prefix)
passed = failed = 0


def check(name, ok, detail=''):
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
    print(('ok   ' if ok else 'FAIL ') + name + (f': {detail}' if detail and not ok else ''), flush=True)


def oxgen(*argv, code=0):
    r = subprocess.run([a.oxgen, *map(str, argv)], capture_output=True, text=True, timeout=280, env=ENV)
    check(f'oxgen {argv[0]} exits {code}', r.returncode == code, f'{argv}: {r.returncode}: {r.stderr[-300:]}')
    return r


def write_gguf(path, tied=False):
    weights = tm.random_weights()
    if tied:
        del weights['output.weight']
    with open(path, 'wb') as f:
        f.write(tm.gguf(weights=weights)[0])
    return path


def edited(source, out, edit):
    """A copy of a folder whose graph was changed."""
    shutil.copytree(source, out)
    path = os.path.join(out, 'model.onnx')
    m = onnx.load(path, load_external_data=False)
    edit(m.graph)
    onnx.save(m, path)


def symbolic_head(g):
    for v in [*g.input, *g.output]:
        d = v.type.tensor_type.shape.dim
        if len(d) == 4:
            d[3].Clear()
            d[3].dim_param = 'kv_cache_dim'


def unknown_operator(g):
    head = next(n for n in g.node if 'logits' in n.output)
    head.output[:] = ['before' if o == 'logits' else o for o in head.output]
    g.node.append(onnx.helper.make_node('Telepathy', ['before'], ['logits'], domain='com.microsoft'))


def cut(path, n):
    with open(path, 'rb+') as f:
        f.truncate(n)


def make(folder):
    """{name: (path, states that the native arm may have)}"""
    at = lambda name: os.path.join(folder, name)
    gguf, tied = write_gguf(at('plain.gguf')), write_gguf(at('tied.gguf'), tied=True)
    models = {'gguf': (gguf, 'runs')}
    for name, source, flags in (('f32', gguf, '--quant f32'), ('f16', gguf, '--quant f16 --io f16'), ('bf16', gguf, '--quant bf16 --io bf16'),
                                ('int4', gguf, '--quant int4'), ('int4-asym', gguf, '--quant int4 --asym'), ('int8', gguf, '--quant int8'),
                                ('int4-head4', gguf, '--quant int4 --head-bits 4'), ('block16', gguf, '--quant int4 --block 16'),
                                ('tied', tied, '--quant int8'), ('accuracy0', gguf, '--quant int4 --accuracy 0')):
        oxgen('convert', source, '-o', at(name), '--quiet', *flags.split())
        models[name] = at(name), 'runs'
    shutil.copytree(at('f32'), at('no-config'))
    os.remove(at('no-config/genai_config.json'))
    models['no-config'] = at('no-config'), 'runs'
    edited(at('int4'), at('symbolic'), symbolic_head)
    models['symbolic'] = at('symbolic'), 'runs'
    edited(at('f32'), at('unknown-operator'), unknown_operator)
    models['unknown-operator'] = at('unknown-operator'), 'no'
    for name, file, n in (('cut-graph', 'model.onnx', 700), ('cut-config', 'genai_config.json', 100)):
        shutil.copytree(at('f32'), at(name))
        cut(os.path.join(at(name), file), n)
        models[name] = at(name), 'no'
    shutil.copytree(at('f32'), at('no-weights'))
    for f in os.listdir(at('no-weights')):
        if f.endswith('.data'):
            cut(os.path.join(at('no-weights'), f), 100)
    models['no-weights'] = at('no-weights'), 'no'
    os.mkdir(at('empty'))
    models['empty'] = at('empty'), 'no'
    models['absent'] = at('absent'), 'no'
    return models


with tempfile.TemporaryDirectory() as tmp:
    models = make(tmp)
    check('at least 12 different models', len(models) >= 12)
    paths = [path for path, _ in models.values()]
    rows = json.loads(oxgen('probe', *paths, '--arms', 'native,ort,oga', '-t', 1, '--json').stdout)['rows']
    check('models times arms', len(rows) == 3 * len(paths))
    by = {(r['model'], r['arm']): r for r in rows}
    for name, (path, state) in models.items():
        r = by[path, 'native']
        check(f'native, {name}: {state}', r['state'] == state, r)
        for arm in ('native', 'ort', 'oga'):
            r = by[path, arm]
            if r['state'] == 'runs':
                check(f'{arm}, {name}: eight tokens, no reason', r['tokens'] == 8 and r['reason'] is None and r['load_ms'] > 0, r)
            else:
                text = r['reason'] or ''
                check(f'{arm}, {name}: one sentence why not', r['state'] in ('loads', 'no') and 15 < len(text) < 640 and '\n' not in text and 'crash' not in text, r)
    for arm in ('ort', 'oga'):
        here = [r for r in rows if r['arm'] == arm and r['state'] == 'runs']
        missing = all('there is no' in (r['reason'] or '') for r in rows if r['arm'] == arm)
        check(f'{arm} runs the plain ones, or its library is missing', missing or len(here) >= 5, [(os.path.basename(r['model']), r['reason']) for r in rows if r['arm'] == arm])
    table = oxgen('probe', paths[0], paths[-1], '--arms', 'native').stdout.strip().split('\n')
    check('the table: a line a cell', len(table) == 2 and ' runs ' in table[0] and ' no ' in table[1], table)
    oxgen('probe', code=2)
    oxgen('probe', paths[0], '--arms', 'nonsense', code=2)
print(f'{passed} passed, {failed} failed')
raise SystemExit(failed > 0)
