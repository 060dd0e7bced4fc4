# SPDX-License-Identifier: Apache-2.0
"""Stored documents that readers refuse: corrected by one commit, or described with what the owner can do."""

from __future__ import annotations

import pytest
from pyiceberg.exceptions import ValidationError
from pyiceberg.table.metadata import TableMetadataUtil

from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.mending import MEND, MENDABLE, find_problems
from limnos.formats.iceberg.metadata import encode
from limnos.model.errors import BadRequest
from tests.formats.iceberg.samples import (
    appended,
    commit,
    field,
    partition,
    rows,
    schema,
    snapshot,
    table,
)

FILE_ENTRY: Json = {
    "snapshot-id": 200,
    "statistics-path": "s.puffin",
    "file-size-in-bytes": 9,
    "file-footer-size-in-bytes": 2,
}
BLOB: Json = {"type": "x", "snapshot-id": 200, "sequence-number": 2, "fields": [1]}


def one_field(type_value: object, **attributes: object) -> Json:
    """Return the schemas of a document with one field besides the id."""
    return {"schemas": [schema(field(1, "id"), field(2, "a", type_value, **attributes), **{"schema-id": 0})]}


def with_default(type_value: str, value: object) -> Json:
    """Return the schemas of a document with a default value."""
    return one_field(type_value, **{"write-default": value})


MENDED: dict[str, tuple[Json, Json]] = {
    "null default": (one_field("int", **{"initial-default": None}), one_field("int")),
    "null identifiers": (
        {"schemas": [schema(**{"schema-id": 0, "identifier-field-ids": None})]},
        {"schemas": [schema(**{"schema-id": 0})]},
    ),
    "spaces in a type": (one_field("decimal( 9 , 2 )"), one_field("decimal(9, 2)")),
    "decimal": (with_default("decimal(9, 2)", "1.5"), with_default("decimal(9, 2)", "1.50")),
    "decimal with zeros": (with_default("decimal(9, 2)", "1.5000"), with_default("decimal(9, 2)", "1.50")),
    "timestamp": (
        with_default("timestamp", "2025-03-04 05:06:07"),
        with_default("timestamp", "2025-03-04T05:06:07"),
    ),
    "moment in another zone": (
        with_default("timestamptz", "2025-03-04T05:06:07.25+02:00"),
        with_default("timestamptz", "2025-03-04T03:06:07.250000+00:00"),
    ),
    "moment in UTC": (
        with_default("timestamptz_ns", "2025-03-04 05:06:07.123456789Z"),
        with_default("timestamptz_ns", "2025-03-04T05:06:07.123456789+00:00"),
    ),
    "null parent": (
        {"snapshots": [snapshot(1, version=3), snapshot(2, version=3, **{"parent-snapshot-id": None})]},
        {"snapshots": [snapshot(1, version=3), snapshot(2, version=3)]},
    ),
    "numbers in a summary": (
        {"snapshots": [snapshot(1, version=3), snapshot(2, version=3, summary={"operation": "append", "n": 5})]},
        {"snapshots": [snapshot(1, version=3), snapshot(2, version=3, summary={"operation": "append", "n": "5"})]},
    ),
    "a snapshot twice": (
        {"snapshots": [snapshot(1, version=3), snapshot(2, version=3), snapshot(2, version=3)]},
        {"snapshots": [snapshot(1, version=3), snapshot(2, version=3)]},
    ),
    "low column id": ({"last-column-id": 1}, {"last-column-id": 3}),
    "low row id": ({"next-row-id": 3}, {"next-row-id": 20}),
    "snapshot without a number": (
        {"snapshots": [{**snapshot(1, version=3), "sequence-number": None}, snapshot(2, version=3)]},
        {"snapshots": [{**snapshot(1, version=3), "sequence-number": 0}, snapshot(2, version=3)]},
    ),
    "low sequence number": ({"last-sequence-number": 1}, {"last-sequence-number": 2}),
    "nulls in statistics": (
        {"statistics": [{**FILE_ENTRY, "key-metadata": None, "blob-metadata": [{**BLOB, "properties": {"n": 5}}]}]},
        {"statistics": [{**FILE_ENTRY, "blob-metadata": [{**BLOB, "properties": {"n": "5"}}]}]},
    ),
    "nulls in partition statistics": (
        {"partition-statistics": [{**FILE_ENTRY, "a": None}]},
        {"partition-statistics": [FILE_ENTRY]},
    ),
    "snapshot without a summary": (
        {"snapshots": [snapshot(1, version=3), snapshot(2, version=3, summary=None)]},
        {"snapshots": [snapshot(1, version=3), snapshot(2, version=3, summary={"operation": "overwrite"})]},
    ),
    "key without padding": (
        {"encryption-keys": [{"key-id": "k", "encrypted-key-metadata": "eA"}]},
        {"encryption-keys": [{"key-id": "k", "encrypted-key-metadata": "eA=="}]},
    ),
    "nulls in a key": (
        {"encryption-keys": [{"key-id": "k", "encrypted-key-metadata": "eA==", "encrypted-by-id": None}]},
        {"encryption-keys": [{"key-id": "k", "encrypted-key-metadata": "eA=="}]},
    ),
}


