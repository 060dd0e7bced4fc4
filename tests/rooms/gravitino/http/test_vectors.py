# SPDX-License-Identifier: Apache-2.0
"""Expectations of Gravitino's own tests and clients, listed in `vectors.md`: each has a test, and those without one
elsewhere are here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from limnos.config.settings import NamesSection
from tests.http.driver import API, OWN, DriverNode, grant, node_at
from tests.http.iceberg.wire import make_space, make_table, rows_of

HOME = Path(__file__).resolve().parents[4]
LIST = Path(__file__).with_name("vectors.md")
COUNTS = {"Nested schemas": 30, "Clients": 15}
"""The number of rows of each part, so that a missing row is detected."""
LAKE = f"{API}/lake"
SCHEMAS = f"{LAKE}/catalogs/main/schemas"
EVENTS = ("raw:events:2024", "raw:events:2024/tables/t")
_ROW = re.compile(r"^\| (\d+) \| (.+) \| (.*) \|$")


def expectations() -> Iterator[tuple[str, int, list[str]]]:
    """Return the rows of the list: part, number, and names of tests."""
    part = ""
    for line in LIST.read_text(encoding="utf-8").splitlines():
        part = line.removeprefix("## ") if line.startswith("## ") else part
        if (row_match := _ROW.match(line)) is not None:
            yield part, int(row_match[1]), re.findall(r"`([^`]+)`", row_match[3])


def test_expectation_numbers_are_consecutive_and_unique() -> None:
    """The numbers of each part are consecutive and unique."""
    numbers = {part: [number for each, number, _ in expectations() if each == part] for part in COUNTS}

    assert numbers == {part: list(range(1, count + 1)) for part, count in COUNTS.items()}


@pytest.mark.parametrize("part, number, tests", tuple(expectations()), ids=str)
def test_expectations_name_existing_tests(part: str, number: int, tests: list[str]) -> None:
    """Each row names at least one existing test function."""
    missing = [name for name in tests if not _is_there(name)]

    assert tests, f"{part} {number} is shown by no test"
    assert missing == []


def _is_there(name: str) -> bool:
    path, _, function = name.partition("::")
    if not function.startswith("test_") or not (HOME / path).is_file():
        return False
    tree = ast.parse((HOME / path).read_text(encoding="utf-8"))
    return any(isinstance(each, ast.FunctionDef) and each.name == function for each in tree.body)


def make(node: DriverNode, *names: str) -> None:
    """Make schemas."""
    for name in names:
        node.done("POST", SCHEMAS, {"name": name})


def listed(node: DriverNode, parent: str = "") -> list[str]:
    """Return the names of a list of schemas."""
    query = f"?parentSchema={quote(parent)}" if parent else ""
    return [each["name"] for each in node.done("GET", f"{SCHEMAS}{query}")["identifiers"]]


@pytest.fixture(params=[":", "|"])
def spelled(request: pytest.FixtureRequest, fresh: Callable[[str], Path]) -> Iterator[tuple[DriverNode, str]]:
    """A node with a separator."""
    with node_at(
        fresh("data"), names=NamesSection(separator=request.param, separator_policy="unrestricted")
    ) as running:
        yield running, request.param


def test_vectors_13_14_move_keeps_schemas_with_the_same_prefix(spelled: tuple[DriverNode, str]) -> None:
    """Moving a level moves its descendants immediately. Schemas whose names only begin with the same characters
    stay.
    """
    node, sep = spelled
    make(node, *(name.replace(":", sep) for name in ("raw:events:2024", "raw:events2", "raw2:events")))
    make_table(node, "raw", "events", "2024", "t")
    addresses = [f"{SCHEMAS}/{quote(name.replace(':', sep))}" for name in (*EVENTS, "raw:events2", "raw2:events")]
    before = [node.get(each).status for each in addresses]
    body = {"kind": "namespace", "source": ["raw", "events"], "target": ["away"]}
    moved = node.post(f"{OWN}/metalakes/lake/catalogs/main/move", body)
    after = [node.get(each).status for each in addresses]

    assert (before, moved.status, after) == ([200] * 4, 200, [404, 404, 200, 200])
    assert listed(node) == ["away", "raw", "raw2"]


def test_vector_15_like_wildcards_in_names_are_literal(node: DriverNode) -> None:
    """Characters of LIKE patterns in names have no special meaning: dropping `pa_b` with content, or `50%`, keeps other
    schemas that match the pattern.
    """
    for levels in (("pa_b", "leaf"), ("paxb", "leaf"), ("50%", "leaf"), ("50x", "leaf")):
        make_space(node, *levels)
    dropped_flags = [
        node.delete(f"{SCHEMAS}/{name}").json()["dropped"] for name in ("pa_b%3Aleaf", "pa_b", "50%25%3Aleaf", "50%25")
    ]

    assert dropped_flags == [True] * 4
    assert listed(node) == ["50x", "paxb"]
    assert (listed(node, "50x"), listed(node, "paxb")) == (["50x:leaf"], ["paxb:leaf"])


def test_vector_16_second_leaf_keeps_rows_of_parents(node: DriverNode) -> None:
    """Creating another leaf adds one row and keeps the rows of the existing parents."""
    make(node, "A:B:C")
    before = rows_of(node)["node"]
    make(node, "A:B:D")
    after = rows_of(node)["node"]

    assert set(before) <= set(after)
    assert len(after) == len(before) + 1


def test_vector_17_implicit_parents_can_be_dropped_by_their_owner(node: DriverNode) -> None:
    """Implicit parents stay when their leaf is dropped. Their owner can drop them."""
    make(node, "orphanA:orphanB:orphanC")
    node.done("DELETE", f"{SCHEMAS}/orphanA%3AorphanB%3AorphanC")
    stayed = (listed(node), listed(node, "orphanA"), listed(node, "orphanA:orphanB"))
    dropped_flags = [node.done("DELETE", f"{SCHEMAS}/{name}")["dropped"] for name in ("orphanA%3AorphanB", "orphanA")]

    assert stayed == (["orphanA"], ["orphanA:orphanB"], [])
    assert (dropped_flags, listed(node)) == ([True, True], [])


def test_vector_21_separator_in_table_name_is_refused(node: DriverNode) -> None:
    """Over Gravitino REST a table name cannot contain the separator."""
    make(node, "a")
    answer = node.post(f"{SCHEMAS}/a/tables", {"name": "table:name", "columns": [{"name": "id", "type": "long"}]})

    assert (answer.status, answer["code"]) == (400, 1001)


def test_vector_22_configured_separator_separates_levels(fresh: Callable[[str], Path]) -> None:
    """Another separator separates levels, empty segments are refused, and the default separator is an ordinary
    character.
    """
    with node_at(fresh("data"), names=NamesSection(separator="|", separator_policy="unrestricted")) as node:
        make(node, "team|sales")
        refused = node.post(SCHEMAS, {"name": "team||sales"})

        assert (listed(node), listed(node, "team")) == (["team"], ["team|sales"])
        assert (refused.status, refused["code"]) == (400, 1001)


def test_vectors_27_28_tags_are_inherited(node: DriverNode) -> None:
    """A leaf, its table and its column inherit the tags of the catalog and of every level above. A table in a higher
    schema does not inherit those of lower schemas.
    """
    make(node, "A:B:C")
    make_table(node, "A", "B", "C", "t")
    make_table(node, "A", "B", "u")
    places = {"c": "catalog/main", "a": "schema/main.A", "b": "schema/main.A%3AB", "leaf": "schema/main.A%3AB%3AC"}
    for name, place in places.items():
        node.done("POST", f"{LAKE}/tags", {"name": name})
        node.done("POST", f"{LAKE}/objects/{place}/tags", {"tagsToAdd": [name]})

    def inherited_tags(place: str) -> dict[str, bool]:
        tags = node.done("GET", f"{LAKE}/objects/{place}/tags?details=true")["tags"]
        return {each["name"]: each["inherited"] for each in tags}

    above = {"c": True, "a": True, "b": True}
    assert inherited_tags("schema/main.A%3AB%3AC") == {**above, "leaf": False}
    assert (
        inherited_tags("table/main.A%3AB%3AC.t")
        == inherited_tags("column/main.A%3AB%3AC.t.city")
        == {**above, "leaf": True}
    )
    assert inherited_tags("table/main.A%3AB.u") == above


def test_items_1_3_bodies_have_the_fields_that_clients_require(node: DriverNode) -> None:
    """Each body has code 0, lower-case types, ISO times and the fields that clients require."""
    make_table(node, "a", "t")
    for kind in ("model", "fileset"):
        node.done("POST", f"{LAKE}/catalogs", {"name": f"{kind}s", "type": kind.upper()})
        node.done("POST", f"{LAKE}/catalogs/{kind}s/schemas", {"name": "s"})
    model = f"{LAKE}/catalogs/models/schemas/s/models"
    node.done("POST", model, {"name": "m"})
    node.done("POST", f"{model}/m/versions", {"uri": "s3://m/0"})
    node.done("POST", f"{LAKE}/catalogs/filesets/schemas/s/filesets", {"name": "f", "type": "MANAGED"})
    bodies = {
        what: node.done("GET", f"{LAKE}{path}")
        for what, path in {
            "lake": "",
            "catalog": "/catalogs/models",
            "catalogs": "/catalogs?details=True",
            "schemas": "/catalogs/main/schemas",
            "table": "/catalogs/main/schemas/a/tables/t",
            "version": "/catalogs/models/schemas/s/models/m/versions/0",
            "fileset": "/catalogs/filesets/schemas/s/filesets/f",
            "owner": "/owners/table/main.a.t",
            "tags": "/tags",
        }.items()
    }

    assert {body["code"] for body in bodies.values()} == {0}
    assert (bodies["catalog"]["catalog"]["type"], bodies["fileset"]["fileset"]["type"]) == ("model", "managed")
    table = bodies["table"]["table"]
    assert (table["partitioning"], table["distribution"]["strategy"]) == ([], "none")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", table["audit"]["createTime"])
    assert bodies["version"]["modelVersion"]["uris"] == {"unknown": "s3://m/0"}
    assert bodies["owner"]["owner"]["type"] == "user"


def test_item_6_full_names_are_decoded_once(node: DriverNode) -> None:
    """A colon in a full name is accepted escaped and unescaped. A doubly escaped colon is part of another name."""
    make(node, "a:b")
    make_table(node, "a", "b", "t")
    paths = ("table/main.a%3Ab.t", "table/main.a:b.t", "schema/main.a%3Ab", "table/main.a%253Ab.t")

    assert [node.get(f"{LAKE}/owners/{path}").status for path in paths] == [200, 200, 200, 404]


@pytest.mark.parametrize(
    "kind, name",
    [("METALAKE", "lake"), ("CATALOG", "main"), ("SCHEMA", "main.a"), ("SCHEMA", "main.a:b"), ("TABLE", "main.a:b.t")],
)
def test_item_11_denial_on_an_ancestor_overrides_grants(node: DriverNode, kind: str, name: str) -> None:
    """A denial on one ancestor overrides every grant of other roles."""
    make_table(node, "a", "b", "t")
    grant(node, "ana", "use_catalog use_schema select_table modify_table", kind="METALAKE", on="lake")
    table = f"{SCHEMAS}/a%3Ab/tables/t"
    before = node.get(table, user="ana").status
    grant(node, "ana", "select_table modify_table", kind=kind, on=name, condition="deny")

    assert (before, node.get(table, user="ana").status) == (200, 403)
