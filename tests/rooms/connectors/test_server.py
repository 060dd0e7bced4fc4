# SPDX-License-Identifier: Apache-2.0
"""Connectors of other packages on a server: their exceptions, broken entry points, names, types and secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from structlog.testing import capture_logs

from limnos.config.settings import Settings
from limnos.model.errors import InvalidTable, NotFound
from limnos.rooms.connectors.server import notes
from limnos.sources.connectors import further
from limnos.sources.connectors.base import ReadOnlyTables
from limnos.sources.connectors.capabilities import SourceSchemaInfo, SourceTableInfo
from tests.http.conftest import empty_database, fresh  # noqa: F401 - fixtures
from tests.http.driver import API, node_at

CATALOGS = f"{API}/lake/catalogs"
SECRET = "pa55w0rd"


class PanicException(BaseException):
    """An exception of the kind that libraries in Rust raise."""


class TopicsConnector(ReadOnlyTables):
    """A connector of topics whose type is Gravitino's word."""

    catalog_type = "MESSAGING"

    @classmethod
    def check_properties(cls, properties: object, *, addresses: object) -> None:
        """Accept everything."""


class UntypedConnector(TopicsConnector):
    """A connector with a type that no catalog has."""

    catalog_type = "TOPICS"


RAISED = {each.__name__: each for each in (SystemExit, KeyboardInterrupt, GeneratorExit, PanicException, StopIteration)}


class FaultyConnector(ReadOnlyTables):
    """A connector of one schema; its properties name the method that raises, and the class of the exception."""

    def _raise(self, method: str) -> None:
        if self.properties.get("at") == method:
            raise RAISED[self.properties["raises"]](SECRET)

    @classmethod
    def check_properties(cls, properties: Mapping[str, str], *, addresses: object) -> None:
        """Raise if the properties say so."""
        if properties.get("at") == "check_properties":
            raise RAISED[properties["raises"]](SECRET)

    def check(self) -> None:
        """Raise if the properties say so."""
        self._raise("check")

    def close(self) -> None:
        """Raise if the properties say so."""
        self._raise("close")

    def schema_names(self, parent: object) -> list[str]:
        """Return the schema."""
        self._raise("schema_names")
        if self.properties.get("at") == "odd names":
            return ["s", "..", "b\udc80", "s"]
        return [1] if self.properties.get("at") == "names" else ["s", "a:b"]  # type: ignore[list-item]

    def schema_exists(self, schema: tuple[str, ...]) -> bool:
        """Return whether it is the schema."""
        return schema == ("s",)

    def schema_load(self, schema: tuple[str, ...]) -> SourceSchemaInfo:
        """Return the schema."""
        if schema != ("s",):
            raise NotFound("no", kind="namespace")
        return 7 if self.properties.get("at") == "values" else SourceSchemaInfo(None, {})  # type: ignore[return-value]

    def table_names(self, schema: tuple[str, ...]) -> list[str]:
        """Return the table."""
        self._raise_from("table_names")
        return ["t"]

    def table_exists(self, schema: tuple[str, ...], table: str) -> bool:
        """Return whether it is the table."""
        return table == "t"

    def table_load(self, schema: tuple[str, ...], table: str) -> SourceTableInfo:
        """Return no table."""
        self._raise_from("table_load")
        return None  # type: ignore[return-value]

    def _raise_from(self, at: str) -> None:
        if self.properties.get("at") == f"cause in {at}":
            raise InvalidTable("Table t cannot be read") from OSError(f"{SECRET} in block 7")

    def schema_drop(self, schema: object) -> None:
        """Raise if the properties say so."""
        self._raise("schema_drop")