@pytest.mark.parametrize("unreadable,mended", MENDED.values(), ids=MENDED)
def test_mend_corrects_without_loss(unreadable: Json, mended: Json) -> None:
    """The commit leaves a document without problems, which differs in that place, and a second one changes nothing."""
    base = {**appended(2, 3), **unreadable}
    assert [each.remedy for each in find_problems(base)] == [MENDABLE]

    new = commit(base, {"action": MEND})

    assert {key: new[key] for key in mended} == mended
    assert {key for key in new if new[key] != base.get(key)} == {*mended, "last-updated-ms", "metadata-log"}
    assert not find_problems(new)
    assert commit(new, {"action": MEND}) is new


@pytest.mark.parametrize("key", ["statistics", "partition-statistics", "encryption-keys"])
def test_mend_leaves_out_null_lists(key: str) -> None:
    """A list that is null has no rows, and readers need none."""
    base: Json = {**appended(2, 3), key: None}
    assert [each.remedy for each in find_problems(base)] == [MENDABLE]

    new = commit(base, {"action": MEND})

    assert key not in new
    assert not find_problems(new)


@pytest.mark.parametrize("key,default", [("schemas", "current-schema-id"), ("partition-specs", "default-spec-id")])
def test_mend_corrects_the_default_of_a_list_that_is_missing(key: str, default: str) -> None:
    """Readers of version 1 take the schema and the partition fields from beside the lists, and the commit writes them
    into lists.
    """
    base: Json = {**appended(1, 1), default: 2}
    del base[key]
    assert [each.remedy for each in find_problems(base)] == [MENDABLE]

    new = commit(base, {"action": MEND})

    assert (new[default], len(rows(new, key))) == (0, 1)
    assert not find_problems(new)
    assert commit(new, {"action": MEND}) is new


def test_mend_writes_a_fraction_where_an_integer_is_equal() -> None:
    """`5` and `5.0` compare as equal, but Iceberg's Java library reads only one as the default of a double."""
    base = {**table(3), **with_default("double", 5)}

    new = commit(base, {"action": MEND})

    assert b'"write-default":5.0' in encode(new)


def test_pyiceberg_reads_a_mended_table() -> None:
    """PyIceberg refuses the stored document, and reads the next one."""
    base = {**table(), **one_field("decimal( 9 , 2 )")}
    with pytest.raises(ValidationError, match="Could not parse"):
        TableMetadataUtil.parse_raw(encode(base).decode())

    new = commit(base, {"action": MEND})

    assert TableMetadataUtil.parse_raw(encode(new).decode()).schemas[0].fields[1].name == "a"


