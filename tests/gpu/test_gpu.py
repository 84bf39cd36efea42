"""What needs a GPU, end to end: logits on the device against the CPU, greedy streams, repeated runs,
refusals. Usage: python3 tests/gpu/test_gpu.py --oxgen BIN [--rows BIN] [--synth BIN] [--models DIR]
[--sanitizer] [--quick]; needs numpy. The last line is the verdict."""
import argparse, json, os, subprocess, sys, tempfile, time
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument('--oxgen', required=True)
parser.add_argument('--rows')
parser.add_argument('--synth')
parser.add_argument('--models', help='folder of small models, one a sub-folder')
parser.add_argument('--sanitizer', action='store_true', help='compute-sanitizer over the row tests')
parser.add_argument('--quick', action='store_true')
args = parser.parse_args()
tmp = tempfile.mkdtemp()
checks = failures = 0


def verdict(ok, what):
    global checks, failures
    checks += 1
    if not ok:
        failures += 1
        print('FAILED', what, flush=True)
    return ok


def run(*command, timeout=120, env=None):
    try:
        p = subprocess.run(command, capture_output=True, timeout=timeout, env={**os.environ, **(env or {})})
    except subprocess.TimeoutExpired:
        return 124, '', f'stopped after {timeout} s'
    return p.returncode, p.stdout.decode('utf-8', 'replace'), p.stderr.decode('utf-8', 'replace')


def logits(model, ids, *more, env=None):
    """[len(ids), vocab] or None, and what was said."""
    out = os.path.join(tmp, 'logits.npy')
    if os.path.exists(out):
        os.remove(out)
    rc, _, err = run(args.oxgen, 'logits', model, '--ids', ','.join(map(str, ids)), '-o', out, '-q', *more, env=env)
    return (np.load(out) if rc == 0 and os.path.exists(out) else None), f'exit {rc}: {err.strip()[-300:]}'


def distance(got, want):
    if got is None or want is None or got.shape != want.shape:
        return float('inf')
    if not np.array_equal(np.isnan(got), np.isnan(want)):
        return float('inf')
    return float(np.nanmax(np.abs(got - want)) / max(np.nanmax(np.abs(want)), 1e-30))


def compare_model(model, n=150, name=None):
    name = name or os.path.basename(model)
    first, said = logits(model, [1, 2], '--device', 'cpu', '--numerics', 'exact')
    if first is None:
        print(f'{name:24s} the CPU refuses it ({said[:90]})', flush=True)
        return
    vocab = first.shape[1]
    ids = [(i * 37 + 11) % vocab for i in range(n)]
    want, said = logits(model, ids, '--device', 'cpu', '--numerics', 'exact')
    if want is None and n > 100:
        return compare_model(model, 100, name)
    line = f'{name:24s}'
    for mode, allowed, more in (('exact', 2e-4, ['--numerics', 'exact']), ('fast', 3e-2, []),
                                ('rows', 3e-2, ['--chunk', '1'])):
        got, said = logits(model, ids, '--device', 'cuda', *more)
        d = distance(got, want)
        line += f'  {mode} {d:.2e}'
        verdict(d <= allowed, f'{name} {mode}: {d:.3g} from the CPU, allowed {allowed}; {said}')
    again, _ = logits(model, ids, '--device', 'cuda', '--chunk', '1')
    eager, _ = logits(model, ids, '--device', 'cuda', '--chunk', '1', env={'OXGEN_CUDA_GRAPHS': '0'})
    verdict(again is not None and np.array_equal(again, got), f'{name}: two runs differ')
    verdict(eager is not None and np.array_equal(eager, got), f'{name}: captured and launched steps differ')
    print(line, flush=True)


def stream(model, device, *more):
    rc, out, err = run(args.oxgen, 'generate', model, '--device', device, '--ids', '5,17,33,2', '-n', '256',
                       '--greedy', '--ignore-eos', '--json', *more, timeout=300)
    return (json.loads(out) if rc == 0 else None), f'exit {rc}: {err.strip()[-300:]}'


