#!/usr/bin/env python3
"""Writes tests/data/templates/cases.json: small templates with what jinja2 makes of them, and
conversations.json: the templates beside it (*.jinja) rendered for a few conversations.

    python tools/gen_template_golden.py          (needs jinja2; run it again after adding cases)

template_test.c checks both. A case whose answer is an error must be an error in ours too.
"""
import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import jinja2.sandbox  # noqa: E402
import compare_templates  # noqa: E402

VARS = {
    "s": "Hello World", "u": "Straße 日本 é🙂", "e": "", "sp": "  two  words \n", "n": 7, "z": 0,
    "f": 2.5, "g": 1e20, "t": True, "no": False, "nil": None, "neg": -3,
    "l": [3, 1, 2], "ls": ["b", "A", "c"], "ll": [[1, 2], [3, 4]], "el": [], "mix": [1, "a", None],
    "d": {"b": 1, "a": 2, "items": "key", "C": 3}, "ed": {}, "nest": {"x": {"y": [10, {"z": "deep"}]}},
    "rows": [{"name": "Bo", "age": 3, "on": True}, {"name": "al", "age": 1, "on": False},
             {"name": "Cy", "age": 2, "on": True}],
    "html": "<a href=\"x\">&'</a>", "lines": "one\n\n  two\nthree\n", "csv": "a,b,,c",
    "ints": [1, 2, 3, 4, 5, 6], "dup": ["a", "B", "b", "A", "a"], "messages": [
        {"role": "system", "content": "S"}, {"role": "user", "content": "U"},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f",
         "arguments": {"x": 1, "y": [True, None, 1.5, "é\"\n"]}}}]}],
}

