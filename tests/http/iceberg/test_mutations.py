# SPDX-License-Identifier: Apache-2.0
"""Thousands of random bodies with one or two mistakes, by fixed seeds: none causes a server error."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http.driver import DriverNode
from tests.http.iceberg.wire import (
    MISSING_LIST,
    SCHEMA,
    commit,
    creation,
    local,
    make_space,
    make_table,
    node_over,
    placed,
    point,
    snapshot,
    space_path,
    table_path,
)

ROUNDS = 400
ODD: list[object] = [
    None,
    True,
    False,
    0,
    -1,
    1,
    1000,
    2**31,
    2**53,
    2**63,
    -(2**63) - 1,
    10**40,
    0.5,
    -0.0,
    1e300,
    "",
    " ",
    "x",
    "\x00",
    "é",
    "\ud83d\ude00",
    "x" * 300,
    "-1",
    "main",
    "long",
    "struct",
    "decimal(0,0)",
    "bucket[0]",
    "file:///",
    "s3://",
    [],
    [[]],
    [None],
    [0],
    [{}],
    ["x"],
    {},
    {"": ""},
    {"type": "struct"},
    {"type": "list"},
    {"a": {"b": [1, 2.5, None]}},
]
FIELDS = [{"source-id": 1, "name": "p", "transform": "bucket[4]", "field-id": 1000}]
ORDER = [{"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}]
UPDATES: list[dict] = [
    {"action": "assign-uuid", "uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1"},
    {"action": "upgrade-format-version", "format-version": 2},
    {"action": "add-schema", "schema": {**SCHEMA, "identifier-field-ids": []}, "last-column-id": 2},
    {"action": "set-current-schema", "schema-id": -1},
    {"action": "add-spec", "spec": {"spec-id": 1, "fields": FIELDS}},
    {"action": "set-default-spec", "spec-id": -1},
    {"action": "add-sort-order", "sort-order": {"order-id": 1, "fields": ORDER}},
    {"action": "set-default-sort-order", "sort-order-id": -1},
    snapshot(1),
    point(1),
    {
        "action": "set-statistics",
        "statistics": {
            "snapshot-id": 100,
            "statistics-path": MISSING_LIST,
            "file-size-in-bytes": 1,
            "file-footer-size-in-bytes": 1,
            "blob-metadata": [],
        },
    },
    {
        "action": "set-partition-statistics",
        "partition-statistics": {"snapshot-id": 100, "statistics-path": MISSING_LIST, "file-size-in-bytes": 1},
    },
    {"action": "set-properties", "updates": {"write.metadata.previous-versions-max": "5", "k": "v"}},
    {"action": "remove-properties", "removals": ["k"]},
    {"action": "remove-snapshot-ref", "ref-name": "gone"},
    {"action": "remove-snapshots", "snapshot-ids": [100]},
    {"action": "remove-schemas", "schema-ids": [7]},
    {"action": "remove-partition-specs", "spec-ids": [7]},
    {"action": "remove-statistics", "snapshot-id": 7},
    {"action": "add-encryption-key", "encryption-key": {"key-id": "k", "encrypted-key-metadata": "eA=="}},
]
REQUIREMENTS: list[dict] = [
    {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
    {"type": "assert-current-schema-id", "current-schema-id": 0},
    {"type": "assert-default-spec-id", "default-spec-id": 0},
]
CREATE = {
    "name": "made",
    "schema": SCHEMA,
    "location": None,
    "partition-spec": {"spec-id": 0, "fields": FIELDS},
    "write-order": {"order-id": 1, "fields": ORDER},
    "stage-create": False,
    "properties": {"format-version": "2", "k": "v"},
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverNode]:
    """One node for all tests."""
    with node_over(tmp_path_factory.mktemp("mutations")) as running:
        make_space(running, "a")
        yield running


def places(value: object) -> Iterator[tuple[object, object]]:
    """Yield every container and key of a value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(inside):
        yield value, key
        yield from places(item)


