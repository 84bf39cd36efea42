"""Contract of bench micro, bench diff and kernels --time. Nothing here asserts a time.

usage: test_bench.py --oxgen BIN
"""
import argparse, json, os, random, subprocess, sys, tempfile

p = argparse.ArgumentParser()
p.add_argument('--oxgen', required=True)
a = p.parse_args()
passed = failed = 0


def check(name, ok, detail=''):
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
    print(('ok   ' if ok else 'FAIL ') + name + (f': {detail}' if detail and not ok else ''), flush=True)


def oxgen(*argv, code=0, env=None):
    r = subprocess.run([a.oxgen, *map(str, argv)], capture_output=True, text=True, timeout=120,
                       env=dict(os.environ, **(env or {})))
    check(f'oxgen {" ".join(map(str, argv[:4]))} exits {code}', r.returncode == code, f'{r.returncode}: {r.stderr[-300:]}')
    return r


def public_names():
    """The rows of the public table, written out from its description."""
    for size, m, k, n in (('small', 1, 256, 256), ('medium', 32, 512, 512), ('large', 32, 1024, 1024)):
        for t in ('f32', 'f16', 'bf16'):
            for threads in (1, 8):
                yield f'matmul/{size}_generic_{t}_threads={threads}/{m}x{k}x{n}'
    for size, n in (('small', 4096), ('medium', 32768), ('large', 131072)):
        for t in ('f32', 'f16', 'bf16'):
            yield f'gather/{size}_{t}_threads=1-internal/{n}'
    for size, n in (('small', 1024), ('medium', 256 * 1024), ('large', 1024 * 4096)):
        for t in ('f32', 'f16', 'bf16'):
            yield f'add/{size}_{t}_threads=1-internal/{n}'
    for size, n in (('small', 4096), ('medium', 65536), ('large', 262144)):
        yield f'reduce_mean/{size}_f32_threads=1-internal/{n}'
    for what in ('uncached_dequant_each_call', 'preexpanded_dense_oncelock_like_proxy', 'cached_dense_repeated_call'):
        yield f'block_quantized_matmul_cached_dense/mxfp4_{what}/1x1024x1024'
    for what in ('uncached_expert_dequant_each_call', 'cached_dense_expert_repeated_call'):
        yield f'block_quantized_moe_cached_dense/mxfp4_{what}/rows=1,H=256,I=256,E=4,top_k=1'
    yield from ('tokenization/encode_tokens_per_second', 'tokenization/decode_tokens_per_second')
    for what in ('greedy', 'top_k', 'top_p', 'min_p'):
        yield f'sampling_latency/{what}_per_token'
    for what in ('top_k_full_sort_baseline', 'top_k_partial_selection', 'top_p_full_sort_after_top_k_baseline',
                 'top_p_fast_after_top_k', 'top_k_top_p_full_sort_baseline', 'top_k_top_p_fast'):
        yield f'qwen3_sampling_processors/{what}'
    yield from ('kv_cache/alloc_dealloc_pages', 'logit_processing/seven_processor_chain_per_step',
                'grammar_masking/llguidance_compute_mask/32')


