"""The fairness benchmark: what it says of equal arms, of wrong ones, and of arms that die. Nothing here asserts a speed.

usage: test_compare.py --oxgen BIN     (planted faults: BIN's folder/tests/oxgen_wrong_*)
"""
import argparse, html.parser, json, os, signal, stat, subprocess, sys, tempfile, time

import tiny_models as tm

p = argparse.ArgumentParser()
p.add_argument('--oxgen', required=True)
a = p.parse_args()
OXGEN = os.path.abspath(a.oxgen)
PLANTS = os.path.join(os.path.dirname(OXGEN), 'tests')
ENV = dict(os.environ, VIRTUAL_ENV=sys.prefix)
passed = failed = 0


def check(name, ok, detail=''):
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
    print(('ok   ' if ok else 'FAIL ') + name + (f': {detail}' if detail and not ok else ''), flush=True)


def oxgen(*argv, code=0, env=ENV):
    r = subprocess.run([OXGEN, *map(str, argv)], capture_output=True, text=True, timeout=280, env=env)
    check(f'oxgen {" ".join(os.path.basename(str(x)) for x in argv[:4])} exits {code}', r.returncode == code, f'{r.returncode}: {r.stderr[-300:]}')
    return r


def compare(model, arms, *more, code=0, n=40):
    r = oxgen('compare', model, '--arms', arms, '-p', 12, '-n', n, '-r', 5, '-t', 1, '--json', *more, code=code)
    return json.loads(r.stdout) if r.stdout else {}


def make_model(folder, quant):
    keys = tm.gguf_keys()
    keys['llama.context_length'] = (tm.U32, 400)
    path = os.path.join(folder, 'tiny.gguf')
    with open(path, 'wb') as f:
        f.write(tm.gguf(keys=keys)[0])
    out = os.path.join(folder, quant)
    oxgen('convert', path, '-o', out, '--quant', quant, '--quiet')
    return out


def script(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, 'w') as f:
        f.write('#!/bin/sh\n' + text)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
    return path


def running(text):
    """Processes whose command line holds the text."""
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/cmdline', 'rb') as f:
                if text.encode() in f.read() and int(pid) != os.getpid():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def gone(text):
    for _ in range(50):
        if not running(text):
            return True
        time.sleep(.1)
    return False


def equal_arms(model):
    r = compare(model, 'native,native', '-r', 7)
    check('machine card', {'cpu', 'tier', 'cores', 'commit', 'kernel', 'load_average', 'stolen', 'governor', 'warnings', 'time'} <= set(r['machine']))
    check('model card', len(r['model']['sha256']) == 64 and r['model']['bytes'] > 1000)
    check('equal arms have names of their own', [x['arm'] for x in r['arms']] == ['native', 'native#2'])
    for x in r['arms']:
        check(f'{x["arm"]}: every metric has its samples', all(len(x[m]['samples']) == 7 and x[m]['min'] <= x[m]['q1'] <= x[m]['median'] <= x[m]['q3'] <= x[m]['max']
                                                             for m in ('load_ms', 'ttft_ms', 'prefill_tps', 'decode_tps', 'peak_rss', 'first_ms')))
        check(f'{x["arm"]}: roofs and shares', x['decode_roof']['share'] > 0 and x['prefill_roof']['tps'] > 0)
        check(f'{x["arm"]}: tokens and their times', len(x['ids']) == 40 and len(x['token_ms']) == 39 and min(x['token_ms']) > 0)
        check(f'{x["arm"]}: no reason, not partial', x['reason'] is None and x['partial'] is False and x['runs'] == 7)
    shown = {q['metric'] for q in r['ratios'] if q['verdict'] != 'no difference shown'}
    if shown:  # chance, once in some hundred times, must not come twice
        shown &= {q['metric'] for q in compare(model, 'native,native', '-r', 7)['ratios'] if q['verdict'] != 'no difference shown'}
    check('null control: no difference shown', not shown and len(r['ratios']) == 5, shown)
    check('null control: same tokens, same logits', [(q['verdict'], q['difference'], q['index']) for q in r['parity']] == [('same', 0, None)], r['parity'])