def mutated(chance: random.Random, value: object) -> object:
    """Return a copy of a JSON value with one or two mistakes."""
    changed = copy.deepcopy(value)
    for _ in range(chance.choice([1, 1, 2])):
        candidates = list(places(changed))
        if not candidates:
            break
        container, key = chance.choice(candidates)
        kind = chance.randrange(4)
        if kind == 0:
            del container[key]  # type: ignore[attr-defined]
        elif kind == 1 and isinstance(container, list):
            container.append(copy.deepcopy(container[key]))  # type: ignore[call-overload]
        else:
            container[key] = chance.choice(ODD)  # type: ignore[index]
    return changed


@pytest.mark.parametrize("seed", range(4))
def test_mutated_commits_succeed_or_are_refused(node: DriverNode, seed: int) -> None:
    """A commit with mistakes succeeds or is refused with 400 or 409, and so are all later commits to the table."""
    chance = random.Random(seed)
    for number in range(ROUNDS // 4):
        name = f"t{seed}_{number // 20}"
        if number % 20 == 0:
            make_table(node, "a", name)
        updates = placed(node, "a", name, updates=chance.sample(UPDATES, chance.randint(1, 6)))
        body = {"requirements": chance.sample(REQUIREMENTS, chance.randint(0, 1)), "updates": updates}
        sent = mutated(chance, body)

        answer = node.ask("POST", table_path("a", name), json.dumps(sent).encode())

        assert answer.status in (200, 400, 409), (sent, answer.body)


@pytest.mark.parametrize("seed", range(4))
def test_mutated_creates_succeed_or_are_refused(node: DriverNode, seed: int) -> None:
    """A create with a mistake succeeds or is refused as invalid; a created table accepts commits."""
    chance = random.Random(seed)
    for number in range(ROUNDS // 4):
        sent = mutated(chance, {**CREATE, "name": f"c{seed}_{number}"})

        answer = node.ask("POST", f"{space_path('a')}/tables", json.dumps(sent).encode())

        assert answer.status in (200, 400, 409), (sent, answer.body)
        if answer.status == 200 and isinstance(sent, dict) and not sent.get("stage-create"):
            after = commit(node, "a", str(sent["name"]), updates=[{"action": "set-properties", "updates": {"n": "1"}}])
            assert after.status == 200, (sent, after.body)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("version", [1, 2, 3])
def test_mutated_metadata_files_are_registered_or_refused(
    node: DriverNode, tmp_path: Path, seed: int, version: int
) -> None:
    """A metadata file with a mistake is refused, or becomes a table that accepts every kind of commit."""
    chance = random.Random(seed)
    table_name = f"k{version}_{seed}"
    table = make_table(node, "a", table_name, properties={"format-version": str(version)})
    file = local(table["metadata-location"])
    whole = json.loads(file.read_bytes())
    node.delete(table_path("a", table_name))
    for number in range(ROUNDS // 16):
        sent = mutated(chance, whole)
        copied = file.with_name(f"{number:05d}-x.metadata.json")
        copied.write_text(json.dumps(sent))
        name = f"r{version}_{seed}_{number}"

        answer = node.post(f"{space_path('a')}/register", {"name": name, "metadata-location": f"file://{copied}"})

        assert answer.status in (200, 400, 409), (sent, answer.body)
        if answer.status == 200:
            for update in chance.sample(UPDATES, 6):
                after = commit(node, "a", name, updates=[update])
                assert after.status in (200, 400, 409), (sent, update, after.body)
            node.delete(table_path("a", name))


@pytest.mark.parametrize("seed", range(2))
def test_mutated_staged_creates_succeed_or_are_refused(node: DriverNode, seed: int) -> None:
    """The commit of a staged create with a mistake creates the table, or is refused as invalid."""
    chance = random.Random(seed)
    staged = node.done("POST", f"{space_path('a')}/tables", {"name": "s", "schema": SCHEMA, "stage-create": True})
    location = str(staged["metadata"]["location"])
    for number in range(ROUNDS // 8):
        sent = mutated(
            chance, {"requirements": [{"type": "assert-create"}], "updates": creation(f"{location}{number}")}
        )

        answer = node.ask("POST", table_path("a", f"s{seed}_{number}"), json.dumps(sent).encode())

        assert answer.status in (200, 400, 404, 409), (sent, answer.body)
