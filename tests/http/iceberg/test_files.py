# SPDX-License-Identifier: Apache-2.0
"""Missing metadata files, and purges: a purge deletes exactly the files that the metadata lists."""

from __future__ import annotations

import io
from pathlib import Path

import fastavro
import pytest

from tests.http.driver import DriverNode
from tests.http.iceberg.wire import (
    ROOT,
    SCHEMA,
    commit,
    error_of,
    files_of,
    foreign_paths_accepted,
    local,
    make_space,
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
    "type": "record",
    "name": "manifest_entry",
    "fields": [
        {"name": "data_file", "type": {"type": "record", "name": "r2", "fields": [{"name": "file_path", **STRING}]}}
    ],
}


def avro(path: Path, schema: dict[str, object], rows: list[dict[str, object]]) -> str:
    """Write an Avro file. Returns its location."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = io.BytesIO()
    fastavro.writer(data, fastavro.parse_schema(schema), rows)
    path.write_bytes(data.getvalue())
    return f"file://{path}"


def append(node: DriverNode, number: int, *, outside: Path | None = None) -> set[str]:
    """Append two data files to table `a.t` by a manifest. Returns all files of the snapshot."""
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


def purge(node: DriverNode) -> None:
    """Drop table `a.t` with purge, and run the task."""
    assert node.delete(f"{table_path('a', 't')}?purgeRequested=true").status == 204
    while node.runner.run(node.built.upkeep.run_one()):
        pass


def test_purge_deletes_only_files_listed_in_the_metadata(lake: DriverNode) -> None:
    """A purge deletes data files, manifests, manifest lists and metadata files; unreferenced files and other tables'
    files stay.
    """
    make_table(lake, "a", "other")
    table = make_table(lake, "a", "t")
    ours = append(lake, 1) | append(lake, 2) | {str(local(table["metadata-location"]))}
    stray = local(table["metadata"]["location"]) / "data" / "stray.parquet"
    stray.write_bytes(b"x")
    outside = lake.data / "outside.parquet"
    ours |= append(lake, 3, outside=outside) - {str(outside)}
    others = set(files_of(lake)) - ours

    purge(lake)

    assert set(files_of(lake)) == others
    assert str(stray) in others
    assert outside.exists()
    assert lake.get(table_path("a", "t")).status == 404


def test_purge_ignores_missing_files(node: DriverNode) -> None:
    """A purge ignores missing files, and an interrupted purge is completed."""
    make_table(node, "a", "t")
    ours = append(node, 1)
    append(node, 2)
    for path in ours:
        if path.endswith((".avro", "1-0.parquet")):
            Path(path).unlink()

    purge(node)

    assert [path for path in files_of(node) if not path.endswith("1-1.parquet")] == []


@pytest.mark.parametrize("gc", ["true", "false"])
def test_purge_keeps_data_files_with_gc_disabled(node: DriverNode, gc: str) -> None:
    """A purge keeps the data files of a table with `gc.enabled=false`, because other tables may use them."""
    make_table(node, "a", "t", properties={"gc.enabled": gc})
    append(node, 1)

    purge(node)

    assert [Path(path).suffix for path in files_of(node)] == ([] if gc == "true" else [".parquet"] * 2)


@pytest.mark.parametrize("value", ["false", "False", ""])
def test_drop_without_purge_keeps_files(node: DriverNode, value: str) -> None:
    """A drop deletes files only with the purge flag."""
    make_table(node, "a", "t")
    ours = append(node, 1)

    node.delete(f"{table_path('a', 't')}?purgeRequested={value}")

    assert node.runner.run(node.built.upkeep.run_one()) is False
    assert ours <= set(files_of(node))


def test_malformed_purge_flag_returns_400(node: DriverNode) -> None:
    """A purge flag other than true or false is refused with 400, and nothing is dropped."""
    make_table(node, "a", "t")

    with nothing_done(node):
        answer = node.delete(f"{table_path('a', 't')}?purgeRequested=maybe")

    assert error_of(answer)[:2] == (400, "IllegalArgumentException")
    assert "purgeRequested" in error_of(answer)[2]


@pytest.mark.parametrize("verify, status", [("local", 404), ("always", 404), ("never", 200)])
def test_load_detects_a_missing_metadata_file(tmp_path: Path, verify: str, status: int) -> None:
    """The next load of a table, even with an ETag, detects that its local metadata file is missing, unless the setting
    is `never`.
    """
    with node_over(tmp_path, verify=verify) as node:
        table = make_table(node, "a", "t")
        etag = node.get(table_path("a", "t")).headers["etag"]
        local(table["metadata-location"]).unlink()

        loaded = node.get(table_path("a", "t"))
        conditional = node.get(table_path("a", "t"), if_none_match=etag)
        head = node.ask("HEAD", table_path("a", "t"))

        assert loaded.status == status
        assert conditional.status == (304 if status == 200 else 404)
        assert head.status == 204
        if status == 404:
            text = f"Failed to open input stream for file: {table['metadata-location']}"
            assert error_of(loaded) == (404, "NotFoundException", text)


def test_vanished_file_does_not_stop_a_commit(node: DriverNode) -> None:
    """A commit starts from the stored document, so it succeeds and repairs a table whose metadata file is missing."""
    table = make_table(node, "a", "t")
    local(table["metadata-location"]).unlink()

    answer = commit(node, "a", "t", updates=[set_properties(k="v")])

    assert answer.status == 200
    assert node.get(table_path("a", "t"))["metadata"] == answer["metadata"]


def test_unwritable_storage_creates_no_table(node: DriverNode) -> None:
    """If the metadata file cannot be written, the table is not created, and the answer is definite."""
    table = make_table(node, "a", "t")
    (node.data / "warehouse" / "main" / "blocked").write_text("a file where a directory should be")
    place = f"file://{node.data}/warehouse/main/blocked/t"

    with nothing_done(node):
        answers = [
            node.post(
                f"{space_path('a')}/tables",
                {"name": "u", "schema": table["metadata"]["schemas"][0], "location": place},
            ),
            commit(node, "a", "t", updates=[{"action": "set-location", "location": place}]),
        ]

    assert [error_of(answer)[:2] for answer in answers] == [(503, "ServiceUnavailableException")] * 2


def victim_and(node: DriverNode) -> tuple[set[str], Path]:
    """Create a table `a.victim` with files, and an empty `a.t`. Returns the victim's files and location."""
    make_table(node, "a", "t")
    append(node, 1)
    before = set(files_of(node))
    home = local(node.get(table_path("a", "t"))["metadata"]["location"])
    node.post(
        f"{ROOT}/tables/rename",
        {"source": {"namespace": ["a"], "name": "t"}, "destination": {"namespace": ["a"], "name": "victim"}},
    )
    make_table(node, "a", "t")
    return before, home


