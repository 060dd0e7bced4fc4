# SPDX-License-Identifier: Apache-2.0
"""What every connector must do, as a suite that its package runs.

`check_connector` returns sentences about what is wrong; an empty list is a pass. It needs a source with at least one
schema and one table, and changes nothing in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from limnos.model.errors import BadRequest, LimnosError, NotFound, UnsupportedOperation
from limnos.names.path import Levels, check_part
from limnos.sources.connectors.base import Connector
from limnos.sources.connectors.capabilities import SourceTableInfo, SupportsNamespaces, TableCatalog

NO_NAME = "no_such_name_7f3a"
HOSTILE = ("..", ".", "", "a/b", "/etc", "a\\b", "a\0b", "%2e%2e", "a;b", "`a`", "\u202e", "x" * 300)
"""Names that callers may send: none is in a source, and none may leave it."""


def check_connector(
    kind: type[Connector], properties: Mapping[str, str], *, addresses: tuple[str, ...] = (), timeout_s: float = 10.0
) -> list[str]:
    """Run all checks on a source with these properties. Returns what is wrong; raises nothing of the connector's.

    `addresses` are those that the server's operator allows.
    """
    wrong = list(_properties_problems(kind, properties, addresses=addresses))
    connector = kind(properties, timeout_s=timeout_s)
    try:
        connector.check()
        if not isinstance(connector, SupportsNamespaces):
            return [*wrong, "it has no schemas: implement SupportsNamespaces"]
        wrong += _schema_problems(connector)
        if isinstance(connector, TableCatalog):
            wrong += _table_problems(connector)
    except Exception as error:  # noqa: BLE001 - the suite says what happened
        wrong.append(f"an unexpected {type(error).__name__}: {error}")
    finally:
        connector.close()
    connector.close()  # closing twice is allowed
    return wrong


def _properties_problems(
    kind: type[Connector], properties: Mapping[str, str], *, addresses: tuple[str, ...]
) -> Iterator[str]:
    if kind.catalog_type not in ("RELATIONAL", "STREAM"):
        yield f"catalog_type {kind.catalog_type} is not RELATIONAL or STREAM"
    if answer := _error_of(lambda: kind.check_properties(properties, addresses=addresses)):
        yield f"check_properties refuses the given properties: {answer}"
    if not isinstance(_error_of(lambda: kind.check_properties({}, addresses=addresses)), BadRequest):
        yield "check_properties accepts a catalog without properties"


def _schema_problems(connector: SupportsNamespaces) -> Iterator[str]:
    names = connector.schema_names(())
    yield from _name_problems("schema_names", names)
    for name in names[:20]:
        if not connector.schema_exists((name,)):
            yield f"schema_exists denies the listed schema {name!r}"
        information = connector.schema_load((name,))
        if not all(isinstance(text, str) for pair in information.properties.items() for text in pair):
            yield f"properties of schema {name!r} are not texts"
    for name in (NO_NAME, *HOSTILE):
        yield from _missing_problems("schema", (name,), exists=connector.schema_exists, load=connector.schema_load)


def _table_problems(connector: SupportsNamespaces) -> Iterator[str]:
    assert isinstance(connector, TableCatalog)  # noqa: S101 - for mypy
    count = 0
    for schema in connector.schema_names(())[:20]:
        names = connector.table_names((schema,))
        yield from _name_problems(f"table_names of {schema!r}", names)
        for name in names[:20]:
            count += 1
            if not connector.table_exists((schema,), name):
                yield f"table_exists denies the listed table {schema}.{name}"
            yield from _column_problems(f"{schema}.{name}", connector.table_load((schema,), name))
        for name in (NO_NAME, *HOSTILE):
            yield from _missing_problems(
                f"table in {schema!r}",
                (schema, name),
                exists=lambda levels: connector.table_exists(levels[:1], levels[1]),
                load=lambda levels: connector.table_load(levels[:1], levels[1]),
            )
    for name in (NO_NAME, *HOSTILE):
        if not isinstance(_error_of(lambda name=name: connector.table_names((name,))), NotFound):  # type: ignore[misc]
            yield f"table_names of the missing schema {name!r} does not raise NotFound"
    if not count:
        yield "the source has no table: give the suite one with a schema and a table"


def _name_problems(call: str, names: list[str]) -> Iterator[str]:
    if names != sorted(set(names)):
        yield f"{call} is not sorted, or has a name twice"
    for name in names:
        if answer := _error_of(lambda name=name: check_part(name)):  # type: ignore[misc]
            yield f"{call} has a name that cannot be shown: {answer}"


def _column_problems(table: str, information: SourceTableInfo) -> Iterator[str]:
    names = [column.get("name") for column in information.columns]
    if len(names) != len(set(map(str, names))):
        yield f"table {table} has a column twice"
    for column in information.columns:
        if not isinstance(column.get("name"), str) or "type" not in column:
            yield f"a column of {table} has no name or no type: {column}"
    if not all(isinstance(text, str) for pair in information.properties.items() for text in pair):
        yield f"properties of table {table} are not texts"


def _missing_problems(
    word: str, levels: Levels, *, exists: Callable[[Levels], bool], load: Callable[[Levels], object]
) -> Iterator[str]:
    if exists(levels):
        yield f"a {word} named {levels[-1]!r} exists, although no user made it"
    error = _error_of(lambda: load(levels))
    if not isinstance(error, NotFound):
        yield f"loading the missing {word} {levels[-1]!r} does not raise NotFound but {error!r}"


def _error_of(call: Callable[[], object]) -> Exception | None:
    """Return the error of a call; None if it succeeds. UnsupportedOperation is an error like others."""
    try:
        call()
    except (LimnosError, UnsupportedOperation, ValueError) as error:
        return error
    return None
