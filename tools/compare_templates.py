"""Renders every *.jinja of a folder with render_template and with jinja2 and compares the bytes.

    python tools/compare_templates.py --render build/release/tools/render_template --templates DIR

The environment of the oracle is the one that chat templates are written for. Two extensions of ours
are given to the oracle as well, and reported: lists may be changed (append, pop), and from_json
exists. A conversation that a template refuses must be refused by both sides.
"""
import argparse
import datetime
import glob
import json
import os
import subprocess
import sys

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox
import jinja2.utils

NOW = 1785931445  # a fixed moment
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


class Namespace(jinja2.utils.Namespace):
    def __init__(*args, **kwargs):
        self, args = args[0], args[1:]
        attributes = dict(*args, **kwargs)
        for name in attributes:
            Namespace.check(name)
        jinja2.utils.Namespace.__init__(self, attributes)

    def __setitem__(self, name, value):
        Namespace.check(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)

    @staticmethod
    def check(name):
        if isinstance(name, str) and name.startswith("_"):
            raise jinja2.exceptions.SecurityError(name)


def environment(base=jinja2.sandbox.ImmutableSandboxedEnvironment, extras=False, safe=True):
    env = base(trim_blocks=True, lstrip_blocks=True,
               extensions=[Generation, jinja2.ext.loopcontrols])

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                          sort_keys=sort_keys)

    env.filters["tojson"] = tojson
    env.globals["namespace"] = Namespace
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda f: datetime.datetime.fromtimestamp(
        NOW, datetime.timezone.utc).replace(tzinfo=None).strftime(f)
    if extras:
        env.filters["from_json"] = env.filters["fromjson"] = json.loads
    if not safe:
        env.filters["safe"] = str
    return env


TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "Tells the weather <now> & \"here\".",
        "parameters": {"type": "object", "properties": {
            "city": {"type": "string", "description": "Name of the city, e.g. Zürich"},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
            "days": {"type": "integer", "minimum": 1}}, "required": ["city"]}}},
    {"type": "function", "function": {
        "name": "search", "description": "Searches.\nTwo lines.",
        "parameters": {"type": "object", "properties": {
            "items": {"type": "array", "items": {"type": "string"}},
            "filter": {"type": "object", "properties": {"x": {"type": ["number", "null"]}}},
            "deep": {"type": "boolean"}}, "required": []}}},
]


def call(name, arguments, id="abcdef123"):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def conversations():
    user = {"role": "user", "content": "What is 2+2?"}
    system = {"role": "system", "content": "You are terse."}
    bot = {"role": "assistant", "content": "4"}
    yield "user only", {"messages": [user]}
    yield "system", {"messages": [system, user]}
    yield "several turns", {"messages": [
        system, user, bot, {"role": "user", "content": "And 3+3?"},
        {"role": "assistant", "content": "6"}, {"role": "user", "content": "Thanks"}]}
    yield "no system, ends with the assistant", {
        "messages": [user, bot], "add_generation_prompt": False}
    yield "tools offered", {"messages": [system, user], "tools": TOOLS}
    called = {"role": "assistant", "content": "", "tool_calls": [
        call("get_weather", {"city": "Zürich", "days": 3, "deep": True, "x": None, "f": 1.5})]}
    result = {"role": "tool", "name": "get_weather", "tool_call_id": "abcdef123",
              "content": "{\"temp\": 20}"}
    yield "tool call and result", {"messages": [
        system, {"role": "user", "content": "Weather?"}, called, result], "tools": TOOLS}
    yield "tool call, answer, next turn", {"messages": [
        {"role": "user", "content": "Weather?"}, called, result,
        {"role": "assistant", "content": "20 degrees."},
        {"role": "user", "content": "Good."}], "tools": TOOLS}
    yield "two calls at once", {"messages": [
        {"role": "user", "content": "Both"},
        {"role": "assistant", "content": "Looking.", "tool_calls": [
            call("get_weather", {"city": "Rom"}, "aaaaaaaa1"),
            call("search", {"items": ["a", "b"], "filter": {"x": 1}, "deep": False}, "aaaaaaaa2")]},
        {"role": "tool", "name": "get_weather", "tool_call_id": "aaaaaaaa1", "content": "30"},
        {"role": "tool", "name": "search", "tool_call_id": "aaaaaaaa2", "content": "none"}],
        "tools": TOOLS}
    yield "arguments as a string", {"messages": [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": None,
         "tool_calls": [call("get_weather", "{\"city\": \"Bern\"}")]}, result], "tools": TOOLS}
    yield "unicode", {"messages": [
        {"role": "system", "content": "日本語で答えて 🙂 é\u00a0"},
        {"role": "user", "content": "Straße — «ünï» <|im_end|> </s> \u2028 'q' \"d\" \\n"}]}
    yield "empty and spaces", {"messages": [
        {"role": "system", "content": ""}, {"role": "user", "content": "  padded \n\n"},
        {"role": "assistant", "content": " \t x  \n"}, {"role": "user", "content": "\n"}]}
    yield "reasoning", {"messages": [
        user, {"role": "assistant", "content": "<think>\nhm\n</think>\n\n4",
               "reasoning_content": "hm"},
        {"role": "user", "content": "Sure?"},
        {"role": "assistant", "content": "Yes", "thinking": "ok", "reasoning_content": "ok"},
        {"role": "user", "content": "Fine"}], "extra": {"enable_thinking": True}}
    yield "thinking off", {"messages": [system, user], "extra": {
        "enable_thinking": False, "thinking": False, "reasoning_effort": "low"}}
    yield "content as parts", {"messages": [
        {"role": "user", "content": [{"type": "text", "text": "Look: "},
                                     {"type": "text", "text": "here"}]}]}
    yield "documents", {"messages": [system, user], "documents": [
        {"title": "One", "text": "Text of one."}, {"title": "Two", "text": "Text of two."}]}
    yield "dates", {"messages": [user],
                    "extra": {"date_string": "26 Jul 2024", "builtin_tools": []}}
    yield "wrong order of roles", {"messages": [bot, user, user]}


