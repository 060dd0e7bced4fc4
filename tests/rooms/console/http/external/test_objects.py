# SPDX-License-Identifier: Apache-2.0
"""Pages of objects of external systems: shown fields, needed privileges, and systems that fail or do not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import NoReturn

import pytest

from limnos.config.storage import SourcesSection
from limnos.formats.gravitino.views import GravitinoView
from limnos.model.errors import NotFound, SourceFailed
from limnos.names.path import Levels
from limnos.services.federation.sources import SourceConnectors
from limnos.sources.connectors.capabilities import SourceSchemaInfo, SourceTableInfo, SourceTopicInfo
from tests.http.driver import API, DriverNode, grant, node_at
from tests.http.interference import interfere_before
from tests.rooms.console.http.conftest import NASTY
from tests.rooms.console.http.visitor import HOST, ConsoleVisitor, PageReader, text_of

pytestmark = [pytest.mark.slow, pytest.mark.room("connectors")]

ADDRESS = "127.0.0.1:9"
SHOP = "/console/o/catalog/lake/far"
SCHEMA = "/console/o/namespace/lake/far/shop"
ORDERS = "/console/o/table/lake/far/shop/orders"
LATE = "/console/o/view/lake/far/shop/late"
CLICKS = "/console/o/topic/lake/far/shop/clicks"
COLUMNS = [
    {"name": "id", "type": "long", "nullable": False, "comment": NASTY},
    {
        "name": "tags",
        "type": {"type": "list", "elementType": {"type": "struct", "fields": [{"name": "a", "type": "date"}]}},
    },
    {"name": NASTY, "type": {"type": "external", "catalogString": "geometry"}},
]


class FakeSystem:
    """An external system with the schema `shop` and an object of each kind in it. It can fail or be silent."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.failure: Exception | None = None
        self.was_called = Event()
        self.silence: Event | None = None
        """While set to an unset event, the system does not answer."""

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        def refuse(*_: object, **__: object) -> NoReturn:
            pytest.fail(f"{name} is called")

        return refuse

    def close(self) -> None:
        """No-op: it has no connection."""

    def _called(self, name: str, path: Levels, *, has: bool = True) -> None:
        self.calls.append(name)
        self.was_called.set()
        if self.silence is not None:
            self.silence.wait(60)
        if self.failure is not None:
            raise self.failure
        if not has:
            raise NotFound(f"Object does not exist: {'.'.join(path)}", kind="object")

    def schema_names(self, parent: Levels) -> list[str]:
        """List the schemas."""
        self._called("schemas", parent)
        return [] if parent else ["shop"]

    def schema_load(self, schema: Levels) -> SourceSchemaInfo:
        """Return the schema."""
        self._called("schema", schema, has=schema == ("shop",))
        return SourceSchemaInfo(NASTY, {"engine": NASTY})

    def table_names(self, schema: Levels) -> list[str]:
        """List the tables."""
        self._called("tables", schema)
        return ["orders"]

    def table_load(self, schema: Levels, table: str) -> SourceTableInfo:
        """Return the table."""
        self._called("table", (*schema, table), has=table == "orders")
        indexes = [{"name": "PRIMARY", "indexType": "PRIMARY_KEY", "fieldNames": [["id"]]}]
        layout = {"partitioning": [{"strategy": "identity", "fieldName": ["day"]}]}
        return SourceTableInfo(
            comment=NASTY, columns=COLUMNS, indexes=indexes, properties={"engine": "InnoDB"}, layout=layout
        )

    def view_names(self, schema: Levels) -> list[str]:
        """List the views."""
        self._called("views", schema)
        return ["late"]

    def view_exists(self, schema: Levels, view: str) -> bool:
        """Return whether the view exists."""
        self._called("probe", (*schema, view))
        return view == "late"

    def view_load(self, schema: Levels, view: str) -> GravitinoView:
        """Return the view."""
        self._called("view", (*schema, view), has=view == "late")
        texts = [{"type": "sql", "dialect": "trino", "sql": "SELECT 1 < 2"}]
        return GravitinoView(
            comment="those too late",
            columns=COLUMNS,
            representations=texts,
            default_catalog=None,
            default_namespace=("shop",),
            properties={},
        )

    def topic_names(self, schema: str) -> list[str]:
        """List the topics."""
        self._called("topics", (schema,))
        return ["clicks"]

    def topic_load(self, schema: str, topic: str) -> SourceTopicInfo:
        """Return the topic."""
        self._called("topic", (schema, topic), has=topic == "clicks")
        return SourceTopicInfo({"partition-count": "3"})


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> FakeSystem:
    """The system behind each connector catalog."""
    fake = FakeSystem()
    monkeypatch.setattr(SourceConnectors, "_connector", lambda *_: fake)
    return fake


