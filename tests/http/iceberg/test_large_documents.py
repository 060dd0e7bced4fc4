# SPDX-License-Identifier: Apache-2.0
"""Large bodies and documents, which worker processes handle: same answers and same refusals as for small ones."""

from __future__ import annotations

import json

import pytest

from limnos.services.request.offloaded_work import DOCUMENT_BYTES_MAX, REQUEST_BYTES_MAX
from tests.http.driver import DriverNode
from tests.http.iceberg.wire import (
    SCHEMA,
    commit,
    creation,
    error_of,
    local,
    make_space,
    make_table,
    metadata_of,
    point,
    set_properties,
    snapshot,
    space_path,
    table_path,
)

PADDING = "x" * (REQUEST_BYTES_MAX + 1)
HUGE = {f"k{number}": "x" * 1000 for number in range(DOCUMENT_BYTES_MAX // 1000 + 10)}


def without(metadata: object, *keys: str) -> dict:
    """Return metadata without the fields that differ between tables."""
    assert isinstance(metadata, dict)
    varying = {"table-uuid", "location", "last-updated-ms", "metadata-log", *keys}
    return {key: value for key, value in metadata.items() if key not in varying}


@pytest.fixture
def busy(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that records the names of offloaded work."""
    done: list[str] = []
    do = node.built.services.offloader.do

    async def note(name: str, *parts: bytes) -> list[bytes]:
        done.append(name)
        return await do(name, *parts)

    monkeypatch.setattr(node.built.services.offloader, "do", note)
    return done


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_large_commit_changes_a_table_like_a_small_one(node: DriverNode, busy: list[str], codec: str) -> None:
    """A large commit changes a table like a small one, and so do later commits to the large table."""
    for name in "sl":
        make_table(node, "a", name, properties={"write.metadata.compression-codec": codec})

    for some in range(0, len(HUGE), 10):
        part = dict(list(HUGE.items())[some : some + 10])
        assert commit(node, "a", "s", updates=[{"action": "set-properties", "updates": part}]).status == 200
    answer = commit(node, "a", "l", updates=[{"action": "set-properties", "updates": HUGE}])
    after = commit(node, "a", "l", updates=[snapshot(1), point(1)])
    same = commit(node, "a", "s", updates=[snapshot(1), point(1)])

    assert (answer.status, after.status, same.status) == (200, 200, 200)
    large, small = (without(metadata_of(node, "a", name), "snapshot-log") for name in "ls")
    for each in (large, small):
        each["snapshots"][0].pop("manifest-list")  # it is below the table's own location
    assert large == small
    assert local(after["metadata-location"]).exists()
    assert {"iceberg-commit"} == set(busy)


def test_large_commit_is_refused_like_a_small_one(node: DriverNode, busy: list[str]) -> None:
    """A large commit is refused like a small one: requirement, invalid update, malformed JSON, missing table."""
    make_table(node, "a", "t")
    padding = set_properties(k=PADDING)
    wrong = {"type": "assert-table-uuid", "uuid": "x"}

    conflict = commit(node, "a", "t", updates=[padding], requirements=[wrong])
    unknown = commit(node, "a", "t", updates=[padding, {"action": "frobnicate"}])
    broken = node.ask("POST", table_path("a", "t"), b'{"updates":[' + PADDING.encode())
    missing = commit(node, "a", "gone", updates=[padding])

    assert error_of(conflict)[:2] == (409, "CommitFailedException")
    assert error_of(unknown)[:2] == (400, "IllegalArgumentException")
    assert error_of(broken)[0] == 400
    assert error_of(missing)[:2] == (404, "NoSuchTableException")
    assert "k" not in metadata_of(node, "a", "t")["properties"]


def test_large_commit_without_effect_changes_nothing(node: DriverNode, busy: list[str]) -> None:
    """A large commit without effect returns the unchanged table."""
    table = make_table(node, "a", "t")

    answer = commit(node, "a", "t", updates=[{"action": "remove-properties", "removals": [PADDING]}])

    assert answer["metadata-location"] == table["metadata-location"]
    assert busy == ["iceberg-commit"]


def test_large_create_gives_the_same_table_as_a_small_one(node: DriverNode, busy: list[str]) -> None:
    """A large create gives the same table as a small one, with one more property."""
    make_space(node, "a")
    body = {"schema": SCHEMA, "properties": {"k": PADDING}}

    large = node.post(f"{space_path('a')}/tables", {"name": "l", **body})
    small = node.post(f"{space_path('a')}/tables", {"name": "s", "schema": SCHEMA})
    refused = node.post(f"{space_path('a')}/tables", {"name": "n", **body, "schema": {"type": "list"}})

    assert (large.status, small.status, refused.status) == (200, 200, 400)
    assert without(metadata_of(node, "a", "l"), "properties") == without(metadata_of(node, "a", "s"), "properties")
    assert large["metadata"]["properties"]["k"] == PADDING
    assert busy == ["iceberg-create"] * 2


def test_large_staged_create_gives_the_same_table_as_a_small_one(node: DriverNode, busy: list[str]) -> None:
    """A large staged create, and a large commit of it, create the same table as small ones."""
    make_space(node, "a")

    staged = node.post(
        f"{space_path('a')}/tables",
        {"name": "t", "schema": SCHEMA, "stage-create": True, "properties": {"k": PADDING}},
    )
    updates = [*creation(str(staged["metadata"]["location"])), set_properties(k=PADDING)]
    created = commit(node, "a", "t", updates=updates, requirements=[{"type": "assert-create"}])
    again = commit(node, "a", "t", updates=updates, requirements=[{"type": "assert-create"}])

    assert (staged.status, created.status, again.status) == (200, 200, 409)
    assert metadata_of(node, "a", "t")["properties"]["k"] == PADDING
    assert busy[:2] == ["iceberg-create", "iceberg-commit-create"]


def test_large_file_is_registered(node: DriverNode, busy: list[str]) -> None:
    """A large metadata file is registered unchanged, and a location without a scheme gets one."""
    table = make_table(node, "a", "t", properties={"k": PADDING})
    file = local(table["metadata-location"])
    written = json.loads(file.read_bytes())
    file.write_text(json.dumps(written | {"location": written["location"].removeprefix("file://")}))
    node.delete(table_path("a", "t"))

    answer = node.post(
        f"{space_path('a')}/register", {"name": "u", "metadata-location": str(table["metadata-location"])}
    )

    assert answer.status == 200
    assert metadata_of(node, "a", "u") == written
    assert busy[-2:] == ["iceberg-register", "iceberg-relocate"]


def test_load_of_a_large_table_can_be_limited_to_references(node: DriverNode, busy: list[str]) -> None:
    """On request, a load of a large table returns only the snapshots of references."""
    make_table(node, "a", "t", properties=HUGE)
    commit(node, "a", "t", updates=[snapshot(1), point(1), snapshot(2), point(2)])

    answer = node.get(f"{table_path('a', 't')}?snapshots=refs")

    assert [row["snapshot-id"] for row in answer["metadata"]["snapshots"]] == [200]
    assert busy[-1] == "iceberg-refs-only"


@pytest.mark.parametrize("padding", ["", PADDING])
def test_future_client_times_are_refused_with_the_setting(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch, padding: str
) -> None:
    """With the server's setting, commits, staged creates and registered files with future times are refused, large or
    small.
    """
    make_table(node, "a", "t")
    now_ms = 1_700_000_000_100
    monkeypatch.setattr(node.built.services.store.time, "now_ms", lambda: now_ms)
    node.built.services.defaults = node.built.services.defaults._replace(clock_ahead_ms=50)
    padded = set_properties(k=padding)
    ahead, fits = snapshot(1), snapshot(1)
    ahead["snapshot"] = {**ahead["snapshot"], "timestamp-ms": now_ms + 51}  # type: ignore[dict-item]
    fits["snapshot"] = {**fits["snapshot"], "timestamp-ms": now_ms + 50}  # type: ignore[dict-item]
    file = local(metadata_of(node, "a", "t")["location"]) / "metadata" / "00009-ahead.metadata.json"
    metadata = {
        **metadata_of(node, "a", "t"),
        "table-uuid": "0b7a7a0e-6f0a-4d3b-9c76-2f4b8f9d3a11",
        "last-updated-ms": now_ms + 51,
    }
    file.write_text(json.dumps({**metadata, "properties": {"k": padding}}))

    refused = [
        commit(node, "a", "t", updates=[padded, ahead]),
        commit(
            node,
            "a",
            "new",
            updates=[*creation(f"file://{file.parent.parent}-new"), padded, ahead],
            requirements=[{"type": "assert-create"}],
        ),
        node.post(f"{space_path('a')}/register", {"name": "r", "metadata-location": f"file://{file}"}),
    ]

    for answer in refused:
        assert error_of(answer)[:2] == (400, "IllegalArgumentException"), answer.body
        assert "1 s later than the server's clock allows" in error_of(answer)[2]
    assert commit(node, "a", "t", updates=[padded, fits, point(1)]).status == 200
    assert metadata_of(node, "a", "t")["last-updated-ms"] == now_ms
