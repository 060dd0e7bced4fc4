# SPDX-License-Identifier: Apache-2.0
"""Scan plans from manifests: applicable deletes, the residual filter, and values that a file inherits."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec
import pytest
from pyiceberg.types import DateType, NestedField, StructType

from limnos.formats.scans.manifests import list_read
from limnos.formats.scans.manifests import manifest_summary as told_of
from limnos.formats.scans.request import ScanManifests, ScanRequest, ScanScope
from limnos.formats.scans.tasks import manifests_of, tasks_of
from tests.iceberg_manifests import (
    EQUALITY,
    EXISTING,
    POSITIONS,
    Fields,
    data_file,
    entry,
    listed,
    manifest,
    manifest_list,
)

SCHEMA: dict[str, object] = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": False, "type": "long"},
        {"id": 2, "name": "day", "required": False, "type": "date"},
        {"id": 3, "name": "told", "required": False, "type": "variant"},
    ],
}
BY_DAY = {"spec-id": 0, "fields": [{"source-id": 2, "field-id": 1000, "name": "day", "transform": "identity"}]}
NO_SPEC = {"spec-id": 1, "fields": []}
DAYS = StructType(NestedField(1000, "day", DateType(), required=False))
AIM = ScanScope(
    table_uuid="u",
    location="file:///t",
    snapshot_id=1,
    lists=["l"],
    appended=None,
    schema=SCHEMA,
    schemas=[SCHEMA],
    specs=[BY_DAY, NO_SPEC],
)
PATH_ID = 2147483546


def on(day: int, path: str, **more: object) -> dict[str, object]:
    """Return a file of a day."""
    return data_file(path, partition={"day": day}, **more)


def plan(
    data: Sequence[Fields],
    deletes: Sequence[tuple[int, Sequence[Fields]]] = (),
    *,
    request_json: str = "{}",
    aim: ScanScope = AIM,
    **more: object,
) -> tuple[list[dict], list[dict]]:
    """Plan a scan over one manifest of data files, and one of delete files for each spec. Returns tasks and delete
    files.
    """
    files = [manifest(data, partition=DAYS, version=3)]
    manifest_rows = [listed("m0", files[0], added_files_count=len(data), **more)]
    for spec, entries in deletes:
        files.append(manifest(entries, partition=DAYS if spec == 0 else None, version=3))
        manifest_rows.append(listed(f"d{spec}", files[-1], deletes=True, partition_spec_id=spec, sequence=9))
    request = msgspec.json.decode(request_json, type=ScanRequest)
    needed = manifests_of(aim, request, lists=[manifest_list(manifest_rows)])
    by_path = {each["manifest_path"]: raw for each, raw in zip(manifest_rows, files, strict=True)}
    manifest_files = [by_path[each.path] for each in (*needed.data, *needed.deletes)]
    scan_tasks = tasks_of(aim, request, needed=needed, files=manifest_files)
    return [json.loads(each) for each in scan_tasks.files], [json.loads(each) for each in scan_tasks.deletes]


def deletes_of(tasks: list[dict], deletes: list[dict]) -> dict[str, list[str]]:
    """Return the names of the delete files that apply to each data file."""
    return {
        task["data-file"]["file-path"]: sorted(
            deletes[each]["file-path"] for each in task.get("delete-file-references", ())
        )
        for task in tasks
    }


def test_deletes_apply_by_partition_and_sequence_number() -> None:
    """Position deletes apply to files of the same or a lower sequence number, equality deletes only to older files.
    Both apply within their partition, or everywhere if they are unpartitioned.
    """
    data = [entry(on(1, "old"), sequence=1), entry(on(1, "new"), sequence=5), entry(on(2, "elsewhere"), sequence=1)]
    here = [
        entry(on(1, "positions", content=POSITIONS), sequence=5),
        entry(on(1, "equal", content=EQUALITY, equality_ids=[1]), sequence=5),
        entry(on(1, "older", content=POSITIONS), sequence=0),
    ]
    everywhere = [entry(data_file("global", content=EQUALITY, equality_ids=[1]), sequence=2)]

    tasks, deletes = plan(data, [(0, here), (1, everywhere)])

    assert deletes_of(tasks, deletes) == {
        "old": ["equal", "global", "positions"],
        "new": ["positions"],
        "elsewhere": ["global"],
    }
    assert [each["equality-ids"] for each in deletes if each["content"] == "equality-deletes"] == [[1], [1]]


def test_file_scoped_deletes_apply_to_that_file_alone() -> None:
    """Position deletes that name one file apply to that file alone. A deletion vector replaces all other position
    deletes.
    """
    one = {PATH_ID: b"a"}
    data = [entry(on(1, each), sequence=1) for each in "abc"]
    deletes = [
        entry(on(1, "of a", content=POSITIONS, lower_bounds=one, upper_bounds=one), sequence=2),
        entry(on(1, "of b", content=POSITIONS, referenced_data_file="b"), sequence=2),
        entry(on(1, "a to b", content=POSITIONS, lower_bounds=one, upper_bounds={PATH_ID: b"b"}), sequence=2),
        entry(
            on(
                1,
                "vector",
                content=POSITIONS,
                file_format="PUFFIN",
                referenced_data_file="b",
                content_offset=4,
                content_size_in_bytes=40,
            ),
            sequence=3,
        ),
    ]

    tasks, delete_files = plan(data, [(0, deletes)])

    assert deletes_of(tasks, delete_files) == {"a": ["a to b", "of a"], "b": ["vector"], "c": []}
    vector = next(each for each in delete_files if each["file-path"] == "vector")
    assert {
        key: vector[key] for key in ("file-format", "referenced-data-file", "content-offset", "content-size-in-bytes")
    } == {
        "file-format": "puffin",
        "referenced-data-file": "b",
        "content-offset": 4,
        "content-size-in-bytes": 40,
    }


def test_row_ids_are_assigned_in_manifest_order() -> None:
    """Row ids are assigned in the order of a manifest's files, one for each row. Files that have row ids keep them."""
    data = [
        entry(on(1, "a"), status=EXISTING, sequence=1, snapshot=1),
        entry(on(1, "b", first_row_id=7)),
        entry(on(1, "c")),
    ]

    tasks, _ = plan(data, first_row_id=100, sequence=4)

    assert [(each["data-file"]["first-row-id"], each["data-file"]["data-sequence-number"]) for each in tasks] == [
        (100, 1),
        (7, 4),
        (110, 4),
    ]
    assert tasks[0]["data-file"]["partition"] == ["1970-01-02"]


