"""The installed library as a stranger uses it: README's example through pkg-config and CMake, headers alone, symbols,
libraries needed, manual page, make help.

usage: test_library.py --oxgen BIN     (its folder is the build; environment OXGEN_TEST_MODEL = SmolLM2 GGUF)
"""
import argparse, glob, os, re, shutil, subprocess, sys, tempfile

p = argparse.ArgumentParser()
p.add_argument('--oxgen', required=True)
a = p.parse_args()
a.oxgen = os.path.abspath(a.oxgen)
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.dirname(a.oxgen)
MODEL = os.environ['OXGEN_TEST_MODEL']
# What THIRD-PARTY.md names, and the C library's own parts.
NEEDED = {'libpcre2-8.so', 'libutf8proc.so', 'libc.so', 'libm.so', 'libpthread.so', 'libdl.so', 'ld-linux-x86-64.so',
          'ld-linux-aarch64.so'}
passed = failed = 0


def check(name, ok, detail=''):
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
    print(('ok   ' if ok else 'FAIL ') + name + (f': {detail}' if detail and not ok else ''), flush=True)
    return ok


def run(*argv, env=None, cwd=ROOT, stdin=None):
    """The finished process; a program that is missing is a failed one."""
    try:
        return subprocess.run([str(x) for x in argv], capture_output=True, text=True, timeout=280, cwd=cwd, input=stdin,
                              env=dict(os.environ, **(env or {})))
    except FileNotFoundError as e:
        return subprocess.CompletedProcess(argv, 127, '', str(e))


def blocks(path, language):
    with open(os.path.join(ROOT, path)) as f:
        return re.findall(r'^```' + language + r'\n(.*?)^```$', f.read(), re.S | re.M)


def install(stage):
    """Installs below stage and gives the folders that hold headers, libraries, oxgen.pc and the CMake package."""
    r = run('cmake', '--install', BUILD, env={'DESTDIR': stage})
    check('cmake --install', r.returncode == 0, r.stderr[-300:])
    found = {}
    for name in ('oxgen.h', 'liboxgen.so', 'liboxgen.a', 'oxgen.pc', 'oxgen-config.cmake', 'oxgen.1', 'oxgen', '_oxgen'):
        hits = glob.glob(f'{stage}/**/{name}', recursive=True)
        hits = [h for h in hits if not os.path.isdir(h)]
        if check(f'{name} is installed', bool(hits)):
            found[name] = os.path.dirname(hits[0])
    return found


def expected_text():
    r = run(a.oxgen, 'generate', MODEL, 'What is the capital of France?', '--greedy', '-q')
    check('oxgen generate answers', r.returncode == 0 and r.stdout.strip(), r.stderr[-300:])
    return r.stdout.strip()


def try_program(name, exe, libs, want):
    r = run(exe, MODEL, env={'LD_LIBRARY_PATH': libs})
    check(f'{name}: runs', r.returncode == 0, f'exit {r.returncode}: {r.stderr[-300:]}')
    check(f'{name}: prints what oxgen generate --greedy prints', r.stdout.strip() == want != '', repr(r.stdout))
    r = run(exe, '/no/such/model', env={'LD_LIBRARY_PATH': libs})
    check(f'{name}: a missing model is an error with its name', r.returncode == 1 and '/no/such/model' in r.stderr, r.stderr)


def example(found, tmp, want):
    code = blocks('README.md', 'c')
    if not check('README.md has one C example', len(code) == 1, len(code)):
        return
    with open(os.path.join(ROOT, 'examples/hello.c')) as f:
        check('examples/hello.c is that example', f.read() == code[0])
    source = os.path.join(tmp, 'hello.c')
    with open(source, 'w') as f:
        f.write(code[0])
    env = {'PKG_CONFIG_PATH': found['oxgen.pc']}
    flags = run('pkg-config', '--cflags', '--libs', 'oxgen', env=env)
    check('pkg-config finds oxgen', flags.returncode == 0, flags.stderr)
    static = run('pkg-config', '--cflags', '--libs', '--static', 'oxgen', env=env)
    for name, words in (('pkg-config', flags), ('pkg-config --static', static)):
        exe = os.path.join(tmp, name.replace(' ', ''))
        args = words.stdout.split()
        if '--static' in name:  # the archive by name, the rest as shared libraries
            args = ['-l:liboxgen.a' if x == '-loxgen' else x for x in args]
        r = run('gcc', '-std=c99', '-Wall', '-Wextra', '-Werror', source, '-o', exe, *args)
        if check(f'{name}: the example compiles without warnings', r.returncode == 0, r.stderr[-600:]):
            try_program(name, exe, found['liboxgen.so'], want)


