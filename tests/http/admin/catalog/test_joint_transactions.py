# SPDX-License-Identifier: Apache-2.0
"""POST transactions of a metalake: Iceberg commits and versions of Lance tables in several catalogs, all or none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.backends import Database
from tests.http.driver import OWN, DriverAnswer, DriverNode, grant
from tests.http.iceberg.wire import make_table, metadata_of, node_over, set_properties
from tests.rooms.lance.http.wire import commit, declare, stage, table

PATH = f"{OWN}/metalakes/lake/transactions"
KEPT = {"managed_versioning": "true"}
Operation = dict[str, object]
KEY = "01920000-0000-7000-8000-00000000000a"


@pytest.fixture
def lake(database: Database, tmp_path: Path) -> Iterator[DriverNode]:
    """An Iceberg table and a Lance table whose versions the server keeps, over SQLite and over PostgreSQL."""
    url = None if database.kind == "sqlite" else database.address
    with node_over(tmp_path, database=url) as running:
        make_table(running, "a", "t")
        yield running


def together(node: DriverNode, *operations: Operation, user: str = "admin", **headers: str) -> DriverAnswer:
    """Send operations."""
    return node.ask("POST", PATH, {"operations": list(operations)}, user=user, **headers)


def marked(mark: str, **more: object) -> Operation:
    """Return the operation that sets a property of the Iceberg table."""
    return {"do": "commit-table", "catalog": "main", "path": ["a", "t"], "updates": [set_properties(mark=mark)], **more}


def version(location: object, number: int, *, text: bytes = b"not read") -> Operation:
    """Stage a version of the Lance table, and return the operation that commits it."""
    staged = stage(location, number, text=text, mark=text.hex())
    return {
        "do": "commit-lance-version",
        "catalog": "lance",
        "path": ["d"],
        "version": number,
        "manifest_path": staged,
    }


def managed(node: DriverNode) -> str:
    """Declare the Lance table. Returns its location."""
    return str(declare(node, "lance", "d", properties=KEPT)["location"])


def versions(node: DriverNode) -> list[int]:
    """Return the versions of the Lance table."""
    return [each["version"] for each in node.done("POST", f"{table('lance', 'd')}/version/list", {})["versions"]]


def mark_of(node: DriverNode) -> object:
    """Return the property of the Iceberg table."""
    return metadata_of(node, "a", "t")["properties"].get("mark")


def message(answer: DriverAnswer) -> tuple[int, str]:
    """Return status and message of a refusal."""
    return answer.status, answer.json()["error"]["message"]


def test_iceberg_and_lance_tables_change_at_once(lake: DriverNode) -> None:
    """One request commits to an Iceberg table and two versions to a Lance table, which have their final manifests."""
    location = managed(lake)

    answer = together(lake, version(location, 1), marked("x"), version(location, 2))

    assert answer.status == 200, answer.body
    body = answer.json()
    assert sorted(body["revisions"]) == ["lance", "main"]
    assert [each.get("version") for each in body["operations"]] == [1, None, 2]
    assert [each["path"] for each in body["operations"]] == [["lance", "d"], ["main", "a", "t"], ["lance", "d"]]
    assert (versions(lake), mark_of(lake)) == ([1, 2], "x")
    listed = lake.done("POST", f"{table('lance', 'd')}/version/list", {})["versions"]
    assert all(Path(f"/{each['manifest_path']}").read_bytes() == b"not readLANC" for each in listed)
    for catalog, revision in body["revisions"].items():
        changes = lake.get(f"{OWN}/metalakes/lake/changes?catalog={catalog}&since={revision - 1}").json()["changes"]
        assert ("commit", revision) in {(each["operation"], each["revision"]) for each in changes}


def test_version_that_is_not_the_next_one_leaves_the_iceberg_table(lake: DriverNode) -> None:
    """If another client has committed a Lance version, the Iceberg table stays as it was, and the message names the
    Lance table.
    """
    location = managed(lake)
    commit(lake, "lance", "d", location=location, version=1)

    answer = together(lake, marked("x"), version(location, 1, text=b"other"))

    assert answer.status == 409
    assert "d" in message(answer)[1]
    assert (versions(lake), mark_of(lake)) == ([1], None)


def test_failed_requirement_leaves_the_lance_table(lake: DriverNode) -> None:
    """If a requirement of the Iceberg table fails, the Lance table gets no version."""
    location = managed(lake)
    never = [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 4}]

    answer = together(lake, version(location, 1), marked("x", requirements=never))

    assert answer.status == 409
    assert (versions(lake), mark_of(lake)) == ([], None)


def test_storage_managed_lance_table_is_refused(lake: DriverNode) -> None:
    """A Lance table whose versions are in its files cannot be part of a transaction, and the message says why."""
    location = str(declare(lake, "lance", "d", properties={"managed_versioning": "false"})["location"])

    status, text = message(together(lake, marked("x"), version(location, 1)))

    assert status == 400
    assert "in its files and not in the server" in text
    assert mark_of(lake) is None


def test_right_in_one_catalog_alone_changes_nothing(lake: DriverNode) -> None:
    """A user who may write only the Iceberg table is refused for the Lance table, which they read, and nothing
    changes.
    """
    location = managed(lake)
    grant(lake, "bob", "use_catalog use_schema modify_table", kind="CATALOG", on="main")
    grant(lake, "bob", "use_catalog use_schema select_table", kind="CATALOG", on="lance")
    assert together(lake, marked("own"), user="bob").status == 200

    answer = together(lake, marked("x"), version(location, 1), user="bob")

    assert answer.status == 403
    assert (versions(lake), mark_of(lake)) == ([], "own")


def test_repeated_key_is_answered_from_the_first_outcome(lake: DriverNode) -> None:
    """The same request with the same key commits once, and its repetition has the first answer; after the right is
    lost in one catalog, a repetition is not answered.
    """
    location = managed(lake)
    operations = [marked("x"), version(location, 1)]

    first = together(lake, *operations, idempotency_key=KEY)
    again = together(lake, *operations, idempotency_key=KEY)
    other = together(lake, marked("y"), idempotency_key=KEY)

    assert first.status == again.status == 200, first.body
    assert first.json() == again.json()
    assert other.status in {400, 422}
    assert (versions(lake), mark_of(lake)) == ([1], "x")


def test_refused_key_builds_no_file(lake: DriverNode) -> None:
    """A refusal under a key is repeated, and the check of the caller's rights for it writes no metadata file."""
    location = managed(lake)
    never = [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 4}]
    operations = [version(location, 1), marked("x", requirements=never)]
    files = sorted((lake.data / "warehouse" / "main").rglob("*.json"))

    first = together(lake, *operations, idempotency_key=KEY)
    again = together(lake, *operations, idempotency_key=KEY)

    assert first.status == again.status == 409
    assert sorted((lake.data / "warehouse" / "main").rglob("*.json")) == files


