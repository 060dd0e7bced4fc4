# SPDX-License-Identifier: Apache-2.0
"""Listing of directories: what is recognized as a table, and what is a problem of one row."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from limnos.model.harvest_formats import HARVEST_FORMATS
from limnos.spark.harvest import listing
from limnos.spark.harvest.listing import (
    DirectoryLister,
    HarvestRoot,
    ListingTask,
    TableCandidate,
    plain_text,
    visit_table,
)

V1 = "v1.metadata.json"


def plant(root: Path, *files: str) -> None:
    """Create files of one byte with their directories."""
    for each in files:
        file = root / each
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x")


def root_of(directory: Path, *formats: str) -> HarvestRoot:
    """Return the root of a harvest."""
    return HarvestRoot(location=f"file://{directory}", formats=formats or HARVEST_FORMATS)


def candidates(directory: Path, *formats: str) -> Iterator[TableCandidate]:
    """Yield the candidates of all levels."""
    lister = DirectoryLister(root_of(directory, *formats))
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        visit = lister.visit(waiting.pop())
        yield from visit.candidates
        waiting.extend(visit.below)


def rows(directory: Path, *formats: str) -> list[dict[str, object]]:
    """Return the rows of a whole directory, by the function of a task."""
    root = root_of(directory, *formats)
    table = visit_table(root, DirectoryLister(root).visit(()))
    result = [each for each in table.to_pylist() if not each["is_directory"]]
    while pending := [each["levels"] for each in table.to_pylist() if each["is_directory"]]:
        batches = list(ListingTask(root)([pa.RecordBatch.from_pydict({"levels": pending})]))
        table = pa.Table.from_batches(batches, schema=listing.SCHEMA)
        result += [each for each in table.to_pylist() if not each["is_directory"]]
    return result


def test_formats_are_recognized_by_names(tmp_path: Path) -> None:
    """Each format has its own marks, tables are not searched, and hidden directories are left out."""
    plant(tmp_path, f"a/ice/metadata/{V1}", "a/ice/data/x.parquet", f"a/ice/inner/metadata/{V1}")
    plant(tmp_path, f"a/delta/_delta_log/{7:020}.json", "a/delta/x.parquet")
    plant(tmp_path, f"vectors.lance/_versions/{3}.manifest", "vectors.lance/data/x.lance")
    plant(tmp_path, "p/x.parquet", "p/y.parquet", "hive/day=1/x.parquet", "hive/day=2/hour=3/x.parquet")
    plant(tmp_path, f"_old/t/metadata/{V1}", f".git/t/metadata/{V1}", "notes/readme.txt", "empty/metadata/x.json")
    by_name = {(each["namespace"][-1], each["name"]): each for each in rows(tmp_path)}  # type: ignore[index]
    root = tmp_path.name

    assert {path: (row["format"], row["version"]) for path, row in by_name.items()} == {
        ("a", "ice"): ("iceberg", 1),
        ("a", "delta"): ("delta", 7),
        (root, "vectors"): ("lance", 3),
        (root, "p"): ("parquet", None),
        (root, "hive"): ("parquet", None),
    }
    assert [by_name[root, name]["listed_bytes"] for name in ("p", "hive")] == [2, 2]
    assert {row["format"] for row in rows(tmp_path, "iceberg")} == {"iceberg"}


def test_newest_file_of_parquet_decides(tmp_path: Path) -> None:
    """The time is that of the newest file, and the size that of all, so that any change is seen."""
    plant(tmp_path, "p/x.parquet", "p/y.parquet", "p/_tmp.parquet", "p/readme")
    os.utime(tmp_path / "p" / "x.parquet", (5, 5))
    os.utime(tmp_path / "p" / "y.parquet", (3, 3))
    (table,) = candidates(tmp_path)

    assert table.metadata_location == f"file://{tmp_path}/p/x.parquet"
    assert table.facts == (2, 5000)


def test_links_are_problems(tmp_path: Path) -> None:
    """A link is a row, whether it leads out of the root, into it, or nowhere; a linked metadata file is not read."""
    outside = tmp_path / "outside"
    root = tmp_path / "root"
    plant(outside, f"t/metadata/{V1}")
    plant(root, f"real/metadata/{V1}", "linked/metadata/x")
    for name, target in (("out", outside / "t"), ("in", root / "real"), ("nowhere", root / "absent"), ("loop", root)):
        (root / name).symlink_to(target)
    (root / "linked" / "metadata" / V1).symlink_to(outside / "t" / "metadata" / V1)
    problems = {each.levels: each.problem for each in candidates(root)}

    assert problems.pop(("real",)) is None
    assert problems.pop(("linked",)) == "its metadata: it is a link, which is not followed"
    assert problems == {(name,): "it is a link, which is not followed" for name in ("out", "in", "nowhere", "loop")}


@pytest.mark.parametrize("name", ["a\x1fb", "a\x01b", os.fsdecode(b"latin-\xe9")])
def test_names_that_are_not_allowed_are_problems(tmp_path: Path, name: str) -> None:
    """Such a directory is not searched, and its row has a text that every reader accepts."""
    plant(tmp_path, f"{name}/t/metadata/{V1}", f"good/t/metadata/{V1}")
    by_problem = {str(row["problem"]): row for row in rows(tmp_path)}
    bad = by_problem[next(each for each in by_problem if each != "None")]

    assert len(by_problem) == 2
    assert str(bad["problem"]).startswith("its name is not allowed")
    assert str(bad["name"]).encode() == plain_text(name).encode()


def test_names_with_dots_quotes_and_slashes_of_others_are_names(tmp_path: Path) -> None:
    """What the server accepts as a name is one."""
    names = {"a.b", "it's", 'say "hi"', "tick`s", "new\nline", "Äpfel", "a%2Fb", "TABLE", "table"}
    for name in names:
        plant(tmp_path, f"{name}/t/metadata/{V1}")
    harvested = rows(tmp_path)

    assert {each["namespace"][0] for each in harvested} == names  # type: ignore[index]
    assert {each["problem"] for each in harvested} == {None}


def test_directory_that_cannot_be_listed_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are listed; a directory that is gone meanwhile is one of them."""
    lister = DirectoryLister(root_of(tmp_path))
    monkeypatch.setattr("limnos.spark.harvest.stores.ENTRIES_MAX", 2)
    plant(tmp_path, "many/1", "many/2", "many/3")
    (absent,) = lister.visit(("gone",)).candidates
    (many,) = lister.visit(("many",)).candidates

    assert absent.problem == "it cannot be listed: No such file or directory"
    assert many.problem == "it cannot be listed: it has more than 2 entries, the most that are listed"


def test_two_files_of_the_newest_version_are_a_problem(tmp_path: Path) -> None:
    """Which writer won is not known from names."""
    plant(tmp_path, "t/metadata/00002-a.metadata.json", "t/metadata/00002-b.metadata.json")
    (table,) = candidates(tmp_path)

    assert table.problem is not None
    assert "2 metadata files of version 2" in table.problem


def test_deep_directories_end(tmp_path: Path) -> None:
    """A table deeper than names may have parts is not reached, and the directory above it says so."""
    deep = "/".join(["d"] * (listing.LEVELS_MAX + 1))
    plant(tmp_path, f"{deep}/metadata/{V1}")
    (row,) = rows(tmp_path)

    assert row["problem"] == f"it is more than {listing.LEVELS_MAX} levels below the root"


def test_root_that_is_a_table_is_a_problem(tmp_path: Path) -> None:
    """Its name would be that of its namespace."""
    plant(tmp_path, f"metadata/{V1}")
    (row,) = rows(tmp_path)

    assert (row["format"], row["problem"]) == ("iceberg", "the root is itself a table: name the directory above it")