def other_engines(model):
    r = compare(model, 'native,ort,oga', n=256)
    by = {x['arm']: x for x in r['arms']}
    for name in ('ort', 'oga'):
        if by[name]['reason']:
            check(f'{name}: a row with its reason', len(by[name]['reason']) > 20, by[name]['reason'])
            continue
        check(f'{name}: library, version, providers', os.path.exists(by[name]['library']['path']) and by[name]['library']['version'][0].isdigit()
              and 'CPUExecutionProvider' in by[name]['library']['providers'], by[name]['library'])
        check(f'{name}: session options', '1' in json.dumps(by[name]['options']), by[name]['options'])
    check('all arms agree for 256 tokens of a float32 model', all(q['verdict'] == 'same' and q['tokens'] == 256 for q in r['parity'] if q['why'] and 'no complete' not in q['why']),
          [(q['a'], q['b'], q['verdict'], q['why']) for q in r['parity']])
    r = compare(model, 'native,ort@lib=/nowhere/libonnxruntime.so')
    check('a missing library is a row with its reason', r['arms'][1]['runs'] == 0 and '/nowhere/' in r['arms'][1]['reason'], r['arms'][1]['reason'])
    check('and no pair claims anything of it', r['parity'][0]['verdict'] == 'not known' and not r['ratios'])


def faults(f32, int8):
    for name, word in (('wrong_kernel', 'of their spread from'), ('wrong_sampler', 'the choice is wrong, not the numbers')):
        exe = os.path.join(PLANTS, 'oxgen_' + name)
        if not os.path.exists(exe):
            check(f'{name} was built', False, exe)
            continue
        for oracle in ([], ['--oracle']):
            for model in (f32, int8):
                r = compare(model, f'native,native@exe={exe}', *oracle, code=1)
                q = r['parity'][0]
                check(f'{name}{" against the oracle" if oracle else ""}, {os.path.basename(model)}: a fault', q['verdict'] == 'fault' and word in q['why'], (q['verdict'], q['why']))
    r = compare(int8, 'native@numerics=exact,native@numerics=faster', '--oracle', n=200)
    q = r['parity'][0]
    check('8-bit activations: same or near tie, never a fault', q['verdict'] in ('same', 'near tie'), (q['verdict'], q['why']))
    if q['verdict'] == 'near tie':
        check('a near tie has ids, margins and the oracle\'s side', len(q['ids']) == 2 and len(q['margins']) == 2 and q['oracle_sides_with'], q)


def dying(model, folder):
    crash = script(folder, 'crash', 'kill -SEGV $$\n')
    hang = script(folder, 'hang', 'sleep 987654 & sleep 987654\n')
    starved = script(folder, 'starved', 'kill -KILL $$\n')
    noise = script(folder, 'noise', 'echo hello; sleep 987654\n')
    late = script(folder, 'late', f'if [ -e "{folder}/count$PPID" ] && [ $(wc -l < "{folder}/count$PPID") -ge 3 ]; then echo it was enough >&2; exit 7; fi\n'
                                  f'echo x >> "{folder}/count$PPID"; exec "{OXGEN}" arm\n')
    arms = ','.join(['native'] + [f'native@exe={x}' for x in (crash, hang, starved, noise, late, '/nowhere/oxgen')])
    r = compare(model, arms, '--time-limit', 3, code=1)
    rows = dict(zip(('ok', 'crash', 'hang', 'starved', 'noise', 'late', 'nowhere'), r['arms']))
    check('a healthy arm beside dying ones is complete', rows['ok']['runs'] == 5 and rows['ok']['reason'] is None)
    for name, words in (('crash', ['crashed', 'Segmentation fault']), ('hang', ['no answer within 3 s']), ('noise', ['not an event', 'hello']),
                        ('starved', ['was memory short?']), ('nowhere', ['exit code 127', 'cannot be executed'])):
        check(f'{name}: a row with its reason', rows[name]['runs'] == 0 and any(w in (rows[name]['reason'] or '') for w in words), rows[name]['reason'])
    check('an arm that dies later keeps its runs, marked', rows['late']['runs'] == 2 and rows['late']['partial'] and 'exit code 7: it was enough' in rows['late']['reason'],
          (rows['late']['runs'], rows['late']['reason']))
    check('nothing of a hanging arm is left', gone('987654'))


