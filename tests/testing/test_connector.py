# SPDX-License-Identifier: Apache-2.0
"""The suite of connectors: the example of Delta tables passes it, and planted faults do not. Catalogs of its provider
are served.
"""

from __future__ import annotations

import posixpath
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import deltalake
import pyarrow as pa
import pytest

from limnos.model.errors import BadRequest, InvalidTable, NotFound, SourceFailed, UnsupportedOperation
from limnos.sources.connectors import further
from limnos.sources.connectors.base import Connector, ReadOnlyTables
from limnos.sources.connectors.capabilities import SourceSchemaInfo, SourceTableInfo
from limnos.testing.connector import UnreadableTableWarning, check_connector
from tests.http.conftest import empty_database, fresh  # noqa: F401 - fixtures
from tests.http.driver import API, node_at

EXAMPLE = Path(__file__).parents[2] / "examples" / "delta"
CATALOGS = f"{API}/lake/catalogs"


@pytest.fixture
def delta(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Connector]]:
    """The class of the example, registered as an installer would."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.setattr(further, "_references", lambda: MappingProxyType({"x-delta": "limnos_delta:DeltaDirectory"}))
    further.further_connector.cache_clear()
    yield further.further_connector("x-delta")
    further.further_connector.cache_clear()
    sys.modules.pop("limnos_delta", None)


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with two schemas and three tables, allowed by the operator."""
    monkeypatch.setenv("LIMNOS_DELTA_ROOTS", str(tmp_path / "delta"))
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "tags": [["a"], []], "at": [{"x": 1.5}, {"x": 2.5}]})
    for name in ("sales/orders", "sales/items", "raw/events"):
        folder = tmp_path / "delta" / name
        folder.mkdir(parents=True)
        deltalake.write_deltalake(str(folder), rows, description=f"the {name}")
    (tmp_path / "secret").mkdir()
    (tmp_path / "delta" / "link").symlink_to(tmp_path / "secret")
    return tmp_path / "delta"


def test_the_example_passes_the_suite(delta: type[Connector], lake: Path) -> None:
    """The connector of Delta tables does everything that the suite asks."""
    assert check_connector(delta, {"directory": str(lake)}) == []


@pytest.mark.parametrize("directory", ["", "delta", "/etc", "{lake}/..", "{lake}/link", "{lake}/../secret"])
def test_the_example_reads_no_other_directory(delta: type[Connector], lake: Path, directory: str) -> None:
    """Whoever creates catalogs cannot name a directory that the operator does not allow, nor through a link."""
    problems = check_connector(delta, {"directory": directory.format(lake=lake)})

    assert "check_properties refuses the given properties" in problems[0]


