# SPDX-License-Identifier: Apache-2.0
"""Reads of Lance tables that overlap a revoke: no answer has data that were written after the caller lost the right.

Each read is stopped after its first decision. Then the caller loses the right, another user writes, and the read
continues. Its files, its rows of the store or its worker are read only after that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from limnos.config.storage import StorageSection
from limnos.rooms.lance.services.workers import WORKERS
from limnos.rooms.lance.sources.directories import LanceDirectory
from tests.arrow_rows import arrow
from tests.http.driver import API, OWN, DriverNode, grant, node_at
from tests.http.interference import InterferencePoint, interfere
from tests.rooms.lance.http.wire import declare, fill, make_space, names, rows_of, space, table

pytestmark = pytest.mark.slow

READS = "use_catalog use_schema select_table"
ROLES = f"{API}/lake/permissions/users"
ROWS = pa.table({"id": [1, 2]})
PREVIEW = f"{OWN}/metalakes/lake/catalogs/lance/tables/preview?table="
SCHEMAS = f"{API}/lake/catalogs/shown/schemas"
DIRECTORY_CATALOG = {"name": "shown", "type": "RELATIONAL", "provider": "lakehouse-generic"}
Act = Callable[[], Awaitable[None]]

OF_TABLES = {
    "count": ("count_rows", {}),
    "query": ("query", {"k": 9}),
    "explain": ("explain_plan", {"query": {"k": 1}}),
    "analyze": ("analyze_plan", {"k": 1}),
    "stats": ("stats", {}),
    "indices": ("index/list", {}),
    "describe": ("describe", {}),
    "describe a version": ("describe", {"version": 1}),
    "look for data": ("describe", {"check_declared": True, "load_detailed_metadata": False}),
    "version exists": ("exists", {"version": 1}),
    "missing version": ("exists", {"version": 99}),
    "versions": ("version/list", {}),
    "version": ("version/describe", {"version": 1}),
    "newest version": ("version/describe", {}),
    "tags": ("tags/list", {}),
    "missing tag": ("tags/version", {"tag": "none"}),
    "branches": ("branches/list", {}),
}
"""Reads of a table: the end of the URL, and the body."""
OF_DIRECTORIES = {
    "namespaces": ("GET", f"{space('shown')}/list", None),
    "tables": ("GET", f"{space('shown')}/table/list", None),
    "tables of a missing namespace": ("GET", f"{space('shown', 'x')}/table/list", None),
    "namespace": ("POST", f"{space('shown', 'a')}/describe", {}),
    "table": ("POST", f"{table('shown', 'top')}/describe", {}),
    "table exists": ("POST", f"{table('shown', 'top')}/exists", {}),
    "rows": ("POST", f"{table('shown', 'top')}/count_rows", {}),
    "versions": ("POST", f"{table('shown', 'top')}/version/list", {}),
    "Gravitino schemas": ("GET", SCHEMAS, None),
    "Gravitino schema": ("GET", f"{SCHEMAS}/a", None),
    "Gravitino tables": ("GET", f"{SCHEMAS}/a/tables", None),
}
"""Reads of a catalog that shows a directory: the requests."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverNode]:
    """A node with a table of each kind: one whose files define its versions, and one with managed versions."""
    with node_at(tmp_path_factory.mktemp("lance_races")) as node:
        make_space(node, "lance", "s")
        fill(node, "lance", "s", "files", rows=ROWS)
        declare(node, "lance", "s", "managed", properties={"managed_versioning": "true"})
        node.done("POST", f"{table('lance', 's', 'managed')}/insert", arrow(ROWS))
        yield node


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[DriverNode]:
    """A node with a catalog of a directory that has a namespace `a` and a table `top`."""
    root = tmp_path / "lake"
    LanceDirectory(str(root)).create_namespace(("a",), {})
    lance.write_dataset(ROWS, str(root / "top.lance"))
    with node_at(tmp_path / "data", storage=StorageSection(allowed_roots=(str(root),))) as node:
        properties = {"lance-directory": f"file://{root}"}
        node.done("POST", f"{API}/lake/catalogs", {**DIRECTORY_CATALOG, "properties": properties})
        yield node


