"""tools/regress: equal programs are not called slower, one with a kernel a tenth slower is.

usage: test_regress.py --oxgen BIN     (BIN's folder/tests/oxgen_slow_kernel)
"""
import argparse, json, os, shutil, subprocess, sys, tempfile

p = argparse.ArgumentParser()
p.add_argument('--oxgen', required=True)
a = p.parse_args()
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SLOW = os.path.join(os.path.dirname(os.path.abspath(a.oxgen)), 'tests/oxgen_slow_kernel')
passed = failed = 0


def check(name, ok, detail=''):
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
    print(('ok   ' if ok else 'FAIL ') + name + (f': {detail}' if detail and not ok else ''), flush=True)


def regress(*argv, code=None):
    r = subprocess.run([sys.executable, os.path.join(ROOT, 'tools/regress'), *argv, '--quiet'], capture_output=True, text=True, timeout=280)
    if code is not None:
        check(f'regress {" ".join(os.path.basename(x) for x in argv[:4])} exits {code}', r.returncode == code, (r.returncode, r.stderr[-300:]))
    return r


with tempfile.TemporaryDirectory() as tmp:
    other, report = os.path.join(tmp, 'oxgen'), os.path.join(tmp, 'r.json')
    shutil.copy(a.oxgen, other)
    rows = 'oxgen/norm/threads=1,oxgen/add/threads=1,sampling_latency/greedy'
    r = regress('--base', a.oxgen, '--head', other, '--rows', rows, '--blocks', '6', '--json', report, code=0)
    check('equal programs: the title says that nothing is slower', r.stdout.startswith('# No row slower by more than 5 %'), r.stdout[:200])
    said = json.load(open(report))
    check('equal programs: every row has a verdict and none is red', len(said['rows']) == 4 and not any(x['red'] for x in said['rows']), said['rows'])
    check('the table has a line a row', sum(l.startswith('| oxgen/') or l.startswith('| sampling') for l in r.stdout.split('\n')) == 4, r.stdout)
    # Without valgrind a very busy machine may hide a tenth from six blocks; then again, longer.
    for blocks in ('6', '12'):
        r = regress('--base', a.oxgen, '--head', SLOW, '--rows', 'oxgen/norm/,oxgen/rotate', '--blocks', blocks, '--json', report)
        if r.returncode == 1:
            break
    check('a kernel that is a tenth slower is red', r.returncode == 1 and r.stdout.startswith('# Slower: oxgen/norm/'), (r.returncode, r.stdout[:300], r.stderr[-300:]))
    red = [x['name'] for x in json.load(open(report))['rows'] if x['red']]
    check('and nothing beside it', red and all(n.startswith('oxgen/norm/') for n in red), red)
    regress('--base', a.oxgen, '--head', os.path.join(tmp, 'nothing'), code=5)
    regress('--base', a.oxgen, code=2)
    regress('--base', a.oxgen, '--head', other, '--blocks', '2', code=2)
    regress('--base-ref', 'no-such-ref', code=5)
print(f'{passed} passed, {failed} failed')
raise SystemExit(failed > 0)
