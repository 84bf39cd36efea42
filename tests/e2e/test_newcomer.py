"""What someone who has read only the README tries first, and what the program then says.

usage: test_newcomer.py --oxgen BIN     (environment OXGEN_TEST_MODEL = SmolLM2 GGUF)
"""
import argparse, json, os, subprocess, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tiny_models as tiny

p = argparse.ArgumentParser()
p.add_argument('--oxgen', required=True)
a = p.parse_args()
MODEL = os.path.abspath(os.environ['OXGEN_TEST_MODEL'])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
passed = failed = 0


def check(name, ok, detail=''):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    print(('ok   ' if ok else 'FAIL ') + name + (f': {detail}' if detail and not ok else ''), flush=True)


def oxgen(*argv, stdin='', env=None, code=0, cwd=None):
    r = subprocess.run([os.path.abspath(a.oxgen), *map(str, argv)], input=stdin, capture_output=True, text=True, timeout=280,
                       env=dict(os.environ, **(env or {})), cwd=cwd)
    check(f'{" ".join(map(str, argv))[:60]}: exit code {code}', r.returncode == code, f'{r.returncode} {r.stderr[-300:]}')
    return r


def prompts(tmp):
    said = oxgen('generate', MODEL, 'Name three colours.', '-n', 8).stdout
    check('generate reads a piped prompt', oxgen('generate', MODEL, '-n', 8, stdin='Name three colours.\n').stdout == said, said)
    check('nothing piped is a missing prompt', 'prompt is missing' in oxgen('generate', MODEL, stdin='', code=2).stderr)
    check('an empty prompt is called empty', 'prompt is empty' in oxgen('generate', MODEL, '--raw', '', code=2).stderr)
    folder = os.path.join(tmp, 'strip')
    t = tiny.tokenizer_json()
    t['normalizer'] = {'type': 'Strip', 'strip_left': True, 'strip_right': True}
    t['pre_tokenizer']['use_regex'] = True
    tiny.hf_folder(folder, tokenizer=t)
    err = oxgen('generate', folder, '--raw', '   ', code=2).stderr
    check('a prompt that makes no token is not called empty', 'makes no token' in err and 'empty' not in err, err)


def template(tmp):
    path = os.path.join(tmp, 'chat.json')
    json.dump([{'role': 'user', 'content': 'Hi "there"'}], open(path, 'w'))
    check('template takes a text as the user says it',
          oxgen('template', MODEL, 'Hi "there"').stdout == oxgen('template', MODEL, '--messages', path).stdout)
    oxgen('template', MODEL, code=2)
    oxgen('template', MODEL, 'Hi', '--messages', path, code=2)


def convert(tmp):
    out = os.path.join(tmp, 'onnx')
    said = oxgen('convert', MODEL, '-o', out).stdout
    lines = said.splitlines()
    kinds = [l for l in lines if ' -> ' in l]
    check('one line a kind: how many, from, to', len(kinds) == 2 and
          any(l.startswith('150 matrices (') and 'q4_1 -> int4 block 32' in l for l in kinds) and
          any(l.startswith('1 matrix (lm_head)') and l.endswith('; exact') for l in kinds), kinds)
    check('what keeps its values is not reported as lost', '151 of 151 matrices keep' in said, said)
    check('the default accuracy names its alternative in one line', sum('--accuracy 0' in l for l in lines) == 1, said)
    check('the last line says where and what next', lines[-1] == f'written: {out}; next: oxgen run {out}', lines[-1])
    said = oxgen('convert', MODEL, '-o', os.path.join(tmp, 'b'), '--accuracy', 0, '--dry-run').stdout
    check('who chose --accuracy 0 is not told of it', '--accuracy' not in said and 'nothing is written' in said, said)
    said = oxgen('convert', MODEL, '-o', os.path.join(tmp, 'b'), '--dry-run', '-v').stdout
    check('--verbose has a line a matrix', said.count(' -> ') == 151 + 2, said.count(' -> '))
    missing = os.path.join(tmp, 'gone', 'c')
    err = oxgen('convert', MODEL, '-o', missing, code=1).stderr
    check('a missing parent folder is named, no temporary name is', f'no folder {tmp}/gone' in err and 'partial' not in err, err)
    err = oxgen('convert', os.path.join(tmp, 'gone.gguf'), '-o', out, code=1).stderr
    check('convert says what it expects', 'expected a model folder' in err, err)
    script = os.path.join(ROOT, 'examples/run_genai.py')
    for argv in ([], [os.path.join(tmp, 'gone')]):
        r = subprocess.run([sys.executable, script, *argv], capture_output=True, text=True)
        check('run_genai.py without a folder prints its usage', r.returncode == 1 and r.stderr.startswith('usage: '), r.stderr)


