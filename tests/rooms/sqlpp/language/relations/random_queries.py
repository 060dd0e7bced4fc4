# SPDX-License-Identifier: Apache-2.0
"""Random queries over the two datasets of `relation_queries`: expressions of every column type, joins, groups, order,
subqueries.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")

Var = tuple[str, str]
"""A variable and the dataset over which it iterates."""

_FIELDS = {
    "orders": {"int": ["id", "c", "n"], "dbl": ["price"], "str": ["note"], "bool": ["done"], "date": ["day"]},
    "people": {"int": ["id", "age", "home.floor"], "dbl": [], "str": ["name", "home.zip"], "bool": [], "date": []},
}
_LITERALS = {
    "int": ["0", "1", "2", "3", "-7", "10", "9007199254740993"],
    "dbl": ["0.0", "1.5", "-2.5", "3.0", "9007199254740992.0"],
    "str": ["'ab'", "'Ann'", "''", "'1'", "'Zoe'"],
    "bool": ["true", "false"],
    "date": ["date('2020-01-31')", "date('1969-12-31')"],
}
_TYPES = ["int", "int", "dbl", "str", "bool", "date"]
_ANY = ["null", "missing"]


class Queries:
    """Queries of one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._names = 0

    def query(self) -> str:
        """Return the next query."""
        kind = self._random.choice(
            [
                self._plain,
                self._plain,
                self._ordered,
                self._grouped,
                self._grouped,
                self._distinct,
                self._distinct,
                self._union,
                self._nested,
                self._windowed,
                self._windowed,
                self._starred,
            ]
        )
        return kind()

    # Clauses.

    def _source(self) -> tuple[str, list[Var]]:
        pick = self._random.random()
        if pick < 0.35:
            dataset = self._of(["orders", "people"])
            name = self._name()
            return f"{dataset} {name}", [(name, dataset)]
        first, second = (self._of(["orders", "people"]) for _ in range(2))
        one, other = self._name(), self._name()
        variables = [(one, first), (other, second)]
        if pick < 0.5:
            return f"{first} {one}, {second} {other}", variables
        how = self._of(["join", "left join", "right join"])
        on = f"{one}.{self._key(first)} = {other}.{self._key(second)}"
        if self._chance(0.4):
            on += f" and {self._bool(variables, 1)}"
        return f"{first} {one} {how} {second} {other} on {on}", variables

    def _where(self, variables: list[Var]) -> str:
        if self._chance(0.1):
            return f" where {self._bool(variables, 1)} and {self._beyond(variables)} is {self._of(['', 'not '])}unknown"
        return f" where {self._bool(variables, 2)}" if self._chance(0.6) else ""

    def _plain(self) -> str:
        source, variables = self._source()
        parts = [self._any(variables) for _ in range(self._random.randint(1, 3))]
        if variables[0][1] == "orders" and len(variables) == 1 and self._chance(0.3):
            item, place = self._name(), self._name()
            outer = "left outer " if self._chance(0.5) else ""
            return (
                f"select value [{item}, {place}, {', '.join(parts)}] from {source} {outer}unnest {variables[0][0]}.tags"
                f" as {item} at {place}"
            )
        select = (
            f"value [{', '.join(parts)}]"
            if self._chance(0.5)
            else ", ".join(f"{part} as x{at}" for at, part in enumerate(parts))
        )
        return f"select {select} from {source}{self._where(variables)}"

    def _ordered(self) -> str:
        source, variables = self._source()
        places = [
            f"{self._scalar(variables, 1)}{self._of(['', ' desc', ' nulls last', ' desc nulls first'])}"
            for _ in range(2)
        ]
        places += [f"{name}.id" for name, _ in variables]
        cut = f" limit {self._random.randint(0, 5)}{self._of(['', ' offset 1'])}" if self._chance(0.6) else ""
        values = ", ".join(f"{name}.id" for name, _ in variables)
        return (
            f"select value [{values}, {self._any(variables)}] from {source}{self._where(variables)} order by"
            f" {', '.join(places)}{cut}"
        )

    def _grouped(self) -> str:
        source, variables = self._source()
        keys = [self._scalar(variables, 1) for _ in range(self._random.randint(0, 2))]
        aggregates = [self._aggregate(variables) for _ in range(self._random.randint(1, 3))]
        named = [f"k{at}" for at in range(len(keys))]
        by = f" group by {', '.join(f'{key} as {name}' for key, name in zip(keys, named, strict=True))}" if keys else ""
        having = (
            f" having {self._aggregate(variables, types=['int'])} {self._of(['<', '>='])} 2"
            if by and self._chance(0.3)
            else ""
        )
        select = ", ".join([*named, *(f"{one} as a{at}" for at, one in enumerate(aggregates))])
        return f"select {select} from {source}{self._where(variables)}{by}{having}"

    def _distinct(self) -> str:
        source, variables = self._source()
        if self._chance(0.3):
            return f"select distinct value {self._any(variables)} from {source}{self._where(variables)}"
        keys = [self._scalar(variables, 1) for _ in range(self._random.randint(1, 2))]
        select = ", ".join(f"{key} as k{at}" for at, key in enumerate(keys))
        places = [f"{self._of([key, f'k{at}'])}{self._of(['', ' desc', ' nulls last'])}" for at, key in enumerate(keys)]
        cut = f" limit {self._random.randint(1, 4)}" if self._chance(0.5) else ""
        return f"select distinct {select} from {source}{self._where(variables)} order by {', '.join(places)}{cut}"

    def _starred(self) -> str:
        """Return LET with `*`, also before and after groups."""
        source, variables = self._source()
        value, again = self._scalar(variables, 1), self._name()
        lets = f" let l = {value}, {again} = {self._expression('int', variables, 1)}"
        if self._chance(0.6):
            return f"select * from {source}{lets}{self._where(variables)}"
        return f"select l, k, m from {source}{lets}{self._where(variables)} group by l, {again} as k let m = count(*)"

    def _union(self) -> str:
        type_ = self._of(_TYPES)
        arms = []
        for _ in range(2):
            source, variables = self._source()
            arms.append(f"select value {self._expression(type_, variables, 1)} from {source}{self._where(variables)}")
        return " union all ".join(arms)

    def _nested(self) -> str:
        source, variables = self._source()
        inner, outer = self._name(), self._name()
        first = variables[0][0]
        derived = (
            f"select {first}.id as id, {self._any(variables)} as v, {self._expression('int', variables, 1)} as w from"
            f" {source}{self._where(variables)}"
        )
        return (
            f"select {inner}.v, {outer}.id from ({derived}) {inner} {self._of(['join', 'left join'])} orders {outer} on"
            f" {inner}.w = {outer}.n"
        )

    def _windowed(self) -> str:
        dataset = self._of(["orders", "people"])
        name = self._name()
        variables = [(name, dataset)]
        partition = f"partition by {self._scalar(variables, 0)} " if self._chance(0.6) else ""
        function = self._of(
            [
                "row_number()",
                "rank()",
                "dense_rank()",
                f"count({self._scalar(variables, 1)})",
                f"sum({name}.id)",
                f"sum({self._expression(self._of(['int', 'dbl']), variables, 1)})",
                f"min({self._scalar(variables, 0)})",
                f"max({self._scalar(variables, 0)})",
                f"first_value({self._scalar(variables, 0)})",
                f"last_value({self._scalar(variables, 0)})",
                f"ratio_to_report({name}.id)",
            ]
        )
        frame = (
            self._of(
                [
                    "",
                    " rows between 1 preceding and current row",
                    " rows between current row and 1 following",
                    " rows between unbounded preceding and unbounded following",
                    f" range between {self._random.randint(0, 2)} preceding and current row",
                    " groups between 1 preceding and 1 following",
                    " rows between 3 preceding and 2 preceding",
                    " rows between 1 following and 2 following",
                    " groups between 2 preceding and 1 preceding",
                    " range between 3 preceding and 1 preceding",
                ]
            )
            if "(" in function and "()" not in function
            else ""
        )
        over = f"{function} over ({partition}order by {name}.id{frame})"
        if self._chance(0.3):
            where = self._where(variables)
            return f"select value [{name}.id, w] from {dataset} {name} let w = {over}{where}"
        return f"select value [{name}.id, {over}] from {dataset} {name}{self._where(variables)}"

    def _aggregate(self, variables: list[Var], *, types: list[str] | None = None) -> str:
        if self._chance(0.25):
            return "count(*)"
        if types is None and self._chance(0.3):
            return f"{self._of(['min', 'max', 'count', 'count'])}({self._of(['', 'distinct '])}{self._scalar(variables, 1)})"
        if types is None and self._chance(0.15):
            return f"{self._of(['sum', 'avg', 'countn'])}({self._expression(self._of(['str', 'bool', 'int']), variables, 1)})"
        return f"{self._of(['sum', 'count', 'min', 'max'])}({self._expression(self._of(types or ['int', 'dbl']), variables, 1)})"

    # Expressions.

    def _any(self, variables: list[Var]) -> str:
        return self._beyond(variables) if self._chance(0.2) else self._scalar(variables, 2)

    def _beyond(self, variables: list[Var]) -> str:
        """Return an expression that typed columns cannot represent."""
        name, dataset = self._of(variables)
        text, number = self._expression("str", variables, 1), self._expression("int", variables, 1)
        more = [f"initcap({text})", f"({text} + {number})", f"[{number}, to_string({text})]"]
        if dataset == "people":
            more += [
                f"{name}.pay",
                f"{{'pay': {name}.pay, 'n': {number}}}",
                f"{name}.home.what",
                f"({name}.pay > {number})",
            ]
        else:
            item = self._name()
            more += [
                f"(select value {item} from {name}.tags {item} where {item} > {text})",
                f"{name}.tags[0]",
                f"array_sort({name}.tags)",
            ]
        return self._of(more)

    def _scalar(self, variables: list[Var], depth: int) -> str:
        return self._expression(self._of(_TYPES), variables, depth)

    def _expression(self, type_: str, variables: list[Var], depth: int) -> str:
        if depth <= 0 or self._chance(0.25):
            return self._leaf(type_, variables)
        more: dict[str, Callable[[], str]] = {
            "int": lambda: self._whole(variables, depth - 1),
            "dbl": lambda: self._real(variables, depth - 1),
            "str": lambda: self._text(variables, depth - 1),
            "bool": lambda: self._bool(variables, depth),
            "date": lambda: self._leaf("date", variables),
        }
        if self._chance(0.15):
            return self._chosen(type_, variables, depth - 1)
        return more[type_]()

    def _leaf(self, type_: str, variables: list[Var]) -> str:
        fields = [f"{name}.{field}" for name, dataset in variables for field in _FIELDS[dataset][type_]]
        if fields and self._chance(0.8):
            return self._of(fields)
        return self._of(_ANY) if self._chance(0.1) else self._of(_LITERALS[type_])

    def _whole(self, variables: list[Var], depth: int) -> str:
        one, other = (self._expression("int", variables, depth) for _ in range(2))
        text = self._expression("str", variables, depth)
        return self._of(
            [
                f"({one} {self._of(['+', '-', 'div', 'mod'])} {other})",
                f"(-({one}))",
                f"length({text})",
                f"abs({one})",
                f"get_year({self._leaf('date', variables)})",
                self._one_of_a_query(variables),
            ]
        )

    def _real(self, variables: list[Var], depth: int) -> str:
        one, other = (
            self._expression("dbl", variables, depth),
            self._expression(self._of(["int", "dbl"]), variables, depth),
        )
        return self._of(
            [
                f"({one} {self._of(['+', '-', '*', '/'])} {other})",
                f"({other} / {self._expression('int', variables, depth)})",
                f"round({one}, 1)",
                f"floor({one})",
                f"greatest({one}, 1.5)",
            ]
        )

    def _text(self, variables: list[Var], depth: int) -> str:
        one, other = (self._expression("str", variables, depth) for _ in range(2))
        return self._of(
            [
                f"lower({one})",
                f"upper({one})",
                f"({one} || {other})",
                f"substr({one}, 1)",
                f"substr({one}, 0, 2)",
                f"concat({one}, {other}, '.')",
            ]
        )

    def _chosen(self, type_: str, variables: list[Var], depth: int) -> str:
        one, other = (self._expression(type_, variables, depth) for _ in range(2))
        return self._of(
            [
                f"(case when {self._bool(variables, depth)} then {one} else {other} end)",
                f"coalesce({one}, {other})",
                f"nullif({one}, {other})",
                f"if_missing({one}, {other})",
                f"if_null({one}, {other})",
            ]
        )

    def _bool(self, variables: list[Var], depth: int) -> str:
        if depth <= 0:
            return self._compared(variables, 0)
        nested = [
            lambda: (
                f"({self._bool(variables, depth - 1)} {self._of(['and', 'or'])} {self._bool(variables, depth - 1)})"
            ),
            lambda: f"(not {self._bool(variables, depth - 1)})",
            lambda: self._compared(variables, depth - 1),
            lambda: self._compared(variables, depth - 1),
            lambda: (
                f"({self._scalar(variables, depth - 1)} is"
                f" {self._of(['', 'not '])}{self._of(['null', 'missing', 'unknown'])})"
            ),
            lambda: self._listed(variables),
            lambda: self._within_a_query(variables),
        ]
        return self._of(nested)()

    def _compared(self, variables: list[Var], depth: int) -> str:
        one, other = self._of(
            [
                ("int", "int"),
                ("int", "dbl"),
                ("dbl", "dbl"),
                ("str", "str"),
                ("date", "date"),
                ("str", "int"),
                ("bool", "bool"),
            ]
        )
        if depth == 0 and one == "bool":
            one, other = "str", "str"
        sign = self._of(["=", "!=", "<", "<=", ">", ">=", "is distinct from"])
        return f"({self._expression(one, variables, depth)} {sign} {self._expression(other, variables, depth)})"

    def _listed(self, variables: list[Var]) -> str:
        type_ = self._of(["int", "str"])
        value = self._leaf(type_, variables)
        items = ", ".join([*self._random.sample(_LITERALS[type_], 2), *(["null"] if self._chance(0.15) else [])])
        return self._of(
            [
                f"({value} {self._of(['in', 'not in'])} [{items}])",
                f"({self._leaf('int', variables)} between 1 and 3)",
                f"({self._leaf('str', variables)} {self._of(['like', 'not like'])} {self._of(['a%', '%b', '_n%'])!r})",
            ]
        )

    # Subqueries.

    def _within_a_query(self, variables: list[Var]) -> str:
        name, dataset = self._name(), self._of(["orders", "people"])
        outer = self._of(variables)
        about = f"{name}.{self._key(dataset)} = {outer[0]}.{self._key(outer[1])}" if self._chance(0.7) else "true"
        more = f" and {self._compared([(name, dataset)], 0)}" if self._chance(0.5) else ""
        inner = f"from {dataset} {name} where {about}{more}"
        value = f"{outer[0]}.{self._key(outer[1])}"
        return self._of(
            [
                f"({self._of(['', 'not '])}exists (select 1 {inner}))",
                f"({value} {self._of(['in', 'not in'])} (select value {name}.{self._key(dataset)} {inner}))",
                f"({self._of(['some', 'every'])} q{name} in (select value {name} {inner}) satisfies q{name}.id > 1)",
            ]
        )

    def _one_of_a_query(self, variables: list[Var]) -> str:
        name, dataset = self._name(), self._of(["orders", "people"])
        outer = self._of(variables)
        where = f" where {name}.{self._key(dataset)} = {outer[0]}.{self._key(outer[1])}" if self._chance(0.7) else ""
        body = f"from {dataset} {name}{where}"
        return self._of(
            [
                (
                    f"(select value {self._of(['count(*)', f'sum({name}.id)', f'max({name}.{self._key(dataset)})'])}"
                    f" {body})[0]"
                ),
                f"array_count((select value {name}.{self._key(dataset)} {body}))",
            ]
        )

    def _key(self, dataset: str) -> str:
        return self._of(["id", "c", "n"] if dataset == "orders" else ["id", "age"])

    def _name(self) -> str:
        self._names += 1
        return f"v{self._names}"

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _of(self, items: Sequence[Item]) -> Item:
        return self._random.choice(items)