def oracle(env, source, request):
    template = env.from_string(source)
    variables = dict(TOKENS)
    variables.update(messages=request["messages"], tools=request.get("tools"),
                     documents=request.get("documents"),
                     add_generation_prompt=request.get("add_generation_prompt", True))
    variables.update(request.get("extra", {}))
    return template.render(**json.loads(json.dumps(variables)))


def expected(source, request):
    """(text or None, note)"""
    note = ""
    for kind, env in ENVIRONMENTS:
        try:
            return oracle(env, source, request), kind
        except Exception as e:  # noqa: BLE001 whatever the template makes Python raise
            note = note or f"{type(e).__name__}: {e}"
            extension = isinstance(e, jinja2.exceptions.SecurityError) or "from_json" in str(e)
            if not extension:
                return None, f"{type(e).__name__}: {e}"
    return None, note


ENVIRONMENTS = [("", environment()),
                ("extended", environment(jinja2.sandbox.SandboxedEnvironment, True))]
UNESCAPED = environment(safe=False)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--render", required=True)
    p.add_argument("--templates", required=True)
    p.add_argument("--verbose", action="store_true")
    args = p.parse_args()
    files = sorted(glob.glob(os.path.join(args.templates, "*.jinja")))
    equal_files = same = refused = different = 0
    for path in files:
        source = open(path, encoding="utf-8", newline="").read()
        cases = list(conversations())
        requests = []
        for _, r in cases:
            r = json.loads(json.dumps(r))
            r.setdefault("add_generation_prompt", True)
            requests.append(dict(r, tokens=TOKENS, now=NOW, utc_offset=0))
        run = subprocess.run([args.render, "-j", path], input=json.dumps(requests).encode(),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        answers = [json.loads(x) for x in run.stdout.decode().split("\n") if x]
        bad, notes = [], set()
        if len(answers) != len(cases):
            bad.append(f"exit {run.returncode}: {run.stderr.decode()[-300:]}")
        for (name, r), got in zip(cases, answers):
            want, note = expected(source, r)
            if want is None and "error" in got:
                refused += 1
            elif want is not None and want == got.get("text"):
                same += 1
                if note:
                    notes.add(note)
            elif want and "|safe" in source and oracle(UNESCAPED, source, r) == got.get("text"):
                same += 1
                notes.add("equal but for HTML escaping after |safe")
            else:
                different += 1
                bad.append(f"{name}: {note} {got.get('error', '')}")
                if args.verbose:
                    print("--- want\n%s\n--- got\n%s" % (want, got.get("text")))
        equal_files += not bad
        print(("ok   " if not bad else "DIFF ") + os.path.basename(path), *sorted(notes))
        for b in bad:
            print("     " + b)
    print(f"{equal_files} of {len(files)} templates equal; {same} renderings the same, "
          f"{refused} refused by both, {different} different")
    return different != 0


if __name__ == "__main__":
    sys.exit(main())
