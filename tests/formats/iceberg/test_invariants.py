# SPDX-License-Identifier: Apache-2.0
"""Random commits keep the invariants of table metadata and never modify their base."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from limnos.formats.iceberg import metadata, updates
from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.registered_metadata import check_registrable
from limnos.formats.iceberg.schema import columns
from limnos.model.errors import BadRequest, CommitConflict
from tests.formats.iceberg.samples import T0, add, field, ids, order, partition, ref, rows, schema, sort, spec, table

Step = tuple[str, int, int]
TYPES = ("long", "string", "date", "decimal(9, 2)", {"type": "struct", "fields": [field(50, "inner")]})
TRANSFORMS = ("identity", "bucket[4]", "void", "day", "truncate[2]")
MINUTE = 60_000

MAKERS: dict[str, Callable[[Json, int, int], Json]] = {
    "set": lambda _, a, b: {"action": "set-properties", "updates": {f"p{a}": str(b)}},
    "cap": lambda _, a, __: {
        "action": "set-properties",
        "updates": {"write.metadata.previous-versions-max": str(a)},
    },
    "unset": lambda _, a, b: {"action": "remove-properties", "removals": [f"p{a}", f"p{b}"]},
    "location": lambda _, a, __: {"action": "set-location", "location": f"s3://lake/{a}/"},
    "upgrade": lambda base, a, _: {
        "action": "upgrade-format-version",
        "format-version": max(int(str(base["format-version"])), a % 4),
    },
    "schema": lambda _, a, b: {
        "action": "add-schema",
        "schema": schema(field(1, "id"), field(a + 2, f"c{b}", TYPES[b % len(TYPES)], doc=f"d{a}" if a % 2 else None)),
    },
    "use schema": lambda _, a, __: {"action": "set-current-schema", "schema-id": a - 1},
    "drop schema": lambda _, a, b: {"action": "remove-schemas", "schema-ids": [a, b]},
    "spec": lambda _, a, b: {
        "action": "add-spec",
        "spec": spec(partition(1, f"p{a}", TRANSFORMS[b % 5]), partition(b + 1, f"q{b}", TRANSFORMS[a % 5])),
    },
    "use spec": lambda _, a, __: {"action": "set-default-spec", "spec-id": a - 1},
    "drop spec": lambda _, a, b: {"action": "remove-partition-specs", "spec-ids": [a, b]},
    "order": lambda _, a, b: {"action": "add-sort-order", "sort-order": order(*[sort(a + 1)] * (b % 3))},
    "use order": lambda _, a, __: {"action": "set-default-sort-order", "sort-order-id": a - 1},
    "add": lambda base, a, b: add(a, parent=b or None, **_counters(base, a, b)),
    "append": lambda base, a, b: add(_next(base) + a, parent=b or None, **_counters(base, a + 1, b)),
    "ref": lambda base, a, b: ref(_known(base, a), ("main", "main", "dev")[b % 3]),
    "head": lambda base, a, _: ref(_next(base) + a),
    "tag": lambda base, a, b: ref(_known(base, a), f"t{b}", "tag", **{"max-ref-age-ms": b + 1}),
    "drop ref": lambda _, a, __: {"action": "remove-snapshot-ref", "ref-name": ("main", "dev", "t1")[a % 3]},
    "expire": lambda base, a, b: {
        "action": "remove-snapshots",
        "snapshot-ids": [_known(base, a) * 100, (_next(base) + b) * 100],
    },
    "stats": lambda _, a, b: {
        "action": "set-partition-statistics",
        "partition-statistics": {"snapshot-id": a * 100, "statistics-path": f"s{b}", "file-size-in-bytes": 1},
    },
    "drop stats": lambda _, a, __: {"action": "remove-partition-statistics", "snapshot-id": a * 100},
    "key": lambda _, a, b: {
        "action": "add-encryption-key",
        "encryption-key": {"key-id": f"k{a}", "encrypted-key-metadata": f"{b:04}"},
    },
    "drop key": lambda _, a, __: {"action": "remove-encryption-key", "key-id": f"k{a}"},
    "unknown": lambda _, a, __: {"action": f"make-{a}"},
}


def _next(base: Json) -> int:
    """Return the number after the newest snapshot's."""
    return max((int(str(one)) // 100 for one in ids(base, "snapshots", "snapshot-id")), default=0) + 1


def _known(base: Json, choice: int) -> int:
    """Return the number of one of the table's snapshots, or 1 if it has none."""
    numbers = [int(str(one)) // 100 for one in ids(base, "snapshots", "snapshot-id")]
    return numbers[choice % len(numbers)] if numbers else 1


def _counters(base: Json, a: int, b: int) -> Json:
    """Return sequence number, row ids and time of a snapshot that mostly fits the table."""
    last, following = int(str(base.get("last-sequence-number") or 0)), int(str(base.get("next-row-id") or 0))
    fields: Json = {"timestamp-ms": int(str(base["last-updated-ms"])) + (b - 2) * MINUTE // 2}
    fields["sequence-number"] = 0 if base["format-version"] == 1 else last + (a % 4)
    return {**fields, "first-row-id": following + a % 3, "added-rows": b}


SMALL = st.integers(0, 6)
COMMITS = st.lists(st.lists(st.tuples(st.sampled_from(sorted(MAKERS)), SMALL, SMALL), max_size=4), max_size=25)
HISTORY = ("append", "head", "ref", "expire", "drop ref", "tag")
FEW = st.integers(0, 2)
HISTORIES = st.lists(st.lists(st.tuples(st.sampled_from(HISTORY), FEW, FEW), max_size=6), max_size=25)


def check_invariants(doc: Json) -> None:
    """Check the invariants of a table's metadata."""
    check_registrable(doc)
    assert metadata.decode(metadata.encode(doc)) == doc
    for key, id_key in (("schemas", "schema-id"), ("partition-specs", "spec-id"), ("sort-orders", "order-id")):
        assert len(set(ids(doc, key, id_key))) == len(rows(doc, key))
    known = ids(doc, "snapshots", "snapshot-id")
    assert len(set(known)) == len(known)
    current = metadata.current_snapshot_id(doc)
    main = metadata.references(doc).get("main")
    assert current == (main["snapshot-id"] if main else None)
    log = rows(doc, "snapshot-log")
    assert all(entry["snapshot-id"] in known for entry in log)
    assert current is None or log[-1]["snapshot-id"] == current
    times = [int(str(entry["timestamp-ms"])) for entry in log] + [int(str(doc["last-updated-ms"]))]
    assert all(later - earlier >= -MINUTE for earlier, later in itertools.pairwise(times))
    highest = max(columns(row).highest_id for row in rows(doc, "schemas"))
    assert int(str(doc["last-column-id"])) >= highest
    numbers = [int(str(one["field-id"])) for row in rows(doc, "partition-specs") for one in rows(row, "fields")]
    assert int(str(doc["last-partition-id"])) >= max(numbers, default=999)
    if doc["format-version"] == 1:
        default = next(row for row in rows(doc, "partition-specs") if row["spec-id"] == doc["default-spec-id"])
        assert doc["partition-spec"] == default["fields"]
        assert doc["schema"] in rows(doc, "schemas")
    else:
        assert "schema" not in doc
        newest = max((int(str(row.get("sequence-number", 0))) for row in rows(doc, "snapshots")), default=0)
        assert int(str(doc["last-sequence-number"])) >= newest


def check_step(base: Json, new: Json, previous: str) -> None:
    """Check the invariants between the metadata before and after a commit that changed it."""
    assert new != base
    assert new["x-foreign"] == base["x-foreign"]
    for key in ("last-column-id", "last-partition-id", "last-sequence-number", "next-row-id", "format-version"):
        assert int(str(new.get(key, 0))) >= int(str(base.get(key, 0)))
    removed_files = updates.removed_metadata_files(base, new)
    log = ids(new, "metadata-log", "metadata-file")
    assert removed_files + log == [*ids(base, "metadata-log", "metadata-file"), previous]
    assert len(log) <= metadata.previous_versions_max(new)
    assert rows(new, "metadata-log")[-1]["timestamp-ms"] == base["last-updated-ms"]


def run(version: int, commits: list[list[Step]]) -> None:
    """Apply random commits, checking after each."""
    base: Json = {**table(version), "x-foreign": {"a": [1]}}
    for number, steps in enumerate(commits):
        changes: list[object] = [MAKERS[kind](base, a, b) for kind, a, b in steps]
        before, previous = metadata.encode(base), f"f{number}"
        try:
            new = updates.apply(base, changes, now_ms=T0 + number * 1000, previous_location=previous)
        except (BadRequest, CommitConflict):
            new = base
        assert metadata.encode(base) == before
        if new is not base:
            check_step(base, new, previous)
            check_invariants(new)
        base = new


@given(version=st.sampled_from([1, 2, 3]), commits=COMMITS)
def test_random_commits_keep_metadata_valid(version: int, commits: list[list[Step]]) -> None:
    """After any commit the metadata is valid, the base is unchanged, and unknown fields are kept."""
    run(version, commits)


@given(version=st.sampled_from([1, 2, 3]), commits=HISTORIES)
def test_random_histories_keep_snapshot_log_correct(version: int, commits: list[list[Step]]) -> None:
    """After any changes of snapshots and references, the snapshot log ends with the current snapshot and names only
    existing snapshots.
    """
    run(version, commits)
