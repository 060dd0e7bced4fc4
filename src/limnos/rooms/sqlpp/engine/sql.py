# SPDX-License-Identifier: Apache-2.0
"""Generates Spark SQL from relations.

Must not know a session: the result is text and parameters. The only user input in the text is quoted names of tables
and columns. Strings are passed as parameters, and numbers are formatted here. Each operation has the meaning that
`sqlpp.relations` defines.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from limnos.rooms.sqlpp.engine.names import quote_name
from limnos.rooms.sqlpp.language.relations import nodes
from limnos.rooms.sqlpp.language.relations.results import ResultLayout
from limnos.rooms.sqlpp.language.relations.terms import CallTerm, ColumnTerm, LambdaTerm, LiteralTerm, Term
from limnos.rooms.sqlpp.language.stored import time_texts
from limnos.rooms.sqlpp.language.values.model import Date, DateTime, Value

TYPES: Final[Mapping[str, str]] = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "integer": "INT",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "binary": "BINARY",
    "date": "DATE",
    "datetime": "TIMESTAMP",
}
"""The Spark type of each SQL++ type. Other types are stored as STRING."""


class SparkStatement(NamedTuple):
    """A Spark SQL query with its parameters."""

    text: str
    parameters: dict[str, str]


def statement_of(
    relation: nodes.Relation,
    layout: ResultLayout,
    *,
    sources: Callable[[nodes.DatasetRead], str],
    parts: int | None = None,
    is_spread: bool = False,
) -> SparkStatement:
    """Generate the query that returns a relation's rows in a layout.

    Args:
        relation: The relation.
        layout: The result columns, which are named `r0`, `r1` and so on.
        sources: Returns the FROM item of a dataset.
        parts: The largest number of tasks that read a dataset concurrently; None for no limit.
        is_spread: Whether the rows of each dataset are redistributed over exactly `parts` partitions.
    """
    hint = "REPARTITION" if is_spread else "COALESCE"
    writing = _StatementWriter(sources, "" if parts is None else f"/*+ {hint}({int(parts)}) */ ")
    terms = [f"{writing.term(term)} AS r{at}" for at, (term, _) in enumerate(layout.columns)] or ["1 AS r0"]
    return SparkStatement(f"SELECT {', '.join(terms)} FROM {writing.within(relation)}", writing.parameters)


class _StatementWriter:
    """Generates one statement and collects its parameters."""

    def __init__(self, sources: Callable[[nodes.DatasetRead], str], hint: str) -> None:
        self.parameters: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._sources = sources
        self._hint = hint

    def within(self, relation: nodes.Relation) -> str:
        return f"({_RELATIONS[type(relation)](self, relation)})"

    def parameter(self, value: str) -> str:
        if value not in self._names:
            self._names[value] = f"p{len(self._names)}"
            self.parameters[self._names[value]] = value
        return f":{self._names[value]}"

    # Relations.

    def read(self, node: nodes.DatasetRead) -> str:
        columns = ", ".join(f"{quote_name(name)} AS c{number}" for number, name in node.columns) or "1 AS c0"
        return f"SELECT {self._hint}{columns} FROM {self._sources(node)}"

    def filter(self, node: nodes.Filter) -> str:
        conditions = []
        source: nodes.Relation = node
        while isinstance(source, nodes.Filter):
            conditions.append(self.term(source.condition))
            source = source.source
        return f"SELECT * FROM {self.within(source)} WHERE {' AND '.join(reversed(conditions))}"

    def extend(self, node: nodes.Extension) -> str:
        columns = ", ".join(f"{self.term(term)} AS c{number}" for number, term in node.columns)
        return f"SELECT *, {columns} FROM {self.within(node.source)}"

    def join(self, node: nodes.Join) -> str:
        on = "" if node.condition is None else f" ON {self.term(node.condition)}"
        return f"SELECT * FROM {self.within(node.left)} {_JOINS[node.kind]} JOIN {self.within(node.right)}{on}"

    def gather(self, node: nodes.RowGrouping) -> str:
        keys = [f"{self.term(term)} AS c{number}" for number, term in node.keys]
        measures = []
        for one in node.measures:
            inside = "1" if one.term is None else self.term(one.term)
            measures.append(f"{one.function}({'DISTINCT ' if one.distinct else ''}{inside}) AS c{one.id}")
        by = f" GROUP BY {', '.join(str(at + 1) for at in range(len(keys)))}" if keys else ""
        columns = ", ".join([*keys, *measures]) or "count(1) AS c0"
        return f"SELECT {columns} FROM {self.within(node.source)}{by}"

    def unnest(self, node: nodes.Unnest) -> str:
        outer = "OUTER " if node.outer else ""
        array = self.term(node.array)
        return (
            f"SELECT * FROM {self.within(node.source)} "
            f"LATERAL VIEW {outer}posexplode({array}) u{node.item} AS c{node.place}, c{node.item}"
        )

    def window(self, node: nodes.Window) -> str:
        calls = ", ".join(self._window_column(one) for one in node.calls)
        return f"SELECT *, {calls} FROM {self.within(node.source)}"

    def _window_column(self, one: nodes.WindowColumn) -> str:
        arguments = ", ".join(map(self.term, one.arguments)) or ("1" if one.function == "count" else "")
        parts = []
        if one.partition:
            parts.append(f"PARTITION BY {', '.join(map(self.term, one.partition))}")
        if one.order:
            parts.append(f"ORDER BY {', '.join(map(self._place, one.order))}")
        if one.rows is not None:
            parts.append(f"ROWS BETWEEN {_edge(one.rows[0], 'PRECEDING')} AND {_edge(one.rows[1], 'FOLLOWING')}")
        number = f"{one.function}({arguments}) OVER ({' '.join(parts)})"
        counted = one.function in ("row_number", "rank", "dense_rank")
        return f"{f'CAST({number} AS BIGINT)' if counted else number} AS c{one.id}"

    def _place(self, place: nodes.OrderTerm) -> str:
        way = "DESC" if place.descending else "ASC"
        return f"{self.term(place.term)} {way} NULLS {'FIRST' if place.nulls_first else 'LAST'}"

    def sort(self, node: nodes.Sort) -> str:
        if not node.places:
            return f"SELECT * FROM {self.within(node.source)}"
        return f"SELECT * FROM {self.within(node.source)} ORDER BY {', '.join(map(self._place, node.places))}"

    def cut(self, node: nodes.RowLimit) -> str:
        limit = "" if node.limit is None else f" LIMIT {node.limit}"
        offset = f" OFFSET {node.offset}" if node.offset else ""
        if isinstance(node.source, nodes.Sort):
            return f"{self.sort(node.source)}{limit}{offset}"
        return f"SELECT * FROM {self.within(node.source)}{limit}{offset}"

    def union(self, node: nodes.Union) -> str:
        arms = []
        for relation, columns in node.arms:
            named_columns = ", ".join(
                f"c{own_column} AS c{number}" for own_column, number in zip(columns, node.columns, strict=True)
            )
            arms.append(f"SELECT {named_columns or '1 AS c0'} FROM {self.within(relation)}")
        union = " UNION ALL ".join(arms)
        return f"SELECT {self._hint}* FROM ({union})" if self._hint else union

    # Terms.

    def term(self, term: Term) -> str:
        if isinstance(term, ColumnTerm):
            return f"c{term.id}"
        if isinstance(term, LiteralTerm):
            return self._literal(term)
        if isinstance(term, LambdaTerm):
            return f"c{term.item} -> {self.term(term.body)}"
        arguments = tuple(map(self.term, term.arguments))
        return _CALLS[term.name](term, arguments)

    def _literal(self, literal: LiteralTerm) -> str:
        value, type_ = literal.value, TYPES.get(literal.type, "STRING")
        if value is None:
            return f"CAST(NULL AS {type_})"
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, int):
            return f"CAST({int(value)} AS {type_})"
        if isinstance(value, float):
            return _real(value, type_)
        if isinstance(value, bytes):
            return f"X'{value.hex()}'"
        return self._of_time(value)

    def _of_time(self, value: Value) -> str:
        if isinstance(value, Date):
            return f"date_from_unix_date({value.days})"
        if isinstance(value, DateTime):
            return f"timestamp_millis(CAST({value.ms} AS BIGINT))"
        if isinstance(value, uuid.UUID):
            return f"'{value}'"
        return self.parameter(value if isinstance(value, str) else time_texts.write_time_text(value))


def _real(value: float, type_: str) -> str:
    if not math.isfinite(value):
        return f"CAST('{'NaN' if math.isnan(value) else 'Infinity' if value > 0 else '-Infinity'}' AS {type_})"
    return f"CAST({value!r}D AS {type_})" if type_ != "DOUBLE" else f"({value!r}D)"


def _edge(edge: int | None, beyond: str) -> str:
    if edge is None:
        return f"UNBOUNDED {beyond}"
    return "CURRENT ROW" if edge == 0 else f"{abs(edge)} {'PRECEDING' if edge < 0 else 'FOLLOWING'}"


_JOINS: Mapping[str, str] = {
    "inner": "INNER",
    "left": "LEFT OUTER",
    "right": "RIGHT OUTER",
    "cross": "CROSS",
    "semi": "LEFT SEMI",
    "anti": "LEFT ANTI",
}
_RELATIONS: Mapping[type, Callable[..., str]] = {
    nodes.DatasetRead: _StatementWriter.read,
    nodes.Filter: _StatementWriter.filter,
    nodes.Extension: _StatementWriter.extend,
    nodes.Join: _StatementWriter.join,
    nodes.RowGrouping: _StatementWriter.gather,
    nodes.Unnest: _StatementWriter.unnest,
    nodes.Window: _StatementWriter.window,
    nodes.Sort: _StatementWriter.sort,
    nodes.RowLimit: _StatementWriter.cut,
    nodes.Union: _StatementWriter.union,
}


def _infix(node: CallTerm, arguments: tuple[str, ...]) -> str:
    sign = {"mod": "%", "!=": "<>"}.get(node.name, node.name).upper()
    return f"({f' {sign} '.join(arguments)})"


def _function(node: CallTerm, arguments: tuple[str, ...]) -> str:
    return f"{node.name}({', '.join(arguments)})"


def _exact(node: CallTerm, arguments: tuple[str, ...]) -> str:
    """Generate a lossless comparison of an integer with a double.

    They are compared as doubles, and as integers where the doubles are equal. A double at or above 2^63 is greater than
    any integer.
    """
    whole, real = arguments
    sign = {"!=": "<>"}.get(node.word, node.word)
    beyond = "TRUE" if node.word in ("<", "<=", "!=") else "FALSE"
    return (
        f"(CASE WHEN {whole} IS NULL THEN CAST(NULL AS BOOLEAN) WHEN {real} >= 9.223372036854775807E18D THEN {beyond} "
        f"WHEN CAST({whole} AS DOUBLE) = {real} THEN {whole} {sign} CAST({real} AS BIGINT) "
        f"ELSE CAST({whole} AS DOUBLE) {sign} {real} END)"
    )


def _null_literal(_node: CallTerm, arguments: tuple[str, ...]) -> str:
    opened, name = arguments
    fields = f"from_json({opened}, 'MAP<STRING, STRING>')"
    return f"coalesce(map_contains_key({fields}, {name}) AND try_element_at({fields}, {name}) IS NULL, FALSE)"


_WHOLE_MAX = "9.2E18D"


def _round_call(node: CallTerm, arguments: tuple[str, ...]) -> str:
    value, scale = arguments
    moved = f"({value} * {scale})"
    whole = {
        "ceil": f"ceil({moved})",
        "floor": f"floor({moved})",
        "trunc": f"CAST({moved} AS BIGINT)",
        "round": f"floor(abs({moved}) + 0.5D)",
    }[node.name]
    # The sign keeps -0.0, which a bigint cannot hold; `round` has no -0.0.
    how = f"(signum({moved}) * abs(CAST({whole} AS DOUBLE))" + (" + 0D)" if node.name == "round" else ")")
    finite = f"abs({moved}) < CAST('Infinity' AS DOUBLE)"
    return (
        f"(CASE WHEN abs({moved}) < {_WHOLE_MAX} THEN {how} / {scale} "
        f"WHEN {finite} THEN {moved} / {scale} ELSE {value} END)"
    )


_PARTS = ("year", "month", "day", "hour", "minute", "second")


def _part(node: CallTerm, arguments: tuple[str, ...]) -> str:
    """Generate the extraction of a part of a date or timestamp, as in `get_year`."""
    part = node.name.removeprefix("get_")
    return _part_of_text(part, arguments[0]) if node.word == "string" else f"CAST({part}({arguments[0]}) AS BIGINT)"


_SPACE = r"[\t-\r\x{1c}-\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]*"
_DAY_TEXT = (
    rf"^{_SPACE}(-?[0-9]{{4}})(-?)([0-9]{{2}})\2([0-9]{{2}})"
    r"(?:[T ]([0-9]{2})(?::([0-9]{2}):([0-9]{2})(?:[.][0-9]{1,9})?|([0-9]{2})([0-9]{2})[0-9]{0,9})"
    rf"(?:Z|([+-])([0-9]{{2}}):?([0-9]{{2}}))?)?{_SPACE}\z"
)
"""The formats of dates and datetimes in strings, with the parts as groups."""
_DAY_PARTS = "$1|$3|$4|0$5|0$6$8|0$7$9|$10|0$11|0$12"
"""Year, month, day, hour, minute, second; sign, hours and minutes of an offset."""
_USUAL_DAY = r"^[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])\z"
_USUAL_PARTS = {"year": (1, 4), "month": (6, 2), "day": (9, 2)}


def _part_of_text(part: str, text: str) -> str:
    """Generate the extraction of a part (`year`, `month`, `day`) from a string with a date or datetime; NULL for
    others.

    The usual date format has a short expression. For the other formats a lambda names the parts: this keeps the
    expression small, although Spark does not compile it.
    """
    year, month, day, hour, minute, second, _, offset_hour, offset_minute = (f"CAST(p[{at}] AS INT)" for at in range(9))
    leap = f"{year} % 4 = 0 AND ({year} % 100 <> 0 OR {year} % 400 = 0)"
    days = f"CASE WHEN {month} IN (4, 6, 9, 11) THEN 30 WHEN {month} <> 2 THEN 31 WHEN {leap} THEN 29 ELSE 28 END"
    is_valid = (
        f"{month} BETWEEN 1 AND 12 AND {day} BETWEEN 1 AND {days} AND {hour} < 24 AND {minute} < 60 AND {second} < 60"
    )
    offset_s = f"CASE WHEN p[6] = '-' THEN -60 ELSE 60 END * ({offset_hour} * 60 + {offset_minute})"
    shift = f"CAST(floor(({hour} * 3600 + {minute} * 60 + {second} - {offset_s}) / 86400D) AS INT)"
    moved = f"{part}(date_add(make_date({year}, {month}, {day}), {shift}))"
    plain = {"year": year, "month": month, "day": day}[part]
    value = f"CASE WHEN NOT ({is_valid}) THEN NULL WHEN p[6] = '' THEN {plain} ELSE {moved} END"
    parts = f"split(regexp_replace({text}, r'{_DAY_TEXT}', '{_DAY_PARTS}'), '[|]')"
    first, length = _USUAL_PARTS[part]
    return (
        f"CAST(CASE WHEN {text} RLIKE r'{_USUAL_DAY}' THEN CAST(substring({text}, {first}, {length}) AS INT) "
        f"WHEN {text} RLIKE r'{_DAY_TEXT}' THEN element_at(transform(array({parts}), p -> {value}), 1) END AS BIGINT)"
    )


_PLAIN = (
    "if",
    "coalesce",
    "concat",
    "lower",
    "upper",
    "contains",
    "abs",
    "sqrt",
    "greatest",
    "least",
    "exists",
    "isnan",
)
_INFIX = ("and", "or", "=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "mod", "like")
_CALLS: Mapping[str, Callable[[CallTerm, tuple[str, ...]], str]] = {
    **dict.fromkeys(_INFIX, _infix),
    **dict.fromkeys(_PLAIN, _function),
    **dict.fromkeys(("ceil", "floor", "round", "trunc"), _round_call),
    "exact": _exact,
    "said_null": _null_literal,
    "not": lambda _, of: f"(NOT {of[0]})",
    "is_null": lambda _, of: f"({of[0]} IS NULL)",
    "in": lambda _, of: f"({of[0]} IN ({', '.join(of[1:])}))",
    "negative": lambda _, of: f"(- {of[0]})",
    "div": lambda node, of: f"CAST(({of[0]} DIV {of[1]}) AS {TYPES[node.word]})",
    "cast": lambda node, of: f"CAST({of[0]} AS {TYPES[node.word]})",
    "field": lambda node, of: f"{of[0]}.{quote_name(node.word)}",
    "length": lambda _, of: f"CAST(char_length({of[0]}) AS BIGINT)",
    "size": lambda _, of: f"CAST(size({of[0]}) AS BIGINT)",
    "count_known": lambda _, of: f"CAST(size(filter({of[0]}, x -> x IS NOT NULL)) AS BIGINT)",
    "starts_with": lambda _, of: f"startswith({of[0]}, {of[1]})",
    "ends_with": lambda _, of: f"endswith({of[0]}, {of[1]})",
    "position": lambda _, of: f"CAST(locate({of[1]}, {of[0]}) - 1 AS BIGINT)",
    "substr": lambda _, of: f"substring({', '.join(of)})",
    "milliseconds": lambda _, of: f"date_trunc('MILLISECOND', CAST({of[0]} AS TIMESTAMP))",
    "unix_time_from_date_in_days": lambda _, of: f"CAST(unix_date({of[0]}) AS BIGINT)",
    "unix_time_from_datetime_in_ms": lambda _, of: f"unix_millis({of[0]})",
    **dict.fromkeys((f"get_{part}" for part in _PARTS), _part),
}