def interrupted(model, folder):
    slow = script(folder, 'slow', f'sleep 0.{876543}; exec "{OXGEN}" arm\n')
    argv = [OXGEN, 'compare', model, '--arms', f'native,native@exe={slow}', '-p', '12', '-n', '40', '-r', '50', '-t', '1', '--json']
    q = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENV)
    time.sleep(6)
    q.send_signal(signal.SIGINT)
    out, err = q.communicate(timeout=60)
    check('Ctrl-C exits 130', q.returncode == 130 and err.strip() == 'oxgen: interrupted', (q.returncode, err))
    r = json.loads(out)
    check('Ctrl-C keeps what was measured, marked', r['settings']['interrupted'] is True and 0 < r['arms'][0]['runs'] < 50, r['arms'][0]['runs'])
    check('Ctrl-C leaves nothing running', gone(slow))
    hang = script(folder, 'hang2', 'sleep 876543\n')
    argv[4] = f'native@exe={hang}'
    q = subprocess.Popen(argv, stdout=subprocess.DEVNULL, env=ENV)
    time.sleep(1.5)
    check('the arm runs', len(running(hang)) > 0)
    q.kill()
    q.wait()
    check('an arm dies with a comparison that is killed', gone(hang))


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.tags, self.bad, self.outside = [], {}, [], []

    def handle_starttag(self, tag, attrs):
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self.outside += [v for k, v in attrs if k in ('src', 'href') or (v and 'url(' in v)]
        if tag not in ('meta', 'br') and tag not in ('path', 'rect', 'circle'):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags[tag] = self.tags.get(tag, 0) + 1

    def handle_endtag(self, tag):
        if self.open and self.open[-1] == tag:
            self.open.pop()
        else:
            self.bad.append(tag)


def reports(model, folder):
    md, page = os.path.join(folder, 'r.md'), os.path.join(folder, 'r.html')
    text = oxgen('compare', model, '--arms', 'native,native@numerics=exact,ort@lib=/nowhere/<&>', '-p', 12, '-n', 40, '-r', 5, '-t', 1, '--markdown', md, '--html', page).stdout
    for word in ('decode', 'prefill', 'first token', 'load', 'peak memory', 'share of roof', 'ratios', 'does not run', 'machine:', 'same;'):
        check(f'the table says {word}', word in text, text)
    lines = [l for l in open(md).read().split('\n') if l.startswith('|')]
    check('Markdown: rows have as many cells as their header', all(l.replace('\\|', '').count('|') == lines[0].count('|') for l in lines[:9]), lines[:9])
    check('Markdown: metrics, ratios, machine and model', all(w in open(md).read() for w in ('| decode, tok/s |', 'ratio (99.9 % interval)', 'Machine:', 'SHA-256')))
    q = Page()
    q.feed(open(page).read())
    check('HTML: elements are closed in order', not q.open and not q.bad, (q.open, q.bad))
    check('HTML: nothing from outside, no scripts', not q.outside and 'script' not in q.tags, q.outside)
    check('HTML: bars, dots and lines', q.tags.get('svg') == 8 and q.tags.get('circle') == 20 and q.tags.get('rect') == 10, q.tags)
    check('HTML: names are escaped', '/nowhere/<&>' not in open(page).read() and '/nowhere/&lt;&amp;&gt;' in open(page).read())


def usage(model):
    for argv in (['compare'], ['compare', model, '--arms', 'nonsense'], ['compare', model, '--arms', 'native@colour=red'], ['compare', model, '-r', 4],
                 ['compare', model, '-p', '128,512'], ['compare', model, '-n', 1], ['compare', model, '--time-limit', 0], ['compare', model, '--arms', 'native@threads=x']):
        r = oxgen(*argv, code=2)
        check('one line says why', r.stderr.count('\n') == 1 and not r.stdout, r.stderr)
    oxgen('compare', '/nowhere/model', code=1)
    check('the parts of oxgen that talk to each other are not in help', '\n  arm ' not in oxgen('help').stdout)
    r = subprocess.run([OXGEN, 'arm'], input='{"protocol":1}', capture_output=True, text=True, timeout=60)
    check('oxgen arm refuses half a request', r.returncode != 0 and '"event":"fail"' in r.stdout, r.stdout)
    r = json.loads(oxgen('compare', model, '--arms', 'native,llama', '-p', 12, '-n', 20, '-r', 5, '-t', 1, '--json').stdout)
    check('an arm that is not built is a row', 'not part of this build' in r['arms'][1]['reason'])
    r = json.loads(oxgen('compare', model, '--arms', 'native', '--ids', '3,4,5', '-n', 20, '-r', 5, '-t', 1, '--json').stdout)
    check('--ids are the prompt', r['settings']['prompt_ids'] == [3, 4, 5])


with tempfile.TemporaryDirectory() as tmp:
    f32, int8 = make_model(tmp, 'f32'), make_model(tmp, 'int8')
    equal_arms(int8)
    other_engines(f32)
    faults(f32, int8)
    dying(f32, tmp)
    interrupted(f32, tmp)
    reports(f32, tmp)
    usage(f32)
print(f'{passed} passed, {failed} failed')
raise SystemExit(failed > 0)