def names(tmp):
    name, env = os.path.basename(MODEL), {'OXGEN_MODELS': os.path.dirname(MODEL)}
    here = oxgen('tokenize', MODEL, 'Hello').stdout
    check('a name below OXGEN_MODELS is a model', oxgen('tokenize', name, 'Hello', env=env, cwd=tmp).stdout == here)
    for argv in (['inspect', name], ['plan', name], ['template', name, 'x'], ['convert', name, '-o', 'x', '--dry-run'],
                 ['generate', name, '--raw', 'a', '-n', 1], ['logits', name, '--ids', '1,2'], ['run', name]):
        oxgen(*argv, env=env, cwd=tmp)
    err = oxgen('inspect', name, env={'OXGEN_MODELS': tmp}, cwd=tmp, code=1).stderr
    check('a model that is nowhere: advice', name in err and 'OXGEN_MODELS' in err, err)
    for path in ('/nope.gguf', '/nope'):
        err = oxgen('generate', path, 'x', code=1).stderr
        check(f'{path}: advice', err.startswith(f'oxgen: {path}: no such file or folder; expected'), err)


def verbose(tmp):
    text = os.path.join(tmp, 'text.txt')
    open(text, 'w').write('The quick brown fox jumps over the lazy dog. ' * 20)
    stages = ('kernels of tier', 'files read: ', 'weights packed: ', 'plan: backend cpu', 'prompt: ', 'cache: ', 'peak memory')
    for argv in (['generate', MODEL, '--raw', 'a', '-n', 2], ['run', MODEL, '-n', 2], ['logits', MODEL, '--ids', '1,2'],
                 ['perplexity', MODEL, '--file', text, '--context', 64]):
        quiet, loud = oxgen(*argv, stdin='a\n'), oxgen(*argv, '-v', stdin='a\n')
        lacks = [s for s in stages if s not in loud.stderr]
        check(f'{argv[0]} --verbose tells the stages', not lacks, lacks)
        check(f'{argv[0]} --verbose leaves standard output alone', quiet.stdout == loud.stdout)
        check(f'{argv[0]} without it says nothing', quiet.stderr == '', quiet.stderr)
    for argv in (['tokenize', MODEL, 'a'], ['template', MODEL, 'a'], ['kernels'], ['version'], ['inspect', MODEL], ['plan', MODEL]):
        r = oxgen(*argv, '-v')
        check(f'{argv[0]} --verbose tells machine and memory', 'kernels of tier' in r.stderr and 'peak memory' in r.stderr, r.stderr)


def legends():
    check('plan explains its columns', 'barrier' in oxgen('plan', MODEL).stdout)
    r = oxgen('bench', MODEL, '-p', 8, '-n', 2, '-r', 1)
    check('bench explains its names', 'ppN: a prompt of N tokens' in r.stdout.splitlines()[0], r.stdout)
    env = {'OXGEN_THREADS': '1'}
    table = oxgen('bench', 'micro', 'matmul/small_generic_f32', '-r', 1, env=env).stdout
    rows = json.loads(oxgen('bench', 'micro', 'matmul/small_generic_f32', '-r', 1, '--json', env=env).stdout)['rows']
    many = [r for r in rows if 'threads=8' in r['name']]
    if (os.cpu_count() or 1) < 8:
        check('no row of more threads than CPUs', 'threads=8' not in table and 'left out: 1 row' in table, table)
        check('its JSON says why', many and all('fewer CPUs' in r['absent'] for r in many), many)
    else:
        check('rows of 8 threads', 'threads=8' in table and many, table)


with tempfile.TemporaryDirectory() as d:
    d = os.path.realpath(d)
    prompts(d)
    template(d)
    convert(d)
    names(d)
    verbose(d)
    legends()
print(f'{passed} passed, {failed} failed')
sys.exit(1 if failed else 0)