def test_purge_keeps_files_of_other_tables(node: DriverNode) -> None:
    """A purge keeps another table's files, even if the table's metadata lists them as statistics, data, manifests,
    manifest lists or logs.
    """
    victims, home = victim_and(node)
    metadata = next(path for path in victims if path.endswith(".metadata.json"))
    statistics = {
        "snapshot-id": 1,
        "statistics-path": f"file://{metadata}",
        "file-size-in-bytes": 1,
        "file-footer-size-in-bytes": 1,
        "blob-metadata": [],
    }
    append(node, 1, outside=next(home.rglob("*.parquet")))
    updates = [
        {"action": "set-statistics", "snapshot-id": 1, "statistics": statistics},
        snapshot(2, manifest_list=f"file://{home}/metadata/snap-1.avro", parent=1),
        point(2),
    ]
    with foreign_paths_accepted():
        assert commit(node, "a", "t", updates=updates).status == 200
    own = local(node.get(table_path("a", "t"))["metadata"]["location"])

    purge(node)

    assert set(files_of(node)) == victims
    assert not own.exists()
    assert node.get(table_path("a", "victim")).status == 200


def test_location_is_reserved_until_its_purge_has_run(node: DriverNode) -> None:
    """Until a purge has run, no table can be created at the location. Afterwards the location is free and empty."""
    table = make_table(node, "a", "t")
    ours = append(node, 1)
    assert node.delete(f"{table_path('a', 't')}?purgeRequested=true").status == 204
    body = {"name": "u", "schema": SCHEMA, "location": table["metadata"]["location"]}
    early = node.post(f"{space_path('a')}/tables", body)

    assert node.runner.run(node.built.upkeep.run_one()) is True

    late = node.post(f"{space_path('a')}/tables", body)
    assert (early.status, early.headers["retry-after"], late.status) == (503, "5", 200)
    assert not ours & set(files_of(node))


