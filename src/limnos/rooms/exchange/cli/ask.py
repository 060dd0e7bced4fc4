# SPDX-License-Identifier: Apache-2.0
"""`ask`: a SQL query over the tree of a metalake, executed by DuckDB in this process.

The server sends the tables that the query names: only the columns that it uses, and only the rows that its simple
conditions select. The query itself reads nothing else: no files, and no network.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from warnings import catch_warnings, simplefilter

import msgspec

from limnos.cli.common import DEFAULTS, CommonFlags
from limnos.cli.extras import import_extra
from limnos.cli.failures import UsageError
from limnos.cli.grammar.reading import answers
from limnos.cli.guesses import command_for
from limnos.cli.operations import BY_VERB_AND_KIND, plural
from limnos.cli.output import show_rows
from limnos.cli.sentences import proposal_for, quote_command
from limnos.client.activity.system_tables import time_condition

if TYPE_CHECKING:
    import duckdb

    from limnos.client import Client
    from limnos.client.activity.system_tables import Condition
    from limnos.client.values import SystemTableInfo

_TYPES: Final = {
    "int": "BIGINT",
    "text": "VARCHAR",
    "bool": "BOOLEAN",
    "time": "TIMESTAMPTZ",
    "texts": "VARCHAR[]",
    "map": "MAP(VARCHAR, VARCHAR)",
}
_FILTER: Final = re.compile(
    r"(?P<column>[a-z_]+)(?P<sign>=|<=|>=|<|>)"
    r"(?:'(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?)\+00'::TIMESTAMP WITH TIME ZONE"
    r"|'(?P<text>[^'\\]*)'|(?P<number>-?\d{1,18}))"
)
_READS: Final = frozenset({"SELECT", "EXPLAIN"})
"""DuckDB's types of statements that only read, those of `show` and `describe` among them."""
_DATA: Final = re.compile(r"\b(?:from|join)\s+([\w`]+(?:\.[\w`]+){1,})", re.IGNORECASE)
"""The path of a table of the lake, as a query names it."""
_DESCRIBED: Final = re.compile(
    r"\s*(?:describe|desc|show\s+columns\s+(?:from|in))\s+\"?(\w+)\"?\s*;?\s*", re.IGNORECASE
)
"""A query for the columns of one table."""
_NO_COLUMN: Final = re.compile(r'Referenced column "([^"]*)" not found')
_NO_COLUMN_OF: Final = re.compile(r'does not have a column named "([^"]*)"')
_NO_TABLE: Final = re.compile(r"Table with name (\w+) does not exist")
_EXPLAIN: Final = re.compile(r"\A\s*explain\s+(?:analyze\s+)?(?:\([^)]*\)\s*)?", re.IGNORECASE)
_COPY: Final = re.compile(r"\s*copy\s+(?P<table>\w+|\(.*\))\s+to\s+'(?P<file>[^']*)'", re.IGNORECASE | re.DOTALL)
_FILE: Final = re.compile(r"\S+\.(?:sql|txt)")
"""A query that is the name of a file with one."""
_STARTS: Final = frozenset({"select", "from", "with", "values", "describe", "explain", "summarize", "pragma", "table"})
"""The words with which a query begins, if it is one of SQL."""
_AGGREGATES: Final = frozenset({"count", "sum", "min", "max", "avg"})
_OWN_NAMES: Final = ("user", "current_user", "session_user")
"""Words that DuckDB takes for its own user where a table has no such column."""
_NO_USER: Final = "There is no column of this name here"
_FOR_EMPTY_TABLES: Final = "statistics_propagation,empty_result_pullup"
"""Optimizers that leave out the scans of empty tables."""
_ENGINES: Final = "'limnos sql' runs statements of SQL++"
_ENGINES_OF_LANCE: Final = "LanceDB's clients query Lance tables, SQL++ does not"
"""What queries the rows of a table, and of one in the catalog of Lance tables that a new server has."""
_CONFIG: Final = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}


_STAR: Final = re.compile(r"(?i)\bselect\s+(?:distinct\s+)?\*|[\w`\"]\.\*|\A\s*(?:from|table|show|describe)\b")
"""A query that takes columns as they come: on a narrow terminal, some of them may be left out."""


