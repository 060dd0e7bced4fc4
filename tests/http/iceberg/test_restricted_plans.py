# SPDX-License-Identifier: Apache-2.0
"""Plans for restricted users: allowed filters, facts that refusals hide, and the size of one answer."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from limnos.formats.scans import manifest_batches
from limnos.formats.scans import tasks as planned
from limnos.model.errors import OutsideRoots
from limnos.services.iceberg import policy_enforcement
from limnos.services.iceberg.scan_queue import SCAN_OFFLOADER
from limnos.services.request import offloaded_work
from limnos.services.request.catalog_storage import CatalogStorage
from tests.http.driver import OWN, DriverAnswer, DriverNode, grant
from tests.http.iceberg import wire
from tests.http.iceberg.planning import WrittenTable, paths_of
from tests.http.iceberg.test_plans import deep, steer
from tests.http.iceberg.test_restriction_bypasses import InlineRewrites
from tests.http.iceberg.test_restrictions import restrict, words
from tests.http.iceberg.wire import error_of
from tests.iceberg_manifests import data_file, entry, listed, manifest

pytestmark = pytest.mark.slow

SCHEMA = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "required": False, "type": "long"},
        {"id": 2, "name": "City", "required": False, "type": "string"},
        {"id": 3, "name": "card", "required": False, "type": "string"},
        {
            "id": 4,
            "name": "home",
            "required": False,
            "type": {"type": "struct", "fields": [{"id": 5, "name": "street", "required": False, "type": "string"}]},
        },
    ],
}
ROWS = [
    {"id": n, "City": ("Rome", "Oslo")[n % 2], "card": f"1111-{n:04}", "home": {"street": f"Via {n}"}}
    for n in range(10)
]


class RestrictedTable(WrittenTable):
    """A table with real files that bob reads under a restriction: masked cards, and rows of Rome only."""

    def __init__(self, node: DriverNode, *, manifests: int = 2, files: int = 2) -> None:
        super().__init__(node, schema=SCHEMA)
        SCAN_OFFLOADER.put(node.built.services, InlineRewrites())
        self.told = [
            self.manifest(f"m{n}.avro", [entry(self.file(f"{n}-{each}.parquet")) for each in range(files)])
            for n in range(manifests)
        ]
        self.commit(self.told)
        grant(node, "bob", "use_catalog use_schema select_table", kind="CATALOG", on="main")
        assert restrict(node, filter="City = 'Rome'", masks={"card": "show-last-4"}).status == 200

    def file(self, name: str) -> dict[str, object]:
        """Write a data file. Returns its manifest entry."""
        at = wire.local(self.write(name, b""))
        fields = [_field("id", pa.int64(), 1), _field("City", pa.string(), 2), _field("card", pa.string(), 3)]
        fields.append(_field("home", pa.struct([_field("street", pa.string(), 5)]), 4))
        pq.write_table(pa.Table.from_pylist(ROWS, schema=pa.schema(fields)), at)
        return data_file(f"{self.location}/metadata/{name}", file_size_in_bytes=at.stat().st_size)

    def seen(self, **arguments: object) -> DriverAnswer:
        """Return the answer to bob's scan."""
        return self.plan(user="bob", **arguments)

    def rows(self, answer: DriverAnswer) -> list[dict[str, Any]]:
        """Return the rows of the files in an answer."""
        assert answer.status == 200, answer.body
        files = [wire.local(each["data-file"]["file-path"]) for each in answer.json()["file-scan-tasks"]]
        return [row for file in files for row in pq.read_table(file).to_pylist()]


