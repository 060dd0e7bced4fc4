# SPDX-License-Identifier: Apache-2.0
"""Dataverses over the query service: namespaces that CREATE DATAVERSE created or marked."""

from __future__ import annotations

import pytest

from tests.http.driver import DriverNode, grant
from tests.http.iceberg import wire as iceberg
from tests.rooms.sqlpp.http.wire import refusal, rows

OWN = "/api/limnos/v1/metalakes/lake/catalogs/main"
NAMES = "select value d.DataverseName from Metadata.`Dataverse` d order by d.DataverseName"


def names(node: DriverNode, user: str = "admin") -> list:
    """Return the dataverses that a user sees, without the built-in ones."""
    return [name for name in rows(node, NAMES, user=user) if name not in ("Default", "Metadata")]


def test_implicit_parent_namespace_is_no_dataverse(node: DriverNode) -> None:
    """CREATE DATAVERSE `sales.east` creates the namespace `sales` but no dataverse of that name; a later CREATE
    DATAVERSE marks the namespace as one.
    """
    rows(node, "create dataverse sales.east")

    assert names(node) == ["sales.east"]
    assert refusal(node, "use sales")[0] == 400
    rows(node, "create dataverse sales; use sales; create dataverse sales if not exists")
    assert names(node) == ["sales", "sales.east"]
    assert refusal(node, "create dataverse sales") == (
        400,
        "ASX1071: A dataverse with this name sales already exists. (in line 1, at column 18)",
    )


def test_default_is_listed_exactly_once(node: DriverNode) -> None:
    """`Default` is listed exactly once, before and after its namespace exists, also if a query selects it by name."""
    assert rows(node, NAMES) == ["Default", "Metadata"]

    rows(node, "create type t as { id: bigint }")

    assert iceberg_names(node) == [["Default"]]
    assert rows(node, NAMES) == ["Default", "Metadata"]
    by_name = "select value d.DataverseName from Metadata.`Dataverse` d where d.DataverseName = 'Default'"
    assert rows(node, by_name) == ["Default"]


def test_drop_retains_dataverses_below(node: DriverNode) -> None:
    """Dropping a dataverse that has dataverses below it removes only its mark. Implicit parents that become empty are
    dropped.
    """
    rows(node, "create dataverse a.b.c; create dataverse a; drop dataverse a")

    assert names(node) == ["a.b.c"]
    assert (
        refusal(node, "drop dataverse a")[1] == "ASX1063: Cannot find dataverse with name a (in line 1, at column 16)"
    )
    rows(node, "drop dataverse a if exists; drop dataverse if exists a; drop dataverse a.b.c")
    assert names(node) == []
    assert iceberg_names(node) == []


def test_iceberg_namespaces_are_listed_as_dataverses(node: DriverNode) -> None:
    """Namespaces created over Iceberg REST or Gravitino REST are dataverses, their parents too, and dataverses are
    namespaces.
    """
    iceberg.make_space(node, "x", "y")
    node.done("POST", "/api/metalakes/lake/catalogs/main/schemas", {"name": "s:t:u"})
    rows(node, "create dataverse z")

    assert names(node) == ["s", "s.t", "s.t.u", "x", "x.y", "z"]
    assert iceberg_names(node) == [["s"], ["x"], ["z"]]
    rows(node, "use x.y; use x; use s.t; create type x.t as {}")


def test_object_in_an_implicit_parent_makes_it_a_dataverse(node: DriverNode) -> None:
    """A table, a moved table or view, or a restored table of another protocol in a namespace that CREATE DATAVERSE
    made as a parent makes it a dataverse. A namespace in it does not, and a user who may not see it has no dataverse.
    """
    rows(node, "create dataverse a.x; create dataverse b.x; create dataverse c.x; create dataverse d.x")
    iceberg.make_space(node, "a", "y")
    iceberg.make_table(node, "from", "t")
    iceberg.make_view(node, "from", "v")
    assert names(node) == ["a.x", "a.y", "b.x", "c.x", "d.x", "from"]

    iceberg.make_table(node, "a", "t")
    node.done("POST", f"{OWN}/move", {"kind": "table", "source": ["from", "t"], "target": ["b", "t"]})
    node.done("POST", f"{OWN}/move", {"kind": "view", "source": ["from", "v"], "target": ["c", "v"]})

    assert names(node) == ["a", "a.x", "a.y", "b", "b.x", "c", "c.x", "d.x", "from"]
    assert refusal(node, "use a; select * from t x")[1].startswith("ASX3109: ")  # an engine would run it
    assert refusal(node, "use d")[0] == 400
    grant(node, "ana", "use_catalog", kind="CATALOG", on="main")
    assert refusal(node, "use a", user="ana")[0] == 403
    assert names(node, user="ana") == []


def test_restored_object_makes_an_implicit_parent_a_dataverse(node: DriverNode) -> None:
    """A table that is restored into a namespace whose dataverse was dropped makes it a dataverse again."""
    rows(
        node,
        "create dataverse a.x; create dataverse a; create type a.t as {id: int}; create dataset a.d(t) primary key id",
    )
    rows(node, "drop dataverse a")
    assert names(node) == ["a.x"]
    dropped = [each for each in node.get(f"{OWN}/trash").json()["trash"] if each["path"][-1] == "d"]

    node.done("POST", f"{OWN}/trash/{dropped[0]['id']}/undrop", {})

    assert names(node) == ["a", "a.x"]


def test_drop_is_refused_if_other_clients_created_objects(node: DriverNode) -> None:
    """DROP DATAVERSE is refused if the dataverse contains an object that SQL++ did not create. The message names the
    object, and nothing is dropped.
    """
    iceberg.make_table(node, "x", "t")

    status, message = refusal(node, "drop dataverse x")

    assert status == 400
    assert message.startswith("ASX1147: Cannot drop dataverse: x: table x.t being used by")
    assert names(node) == ["x"]