# one template a line; blank lines and lines that begin with ## are skipped
EXPRESSIONS = r"""
## literals
1
-1
1.5
1e3
1e16
1e15
1e-5
0.0001
1E2
1_000
0x1F
0b101
0o17
1.0
100000000000000000000.0
-0.0
1e308*10
'a'
"a"
'it''s'
"a" "b" 'c'
'a\nb\t\'q\' \x41 \u00e9 \\ \d'
true
True
false
False
none
None
[]
[1, 'a', none, true, 1.0]
[1,]
()
(1,)
(1, 2)
1, 2
{}
{'a': 1}
{'a': 1, 'b': [1, {'c': none}],}
{1: 'x', 'y': 2, 1.5: 3, none: 4, true: 5}
{'a': 1, 'a': 2}
{[1]: 2}
[1
'abc
{'a' 1}
1 2
## printing
s
u
n
f
g
t
nil
l
ls
d
nest
mix
missing
missing.x
nest.q
nest.q.z
nest.x.y[1].z
'a\x00b' ~ '\x7f\x80\xad\u200b\u2028\U0001F600'|list
['\'', '"', '\'"', '\n\t\r\\', 'é', '\u200b', '\x01', '\x7f', '\xa0', '\U0001F600', '\ue000', '\U000e0001']
(1.0, 0.1, 1e22, 1e21, 123456789.123, 5e-324, 1.7976931348623157e308, 0.30000000000000004)
[1e16, 1e15, 123456789012345680.0, 1e-4, 1e-5, 100.0]
range(3)
range(1, 7, 2)
range(5, 0, -2)|list
## arithmetic
1 + 2
1 - 2 - 3
2 * 3 + 4
2 + 3 * 4
(2 + 3) * 4
7 / 2
8 / 2
7 // 2
-7 // 2
7 // -2
7 % 3
-7 % 3
7 % -3
7.5 % 2
-7.5 % 2
7.5 // 2
-7.5 // 2
2 ** 10
2 ** -1
2 ** 0.5
2 ** 3 ** 2
-2 ** 2
1 / 0
1 // 0
1 % 0
1.0 / 0
1 + 1.5
true + 1
true + true
'a' + 'b'
'a' + 1
1 + 'a'
'a' + none
none + 1
'a' * 3
3 * 'ab'
'a' * -1
[1] + [2]
[1] * 2
(1,) + (2,)
[1] + (2,)
{} + {}
'a' - 'b'
-'a'
-true
+5
- -5
-n
+f
missing + 1
1 + missing
'a' + missing
missing ~ 'a'
1 ~ 2
'a' ~ 1 ~ none ~ [1] ~ 1.0
1 + 2 ~ 3 + 4
n ~ s|upper
1 - 1 ~ 2
9223372036854775807
9007199254740993 + 0.0
9007199254740993 == 9007199254740992.0
## comparison
1 == 1.0
1 == true
'a' == 'a'
'1' == 1
none == none
none == false
missing == none
missing == missing2
[1, 2] == [1, 2]
[1] == (1,)
{'a': 1, 'b': 2} == {'b': 2, 'a': 1}
1 != 2
1 < 2
1 < 2 < 3
1 < 3 < 2
3 > 2 >= 2 > 1
1 < 2 == 2
'a' < 'b'
'B' < 'a'
'é' > 'z'
[1, 2] < [1, 3]
(1, 2) < (1,)
1 < 'a'
none < 1
[] < {}
missing < 1
1 > missing
1 <= 1.0
1 in [1, 2]
3 in [1, 2]
3 not in [1, 2]
'a' in 'abc'
'' in 'abc'
1 in 'abc'
none in 'abc'
missing in 'abc'
'a' in d
'items' in d
1 in d
[1] in d
'x' in missing
1 in 5
'a' in none
1 in range(3)
2 in (1, 2)
'ell' in s
true in [1]
not 1 in [1]
not 'a' in 'b'
## boolean
1 and 2
0 and 2
1 or 2
0 or 'x'
'' or none
none or missing or 'z'
not true
not ''
not missing
not not 1
true and not false
true or 1/0
false and 1/0
1 if true else 2
1 if false else 2
1 if false
'a' if nil else 'b' if t else 'c'
(1 if false) is defined
'x' if [] else 'y'
'x' if {} else 'y'
'x' if '' else 'y'
'x' if 0.0 else 'y'
'x' if range(0) else 'y'
'x' if (el|map('upper')) else 'y'
'x' if namespace() else 'y'
## access
d.a
d['a']
d.zzz
d['zzz']
d.zzz is defined
d.items
d['items']
d.items()|list
d.keys()|list
d.values()|list
d.items()
d.keys()
d.get('a')
d.get('zz')
d.get('zz', 5)
d.get('zz', default=5)
ed.get
d.get()
nest.x.y.0
nest.x.y[0]
nest['x']['y'][1]['z']
l[0]
l[-1]
l[5]
l[-5]
l['a']
l[1.0]
l[true]
l[none]
s[0]
s[-1]
s[50]
s.foo
u[0]
u[6]
u[7:9]
u[-1]
u[::-1]
u|length
nil.x
nil['x']
nil.x.y
n.x
n['x']
5 .x
missing['a']
missing[0]
missing()
s()
d['get']('a')
s['upper']()
d.a.b
ll[1][0]
ll[0, 1]
d[[1]]
d[1:2]
nil[1:2]
missing[1:2]
## slices
l[:]
l[1:]
l[:1]
l[:-1]
l[-2:]
l[::2]
l[::-1]
l[5:]
l[2:1]
l[1:2:0]
ints[4:1:-1]
ints[:2:-1]
ints[-100:100]
ints[::-2]
ints['a':]
ints[missing:]
s[1:4]
s[:-6]
s[::2]
s[::-1]
u[2:6]
u[:]
(1, 2, 3)[1:]
range(10)[2:5]
range(10)[::3]
range(10)[2]
range(10)[-1]
messages[1:]|length
messages[::-1][0].role
messages[0:1][0]['content']
## filters: text
s|upper
s|lower
u|upper
u|lower
'ὈΔΥΣΣΕΎΣ ß ﬁ ǆ'|upper
'ÀÉ İ Ǆ'|lower
s|title
'foo-bar (baz) [q] it\'s {x} <y>'|title
'ßx éa'|title
s|capitalize
'hELLO wORLD'|capitalize
u|capitalize
''|capitalize
sp|trim
'xxaxx'|trim('x')
'\u3000\xa0a\u2003'|trim
5|trim
none|upper
missing|upper
missing|trim
[1]|upper
s|replace('o', '0')
s|replace('o', '0', 1)
s|replace('', '-')
s|replace('zz', 'y')
12321|replace(2, 'x')
s|replace('l', missing)
s|replace('l')
s|length
e|length
u|length
l|length
d|length
5|length
none|length
missing|length
l|count
s|string
5|string + 'a'
none|string
1.5|string
[1,'a']|string
s|center(21)
'ab'|center(5)
'abc'|center(6)
lines|indent
lines|indent(2)
lines|indent(2, true)
lines|indent(2, true, true)
lines|indent(width='> ')
lines|indent(blank=true)
''|indent
'a\r\nb\x0bc\u2028d'|indent(1)
5|indent
s|truncate(5)
'hello big world again and again'|truncate(12)
'hello big world again and again'|truncate(12, true)
'hello big world again and again'|truncate(12, false, '!', 0)
'hello'|truncate(4)
'hello'|truncate(2)
s|wordcount
'a_b c-d é 日本, x'|wordcount
html|e
html|escape
html|forceescape
'a b/ü?&'|urlencode
'%s is %d'|format('x', 5)
'%(a)s %(b)05.1f'|format(a='x', b=2.25)
'%s'|format()
'%s %s'|format(1)
'%d'|format('a')
'%-5s|%5s|%05d|%+d|% d|%x|%X|%#x|%o|%e|%g|%c|%%|%r|%.2s'|format('a', 'b', 42, 1, 2, 255, 255, 255, 8, 12345.678, 0.0001, 'z', 'q', 'xyz')
'%5.1f|%-8.3e|%G'|format(3.14159, 31415.9, 1e-10)
'%*d'|format(5, 3)
'%s' % 'a'
'%s %s' % ('a', 1)
'%s' % [1]
'%(x)s' % {'x': 3}
'%s' % {'x': 3}
'%d%%' % 5.9
'%s %s' % 'a'
'a' % 'b'
s|safe
'<'|safe ~ '>'
## filters: numbers
-5|abs
(-5)|abs
(-2.5)|abs
true|abs
'a'|abs
'42'|int
'42.9'|int
' 7 '|int
'-3'|int
'+3'|int
'1_0'|int
'abc'|int
'abc'|int(5)
'ff'|int(0, 16)
'0xff'|int(0, 16)
'0b11'|int(base=2)
'0xff'|int(0, 0)
3.99|int
-3.99|int
(-3.99)|int
true|int
none|int
[]|int
missing|int
'1e3'|int
'inf'|int
'1.5'|float
'x'|float
'x'|float(1.5)
5|float
none|float
'1e3'|float
2.5|round
3.5|round
0.5|round
2.675|round(2)
1.005|round(2)
5|round
15|round(-1)
2.4|round(method='ceil')
2.6|round(0, 'floor')
2.123|round(2, 'ceil')
-2.5|round
1234.5|round(-2)
2.5|round(0, 'x')
'a'|round
## filters: sequences
l|first
l|last
el|first
el|last
el|first is defined
s|first
s|last
u|last
d|first
missing|first
range(4)|last
5|first
l|join
l|join(', ')
ls|join('-')
mix|join(',')
el|join
s|join('.')
d|join(',')
rows|join(', ', attribute='name')
rows|join(attribute='age')
l|join(5)
missing|join
5|join
l|sort
ls|sort
ls|sort(case_sensitive=true)
l|sort(reverse=true)
l|sort(true)
mix|sort
rows|sort(attribute='age')|map(attribute='name')|list
rows|sort(attribute='name')|map(attribute='name')|list
rows|sort(attribute='on,name')|map(attribute='name')|list
rows|sort(attribute='on', reverse=true)|map(attribute='name')|list
d|sort
s|sort
el|sort
[[2,1],[1,2]]|sort
[none]|sort
[none,none]|sort
d|dictsort
d|dictsort(true)
d|dictsort(false, 'value')
d|dictsort(reverse=true)
d|dictsort(by='value', reverse=true)
d|dictsort(by='x')
l|dictsort
l|list
s|list
d|list
missing|list
5|list
l|reverse|list
s|reverse
u|reverse
d|reverse|list
el|reverse|list
l|min
l|max
ls|min
ls|max
ls|min(true)
rows|max(attribute='age')
rows|min(attribute='name')
el|min
mix|max
l|sum
rows|sum(attribute='age')
l|sum(start=10)
ll|sum(start=[])
ls|sum
el|sum
[0.1,0.2]|sum
dup|unique|list
dup|unique(true)|list
rows|unique(attribute='on')|map(attribute='name')|list
[[1],[1]]|unique|list
l|map('string')|list
ls|map('upper')|join
ls|map('replace', 'b', 'x')|list
l|map('default', 1)|list
rows|map(attribute='name')|list
rows|map(attribute='zz')|list
rows|map(attribute='zz', default='-')|list
messages|map(attribute='tool_calls.0.function.name')|list
ll|map(attribute=1)|list
ll|map(attribute='1')|list
ll|map('first')|list
l|map|list
l|map('nofilter')|list
l|map(foo='x')|list
missing|map('upper')|list
none|map('upper')|list
5|map('upper')|list
ints|select('odd')|list
ints|reject('odd')|list
ints|select('divisibleby', 3)|list
ints|select('gt', 4)|list
ints|select('>', 4)|list
ints|select('in', [2, 3])|list
mix|select|list
mix|reject|list
mix|select('none')|list
mix|select('string')|list
ints|select('notest')|list
rows|selectattr('on')|map(attribute='name')|list
rows|rejectattr('on')|map(attribute='name')|list
rows|selectattr('age', 'ge', 2)|map(attribute='name')|list
rows|selectattr('age', 'equalto', 2)|list|length
rows|selectattr('name', '==', 'Cy')|first
rows|selectattr('zz', 'defined')|list
rows|rejectattr('zz', 'defined')|list|length
rows|selectattr|list
messages|selectattr('role', 'equalto', 'system')|list|length > 0
messages|selectattr('role', 'eq', 'user')|map(attribute='content')|first
rows|map(attribute='name')|length
rows|map(attribute='name')[0]
rows|groupby('on')|map('first')|list
rows|groupby('on')|map(attribute='grouper')|list
rows|groupby('on')|map(attribute='list')|map('length')|list
rows|groupby('zz', default='q')|map('first')|list
ints|batch(4)|list
ints|batch(4, 'x')|list
ints|batch(2)|map('sum')|list
ints|slice(4)|list
ints|slice(4, 0)|list
d|items|list
missing|items|list
l|items|list
d|attr('items')
d|attr('a')
s|attr('nope') is defined
l|items
## default
missing|default('x')
missing|d('x')
nil|default('x')
e|default('x')
e|default('x', true)
nil|default('x', boolean=true)
n|default('x', true)
missing|default
missing.x|default('y')
nest.q|default('y')
missing|default(default_value=3)
d.zz|default([])|length
## tojson
d|tojson
nest|tojson
mix|tojson
s|tojson
u|tojson
html|tojson
'\n\t\r\x08\x0c\x00\x1f\x7f/"\\'|tojson
u|tojson(ensure_ascii=true)
u|tojson(ensure_ascii=false)
1|tojson
1.0|tojson
1e20|tojson
none|tojson
true|tojson
(1, 2)|tojson
[]|tojson
{}|tojson
missing|tojson
range(2)|tojson
d.keys()|tojson
{1: 2, none: 3, true: 4, 1.5: 5}|tojson
{(1, 2): 3}|tojson
nest|tojson(indent=2)
nest|tojson(indent=4)
nest|tojson(indent=0)
nest|tojson(indent='\t')
nest|tojson(2)
nest|tojson(separators=(',', ':'))
nest|tojson(indent=1, separators=(',', ' : '))
d|tojson(sort_keys=true)
[[], {}, [[]]]|tojson(indent=2)
messages|tojson
messages|tojson(indent=2)
messages[2].tool_calls[0].function.arguments|tojson
d|tojson|length
namespace(a=1)|tojson
## tests
missing is defined
missing is undefined
s is defined
s is not defined
not s is defined
nil is defined
nil is none
nil is not none
missing is none
t is true
n is true
t is boolean
n is boolean
no is false
z is false
n is integer
t is integer
f is float
n is float
n is number
t is number
s is number
s is string
n is string
d is mapping
l is mapping
l is sequence
s is sequence
d is sequence
n is sequence
missing is sequence
(1,) is sequence
range(1) is sequence
d.keys() is sequence
l is iterable
n is iterable
none is iterable
d.items() is iterable
d.items is callable
n is callable
missing is callable
range is callable
n is odd
n is even
4 is even
'a' is odd
9 is divisibleby 3
9 is divisibleby(2)
9 is divisibleby 0
'abc' is lower
'Abc' is lower
'ABC' is upper
'123' is lower
5 is upper
n is sameas n
none is sameas none
'a' in ['a'] is true
n is in [7]
n is in(l)
n is eq 7
n is equalto 7
n is ne 7
n is gt 5
n is lessthan 5
n is le 7
n is ge 8
'x' is eq('x')
'upper' is filter
'zz' is filter
'odd' is test
s is escaped
n is notest
n is not in [1]
n is defined and s is string
n is defined is true
n is number and n > 5
l[0] is odd
-1 is number
## methods of strings
s.upper()
s.lower()
u.upper()
s.title()
"they're bill's".title()
s.capitalize()
s.swapcase()
sp.strip()
sp.lstrip()
sp.rstrip()
'xxayx'.strip('xy')
'xxa'.lstrip('x')
'axx'.rstrip('x')
'abc'.strip('')
'a'.strip(none)
'a'.strip(5)
s.split()
sp.split()
csv.split(',')
csv.split(',', 1)
csv.split(',', maxsplit=1)
csv.split(sep=',')
csv.split('')
csv.split('zz')
''.split()
''.split(',')
'a  b c '.split(' ')
'  a b  c '.split(none, 1)
csv.rsplit(',', 1)
csv.rsplit(',')
'  a b  c '.rsplit(none, 1)
'a b c'.rsplit()
'<think>x</think>y'.split('</think>')[-1]
lines.splitlines()
lines.splitlines(true)
'a\r\nb\rc\x0bd\u2028e'.splitlines()
s.startswith('Hell')
s.startswith('ell', 1)
s.startswith(('x', 'H'))
s.startswith(['H'])
s.startswith(5)
s.endswith('ld')
s.endswith('lo', 0, 5)
s.endswith('')
s.find('o')
s.find('o', 5)
s.find('zz')
u.find('本')
s.rfind('o')
s.index('o')
s.index('zz')
s.count('o')
s.count('')
'aaa'.count('aa')
s.replace('l', 'L')
s.replace('l', 'L', 1)
s.replace('l', 5)
', '.join(['a', 'b'])
', '.join([1])
''.join('abc')
'-'.join(d)
'a=b=c'.partition('=')
'a=b=c'.rpartition('=')
'abc'.partition('=')
'abc'.rpartition('=')
'abc'.removeprefix('a')
'abc'.removesuffix('bc')
'abc'.isdigit()
'123'.isdigit()
'١٢'.isdigit()
'abc1'.isalnum()
'abc'.isalpha()
'éß'.isalpha()
''.isalpha()
'ab c'.isspace()
' \n'.isspace()
'abc'.islower()
'ABC1'.isupper()
'abc'.isascii()
'é'.isascii()
'12'.isnumeric()
'5'.zfill(3)
'-5'.zfill(4)
'abc'.ljust(5)|length
'abc'.rjust(5, '*')
'abc'.center(8, '-')
'{} {}'.format('a', 1)
'{0} {1} {0}'.format('a', 'b')
'{x} {y}'.format(x=1, y='z')
'{:>5}|{:<5}|{:^5}|{:*^7}'.format('a', 'b', 'c', 'd')
'{:05d}|{:+}|{:x}|{:#X}|{:b}|{:,}'.format(42, 1, 255, 255, 5, 1234567)
'{:.2f}|{:8.3f}|{:e}|{:%}|{:g}'.format(3.14159, 2.5, 12345.678, 0.25, 0.00001)
'{:.3}|{!r}|{!s:>4}'.format('abcdef', 'q', 'w')
'{{}} {}'.format(1)
'{}'.format()
'{'.format(1)
'{a.b}'.format(a=1)
'{0[a]} {0[b]}'.format(d)
'{0[1]}'.format(l)
'{:d}'.format('a')
'{:s}'.format(5)
'{} {0}'.format(1, 2)
'{:,.1f}'.format(12345.67)
'{}'.format(none)
'{:>6}'.format(true)
s.nope()
s.upper(1)
## methods of lists and dicts
l.index(1)
l.index(99)
l.count(1)
l.copy()
(1, 2, 1).count(1)
d.copy() == d
d.nope
## functions
range(0)|list
range(3)|list
range(1, 4)|list
range(10, 0, -3)|list
range(0, 10, 0)
range('a')
range(100001)|length
range(1.5)
range()
dict(a=1, b=2)
dict({'a': 1}, b=2)
dict([('a', 1)])
dict()
namespace(a=1).a
namespace(a=1).b
namespace({'a': 5}).a
namespace(a=1)
namespace(_a=1)
raise_exception('boom')
raise_exception()
strftime_now('%Y-%m-%d %H:%M:%S')
strftime_now('%d %b %Y %B %A %a %j %U %W %w %u %V %G %y %C %e %I %p %%')
strftime_now('%-d %-m %_d %-H %D %F %T %R %r %c %x %X %h %k %l %n %t %P %s %q')
strftime_now()
joiner()
cycler()
lipsum
## precedence
1 + 2|string|length
s ~ '!'|upper
'a' + 'b'|upper
-5|abs + 1
not n is odd
not true or true
1 if true else 2 + 3
2 * 3 % 4
10 - 2 * 3
1 < 2 and 2 < 3
'a' if 'a' in 'abc' and not false else 'b'
n > 5 and 'big' or 'small'
[1, 2][0] + 1
{'a': 1}.a
'abc'.upper().lower()[1]
(1, 2)|join(',')
l|length + 1
l|length > 2
(l|length) * 2
d.a + d['b'] * 2
n is odd and z is even
## *args and **kwargs
range(*[1, 4])|list
dict(**{'a': 1})
'{} {x}'.format(*['q'], **{'x': 1})
dict(a=1, a=2)
range(stop=3)
f(
"""