DAYS = partition(1, "b", "day", **{"field-id": 1000})
KEPT: dict[str, tuple[Json, str, list[Json]]] = {
    "impossible date": (
        with_default("date", "2024-02-30"),
        "add a schema without the fault and make it current (add-schema, set-current-schema -1), then remove schema 0",
        [
            {"action": "add-schema", "schema": schema(field(1, "id"), field(2, "a", "date"))},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "remove-schemas", "schema-ids": [0]},
        ],
    ),
    "moment without a zone": (
        with_default("timestamptz", "2025-03-04T05:06:07"),
        "remove schema 0",
        [
            {"action": "add-schema", "schema": schema(field(1, "id"), field(2, "a", "timestamptz"))},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "remove-schemas", "schema-ids": [0]},
        ],
    ),
    "former schema": (
        {
            "schemas": [
                schema(**{"schema-id": 0}),
                schema(field(9, "a", "uuid", **{"write-default": "no"}), **{"schema-id": 1}),
            ]
        },
        "remove schema 1 (remove-schemas)",
        [{"action": "remove-schemas", "schema-ids": [1]}],
    ),
    "column named like a partition field": (
        {
            "schemas": [schema(field(1, "a", "date"), field(2, "b"), **{"schema-id": 0})],
            "partition-specs": [{"spec-id": 0, "fields": [DAYS]}],
            "last-partition-id": 1000,
        },
        "rename the column",
        [
            {"action": "add-schema", "schema": schema(field(1, "a", "date"), field(2, "c"))},
            {"action": "set-current-schema", "schema-id": -1},
        ],
    ),
    "blob without a type": (
        {"statistics": [{**FILE_ENTRY, "blob-metadata": [{}]}]},
        "remove the statistics of snapshot 200 (remove-statistics)",
        [{"action": "remove-statistics", "snapshot-id": 200}],
    ),
    "partition statistics without a path": (
        {"partition-statistics": [{**FILE_ENTRY, "statistics-path": ""}]},
        "remove-partition-statistics",
        [{"action": "remove-partition-statistics", "snapshot-id": 200}],
    ),
    "key that is not base64": (
        {"encryption-keys": [{"key-id": "k", "encrypted-key-metadata": "!"}]},
        "remove encryption key k",
        [{"action": "remove-encryption-key", "key-id": "k"}],
    ),
    "snapshot without a manifest list": (
        {"snapshots": [snapshot(1, version=3, **{"manifest-list": ""}), snapshot(2, version=3)]},
        "remove snapshot 100 (remove-snapshots)",
        [{"action": "remove-snapshots", "snapshot-ids": [100]}],
    ),
    "reference of no snapshot": (
        {"refs": {"main": {"type": "branch", "snapshot-id": 200}, "b": {"type": "tag", "snapshot-id": 9}}},
        "remove reference 'b' (remove-snapshot-ref)",
        [{"action": "remove-snapshot-ref", "ref-name": "b"}],
    ),
}


@pytest.mark.parametrize("unreadable,remedy,healing", KEPT.values(), ids=KEPT)
def test_refusal_names_the_healing_commit(unreadable: Json, remedy: str, healing: list[Json]) -> None:
    """Nothing is changed where something would be lost, and the commit that the message names heals the table."""
    base = {**appended(2, 3), **unreadable}

    with pytest.raises(BadRequest) as caught:
        commit(base, {"action": MEND})
    new = commit(base, *healing)

    assert remedy in caught.value.message
    assert [each.remedy == MENDABLE for each in find_problems(base)] == [False]
    assert not find_problems(new)


@pytest.mark.parametrize("version", [1, 2])
def test_keys_of_an_older_version_are_a_problem(version: int) -> None:
    """iceberg-go refuses a table that has keys and a version before 3. An upgrade heals it."""
    base = {**appended(1, version), "encryption-keys": [{"key-id": "k", "encrypted-key-metadata": "eA=="}]}
    (problem,) = find_problems(base)

    healed = commit(base, {"action": "upgrade-format-version", "format-version": 3})

    assert "upgrade-format-version" in problem.remedy
    assert not find_problems(healed)


def test_problems_of_two_kinds_are_distinguished() -> None:
    """What the commit corrects, and what the owner must correct first."""
    base = {**appended(2, 3), **with_default("date", "no"), "last-sequence-number": 1}

    remedies = [each.remedy for each in find_problems(base)]

    assert remedies[0] == MENDABLE
    assert "remove schema 0" in remedies[1]


@pytest.mark.parametrize("key", ["schemas", "snapshots", "statistics", "refs", "encryption-keys", "format-version"])
@pytest.mark.parametrize("value", [None, 5, "x", [5], [{}], {}, [{"fields": [5]}], {"a": 5}])
def test_any_document_has_a_list_of_problems(key: str, value: object) -> None:
    """A damaged part is a problem, never an error of the search."""
    problems = find_problems({**appended(1, 3), key: value})

    assert all(each.reason and each.remedy for each in problems)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_ordinary_tables_have_no_problems(version: int) -> None:
    """The commit changes nothing."""
    base = appended(2, version)

    assert not find_problems(base)
    assert commit(base, {"action": MEND}) is base
    assert rows(base, "snapshots")
