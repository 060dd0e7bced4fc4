"""Dataverses over the query service: namespaces that CREATE DATAVERSE made."""

from __future__ import annotations

import pytest

from tests.http.asterix.wire import refusal, rows
from tests.http.driver import DriverNode, grant
from tests.http.iceberg import wire as iceberg

OWN = "/api/limnos/v1/metalakes/lake/catalogs/main"
NAMES = "select value d.DataverseName from Metadata.`Dataverse` d order by d.DataverseName"


def names(node: DriverNode, user: str = "admin") -> list:
    """The dataverses that somebody sees, but for those that are built in."""
    return [name for name in rows(node, NAMES, user=user) if name not in ("Default", "Metadata")]


def test_a_dataverse_is_flat(node: DriverNode) -> None:
    """To make `sales.east` makes no dataverse `sales`, though its namespace is there; to create that marks it."""
    rows(node, "create dataverse sales.east")

    assert names(node) == ["sales.east"]
    assert refusal(node, "use sales")[0] == 400
    rows(node, "create dataverse sales; use sales; create dataverse sales if not exists")
    assert names(node) == ["sales", "sales.east"]
    assert refusal(node, "create dataverse sales") == (
        400, "ASX1071: A dataverse with this name sales already exists. (in line 1, at column 18)",
    )  # fmt: skip


def test_drop_leaves_what_lies_below(node: DriverNode) -> None:
    """A parent with dataverses below it is only unmarked; implicit parents that are left empty go."""
    rows(node, "create dataverse a.b.c; create dataverse a; drop dataverse a")

    assert names(node) == ["a.b.c"]
    assert (
        refusal(node, "drop dataverse a")[1] == "ASX1063: Cannot find dataverse with name a (in line 1, at column 16)"
    )
    rows(node, "drop dataverse a if exists; drop dataverse if exists a; drop dataverse a.b.c")
    assert names(node) == []
    assert iceberg_names(node) == []


def test_what_iceberg_made_on_purpose_is_a_dataverse(node: DriverNode) -> None:
    """One tree: namespaces made over Iceberg REST are dataverses, dataverses are namespaces."""
    iceberg.make_space(node, "x", "y")
    rows(node, "create dataverse z")

    assert names(node) == ["x.y", "z"]
    assert iceberg_names(node) == [["x"], ["z"]]
    rows(node, "use x.y")


def test_drop_is_refused_over_what_sqlpp_did_not_make(node: DriverNode) -> None:
    """By name, and nothing is gone."""
    iceberg.make_table(node, "x", "t")

    status, message = refusal(node, "drop dataverse x")

    assert status == 400
    assert message.startswith("ASX1147: Cannot drop dataverse: x: table x.t being used by")
    assert names(node) == ["x"]


@pytest.mark.parametrize(
    "spelled", ["Metadata.x", "`Metadata`.`x`.y", "if not exists Metadata.x", "Metadata.`Dataset`"]
)
def test_nothing_is_made_below_metadata(shared: DriverNode, spelled: str) -> None:
    """What would lie in the dataverse of the metadata is refused as that itself is."""
    status, message = refusal(shared, f"create dataverse {spelled}")

    assert status == 400
    assert message.startswith("ASX1079: Compilation error: Invalid operation - Cannot create dataverse: Metadata.")


def test_no_protocol_makes_a_namespace_of_the_metadata(node: DriverNode) -> None:
    """Where dataverses lie no protocol creates `Metadata`, what lies in it, or moves a namespace there; elsewhere
    it is a name like any other.
    """
    iceberg.make_space(node, "plain")
    rows(node, "create dataverse `Metadata.x`; create dataverse metadata.x; create dataverse x.Metadata")
    made = [
        node.post(iceberg.SPACES, {"namespace": ["Metadata"]}),
        node.post(iceberg.SPACES, {"namespace": ["Metadata", "x"]}),
        node.post("/api/metalakes/lake/catalogs/main/schemas", {"name": "Metadata:x"}),
        node.post("/lance/v1/namespace/main$Metadata$x/create", {}),
        node.post(f"{OWN}/transactions", {"operations": [{"do": "create-namespace", "path": ["Metadata"]}]}),
        node.post(f"{OWN}/move", {"kind": "namespace", "source": ["plain"], "target": ["Metadata"]}),
    ]  # fmt: skip

    for answer in made:
        assert answer.status == 400, answer.body
        assert b"SQL++ reserves Metadata" in answer.body, answer.body
    assert names(node) == ["Metadata@.x", "metadata.x", "plain", "x.Metadata"]


@pytest.mark.parametrize("name", ["Default", "Metadata", "asterix", "algebricks"])
def test_builtin_names_are_not_made(shared: DriverNode, name: str) -> None:
    """ASX1079; nor are those that are there dropped."""
    assert refusal(shared, f"create dataverse {name}")[1].startswith(
        f"ASX1079: Compilation error: Invalid operation - Cannot create dataverse: {name}"
    )
    assert refusal(shared, f"drop dataverse {name}")[0] == 400


@pytest.mark.parametrize(
    "spelled, shown",
    [
        ("``", "''"), ("` a`", "' a'"), ("`^a`", "'^a'"), (f"a.`{'x' * 252}`", "'xxx"),
        (".".join(["x" * 251] * 5), "'"), ("`a\\u0000b`", "'"),
    ],
)  # fmt: skip
def test_names_that_nothing_may_have(shared: DriverNode, spelled: str, shown: str) -> None:
    """ASX1115 with the part that is wrong."""
    status, message = refusal(shared, f"create dataverse {spelled}")

    assert status == 400
    assert message.startswith(f"ASX1115: Invalid name for a database object: {shown}"), message
    assert message.endswith("(in line 1, at column 18)")


@pytest.mark.parametrize(
    "spelled", ["`a.b`.`c@d`", "`select`", "`a/b`", "`日本`.`東京`", ".".join(["x" * 251] * 4), "abc"]
)
def test_names_that_are_odd_and_right(shared: DriverNode, spelled: str) -> None:
    """They are made, used, found by their canonical form, and dropped."""
    rows(shared, f"create dataverse {spelled}; use {spelled}")

    (name,) = names(shared)
    (parts,) = rows(shared, "decode_dataverse_name($n)", **{"$n": name})
    assert rows(shared, "encode_dataverse_name($p)", **{"$p": parts}) == [name]
    rows(shared, f"drop dataverse {spelled}")
    assert names(shared) == []


def test_who_may(node: DriverNode) -> None:
    """Making takes CREATE_SCHEMA, using USE_SCHEMA, dropping ownership; a list shows what one may see."""
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
    """The namespaces at the top of the catalog."""
    return node.get(iceberg.SPACES).json()["namespaces"]


def test_parents_that_nobody_made_are_for_who_may(node: DriverNode) -> None:
    """A namespace that is there for what lies below becomes a dataverse by who may make one, and goes by who may
    drop it.
    """
    rows(node, "create dataverse a.b")
    grant(node, "ana", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    node.done("PUT", "/api/metalakes/lake/owners/SCHEMA/main.a%3Ab", {"name": "ana", "type": "USER"})

    assert refusal(node, "create dataverse a", user="ana")[0] == 403
    rows(node, "drop dataverse a.b", user="ana")
    assert names(node) == []
    assert iceberg_names(node) == [["a"]]
