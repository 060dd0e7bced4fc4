# SPDX-License-Identifier: Apache-2.0
"""Slips of the pen in unit tests of steps and in selections of steps, with the answers of the command line."""

from __future__ import annotations

import textwrap
from pathlib import Path

_FILE = """\
pipeline: shop
catalog: main
parameters: {least: {type: double, default: 5}, day: {type: date, default: 2026-01-31}}
sources:
  orders:
    files: data/*.csv
    schema: >-
      id bigint, customer string, amount decimal(9,2), at date, n int, tags array<string>, who struct<name:string>,
      is_paid boolean
  plain: data/*.csv
steps:
  raw.orders: {load: orders, tags: nightly}
  raw.orders_{{country}}:
    for_each: {country: [de, fr]}
    sql: SELECT * FROM raw.orders WHERE customer = '{{country}}'
  marts.sums:
    sql: SELECT customer, sum(amount) AS total, max(at) AS last FROM raw.orders WHERE amount >= :least GROUP BY customer
    tags: [report, nightly]
    write: {mode: merge, keys: customer}
    tests:
TESTS
  marts.plain:
    sql: SELECT a, b + 1 AS c FROM plain
    tests:
      of plain: {given: {plain: [{a: 1, b: 2}]}, expect: [{a: 1, c: 3}]}
MORE
  marts.ranked:
    python: functions:ranked
    inputs: {sums: marts.sums}
    tests:
      of ranked: {given: {marts.sums: [{customer: ana, total: 7}]}, expect: [{customer: ana}]}
PYTHON
  marts.lance: {sql: SELECT id FROM vectors.texts.t}
"""
_SOUND = "small: {given: {raw.orders: [{customer: ana, amount: 7}]}, expect: [{customer: ana, total: 7}]}"
_FUNCTIONS = """\
def ranked(sums, least):
    return sums.where(sums.total >= least)
"""
_BESIDE = {
    "orders.csv": b"customer,amount\nana,7\n",
    "short.csv": b"customer,amount\nana,5\nben\n",
    "long.csv": b"customer,amount\nana,1,50\n",
    "empty.csv": b"",
    "quote.csv": b'customer,amount\nben,1\n"ana,5\n',
    "semicolons.csv": b"customer;amount\nana;5\n",
    "twins.csv": b"customer,customer\nana,5\n",
    "latin.csv": "customer,amount\nJosé,5\n".encode("latin1"),
    "nameless.csv": b"customer,amount,\nana,5,\n",
    "blanks.csv": b"customer, amount\nana, 5\n",
    "dates.csv": b"customer,amount,at\nana,5,2026-01-31\nben,5,31.01.2026\n",
    "null.csv": b"customer,amount\nana,NULL\n",
}


def write_pipeline(directory: Path, tests: str = _SOUND, *, more: str = "", python: str = "") -> None:
    """Write the pipeline `shop.yaml` with its files; `tests` are tests of marts.sums, in the first column."""
    (directory / "tests").mkdir(exist_ok=True)
    for name, data in _BESIDE.items():
        (directory / "tests" / name).write_bytes(data)
    (directory / "functions.py").write_text(_FUNCTIONS)
    texts = {"TESTS\n": tests, "MORE\n": more, "PYTHON\n": python}
    text = _FILE
    for mark, each in texts.items():
        text = text.replace(mark, textwrap.indent(f"{each}\n" if each else "", " " * 6))
    (directory / "shop.yaml").write_text(text)


LINE = _FILE[: _FILE.index("TESTS")].count("\n") + 1
"""The line of `shop.yaml` in which the tests of `write_pipeline` begin."""