def cmake_package(found, tmp, want):
    out = os.path.join(tmp, 'cmake')
    r = run('cmake', '-S', os.path.join(ROOT, 'examples'), '-B', out, f'-Doxgen_DIR={found["oxgen-config.cmake"]}')
    check('find_package(oxgen)', r.returncode == 0, r.stderr[-600:])
    r = run('cmake', '--build', out)
    if check('CMake: the example builds', r.returncode == 0, (r.stdout + r.stderr)[-600:]):
        try_program('CMake', os.path.join(out, 'hello'), found['liboxgen.so'], want)
        questions = ['What is the capital of France?', 'Name three colors.', 'Who wrote Hamlet?']
        r = run(os.path.join(out, 'batch'), MODEL, *questions, env={'LD_LIBRARY_PATH': found['liboxgen.so']})
        single = [run(a.oxgen, 'generate', MODEL, q, '--greedy', '-q', '-n', 48).stdout for q in questions]
        check('examples/batch.c answers as one conversation at a time does',
              r.returncode == 0 and r.stdout.split() == ' '.join(single).split() != [], r.stdout[-300:] + r.stderr[-300:])


def same_bits(found, tmp):
    """The promises of docs/numerics.md about sessions."""
    exe = os.path.join(tmp, 'same_bits')
    flags = run('pkg-config', '--cflags', '--libs', 'oxgen', env={'PKG_CONFIG_PATH': found['oxgen.pc']}).stdout.split()
    r = run('gcc', '-std=c99', '-Wall', '-Wextra', '-Werror', os.path.join(ROOT, 'tests/e2e/same_bits.c'), '-o', exe, *flags)
    if not check('same_bits.c compiles', r.returncode == 0, r.stderr[-600:]):
        return
    for numerics, kv in (('fast', 'f16'), ('faster', 'bf16'), ('exact', 'f32')):
        r = run(exe, MODEL, numerics, kv, env={'LD_LIBRARY_PATH': found['liboxgen.so']})
        names = [line[5:].strip() for line in r.stdout.splitlines() if line[:4] in ('ok  ', 'FAIL')]
        bad = [line for line in r.stdout.splitlines() if line.startswith('FAIL')]
        check(f'same_bits {numerics} {kv}: {len(names)} promises kept', r.returncode == 0 and len(names) == 7 and not bad,
              ' | '.join(bad) + r.stderr[-200:])


def headers(found):
    include = os.path.dirname(found['oxgen.h'])
    names = sorted(os.listdir(found['oxgen.h']))
    check('all public headers are installed', names == sorted(os.listdir(os.path.join(ROOT, 'include/oxgen'))), names)
    for h in names:
        for compiler, language, std in (('gcc', 'c', 'c99'), ('g++', 'c++', 'c++11')):
            r = run(compiler, f'-std={std}', '-pedantic', '-Wall', '-Wextra', '-Werror', '-fsyntax-only', '-x', language,
                    '-I', include, '-', stdin=f'#include <oxgen/{h}>\n')
            check(f'{h} compiles alone as {std}', r.returncode == 0, r.stderr[-400:])


def symbols(found):
    r = run('nm', '-D', '--defined-only', os.path.join(found['liboxgen.so'], 'liboxgen.so'))
    names = {line.split()[-1].split('@')[0] for line in r.stdout.splitlines() if ' A ' not in line}
    check('nm lists exported symbols', r.returncode == 0 and len(names) > 50, len(names))
    stray = sorted(n for n in names if not n.startswith('ox_'))
    check('every exported symbol starts with ox_', not stray, stray)
    declared = set()
    for path in glob.glob(os.path.join(found['oxgen.h'], '*.h')):
        with open(path) as f:
            text = re.sub(r'/\*.*?\*/', '', f.read(), flags=re.S)
        declared |= set(re.findall(r'OX_API[^;(]*?\b(ox_\w+)\s*\(', text))
    check('every declared function is exported', declared <= names, sorted(declared - names))
    check('nothing else is exported', names <= declared, sorted(names - declared))


def libraries(found):
    so = os.path.join(found['liboxgen.so'], 'liboxgen.so')
    r = run('ldd', so)
    names = {re.sub(r'\.so.*', '.so', os.path.basename(line.split()[0])) for line in r.stdout.splitlines()}
    names.discard('linux-vdso.so')
    check('ldd lists libraries', r.returncode == 0 and len(names) > 2, r.stderr)
    check('liboxgen.so needs only the documented libraries', names <= NEEDED, sorted(names - NEEDED))
    with open(os.path.join(ROOT, 'THIRD-PARTY.md')) as f:
        text = f.read().lower()
    for word in ('pcre2', 'utf8proc', 'libedit', 'glibc'):
        check(f'THIRD-PARTY.md names {word}', word in text)
    soname = run('readelf', '-d', so).stdout
    check('soname is liboxgen.so.0', '[liboxgen.so.0]' in soname)