def micro(tmp):
    r = json.loads(oxgen('bench', 'micro', '-r', 1, '--json').stdout)
    check('machine card', {'cpu', 'tier', 'cores', 'commit'} <= set(r['machine']), r['machine'])
    rows = {x['name']: x for x in r['rows']}
    check('names are unique', len(rows) == len(r['rows']))
    missing = [n for n in public_names() if n not in rows]
    check('every row of the public table is there', not missing, missing[:5])
    fields = {'name', 'unit', 'samples', 'median', 'iqr', 'roof', 'share', 'comparator', 'absent'}
    odd = [x['name'] for x in r['rows'] if not fields <= set(x) or x['comparator'] is not None or x['unit'] != 'ms']
    check('every row has every field', not odd, odd[:5])
    present = [x for x in r['rows'] if x['absent'] is None]
    absent = [x for x in r['rows'] if x['absent'] is not None]
    check('present rows have a sample and say what runs',
          all(len(x['samples']) == 1 and x['median'] > 0 and x['runs'] and x['work'] > 0 for x in present))
    check('a share belongs to a roof', all((x['roof'] is None) == (x['share'] is None) for x in present))
    check('absent rows have a reason and no numbers',
          absent and all(x['absent'] and x['samples'] == [] and x['median'] is None for x in absent))
    families = {x['family'] for x in json.loads(oxgen('kernels', '--json').stdout)['rows']} - {'probe'}
    lacking = [f for f in families if not any(n.startswith(f'oxgen/{f}/') for n in rows)]
    check('every kernel family has a row', not lacking, lacking)

    r = json.loads(oxgen('bench', 'micro', 'norm/', 'kv_cache/', '-r', 10, '--json').stdout)
    check('a filter takes the rows that hold any of its words',
          len(r['rows']) == 3 and all('norm/' in x['name'] or 'kv_cache/' in x['name'] for x in r['rows']),
          [x['name'] for x in r['rows']])
    check('samples come in rounds', all(x['rounds'] == [2] * 5 and len(x['samples']) == 10 for x in r['rows']))
    path = os.path.join(tmp, 'micro.json')
    json.dump(r, open(path, 'w'))
    comparators(tmp)
    r = oxgen('bench', 'micro', 'oxgen/norm/', '--runs', 3)
    check('--runs measures nothing', r.stdout == '')
    oxgen('bench', 'micro', 'oxgen/norm/', '--runs', 0, code=2)
    r = json.loads(oxgen('bench', 'micro', 'oxgen/norm/', '-r', 5, '--no-roof', '--json').stdout)
    check('--no-roof measures no roof', all(x['roof'] is None and x['share'] is None for x in r['rows']))
    table = oxgen('bench', 'micro', 'mxfp4', '-r', 1).stdout
    check('the table lists absent rows with the reason', table.count('absent: ') == 4, table)
    oxgen('bench', 'micro', 'no-such-row', code=2)
    oxgen('bench', 'micro', '-r', 0, code=2)
    oxgen('bench', 'micro', '-r', 201, code=2)
    return path


def comparators(tmp):
    names = ['matmul/small_generic_f32_threads=1/', 'add/small_f32', 'gather/small_f32', 'reduce_mean/small', 'block_quantized_matmul', 'oxgen/norm/threads=1/1x896']
    env = dict(os.environ, VIRTUAL_ENV=sys.prefix)
    r = subprocess.run([a.oxgen, 'bench', 'micro', *names, '--comparator', '--json', '-r', '5', '--no-roof'], capture_output=True, text=True, env=env, timeout=120)
    if r.returncode == 5:
        check('without ONNX Runtime --comparator says so', 'ONNX Runtime' in r.stderr and r.stderr.count('\n') == 1, r.stderr)
    else:
        rows = {x['name']: x for x in json.loads(r.stdout)['rows']}
        beside = [n for n, x in rows.items() if x['comparator']]
        check('ONNX Runtime runs the rows that it has', len(beside) == 5, (r.stderr, beside))
        c = rows[beside[0]]['comparator'] if beside else {}
        check('a comparator has a name, samples, median and ratio', c.get('name', '').startswith('ONNX Runtime 1.') and len(c['samples']) == 5
              and abs(c['ratio'] - c['median'] / rows[beside[0]]['median']) < 1e-3 * c['ratio'], c)
    path = os.path.join(tmp, 'comparators.json')
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../tools/micro-comparators')
    r = subprocess.run([sys.executable, script], stdout=open(path, 'w'), timeout=120)
    if r.returncode == 0:
        rows = json.loads(oxgen('bench', 'micro', 'tokenization/', '-r', 5, '--json', '--comparators', path).stdout)['rows']
        check('tokenizers beside ours', all(x['comparator']['name'].startswith('tokenizers ') and x['comparator']['median'] > 0 for x in rows) and len(rows) == 2, rows)
    oxgen('bench', 'micro', 'tokenization/', '-r', 5, '--comparators', os.path.join(tmp, 'nothing'), code=1)


def result(path, unit, rows):
    key = 'rows' if unit == 'ms' else 'measurements'
    json.dump({'machine': {'cpu': 'x', 'tier': 'y', 'cores': 2},
               key: [dict(name=n, unit=unit, samples=s, **more) for n, s, more in rows]}, open(path, 'w'))
    return path


