# SPDX-License-Identifier: Apache-2.0
"""Random queries that mean the same in SQL++ and in DuckDB's SQL, over two small tables with NULL in most columns.

May import the standard library. Each query is a pair of texts. A field of the outer side of a join may be MISSING in
SQL++, where SQL has NULL, so `if_missing` makes it NULL. The columns of a query are named `c0`, `c1` and so on.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

COLUMNS: Final = {
    "sales": {"id": "int", "shop": "int", "qty": "int", "price": "dbl", "note": "str", "day": "date", "paid": "bool"},
    "shops": {"id": "int", "name": "str", "area": "str", "size": "int"},
}
TYPES: Final = {
    "sales": (
        "closed { id: bigint, shop: bigint?, qty: integer?, price: double?, note: string?, day: date?, paid: boolean? }"
    ),
    "shops": "closed { id: bigint, name: string, area: string?, size: bigint? }",
}
TABLES: Final = (
    "CREATE TABLE sales (id BIGINT, shop BIGINT, qty BIGINT, price DOUBLE, note VARCHAR, day DATE, paid BOOLEAN)",
    "CREATE TABLE shops (id BIGINT, name VARCHAR, area VARCHAR, size BIGINT)",
)
"""Integers have 64 bits: DuckDB computes with the columns' type, SQL++ with bigint."""
_WORDS: Final = ("ab", "Ab", "b", "", "zebra", "a b", "1")
_AREAS: Final = ("north", "south", "")
_DAYS: Final = ("2020-01-31", "2020-02-29", "1969-12-31", "2021-06-05")


class Pair(NamedTuple):
    """One fragment as SQL++ and as SQL."""

    sqlpp: str
    sql: str


class Source(NamedTuple):
    """A variable, its table, and whether an outer join may leave it without a row."""

    name: str
    table: str
    is_outer: bool = False


class RandomQuery(NamedTuple):
    """A query as SQL++ and as SQL: the number of its columns, and whether its order is defined."""

    sqlpp: str
    sql: str
    columns: int
    is_ordered: bool


def rows(table: str, *, seed: int = 7) -> list[dict[str, object]]:
    """Return the rows of a table, which depend on the seed only."""
    draw = random.Random(f"{table}{seed}")

    def or_null(value: T) -> T | None:
        return None if draw.random() < 0.2 else value

    if table == "shops":
        return [
            {"id": at, "name": draw.choice(_WORDS), "area": or_null(draw.choice(_AREAS)), "size": or_null(at * 7 % 5)}
            for at in range(1, 7)
        ]
    return [
        {
            "id": at,
            "shop": or_null(draw.randint(1, 8)),
            "qty": or_null(draw.randint(-3, 9)),
            "price": or_null(draw.randint(-40, 400) / 8),
            "note": or_null(draw.choice(_WORDS)),
            "day": or_null(draw.choice(_DAYS)),
            "paid": or_null(draw.random() < 0.5),
        }
        for at in range(1, 25)
    ]


def both(template: str, *parts: Pair) -> Pair:
    """Fill a template, which is the same in both languages."""
    return Pair(template.format(*(part.sqlpp for part in parts)), template.format(*(part.sql for part in parts)))


def fill_templates(sqlpp: str, sql: str, *parts: Pair) -> Pair:
    """Fill a template for each language."""
    return Pair(sqlpp.format(*(part.sqlpp for part in parts)), sql.format(*(part.sql for part in parts)))


def listed(parts: Sequence[Pair], between: str = ", ") -> Pair:
    """Join parts."""
    return Pair(between.join(part.sqlpp for part in parts), between.join(part.sql for part in parts))