def revoke_then(node: DriverNode, role: str, *, write: Act) -> Act:
    """Return the other requests: ana loses a role, and then the write is executed."""

    async def act() -> None:
        answer = await node.answer("PUT", f"{ROLES}/ana/revoke", {"roleNames": [role]})
        assert answer.status == 200, answer
        await write()

    return act


def insert_into(node: DriverNode, *path: str) -> Act:
    """Return a write that commits the next version of a table."""

    async def write() -> None:
        answer = await node.answer("POST", f"{table(*path)}/insert", arrow(ROWS))
        assert answer.status == 200, answer

    return write


def act_before(owner: object, patch: pytest.MonkeyPatch, *, method: str, act: Act) -> list[object]:
    """Execute the other requests just before the next call of a method. Returns the first arguments of its calls."""
    real, calls = getattr(owner, method), list[object]()

    async def act_first(*args: object, **named: object) -> object:
        calls.append(args[0])
        if len(calls) == 1:
            await act()
        return await real(*args, **named)

    patch.setattr(owner, method, act_first)
    return calls


@pytest.mark.parametrize("name", ["files", "managed"])
@pytest.mark.parametrize("read", OF_TABLES)
def test_read_is_refused_if_its_privilege_is_lost_meanwhile(
    home: DriverNode, monkeypatch: pytest.MonkeyPatch, read: str, name: str
) -> None:
    """A caller who loses the right after the decision gets nothing of a version that was committed after that, not even
    that an object is missing.
    """
    url, body = OF_TABLES[read]
    act = revoke_then(
        home, grant(home, "ana", READS, kind="CATALOG", on="lance"), write=insert_into(home, "lance", "s", name)
    )

    with interfere(home, monkeypatch, step=InterferencePoint.READ, act=act) as interference:
        answer = home.post(f"{table('lance', 's', name)}/{url}", body, user="ana")

    assert (interference.is_done, answer.status) == (True, 403), answer.body