def diff(tmp, measured):
    def run(x, y):
        return {r['name']: r for r in json.loads(oxgen('bench', 'diff', x, y, '--json').stdout)['rows']}

    same = run(measured, measured)
    check('a file against itself shows no difference',
          same and all(r['verdict'] == 'no difference shown' and r['change'] == 0 for r in same.values()), same)
    rng = random.Random(1)
    noisy = lambda at, n=40: [at * (1 + rng.uniform(-.02, .02)) for _ in range(n)]
    a_path, b_path = os.path.join(tmp, 'a.json'), os.path.join(tmp, 'b.json')
    # Rounds that differ by 20 % among themselves, by 4 % in all: without rounds the change seems certain.
    levels = [.8, .9, 1, 1.1, 1.2]
    rounds = lambda by: [x for k in levels for x in noisy(k * by, 8)]
    in_rounds = {'rounds': [8] * 5}
    result(a_path, 'ms', [('twice', noisy(1), {}), ('same', noisy(1), {}), ('few', noisy(1, 3), {}), ('gone', noisy(1), {}),
                          ('layout', rounds(1), in_rounds), ('odd', noisy(1), {'rounds': [7, -1, 99]}),
                          ('never', [], {}), ('left', noisy(1), {})])
    result(b_path, 'ms', [('twice', noisy(2), {}), ('same', noisy(1), {}), ('few', noisy(2, 3), {}),
                          ('layout', rounds(1.04), in_rounds), ('odd', noisy(.5), {}), ('never', [], {}), ('left', [], {}),
                          ('new', noisy(1), {})])
    r = run(a_path, b_path)
    want = {'twice': 'slower', 'same': 'no difference shown', 'few': 'too few samples', 'gone': 'only in the first',
            'layout': 'no difference shown', 'odd': 'faster', 'never': 'absent in both', 'left': 'absent in the second',
            'new': 'only in the second'}
    check('verdicts', {k: v['verdict'] for k, v in r.items()} == want, {k: v['verdict'] for k, v in r.items()})
    lo, hi = r['twice']['interval']
    check('the interval holds the true change', lo <= 1 <= hi and hi - lo < .1, (lo, hi))
    check('the report repeats bit for bit', run(a_path, b_path) == r)
    result(a_path, 'tok/s', [('pp', noisy(100), {})])
    result(b_path, 'tok/s', [('pp', noisy(200), {})])
    check('more tokens a second are faster', run(a_path, b_path)['pp']['verdict'] == 'faster')
    check('units are compared', run(b_path, result(a_path, 'ms', [('pp', noisy(1), {})]))['pp']['verdict'] == 'different units')
    check('the table says it too', 'no difference shown' in oxgen('bench', 'diff', measured, measured).stdout)
    result(a_path, 'ms', [('worse', noisy(1), {}), ('bit', noisy(1), {}), ('better', noisy(1), {})])
    result(b_path, 'ms', [('worse', noisy(1.2), {}), ('bit', noisy(1.06), {}), ('better', noisy(.5), {})])
    rows = json.loads(oxgen('bench', 'diff', a_path, b_path, '--json', '--threshold', 10).stdout)['rows']
    check('beyond a threshold is the whole interval', {x['name']: x['beyond'] for x in rows} == {'worse': True, 'bit': False, 'better': False}, rows)
    check('the table says it too', 'beyond the threshold' in oxgen('bench', 'diff', a_path, b_path, '--threshold', 10).stdout)
    for path, by in ((a_path, 1), (b_path, 1.04)):
        result(path, 'ms', [('layout', rounds(by), in_rounds)])
        text = json.load(open(path))
        json.dump(dict(text, paired=True), open(path, 'w'))
    check('rounds measured side by side are compared in pairs', run(a_path, b_path)['layout']['verdict'] == 'slower', run(a_path, b_path))
    oxgen('bench', 'diff', measured, measured, '--confidence', 10, code=2)
    oxgen('bench', 'diff', measured, measured, '--threshold', -1, code=2)
    oxgen('bench', 'diff', measured, code=2)
    oxgen('bench', 'diff', measured, os.path.join(tmp, 'none.json'), code=1)
    for text in ('{', '{}', '[]', '{"rows":7}'):
        open(a_path, 'w').write(text)
        oxgen('bench', 'diff', a_path, measured, code=3)
    open(a_path, 'w').write('{"rows":[1,{"name":7},{"name":"n","samples":[1e300,-1,"x",null,0]}]}')
    oxgen('bench', 'diff', a_path, a_path)


def kernels():
    for tier in (None, 'ref'):
        env = {'OXGEN_CPU': tier} if tier else {}
        rows = json.loads(oxgen('kernels', '--time', '-r', 1, '--json', env=env).stdout)['rows']
        by = {}
        for r in rows:
            by.setdefault(r['family'], []).append(r)
        check('one row of a family is picked', all(sum(r['picked'] for r in rs) == 1 for rs in by.values()))
        check('what is picked runs here', all(r['runs'] for r in rows if r['picked']))
        check('every row says why', all(r['why'] for r in rows))
        check('rows that run and have a shape are timed',
              all(bool(r['samples']) == bool(r['runs'] and r['shape'] and 'does not take' not in r['why']) for r in rows))


with tempfile.TemporaryDirectory() as tmp:
    diff(tmp, micro(tmp))
    kernels()
print(f'{passed} passed, {failed} failed')
raise SystemExit(failed > 0)