def manual(found):
    page = run(a.oxgen, 'help', 'man').stdout
    with open(os.path.join(found['oxgen.1'], 'oxgen.1')) as f:
        check('the installed manual page is what oxgen help man prints', f.read() == page != '')
    r = run('groff', '-man', '-ww', '-Tutf8', stdin=page)
    check('the manual page renders without warnings', r.returncode == 0 and not r.stderr and 'oxgen' in r.stdout.lower(),
          r.stderr[-400:] or r.stdout[:200])
    for command in ('run', 'generate', 'convert', 'bench'):
        check(f'the manual page has {command}', f'.B {command}' in page)
    for shell, probe in (('bash', ['bash', '-n']), ('zsh', None)):
        text = run(a.oxgen, 'help', shell).stdout
        check(f'{shell} completion is not empty', 'generate' in text)
        if probe:
            check(f'{shell} completion parses', run(*probe, stdin=text).returncode == 0)


def make_help():
    with open(os.path.join(ROOT, 'Makefile')) as f:
        makefile = f.read()
    targets = set(re.findall(r'^([a-z][a-z0-9-]*):', makefile, re.M))
    r = run('make', 'help')
    listed = [line.split()[0] for line in r.stdout.splitlines() if line.strip()]
    check('make help', r.returncode == 0 and len(listed) > 5, r.stderr)
    check('make help lists only targets that exist', set(listed) <= targets, sorted(set(listed) - targets))
    check('make help lists every target once', len(listed) == len(set(listed)), listed)
    for t in ('all', 'demo', 'test', 'quick', 'install', 'help'):
        check(f'make help lists {t}', t in listed)


def transcript(tmp):
    """README's transcript of oxgen run, and its way through convert to ONNX Runtime GenAI."""
    with open(os.path.join(ROOT, 'README.md')) as f:
        text = f.read()
    name = 'SmolLM2-135M-Instruct.Q4_1.gguf'
    os.symlink(os.path.abspath(MODEL), os.path.join(tmp, name))
    m = re.search(r"^\$ printf '(.*)' \| oxgen (run .*)\n((?:[^`].*\n)*)```", text, re.M)
    if check('README.md has a transcript', bool(m)):
        r = run(a.oxgen, *m[2].split(), cwd=tmp, stdin=m[1].replace('\\n', '\n'))
        check('the transcript is what oxgen run prints', r.returncode == 0 and r.stdout == m[3], repr(r.stdout))
    m = re.search(r'^ +oxgen (convert .*)$', text, re.M)
    if check('README.md has a conversion', bool(m)):
        r = run(a.oxgen, *m[1].split(), cwd=tmp)
        check('the conversion works', r.returncode == 0, r.stderr[-300:])
    python = blocks('README.md', 'python')
    if check('README.md has one Python example', len(python) == 1, len(python)):
        r = run(sys.executable, '-c', python[0], cwd=tmp)
        check('ONNX Runtime GenAI runs the converted folder', r.returncode == 0 and 'Paris' in r.stdout,
              r.stdout[-200:] + r.stderr[-300:])
        e = run(sys.executable, os.path.join(ROOT, 'examples/run_genai.py'), os.path.join(tmp, 'smollm2-onnx'))
        check('examples/run_genai.py prints the same', e.returncode == 0 and e.stdout.strip() == r.stdout.strip() != '',
              e.stdout[-200:] + e.stderr[-300:])


def documents():
    for path in ['README.md', 'CONTRIBUTING.md', 'STYLE.md'] + glob.glob('docs/*.md', root_dir=ROOT):
        with open(os.path.join(ROOT, path)) as f:
            text = re.sub(r'^```.*?^```$', '', f.read(), flags=re.S | re.M)
        links = [x for x in re.findall(r'\]\(([^)#]+)(?:#[^)]*)?\)', text) if '://' not in x]
        dead = [x for x in links if not os.path.exists(os.path.join(ROOT, os.path.dirname(path), x))]
        check(f'{path}: links lead somewhere', not dead, dead)


def main():
    with tempfile.TemporaryDirectory() as tmp:
        found = install(os.path.join(tmp, 'stage'))
        if not failed:
            want = expected_text()
            example(found, tmp, want)
            cmake_package(found, tmp, want)
            same_bits(found, tmp)
            headers(found)
            symbols(found)
            libraries(found)
            manual(found)
        transcript(tmp)
    make_help()
    documents()
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


sys.exit(main())