class SqlQueries:
    """Queries of one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._names = 0

    def query(self) -> RandomQuery:
        """Return the next query."""
        kinds = [
            self._plain,
            self._plain,
            self._ordered,
            self._grouped,
            self._grouped,
            self._rolled,
            self._distinct,
            self._union,
            self._derived,
            self._windowed,
            self._windowed,
        ]
        return self._of(kinds)()

    # Whole queries.

    def _plain(self) -> RandomQuery:
        source, variables = self._source()
        columns = [self._scalar(variables, 2) for _ in range(self._random.randint(1, 3))]
        return self._made(columns, both("from {} {}", source, self._where(variables)))

    def _ordered(self) -> RandomQuery:
        source, variables = self._source()
        columns = [self._scalar(variables, 2), *(self._column(each, "id") for each in variables)]
        keys = [both(f"{{}} {self._direction()}", self._of_a_row(variables)) for _ in range(2)]
        keys += [both("{} asc nulls first", self._column(each, "id")) for each in variables]
        cut = f"limit {self._random.randint(0, 6)}{self._of(['', ' offset 1', ' offset 3'])}"
        body = both(
            f"from {{}} {{}} order by {{}} {cut if self._chance(0.7) else ''}",
            source,
            self._where(variables),
            listed(keys),
        )
        return self._made(columns, body, ordered=True)

    def _grouped(self) -> RandomQuery:
        source, variables = self._source()
        keys = [self._of_a_row(variables) for _ in range(self._random.randint(0, 2))]
        measures = [self._measure(variables) for _ in range(self._random.randint(1, 3))]
        by = both("group by {}", listed(keys)) if keys else Pair("", "")
        if keys and self._chance(0.4):
            having = both(
                f"{{}} having {{}} {self._of(['<', '>=', '='])} {{}}",
                by,
                self._whole_measure(variables),
                self._literal("int"),
            )
            by = having
        return self._made([*keys, *measures], both("from {} {} {}", source, self._where(variables), by))

    def _rolled(self) -> RandomQuery:
        """Return a query with grouping sets over some rows: without rows, SQL has a group for the empty set, and SQL++
        has none.
        """
        source, variables = self._source(most=1)
        names = self._random.sample([name for name in COLUMNS[variables[0].table] if name not in ("id", "price")], 2)
        keys = [self._column(variables[0], name) for name in names]
        sets = self._of(["rollup({})", "cube({})", "grouping sets (({}), ())", "{}"])
        columns = [*keys, self._measure(variables), self._whole_measure(variables)]
        if sets[0] != "{" and self._chance(0.5):
            columns.append(both("grouping({})", keys[0]))
        some = f"where {variables[0].name}.id > {self._random.randint(0, 4)}"
        return self._made(columns, both(f"from {{}} {some} group by {sets}", source, listed(keys)))

    def _distinct(self) -> RandomQuery:
        source, variables = self._source()
        columns = [self._of_a_row(variables) for _ in range(self._random.randint(1, 2))]
        body = both("from {} {}", source, self._where(variables))
        if self._chance(0.5):
            body = both("{} order by {}", body, listed([both(f"{{}} {self._direction()}", each) for each in columns]))
            return self._made(columns, body, ordered=True, distinct=True)
        return self._made(columns, body, distinct=True)

    def _union(self) -> RandomQuery:
        types = [self._type() for _ in range(self._random.randint(1, 2))]
        arms = []
        for _ in range(self._random.randint(2, 3)):
            source, variables = self._source()
            columns = [self._expression(type_, variables, 1) for type_ in types]
            arms.append(self._made(columns, both("from {} {}", source, self._where(variables))))
        text = listed([Pair(arm.sqlpp, arm.sql) for arm in arms], " union all ")
        return RandomQuery(text.sqlpp, text.sql, len(types), is_ordered=False)

    def _derived(self) -> RandomQuery:
        """A query in FROM or WITH, joined with a table."""
        source, variables = self._source()
        inner = [self._column(variables[0], "id"), self._expression("int", variables, 2), self._scalar(variables, 1)]
        subquery = self._made(inner, both("from {} {}", source, self._where(variables)))
        if self._chance(0.4):
            key = self._of_a_row(variables)
            body = both("from {} {} group by {}", source, self._where(variables), key)
            subquery = self._made([self._whole_measure(variables), self._whole_measure(variables), key], body)
        name, other = self._name(), self._name()
        outer = self._of(["join", "left join"])
        text = fill_templates(
            f"{{}} {name} {outer} sales {other} on {name}.c1 = {other}.qty",
            f"{{}} {name} {outer} sales {other} on {name}.c1 = {other}.qty",
            Pair("{}", "{}"),
        )
        columns = [
            Pair(f"{name}.c0", f"{name}.c0"),
            Pair(f"{name}.c2", f"{name}.c2"),
            self._column(Source(other, "sales", outer == "left join"), self._of(["id", "note"])),
        ]
        if self._chance(0.4):
            query = self._made(columns, both(f"from {text.sqlpp}", Pair("w", "w")))
            return query._replace(
                sqlpp=f"with w as ({subquery.sqlpp}) {query.sqlpp}", sql=f"with w as ({subquery.sql}) {query.sql}"
            )
        return self._made(columns, both(f"from {text.sqlpp}", Pair(f"({subquery.sqlpp})", f"({subquery.sql})")))

    def _windowed(self) -> RandomQuery:
        source, variables = self._source(most=1)
        columns = [
            self._column(variables[0], "id"),
            *(self._over(variables) for _ in range(self._random.randint(1, 2))),
        ]
        return self._made(columns, both("from {} {}", source, self._where(variables)))

    def _made(self, columns: list[Pair], body: Pair, *, ordered: bool = False, distinct: bool = False) -> RandomQuery:
        named = listed([both(f"{{}} as c{at}", column) for at, column in enumerate(columns)])
        text = both(f"select {'distinct ' if distinct else ''}{{}} {{}}", named, body)
        return RandomQuery(text.sqlpp.strip(), text.sql.strip(), len(columns), ordered)

    # Clauses.

    def _source(self, *, most: int = 2) -> tuple[Pair, list[Source]]:
        table, other = (self._of(["sales", "shops"]) for _ in range(2))
        first = Source(self._name(), table)
        if most == 1 or self._chance(0.4):
            return both(f"{table} {first.name}"), [first]
        name = self._name()
        if self._chance(0.15):
            return both(f"{table} {first.name}, {other} {name}"), [first, Source(name, other)]
        how = self._of(["join", "left join", "right join"])
        on = both(f"{first.name}.{self._key(table)} = {name}.{self._key(other)}")
        if self._chance(0.4):
            on = both("{} and {}", on, self._bool([first, Source(name, other)], 1))
        variables = [first._replace(is_outer=how == "right join"), Source(name, other, how == "left join")]
        return both(f"{table} {first.name} {how} {other} {name} on {{}}", on), variables

    def _where(self, variables: list[Source]) -> Pair:
        return both("where {}", self._bool(variables, 2)) if self._chance(0.6) else Pair("", "")

    def _over(self, variables: list[Source]) -> Pair:
        """Return a window function. If it depends on the order of equal rows, they are ordered by the key as well."""
        key = both("{} asc nulls first", self._column(variables[0], "id"))
        order = both(f"{{}} {self._direction()}", self._of_a_row(variables))
        partition = both("partition by {} ", self._of_a_row(variables)) if self._chance(0.5) else Pair("", "")
        value, number = self._scalar(variables, 1), self._of(["1", "2", "3"])
        if self._chance(0.3):
            ranks = ["rank()", "dense_rank()", "percent_rank()", "cume_dist()"]
            return both(f"{self._of(ranks)} over ({{}}order by {{}})", partition, order)
        order = listed([order, key])
        if self._chance(0.4):
            calls = [
                both("row_number()"),
                both(f"ntile({number})"),
                both(f"lag({{}}, {number})", value),
                both(f"lead({{}}, {number})", value),
                both("lag({})", value),
            ]
            return both("{} over ({}order by {})", self._of(calls), partition, order)
        calls = [
            both("first_value({})", value),
            both("last_value({})", value),
            both(f"nth_value({{}}, {number})", value),
            fill_templates("last_value({}) ignore nulls", "last_value({} ignore nulls)", value),
            fill_templates("first_value({}) ignore nulls", "first_value({} ignore nulls)", value),
            self._measure(variables, distinct=False),
            self._measure(variables, distinct=False),
        ]
        call, frame = self._of(calls), self._frame()
        if frame.startswith("range") and any(each.isdigit() for each in frame):
            order = both(f"{{}} {self._direction()}", self._column(variables[0], "id"))
        return both(f"{{}} over ({{}}order by {{}} {frame})", call, partition, order)

    def _frame(self) -> str:
        bounds = [
            "unbounded preceding",
            "2 preceding",
            "1 preceding",
            "current row",
            "1 following",
            "2 following",
            "unbounded following",
        ]
        first = self._random.randrange(len(bounds) - 1)
        start, end = bounds[first], self._of(bounds[max(first, 1) :])
        exclude = self._of(["", "", "", " exclude current row", " exclude group", " exclude ties"])
        return (
            self._of(["", f"{self._of(['rows', 'groups', 'range'])} between {start} and {end}{exclude}"])
            if self._chance(0.9)
            else (f"range between {self._random.randint(0, 4)} preceding and {self._random.randint(0, 4)} following")
        )

    def _measure(self, variables: list[Source], *, distinct: bool = True) -> Pair:
        if self._chance(0.2):
            return both("count(*)")
        once = "distinct " if distinct and self._chance(0.2) else ""
        if self._chance(0.35):
            return both(f"{self._of(['min', 'max', 'count'])}({once}{{}})", self._scalar(variables, 1))
        function = self._of(["sum", "avg", "min", "max", "count", "stddev_samp", "var_pop"])
        aggregate = both(f"{function}({once}{{}})", self._expression(self._of(["int", "dbl"]), variables, 1))
        return (
            both("{} filter (where {})", aggregate, self._bool(variables, 1))
            if distinct and self._chance(0.2)
            else aggregate
        )

    def _whole_measure(self, variables: list[Source]) -> Pair:
        return both(f"{self._of(['count', 'min', 'max'])}({{}})", self._expression("int", variables, 1))

    # Expressions.

    def _scalar(self, variables: list[Source], depth: int) -> Pair:
        return self._expression(self._type(), variables, depth)

    def _of_a_row(self, variables: list[Source]) -> Pair:
        """Return an expression over a row: SQL reads a constant in GROUP BY and ORDER BY as a column's number."""
        while True:
            expression = self._scalar(variables, 1)
            if any(f"{each.name}." in expression.sql for each in variables) and "(select" not in expression.sql:
                return expression

    def _expression(self, type_: str, variables: list[Source], depth: int) -> Pair:
        if depth <= 0 or self._chance(0.25):
            return self._leaf(type_, variables)
        if self._chance(0.2):
            return self._chosen(type_, variables, depth - 1)
        return {"int": self._whole, "dbl": self._real, "str": self._text, "bool": self._bool, "date": self._date}[
            type_
        ](variables, depth - 1)

    def _leaf(self, type_: str, variables: list[Source]) -> Pair:
        fields = [(each, name) for each in variables for name, of in COLUMNS[each.table].items() if of == type_]
        if fields and self._chance(0.85):
            each, name = self._of(fields)
            return self._column(each, name)
        return self._literal(type_)

    def _column(self, source: Source, name: str) -> Pair:
        text = f"{source.name}.{name}"
        return Pair(f"if_missing({text}, null)" if source.is_outer else text, text)

    def _literal(self, type_: str) -> Pair:
        match type_:
            case "int":
                return both(self._of(["0", "1", "2", "3", "-7", "10"]))
            case "dbl":
                return both(self._of(["0.0e0", "1.5e0", "-2.5e0", "3.0e0"]))
            case "str":
                return both(f"'{self._of(_WORDS)}'")
            case "bool":
                return both(self._of(["true", "false"]))
        day = self._of(_DAYS)
        return Pair(f"date('{day}')", f"DATE '{day}'")

    def _whole(self, variables: list[Source], depth: int) -> Pair:
        one, other = (self._expression("int", variables, depth) for _ in range(2))
        text, day = self._expression("str", variables, depth), self._leaf("date", variables)
        return self._of(
            [
                both(f"({{}} {self._of(['+', '-', '*', '%'])} {{}})", one, other),
                fill_templates("({} div {})", "({} // {})", one, other),
                both("(-({}))", one),
                both("length({})", text),
                both("abs({})", one),
                both("sign({})", one),
                fill_templates("get_year({})", "year({})", day),
                fill_templates("get_month({})", "month({})", day),
                fill_templates("position({}, 'b')", "(strpos({}, 'b') - 1)", text),
                self._one_of_a_query(variables),
            ]
        )

    def _real(self, variables: list[Source], depth: int) -> Pair:
        one = self._expression("dbl", variables, depth)
        other, whole = (
            self._expression(self._of(["int", "dbl"]), variables, depth),
            self._expression("int", variables, depth),
        )
        return self._of(
            [
                both(f"({{}} {self._of(['+', '-', '*'])} {{}})", one, other),
                both("({} / {})", other, whole),
                both("floor({})", one),
                both("ceil({})", one),
                both("abs({})", one),
                both("greatest({}, 1.5e0)", one),
                both("least({}, 1.5e0)", one),
                both("round({})", one),
                both("trunc({})", one),
            ]
        )

    def _text(self, variables: list[Source], depth: int) -> Pair:
        one, other = (self._expression("str", variables, depth) for _ in range(2))
        return self._of(
            [
                both("lower({})", one),
                both("upper({})", one),
                both("({} || {})", one, other),
                both("trim({})", one),
                fill_templates("substr({} || 'qq', 1)", "substr({} || 'qq', 2)", one),
                fill_templates("substr({} || 'qq', 0, 2)", "substr({} || 'qq', 1, 2)", one),
                both("replace({}, 'b', 'cc')", one),
                both("reverse({})", one),
            ]
        )

    def _date(self, variables: list[Source], _depth: int) -> Pair:
        return self._leaf("date", variables)

    def _chosen(self, type_: str, variables: list[Source], depth: int) -> Pair:
        one, other = (self._expression(type_, variables, depth) for _ in range(2))
        return self._of(
            [
                both("(case when {} then {} else {} end)", self._bool(variables, depth), one, other),
                fill_templates(
                    "(case when {} then {} end)", "(case when {} then {} end)", self._bool(variables, depth), one
                ),
                both("coalesce({}, {})", one, other),
                both("nullif({}, {})", one, other),
                both("(case {} when {} then {} else {} end)", one, other, other, one),
            ]
        )

    def _bool(self, variables: list[Source], depth: int) -> Pair:
        if depth <= 0:
            return self._compared(variables, 0)
        match self._random.randrange(8):
            case 0 | 1:
                two = [self._bool(variables, depth - 1) for _ in range(2)]
                return both(f"({{}} {self._of(['and', 'or'])} {{}})", *two)
            case 2:
                return both("(not {})", self._bool(variables, depth - 1))
            case 3:
                word = self._of(["", "not "])
                return fill_templates(
                    f"({{}} is {word}unknown)", f"({{}} is {word}null)", self._scalar(variables, depth - 1)
                )
            case 4:
                return self._of_a_list(variables, depth - 1)
            case 5:
                return self._of_a_query(variables)
        return self._compared(variables, depth - 1)

    def _compared(self, variables: list[Source], depth: int) -> Pair:
        kinds = (("int", "int"), ("int", "dbl"), ("dbl", "dbl"), ("str", "str"), ("date", "date"), ("int", "int"))
        one, other = self._of(kinds)
        sign = self._of(["=", "!=", "<", "<=", ">", ">=", "is distinct from", "is not distinct from"])
        return both(
            f"({{}} {sign} {{}})", self._expression(one, variables, depth), self._expression(other, variables, depth)
        )

    def _of_a_list(self, variables: list[Source], depth: int) -> Pair:
        value, text = self._expression("int", variables, depth), self._expression("str", variables, depth)
        word, null = self._of(["in", "not in"]), self._of(["", "", ", null"])
        return self._of(
            [
                fill_templates(f"({{}} {word} [1, 2, -7{null}])", f"({{}} {word} (1, 2, -7{null}))", value),
                fill_templates(f"({{}} {word} ['ab', ''{null}])", f"({{}} {word} ('ab', ''{null}))", text),
                both(
                    f"({{}} {self._of(['', 'not '])}between {{}} and {{}})",
                    value,
                    self._leaf("int", variables),
                    self._literal("int"),
                ),
                both(f"({{}} {self._of(['', 'not '])}like '{self._of(['a%', '%b', '_b%', '%'])}')", text),
            ]
        )

    # Subqueries.

    def _inner(self, variables: list[Source]) -> tuple[Source, Pair]:
        """Return FROM and WHERE of a subquery, which usually refers to the outer row."""
        inner = Source(self._name(), self._of(["sales", "shops"]))
        outer = self._of(variables)
        about = both("true")
        if self._chance(0.75):
            about = both(f"{inner.name}.{self._key(inner.table)} = {{}}", self._column(outer, self._key(outer.table)))
        if self._chance(0.5):
            about = both("{} and {}", about, self._compared([inner], 0))
        return inner, both(f"from {inner.table} {inner.name} where {{}}", about)

    def _of_a_query(self, variables: list[Source]) -> Pair:
        inner, body = self._inner(variables)
        if self._chance(0.5):
            return both(f"({self._of(['', 'not '])}exists (select 1 as one {{}}))", body)
        outer, key = self._of(variables), self._key(inner.table)
        value, word = self._column(outer, self._key(outer.table)), self._of(["in", "not in"])
        column = f"{inner.name}.{key}"
        return fill_templates(
            f"({{}} {word} (select value {column} {{}}))", f"({{}} {word} (select {column} {{}}))", value, body
        )

    def _one_of_a_query(self, variables: list[Source]) -> Pair:
        inner, body = self._inner(variables)
        what = self._of(["count(*)", f"sum({inner.name}.id)", f"max({inner.name}.{self._key(inner.table)})"])
        return fill_templates(f"(select value {what} {{}})[0]", f"(select {what} {{}})", body)

    # Random choices.

    def _key(self, table: str) -> str:
        return self._of(["id", "shop", "qty"] if table == "sales" else ["id", "size"])

    def _type(self) -> str:
        return self._of(["int", "int", "dbl", "str", "bool", "date"])

    def _direction(self) -> str:
        return self._of(["asc nulls first", "desc nulls last", "asc nulls last", "desc nulls first"])

    def _name(self) -> str:
        self._names += 1
        return f"v{self._names}"

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _of(self, items: Sequence[T]) -> T:
        return self._random.choice(items)
