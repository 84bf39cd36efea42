"""README and docs/figures.md say what docs/figures/*.json say, and the check notices when they do not.

usage: test_figures.py --oxgen BIN
"""
import argparse, os, re, shutil, subprocess, sys, tempfile

p = argparse.ArgumentParser()
p.add_argument('--oxgen')
p.parse_args()
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
passed = failed = 0


def check(name, ok, detail=''):
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
    print(('ok   ' if ok else 'FAIL ') + name + (f': {detail}' if detail and not ok else ''), flush=True)


def figures(root):
    return subprocess.run([sys.executable, os.path.join(ROOT, 'tools/figures'), '--check', root], capture_output=True, text=True, timeout=60)


def edit(path, pattern, by):
    text = open(path).read()
    new = re.sub(pattern, by, text, count=1, flags=re.S)
    assert new != text, pattern
    with open(path, 'w') as f:
        f.write(new)


r = figures(ROOT)
check('README and docs/figures.md agree with the files', r.returncode == 0, r.stderr)
for name, file, pattern, by in (('a number in README', 'README.md', r'(figures:begin.*?\| decode[^|]*\| )[\d.]+', r'\g<1>99999'),
                                ('a number in docs/figures.md', 'docs/figures.md', r'\d+ passed', '1 passed'),
                                ('a sample in the files', 'docs/figures/speed.json', r'"median": [\d.]+', '"median": 1.5')):
    with tempfile.TemporaryDirectory() as tmp:
        shutil.copytree(os.path.join(ROOT, 'docs'), os.path.join(tmp, 'docs'))
        shutil.copy(os.path.join(ROOT, 'README.md'), tmp)
        edit(os.path.join(tmp, file), pattern, by)
        r = figures(tmp)
        check(f'{name} that was changed is noticed', r.returncode == 1 and 'does not say what' in r.stderr, (r.returncode, r.stderr))
print(f'{passed} passed, {failed} failed')
raise SystemExit(failed > 0)