@pytest.mark.parametrize(
    "operations,status,words",
    [
        ([], 400, "empty"),
        ([{"do": "drop-table", "path": ["a", "t"]}], 400, "no field 'catalog'"),
        ([marked("x"), {"do": "drop-table", "catalog": "gone", "path": ["a", "t"]}], 404, "gone"),
        ([{"do": "drop-table", "catalog": "a.b", "path": ["a", "t"]}], 400, "a.b"),
        (
            [marked("x")] + [{"do": "drop-table", "catalog": f"c{n}", "path": ["a"]} for n in range(16)],
            400,
            "17 catalogs",
        ),
        ([marked("x")] * 1001, 400, "1000"),
        (
            [{"do": "commit-lance-version", "catalog": "main", "path": ["a", "t"], "version": 1, "manifest_path": "x"}],
            404,
            "a.t",
        ),
        (
            [{"do": "commit-lance-version", "catalog": "lance", "path": ["d"], "version": "1", "manifest_path": "x"}],
            400,
            "version",
        ),
    ],
)
def test_wrong_bodies_are_refused(lake: DriverNode, operations: list[Operation], status: int, words: str) -> None:
    """A body without catalogs, with too many, or with missing ones is refused, and nothing changes."""
    answer = together(lake, *operations)

    assert answer.status == status, answer.body
    assert words in message(answer)[1]
    assert mark_of(lake) is None


def test_other_catalog_in_a_transaction_of_one_catalog_is_refused(lake: DriverNode) -> None:
    """The address of one catalog refuses an operation of another, and takes its own catalog's name."""
    own = f"{OWN}/metalakes/lake/catalogs/main/transactions"

    right = lake.ask("POST", own, {"operations": [marked("x")]})
    wrong = lake.ask("POST", own, {"operations": [marked("y", catalog="lance")]})

    assert (right.status, wrong.status, mark_of(lake)) == (200, 400, "x")
    assert "catalog lance" in message(wrong)[1]


def test_long_body_of_a_catalogs_owner_is_read(lake: DriverNode) -> None:
    """A body over 64 KiB is read for a caller whose rights are on a catalog alone."""
    grant(lake, "bob", "use_catalog use_schema modify_table", kind="CATALOG", on="main")
    long = [set_properties(**{f"key{number}": "x" * 1000 for number in range(80)})]

    assert together(lake, marked("x", updates=long), user="bob").status == 200
