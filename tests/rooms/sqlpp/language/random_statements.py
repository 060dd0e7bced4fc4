# SPDX-License-Identifier: Apache-2.0
"""Random statements as text: every production of the grammar, with frequent unusual spellings.

`Statements(seed).statement()` is a statement that the parser must accept. The same seed gives the same statements.
"""

from __future__ import annotations

import random
from collections.abc import Callable

_NAMES = [
    "a",
    "b",
    "c",
    "orders",
    "sales",
    "east",
    "x1",
    "$a"[1:] + "_$",
    "Nulls",
    "first",
    "current",
    "rows",
    "returns",
]
_QUOTED = [
    "`a.b`",
    "`select`",
    "`1a`",
    "`a``b`",
    r"`a\`b`",
    r"`\u0041é`",
    "`日本`",
    "`a b`",
    "` `",
    "`exclude`",
    "`a@b`",
]
_STRINGS = ['"a"', "'b'", r'"a\"b"', "'it''s'", r'"\n\t\u00e9"', "''", '"日本"', "E'x\\n'", '"a`b"', '"""q"""']
_NUMBERS = ["0", "1", "42", "9223372036854775807", "1.5", ".5", "1e10", "2.5E-3", "1f", "1.5F", "007"]
_PARAMETERS = ["$x", "$1", "?", "$`odd one`"]
_BINARY = ["or", "and", "=", "!=", "<>", "<", ">", "<=", ">=", "~=", "in", "not in", "like", "not like", "||", "+", "-"]
_BINARY += ["*", "/", "div", "mod", "%", "^", "is distinct from", "is not distinct from"]
_SPACES = [" ", " ", " ", "\n", "\t ", " /* c */ ", " -- c\n", " // c\n", " /* a /* b */ c */ ", " /*+ hint */ "]