def test_preview_is_refused_if_its_privilege_is_lost_meanwhile(
    home: DriverNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A preview of rows that were written after the caller lost the right is refused, and has no audit record."""
    role = grant(home, "ana", READS, kind="CATALOG", on="lance")
    act = revoke_then(home, role, write=insert_into(home, "lance", "s", "files"))
    calls = act_before(WORKERS.of(home.built.services), monkeypatch, method="ask", act=act)

    answer = home.get(f"{PREVIEW}s.files", user="ana")

    assert (answer.status, len(calls)) == (403, 1), answer.body
    home.runner.run(home.built.services.audit.flush())
    lines = home.done("GET", f"{OWN}/metalakes/lake/audit?user=ana")["lines"]
    assert not [each for each in lines if each["detail"].startswith("preview of")]


@pytest.mark.parametrize("name", ["files", "managed"])
def test_query_returns_rows_of_replacing_table(home: DriverNode, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """If another table replaces the queried one after the decision, the query starts over and returns its rows."""
    at, query = table("lance", "s", f"replaced_{name}"), {"k": 9}
    managed = {"managed_versioning": str(name == "managed").lower()}
    declare(home, "lance", "s", f"replaced_{name}", properties=managed)
    home.done("POST", f"{at}/insert", arrow(ROWS))

    async def replace() -> None:
        for url, body in (("drop", {}), ("declare", {"properties": managed}), ("insert", arrow(ROWS.slice(1)))):
            answer = await home.answer("POST", f"{at}/{url}", body)
            assert answer.status == 200, answer

    with interfere(home, monkeypatch, step=InterferencePoint.READ, act=replace) as interference:
        answer = home.post(f"{at}/query", query)

    assert (interference.is_done, rows_of(answer)) == (True, [{"id": 2}])


def test_table_with_data_is_not_listed_if_its_privilege_is_lost_meanwhile(
    home: DriverNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list of tables with data has no declared table that became invisible before its first rows were written."""
    make_space(home, "lance", "later")
    for name in ("a", "b"):
        declare(home, "lance", "later", name)
    grant(home, "ana", "use_catalog use_schema", kind="CATALOG", on="lance")
    grant(home, "ana", "select_table", kind="TABLE", on="lance.later.b")
    role = grant(home, "ana", "select_table", kind="TABLE", on="lance.later.a")
    act = revoke_then(home, role, write=insert_into(home, "lance", "later", "a"))
    calls = act_before(home.built.services.files, monkeypatch, method="holds", act=act)
    listing = f"{space('lance', 'later')}/table/list?include_declared=false"

    assert (names(home.get(listing, user="ana")), bool(calls)) == ([], True)
    home.runner.run(insert_into(home, "lance", "later", "b")())
    assert names(home.get(listing, user="ana")) == ["b"]
    assert names(home.get(listing)) == ["a", "b"]


def directory_change(root: Path) -> Act:
    """Return a write that adds a namespace, a table, and a version of another table to a directory."""

    async def write() -> None:
        directory = LanceDirectory(str(root))
        directory.create_namespace(("a", "new"), {})
        directory.declare(("a", "secret"))
        lance.write_dataset(ROWS, str(root / "top.lance"), mode="append")

    return write


@pytest.mark.parametrize("read", OF_DIRECTORIES)
def test_directory_read_is_refused_if_its_privilege_is_lost_meanwhile(
    lake: DriverNode, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, read: str
) -> None:
    """A caller who loses the right on the catalog gets nothing that was added to its directory after that."""
    role = grant(lake, "ana", READS, kind="CATALOG", on="shown")
    act = revoke_then(lake, role, write=directory_change(tmp_path / "lake"))

    with interfere(lake, monkeypatch, step=InterferencePoint.READ, act=act) as interference:
        answer = lake.ask(*OF_DIRECTORIES[read], user="ana")

    assert (interference.is_done, answer.status) == (True, 403), answer.body


def test_gravitino_load_of_a_directory_table_is_refused_if_its_privilege_is_lost_meanwhile(
    lake: DriverNode, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A load of a table in a directory is refused if the caller loses the right before the directory is read."""
    docs = LanceDirectory(str(tmp_path / "lake"))
    lance.write_dataset(ROWS, docs.location(docs.declare(("a", "docs"))), mode="append")
    role = grant(lake, "ana", READS, kind="CATALOG", on="shown")
    load = f"{SCHEMAS}/a/tables/docs"
    assert lake.get(load, user="ana").status == 200
    act = revoke_then(lake, role, write=directory_change(tmp_path / "lake"))
    calls = act_before(WORKERS.of(lake.built.services), monkeypatch, method="ask", act=act)

    answer = lake.get(load, user="ana")

    assert (answer.status, len(calls)) == (403, 2), answer.body


def test_directory_list_is_refused_if_its_catalog_is_replaced_meanwhile(
    lake: DriverNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a catalog without a directory replaces the catalog after the decision, the list of the directory is 503."""

    async def replace() -> None:
        answers = [
            await lake.answer("DELETE", f"{API}/lake/catalogs/shown?force=true"),
            await lake.answer("POST", f"{API}/lake/catalogs", {**DIRECTORY_CATALOG, "properties": {}}),
        ]
        assert [each.status for each in answers] == [200, 200], answers

    with interfere(lake, monkeypatch, step=InterferencePoint.READ, act=replace) as interference:
        answer = lake.get(f"{space('shown')}/table/list")

    assert (interference.is_done, answer.status) == (True, 503), answer.body