@pytest.mark.room("connectors")
def test_a_catalog_of_the_example_is_served(
    fresh: Callable[[str], Path],  # noqa: F811
    delta: type[Connector],
    lake: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Gravitino's clients create the catalog, list and load, and are refused changes and what they have no right to.
    Without the package no further catalog of the provider is created.
    """
    del delta
    with node_at(fresh("data")) as node:
        body = {"name": "d", "type": "RELATIONAL", "provider": "x-delta", "properties": {"directory": str(lake)}}
        refused = node.post(CATALOGS, body | {"properties": {"directory": "/etc"}})
        node.done("POST", CATALOGS, body)
        schemas = node.done("GET", f"{CATALOGS}/d/schemas")["identifiers"]
        tables = node.done("GET", f"{CATALOGS}/d/schemas/sales/tables")["identifiers"]
        table = node.done("GET", f"{CATALOGS}/d/schemas/sales/tables/orders")["table"]
        missing = node.get(f"{CATALOGS}/d/schemas/sales/tables/none")
        created = node.post(f"{CATALOGS}/d/schemas", {"name": "new"})
        dropped = node.delete(f"{CATALOGS}/d/schemas/sales/tables/orders")
        stranger = node.get(f"{CATALOGS}/d/schemas/sales/tables/orders", user="ana")
        monkeypatch.setattr(further, "_references", lambda: MappingProxyType({}))
        further.further_connector.cache_clear()
        again = node.post(CATALOGS, body | {"name": "e"})

    assert refused.status == 400
    assert [each["name"] for each in schemas] == ["raw", "sales"]
    assert [each["name"] for each in tables] == ["items", "orders"]
    assert table["comment"] == "the sales/orders"
    assert [each["type"] for each in table["columns"]] == [
        "long",
        {"type": "list", "elementType": "string", "containsNull": True},
        {"type": "struct", "fields": [{"name": "x", "type": "double", "nullable": True}]},
    ]
    assert (missing.status, created.status, dropped.status, stranger.status) == (404, 405, 405, 403)
    assert again.status == 400


@pytest.mark.room("connectors")
def test_catalog_without_its_connector_is_refused(
    fresh: Callable[[str], Path],  # noqa: F811
    delta: type[Connector],
    lake: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The catalog stays one of an external system, which cannot be reached. It can be listed and dropped."""
    del delta
    data = fresh("data")
    body = {"name": "d", "type": "RELATIONAL", "provider": "x-delta", "properties": {"directory": str(lake)}}
    with node_at(data) as node:
        node.done("POST", CATALOGS, body)
    monkeypatch.setattr(further, "_references", lambda: MappingProxyType({}))
    further.further_connector.cache_clear()
    with node_at(data) as node:
        listed = node.get(f"{CATALOGS}/d/schemas")
        catalogs = {each["name"] for each in node.done("GET", CATALOGS)["identifiers"]}
        dropped = node.delete(f"{CATALOGS}/d?force=true")

    assert (listed.status, dropped.status) == (405, 200)
    assert "The connector of provider x-delta is not installed on this server" in listed.json()["message"]
    assert "d" in catalogs


class Wrong(ReadOnlyTables):
    """A connector with a planted fault each."""

    fault = ""

    @classmethod
    def check_properties(cls, properties: Mapping[str, str], *, addresses: object) -> None:
        """Accept everything."""
        if cls.fault == "unknown property" and properties:
            raise BadRequest("no")

    def check(self) -> None:
        """Accept everything."""

    def close(self) -> None:
        """Close once, or fail."""
        if self.fault == "second close" and "closed" in vars(self):
            raise RuntimeError("closed")
        self.closed = True

    def schema_names(self, parent: object) -> list[str]:
        """Return two schemas."""
        if parent and self.fault != "parent":
            raise NotFound("no", kind="namespace")
        if self.fault == "no texts":
            return [1, 2]  # type: ignore[list-item]
        return ["b", "a"] if self.fault == "order" else ["a", "b"]

    def schema_drop(self, schema: object) -> None:
        """Refuse, or claim a success."""
        if self.fault != "drop":
            super().schema_drop(())

    def schema_exists(self, schema: tuple[str, ...]) -> bool:
        """Return whether it is one of the two."""
        return schema[0] in ("a", "b") or self.fault == "anything exists"

    def schema_load(self, schema: tuple[str, ...]) -> SourceSchemaInfo:
        """Return a schema."""
        if not self.schema_exists(schema):
            kind = "table" if self.fault == "kind" else "namespace"
            raise (SourceFailed("no") if self.fault == "other error" else NotFound("no", kind=kind))
        return SourceSchemaInfo(None, {})

    def table_names(self, schema: tuple[str, ...]) -> list[str]:
        """Return a table."""
        self.schema_load(schema)
        if self.fault == "threads" and threading.current_thread() is not threading.main_thread():
            return []
        return [] if self.fault == "no table" else ["t", "u"] if self.fault.startswith("unreadable") else ["t"]

    def table_exists(self, schema: tuple[str, ...], table: str) -> bool:
        """Return whether it is that table."""
        if self.fault == "bug" and table == "t":
            raise KeyError(table)
        if self.fault == "joined path":
            return posixpath.normpath(f"/{schema[0]}/{table}") in ("/a/t", "/a/u", "/b/t", "/b/u")
        return table in ("t", "u") and self.fault != "denied"

    def table_load(self, schema: tuple[str, ...], table: str) -> SourceTableInfo:
        """Return a table."""
        if table == "u" or self.fault == "all unreadable":
            raise InvalidTable("The log is damaged")
        if table != "t":
            raise NotFound("no", kind="namespace" if self.fault == "kind of tables" else "table")
        columns = [{"name": "a"}] if self.fault == "no type" else [{"name": "a", "type": "long"}]
        info = SourceTableInfo(comment=None, columns=columns, indexes=[], properties={})
        return info._replace(**SHAPES.get(self.fault, {}))


SHAPES: dict[str, dict] = {
    "wibble": {"columns": [{"name": "a", "type": "wibble"}]},
    "nested": {"columns": [{"name": "a", "type": {"type": "list", "elementType": {"type": "array"}}}]},
    "struct": {"columns": [{"name": "a", "type": {"type": "struct", "fields": [{"type": "long"}]}}]},
    "external": {"columns": [{"name": "a", "type": {"type": "external"}}]},
    "nullable": {"columns": [{"name": "a", "type": "long", "nullable": "yes"}]},
    "key": {"columns": [{"name": "a", "type": "long", "required": True}]},
    "layout": {"layout": {"x": 1}},
    "strategy": {"layout": {"partitioning": [{"strategy": "by"}]}},
    "field": {"layout": {"partitioning": [{"strategy": "identity", "fieldName": ["b"]}]}},
    "fields": {"layout": {"partitioning": [{"strategy": "identity", "fieldName": []}]}},
    "sort": {"layout": {"sortOrders": [{"column": "a"}]}},
    "distribution": {"layout": {"distribution": {"strategy": "hash"}}},
    "decimal": {"columns": [{"name": "a", "type": "decimal"}]},
    "wide decimal": {"columns": [{"name": "a", "type": "decimal(40,2)"}]},
    "scale": {"columns": [{"name": "a", "type": "decimal(4,5)"}]},
    "no indexes": {"indexes": None},
    "no columns": {"columns": None},
    "comment": {"comment": 5},
    "index": {"indexes": [{"name": "pk"}]},
    "properties": {"properties": {"rows": 5}},
}
"""Fields of a table with a planted fault each."""


@pytest.mark.parametrize(
    "fault,words",
    [
        ("order", "not sorted"),
        ("anything exists", "although no user made it"),
        ("other error", "does not raise NotFound"),
        ("no table", "the source has no table"),
        ("denied", "denies the listed table"),
        ("no type", "has no name or no type"),
        ("second close", "the second close() raises an unexpected RuntimeError: closed"),
        ("parent", "it ignores its parent"),
        ("no texts", "and not a list of texts"),
        ("drop", "schema_drop of a missing schema succeeds"),
        ("kind", "loading the missing schema 'no_such_name_7f3a' raises NotFound of kind 'table'"),
        ("kind of tables", "raises NotFound of kind 'namespace': kind is 'table' there"),
        ("joined path", "'../a/t'"),
        ("bug", "table_exists(('b',), 't') raises an unexpected KeyError: 't'"),
        ("wibble", "the type of column a of table a.t is 'wibble', which Gravitino lacks"),
        ("nested", "the type of elementType in column a of table a.t is {'type': 'array'}"),
        ("struct", "a field in column a of table a.t has no name or no type"),
        ("external", "the type external of column a of table a.t has no catalogString"),
        ("nullable", "nullable of column a of table a.t is 'yes'"),
        ("key", "has the keys required"),
        ("layout", "the layout of table a.t is {'x': 1}"),
        ("strategy", "partitioning of table a.t has {'strategy': 'by'}"),
        ("field", "partitioning of table a.t names ['b']"),
        ("fields", "partitioning of table a.t names []"),
        ("sort", "a sort order of table a.t lacks"),
        ("distribution", "the distribution of table a.t lacks"),
        ("decimal", "is 'decimal', which Gravitino lacks: write decimal(PRECISION,SCALE)"),
        ("wide decimal", "is 'decimal(40,2)': a decimal has at most 38 digits"),
        ("scale", "is 'decimal(4,5)': a decimal has at most 38 digits, and its scale is not above them"),
        ("no indexes", "indexes of table a.t are None: return a list of JSON objects"),
        ("no columns", "columns of table a.t are None: return a list of JSON objects"),
        ("unknown property", "check_properties refuses a property that it does not know"),
        ("threads", "table_names returns something else when several threads call it"),
        ("comment", "the comment of table a.t is 5"),
        ("index", "an index of table a.t lacks"),
        ("properties", "properties of table a.t are not texts"),
    ],
)
def test_the_suite_finds_planted_faults(fault: str, words: str) -> None:
    """Each fault is found; without one, the suite finds only that properties are not checked."""
    kind = type("Planted", (Wrong,), {"fault": fault})

    problems = check_connector(kind, {})

    assert any(words in problem for problem in problems), problems
    assert check_connector(Wrong, {}) == ["check_properties accepts a catalog without properties"]


def test_a_source_with_an_unreadable_table_passes() -> None:
    """A table that raises InvalidTable is named by a warning. A source needs one that does not."""
    kind = type("Planted", (Wrong,), {"fault": "unreadable"})
    none = type("Planted", (Wrong,), {"fault": "all unreadable"})

    with pytest.warns(UnreadableTableWarning) as notes:
        problems = check_connector(kind, {})
    with pytest.warns(UnreadableTableWarning):
        alone = check_connector(none, {})

    assert problems == ["check_properties accepts a catalog without properties"]
    assert [str(each.message) for each in notes] == [
        f"table {schema}.u cannot be read: The log is damaged" for schema in ("a", "b")
    ]
    assert "the source has no table that can be read" in alone[-1]


class FailingConnector(Wrong):
    """A connector whose constructor or check of properties fails."""

    def __init__(self, properties: Mapping[str, str], *, timeout_s: float) -> None:
        super().__init__(properties, timeout_s=timeout_s)
        raise SystemExit(3)


class UncheckedConnector(Wrong):
    """A connector whose check of properties fails."""

    @classmethod
    def check_properties(cls, properties: object, *, addresses: object) -> None:
        """Fail."""
        raise TypeError("no")


def test_the_suite_raises_no_exception_of_the_connector() -> None:
    """An exception of the constructor or of check_properties is a problem that names the call."""
    constructed, checked = check_connector(FailingConnector, {}), check_connector(UncheckedConnector, {})

    assert constructed[-1] == "the constructor raises an unexpected SystemExit: 3"
    assert checked == [
        "check_properties of the given properties raises an unexpected TypeError: no",
        "check_properties of no properties raises an unexpected TypeError: no",
    ]


def test_connector_without_a_check_is_named() -> None:
    """The base class accepts every source, so that a test of the connection would say nothing."""
    kind = type("Planted", (Wrong,), {"check": Connector.check})

    assert "check() is not written, so that a test of the connection succeeds without the source" in check_connector(
        kind, {}
    )


def test_a_connector_without_a_check_of_properties_serves_no_catalog() -> None:
    """The base class refuses all properties."""
    with pytest.raises(UnsupportedOperation):
        Connector.check_properties({"a": "b"}, addresses=())