DAY = {"type": "eq", "term": "day", "value": "1970-01-02"}
ID = {"type": "gt", "left": {"type": "reference", "id": 1}, "right": {"type": "literal", "value": 5}}
OPEN = {
    "type": "eq",
    "left": {"type": "apply", "function": "f", "arguments": []},
    "right": {"type": "literal", "value": 1},
}


@pytest.mark.parametrize(
    "scan_filter, expected",
    [
        (True, {"a": True, "b": True}),
        (False, {}),
        ({"type": "true"}, {"a": True, "b": True}),
        (DAY, {"a": True}),
        ({"type": "not", "child": DAY}, {"b": True}),
        (ID, {"a": ID, "b": ID}),
        ({"type": "and", "left": DAY, "right": ID}, {"a": ID}),
        ({"type": "or", "left": DAY, "right": ID}, {"a": True, "b": ID}),
        ({"type": "not", "child": {"type": "or", "left": DAY, "right": ID}}, {"b": {"type": "not", "child": ID}}),
        ({"type": "in", "term": "day", "values": ["1970-01-03", 1]}, {"a": True, "b": True}),
        ({"type": "not-in", "child": {"type": "reference", "name": "day"}, "values": [1]}, {"b": True}),
        (OPEN, {"a": OPEN, "b": OPEN}),
        ({"type": "not", "child": OPEN}, {each: {"type": "not", "child": OPEN} for each in "ab"}),
        ({"type": "and", "left": OPEN, "right": DAY}, {"a": OPEN}),
        ({"type": "is-null", "term": "told"}, {each: {"type": "is-null", "term": "told"} for each in "ab"}),
        (
            {"type": "lt", "term": "id", "value": 1 << 70},
            {"a": {"type": "lt", "term": "id", "value": 1 << 70}, "b": {"type": "lt", "term": "id", "value": 1 << 70}},
        ),
    ],
    ids=str,
)
def test_tasks_have_residual_filter(scan_filter: object, expected: dict[str, object]) -> None:
    """A file is planned if its partition may contain rows of the filter, with the residual filter, in both spellings of
    the filter.
    """
    data = [entry(on(1, "a")), entry(on(2, "b"))]

    tasks, _ = plan(data, request_json=json.dumps({"filter": scan_filter}))

    assert {each["data-file"]["file-path"]: each["residual-filter"] for each in tasks} == expected


