"""Metadata files that vanish, and purges: exactly what the metadata lists is deleted."""

from __future__ import annotations

import io
from pathlib import Path

import fastavro
import pytest

from tests.http.driver import Node
from tests.http.iceberg.wire import (
    commit,
    error_of,
    files_of,
    local,
    make_table,
    node_over,
    nothing_done,
    point,
    set_properties,
    snapshot,
    space_path,
    table_path,
)

STRING = {"type": "string"}
MANIFEST_LIST = {"type": "record", "name": "manifest_file", "fields": [{"name": "manifest_path", **STRING}]}
MANIFEST = {
    "type": "record", "name": "manifest_entry",
    "fields": [{"name": "data_file", "type": {"type": "record", "name": "r2", "fields": [{"name": "file_path", **STRING}]}}],
}  # fmt: skip


def avro(path: Path, schema: dict[str, object], rows: list[dict[str, object]]) -> str:
    """Write an Avro file; returns its location."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = io.BytesIO()
    fastavro.writer(data, fastavro.parse_schema(schema), rows)
    path.write_bytes(data.getvalue())
    return f"file://{path}"


def append(node: Node, number: int, *, outside: Path | None = None) -> set[str]:
    """Append two data files to table `a.t` by a manifest; returns every file that belongs to the snapshot."""
    home = local(node.get(table_path("a", "t"))["metadata"]["location"])
    data = [home / "data" / f"{number}-{part}.parquet" for part in range(2)] + ([outside] if outside else [])
    for file in data:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"PAR1")
    manifest = home / "metadata" / f"m{number}.avro"
    listed = home / "metadata" / f"snap-{number}.avro"
    rows: list[dict[str, object]] = [{"data_file": {"file_path": f"file://{file}"}} for file in data]
    avro(listed, MANIFEST_LIST, [{"manifest_path": avro(manifest, MANIFEST, rows)}])
    updates = [
        snapshot(number, manifest_list=f"file://{listed}", parent=number - 1 if number > 1 else None),
        point(number),
    ]
    answer = commit(node, "a", "t", updates=updates)
    assert answer.status == 200
    return {str(path) for path in (*data, manifest, listed, local(answer["metadata-location"]))}


def purge(node: Node) -> None:
    """Drop table `a.t` with purge, and let the worker finish."""
    assert node.delete(f"{table_path('a', 't')}?purgeRequested=true").status == 204
    while node.runner.run(node.built.upkeep.run_one()):
        pass


def test_purge_deletes_what_the_metadata_lists(lake: Node) -> None:
    """Data files, manifests, their lists and metadata files go; files beside them and other tables' stay."""
    make_table(lake, "a", "other")
    made = make_table(lake, "a", "t")
    ours = append(lake, 1) | append(lake, 2) | {str(local(made["metadata-location"]))}
    stray = local(made["metadata"]["location"]) / "data" / "stray.parquet"
    stray.write_bytes(b"x")
    outside = lake.data / "outside.parquet"
    ours |= append(lake, 3, outside=outside) - {str(outside)}
    others = set(files_of(lake)) - ours

    purge(lake)

    assert set(files_of(lake)) == others
    assert str(stray) in others
    assert outside.exists()
    assert lake.get(table_path("a", "t")).status == 404


def test_purge_may_find_files_gone(node: Node) -> None:
    """Files that are gone already do not keep a purge from deleting the rest; a purge that was begun is ended."""
    make_table(node, "a", "t")
    ours = append(node, 1)
    append(node, 2)
    for path in ours:
        if path.endswith((".avro", "1-0.parquet")):
            Path(path).unlink()

    purge(node)

    assert [path for path in files_of(node) if not path.endswith("1-1.parquet")] == []


@pytest.mark.parametrize("gc", ["true", "false"])
def test_purge_heeds_gc_enabled(node: Node, gc: str) -> None:
    """A table with `gc.enabled=false` keeps its data files: they may belong to others."""
    make_table(node, "a", "t", properties={"gc.enabled": gc})
    append(node, 1)

    purge(node)

    assert [Path(path).suffix for path in files_of(node)] == ([] if gc == "true" else [".parquet"] * 2)


@pytest.mark.parametrize("value", ["false", "False", ""])
def test_drop_without_purge(node: Node, value: str) -> None:
    """Purge is only for who asks for it."""
    make_table(node, "a", "t")
    ours = append(node, 1)

    node.delete(f"{table_path('a', 't')}?purgeRequested={value}")

    assert node.runner.run(node.built.upkeep.run_one()) is False
    assert ours <= set(files_of(node))


def test_purge_that_is_malformed(node: Node) -> None:
    """A purge flag that is neither true nor false is 400, and nothing is dropped."""
    make_table(node, "a", "t")

    with nothing_done(node):
        answer = node.delete(f"{table_path('a', 't')}?purgeRequested=maybe")

    assert error_of(answer)[:2] == (400, "IllegalArgumentException")
    assert "purgeRequested" in error_of(answer)[2]


@pytest.mark.parametrize("verify, status", [("local", 404), ("always", 404), ("never", 200)])
def test_vanished_metadata_file(tmp_path: Path, verify: str, status: int) -> None:
    """A local metadata file that is gone is noticed by the next load, 304 or not, unless the setting is `never`."""
    with node_over(tmp_path, verify=verify) as node:
        made = make_table(node, "a", "t")
        etag = node.get(table_path("a", "t")).headers["etag"]
        local(made["metadata-location"]).unlink()

        loaded = node.get(table_path("a", "t"))
        conditional = node.get(table_path("a", "t"), if_none_match=etag)
        there = node.ask("HEAD", table_path("a", "t"))

        assert loaded.status == status
        assert conditional.status == (304 if status == 200 else 404)
        assert there.status == 204
        if status == 404:
            text = f"Failed to open input stream for file: {made['metadata-location']}"
            assert error_of(loaded) == (404, "NotFoundException", text)


def test_vanished_file_does_not_stop_a_commit(node: Node) -> None:
    """A commit builds on the store's document, so it heals a table whose metadata file is gone."""
    made = make_table(node, "a", "t")
    local(made["metadata-location"]).unlink()

    answer = commit(node, "a", "t", updates=[set_properties(k="v")])

    assert answer.status == 200
    assert node.get(table_path("a", "t"))["metadata"] == answer["metadata"]


def test_storage_that_cannot_be_written(node: Node) -> None:
    """When the metadata file cannot be written the table is not made, and the answer does not claim to know less."""
    made = make_table(node, "a", "t")
    (node.data / "warehouse" / "main" / "blocked").write_text("a file where a directory should be")
    place = f"file://{node.data}/warehouse/main/blocked/t"

    with nothing_done(node):
        answers = [
            node.post(
                f"{space_path('a')}/tables",
                {"name": "u", "schema": made["metadata"]["schemas"][0], "location": place},
            ),
            commit(node, "a", "t", updates=[{"action": "set-location", "location": place}]),
        ]

    assert [error_of(answer)[:2] for answer in answers] == [(503, "ServiceUnavailableException")] * 2