def add_far(node: DriverNode) -> DriverNode:
    """Create the catalog `far` of an external system."""
    body = {
        "name": "far",
        "type": "RELATIONAL",
        "provider": "iceberg-rest",
        "properties": {"uri": f"http://{ADDRESS}/"},
    }
    node.done("POST", f"{API}/lake/catalogs", body)
    return node


def add_bus(node: DriverNode) -> None:
    """Create the catalog `bus` of topics."""
    body = {"name": "bus", "type": "MESSAGING", "provider": "kafka", "properties": {"bootstrap.servers": ADDRESS}}
    node.done("POST", f"{API}/lake/catalogs", body)


@pytest.fixture
def far(system: FakeSystem, tmp_path: Path) -> Iterator[DriverNode]:
    """A node with the catalog `far`, whose system has a time limit of one minute."""
    assert system.failure is None
    with node_at(tmp_path / "data", sources=SourcesSection(allowed_addresses=(ADDRESS,), timeout_s=60.0)) as node:
        yield add_far(node)


def test_schema_shows_its_objects(far: DriverNode) -> None:
    """The catalog leads to the schema, the schema to an object of each kind; its properties are a tab."""
    admin = ConsoleVisitor(far).sign_in()

    schema = admin.read(SCHEMA)
    properties = admin.read(f"{SCHEMA}?tab=properties")

    assert SCHEMA in admin.read(SHOP).hrefs
    assert {ORDERS, LATE, CLICKS} <= set(schema.hrefs)
    assert "<script>x</script>" in schema.text
    assert "engine" in properties.text
    assert {page.tags.count("script") for page in (schema, properties)} == {1}
    part = PageReader(text_of(admin.get(SCHEMA, x_limnos_part="1")))
    assert "html" not in part.tags
    assert "orders" in part.text


def test_table_shows_columns_indexes_and_partitions(far: DriverNode) -> None:
    """The page shows names, types, nullability, comments, indexes and partitions of the system's table, all as text."""
    page = ConsoleVisitor(far).sign_in().read(ORDERS)

    for words in (
        "iceberg-rest",
        "id long required",
        "list<struct<a: date>>",
        "geometry",
        "PRIMARY primary key id",
        "day identity",
        "engine InnoDB",
        "<script>x</script>",
    ):
        assert words in page.text, words
    assert page.faults == []
    assert page.tags.count("script") == 1
    assert not [href for href in page.hrefs if "/drop/" in href or "/rename/" in href]


def test_view_shows_its_query_and_topic_its_configuration(far: DriverNode) -> None:
    """A view has its query and columns, a topic its configuration."""
    admin = ConsoleVisitor(far).sign_in()

    view, topic = admin.read(LATE), admin.read(CLICKS)

    for words in ("Query (trino)", "SELECT 1 < 2", "those too late", "id long required"):
        assert words in view.text
    assert "partition-count 3" in topic.text


def test_missing_objects_are_404(far: DriverNode) -> None:
    """Objects that the system does not have, and objects of kinds that no system has, are 404."""
    admin = ConsoleVisitor(far).sign_in()

    for path in (ORDERS + "x", LATE + "x", CLICKS + "x", SCHEMA + "x", "/console/o/fileset/lake/far/shop/f"):
        assert admin.get(path).status == 404, path


def test_refusals_for_existing_and_missing_objects_are_equal(far: DriverNode) -> None:
    """Without the privilege to load an object, the answer is the same for an existing and a missing object.

    The privilege for a kind is not enough without USE_CATALOG, and USE_CATALOG is not enough alone.
    """
    add_bus(far)
    clicks = CLICKS.replace("/far/", "/bus/")
    grant(far, "ana", "use_schema select_table select_view", kind="CATALOG", on="far")
    grant(far, "ana", "use_schema consume_topic", kind="CATALOG", on="bus")
    grant(far, "cyd", "use_catalog", kind="CATALOG", on="far")
    far.done("POST", f"{API}/lake/users", {"name": "ben"})
    for user in ("ana", "ben", "cyd"):
        visitor = ConsoleVisitor(far).sign_in(user)
        for path in (ORDERS, LATE, clicks, SCHEMA):
            assert (visitor.get(path).status, visitor.get(f"{path}x").status) == (403, 403), (user, path)


def test_external_system_is_not_called_without_privilege(far: DriverNode, system: FakeSystem) -> None:
    """The server decides about access before it calls the external system."""
    far.done("POST", f"{API}/lake/users", {"name": "ben"})
    ben = ConsoleVisitor(far).sign_in("ben")

    statuses = {ben.get(path).status for path in (ORDERS, LATE, CLICKS, SCHEMA)}

    assert 200 not in statuses
    assert system.calls == []


