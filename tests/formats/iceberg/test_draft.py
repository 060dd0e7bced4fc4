# SPDX-License-Identifier: Apache-2.0
"""The cost of one update does not depend on the number of updates in its commit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from limnos.formats.iceberg import requirements
from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.updates import UPDATES_MAX
from limnos.model.errors import BadRequest
from tests.formats.iceberg.samples import (
    add,
    appended,
    commit,
    field,
    order,
    partition,
    ref,
    schema,
    sort,
    spec,
    steps,
    table,
)

WIDE = schema(*[field(number, f"c{number}") for number in range(1, 501)])


def numbers(count: int) -> range:
    """Return numbers from 1."""
    return range(1, count + 1)


def add_schema(number: int) -> Json:
    """Return an add-schema update."""
    return {"action": "add-schema", "schema": schema(field(1, f"c{number}"))}


def add_spec(number: int) -> Json:
    """Return an add-spec update."""
    return {"action": "add-spec", "spec": spec(partition(number % 500 + 1, f"p{number}", f"bucket[{number}]"))}


def add_order(number: int) -> Json:
    """Return an add-sort-order update."""
    return {"action": "add-sort-order", "sort-order": order(sort(number % 500 + 1, f"bucket[{number}]"))}


def statistics(number: int, kind: str = "statistics", **more: object) -> Json:
    """Return an update that sets statistics."""
    entry: Json = {"snapshot-id": number, "statistics-path": "s3://a/b", "file-size-in-bytes": 1, **more}
    return {"action": f"set-{kind}", kind: entry}


def table_statistics(number: int) -> Json:
    """Return a set-statistics update."""
    return statistics(number, **{"file-footer-size-in-bytes": 1, "blob-metadata": []})


def key(number: int) -> Json:
    """Return an add-encryption-key update."""
    return {
        "action": "add-encryption-key",
        "encryption-key": {"key-id": f"k{number}", "encrypted-key-metadata": "eA=="},
    }


def with_snapshots(count: int) -> Json:
    """Return a table with snapshots, and a tag on each."""
    updates = [one for number in numbers(count) for one in (add(number), ref(number, f"t{number}", "tag"))]
    return commit(table(), *updates)


Case = Callable[[int], tuple[Json, list[Json]]]

CASES: dict[str, Case] = {
    "add-schema": lambda n: (table(), [add_schema(i) for i in numbers(n)]),
    "add-schema, each twice": lambda n: (table(), [add_schema(i) for i in numbers(n) for _ in "ab"]),
    "set-current-schema": lambda n: (
        commit(table(), *[add_schema(i) for i in numbers(n)]),
        [{"action": "set-current-schema", "schema-id": i} for i in numbers(n)],
    ),
    "remove-schemas": lambda n: (
        commit(table(), *[add_schema(i) for i in numbers(n)]),
        [{"action": "remove-schemas", "schema-ids": [i]} for i in numbers(n)],
    ),
    "add and remove schemas by turns": lambda n: (
        table(),
        [one for i in numbers(n) for one in (add_schema(i), {"action": "remove-schemas", "schema-ids": [i]})],
    ),
    "add-spec": lambda n: (table(schema=WIDE), [add_spec(i) for i in numbers(n)]),
    "remove-partition-specs": lambda n: (
        commit(table(schema=WIDE), *[add_spec(i) for i in numbers(n)]),
        [{"action": "remove-partition-specs", "spec-ids": [i]} for i in numbers(n)],
    ),
    "add and remove specs by turns": lambda n: (
        table(schema=WIDE),
        [one for i in numbers(n) for one in (add_spec(i), {"action": "remove-partition-specs", "spec-ids": [i]})],
    ),
    "set-default-spec": lambda n: (
        commit(table(schema=WIDE), *[add_spec(i) for i in numbers(n)]),
        [{"action": "set-default-spec", "spec-id": i} for i in numbers(n)],
    ),
    "add-sort-order": lambda n: (table(schema=WIDE), [add_order(i) for i in numbers(n)]),
    "set-default-sort-order": lambda n: (
        commit(table(schema=WIDE), *[add_order(i) for i in numbers(n)]),
        [{"action": "set-default-sort-order", "sort-order-id": i} for i in numbers(n)],
    ),
    "add-snapshot": lambda n: (table(), [add(i) for i in numbers(n)]),
    "set-snapshot-ref": lambda n: (commit(table(), add(1)), [ref(1, f"t{i}", "tag") for i in numbers(n)]),
    "main, again and again": lambda n: (with_snapshots(n), [ref(i) for i in numbers(n)]),
    "remove-snapshot-ref": lambda n: (
        with_snapshots(n),
        [{"action": "remove-snapshot-ref", "ref-name": f"t{i}"} for i in numbers(n)],
    ),
    "remove-snapshots": lambda n: (
        with_snapshots(n),
        [{"action": "remove-snapshots", "snapshot-ids": [i * 100]} for i in numbers(n)],
    ),
    "set-statistics": lambda n: (table(), [table_statistics(i) for i in numbers(n)]),
    "remove-statistics": lambda n: (
        commit(table(), *[table_statistics(i) for i in numbers(n)]),
        [{"action": "remove-statistics", "snapshot-id": i} for i in numbers(n)],
    ),
    "set-partition-statistics": lambda n: (table(), [statistics(i, "partition-statistics") for i in numbers(n)]),
    "remove-partition-statistics": lambda n: (
        commit(table(), *[statistics(i, "partition-statistics") for i in numbers(n)]),
        [{"action": "remove-partition-statistics", "snapshot-id": i} for i in numbers(n)],
    ),
    "add-encryption-key": lambda n: (table(3), [key(i) for i in numbers(n)]),
    "remove-encryption-key": lambda n: (
        commit(table(3), *[key(i) for i in numbers(n)]),
        [{"action": "remove-encryption-key", "key-id": f"k{i}"} for i in numbers(n)],
    ),
    "set-properties": lambda n: (
        table(),
        [{"action": "set-properties", "updates": {f"p{i}": "x"}} for i in numbers(n)],
    ),
    "remove-properties": lambda n: (
        table(properties={f"p{i}": "x" for i in numbers(n)}),
        [{"action": "remove-properties", "removals": [f"p{i}"]} for i in numbers(n)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_update_cost_is_linear(name: str) -> None:
    """Twice as many updates, on a table twice as large, take about twice as many calls, not four times as many."""
    (base, few), (larger, many) = CASES[name](100), CASES[name](400)

    step_count = steps(lambda: commit(base, *few))
    more = steps(lambda: commit(larger, *many))

    assert more < 5 * step_count


def test_adding_a_snapshot_costs_the_same_with_many_others() -> None:
    """A new snapshot is compared with the ids that the document keeps, not with all others. Encoding and copying the
    list are no calls.
    """

    def next_commit(base: Json, number: int) -> int:
        return steps(lambda: commit(base, add(number + 1, parent=number), ref(number + 1)))

    few, many = appended(20), appended(400)

    assert next_commit(many, 400) <= next_commit(few, 20) + 10


def test_requirement_cost_is_linear() -> None:
    """Four times as many requirements on four times as many references take about four times as many calls."""

    def make_ref_requirements(count: int) -> list[object]:
        kind = "assert-ref-snapshot-id"
        return [{"type": kind, "ref": f"t{i}", "snapshot-id": i * 100} for i in numbers(count)]

    few, many = with_snapshots(100), with_snapshots(400)

    step_count = steps(lambda: requirements.check(few, make_ref_requirements(100)))
    more = steps(lambda: requirements.check(many, make_ref_requirements(400)))

    assert more < 5 * step_count


def test_too_many_updates_are_refused() -> None:
    """A commit with more updates than the limit is BadRequest with that reason."""
    update: Json = {"action": "remove-properties", "removals": []}

    with pytest.raises(BadRequest) as caught:
        commit(table(), *[update] * (UPDATES_MAX + 1))

    assert str(UPDATES_MAX) in caught.value.message


def test_too_many_requirements_are_refused() -> None:
    """A commit with more requirements than the limit is BadRequest with that reason."""
    one = {"type": "assert-current-schema-id", "current-schema-id": 0}

    with pytest.raises(BadRequest) as caught:
        requirements.check(table(), [one] * (requirements.REQUIREMENTS_MAX + 1))

    assert str(requirements.REQUIREMENTS_MAX) in caught.value.message