@pytest.fixture
def _raising(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The connector, registered as an installer would; one of topics, and four entry points that cannot be used."""
    references = {
        "x-raising": f"{__name__}:FaultyConnector",
        "x-absent": "no_such_module_7f3a:Absent",
        "x-text": f"{__name__}:SECRET",
        "raising": f"{__name__}:FaultyConnector",
        "x-messaging": f"{__name__}:TopicsConnector",
        "x-untyped": f"{__name__}:UntypedConnector",
    }
    monkeypatch.setattr(further, "_references", lambda: MappingProxyType(references))
    further.further_connector.cache_clear()
    yield
    further.further_connector.cache_clear()


def body_of(name: str, **properties: str) -> dict[str, object]:
    """Return the request that creates a catalog of the connector."""
    return {"name": name, "type": "RELATIONAL", "provider": "x-raising", "properties": properties}


@pytest.mark.usefixtures("_raising")
@pytest.mark.room("connectors")
@pytest.mark.parametrize("kind", RAISED)
def test_a_server_survives_exceptions_of_a_connector(fresh: Callable[[str], Path], kind: str) -> None:  # noqa: F811
    """Wherever the connector raises, the request fails with 502 or 500, one traceback is logged, and the next request
    is answered.
    """
    with capture_logs() as lines, node_at(fresh("data")) as node:
        created = node.post(CATALOGS, body_of("c", at="check_properties", raises=kind))
        tested = node.post(f"{CATALOGS}/testConnection", body_of("t", at="check", raises=kind))
        node.done("POST", CATALOGS, body_of("d", at="schema_names", raises=kind))
        lines.clear()
        listed = node.get(f"{CATALOGS}/d/schemas")
        tracebacks = [line for line in lines if "exc_info" in line]
        node.done("PUT", f"{CATALOGS}/d", {"updates": [{"@type": "setProperty", "property": "at", "value": "close"}]})
        again = node.get(f"{CATALOGS}/d/schemas")
        node.done(
            "PUT", f"{CATALOGS}/d", {"updates": [{"@type": "setProperty", "property": "at", "value": "schema_drop"}]}
        )
        dropped = node.delete(f"{CATALOGS}/d/schemas/s")
        version = node.get("/api/version")

    assert (created.status, listed.status, again.status, dropped.status, version.status) == (502, 502, 200, 500, 200)
    assert tested.json()["code"] != 0
    assert "Catalog t" in tested.json()["message"]
    assert f"Catalog d: its connector failed with {kind}" in listed.json()["message"]
    assert len(tracebacks) == 1
    assert SECRET.encode() not in created.body + tested.body + listed.body + dropped.body


@pytest.mark.usefixtures("_raising")
@pytest.mark.room("connectors")
def test_names_that_are_no_texts_are_an_error_of_the_source(fresh: Callable[[str], Path]) -> None:  # noqa: F811
    """A list that no client can decode is answered 502, with the catalog."""
    with node_at(fresh("data")) as node:
        node.done("POST", CATALOGS, body_of("d", at="names"))
        listed = node.get(f"{CATALOGS}/d/schemas")

    assert listed.status == 502
    assert (
        "Catalog d: its connector returns a list with a value of type int where a list of texts is due"
        in listed.json()["message"]
    )


@pytest.mark.usefixtures("_raising")
@pytest.mark.room("connectors")
def test_odd_names_and_values_are_no_error_of_the_server(fresh: Callable[[str], Path]) -> None:  # noqa: F811
    """Names that no request can use are left out, and each other is listed once. Values of another type are answered
    502, with the catalog and the type.
    """
    with node_at(fresh("data")) as node:
        node.done("POST", CATALOGS, body_of("n", at="odd names"))
        node.done("POST", CATALOGS, body_of("v", at="values"))
        listed = node.get(f"{CATALOGS}/n/schemas")
        schema, table = node.get(f"{CATALOGS}/v/schemas/s"), node.get(f"{CATALOGS}/v/schemas/s/tables/t")

    assert [each["name"] for each in listed.json()["identifiers"]] == ["s"]
    assert (schema.status, table.status) == (502, 502)
    assert "Catalog v: its connector returns a value of type int where a SourceSchemaInfo" in schema.json()["message"]
    assert "Catalog v: its connector returns a value of type NoneType where a SourceT" in table.json()["message"]


@pytest.mark.usefixtures("_raising")
@pytest.mark.room("connectors")
def test_cause_of_a_connectors_error_is_in_the_log_alone(fresh: Callable[[str], Path]) -> None:  # noqa: F811
    """Whoever operates the server learns why a table cannot be read; the answer has the connector's own message."""
    with capture_logs() as lines, node_at(fresh("data")) as node:
        node.done("POST", CATALOGS, body_of("c", at="cause in table_load"))
        loaded = node.get(f"{CATALOGS}/c/schemas/s/tables/t")

    causes = [repr(line["exc_info"]) for line in lines if line["event"] == "connector refused a call"]
    assert loaded.status == 409
    assert SECRET.encode() not in loaded.body
    assert causes == [repr(OSError(f"{SECRET} in block 7"))]


@pytest.mark.usefixtures("_raising")
@pytest.mark.room("connectors")
def test_schemas_in_a_schema_are_not_listed(fresh: Callable[[str], Path]) -> None:  # noqa: F811
    """The children of a schema have no schemas, whatever the connector returns for the parent. A schema whose name no
    path can have, because it has the separator, is not listed.
    """
    with node_at(fresh("data")) as node:
        node.done("POST", CATALOGS, body_of("d"))
        children = node.get("/api/limnos/v1/metalakes/lake/catalogs/d/children")
        below = node.get("/api/limnos/v1/metalakes/lake/catalogs/d/children?path=s&kind=namespace")

    assert [each["name"] for each in children.json()["children"]] == ["s"]
    assert (below.status, below.json()["children"]) == (200, [])


@pytest.mark.usefixtures("_raising")
@pytest.mark.room("connectors")
def test_children_of_a_catalog_without_its_connector_are_refused(
    fresh: Callable[[str], Path],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After the connector's package is removed, a list of the catalog's children says so, and is not empty."""
    data = fresh("data")
    with node_at(data) as node:
        node.done("POST", CATALOGS, body_of("d"))
    monkeypatch.setattr(further, "_references", lambda: MappingProxyType({}))
    further.further_connector.cache_clear()
    with node_at(data) as node:
        children = node.get("/api/limnos/v1/metalakes/lake/catalogs/d/children")

    assert children.status == 405
    assert "The connector of provider x-raising is not installed on this server" in children.json()["error"]["message"]


@pytest.mark.usefixtures("_raising")
@pytest.mark.room("connectors")
@pytest.mark.parametrize(
    "change",
    [
        {"preset": "reader", "user": "ana"},
        {"role": "readers", "privileges": [{"name": "select_table"}]},
    ],
)
def test_preview_of_a_first_grant_on_an_external_table_is_refused(
    fresh: Callable[[str], Path],  # noqa: F811
    change: dict[str, object],
) -> None:
    """A preview creates no node, so it is refused with what to do; after the first grant it answers. A user who may not
    grant there learns nothing of the table.
    """
    access = "/api/limnos/v1/metalakes/lake/access"
    body = {"kind": "table", "path": ["d", "s", "t"], "change": "grant", **change}
    with node_at(fresh("data")) as node:
        node.done("POST", CATALOGS, body_of("d"))
        node.done("POST", f"{API}/lake/users", {"name": "ana"})
        node.done("POST", f"{API}/lake/roles", {"name": "readers", "properties": {}, "securableObjects": []})
        before = node.post(f"{access}/what-if", body)
        hidden = [
            node.post(f"{access}/what-if", {**body, "path": ["d", "s", name]}, user="ana") for name in ("t", "nope")
        ]
        node.done(
            "PUT",
            f"{API}/lake/permissions/roles/readers/table/d.s.t/grant",
            {"privileges": [{"name": "MODIFY_TABLE", "condition": "ALLOW"}]},
        )
        after = node.post(f"{access}/what-if", body)

    assert (before.status, after.status) == (405, 200)
    assert [each.status for each in hidden] == [403, 403]
    assert "before its first grant" in before.json()["error"]["message"]


@pytest.mark.usefixtures("_raising")
@pytest.mark.room("connectors")
def test_a_connector_that_cannot_be_used_is_logged_and_refused_with_the_reason(
    fresh: Callable[[str], Path],  # noqa: F811
) -> None:
    """The log at start has a line for each such entry point, and a create says what is wrong with it."""
    with capture_logs() as lines, node_at(fresh("data")) as node:
        answers = {
            provider: node.post(CATALOGS, body_of("c") | {"provider": provider}).json()["message"]
            for provider in ("x-absent", "x-text", "x-untyped", "raising", "x-other")
        }

    broken = {"x-absent", "x-text", "x-untyped", "raising"}
    assert {line["provider"] for line in lines if line["event"] == "connector cannot be used"} == broken
    usable = ("x-messaging", "x-raising")
    assert notes(Settings())[:2] == [
        f"another package has a connector for catalogs of provider {each}" for each in usable
    ]
    assert {note.split()[2] for note in notes(Settings())[2:]} == broken
    assert "catalog_type" in answers["x-untyped"]
    assert "No module named 'no_such_module_7f3a'" in answers["x-absent"]
    assert "is no subclass of" in answers["x-text"]
    assert "begins with x-" in answers["raising"]
    assert "use one of" in answers["x-other"]


@pytest.mark.usefixtures("_raising")
@pytest.mark.room("connectors")
@pytest.mark.parametrize("word", ["messaging", "MESSAGING", "stream"])
def test_a_connector_of_topics_has_the_type_by_each_of_its_names(
    fresh: Callable[[str], Path],  # noqa: F811
    word: str,
) -> None:
    """The class says MESSAGING, as Gravitino's documents do, or STREAM; answers say messaging."""
    with node_at(fresh("data")) as node:
        created = node.done("POST", CATALOGS, body_of("m") | {"provider": "x-messaging", "type": word})

    assert created["catalog"]["type"] == "messaging"


@pytest.mark.usefixtures("_raising")
@pytest.mark.room("connectors")
def test_a_changed_property_of_another_packages_connector_repeats_its_secrets(
    fresh: Callable[[str], Path],  # noqa: F811
) -> None:
    """The server does not know which property is an address, so a change or removal of any must come with the secrets:
    passwords inside other values too. Comments need none.
    """

    def updated(*updates: tuple[str, str, str | None], test: str = "") -> int:
        changes = [
            {"@type": word, "property": key} | ({} if value is None else {"value": value})
            for word, key, value in updates
        ]
        answer = node.ask("PUT", f"{CATALOGS}/d", {"updates": changes})
        if answer.status == 400:
            assert test in answer.json()["message"]
            assert "send the secret again" in answer.json()["message"]
        return answer.status

    with node_at(fresh("data")) as node:
        node.done(
            "POST", CATALOGS, body_of("d", address="http://a/", password="p1", proxy="http://u:p2@h/", mode="fast")
        )
        commented = node.ask("PUT", f"{CATALOGS}/d", {"updates": [{"@type": "updateComment", "newComment": "c"}]})
        same = updated(("setProperty", "mode", "fast"))
        refused = (
            updated(("setProperty", "address", "http://evil/"), test="password, proxy"),
            updated(("setProperty", "host", "evil"), test="password, proxy"),
            updated(("removeProperty", "mode", None), test="password, proxy"),
            updated(("setProperty", "address", "http://evil/"), ("setProperty", "password", "p1"), test="proxy"),
            updated(("setProperty", "proxy", "http://u:p2@evil/"), test="password"),
        )
        moved = updated(
            ("setProperty", "address", "http://b/"),
            ("setProperty", "password", "p1"),
            ("setProperty", "proxy", "http://u:p2@h/"),
        )
        forgotten = updated(
            ("removeProperty", "password", None),
            ("removeProperty", "proxy", None),
            ("setProperty", "address", "http://c/"),
        )

    assert (commented.status, same, moved, forgotten) == (200, 200, 200, 200)
    assert refused == (400,) * 5
