# SPDX-License-Identifier: Apache-2.0
"""Names above the objects that a caller may use, in the lists of every protocol: each compared with the model, on one
lake.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.backends import Database
from tests.http.driver import API, DriverAnswer, DriverNode, grant
from tests.http.iceberg import wire
from tests.services.browsing import BrowsingModel

OWNERS = f"{API}/lake/owners"
LANCE = "/lance/v1/namespace"
CALLERS = ("ana", "ben", "cleo")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverNode]:
    """A lake with `main.P.Q.t`, `main.R.S` and other objects, and three users with rights on some of them."""
    with wire.node_over(tmp_path_factory.mktemp("browsing")) as node:
        fill(node)
        yield node


def fill(node: DriverNode) -> None:
    """Create random namespaces and tables, and give each caller some rights and ownerships."""
    chosen = random.Random(7)
    spaces = [
        ("P",),
        ("P", "Q"),
        ("R",),
        ("R", "S"),
        *((f"n{i}",) for i in range(6)),
        *((f"n{i}", "in") for i in range(6)),
    ]
    for levels in spaces:
        wire.make_space(node, *levels)
        wire.make_table(node, *levels, "t")
    for user in CALLERS:
        node.done("POST", f"{API}/lake/users", {"name": user})
    grant(node, "ben", "use_catalog", kind="catalog", on="main")
    grant(node, "ana", "use_schema", kind="schema", on="main.P:Q")
    grant(node, "ben", "use_schema", kind="schema", on="main.P:Q")
    for user in ("ben", "cleo"):
        for levels in chosen.sample(spaces[4:], 4):
            right, kind, name = chosen.choice(
                (("use_schema", "schema", ":".join(levels)), ("select_table", "table", ":".join(levels) + ".t"))
            )
            grant(node, user, right, kind=kind, on=f"main.{name}")
    grant(node, "cleo", "use_schema", kind="schema", on="main.n0", condition="deny")
    grant(node, "cleo", "use_schema", kind="schema", on="main.n0:in")
    node.done("PUT", f"{OWNERS}/table/{quote('main.R:S.t')}", {"name": "cleo", "type": "USER"})


def model(node: DriverNode, user: str) -> BrowsingModel:
    """Return the lists that the user should get, computed from the rows of the store."""
    return BrowsingModel(Database("sqlite", str(next(Path(node.data).rglob("*.db")))).sql, user)


def names_of(answer: DriverAnswer) -> list[tuple[str, ...]] | None:
    """Return the paths in an Iceberg list; None for a refusal."""
    return None if answer.status == 403 else [tuple(each) for each in answer.json()["namespaces"]]


def by_pages(node: DriverNode, parent: tuple[str, ...], user: str) -> list[tuple[str, ...]] | None:
    """Read an Iceberg list in pages of two."""
    paths: list[tuple[str, ...]] = []
    token = ""
    while True:
        about = f"&parent={quote(chr(31).join(parent))}" if parent else ""
        answer = node.get(f"{wire.SPACES}?pageSize=2&pageToken={token}{about}", user=user)
        names = names_of(answer)
        if names is None:
            return None
        paths += names
        token = answer.json().get("next-page-token") or ""
        if not token:
            return paths


@pytest.mark.room("lance")
@pytest.mark.parametrize("user", CALLERS)
def test_catalog_lists_name_the_visible_catalogs(lake: DriverNode, user: str) -> None:
    """The lists of Gravitino and Lance name the visible catalogs. Gravitino's list with details has only catalogs that
    the caller may load.
    """
    expected = model(lake, user).catalogs()
    details = lake.get(f"{API}/lake/catalogs?details=true", user=user).json()["catalogs"]

    assert expected == ["main"]
    assert [each["name"] for each in lake.get(f"{API}/lake/catalogs", user=user).json()["identifiers"]] == expected
    assert lake.get(f"{LANCE}/$/list", user=user).json()["namespaces"] == expected
    assert [each["name"] for each in details] == (["main"] if user == "ben" else [])


@pytest.mark.room("lance")
@pytest.mark.parametrize("user", CALLERS)
def test_namespace_lists_of_all_protocols_equal_the_model(lake: DriverNode, user: str) -> None:
    """At every place, the lists of all protocols equal the model, complete and in pages, or are refused if the model
    is.
    """
    truth = model(lake, user)
    for (catalog, *parent), parent_id in truth.containers().items():
        if catalog != "main":
            continue
        levels, expected = tuple(parent), truth.namespaces(parent_id)
        paths = None if expected is None else [(*levels, name) for name in expected]
        about = f"?parent={quote(chr(31).join(levels))}" if levels else ""
        assert names_of(lake.get(f"{wire.SPACES}{about}", user=user)) == paths, levels
        assert by_pages(lake, levels, user) == paths, levels
        about = f"?parentSchema={quote(':'.join(levels))}" if levels else ""
        schemas = lake.get(f"{API}/lake/catalogs/{catalog}/schemas{about}", user=user)
        schema_names = None if schemas.status == 403 else [each["name"] for each in schemas.json()["identifiers"]]
        assert schema_names == (None if paths is None else [":".join(path) for path in paths]), levels
        lance_list = lake.get(f"{LANCE}/{quote('$'.join((catalog, *levels)))}/list", user=user)
        assert (None if lance_list.status == 403 else lance_list.json()["namespaces"]) == expected, levels


@pytest.mark.room("sqlpp")
@pytest.mark.parametrize("user", CALLERS)
def test_dataverses_equal_the_listed_namespaces(lake: DriverNode, user: str) -> None:
    """`Metadata.Dataverse` has the same namespaces as the lists. A namespace of which only the name is visible has no
    time.
    """
    truth = model(lake, user)
    statement = "select value d from Metadata.`Dataverse` d"
    rows = lake.post("/query/service", {"statement": statement}, user=user).json()["results"]
    timestamps = {
        row["DataverseName"]: row["Timestamp"] for row in rows if row["DataverseName"] not in ("Default", "Metadata")
    }
    walked = {".".join(path[1:]): path for path in truth.dataverses("main")}

    assert timestamps.keys() == walked.keys()
    containers = truth.containers()
    for name, path in walked.items():
        assert ("1970" in timestamps[name]) == (not truth.sees(containers[path]))


@pytest.mark.room("lance")
def test_name_only_namespace_cannot_be_read_or_changed(lake: DriverNode) -> None:
    """A namespace of which only the name is visible cannot be read or changed, and neither can its tables, owner and
    properties.
    """
    path, schema = wire.space_path("P"), f"{API}/lake/catalogs/main/schemas/P"
    for answer in (
        lake.get(path, user="ben"),
        lake.ask("HEAD", path, user="ben"),
        lake.get(f"{path}/tables", user="ben"),
        lake.get(f"{path}/views", user="ben"),
        lake.get(schema, user="ben"),
        lake.get(f"{schema}/tables", user="ben"),
        lake.get(f"{OWNERS}/schema/main.P", user="ben"),
        lake.post(f"{LANCE}/{quote('main$P')}/describe", {}, user="ben"),
        lake.delete(path, user="ben"),
        lake.get(f"{API}/lake/catalogs/main", user="ana"),
        lake.get(f"{OWNERS}/catalog/main", user="ana"),
        lake.post(f"{LANCE}/main/describe", {}, user="ana"),
        lake.post(wire.SPACES, {"namespace": ["new"]}, user="ana"),
    ):
        assert answer.status == 403, answer.body
    assert lake.get("/iceberg/v1/config?warehouse=main", user="ana").status == 404


@pytest.mark.room("lance")
def test_revoke_hides_the_name_in_the_next_list(tmp_path: Path) -> None:
    """After a revoke the next list of every protocol lacks the name, or is refused."""
    with wire.node_over(tmp_path) as node:
        wire.make_table(node, "P", "Q", "t")
        node.done("POST", f"{API}/lake/users", {"name": "ana"})
        role = grant(node, "ana", "use_schema", kind="schema", on="main.P:Q")
        asks = (
            f"{API}/lake/catalogs",
            f"{API}/lake/catalogs/main/schemas",
            wire.SPACES,
            f"{LANCE}/$/list",
            f"{LANCE}/main/list",
        )
        before = [node.get(each, user="ana") for each in asks]
        assert [(answer.status, b'"P"' in answer.body or b'"main"' in answer.body) for answer in before] == [
            (200, True)
        ] * 5

        body = {"privileges": [{"name": "use_schema", "condition": "allow"}]}
        node.done("PUT", f"{API}/lake/permissions/roles/{role}/schema/main.P%3AQ/revoke", body)

        after = [node.get(each, user="ana") for each in asks]
        assert [answer.status for answer in after] == [200, 403, 403, 200, 403]
        assert not any(b'"P"' in answer.body or b'"main"' in answer.body for answer in (after[0], after[3]))