class TableNeed(NamedTuple):
    """The columns that a query reads of a system table, and the conditions that all its rows must meet."""

    columns: tuple[str, ...]
    where: tuple[Condition, ...]


def ask(query: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Query objects, owners, tags, grants and access as tables, in SQL.

    Parameters
    ----------
    query
        A query, as `select kind, count(*) from nodes group by kind`; `show tables` lists the tables.
    """
    engine = import_extra("duckdb", extra="ask")
    import_extra("pyarrow", extra="ask")
    with common.client() as client, engine.connect(":memory:", config=_CONFIG) as connection:
        names, rows = answer(client, query, connection=connection)
    show_rows(
        rows,
        names,
        output_format=common.output_format,
        empty="no rows",
        verbatim=True,
        keeps_columns=_STAR.search(query) is None,
    )


def answer(
    client: Client, query: str, *, connection: duckdb.DuckDBPyConnection
) -> tuple[list[str], list[dict[str, object]]]:
    """Execute a query over the system tables of a client's metalake. Returns the names of its columns, and its rows.

    Raises UsageError for a query that DuckDB refuses.
    """
    import duckdb
    import pyarrow as pa

    tables = {table.name: table for table in client.system_tables.list()}
    if (describe_match := _DESCRIBED.fullmatch(query)) is not None and describe_match[1].lower() in tables:
        # DuckDB's DESCRIBE TABLES lists tables
        query = f"DESCRIBE SELECT * FROM {_quote_name(describe_match[1].lower())}"  # noqa: S608 - a known name, quoted
    try:
        connection.execute("SET TimeZone = 'UTC'")
        for name in _OWN_NAMES:
            connection.execute(f"CREATE MACRO {name}() AS error('{_NO_USER}')")
        for table in tables.values():
            columns = ", ".join(f"{_quote_name(each.name)} {_TYPES[each.type]}" for each in table.columns)
            connection.execute(f"CREATE TABLE {_quote_name(table.name)} ({columns})")
        for name, need in needs_of(connection, query, tables=tables).items():
            streams = client.system_tables.read(name, columns=need.columns, where=need.where)
            content = pa.concat_tables([pa.ipc.open_stream(each).read_all() for each in streams])
            connection.register("fetched", content)
            column_list = ", ".join(map(_quote_name, need.columns))
            connection.execute(f"INSERT INTO {_quote_name(name)} ({column_list}) SELECT {column_list} FROM fetched")  # noqa: S608 - quoted
            connection.unregister("fetched")
        connection.execute(query)
        with catch_warnings():
            simplefilter("ignore", UserWarning)  # DuckDB 2.0 warns of a copy of the result
            result = connection.to_arrow_table()
    except duckdb.Error as error:
        if (path := _DATA.search(query)) is not None:
            raise UsageError(
                f"'limnos ask' reads tables about the tree, such as nodes and tags, not the rows of {path[1]}",
                hint=f"{_command('head', path[1])} shows rows of it, {_command('show', path[1])} its columns; "
                f"{_ENGINES_OF_LANCE if path[1].startswith('lance.') else _ENGINES}",
            ) from error
        raise _refused_query(query, str(error), tables=tables) from error
    names = _distinct(result.column_names)
    cells = [_cells(column) for column in result.columns]
    return names, [dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True)]


def _refused_query(query: str, refusal: str, *, tables: Mapping[str, SystemTableInfo]) -> UsageError:
    """Return the error for a query that DuckDB refused: its message, with the names of the system tables or of their
    columns in place of those that it proposes, and the next step, which is the command for a plain question.
    """
    message = " ".join(line.strip() for line in refusal.partition("\nLINE ")[0].splitlines() if line.strip())
    if _NO_USER in refusal:
        return UsageError(
            '"user" is no column of the query\'s tables',
            hint="columns with users are user_name, of audit and effective_access, and others that 'describe' lists;"
            " your own name: 'limnos whoami'",
        )
    hint = '\'limnos ask "show tables"\' lists the tables, and "describe nodes" columns'
    column = _NO_COLUMN.search(refusal)
    if column is not None and f'"{column[1]}"' in query:
        return UsageError(f'"{column[1]}" is a column in SQL', hint=f"a text stands in single quotes: '{column[1]}'")
    if column is not None and column[1].lower() in _AGGREGATES:
        return UsageError(message, hint=f"name it: select {column[1]}(*) as n …, and order by n")
    if (name_match := _NO_COLUMN.search(refusal) or _NO_COLUMN_OF.search(refusal)) is not None:
        return _no_column(name_match[1], query, tables=tables)
    missing = _NO_TABLE.search(refusal)
    kind = "" if missing is None else missing[1].lower().removesuffix("s")
    lists = BY_VERB_AND_KIND.get(("list", kind))  # those of one object only say nothing about the lake
    if lists is not None and lists.arguments in {"", "[PATH]"} and f'"{kind}' not in message:
        return UsageError(
            message.partition("!")[0], hint=f"{answers.propose(['list', plural(kind)])} lists them; {hint}"
        )
    if _FILE.fullmatch(query.strip()) is not None:
        text = f"'{query.strip()}' is the name of a file, and the query itself is the argument"
        return UsageError(text, hint=f'limnos ask "$(cat {shlex.quote(query.strip())})"')
    if missing is not None:
        similar_tables = difflib.get_close_matches(missing[1].lower(), tables, n=1, cutoff=0.7)
        first = f"did you mean {similar_tables[0]}? " if similar_tables else ""
        return UsageError(
            f"there is no table {missing[1]} about the lake", hint=f"{first}the tables are {', '.join(sorted(tables))}"
        )
    words = query.strip().rstrip("?;").split()
    if len(words) == 1 and words[0].lower() in tables:
        return UsageError("a table stands after FROM", hint=quote_command(["ask", f"from {words[0].lower()}"]))
    if refusal.startswith("Parser Error") and words and words[0].lower() not in _STARTS:
        if close := difflib.get_close_matches(words[0].lower(), _STARTS, n=1, cutoff=0.8):
            return UsageError(message, hint=quote_command(["ask", " ".join([*close, *words[1:]])]))
        proposal = proposal_for(words)
        command = command_for(words, least=2) if proposal is None else (list(proposal.command), "")
        ours = (
            answers.propose(command[0]) if command is not None else "'limnos ask \"select path from nodes limit 10\"'"
        )
        return UsageError("'limnos ask' takes a query of SQL, not a question in words", hint=f"{ours}; {hint}")
    return UsageError(message, hint=hint)


def _no_column(name: str, query: str, *, tables: Mapping[str, SystemTableInfo]) -> UsageError:
    """Return the error for a column that no system table of a query has, with the columns of these tables."""
    used = [table for each, table in tables.items() if re.search(rf"\b{re.escape(each)}\b", query, re.IGNORECASE)]
    reads = [
        table for table in used if re.search(rf"\b(?:from|join)\s+\"?{re.escape(table.name)}\b", query, re.IGNORECASE)
    ] or used
    similar_columns = difflib.get_close_matches(
        name.lower(), [each.name for table in reads for each in table.columns], n=1
    )
    first = f"did you mean {similar_columns[0]}? " if similar_columns else ""
    without = [table for table in used if name.lower() not in {each.name for each in table.columns}]
    if without and len(without) < len(used):  # a table of the query has it, and it was asked of another one
        names = " and ".join(table.name for table in without)
        reads, first = without, f"{names} {'has' if len(without) == 1 else 'have'} no {name}: "
    column_lists = "; ".join(f"{table.name} has {', '.join(each.name for each in table.columns)}" for table in reads)
    column_lists = f"{first}{column_lists}" if column_lists else ""
    return UsageError(
        f'there is no column "{name}" in this query',
        hint=column_lists or "'limnos ask \"show tables\"' lists the tables",
    )


def _command(*words: str) -> str:
    return f"'{shlex.join(['limnos', *words])}'"


def _quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _distinct(names: list[str]) -> list[str]:
    """Return names of columns with a number after each repeated one."""
    results: list[str] = []
    for name in names:
        number, distinct = 1, name
        while distinct in results:
            number += 1
            distinct = f"{name}_{number}"
        results.append(distinct)
    return results


def _cells(column: Any) -> list[object]:  # noqa: ANN401 - pyarrow has no types
    import pyarrow as pa

    cells = column.to_pylist()
    if pa.types.is_map(column.type):
        return [None if each is None else dict(each) for each in cells]
    if pa.types.is_temporal(column.type) or pa.types.is_decimal(column.type):
        return [None if each is None else _plain(each) for each in cells]
    return list(cells)


def _plain(value: Any) -> object:  # noqa: ANN401 - of a temporal type or a decimal
    if hasattr(value, "isoformat"):
        return value.isoformat()
    number = int(value) if hasattr(value, "to_integral_value") and value == value.to_integral_value() else None
    return str(value) if number is None else number


def needs_of(
    connection: duckdb.DuckDBPyConnection, query: str, *, tables: Mapping[str, SystemTableInfo]
) -> dict[str, TableNeed]:
    """Return what a query needs of each system table, from DuckDB's plan of it over the empty tables.

    Further conditions of the query are evaluated by DuckDB, on the rows that the server sends.
    """
    statements = connection.extract_statements(query)
    if len(statements) != 1:
        raise UsageError("give one query", hint="'limnos ask \"select count(*) from nodes\"'")
    if (copied := _COPY.match(query)) is not None:
        read = f"from {copied['table']}" if copied["table"].isidentifier() else copied["table"].strip("()").strip()
        file = f" > {shlex.quote(copied['file'])}"
        raise UsageError(
            "'limnos ask' writes no files: the shell does",
            hint=f"{shlex.join(['limnos', 'ask', read, '--output', 'csv'])}{file}",
        )
    if statements[0].type.name not in _READS:
        raise UsageError(
            "'limnos ask' reads: its tables are copies of the tree, and a change of them changes nothing",
            hint="'limnos --help' lists the commands that change objects",
        )
    connection.execute(f"SET disabled_optimizers = '{_FOR_EMPTY_TABLES}'")
    plans = connection.execute(f"EXPLAIN (FORMAT json) {_EXPLAIN.sub('', query)}").fetchall()
    connection.execute("RESET disabled_optimizers")
    scans: dict[str, list[Mapping[str, object]]] = {}
    for node in _nodes(msgspec.json.decode(plans[-1][1])):
        extra = node.get("extra_info")
        if isinstance(extra, dict) and isinstance(extra.get("Table"), str):
            scans.setdefault(extra["Table"].rpartition(".")[2].strip('"'), []).append(extra)
    return {name: _need(tables[name], some) for name, some in sorted(scans.items()) if name in tables}


def _nodes(plan: object) -> Iterator[Mapping[str, object]]:
    if isinstance(plan, list):
        for each in plan:
            yield from _nodes(each)
    elif isinstance(plan, dict):
        yield plan
        yield from _nodes(plan.get("children"))


def _need(table: SystemTableInfo, scans: list[Mapping[str, object]]) -> TableNeed:
    types = {each.name: each.type for each in table.columns}
    texts = [text for scan in scans for field in ("Projections", "Filters") for text in _texts(scan.get(field))]
    used = {word for text in texts for word in re.findall(r"\w+", text)}
    where = []
    # conditions of one of several scans do not select the rows of the others
    for text in _texts(scans[0].get("Filters")) if len(scans) == 1 else ():
        matches = [_FILTER.fullmatch(part) for part in text.split(" AND ")]
        conditions = [_condition(match, types) for match in matches if match is not None]
        if len(conditions) == len(matches):  # else the text is no plain conjunction: AND may be a part of a value
            where += [each for each in conditions if each is not None]
    return TableNeed(tuple(name for name in types if name in used) or ("id",), tuple(where))


def _condition(match: re.Match[str], types: Mapping[str, str]) -> Condition | None:
    column, text, number, time = match["column"], match["text"], match["number"], match["time"]
    if types.get(column) == "text" and text is not None:
        return (column, match["sign"], text)
    if types.get(column) == "int" and number is not None:
        return (column, match["sign"], int(number))
    if types.get(column) == "time" and time is not None:
        moment = datetime.fromisoformat(f"{time[:19]}.{time[20:]:0<6}+00:00")
        return time_condition(column, match["sign"], moment=moment)
    return None


def _texts(value: object) -> list[str]:
    """Return the texts of a field of a plan, which is one text or a list."""
    if isinstance(value, str):
        return [value]
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
