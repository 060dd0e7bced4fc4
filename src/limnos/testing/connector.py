# SPDX-License-Identifier: Apache-2.0
"""What every connector must do, as a suite that its package runs.

`check_connector` returns sentences about what is wrong; an empty list is a pass. It needs a source with at least one
schema and one table, and changes nothing in it. What the suite cannot know is for tests of the package: whether
`check_properties` refuses every host and directory that the operator does not allow, whether links lead out, and
whether calls of a slow source end within `timeout_s`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

from limnos.model.errors import BadRequest, InvalidTable, NotFound, UnsupportedOperation
from limnos.names.path import Levels, check_part
from limnos.sources.connectors.base import Connector, ReadOnlyTables
from limnos.sources.connectors.capabilities import SourceSchemaInfo, SupportsNamespaces, TableCatalog
from limnos.sources.connectors.further import CATALOG_TYPES
from limnos.testing.gravitino_shapes import table_problems

T = TypeVar("T")
NO_NAME: Final = "no_such_name_7f3a"
HOSTILE: Final = ("..", ".", "", "a/b", "/etc", "a\\b", "a\0b", "%2e%2e", "a;b", "`a`", "\u202e", "x" * 300)
"""Names that callers may send: none is in a source, and none may leave it."""
CHECKED_MAX: Final = 20
"""The number of schemas, and of tables of each, that are loaded."""
THREADS: Final = 4
"""The number of threads that call a connector at the same time, as the server does."""
UNKNOWN: Final = {"x-limnos-suite": "a property that no connector knows"}
"""A property that clients may add to those of a catalog."""


class UnreadableTableWarning(UserWarning):
    """A table of the source raises InvalidTable when it is loaded. The suite passes if another table can be loaded."""


class _CallError(Exception):
    """An unexpected error of a call, which the suite has noted."""


def check_connector(
    kind: type[Connector], properties: Mapping[str, str], *, addresses: tuple[str, ...] = (), timeout_s: float = 10.0
) -> list[str]:
    """Run all checks on a source with these properties, and return what is wrong, with the call that failed.

    Exceptions of the connector become such sentences. Tables that raise InvalidTable are allowed, and are named by an
    UnreadableTableWarning. `addresses` are those that the server's operator allows.
    """
    suite = _Suite()
    suite.check_properties(kind, properties, addresses=addresses)
    try:
        connector = suite.call("the constructor", lambda: kind(properties, timeout_s=timeout_s))
    except _CallError:
        return suite.problems
    try:
        suite.check(connector)
    except _CallError:
        pass
    finally:
        for text in ("close()", "the second close()"):
            suite.error_of(text, connector.close)
    return suite.problems


class _Suite:
    """The checks of one connector, and the problems so far."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def call(self, text: str, function: Callable[[], T], *, allowed: tuple[type[Exception], ...] = ()) -> T:
        """Return the result of a call. Raises an error that is `allowed`; notes any other, and raises _CallError."""
        try:
            return function()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if isinstance(error, allowed):
                raise
            self.problems.append(f"{text} raises an unexpected {type(error).__name__}: {error}")
            raise _CallError from error

    def error_of(self, text: str, function: Callable[[], object], *allowed: type[Exception]) -> Exception | bool:
        """Return the allowed error of a call; False if it succeeds, and True if it raises another, which is noted."""
        try:
            self.call(text, function, allowed=allowed)
        except _CallError:
            return True
        except allowed as error:
            return error
        return False

    def check_properties(
        self, kind: type[Connector], properties: Mapping[str, str], *, addresses: tuple[str, ...]
    ) -> None:
        if kind.catalog_type not in CATALOG_TYPES:
            self.problems.append(f"catalog_type {kind.catalog_type!r} is none of {', '.join(CATALOG_TYPES)}")
        text = "check_properties of the given properties"
        refusal = self.error_of(text, lambda: kind.check_properties(properties, addresses=addresses), BadRequest)
        if isinstance(refusal, BadRequest):
            self.problems.append(f"check_properties refuses the given properties: {refusal}")
        elif refusal is False:
            more = {**properties, **UNKNOWN}
            if self.error_of(text, lambda: kind.check_properties(more, addresses=addresses), BadRequest) is not False:
                self.problems.append(
                    "check_properties refuses a property that it does not know: ignore such properties"
                )
        text = "check_properties of no properties"
        if self.error_of(text, lambda: kind.check_properties({}, addresses=addresses), BadRequest) is False:
            self.problems.append("check_properties accepts a catalog without properties")

    def check(self, connector: Connector) -> None:
        self.call("check()", connector.check)
        if type(connector).check is Connector.check:
            self.problems.append("check() is not written, so that a test of the connection succeeds without the source")
        if not isinstance(connector, SupportsNamespaces):
            self.problems.append("it has no schemas: implement SupportsNamespaces")
            return
        names = self.call("schema_names(())", lambda: connector.schema_names(()))
        self.check_names("schema_names(())", names)
        for name in names[:CHECKED_MAX]:
            with suppress(_CallError):
                self.check_schema(connector, name)
        with suppress(_CallError):
            self.check_parents(connector, names)
        with suppress(_CallError):
            for name in (NO_NAME, *HOSTILE):
                self.check_missing("schema", (name,), exists=connector.schema_exists, load=connector.schema_load)
        self.check_drop(connector)
        if isinstance(connector, TableCatalog):
            self.check_tables(connector, names)
            with suppress(_CallError):
                self.check_threads(connector, names[:CHECKED_MAX])

    def check_threads(self, connector: TableCatalog, schemas: list[str]) -> None:
        """Check that calls of several threads return what calls one after the other do."""
        alone = [self.call(f"table_names({(name,)})", partial(connector.table_names, (name,))) for name in schemas]
        with ThreadPoolExecutor(THREADS) as threads:
            together = [threads.submit(connector.table_names, (name,)) for _ in range(THREADS) for name in schemas]
            for each, expected in zip(together, alone * THREADS, strict=True):
                if self.call("table_names(…) in several threads", each.result) != expected:
                    self.problems.append("table_names returns something else when several threads call it")
                    return

    def check_names(self, text: str, names: object) -> None:
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            self.problems.append(f"{text} returns {names!r}, and not a list of texts")
            raise _CallError
        if names != sorted(set(names)):
            self.problems.append(f"{text} is not sorted, or has a name twice")
        for name in names:
            try:
                check_part(name)
            except ValueError as error:
                self.problems.append(f"{text} has a name that cannot be shown: {error}: leave it out")

    def check_schema(self, connector: SupportsNamespaces, name: str) -> None:
        exists = f"schema_exists({(name,)})"
        if not self.call(exists, lambda: connector.schema_exists((name,))):
            self.problems.append(f"schema_exists denies the listed schema {name!r}")
        information = self.call(f"schema_load({(name,)})", lambda: connector.schema_load((name,)))
        self.problems += _schema_problems(name, information)

    def check_parents(self, connector: SupportsNamespaces, names: list[str]) -> None:
        refusals = (NotFound, UnsupportedOperation)
        for name in names[:CHECKED_MAX]:
            try:
                below = self.call(
                    f"schema_names({(name,)})",
                    lambda name=name: connector.schema_names((name,)),  # type: ignore[misc]
                    allowed=refusals,
                )
            except refusals:
                continue
            if below and below == names:
                self.problems.append(f"schema_names({(name,)}) returns the schemas of the top: it ignores its parent")
        missing = f"schema_names({(NO_NAME,)})"
        if self.error_of(missing, lambda: connector.schema_names((NO_NAME,)), *refusals) is False:
            self.problems.append(f"{missing} raises neither NotFound nor UnsupportedOperation for a missing parent")

    def check_drop(self, connector: SupportsNamespaces) -> None:
        """Check that a drop of a missing schema is refused: a success would be that of a drop that does nothing."""
        refusals = (
            (UnsupportedOperation,) if isinstance(connector, ReadOnlyTables) else (UnsupportedOperation, NotFound)
        )
        if self.error_of("schema_drop", lambda: connector.schema_drop((NO_NAME,)), *refusals) is False:
            self.problems.append("schema_drop of a missing schema succeeds: it must raise an error")

    def check_tables(self, connector: TableCatalog, schemas: list[str]) -> None:
        readable = 0
        for schema in schemas[:CHECKED_MAX]:
            with suppress(_CallError):
                readable += self.check_tables_of(connector, schema)
        for name in (NO_NAME, *HOSTILE):
            text = f"table_names({(name,)})"
            error = self.error_of(text, lambda name=name: connector.table_names((name,)), NotFound)  # type: ignore[misc]
            self.check_refusal(f"{text} of a missing schema", error=error, kinds=("namespace",))
        if not readable:
            self.problems.append(
                "the source has no table that can be read: give the suite one with a schema and a table"
            )

    def check_tables_of(self, connector: TableCatalog, schema: str) -> int:
        """Check the tables of a schema, and loads of missing ones. Returns the number of tables that can be read."""
        names = self.call(f"table_names({(schema,)})", lambda: connector.table_names((schema,)))
        self.check_names(f"table_names({(schema,)})", names)
        readable = 0
        for name in names[:CHECKED_MAX]:
            with suppress(_CallError):
                readable += self.check_table(connector, schema, name=name)
        joined = [text for name in names[:1] for text in (f"../{schema}/{name}", f"./{name}", f"{name}/")]
        for name in (NO_NAME, *HOSTILE, *joined):
            self.check_missing(
                f"table in {schema!r}",
                (schema, name),
                exists=lambda levels: connector.table_exists(levels[:1], levels[1]),
                load=lambda levels: connector.table_load(levels[:1], levels[1]),
            )
        return readable

    def check_table(self, connector: TableCatalog, schema: str, *, name: str) -> bool:
        """Check a listed table. Returns whether it can be read."""
        if not self.call(f"table_exists({(schema,)}, {name!r})", lambda: connector.table_exists((schema,), name)):
            self.problems.append(f"table_exists denies the listed table {schema}.{name}")
        try:
            information = self.call(
                f"table_load({(schema,)}, {name!r})",
                lambda: connector.table_load((schema,), name),
                allowed=(InvalidTable,),
            )
        except InvalidTable as error:
            warnings.warn(f"table {schema}.{name} cannot be read: {error}", UnreadableTableWarning, stacklevel=4)
            return False
        self.problems += table_problems(f"{schema}.{name}", information)
        return True

    def check_missing(
        self, word: str, levels: Levels, *, exists: Callable[[Levels], bool], load: Callable[[Levels], object]
    ) -> None:
        if self.call(f"the check whether a {word} named {levels[-1]!r} exists", lambda: exists(levels)):
            self.problems.append(f"a {word} named {levels[-1]!r} exists, although no user made it")
        text = f"loading the missing {word} {levels[-1]!r}"
        try:
            load(levels)
        except NotFound as error:
            self.check_refusal(text, error=error, kinds=("namespace",) if len(levels) == 1 else ("table",))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - the suite says what happened
            self.problems.append(f"{text} does not raise NotFound but {error!r}")
        else:
            self.problems.append(f"{text} does not raise NotFound but succeeds")

    def check_refusal(self, text: str, *, error: Exception | bool, kinds: tuple[str, ...]) -> None:
        """Check that a call raised NotFound of one of the kinds."""
        if error is False:
            self.problems.append(f"{text} does not raise NotFound")
        if isinstance(error, NotFound) and error.kind not in kinds:
            self.problems.append(f"{text} raises NotFound of kind {error.kind!r}: kind is {kinds[0]!r} there")


def _schema_problems(name: str, information: SourceSchemaInfo) -> Iterator[str]:
    comment: object = information.comment
    if not isinstance(comment, str | None):
        yield f"the comment of schema {name!r} is no text"
    if not all(isinstance(text, str) for pair in information.properties.items() for text in pair):
        yield f"properties of schema {name!r} are not texts"