def _field(name: str, kind: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


@pytest.fixture
def table(lake: DriverNode) -> RestrictedTable:
    """The table."""
    return RestrictedTable(lake)


@pytest.mark.parametrize("document_bytes_max", [10, 1 << 20])
def test_plan_returns_remaining_rows_masked(
    table: RestrictedTable, monkeypatch: pytest.MonkeyPatch, document_bytes_max: int
) -> None:
    """Each file is returned once, with the remaining rows masked. The residual filter is the user's own, whatever the
    size of the metadata.
    """
    steer(table.node, scan_files_max=1)
    monkeypatch.setattr(offloaded_work, "DOCUMENT_BYTES_MAX", document_bytes_max)
    scan_filter = {"type": "gt", "term": "id", "value": 3}

    answer = table.seen(filter=scan_filter, stats_fields=["id", "card"])

    rows = [{**row, "card": f"xxxxx{str(row['card'])[-4:]}"} for row in ROWS if row["City"] == "Rome"]
    assert table.rows(answer) == rows * 4
    tasks = answer.json()["file-scan-tasks"]
    assert [each["residual-filter"] for each in tasks] == [scan_filter] * 4
    assert tasks[0]["data-file"]["lower-bounds"]["keys"] == [1, 3]
    assert bytes.fromhex(tasks[0]["data-file"]["lower-bounds"]["values"][1]) == b"xxxxx0000"
    assert "plan-tasks" not in answer.json()


@pytest.mark.parametrize(
    "scan_filter,residual",
    [
        ({"type": "is-null", "term": "card"}, {"type": "is-null", "term": "card"}),
        ({"type": "eq", "term": "home.street", "value": "x"}, {"type": "eq", "term": "home.street", "value": "x"}),
        (
            {"type": "eq", "left": {"type": "reference", "id": 5}, "right": "x"},
            {"type": "eq", "left": {"type": "reference", "id": 5}, "right": "x"},
        ),
        (None, True),
        (True, True),
    ],
)
def test_filter_on_a_masked_or_nested_column_prunes_no_file(
    table: RestrictedTable, scan_filter: object, residual: object
) -> None:
    """A filter on a masked or nested column prunes no file and is left to the client."""
    answer = table.seen(filter=scan_filter)

    assert len(table.rows(answer)) == 20
    assert {json.dumps(each["residual-filter"]) for each in answer.json()["file-scan-tasks"]} == {json.dumps(residual)}


def test_restriction_without_matching_rows_writes_no_file(table: RestrictedTable) -> None:
    """If no row matches the restriction's filter, no file is written."""
    answer = table.seen(filter=False)

    assert paths_of(answer) == []
    assert not list(wire.local(table.location).parent.rglob("restricted-reads"))


BAD: dict[str, dict[str, object]] = {
    "unknown": {"filter": {"type": "eq", "term": "nowhere", "value": 1}},
    "another case": {"filter": {"type": "is-null", "term": "CITY"}},
    "nested fields": {"filter": {"type": "is-null", "term": "home.number"}},
    "within what has nothing": {"filter": {"type": "is-null", "term": "card.last"}},
    "an unknown number": {"filter": {"type": "is-null", "child": {"type": "reference", "id": 77}}},
    "a whole struct": {"filter": {"type": "eq", "term": "home", "value": 1}},
    "another type": {"filter": {"type": "eq", "term": "id", "value": "x"}},
    "hidden in a not": {"filter": {"type": "not", "child": {"type": "is-null", "term": "nowhere"}}},
    "beside what is there": {
        "filter": {
            "type": "or",
            "left": {"type": "is-null", "term": "id"},
            "right": {"type": "is-null", "term": "nowhere"},
        }
    },
    "beside what decides": {"filter": {"type": "and", "left": False, "right": {"type": "is-null", "term": "nowhere"}}},
    "selected": {"select": ["id", "nowhere"]},
    "statistics": {"stats_fields": ["card", "nowhere"]},
    "too deep": {"filter": deep(400)},
    "no filter": {"filter": ["x"]},
    "no snapshot": {"snapshot_id": 99},
}


def test_invalid_filter_or_column_returns_400_without_hidden_names(table: RestrictedTable) -> None:
    """An invalid filter, a missing column or a missing snapshot is refused with 400 and the same message as for an
    unrestricted user. The message contains no name that the request does not contain.
    """
    for what, arguments in BAD.items():
        error, whole = error_of(table.seen(**arguments)), error_of(table.plan(**arguments))

        assert error[:2] == (400, "IllegalArgumentException"), what
        assert error[2] == whole[2], what
        assert not [
            each
            for each in ("City", "card", "street", table.location)
            if each in error[2] and each not in json.dumps(arguments)
        ], error
    assert len(table.rows(table.seen(filter={"type": "is-null", "term": "CITY"}, case_sensitive=False))) == 20


def test_former_column_names_are_unknown_in_older_snapshots(table: RestrictedTable) -> None:
    """A restricted user gets today's columns, also for older snapshots; former names of columns are unknown."""
    renamed = [{**field, "name": "town"} if field["id"] == 2 else field for field in SCHEMA["fields"]]  # type: ignore[index]
    added = {"action": "add-schema", "schema": {"type": "struct", "fields": renamed}, "last-column-id": 5}
    assert (
        wire.commit(table.node, "a", "t", updates=[added, {"action": "set-current-schema", "schema-id": -1}]).status
        == 200
    )

    for name, status in (("town", 200), ("City", 400)):
        arguments = {
            "filter": {"type": "eq", "term": name, "value": "Rome"},
            "snapshot_id": 100,
            "use_snapshot_schema": True,
        }
        assert table.seen(**arguments).status == status
        assert table.plan(**arguments).status == 200


def test_errors_reveal_no_file_name_to_restricted_users(lake: DriverNode) -> None:
    """For restricted users, errors in the table's files contain no file name and no location; for the owner they do."""
    table = RestrictedTable(lake)
    good = manifest([entry(data_file("file:///x.parquet"))])
    missing_entry = entry(data_file(f"{table.location}/metadata/City=Rome.parquet"))
    elsewhere = entry(data_file("file:///tmp/City=Rome.parquet"))
    stories = (
        listed(f"{table.location}/metadata/gone.avro", good),
        listed(table.write("bad.avro", good[:-40]), good),
        listed("file:///tmp/else.avro", good),
        table.manifest("holes.avro", [missing_entry]),
        table.manifest("away.avro", [elsewhere]),
    )
    for story in stories:
        table.commit([story])
        answer = table.seen()

        assert answer.status in (406, 500, 503), answer.body
        for secret in (table.location, "Rome", ".avro", ".parquet", "file:"):
            assert secret not in words(answer), words(answer)
        assert "The table's owner" in words(answer) or "the table's owner" in words(answer)


def test_refusal_of_a_disallowed_location_does_not_reveal_it(
    table: RestrictedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the server may no longer read the table's location, the refusal to a restricted user does not contain the
    location.
    """

    def outside(_: CatalogStorage, location: str) -> None:
        raise OutsideRoots(f"Location {location} is none")

    monkeypatch.setattr(CatalogStorage, "check", outside)
    answer, whole = table.seen(), table.plan()

    assert (answer.status, table.location in words(answer)) == (406, False)
    assert (whole.status, table.location in words(whole)) == (400, True)


def test_answer_size_with_a_long_filter_is_limited(table: RestrictedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long filter is returned with each file: other users get smaller parts, restricted ones are refused before any
    file is read.
    """
    long_filter = {"type": "in", "term": "id", "values": list(range(100_000, 101_000))}
    monkeypatch.setattr(manifest_batches, "_FILTERS_BYTES", 10_000)
    tasks = table.plan(filter=long_filter).json()["plan-tasks"]
    fetched = [len(paths_of(table.node.post(f"{table.path}/tasks", {"plan-task": each}))) for each in tasks]
    for module in (policy_enforcement, planned):
        monkeypatch.setattr(module, "RESPONSE_BYTES_MAX", 10_000)

    refused, part = table.seen(filter=long_filter), table.node.post(f"{table.path}/tasks", {"plan-task": tasks[0]})
    files = list(wire.local(table.location).parent.rglob("restricted-reads"))

    assert fetched == [2, 2]
    assert [(each.status, "shorten the filter" in words(each)) for each in (refused, part)] == [(406, True)] * 2
    assert files == []
    assert table.seen(filter={"type": "eq", "term": "id", "value": 1}).status == 200


def test_plan_from_before_the_restriction_is_refused(table: RestrictedTable) -> None:
    """A plan from before the restriction, whether it was complete or still submitted, and its tasks are refused to a
    restricted user, who may cancel it and start another.
    """
    node, name = table.node, f"{OWN}/metalakes/lake/objects/TABLE/main.a.t/restrictions/eu"
    steer(node, scan_files_max=1)
    node.done("DELETE", name)
    planned = table.seen().json()
    at, task = f"{table.path}/plan/{planned['plan-id']}", {"plan-task": planned["plan-tasks"][0]}
    assert node.post(f"{table.path}/tasks", task, user="bob").status == 200
    steer(node, scan_wait_s=0.0)
    submitted, other = table.seen(), table.seen()
    ats = [f"{table.path}/plan/{each['plan-id']}" for each in (submitted, other)]
    assert [each.json().keys() for each in (submitted, other)] == [{"plan-id", "status"}] * 2
    steer(node, scan_wait_s=30.0)
    assert node.get(ats[1], user="bob").json()["status"] == "completed"

    assert restrict(node, filter="City = 'Rome'").status == 200

    for answer in (
        *(node.get(each, user="bob") for each in (at, *ats)),
        node.post(f"{table.path}/tasks", task, user="bob"),
    ):
        assert answer.status == 403
        assert "read-restricted-set-scan-planning-mode-to-server" in words(answer)
        assert table.location not in answer.body.decode()
    assert [node.delete(each, user="bob").status for each in (at, *ats)] == [204] * 3
    assert {row["City"] for row in table.rows(table.seen())} == {"Rome"}