@pytest.mark.parametrize(
    "spelled", ["Metadata.x", "`Metadata`.`x`.y", "if not exists Metadata.x", "Metadata.`Dataset`"]
)
def test_create_below_metadata_is_refused(shared: DriverNode, spelled: str) -> None:
    """Statements that create objects below `Metadata` are refused like those that create objects in `Metadata`."""
    status, message = refusal(shared, f"create dataverse {spelled}")

    assert status == 400
    assert message.startswith("ASX1079: Compilation error: Invalid operation - Cannot create dataverse: Metadata.")


@pytest.mark.room("lance")
def test_no_protocol_creates_a_namespace_named_metadata(node: DriverNode) -> None:
    """In the catalog of SQL++ no protocol can create, fill or move a namespace `Metadata`; in other catalogs it is an
    ordinary name.
    """
    iceberg.make_space(node, "plain")
    rows(node, "create dataverse `Metadata.x`; create dataverse metadata.x; create dataverse x.Metadata")
    answers = [
        node.post(iceberg.SPACES, {"namespace": ["Metadata"]}),
        node.post(iceberg.SPACES, {"namespace": ["Metadata", "x"]}),
        node.post("/api/metalakes/lake/catalogs/main/schemas", {"name": "Metadata:x"}),
        node.post("/lance/v1/namespace/main$Metadata$x/create", {}),
        node.post(f"{OWN}/transactions", {"operations": [{"do": "create-namespace", "path": ["Metadata"]}]}),
        node.post(f"{OWN}/move", {"kind": "namespace", "source": ["plain"], "target": ["Metadata"]}),
    ]

    for answer in answers:
        assert answer.status == 400, answer.body
        assert b"SQL++ reserves Metadata" in answer.body, answer.body
    assert names(node) == ["Metadata@.x", "metadata.x", "plain", "x.Metadata"]


@pytest.mark.parametrize("name", ["Default", "Metadata", "asterix", "algebricks"])
def test_builtin_dataverses_can_be_neither_created_nor_dropped(shared: DriverNode, name: str) -> None:
    """Built-in dataverses can be neither created nor dropped: ASX1079."""
    assert refusal(shared, f"create dataverse {name}")[1].startswith(
        f"ASX1079: Compilation error: Invalid operation - Cannot create dataverse: {name}"
    )
    assert refusal(shared, f"drop dataverse {name}")[0] == 400


@pytest.mark.parametrize(
    "spelled, displayed_name",
    [
        ("``", "''"),
        ("` a`", "' a'"),
        ("`^a`", "'^a'"),
        (f"a.`{'x' * 252}`", "'xxx"),
        (".".join(["x" * 251] * 5), "'"),
        ("`a\\u0000b`", "'"),
    ],
)
def test_invalid_dataverse_name_is_refused(shared: DriverNode, spelled: str, displayed_name: str) -> None:
    """An invalid part of a dataverse name is ASX1115 with the part."""
    status, message = refusal(shared, f"create dataverse {spelled}")

    assert status == 400
    assert message.startswith(f"ASX1115: Invalid name for a database object: {displayed_name}"), message
    assert message.endswith("(in line 1, at column 18)")


@pytest.mark.parametrize(
    "spelled", ["`a.b`.`c@d`", "`select`", "`a/b`", "`日本`.`東京`", ".".join(["x" * 251] * 4), "abc"]
)
def test_unusual_valid_names_are_accepted(shared: DriverNode, spelled: str) -> None:
    """Unusual valid names can be created, used and dropped, and are listed in canonical form."""
    rows(shared, f"create dataverse {spelled}; use {spelled}")

    (name,) = names(shared)
    (parts,) = rows(shared, "decode_dataverse_name($n)", **{"$n": name})
    assert rows(shared, "encode_dataverse_name($p)", **{"$p": parts}) == [name]
    rows(shared, f"drop dataverse {spelled}")
    assert names(shared) == []


def test_create_use_and_drop_need_their_privileges(node: DriverNode) -> None:
    """Creating needs CREATE_SCHEMA, using USE_SCHEMA, dropping ownership. Lists contain the dataverses that the caller
    may use.
    """
    rows(node, "create dataverse a; create dataverse b")
    grant(node, "maker", "use_catalog create_schema", kind="CATALOG", on="main")
    grant(node, "user", "use_catalog", kind="CATALOG", on="main")
    grant(node, "user", "use_schema", kind="SCHEMA", on="main.a")

    assert refusal(node, "create dataverse c", user="user")[0] == 403
    rows(node, "create dataverse c; use c; drop dataverse c", user="maker")
    assert refusal(node, "drop dataverse a", user="maker")[0] == 403
    rows(node, "use a", user="user")
    assert refusal(node, "use b", user="user")[0] == 403
    assert names(node, user="user") == ["a"]


def iceberg_names(node: DriverNode) -> list:
    """Return the top-level namespaces of the catalog."""
    return node.get(iceberg.SPACES).json()["namespaces"]


def test_marking_or_dropping_implicit_parents_needs_privileges(node: DriverNode) -> None:
    """Marking an implicit parent as a dataverse needs the right to create one. Dropping a dataverse drops an implicit
    parent only for a user who may drop it.
    """
    rows(node, "create dataverse a.b")
    grant(node, "ana", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    node.done("PUT", "/api/metalakes/lake/owners/SCHEMA/main.a%3Ab", {"name": "ana", "type": "USER"})

    assert refusal(node, "create dataverse a", user="ana")[0] == 403
    rows(node, "drop dataverse a.b", user="ana")
    assert names(node) == []
    assert iceberg_names(node) == [["a"]]
