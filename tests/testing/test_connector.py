# SPDX-License-Identifier: Apache-2.0
"""The suite of connectors: the example of Delta tables passes it, and planted faults do not. Catalogs of its provider
are served.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import MappingProxyType

import deltalake
import pyarrow as pa
import pytest

from limnos.model.errors import NotFound, SourceFailed, UnsupportedOperation
from limnos.sources.connectors import further
from limnos.sources.connectors.base import Connector, ReadOnlyTables
from limnos.sources.connectors.capabilities import SourceSchemaInfo, SourceTableInfo
from limnos.testing.connector import check_connector
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
    def check_properties(cls, properties: object, *, addresses: object) -> None:
        """Accept everything."""

    def schema_names(self, parent: object) -> list[str]:
        """Return two schemas."""
        return ["b", "a"] if self.fault == "order" else ["a", "b"]

    def schema_exists(self, schema: tuple[str, ...]) -> bool:
        """Return whether it is one of the two."""
        return schema[0] in ("a", "b") or self.fault == "anything exists"

    def schema_load(self, schema: tuple[str, ...]) -> SourceSchemaInfo:
        """Return a schema."""
        if not self.schema_exists(schema):
            raise (SourceFailed("no") if self.fault == "other error" else NotFound("no", kind="namespace"))
        return SourceSchemaInfo(None, {})

    def table_names(self, schema: tuple[str, ...]) -> list[str]:
        """Return a table."""
        self.schema_load(schema)
        return [] if self.fault == "no table" else ["t"]

    def table_exists(self, schema: tuple[str, ...], table: str) -> bool:
        """Return whether it is that table."""
        return table == "t" and self.fault != "denied"

    def table_load(self, schema: tuple[str, ...], table: str) -> SourceTableInfo:
        """Return a table."""
        if table != "t":
            raise NotFound("no", kind="table")
        columns = [{"name": "a"}] if self.fault == "no type" else [{"name": "a", "type": "long"}]
        return SourceTableInfo(comment=None, columns=columns, indexes=[], properties={})


@pytest.mark.parametrize(
    "fault,words",
    [
        ("order", "not sorted"),
        ("anything exists", "although no user made it"),
        ("other error", "does not raise NotFound"),
        ("no table", "the source has no table"),
        ("denied", "denies the listed table"),
        ("no type", "has no name or no type"),
    ],
)
def test_the_suite_finds_planted_faults(fault: str, words: str) -> None:
    """Each fault is found; without one, the suite finds only that properties are not checked."""
    kind = type("Planted", (Wrong,), {"fault": fault})

    problems = check_connector(kind, {})

    assert any(words in problem for problem in problems), problems
    assert check_connector(Wrong, {}) == ["check_properties accepts a catalog without properties"]


def test_a_connector_without_a_check_of_properties_serves_no_catalog() -> None:
    """The base class refuses all properties."""
    with pytest.raises(UnsupportedOperation):
        Connector.check_properties({"a": "b"}, addresses=())