STATEMENTS = [
    "", "plain", "a\nb\n", "a\n\n", "\n", "{{ 1 }}\n", "{{ 1 }}\n\n", "a\r\nb\rc\r\n",
    # white space
    "a\n{% if true %}\nb\n{% endif %}\nc", "a\n  {% if true %}\n  b\n  {% endif %}\nc\n",
    "a {% if true %} b {% endif %} c", "a\n {%- if true %}\n b\n {%- endif %}\n c",
    "a\n{% if true -%}\n  b  \n{%- endif %}\nc", "  {{ 1 }}\n  {{ 2 }}\n", "a  {{- 1 -}}  b",
    "a\n\n{{- 1 }}\n\nb", "  {%+ if true %}x{% endif %}", "{% if true +%}\nx{% endif +%}\ny",
    "a\n  {# comment #}\nb", "a {#- c -#} b", "a\n  {#+ c #}\nb", "a {# c +#}\nb", "{# a #}{# b #}\nx",
    "{#\nmulti\nline\n#}\nx", "{# never closed", "{#-#}x", "{#--#}x", "a\t {% set x = 1 %}\t\nb",
    "\n\n{%- set x = 1 -%}\n\n{{ x }}\n", "x{% set a = 1 %}\n\ny", "\u3000{%- set a = 1 -%}\u2003y",
    "\x0b{% set a = 1 %}y", "a\n\x0b {% set a = 1 %}y", "{{ '{{' }} {{ '}}' }} {{ '%}' }}",
    "{% raw %}{{ x }} {% if %}{% endraw %}", "a\n  {% raw %}\n {{ x }}\n  {% endraw %}\nb",
    "a {%- raw -%} {{ x }} {%- endraw -%} b", "{% raw %}x", "{% raw +%}x{% endraw +%}\ny",
    "{%raw%}a{%endraw%}", "{ { x } }", "{", "{{", "{%", "{{ 1 }", "{% if", "{{ 1 %}", "a { b } c % d",
    "{{ {'a': {'b': 1}}['a']['b'] }}", "{{ {'a':1}}}", "{{ (1 }}", "{{ 1) }}", "{{ [1} }}", "{{ }}",
    "{{ 1, }}", "{{ 'a' if true }}", "{{ \"\n\" }}", "{{ 1\n+\n2 }}", "{{ # }}", "{{ a ! b }}",
    "{{ a $ b }}", "{{ é }}", "{% set é = 5 %}{{ é }}", "{{ 日本 }}{% set 日本 = 2 %}{{ 日本 }}",
    "{{ x² }}", "{{ '\\N{BULLET}' }}x" if False else "{{ 'ok' }}", "{{ '\\x4' }}", "{{ 'a\\\nb' }}",
    "{{ 007 }}", "{{ 1__0 }}", "{{ 1. }}", "{{ .5 }}", "{{ 1.e5 }}", "{{ 0xg }}",
    "{{ l.0.5 }}", "{{ ll.1.0 }}", "{{ 1;2 }}", "{{ a = 1 }}", "{{ a := 1 }}",
    # if
    "{% if n %}a{% endif %}", "{% if z %}a{% else %}b{% endif %}",
    "{% if z %}a{% elif n == 7 %}b{% else %}c{% endif %}", "{% if z %}a{% elif z %}b{% elif n %}c{% endif %}",
    "{% if true: %}a{% endif %}", "{% if %}a{% endif %}", "{% if true %}a", "{% if true %}a{% endfor %}",
    "{% endif %}", "{% else %}", "{% if true %}{% else %}{% else %}{% endif %}", "{% if 1, 2 %}x{% endif %}",
    "{% if true %}{% if false %}a{% else %}b{% endif %}{% endif %}", "{% if missing.x %}{% endif %}",
    "{% if true endif %}", "{% if true %}a{% endif foo %}", "{% foo %}", "{% 5 %}", "{% set %}",
    # for
    "{% for x in l %}{{ x }},{% endfor %}", "{% for x in l %}{{ loop.index }}{{ loop.index0 }}"
    "{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }};{% endfor %}",
    "{% for x in el %}{{ x }}{% else %}empty{% endfor %}", "{% for x in l %}a{% else %}b{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k, v in d|dictsort %}{{ k }}{% endfor %}",
    "{% for k in d %}{{ k }}{% endfor %}", "{% for c in u %}[{{ c }}]{% endfor %}",
    "{% for a, b in ll %}{{ a + b }},{% endfor %}", "{% for (a, b) in ll %}{{ a }}{% endfor %}",
    "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for a, b in l %}{% endfor %}",
    "{% for a, b in ['xy'] %}{{ a }}-{{ b }}{% endfor %}", "{% for a, b in [[1]] %}{% endfor %}",
    "{% for x in ints if x is odd %}{{ x }}{{ loop.last }}{{ loop.index }}/{{ loop.length }} {% endfor %}",
    "{% for x in ints if x > 99 %}{{ x }}{% else %}none{% endfor %}",
    "{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}",
    "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }};{% endfor %}",
    "{% for x in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}",
    "{% for x in l %}{{ loop.cycle('a', 'b') }}{% endfor %}", "{% for x in l %}{{ loop.cycle() }}{% endfor %}",
    "{% for x in [1,1,2,2,1] %}{{ loop.changed(x) }}{% endfor %}", "{% for x in l %}{{ loop.foo }}{% endfor %}",
    "{% for x in l %}{% for y in ls %}{{ loop.index }}{{ x }}{{ y }} {% endfor %}{{ loop.index }}{% endfor %}",
    "{% for x in l %}{% set o = loop %}{% for y in ls %}{{ o.index }}{{ loop.depth }}{% endfor %}{% endfor %}",
    "{% for x in missing %}a{% else %}b{% endfor %}", "{% for x in none %}a{% endfor %}",
    "{% for x in 5 %}a{% endfor %}", "{% for x in range(3) %}{{ x }}{% endfor %}", "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}",
    "{% for x in l|sort|reverse %}{{ x }}{% endfor %}", "{% for x in l[1:] + [9] %}{{ x }}{% endfor %}",
    "{% for x in ints %}{% if x == 3 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in ints %}{% if x is odd %}{% continue %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in l %}{% for y in ints %}{% if y > 2 %}{% break %}{% endif %}{{ y }}{% endfor %};{% endfor %}",
    "{% for x in [] %}{% break %}{% else %}e{% endfor %}", "{% break %}", "{% continue %}",
    "{% for x in l %}{{ x }}{% endfor %}{{ x }}", "{% for x in l %}", "{% for x l %}{% endfor %}", "{% for in l %}{% endfor %}",
    "{% for x.y in l %}{% endfor %}", "{% for 5 in l %}{% endfor %}", "{% for true in l %}{% endfor %}",
    "{% for n in ll recursive %}[{% if n is sequence %}{{ loop(n) }}{% else %}{{ n }}@{{ loop.depth }}{% endif %}]{% endfor %}",
    "{% for n in l %}{{ loop(l) }}{% endfor %}", "{% for x in l if loop.index > 1 %}{% endfor %}",
    "{% for x in l %}{{ loop }}{% endfor %}" if False else "{% for x in l %}{{ loop|length }}{% endfor %}",
    "{% for x in d.values() %}{{ loop.last }}{{ x }}{% endfor %}", "{% for x in l %}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}",
    "{% for x in rows|selectattr('on') %}{{ x.name }}{{ loop.length }}{{ loop.last }}{% endfor %}",
    "{% for g in rows|groupby('on') %}{{ g.grouper }}:{{ g.list|length }};{% endfor %}",
    # set
    "{% set x = 5 %}{{ x }}", "{% set x, y = 1, 2 %}{{ x }}{{ y }}", "{% set x = 1, 2 %}{{ x }}", "{% set x, y = 1 %}",
    "{% set x, y = l %}", "{% set (x, y) = (1, 2) %}{{ y }}", "{% set x %}a{{ n }}b{% endset %}{{ x }}",
    "{% set x | upper %}abc{% endset %}{{ x }}", "{% set x | replace('a', 'b') | upper %}aca{% endset %}{{ x }}",
    "{% set x %}{% endset %}[{{ x }}]{{ x is string }}", "{% set x %}{% set y = 1 %}{{ y }}{% endset %}{{ x }}{{ y }}",
    "{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}", "{% set x = 1 %}{% for i in l %}{% set x = i %}{{ x }}{% endfor %}{{ x }}",
    "{% for i in l %}{{ y }}{% set y = i %}{% endfor %}", "{% set x = 0 %}{% for i in l %}{% set x = x + i %}{% endfor %}{{ x }}",
    "{% set ns = namespace(x=0) %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace() %}{% set ns.a = 1 %}{% set ns.b = ns.a + 1 %}{{ ns.a }}{{ ns.b }}{{ ns.c is defined }}",
    "{% set ns = namespace(a=[]) %}{% set ns.a = ns.a + [1] %}{{ ns.a }}", "{% set d.x = 1 %}", "{% set missing.x = 1 %}",
    "{% set ns = namespace() %}{% set ns._x = 1 %}", "{% set ns = namespace(x=1) %}{{ ns['x'] }}",
    "{% set ns = namespace(x=1) %}{% set ns.x %}block{% endset %}{{ ns.x }}", "{% set ns = namespace() %}{% set a, ns.b = 1, 2 %}{{ a }}{{ ns.b }}",
    "{% set n = n + 1 %}{{ n }}", "{% set x = n if n > 5 else 0 %}{{ x }}", "{% set true = 1 %}", "{% set 5 = 1 %}", "{% set x == 1 %}", "{% set x = %}",
    "{% set tools = tools or [] %}{{ tools }}", "{% if false %}{% set s = 1 %}{% endif %}{{ s }}", "{% set range = 5 %}{{ range }}",
    "{% set x = [] %}{% set y = x %}{{ x == y }}{{ x is sameas y }}", "{% set loop = 5 %}{{ loop }}", "{% set x = joiner('|') %}{{ x() }}a{{ x() }}b{{ x() }}c",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.next() }}{{ c.reset() }}{{ c.next() }}",
    # macros
    "{% macro m(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(b=4, a=5) }} {{ m() }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(x=1) }}",
    "{% macro m(a, b=a + 1) %}{{ b }}{% endmacro %}{{ m(1) }}", "{% macro m(a=1, b) %}{% endmacro %}", "{% macro m() %}{% endmacro %}[{{ m() }}]",
    "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}", "{% macro m(a) %}{{ a }}{{ varargs|join }}{% endmacro %}{{ m(1, 2, 3) }}",
    "{% macro m(a) %}{{ kwargs.items()|list }}{% endmacro %}{{ m(1, b=2) }}", "{% macro m(x) %}{% if x > 0 %}{{ x }}{{ m(x - 1) }}{% endif %}{% endmacro %}{{ m(4) }}",
    "{% macro m() %}{{ n }}{{ s }}{% endmacro %}{{ m() }}", "{% set q = 1 %}{% macro m() %}{{ q }}{% endmacro %}{% set q = 2 %}{{ m() }}",
    "{% macro m() %}{{ i }}{% endmacro %}{% for i in l %}{{ m() }}{% endfor %}|", "{% for i in l %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% macro m() %}{% set z9 = 1 %}{% endmacro %}{{ m() }}{{ z9 }}", "{% macro m() %}  a\n{% endmacro %}{{ m()|trim }}!", "{{ m() }}{% macro m() %}x{% endmacro %}",
    "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}", "{% macro m(a) %}{{ a is defined }}{% endmacro %}{{ m() }}{{ m(missing) }}",
    "{% macro m(a=5) %}{{ a }}{% endmacro %}{{ m(none) }}{{ m(missing) }}{{ m() }}", "{% macro m(n) %}{{ n }}{% endmacro %}{{ m(1) }}{{ n }}",
    "{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}in {{ n }}{% endcall %}", "{% macro m() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b) m() %}{{ a + b }}{% endcall %}",
    "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}", "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}", "{% call 5 %}{% endcall %}",
    "{% macro m(x) %}{% for i in range(x) %}{{ caller(i) }}{% endfor %}{% endmacro %}{% call(i) m(3) %}<{{ i }}>{% endcall %}", "{% macro m %}{% endmacro %}",
    "{% macro m() %}a", "{% macro m() %}{% for x in l %}{{ loop.index }}{% endfor %}{% endmacro %}{{ m() }}", "{% macro m() %}{{ loop is defined }}{% endmacro %}{% for x in l %}{{ m() }}{% endfor %}",
    "{% macro m(a) %}{{ a.b }}{% endmacro %}{{ m({'b': 1}) }}", "{% set f2 = none %}{{ f2() }}", "{% macro m(a) -%}\n {{ a }}\n{%- endmacro %}{{ m(1) ~ m(2) }}",
    "{% macro m(v) %}{% if v is mapping %}{ {%- for k, w in v.items() %}{{ k }}:{{ m(w) }},{% endfor -%} }{% elif v is iterable and v is not string %}[{% for w in v %}{{ m(w) }},{% endfor %}]{% else %}{{ v }}{% endif %}{% endmacro %}{{ m(nest) }}{{ m(ll) }}",
    # filter blocks, with, generation
    "{% filter upper %}abc{{ s }}{% endfilter %}", "{% filter trim %}  a  {% endfilter %}|", "{% filter replace('a', 'b')|upper %}aa{% endfilter %}", "{% filter nofilter %}a{% endfilter %}",
    "{% filter upper %}{% set x = 1 %}{% endfilter %}{{ x }}", "{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a }}", "{% with %}{% set x = 1 %}{{ x }}{% endwith %}{{ x }}",
    "{% with a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}{% endwith %}", "{% generation %}x{{ n }}{% endgeneration %}y", "{% for m in l %}{% generation %}{{ m }}{% endgeneration %}{% endfor %}",
    "{% generation %}\nx\n{% endgeneration %}\ny", "{% generation %}{% set x = 1 %}{% endgeneration %}{{ x }}",
    # unknown names in dead code
    "{% if false %}{{ x|nofilter }}{% endif %}ok", "{{ x|nofilter }}", "{% if 'nofilter' is filter %}{{ 1|nofilter }}{% else %}no{% endif %}", "{{ 1|nofilter if false else 2 }}",
    "{% if false %}{{ x is notest }}{% endif %}ok", "{% if true %}{{ x is notest }}{% endif %}", "{% for x in [] %}{{ x|nofilter }}{% endfor %}", "{% macro m() %}{{ 1|nofilter }}{% endmacro %}ok",
    "{{ [1|nofilter] if true else 2 }}", "{{ (2 if false else 3) + (1|nofilter) }}",
    # evaluation order, errors inside
    "a{{ raise_exception('x') }}b", "{% if messages[0].role != 'user' %}{{ raise_exception('roles must alternate') }}{% endif %}", "{{ messages[9].role }}", "{{ messages[9] is defined }}",
    "{{ messages[0]['role'] + ': ' + messages[0]['content'] }}", "{{ messages[2].content + 'x' }}", "{{ messages[2]['content'] is none }}", "{{ messages[2].tool_calls[0]['function']['arguments'] }}",
    "{% for m in messages %}{{ '<|' + m.role + '|>' }}\n{% endfor %}", "{%- for m in messages -%}\n{{ m['role'] ~ '\n' ~ m['content'] }}\n{%- endfor %}",
    "{{ (messages|last).role }}{{ messages[-1].role }}{{ messages|map(attribute='role')|join(',') }}", "{% if messages[-1] == messages|last %}same{% endif %}",
    "{% set ns = namespace(found=false) %}{% for m in messages %}{% if m.role == 'user' and not ns.found %}{% set ns.found = true %}{{ loop.index0 }}{% endif %}{% endfor %}",
    "{% include 'a' %}", "{% extends 'a' %}", "{% import 'a' as b %}", "{% do 1 %}",
]

