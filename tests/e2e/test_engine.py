"""The engine on a real model: numbers that must not depend on how work is cut, and the command line's contract.

usage: test_engine.py --oxgen BIN     (environment OXGEN_TEST_MODEL = SmolLM2 GGUF)
"""
import argparse, json, os, subprocess, sys, tempfile
import numpy as np

p = argparse.ArgumentParser()
p.add_argument('--oxgen', required=True)
a = p.parse_args()
MODEL = os.environ['OXGEN_TEST_MODEL']
passed = failed = 0


def check(name, ok, detail=''):
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
    print(('ok   ' if ok else 'FAIL ') + name + (f': {detail}' if detail and not ok else ''), flush=True)


def oxgen(*argv, stdin=None, env=None, code=0):
    r = subprocess.run([a.oxgen, *map(str, argv)], input=stdin, capture_output=True, text=True, timeout=280,
                       env=dict(os.environ, **(env or {})))
    if r.returncode != code:
        raise AssertionError(f'{argv}: exit {r.returncode}, expected {code}: {r.stderr[-300:]}')
    return r


def logits(ids, *more, env=None):
    with tempfile.TemporaryDirectory() as d:
        oxgen('logits', MODEL, '--ids', ','.join(map(str, ids)), '-o', d + '/l.npy', *more, env=env)
        return np.load(d + '/l.npy')


def same_bits():
    ids = [(i * 7919 + 13) % 40000 + 100 for i in range(130)]
    base = logits(ids)
    for chunk in (1, 7, 64):
        check(f'chunks of {chunk} give the same bits', np.array_equal(base, logits(ids, '--chunk', chunk)))
    check('one thread gives the same bits', np.array_equal(base, logits(ids, '--threads', 1)))
    check('three threads give the same bits', np.array_equal(base, logits(ids, '--threads', 3)))
    check('the AVX2 tier gives the same bits', np.array_equal(base, logits(ids, env={'OXGEN_CPU': 'avx2'})))
    short = ids[:24]
    exact = logits(short, '--numerics', 'exact')
    check('exact: chunks of 1 and 7 give the same bits',
          np.array_equal(logits(short, '--numerics', 'exact', '--chunk', 1), logits(short, '--numerics', 'exact', '--chunk', 7)))
    check('exact: one thread gives the same bits', np.array_equal(exact, logits(short, '--numerics', 'exact', '--threads', 1)))
    off = np.abs(exact - logits(short)).max() / np.abs(exact).max()
    check('int8 activations stay near float ones', off < 0.08, f'{off:.4f} of the largest logit')


def generation():
    ids = '504,3575,282,4649,314'
    r = json.loads(oxgen('generate', MODEL, '--ids', ids, '-n', 12, '--greedy', '--json', '--logprobs', 3).stdout)
    for key in ('model', 'backend', 'device', 'prompt_ids', 'ids', 'text', 'finish_reason', 'logprobs', 'timing', 'memory', 'warnings'):
        check(f'generate --json has {key}', key in r)
    check('as many new ids as asked for', len(r['ids']) == 12 and r['finish_reason'] == 'length', r['ids'])
    check('greedy takes the best', all(l['id'] == l['top'][0]['id'] for l in r['logprobs']))
    again = json.loads(oxgen('generate', MODEL, '--ids', ids, '-n', 12, '--greedy', '--json').stdout)
    check('greedy repeats', again['ids'] == r['ids'])
    drawn = [json.loads(oxgen('generate', MODEL, '--ids', ids, '-n', 12, '--temperature', 1, '--seed', s, '--json').stdout)['ids']
             for s in (1, 1, 2)]
    check('one seed, one answer', drawn[0] == drawn[1])
    check('another seed, another answer', drawn[0] != drawn[2])
    text = oxgen('generate', MODEL, 'Say hello.', '-n', 8, '--greedy').stdout
    check('plain text on standard output', text.strip() != '' and text.endswith('\n'), repr(text))
    word = json.loads(oxgen('generate', MODEL, 'Count from one to ten in words.', '-n', 40, '--greedy', '--json').stdout)
    stop = word['text'].split()[3] if len(word['text'].split()) > 3 else 'x'
    cut = json.loads(oxgen('generate', MODEL, 'Count from one to ten in words.', '-n', 40, '--greedy', '--json', '--stop', stop).stdout)
    check('a stop string ends the answer', cut['finish_reason'] == 'stop_string' and cut['text'] == word['text'][:word['text'].index(stop)],
          repr(cut['text']))