class Statements:
    """A source of statements."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.budget = 0

    # ------------------------------------------------------------------------------------------------ choices

    def pick(self, *choices: str | Callable[[], str]) -> str:
        """Return one of the texts; a function among them is called only if it is chosen."""
        chosen = choices[int(self.random.random() * len(choices))]
        return chosen if isinstance(chosen, str) else chosen()

    def maybe(self, text: str | Callable[[], str], odds: float = 0.4) -> str:
        """Return the text, or nothing."""
        if self.random.random() >= odds:
            return ""
        return text if isinstance(text, str) else text()

    def some(self, item: Callable[[], str], *, least: int = 1, most: int = 3, between: str = ", ") -> str:
        """Return several texts, joined."""
        return between.join(item() for _ in range(self.random.randint(least, most)))

    def as_(self) -> str:
        """AS, or not."""
        return self.pick("as ", "")

    def statement(self) -> str:
        """A statement with random case and space."""
        self.budget = self.random.choice((4, 8, 20))
        kinds = [self.query, self.query, self.query, self.definition, self.change, self.small]
        text = self.random.choice(kinds)()
        return self.spaced(self.cased(text))

    def cased(self, text: str) -> str:
        """Return the text, sometimes in capitals if it has no quotes: keywords ignore case, names keep it."""
        if self.random.random() < 0.7 or any(mark in text for mark in "\"'`$\\"):
            return text
        return text.upper()

    def spaced(self, text: str) -> str:
        """Replace spaces outside of quotes by other spaces and comments."""
        if self.random.random() < 0.5 or any(mark in text for mark in "\"'`"):
            return text
        return "".join(self.pick(*_SPACES) if mark == " " else mark for mark in text)

    # ------------------------------------------------------------------------------------------------ names

    def ident(self) -> str:
        """An identifier."""
        return self.pick(*_NAMES) if self.random.random() < 0.8 else self.pick(*_QUOTED)

    def plain(self) -> str:
        """Return an identifier that is not a soft keyword, for positions where it would be taken for one."""
        return self.pick("a", "b", "c", "`rows`", "`nulls`", "`exclude`")

    def name(self) -> str:
        """A name with dots."""
        return self.some(self.ident, between=".")

    def unless(self) -> str:
        """IF NOT EXISTS, or not."""
        return self.maybe(" if not exists", 0.2)

    # ------------------------------------------------------------------------------------------------ expressions

    def expression(self) -> str:
        """Return an expression; the less budget remains, the smaller it is."""
        self.budget -= 1
        if self.budget <= 0:
            return self.leaf()
        kinds = [self.leaf, self.path, self.path, self.binary, self.binary, self.chain, self.between, self.is_test]
        kinds += [self.prefixed, self.call, self.case, self.quantified, self.array, self.bag, self.object, self.parens]
        return self.random.choice([*kinds, self.subquery, self.windowed])()

    def leaf(self) -> str:
        """A literal, a parameter or a variable."""
        strings, numbers = lambda: self.pick(*_STRINGS), lambda: self.pick(*_NUMBERS)
        words, parameters = lambda: self.pick("null", "missing", "true", "false"), lambda: self.pick(*_PARAMETERS)
        return self.pick(self.ident, self.ident, strings, numbers, words, parameters)

    def atom(self) -> str:
        """Return an expression that never needs parentheses."""
        leaf = self.leaf()
        return leaf if self.random.random() < 0.6 else f"({self.expression()})"

    def path(self) -> str:
        """Steps."""
        index = lambda: self.pick(lambda: f"1 + {self.parens()}", "0", "i", "?")  # noqa: E731
        field = lambda: f".{self.ident()}"  # noqa: E731
        ranges = (
            lambda: f"[{index()}]",
            lambda: f"[{index()}:]",
            lambda: f"[:{index()}]",
            lambda: f"[{index()}:{index()}]",
        )
        step = lambda: self.pick(field, field, "[*]", "[]", "[:]", *ranges)  # noqa: E731
        base = self.pick(self.ident, self.parens, "f(1)", "[1]")
        return base + self.some(step, between="")

    def operand(self) -> str:
        """Return an operand: a leaf, a construct that binds tightly, or anything in parentheses."""
        return self.pick(self.atom, self.path)

    def binary(self) -> str:
        """Two operands."""
        return f"{self.operand()} {self.pick(*_BINARY)} {self.operand()}"

    def chain(self) -> str:
        """Return operators of several levels without parentheses, in a well-formed order."""
        self.budget -= 3  # its parts are written several times, so it grows quickly
        tight = self.some(self.operand, most=3, between=self.pick(" * ", " / ", " div "))
        loose = f"{tight} {self.pick('+', '-')} {self.operand()} {self.pick('+', '-')} {self.operand()}"
        joined = f"{loose} || {self.operand()}"
        test = f"{joined} {self.pick('like', 'not like')} {self.operand()}"
        compared = f"{self.pick(test, loose, tight)} {self.pick('=', '<', 'in')} {self.pick(joined, tight)}"
        return f"{self.maybe('not ')}{compared} {self.pick('and', 'or')} {self.maybe('not ')}{test}"

    def between(self) -> str:
        """Return BETWEEN, sometimes followed by AND."""
        inner = f"{self.operand()} {self.maybe('not ')}between {self.operand()} + 1 and {self.operand()}"
        return inner + self.maybe(f" and {self.operand()}") + self.maybe(f" or {self.operand()}")

    def is_test(self) -> str:
        """IS."""
        return f"{self.operand()} is {self.maybe('not ')}{self.pick('null', 'missing', 'unknown', 'known', 'valued')}"

    def prefixed(self) -> str:
        """An operator before an operand."""
        return f"{self.pick('- ', '+', 'not ', 'exists ', 'not exists ', 'a = not exists ')}{self.operand()}"

    def call(self) -> str:
        """A call."""
        name = self.pick(self.name(), "count", f"{self.name()}#{self.ident()}")
        if name == "count" and self.random.random() < 0.5:
            return "count(*)"
        arguments = self.maybe(lambda: self.maybe("distinct ", 0.2) + self.some(self.expression), 0.8)
        return f"{name}({arguments}){self.maybe(lambda: f' filter (where {self.expression()})', 0.1)}"

    def windowed(self) -> str:
        """A call with a window."""
        before = self.maybe(f" from {self.pick('first', 'last')}", 0.2)
        before += self.maybe(f" {self.pick('respect', 'ignore')} nulls", 0.2)
        variable = self.maybe(f"{self.ident()}{self.maybe(' (a as b, c as d)')} as ", 0.2)
        partition = self.maybe(lambda: f"partition by {self.some(self.expression)} ", 0.5)
        order = self.maybe(lambda: f"{self.order()} {self.maybe(self.frame)}", 0.6)
        return f"f({self.expression()}){before} over {variable}({partition}{order})"

    def frame(self) -> str:
        """A frame."""
        mode = self.pick("range", "rows", "groups")
        exclude = self.pick("", "", "current row", "group", "ties", "no others")
        end = f" exclude {exclude}" if exclude else ""
        if self.random.random() < 0.5:
            return f"{mode} {self.bound()}{end}"
        return f"{mode} between {self.bound()} and {self.bound()}{end}"

    def bound(self) -> str:
        """An edge of a frame."""
        edge = self.pick("unbounded", "1", f"({self.expression()})")
        return self.pick("current row", f"{edge} {self.pick('preceding', 'following')}")

    def case(self) -> str:
        """CASE."""
        branch = lambda: f"when {self.expression()} then {self.expression()} "  # noqa: E731
        subject = self.maybe(lambda: f"{self.parens()} ")
        return f"case {subject}{self.some(branch, between='')}{self.maybe(lambda: f'else {self.parens()} ')}end"

    def quantified(self) -> str:
        """SOME, EVERY."""
        kind = self.pick("some", "any", "every", "some and every", "any and every")
        bindings = self.some(lambda: f"{self.ident()} in {self.expression()}", most=2)
        return f"({kind} {bindings} satisfies {self.expression()}{self.maybe(' end')})"

    def array(self) -> str:
        """An array, in brackets or parentheses."""
        items = self.some(self.expression, least=0)
        return self.pick(f"[{items}]", lambda: f"({self.expression()}, {self.expression()})")

    def bag(self) -> str:
        """A bag."""
        return f"{{{{{self.some(self.expression, least=0)} }}}}"

    def object(self) -> str:
        """An object."""
        pair = lambda: f"{self.expression()} : {self.expression()}"  # noqa: E731
        inferred = lambda: f"{self.ident()}.{self.ident()}"  # noqa: E731
        return f"{{ {self.some(self.random.choice([pair, pair, inferred]), least=0)}}}"

    def parens(self) -> str:
        """Parentheses."""
        return f"({self.expression()})"

    def subquery(self) -> str:
        """A query in parentheses."""
        return f"({self.query()})"

    # ------------------------------------------------------------------------------------------------ queries

    def query(self) -> str:
        """A query."""
        self.budget -= 2
        arm = lambda: f" {self.pick('union', 'intersect', 'except')} {self.maybe('all ')}{self.arm()}"  # noqa: E731
        arms = self.maybe(lambda: self.some(arm, most=2, between=""), 0.15)
        limits = [f" limit {self.operand()}", f" limit {self.operand()} offset {self.operand()}"]
        limits += [f" offset {self.operand()}", f" offset {self.operand()} limit {self.operand()}", "", "", ""]
        order = self.maybe(lambda: f" {self.order()}", 0.3)
        return f"{self.maybe(self.lets, 0.2)}{self.block()}{arms}{order}{self.pick(*limits)}"

    def arm(self) -> str:
        """The right side of a set operation."""
        return self.block() if self.random.random() < 0.5 else f"({self.query()})"

    def lets(self) -> str:
        """LET or WITH."""
        if self.random.random() < 0.5:
            return (
                f"{self.pick('let', 'letting')} {self.some(lambda: f'{self.ident()} = {self.expression()}', most=2)} "
            )
        return f"with {self.some(lambda: f'{self.ident()} as {self.expression()}', most=2)} "

    def block(self) -> str:
        """A block."""
        terms = f"from {self.some(self.term, most=2)} "
        rest = f"{self.maybe(self.lets, 0.2)}{self.maybe(lambda: f'where {self.expression()} ')}{self.maybe(self.group, 0.3)}"
        if self.random.random() < 0.3:
            return f"{terms}{rest}{self.select()}"
        return f"{self.select()} {terms}{rest}" if self.random.random() < 0.8 else self.select()

    def select(self) -> str:
        """SELECT."""
        head = f"select {self.maybe('distinct ', 0.2)}{self.maybe('all ', 0)}"
        if self.random.random() < 0.4:
            return f"{head}{self.pick('value', 'element', 'raw')} {self.expression()}"
        exclude = self.maybe(lambda: f" exclude {self.some(lambda: self.some(self.ident, between='.'), most=2)}", 0.1)
        return f"{head}{self.some(self.projection)}{exclude}"

    def projection(self) -> str:
        """Return one projection of SELECT."""
        named = f"{self.expression()} {self.as_()}{self.plain()}"
        return self.pick("*", f"{self.ident()}.*", named, f"{self.expression()} as {self.ident()}", self.parens())

    def term(self) -> str:
        """Return one term of FROM."""
        return f"{self.source()}{self.maybe(lambda: self.some(self.link, most=2, between=''), 0.3)}"

    def source(self) -> str:
        """Return a source that is iterated over."""
        at = self.maybe(f" at {self.ident()}", 0.2)
        if self.random.random() < 0.4:
            return f"{self.name()}{at}"
        return f"{self.expression()} {self.as_()}{self.ident()}{at}"

    def link(self) -> str:
        """A join or an unnest."""
        unnest = f"{self.pick('', 'inner ', 'left ', 'left outer ')}{self.pick('unnest', 'correlate', 'flatten')}"
        kinds = [f" {unnest} {self.source()}", f" cross join {self.source()}"]
        join = self.pick("", "inner ", "left ", "left outer ", "right ", "right outer ")
        kinds.append(f" {join}join {self.source()} on {self.expression()}")
        return self.pick(*kinds)

    def group(self) -> str:
        """GROUP BY."""
        variable = self.maybe(f" group as {self.ident()}{self.maybe(' (a as b)')}", 0.3)
        having = self.maybe(lambda: f"having {self.expression()} ", 0.3)
        return f"group by {self.some(self.grouping)}{variable} {self.maybe(self.lets, 0.2)}{having}"

    def grouping(self) -> str:
        """Return one grouping of GROUP BY."""
        sets = [self.key(), f"({self.some(self.key)})", "()", f"rollup ({self.some(self.key)})"]
        sets += [f"cube (({self.key()}), {self.key()})", f"grouping sets ((), ({self.key()}), rollup({self.key()}))"]
        return self.pick(*sets, self.key(), self.key())

    def key(self) -> str:
        """Return a group key. A key that begins with a parenthesis would be a set of keys, which has no name."""
        expression = self.expression()
        whole = f"[{expression}][0]" if expression.startswith("(") else expression
        return f"{whole}{self.maybe(lambda: f' {self.as_()}{self.plain()}')}"

    def order(self) -> str:
        """ORDER BY."""
        nulls = lambda: f" nulls {self.pick('first', 'last')}"  # noqa: E731
        item = lambda: f"{self.operand()}{self.pick('', ' asc', ' desc')}{self.maybe(nulls, 0.2)}"  # noqa: E731
        return f"order by {self.some(item)}"

    # ------------------------------------------------------------------------------------------------ statements

    def type(self) -> str:
        """A type."""
        self.budget -= 1
        kinds = [self.name(), "bigint", "string"]
        if self.budget > 0:
            kinds += [f"[{self.type()}]", f"{{{{ {self.type()} }}}}", self.record()]
        return self.pick(*kinds)

    def record(self) -> str:
        """A record type."""
        field = lambda: f"{self.ident()}: {self.type()}{self.maybe('?')}"  # noqa: E731
        return f"{self.pick('', 'open ', 'closed ')}{{ {self.some(field, least=0)} }}"

    def dataset_type(self) -> str:
        """A dataset's type."""
        field = lambda: f"{self.ident()} {self.name()}{self.maybe(' not unknown')}"  # noqa: E731
        return self.pick(f"({self.name()})", f"({self.some(field)}){self.pick('', ' closed type', ' open type')}")

    def hints(self) -> str:
        """HINTS."""
        return self.maybe(" hints (`a` = 1, 'b' = 'c', d = `e`)", 0.2)

    def options(self) -> str:
        """An adapter's options."""
        return f"({self.some(self.option, least=0)})"

    def option(self) -> str:
        """Return one option."""
        name, value = self.pick("`p`", *_STRINGS), self.pick("true", "'v'")
        return f"({name} = {value})"

    def definition(self) -> str:
        """CREATE or DROP."""
        kind = self.pick("dataverse", "type", "dataset", "synonym", "view", "collection")
        if_exists = self.maybe(" if exists", 0.3)
        drops = [f"drop {kind}{if_exists} {self.name()}", f"drop {kind} {self.name()}{if_exists}"]
        drops += [f"drop index {self.name()}.{self.ident()}{if_exists}", f"drop function {self.name()}@2{if_exists}"]
        drops += [f"drop function{if_exists} {self.name()}{self.pick('(a, b)', '(...)', '()', '(3)')}"]
        kinds = [self.dataset, self.external, self.index, self.view, self.function, self.named]
        return self.pick(*drops) if self.random.random() < 0.35 else self.random.choice(kinds)()

    def named(self) -> str:
        """Return CREATE of a simple object."""
        name, unless = self.name(), self.unless()
        kinds = [f"create dataverse{unless} {name}", f"create dataverse {name}{unless}"]
        kinds += [f"create type{unless} {name} as {self.record()}", f"create type {name}{unless} as {self.record()}"]
        return self.pick(*kinds, f"create synonym {name}{unless} for {self.name()}")

    def dataset(self) -> str:
        """CREATE DATASET."""
        head = f"create {self.maybe('internal ')}{self.pick('dataset', 'collection')} {self.name()}"
        if self.random.random() < 0.3:
            key = f"primary key ({self.some(lambda: f'{self.name()}: bigint')})"
        else:
            key = (
                f"{self.dataset_type()}{self.maybe(' with meta(b.c)', 0.1)}{self.unless()} primary key"
                f" {self.some(self.name)}"
            )
        rest = f"{self.maybe(' autogenerated')}{self.maybe(' on g', 0.1)}{self.hints()}"
        rest += (
            f"{self.maybe(f' with filter on {self.name()}', 0.2)}{self.maybe(lambda: f' with {self.object()}', 0.2)}"
        )
        return f"{head} {key}{rest}{self.maybe(lambda: f' as {self.query()}', 0.2)}"

    def external(self) -> str:
        """CREATE EXTERNAL DATASET."""
        head = f"create external dataset {self.name()}{self.dataset_type()}{self.unless()}"
        return (
            f"{head} using {self.ident()}"
            f" {self.options()}{self.hints()}{self.maybe(lambda: f' with {self.object()}', 0.2)}"
        )

    def index(self) -> str:
        """CREATE INDEX."""
        if self.random.random() < 0.2:
            return (
                f"create primary index {self.maybe(self.ident)}{self.unless()} on"
                f" {self.name()}{self.maybe(' type btree')}"
            )
        field = lambda: self.name() + self.maybe(lambda: f": {self.type()}{self.maybe('?')}")  # noqa: E731
        kind = self.maybe(f" type {self.pick('btree', 'rtree', 'keyword', 'fulltext', 'ngram(3)')}")
        head = f"create index {self.ident()}{self.unless()} on {self.name()}"
        typed = lambda: self.name() + self.maybe(lambda: f": {self.type()}")  # noqa: E731
        arrays = self.some(lambda: f"unnest {self.name()}", most=2, between=" ")
        inside = self.pick(arrays, f"{arrays}: {self.type()}", f"{arrays} select {self.some(typed)}")
        fields = self.pick(self.some(field), self.some(field), inside, f"({field()}), ({inside}), {field()}")
        rest = self.maybe(" enforced") + self.maybe(f" {self.pick('include', 'exclude')} unknown key", 0.2)
        rest += self.maybe(" cast (default null date 'Y')", 0.2)
        return f"{head} ({fields}){kind}{rest}"

    def view(self) -> str:
        """CREATE VIEW."""
        head = f"create {self.maybe('or replace ')}view {self.name()}"
        formats = self.maybe(" datetime 'YYYY'")
        keys = self.maybe(" primary key (a, b.c) not enforced")
        keys += self.maybe(" foreign key (a) references x.y not enforced", 0.6)
        schema = self.maybe(lambda: f"{self.dataset_type()} default null{formats}{keys}", 0.5)
        return f"{head}{schema} as {self.pick(self.query(), self.name())}"

    def function(self) -> str:
        """CREATE FUNCTION, or DECLARE FUNCTION."""
        head = self.pick("create function", "create or replace function") + f" {self.name()}"
        body = f"{{ {self.pick(self.expression(), self.query())} }}"
        parameters = f"({self.pick('...', self.some(self.plain, least=0))})"
        if self.random.random() < 0.2:
            typed = f"(a: bigint, b [string], c){self.maybe(' returns string')}"
            return f"{head}{typed} as 'm', 'f' at {self.name()}{self.maybe(lambda: f' with {self.object()}')}"
        return self.pick(f"{head}{parameters} {body}", f"declare function {self.ident()}{parameters} {body}")

    def change(self) -> str:
        """INSERT, UPSERT, DELETE, LOAD, COPY FROM, COPY TO."""
        source = self.pick(self.object(), f"({self.query()})", self.query(), self.array(), self.parens())
        alias = self.maybe(f"as {self.ident()} ", 0.3)
        returning = self.maybe(lambda: f" returning {self.expression()}", 0.3)
        where = self.maybe(lambda: f" where {self.expression()}")
        kinds = [f"{self.pick('insert', 'upsert')} into {self.name()} {alias}{source}{returning}"]
        kinds.append(f"delete from {self.name()}{self.maybe(f' {self.as_()}{self.ident()}')}{where}")
        kinds.append(f"load dataset {self.name()} using {self.ident()} {self.options()}{self.maybe(' pre-sorted')}")
        steps = " ".join(self.update_step("v") for _ in range(self.random.randint(1, 2)))
        kinds.append(f"update {self.name()} as v {steps}{where}{returning}")
        type_ = self.pick("", " (a bigint, b string not unknown)", " as (T)")
        kinds.append(f"copy {self.maybe('into ')}{self.name()}{type_} using {self.ident()} {self.options()}")
        over = self.maybe(
            lambda: f" over (partition by {self.expression()} as {self.ident()}, a.b order by {self.expression()} desc)"
        )
        named = self.pick("", " type (closed {a: bigint, b: string?})", " as (T)")
        exported = self.pick(f"({self.query()}) as {self.ident()}", self.name())
        formats = self.maybe(" date 'YYYY'")
        kinds.append(f"analyze dataset {self.name()}" + self.pick("", " drop statistics", " with {'sample': -2.5}"))
        kinds.append(
            f"copy {exported} to {self.ident()} path ('x', {self.expression()}){over}{named}{formats} with {{'format':"
            " 'csv', 'header': true}"
        )
        return self.pick(*kinds, kinds[0])

    def update_step(self, variable: str) -> str:
        """An assignment, or the change of an array below a variable."""
        path, where = f"{variable}.{self.ident()}", self.maybe(lambda: f" where {self.expression()}")
        item, position = self.maybe(" as i", 0.5), self.maybe(" at p", 0.5)
        return self.pick(
            f"set {path} = {self.expression()}",
            f"(insert into {path} {self.pick('', 'at 1 ', 'at -2 ')}({self.expression()}))",
            f"(delete from {path}{item}{position}{where})",
            f"(update {path} as i{position} set i.a = {self.expression()}{where})",
        )

    def small(self) -> str:
        """USE, SET, EXPLAIN, an expression."""
        option = f"set {self.ident()} {self.pick(*_STRINGS, '`v`')}"
        return self.pick(f"use {self.name()}", option, f"explain {self.query()}", self.expression())