# what the immutable sandbox of the oracle forbids and ours allows
MUTATING = [
    "{% set x = [1] %}{% set _ = x.append(2) %}{{ x }}", "{% set x = [1, 2] %}{{ x.pop() }}{{ x }}", "{% set x = [1, 2] %}{{ x.pop(0) }}{{ x }}", "{% set x = [] %}{{ x.pop() }}",
    "{% set x = [1] %}{{ x.extend([2, 3]) }}{{ x }}", "{% set x = [1] %}{{ x.insert(0, 5) }}{{ x }}", "{% set x = [1, 2, 1] %}{{ x.remove(1) }}{{ x }}", "{% set x = [1, 2] %}{{ x.reverse() }}{{ x }}",
    "{% set x = [1] %}{{ x.clear() }}{{ x }}", "{% set x = {'a': 1} %}{{ x.update({'b': 2}) }}{{ x }}", "{% set x = {'a': 1} %}{{ x.pop('a') }}{{ x }}", "{% set x = {} %}{{ x.pop('a') }}", "{% set x = {} %}{{ x.pop('a', 3) }}",
    "{% set x = {} %}{{ x.setdefault('a', 3) }}{{ x }}", "{% set x = {'a': 1} %}{{ x.clear() }}{{ x }}", "{% set x = [] %}{% for i in l %}{{ x.append(i) or '' }}{% endfor %}{{ x }}", "{{ l.append(1) or l }}",
    "{% set x = [1, 2] %}{% for i in x %}{% if i < 4 %}{% set _ = x.append(i + 2) %}{% endif %}{{ i }}{% endfor %}",
    "{% set x = {} %}{% for i in range(20) %}{% set _ = x.update({i: i * i}) %}{% endfor %}{{ x }}{{ x[7] }}{{ x.pop(3) }}{{ x[4] }}{{ 3 in x }}",
]