def chat():
    lines = 'My name is Ada.\nWhat is my name?\n'
    r = oxgen('run', MODEL, '-n', 16, '--greedy', stdin=lines)
    check('two piped lines, two turns', len(r.stdout.strip().split('\n')) >= 2, repr(r.stdout))
    check('piped chat repeats byte for byte', r.stdout == oxgen('run', MODEL, '-n', 16, '--greedy', stdin=lines).stdout)
    check('progress stays off a pipe', '#' not in r.stderr, r.stderr[:200])


def contract():
    r = oxgen('generate', MODEL, 'x', '--context', 8, '-n', 4, code=1)
    check('a prompt longer than the context exits 1', 'context' in r.stderr, r.stderr)
    check('an unknown flag names the nearest', '--greedy' in oxgen('generate', MODEL, '--greddy', code=2).stderr)
    check('an unknown command names the nearest', "'generate'" in oxgen('genrate', code=2).stderr)
    check('a missing model exits 1 with its path', '/nowhere.gguf' in oxgen('generate', '/nowhere.gguf', 'x', code=1).stderr)
    check('ONNX Runtime refuses what is no ONNX file', 'oxgen convert' in oxgen('generate', MODEL, 'x', '--backend', 'ort', code=3).stderr)
    check('a wrong tier is refused', 'avx2' in oxgen('generate', MODEL, 'x', env={'OXGEN_CPU': 'mmx'}, code=2).stderr)
    check('an argument too many is refused', 'quote' in oxgen('generate', MODEL, 'Name', 'three', code=2).stderr)
    check('a wrong log level is refused', 'debug' in oxgen('version', env={'OXGEN_LOG': 'loud'}, code=2).stderr)
    check('OXGEN_LOG=info says what was planned', 'calls' in oxgen('generate', MODEL, 'Hi', '-n', 1, env={'OXGEN_LOG': 'info'}).stderr)
    t = json.loads(oxgen('tokenize', MODEL, 'Hello world', '--json').stdout)
    check('tokenize --json', len(t['ids']) == len(t['pieces']) > 0)
    back = oxgen('tokenize', MODEL, '--decode', '--ids', ','.join(map(str, t['ids']))).stdout
    check('decode gives the text back', back.rstrip('\n').endswith('Hello world'), repr(back))
    with tempfile.TemporaryDirectory() as d:
        with open(d + '/m.json', 'w') as f:
            json.dump([{'role': 'user', 'content': 'Hi'}], f)
        text = oxgen('template', MODEL, '--messages', d + '/m.json').stdout
    check('the chat template is rendered', '<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n' in text, repr(text))
    for command in ('run', 'generate', 'convert', 'inspect', 'logits', 'perplexity', 'tokenize', 'template', 'forward', 'bench',
                    'kernels', 'plan', 'list', 'version', 'help'):
        check(f'{command} --help shows an example', 'example: oxgen ' in oxgen(command, '--help').stdout)
    v = json.loads(oxgen('version', '--json').stdout)
    check('version --json', {'version', 'cpu', 'tier'} <= set(v))


for part in (same_bits, generation, chat, contract):
    try:
        part()
    except (AssertionError, subprocess.TimeoutExpired, KeyError, ValueError) as e:
        check(part.__name__, False, str(e))
print(f'{passed} passed, {failed} failed')
sys.exit(failed != 0)