def compare_streams(model, name):
    want, said = stream(model, 'cpu', '--numerics', 'exact')
    got, said = stream(model, 'cuda')
    again, _ = stream(model, 'cuda')
    exact, _ = stream(model, 'cuda', '--numerics', 'exact')
    if not verdict(got and again and exact and want, f'{name}: no stream; {said}'):
        return
    same = next((i for i, (a, b) in enumerate(zip(want['ids'], got['ids'])) if a != b), 256)
    same_exact = next((i for i, (a, b) in enumerate(zip(want['ids'], exact['ids'])) if a != b), 256)
    verdict(got['ids'] == again['ids'], f'{name}: two streams differ')
    verdict(len(got['ids']) == 256, f'{name}: {len(got["ids"])} tokens')
    verdict(same_exact >= 64, f'{name}: exact stream differs from the CPU at token {same_exact}')
    print(f'{name:24s}  256 tokens, equal to the CPU for {same} (exact {same_exact}); '
          f'{got["timing"].get("decode_tps", 0):.0f} tok/s, {got["device"]}', flush=True)


def ids_of(model, *more, env=None):
    rc, out, err = run(args.oxgen, 'generate', model, '--device', 'cuda', '--ids', '5,17,33,2', '--ignore-eos', '--json',
                       *more, env=env)
    return json.loads(out)['ids'] if rc == 0 else None


def compare_chain(model, name):
    """Tokens without the host against one step at a time: the same up to a near tie, and however the request is cut."""
    for how in (['--greedy'], ['--temperature', '0.7', '--top-k', '0', '--top-p', '1', '--seed', '9']):
        steps = ids_of(model, '-n', '96', *how, env={'OXGEN_CUDA_CHAIN': '0'})
        chain, short = ids_of(model, '-n', '96', *how), ids_of(model, '-n', '37', *how)
        if not verdict(steps and chain and short, f'{name} {how[0]}: no stream'):
            continue
        same = next((i for i, (a, b) in enumerate(zip(steps, chain)) if a != b), 96)
        print(f'{name:24s}  {how[0]}: chain equal to steps for {same} of 96', flush=True)
        verdict(len(chain) == 96, f'{name} {how[0]}: {len(chain)} tokens')
        verdict(chain[:37] == short, f'{name} {how[0]}: a shorter request gives other tokens')


def rows():
    if not args.rows:
        return
    rc, out, err = run(args.rows, '', '15' if args.quick else '60', timeout=240)
    print(out + err[-3000:], flush=True)
    verdict(rc == 0, 'row tests')
    if args.sanitizer:
        for tool in ('memcheck', 'racecheck', 'initcheck', 'synccheck'):
            rc, out, err = run('compute-sanitizer', '--tool', tool, '--error-exitcode', '9', args.rows, '', '3', timeout=200)
            verdict(rc == 0, f'compute-sanitizer {tool}: exit {rc}\n{(out + err)[-1500:]}')
            print('sanitizer', tool, 'exit', rc, flush=True)


def refusals(model):
    rc, _, err = run(args.oxgen, 'generate', model, '--device', 'cuda:77', '-n', '1', 'hi')
    verdict(rc == 5 and 'cuda:77' in err, f'cuda:77: exit {rc}, {err}')
    rc, out, _ = run(args.oxgen, 'version', '--json')
    verdict(rc == 0 and json.loads(out).get('gpus'), 'version lists no GPU')


start = time.time()
rows()
if args.models:
    for m in sorted(os.listdir(args.models)):
        path = os.path.join(args.models, m)
        if os.path.isdir(path):
            compare_model(path)
if args.synth:
    path = os.path.join(tmp, 'smollm2.gguf')
    rc, out, err = run(args.synth, 'smollm2-135m', '-o', path, timeout=120)
    if verdict(rc == 0, f'synth: {err}'):
        compare_model(path, 300, 'smollm2-135m (random)')
        compare_streams(path, 'smollm2-135m (random)')
        compare_chain(path, 'smollm2-135m (random)')
        refusals(path)
print(f'{checks} checks, {failures} failures, {time.time() - start:.0f} s')
sys.exit(1 if failures else 0)
