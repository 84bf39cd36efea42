#!/usr/bin/env python3
"""Generated template snippets against jinja2: equal text, or both sides refuse.

    python tests/e2e/cross_templates.py --render build/release/tools/render_template [-n 2500] [--seed N]
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tools"))
import compare_templates as ct  # noqa: E402

VALUES = {"s": "Hello World", "e": "", "u": "Z\u00fcrich \u4f60\u597d \U0001f642", "ws": "  a b\n c\t", "n": 7, "z": 0, "neg": -3, "f": 2.5, "t": True, "no": None,
          "l": [3, 1, 2], "ls": ["b", "a", "C"], "el": [], "d": {"b": 1, "a": "x", "c": None}, "ed": {}, "ld": [{"k": "x", "v": 1}, {"k": "y", "v": 2}, {"k": "x", "v": 3}], "nest": {"a": {"b": [1, {"c": "deep"}]}}}
LITERALS = ["1", "0", "-2", "3.5", "'a'", "\"it's\"", "'x\\ny'", "true", "false", "none", "[1,2,3]", "['a','b']", "{'a': 1}", "{}", "[]", "(1,2)", "''", "10"]
FILTERS = ["upper", "lower", "title", "capitalize", "trim", "length", "list", "string", "int", "float", "tojson", "first", "last", "sort", "reverse", "unique|list", "join(',')", "join", "default('dd')", "default('dd', true)",
           "abs", "round", "round(1)", "sum", "min", "max", "replace('a','bb')", "dictsort", "items|list", "escape|string", "indent(2)", "tojson(indent=2)", "map('upper')|list", "map(attribute='k')|list",
           "selectattr('k','equalto','x')|list", "rejectattr('v','gt',1)|list", "select('odd')|list", "reject('none')|list", "batch(2)|list", "slice(2)|list", "groupby('k')|list", "wordcount", "center(20)", "truncate(8)", "count", "safe", "sort(reverse=true)", "sort(attribute='v')", "format(1)", "attr('x')"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "mapping", "sequence", "iterable", "boolean", "true", "false", "odd", "even", "divisibleby(2)", "equalto(7)", "in([1,7])", "lower", "upper", "eq('a')", "gt(1)", "callable"]
METHODS = ["strip()", "upper()", "lower()", "split()", "split('o')", "startswith('H')", "endswith('d')", "replace('l','L')", "lstrip()", "rstrip()", "title()", "find('o')", "items()", "keys()", "values()", "get('a')", "get('zz', 5)", "join(['a','b'])", "count('l')", "isdigit()", "splitlines()", "rsplit(' ',1)", "index(1)", "capitalize()", "format('q')", "zfill(5)", "isalpha()", "partition(' ')"]
BINARY = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", ">", "<=", ">=", "and", "or", "in", "not in"]


def expr(r, depth=0):
    k = r.random()
    if depth > 3 or k < .3:
        return r.choice(list(VALUES) + ["missing", "nest.a.b", "nest['a'].b[1].c", "ld[0].k", "l[-1]", "d.b", "s[1:4]", "l[::-1]", "loopx.y"]) if r.random() < .75 else r.choice(LITERALS)
    if k < .5:
        return f"{expr(r, depth + 1)}|{r.choice(FILTERS)}" if r.random() < .7 else f"({expr(r, depth + 1)})|{r.choice(FILTERS)}|{r.choice(FILTERS)}"
    if k < .65:
        op = r.choice(BINARY)
        a, b = expr(r, depth + 1), expr(r, depth + 1)
        return f"({a} {op} {'2' if op == '**' else b})"
    if k < .75:
        return f"({expr(r, depth + 1)} is {r.choice(['', 'not '])}{r.choice(TESTS)})"
    if k < .87:
        return f"{r.choice(list(VALUES))}.{r.choice(METHODS)}"
    if k < .94:
        return f"({expr(r, depth + 1)} if {expr(r, depth + 1)} else {expr(r, depth + 1)})"
    return f"[{expr(r, depth + 1)}, {expr(r, depth + 1)}]" if r.random() < .5 else f"{{'q': {expr(r, depth + 1)}}}"


def space(r):
    return r.choice(["", " ", "\n", "  \n", "x", "\n  "])


def block(r, depth=0):
    k = r.random()
    o, c = r.choice([("{%", "%}"), ("{%-", "%}"), ("{%", "-%}"), ("{%-", "-%}"), ("{%+", "%}")])
    if depth > 2 or k < .45:
        a, b = r.choice([("{{", "}}"), ("{{-", "}}"), ("{{", "-}}")])
        return f"{space(r)}{a} {expr(r)} {b}{space(r)}"
    if k < .6:
        other = f"{o} elif {expr(r)} {c}{block(r, depth + 1)}" if r.random() < .3 else ""
        last = f"{o} else {c}{block(r, depth + 1)}" if r.random() < .5 else ""
        return f"{o} if {expr(r)} {c}{space(r)}{block(r, depth + 1)}{other}{last}{o} endif {c}"
    if k < .8:
        head = r.choice(["x in l", "x in ls", "k, v in d.items()", "x in ld if x.v > 1", "x in range(3)", "x in el", "m in ld", "x in s", f"x in {expr(r)}"])
        body = r.choice(["{{ loop.index }}{{ loop.last }}", "{{ x }}", "{% if loop.first %}F{% endif %}", "{% if x == 2 %}{% continue %}{% endif %}{{ x }}", "{% if loop.index0 == 1 %}{% break %}{% endif %}", "{{ loop.cycle('a','b') }}", block(r, depth + 1), "{{ loop.previtem }}{{ loop.nextitem }}"])
        last = f"{o} else {c}none" if r.random() < .3 else ""
        return f"{o} for {head} {c}{space(r)}{body}{last}{o} endfor {c}"
    if k < .88:
        return f"{o} set y = {expr(r)} {c}{space(r)}{{{{ y }}}}"
    if k < .93:
        return f"{o} set ns = namespace(a=1) {c}{o} for x in l {c}{o} set ns.a = ns.a + x {c}{o} endfor {c}{{{{ ns.a }}}}"
    if k < .97:
        return f"{o} macro mm(p, q='d') {c}[{{{{ p }}}}{{{{ q }}}}]{o} endmacro {c}{{{{ mm({expr(r)}) }}}}"
    return f"{{# comment {space(r)} #}}" + r.choice(["{% raw %}{{ x }}{% endraw %}", "{% set z %}cap{{ n }}{% endset %}{{ z }}", "{% filter upper %}abc{% endfilter %}"])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--render", required=True)
    p.add_argument("-n", type=int, default=2500)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--show", type=int, default=10)
    a = p.parse_args()
    r = random.Random(a.seed)
    request = {"messages": [], "extra": VALUES, "tokens": ct.TOKENS, "now": ct.NOW, "utc_offset": 0, "add_generation_prompt": True}
    same = refused = lacking = bad = 0
    with tempfile.NamedTemporaryFile("w", suffix=".jinja", newline="") as f:
        for i in range(a.n):
            source = "".join(block(r) + space(r) for _ in range(r.randint(1, 3)))
            f.seek(0)
            f.truncate()
            f.write(source)
            f.flush()
            try:
                want, note = ct.oracle(ct.ENVIRONMENTS[0][1], source, {"messages": [], "extra": VALUES}), ""
            except RecursionError:
                continue
            except Exception as e:  # noqa: BLE001 whatever the template makes Python raise
                want, note = None, f"{type(e).__name__}: {e}"
            run = subprocess.run([a.render, "-j", f.name], input=json.dumps(request).encode(), capture_output=True, timeout=60)
            out = run.stdout.decode()
            got = json.loads(out.split("\n")[0]) if out else {"error": run.stderr.decode()}
            if want is not None and " object at 0x" in want:
                continue  # an address of Python's
            if want is not None and want == got.get("text"):
                same += 1
            elif want is None and "error" in got:
                refused += 1
            elif want is not None and "error" in got and "not support" in got["error"]:
                lacking += 1
                if lacking <= a.show:
                    print(f"{i} LACKS {source!r}: {got['error']}")
            else:
                bad += 1
                if bad <= a.show:
                    print(f"{i} DIFF {source!r}\n   want {want!r} {note}\n   got  {got.get('text', got.get('error'))!r}")
    print(f"seed {a.seed}: {same} the same, {refused} refused by both, {lacking} beyond the subset, {bad} different")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