def test_files_partitioned_by_dropped_column_are_planned() -> None:
    """Files partitioned by a dropped column are planned, with null as the column's partition value."""
    later = {**SCHEMA, "schema-id": 1, "fields": SCHEMA["fields"][:1]}  # type: ignore[index]
    aim = msgspec.structs.replace(AIM, schema=later, schemas=[SCHEMA, later])
    same = [entry(on(1, "d", content=POSITIONS), sequence=2)]

    tasks, deletes = plan([entry(on(1, "a"), sequence=1), entry(on(2, "b"), sequence=1)], [(0, same)], aim=aim)

    assert deletes_of(tasks, deletes) == {"a": ["d"], "b": []}
    assert [each["data-file"]["partition"] for each in tasks] == [[None], [None]]


def test_unneeded_manifests_are_not_read() -> None:
    """A manifest is not read if no partition of it can contain rows of the filter, or if its deletes are older than all
    data files.
    """
    data = manifest([entry(on(1, "a"))], partition=DAYS)
    bounds = [
        {
            "contains_null": False,
            "contains_nan": None,
            "lower_bound": (1).to_bytes(4, "little"),
            "upper_bound": (1).to_bytes(4, "little"),
        }
    ]
    list_file = manifest_list(
        [
            listed("one", data, partitions=bounds, min_sequence_number=3),
            listed("deletes", data, deletes=True, sequence=2),
            listed("later", data, deletes=True, sequence=3),
        ]
    )

    def needed(text: object) -> ScanManifests:
        return manifests_of(AIM, msgspec.json.decode(json.dumps({"filter": text}), type=ScanRequest), lists=[list_file])

    day_manifests, other_manifests = needed(DAY), needed({**DAY, "value": "1970-01-09"})

    assert ([each.path for each in day_manifests.data], [each.path for each in day_manifests.deletes]) == (
        ["one"],
        ["later"],
    )
    assert other_manifests == ScanManifests([], [])


def test_version_1_manifest_list_is_read() -> None:
    """A manifest list of version 1 has no sequence numbers and no delete files: all of its files are data files with
    sequence number 0.
    """
    data = manifest([entry(on(1, "a"))], partition=DAYS, version=2)

    (manifest_row,) = list_read(manifest_list([listed("m", data)], version=1))

    assert (told_of(manifest_row).is_deletes, told_of(manifest_row).sequence, told_of(manifest_row).files) == (
        False,
        0,
        1,
    )


def test_incremental_scan_plans_only_added_files() -> None:
    """An incremental scan plans neither older files that a manifest carries over nor files of snapshots outside of the
    range.
    """
    aim = msgspec.structs.replace(AIM, appended=[7, 8])
    data = [
        entry(on(1, "added"), snapshot=7, sequence=7),
        entry(on(1, "carried over"), status=EXISTING, snapshot=7, sequence=7),
        entry(on(1, "older"), snapshot=6, sequence=6),
        entry(on(1, "its own")),
    ]

    tasks, _ = plan(data, aim=aim, snapshot=8, sequence=8)

    assert [each["data-file"]["file-path"] for each in tasks] == ["added", "its own"]


def test_plan_ends_at_min_rows_requested() -> None:
    """With `min-rows-requested`, a plan ends when the files that match completely and have no deletes contain enough
    rows.
    """
    data = [entry(on(1, name), sequence=1) for name in "abcd"]
    one = {PATH_ID: b"a"}
    position_deletes = [entry(on(1, "of a", content=POSITIONS, lower_bounds=one, upper_bounds=one), sequence=2)]

    def named(filter_: object, deletes: Sequence[Fields] = ()) -> str:
        request_json = json.dumps({"min-rows-requested": 15, "filter": filter_})
        tasks, _ = plan(data, [(0, deletes)] if deletes else (), request_json=request_json)
        return "".join(each["data-file"]["file-path"] for each in tasks)

    assert named(True) == "ab"
    assert named(DAY) == "ab"
    assert named(True, position_deletes) == "abc"
    assert named(ID) == "abcd"