def test_each_object_kind_needs_its_own_privilege(far: DriverNode) -> None:
    """USE_SCHEMA shows the schema and the names in it. A table, view or topic needs the privilege of its kind."""
    add_bus(far)
    clicks = CLICKS.replace("/far/", "/bus/")
    paths = {("far", "select_table"): ORDERS, ("far", "select_view"): LATE, ("bus", "consume_topic"): clicks}
    for number, (catalog, privilege) in enumerate(paths):
        grant(far, f"u{number}", "use_catalog use_schema", kind="CATALOG", on="far")
        grant(far, f"u{number}", "use_catalog use_schema", kind="CATALOG", on="bus")
        grant(far, f"u{number}", privilege, kind="CATALOG", on=catalog)
        visitor = ConsoleVisitor(far).sign_in(f"u{number}")
        assert visitor.get(SCHEMA).status == 200, privilege
        for (_, other), path in paths.items():
            assert (visitor.get(path).status == 200) is (other == privilege), (privilege, path)


@pytest.mark.parametrize(
    "path",
    [
        SCHEMA,
        ORDERS,
        LATE,
        CLICKS.replace("/far/", "/bus/"),
        f"{API}/lake/catalogs/bus/schemas/shop/topics",
        f"{API}/lake/catalogs/bus/schemas/shop/topics/clicks",
    ],
)
def test_objects_need_the_right_at_the_end_of_the_request(
    far: DriverNode, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """If the right is revoked before the system is called, its answer is not shown: it may be newer than the revoke."""
    add_bus(far)
    catalog, own = ("bus", "consume_topic") if "bus" in path else ("far", "select_table select_view")
    role = grant(far, "ana", f"use_catalog use_schema {own}", kind="CATALOG", on=catalog)
    visitor = ConsoleVisitor(far).sign_in("ana")
    is_page = path.startswith("/console")

    async def revoke() -> None:
        answer = await far.answer("PUT", f"{API}/lake/permissions/users/ana/revoke", {"roleNames": [role]})
        assert answer.status == 200, answer

    with interfere_before(monkeypatch, SourceConnectors, method="ask", act=revoke) as interference:
        answer = visitor.get(path) if is_page else far.get(path, user="ana")

    assert interference.is_done
    assert answer.status == 403, answer
    for word in ("engine", "those too late", "partition-count", "PRIMARY"):
        assert word not in text_of(answer)


@pytest.mark.parametrize("path", [SHOP, SCHEMA, ORDERS, LATE, CLICKS])
def test_failure_of_the_external_system_is_reported(far: DriverNode, system: FakeSystem, path: str) -> None:
    """If the system fails, the page keeps its heading and frame, has the failure's message, and does not call the
    system again for the tree.
    """
    admin = ConsoleVisitor(far).sign_in()
    system.failure = SourceFailed("The source does not answer in time: try again, or check that system")
    system.calls.clear()

    answer = admin.get(path)
    page = PageReader(text_of(answer))

    assert answer.status == 502
    assert "The external system of catalog far did not return the data of this page." in page.text
    assert "does not answer in time: try again" in page.text
    assert page.faults == []
    assert page.tags.count("h1") == 1
    assert len(system.calls) == 1, system.calls


def test_unresponsive_system_is_reported_after_the_timeout(system: FakeSystem, tmp_path: Path) -> None:
    """If the system does not answer, the page reports that after `sources.timeout_s`."""
    with node_at(tmp_path / "data", sources=SourcesSection(allowed_addresses=(ADDRESS,), timeout_s=0.5)) as node:
        admin = ConsoleVisitor(add_far(node)).sign_in()
        system.silence = Event()
        try:
            answer = admin.get(ORDERS)
        finally:
            system.silence.set()

        assert answer.status == 502
        assert "The source does not answer in time" in text_of(answer)


def test_unresponsive_system_blocks_no_other_request(far: DriverNode, system: FakeSystem) -> None:
    """While one page waits for the system, the node answers others."""
    admin = ConsoleVisitor(far).sign_in()
    headers = {"host": HOST, "cookie": "; ".join(f"{name}={value}" for name, value in admin.cookies.items())}
    system.silence = Event()
    system.was_called.clear()

    async def both() -> tuple[int, bool, int]:
        waiting = asyncio.create_task(far._ask("GET", ORDERS, None, None, headers))
        await asyncio.to_thread(system.was_called.wait, 60)
        other = await far._ask("GET", "/console/people", None, None, headers)
        was_done = waiting.done()
        assert system.silence is not None
        system.silence.set()
        return other.status, was_done, (await waiting).status

    assert far.runner.run(both()) == (200, False, 200)