UNREADABLE = {
    # tests that cannot be read: the answer of every command, with the line of the test counted from 1
    "small: {given: {raw.orders: []}, expcet: []}": "1:40: unknown key 'expcet'; did you mean 'expect'?",
    "small: {gven: {raw.orders: []}, expect: []}": "1:15: unknown key 'gven'; did you mean 'given'?",
    "small: {given: {raw.orders: []}}": "1:14: a test needs 'expect': expect: [{customer: ana, total: 12.5}]",
    "small:\n  given: {raw.orders: []}\n  expect:": (
        "3:16: rows are missing here: write [{column: value}], or [] for no rows"
    ),
    "- {given: {raw.orders: []}, expect: []}": "a list; write tests: {NAME: {given: {INPUT: [{column: value}]}, expect:",
    "small: {given: [{customer: ana}], expect: []}": "not a list; write given: {INPUT: [{column: value}]}",
    "small: {given: raw.orders, expect: []}": "not 'raw.orders'; write given: {INPUT: [{column: value}]}",
    "small: {given: {raw.orders: []}, parameters: [least], expect: []}": "a list; write parameters: {name: value}",
    "small: {given: {raw.orders: [[ana, 7]]}, expect: []}": "1:36: a row is a mapping {column: value}, not a list",
    "small: {given: {raw.orders: []}, expect: {customer: ana, total: 7}}": (
        "1:49: a row stands in a list, also a single one: write [{customer: ana, total: 7}]"
    ),
    "small: {given: {raw.orders: []}, expect: {customer: [ana, ben]}}": (
        "1:49: rows are written one by one, not as columns: write [{column: value}]"
    ),
    "small: {given: {raw.orders: {row: []}}, expect: []}": "1:36: unknown key 'row'; did you mean 'rows'?",
    "small: {given: {raw.orders: {rows: [], csv: tests/orders.csv}}, expect: []}": (
        "1:35: there is both 'rows' and 'csv': write {rows: [{column: value}], schema: 'column type'}, or {csv: FILE}"
    ),
    "small: {given: {raw.orders: {schema: id bigint}}, expect: []}": "1:35: there is neither 'rows' nor 'csv': write",
    "small: {given: {raw.orders: [{customer:ana, amount: 7}]}, expect: []}": (
        "1:37: a blank is missing after ':' in 'customer:ana': write customer: ana"
    ),
    "small: {given: {raw.orders: [{customer: ana, Customer: ben}]}, expect: []}": (
        "1:52: the columns 'customer' and 'Customer' differ by case alone: each has its own name"
    ),
    "small: {given: {raw.orders: [{customer: a, customer: b}]}, expect: []}": "1:50: 'customer' is repeated here",
    "small: {expect: []}\nsmall: {expect: []}": "2:7: 'small' is repeated here; first in line",
    "small:\n\tgiven: {raw.orders: []}": "a tab stands before the first word of this line: indent by blanks",
    "small:\n  given: {raw.orders: []}\n expect: []": (
        "3:8: not YAML: this line is indented like none of the keys above it: indent it like the keys of its mapping"
    ),
    "small: {given: {raw.orders: [{customer: ana}}, expect: []}": (
        "1:51: not YAML: the list that '[' opens in line 1 is not closed before this: ',' or ']' is missing"
    ),
    "small: {given: {raw.orders: [{customer: a: b}]}, expect: []}": (
        "1:48: not YAML: the mapping that '{' opens in line 1 is not closed before this: ',' or '}' is missing; put a "
        "value with ': ', ',' or brackets in quotes"
    ),
    "small: {given: {raw.orders: 'tests/orders.csv}, expect: []}": "1:35: not YAML: the quote that opens here is not",
    "small: {given: {raw.orders: @orders}, expect: []}": "1:35: not YAML: a value cannot begin with @: put it in quotes",
    "small: {given: {raw.orders: *.csv}, expect: []}": "not YAML: a value cannot begin with '*' or '&': put it in quotes",
    "small: given: {raw.orders: []}": "1:19: not YAML: a key with ': ' cannot stand here: put a value with ': '",
    "small: {given: {raw.orders: tests/ordres.csv}, expect: []}": (
        "1:35: there is no 'tests/ordres.csv' in .; did you mean 'tests/orders.csv'?"
    ),
    "small: {given: {raw.orders: tests}, expect: []}": "1:35: 'tests' is a directory: name a file in it",
    "small: {given: {raw.orders: /data/orders.csv}, expect: []}": "1:35: '/data/orders.csv' is not inside the pipeline's",
    "small: {given: {raw.orders: tests/empty.csv}, expect: []}": "its first line must have the names of the columns",
    "small: {given: {raw.orders: tests/latin.csv}, expect: []}": "byte 19 can't be read; save the file as UTF-8",
    "small: {given: {raw.orders: tests/short.csv}, expect: []}": (
        "tests/short.csv:3:1: the row has 1 value, and there are 2 columns (customer, amount): an empty value between "
        "commas is NULL"
    ),
    "small: {given: {raw.orders: tests/long.csv}, expect: []}": (
        "tests/long.csv:2:1: the row has 3 values, and there are 2 columns (customer, amount): a value with a comma "
        'stands in quotes, "1,5"'
    ),
    "small: {given: {raw.orders: tests/quote.csv}, expect: []}": (
        'tests/quote.csv:3:1: a quote (") that opens here is not closed'
    ),
    "small: {given: {raw.orders: tests/semicolons.csv}, expect: []}": (
        "tests/semicolons.csv:1:1: the columns are separated by ';': write commas, as in customer,amount"
    ),
    "small: {given: {raw.orders: tests/twins.csv}, expect: []}": "tests/twins.csv:1:1: there are two columns 'customer'",
    "small: {given: {raw.orders: tests/nameless.csv}, expect: []}": "tests/nameless.csv:1:1: column 3 has no name",
    "small: {given: {raw.orders: tests/blanks.csv}, expect: []}": (
        "tests/blanks.csv:1:1: blanks around the name of column 'amount': write no blanks beside commas"
    ),
}
WRONG_NAMES = {
    # a test of marts.sums with wrong names: the word at the place that `check` names, and the answer after the test
    "{given: {raw.order: []}, expect: []}": (
        "raw.order",
        "'given' has rows of raw.order, which the step does not read; did you mean 'raw.orders'?",
    ),
    "{given: {orders: []}, expect: []}": ("orders", "the step does not read; did you mean 'raw.orders'?"),
    "{given: {RAW.orders: []}, expect: []}": (
        "RAW.orders",
        "; did you mean 'raw.orders'? Upper and lower case differ",
    ),
    "{given: {raw.orders_es: []}, expect: []}": ("raw.orders_es", "'given' has rows of raw.orders_es, which the step"),
    "{given: {marts.sums: []}, expect: []}": ("marts.sums", ": it is the step itself; give rows of raw.orders"),
    "{expect: []}": (
        "",
        "'given' lacks rows of raw.orders, which the step reads; write raw.orders: [] for none",
    ),
    "{given: {raw.orders: [{amuont: 7}]}, expect: []}": (
        "amuont",
        "raw.orders has no column 'amuont'; did you mean 'amount'? It has id, customer, amount, at, n, tags",
    ),
    "{given: {raw.orders: []}, expect: [{totl: 7}]}": (
        "totl",
        "'expect' has a column 'totl', which the step does not make; did you mean 'total'? It makes customer",
    ),
    "{given: {raw.orders: []}, expect: [{customer: a}, {customer: a}]}": (
        "{customer: a}]",
        "rows 1 and 2 of 'expect' have one key (customer a): 'write: merge' has one row for each key; take one of",
    ),
    "{given: {raw.orders: []}, parameters: {leest: 1}, expect: []}": (
        "leest",
        "the pipeline has no parameter 'leest'; did you mean 'least'?",
    ),
    "{given: {raw.orders: []}, parameters: {least: many}, expect: []}": (
        "least",
        "parameter least: 'many' is not a valid double; write for example least: 0.5",
    ),
    "{given: {raw.orders: []}, parameters: {day: 31.01.2026}, expect: []}": (
        "day",
        "parameter day: '31.01.2026' is not a valid date; write for example day: 2026-01-31",
    ),
    "{given: {raw.orders: []}, parameters: {run_at: noon}, expect: []}": (
        "run_at",
        "run_at: 'noon' is not a time; write for example 2026-01-31T12:00:00Z",
    ),
    "{given: {raw.orders: {rows: [], schema: id bigit}}, expect: []}": (
        "[], schema",
        "raw.orders: 'id bigit' is not a list of columns; write 'id bigint, name string'",
    ),
    "{given: {raw.orders: {rows: [{idd: 1}], schema: id bigint}}, expect: []}": (
        "idd",
        "raw.orders: 'schema' has no column 'idd'; did you mean 'id'? It has id",
    ),
}
WRONG_PYTHON = "wrong argument: {given: {sums: []}, expect: []}"
WRONG_PYTHON_ANSWER = (
    "marts.ranked, test 'wrong argument': 'given' has rows of sums, which the step does not read: it is an argument; "
    "write marts.sums"
)
_ROW = "given: {raw.orders: [{customer: ana, amount: 7, %s}]}, expect: []"
WRONG_VALUES = {
    # tests with values that only Spark can judge: the state of the test, and its message
    _ROW % "at: 20260131": "raw.orders, row 1: '20260131' of column 'at' is a number and not date: write 2026-01-31",
    _ROW % "at: 31.01.2026": "'31.01.2026' of column 'at' is not date: write 2026-01-31",
    _ROW % "at: None": "'None' of column 'at' is not date: NULL is written null",
    _ROW % "n: seven": "'seven' of column 'n' is not int: write a number",
    _ROW % "n: '7,5'": "'7,5' of column 'n' is not int: write 7.5",
    _ROW % "n: 1.5": "'1.5' of column 'n' is not int: write a whole number",
    _ROW % "n: 12345678901": "'12345678901' of column 'n' is not int: it is too large",
    _ROW % "tags: a": "'a' of column 'tags' is not array<string>: write a list, [a, b]",
    _ROW % "who: ana": "'ana' of column 'who' is not struct<name:string>: write a mapping, {name: value}",
    _ROW % "who: {nmae: ana}": "has a field 'nmae', which struct<name:string> lacks; did you mean 'name'?",
    _ROW % "is_paid: ja": "'ja' of column 'is_paid' is not boolean: write true or false",
    "given: {raw.orders: [{amount: 7.005}]}, expect: []": "has more digits than decimal(9,2): it would become 7.01",
    "given: {raw.orders: []}, expect: [{total: seven}]": "'expect', row 1: 'seven' of column 'total' is not decimal",
    "given: {raw.orders: tests/dates.csv}, expect: []": "tests/dates.csv:3:1: ",
    "given: {raw.orders: tests/null.csv}, expect: []": "'NULL' of column 'amount' is not decimal(9,2): NULL is an empty",
}
DIFFERENT_ROWS = {
    # tests whose rows differ: the kinds of the differing rows
    "given: {raw.orders: [{customer: ana, amount: 7}]}, expect: []": ["unexpected"],
    "given: {raw.orders: [{customer: ana, amount: 7}]}, expect: [{customer: ana, total: 8}]": ["differs"],
    "given: {raw.orders: [{customer: nil, amount: 7}]}, expect: [{customer: null, total: 7}]": [
        "missing",
        "unexpected",
    ],
    "given: {raw.orders: []}, expect: [{customer: ana}]": ["missing"],
}
WRONG_PLAIN = {
    # tests over a source whose columns are not known
    "nothing known: {given: {plain: []}, expect: []}": (
        "invalid",
        "plain: its columns are not known; write {rows: [], schema: 'id bigint, name string'}",
    ),
    "lacking column: {given: {plain: [{a: 1}]}, expect: [{a: 1}]}": (
        "failed",
        "The given rows have plain: a; add a column that they lack to a row or to 'schema'",
    ),
    "no number: {given: {plain: [{a: 1, b: x}]}, expect: [{a: 1}]}": ("failed", "The value 'x' of the type"),
}
SELECTIONS = {
    # the value of --select: the answer after the flag
    "marts.summs": "the pipeline has no step 'marts.summs'; did you mean 'marts.sums'?",
    "sums": "no step 'sums'; write its namespace: marts.sums",
    "Marts.Sums": "did you mean 'marts.sums'? Upper and lower case differ",
    "main.marts.sums": "leave the catalog out: marts.sums",
    "lake.main.marts.sums": "leave the catalog out: marts.sums",
    "prod.marts.sums": "did you mean 'marts.sums'?",
    "other.tables": "the pipeline has no step 'other.tables'; its steps are raw.orders, raw.orders_de",
    "shop.yaml": "'shop.yaml' is the pipeline's file; write one of its steps: raw.orders,",
    "functions.py": "'functions.py' is a file; write the step that it is of: marts.ranked",
    "functions:ranked": "there is no method 'functions:'; it is one of tag, state, source, and a step is written without",
    "marts/sums": "did you mean 'marts.sums'?",
    "marts. sums": "'marts.' is a namespace; write marts.* for its steps",
    "'marts.sums'": "leave the quotes within the word out: marts.sums",
    "marts.'sums'": "leave the quotes within the word out: marts.sums",
    "marts.sums + raw.orders": "'+' stands beside a selector, without a blank; write `+STEP`, `STEP+` or `2+STEP+1`",
    "marts+.sums": "'+' stands before or after a whole name; write `+STEP` or `STEP+1`",
    "++marts.sums": "'+' stands beside a selector",
    "marts.sums+x": "'+' stands before or after a whole name",
    "!marts.sums": "a selector leaves no steps out; write --exclude marts.sums",
    "tag:nighly": "no step has the tag 'nighly'; did you mean 'nightly'?",
    "tag: nightly": "'tag:' needs a value, as in `tag:nightly`, without a blank",
    "tag=nightly": "write tag:nightly",
    "Tag:nightly": "there is no method 'Tag:'; did you mean 'tag'?",
    "nightly": "'nightly' is a tag; write tag:nightly",
    "state:modifed": "there is no state 'modifed'; did you mean 'modified'?",
    "modified": "'modified' is a state; write state:modified",
    "source:order": "the pipeline has no source 'order'; did you mean 'orders'?",
    "plain": "no step 'plain'; write its namespace: marts.plain",
    "raw.orders marts.summs": ", at 'marts.summs': the pipeline has no step 'marts.summs'; did you mean 'marts.sums'?",
    "raw.orders, marts.sums": "nothing stands on one side of a comma; `a,b` selects what both select",
    "raw.orders,marts.sums": "no step is in all of these; a blank in place of ',' joins them",
    "raw.orders;marts.sums": "a blank joins selectors: 'raw.orders marts.sums'",
    "staging.*": "no step matches 'staging.*'; its steps are raw.orders,",
    "raw.%": "no step 'raw.%'; '*' stands for any characters: raw.*",
    "raw": "'raw' is a namespace; write raw.* for its steps",
    "raw.orders_es": "did you mean 'raw.orders_de'?",
    "raw.orders_{{country}}": "'*' stands for any characters: raw.orders_*",
    "@marts.sums": "'@' is not supported; write `marts.sums+` and `+marts.sums`",
    "": "it is empty; write a step, `tag:NAME`, `state:modified` or `source:NAME`",
}
COMMANDS = {
    # the words after `limnos pipeline`: the message, and the hint
    "run shop.yaml --select raw.orders marts.sums": (
        "--select has 2 words: several selectors stand in one pair of quotes",
        "limnos pipeline run shop.yaml --select 'raw.orders marts.sums'",
    ),
    "run shop.yaml --exclude + marts.sums --hold": (
        "--exclude has 2 words: several selectors stand in one pair of quotes",
        "'limnos pipeline run shop.yaml --exclude +marts.sums --hold'",
    ),
    "plan shop.yaml --select functions.py tests shop.yaml": (
        "the shell has replaced a '*' after --select by names of files: the pattern stands in quotes",
        "limnos pipeline plan shop.yaml --select 'NAMESPACE.*'",
    ),
    "run shop.yaml --select -marts.sums": (
        "--select takes no steps to leave out, as '-marts.sums'",
        "'limnos pipeline run shop.yaml --exclude marts.sums'",
    ),
    "run shop.yaml marts.sums": (
        "'marts.sums' is one argument too many",
        "'limnos pipeline run shop.yaml --select marts.sums'",
    ),
    "test shop.yaml small": ("'small' is one argument too many", "'limnos pipeline test shop.yaml --test small'"),
    "test shop.yaml marts.sums": (
        "'marts.sums' is one argument too many",
        "'limnos pipeline test shop.yaml --select marts.sums'",
    ),
    "check shop.yaml --select marts.sums": (
        "'limnos pipeline check' has no flag --select: a check is of the whole file",
        "'limnos pipeline plan shop.yaml --select marts.sums' is of some steps",
    ),
    "run shop.yaml --selct marts.sums": (
        "'limnos pipeline run' has no flag --selct",
        "'limnos pipeline run shop.yaml --select marts.sums'",
    ),
    "test shop.yml": ("'shop.yml' can't be read: No such file or directory", "'limnos pipeline test shop.yaml'"),
    "run shop.yaml --exclude '*'": ("--exclude leaves out all selected steps; leave it out, or select more steps", ""),
    "run shop.yaml --exclude marts.summs": ("--exclude 'marts.summs': the pipeline has no step 'marts.summs'; did", ""),
    "run shop.yaml --only marts.sums+": (
        "--only marts.sums+: it takes the name of a step; selectors are for --select 'marts.sums+'",
        "",
    ),
    "run shop.yaml --select raw.* --only marts.sums": ("--select and --exclude replace --only and --from: write", ""),
    "run shop.yaml --env dev --select marts.sums": (
        "there is no environment 'dev': the file has no key 'environments'; add environments: {dev: {prefix: dev_}}",
        "",
    ),
    "test shop.yaml --select raw.*": (
        "the selected steps have no tests: raw.orders, raw.orders_de, raw.orders_fr; steps with tests are marts.sums, ",
        "",
    ),
    "test shop.yaml --test smal": ("--test smal: there is no test of that name; did you mean 'small'?", ""),
    "test shop.yaml --test SMALL": ("did you mean 'small'? Upper and lower case differ", ""),
    "test shop.yaml --test marts.sums": ("'marts.sums' is a step; write --select marts.sums", ""),
    "test shop.yaml --select marts.plain --test small": (
        "--test small: no selected step has a test of that name; marts.sums has it",
        "",
    ),
    "test shop.yaml --select state:modified": (
        "unit tests need no server, so changed steps are not known; select by",
        "",
    ),
    "test shop.yaml --junit reports/junit.xml": (
        "--junit reports/junit.xml: there is no directory reports",
        "make the directory first",
    ),
}
"""Commands that are refused before Spark starts."""