@pytest.mark.parametrize("link", ["data", ""])
def test_purge_does_not_follow_links(node: DriverNode, link: str) -> None:
    """A purge does not follow symbolic links to files outside of the table's directory."""
    home = local(make_table(node, "a", "t")["metadata"]["location"])
    elsewhere = node.data / "elsewhere"
    if link:
        elsewhere.mkdir()
        (home / link).symlink_to(elsewhere)
    append(node, 1)
    if not link:
        home.rename(elsewhere)
        home.symlink_to(elsewhere)

    purge(node)

    assert len(list(elsewhere.rglob("*.parquet"))) == 2


def test_purge_deletes_files_of_a_concurrent_commit(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A purge also deletes the files of a commit between the decision and the drop."""
    make_table(node, "a", "t")
    submit, raced = node.built.services.store.submit, []

    async def after_a_commit(permit: object, mutation: object, **more: object) -> object:
        if not raced:
            raced.append(await commit_of(node))
        return await submit(permit, mutation, **more)

    async def commit_of(node: DriverNode) -> object:
        monkeypatch.setattr(node.built.services.store, "submit", submit)
        return await node._ask("POST", table_path("a", "t"), {"updates": [set_properties(k="v")]}, "admin", {})

    monkeypatch.setattr(node.built.services.store, "submit", after_a_commit)

    purge(node)

    assert [answer.status for answer in raced] == [200]
    assert files_of(node) == []


def test_purge_removes_the_directories_it_emptied(node: DriverNode) -> None:
    """A purge removes the directories that it emptied, and keeps directories with files that are not the table's."""
    make_table(node, "a", "t")
    append(node, 1)
    warehouse = node.data / "warehouse" / "main"
    stray = local(node.get(table_path("a", "t"))["metadata"]["location"]) / "data" / "deep" / "stray"
    stray.parent.mkdir()
    stray.write_text("x")

    purge(node)

    assert sorted(warehouse.rglob("*")) == [stray.parents[2], stray.parents[1], stray.parent, stray]


@pytest.mark.parametrize("location", ["/".join(["d"] * 2000), "d/" * 65, "x" * 300, "y" * 2001])
def test_too_deep_location_returns_400(node: DriverNode, location: str) -> None:
    """A location that is too deep or too long is refused with 400, and no directory is left."""
    make_table(node, "a", "t")
    place = f"file://{node.data}/warehouse/main/{location}"

    with nothing_done(node):
        answers = [
            node.post(f"{ROOT}/namespaces/a/tables", {"name": "u", "schema": SCHEMA, "location": place}),
            commit(node, "a", "t", updates=[{"action": "set-location", "location": place}]),
        ]

    assert [error_of(answer)[:2] for answer in answers] == [(400, "IllegalArgumentException")] * 2
    assert not (node.data / "warehouse" / "main" / "d").exists()


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
@pytest.mark.parametrize("end", ["", "/"])
def test_plain_path_location_is_stored_with_a_scheme(node: DriverNode, scheme: str, end: str) -> None:
    """A plain path as location is stored with a scheme, which some readers need. A location with a scheme is not
    changed.
    """
    warehouse = f"{node.data}/warehouse/main"
    make_table(node, "a", "other")
    stored = f"{scheme or 'file://'}{warehouse}"

    table = make_table(node, "a", "t", location=f"{scheme}{warehouse}/x{end}")
    update = {"action": "set-location", "location": f"{scheme}{warehouse}/x2{end}"}
    moved = commit(node, "a", "other", updates=[update])

    assert table["metadata"]["location"] == f"{stored}/x"
    assert moved["metadata"]["location"] == f"{stored}/x2"
    assert str(moved["metadata-location"]).startswith(f"{stored}/x2/metadata/")


def test_table_at_the_warehouse_itself_is_refused(node: DriverNode) -> None:
    """A table at the warehouse itself is refused, because it would contain every other table."""
    make_space(node, "a")

    answers = [
        node.post(
            f"{ROOT}/namespaces/a/tables",
            {"name": "u", "schema": SCHEMA, "location": f"file://{node.data}/warehouse/main{end}"},
        )
        for end in ("", "/")
    ]

    assert [error_of(answer)[0] for answer in answers] == [400, 400]
    assert "contains the catalog's warehouse" in error_of(answers[0])[2]