def answer(env, source):
    try:
        return {"want": env.from_string(source).render(**json.loads(json.dumps(VARS)))}
    except Exception as e:  # noqa: BLE001
        return {"error": type(e).__name__}


def all_cases():
    env = compare_templates.environment()
    mutable = compare_templates.environment(jinja2.sandbox.SandboxedEnvironment)
    for line in EXPRESSIONS.splitlines():
        if line and not line.startswith("##"):
            yield env, "{{ " + line + " }}"
    for source in STATEMENTS:
        yield env, source
    for source in MUTATING:
        yield mutable, source


def main():
    folder = os.path.join(ROOT, "tests", "data", "templates")
    cases = []
    for env, source in all_cases():
        a = answer(env, source)
        if "want" in a and re.search(r"0x[0-9a-f]{8,}", a["want"]):
            continue  # prints an address
        cases.append(dict(t=source, **a))
    with open(os.path.join(folder, "cases.json"), "w", encoding="utf-8") as f:
        f.write(json.dumps({"vars": VARS}, ensure_ascii=False)[:-1] + ', "cases": [\n')
        f.write(",\n".join(json.dumps(c, ensure_ascii=False) for c in cases) + "\n]}\n")
    answers = []
    env = compare_templates.environment()
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".jinja"):
            continue
        source = open(os.path.join(folder, name), encoding="utf-8", newline="").read()
        for label, request in compare_templates.conversations():
            request.setdefault("add_generation_prompt", True)
            try:
                a = {"want": compare_templates.oracle(env, source, request)}
            except Exception as e:  # noqa: BLE001
                a = {"error": type(e).__name__}
            answers.append(dict(template=name, conversation=label, **a))
    requests = {label: dict(r, add_generation_prompt=r.get("add_generation_prompt", True))
                for label, r in compare_templates.conversations()}
    with open(os.path.join(folder, "conversations.json"), "w", encoding="utf-8") as f:
        f.write(json.dumps({"tokens": compare_templates.TOKENS, "now": compare_templates.NOW,
                            "requests": requests}, ensure_ascii=False)[:-1] + ', "answers": [\n')
        f.write(",\n".join(json.dumps(a, ensure_ascii=False) for a in answers) + "\n]}\n")
    print(f"{len(cases)} cases, {sum('error' in c for c in cases)} of them errors; "
          f"{len(answers)} conversations")


if __name__ == "__main__":
    main()
