# SPDX-License-Identifier: Apache-2.0
"""Orphan files of Lance tables: files that no version names are deleted when they are old enough, and every version
stays readable.
"""

from __future__ import annotations

import os
import random
import time
import uuid
from pathlib import Path
from typing import NamedTuple

import lance
import pyarrow as pa
import pytest

from limnos.files import allow_everything
from limnos.formats.lance_orphans import (
    SUSPECTS_MAX,
    AgedFile,
    ReferenceSearch,
    own_name,
    reference_of,
    sort_files,
    varint,
)
from limnos.model.errors import StorageFailed
from limnos.model.records import CatalogRecord
from limnos.rooms.lance.services.debris import DebrisTable, delete_debris
from limnos.services.request.catalog_storage import catalog_storage_within
from limnos.services.request.named_storages import NamedStorages

OLD_S = 10 * 86_400
STORIES = int(os.environ.get("LIMNOS_TEST_ROUNDS", "3"))
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def table_at(path: Path, staged: frozenset[str] = frozenset()) -> DebrisTable:
    """Return a table at a directory, in a catalog whose warehouse is the parent directory."""
    record = CatalogRecord(type="RELATIONAL", provider="lakehouse-generic", comment=None, properties={}, in_use=True)
    return DebrisTable(
        f"file://{path}",
        catalog_storage_within(record, f"file://{path.parent}", allow_everything(), storages=NamedStorages()),
        staged,
    )


def age(path: Path) -> None:
    """Set the modification time of all files of a table back."""
    then = time.time() - OLD_S
    for each in path.rglob("*"):
        if each.is_file():
            os.utime(each, (then, then))


def swept(path: Path, **more: frozenset[str]) -> set[str]:
    """Delete the orphan files of a table. Returns the deleted files."""
    before_ms = int((time.time() - OLD_S / 2) * 1000)
    return set(delete_debris(table_at(path, **more), lambda _: None, before_ms=before_ms))


def rows(start: int, count: int = 20) -> pa.Table:
    """Return rows with consecutive ids."""
    return pa.table(
        {"id": pa.array(range(start, start + count), pa.int64()), "text": [f"w{each % 5}" for each in range(count)]}
    )


class Story(NamedTuple):
    """A table with a random history that includes files of killed writers."""

    path: Path
    dice: random.Random
    litter: set[str]

    def open(self) -> lance.LanceDataset:
        """Open the newest version of the table."""
        return lance.dataset(str(self.path))

    def leave(self, name: str, data: bytes = b"x") -> None:
        """Write a file that belongs to no commit."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        self.litter.add(name)

    def killed_insert(self) -> None:
        """Write rows without committing them."""
        before = {each.name for each in (self.path / "data").iterdir()}
        lance.fragment.write_fragments(rows(0), str(self.path), schema=self.open().schema)
        self.litter.update(f"data/{each.name}" for each in (self.path / "data").iterdir() if each.name not in before)

    def killed_commit(self) -> None:
        """Write a staged manifest with its transaction and a deletion file, without committing it."""
        newest = min(each.name for each in (self.path / "_versions").glob("*.manifest"))
        self.leave(f"_versions/{int(newest.partition('.')[0]) - 1:020d}.manifest-{uuid.uuid4()}", b"LANC")
        self.leave(f"_deletions/0-1-{self.dice.getrandbits(64)}.arrow")

    def killed_index(self) -> None:
        """Build an index without committing it."""
        self.leave(f"_indices/{uuid.uuid4()}/page_data.lance")

    def unfinished(self) -> None:
        """Leave an unfinished file and a manifest that was moved aside."""
        self.leave(f"data/.tmp{self.dice.getrandbits(32):x}")
        self.leave(f"_bypassed/18446744073709551000.manifest-{self.dice.getrandbits(32):08x}")

    def append(self) -> None:
        """Append rows."""
        lance.write_dataset(rows(self.dice.randrange(1000)), str(self.path), mode="append")

    def replace(self) -> None:
        """Replace all rows."""
        lance.write_dataset(rows(self.dice.randrange(1000)), str(self.path), mode="overwrite")

    def delete(self) -> None:
        """Delete some rows."""
        self.open().delete(f"id % {self.dice.randrange(3, 9)} = 0")

    def merge(self) -> None:
        """Merge rows."""
        merge_builder = self.open().merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        merge_builder.execute(rows(self.dice.randrange(1000)))

    def index(self) -> None:
        """Build an index, or rebuild it."""
        self.open().create_scalar_index("id", "BTREE", replace=True)

    def compact(self) -> None:
        """Compact small files."""
        self.open().optimize.compact_files()

    def restore(self) -> None:
        """Restore a version."""
        dataset = self.open()
        lance.dataset(str(self.path), version=self.dice.choice(dataset.versions())["version"]).restore()

    def branch(self) -> None:
        """Create a branch, and append rows to it."""
        self.open().create_branch(f"b{self.dice.getrandbits(32)}").insert(rows(self.dice.randrange(1000)))

    def tag(self) -> None:
        """Tag a version."""
        self.open().tags.create(f"t{self.dice.getrandbits(32)}", self.open().version)

    def whole(self) -> dict[tuple[str, int], list[object]]:
        """Read every version of every branch, by a scan and by the index."""
        rows_by_version: dict[tuple[str, int], list[object]] = {}
        main = self.open()
        for branch in ("", *main.branches.list()):
            one = main.checkout_version((branch, None)) if branch else main
            for each in one.versions():
                version = main.checkout_version((branch or None, each["version"]))
                version.validate()
                by_index = version.to_table(filter="id = 7", with_row_id=True).num_rows
                rows_by_version[branch, each["version"]] = [*version.to_table().sort_by("id").to_pylist(), by_index]
        return rows_by_version


KILLS = (Story.killed_insert, Story.killed_commit, Story.killed_index, Story.unfinished)
CHANGES = (
    Story.append,
    Story.append,
    Story.replace,
    Story.delete,
    Story.delete,
    Story.merge,
    Story.index,
    Story.compact,
    Story.restore,
    Story.branch,
    Story.tag,
)


def story(path: Path, seed: int) -> Story:
    """Execute random changes and kills."""
    history = Story(path, random.Random(seed), set())
    lance.write_dataset(rows(0), str(path))
    for _ in range(12):
        history.dice.choice(CHANGES)(history)
        if history.dice.random() < 0.4:
            history.dice.choice(KILLS)(history)
    for kill in KILLS:
        kill(history)
    return history


@pytest.mark.parametrize("seed", range(STORIES))
def test_orphan_files_are_deleted_and_all_versions_stay_readable(tmp_path: Path, seed: int) -> None:
    """After random histories with killed writers, exactly the orphan files are deleted, and all versions of all
    branches return the same rows.
    """
    history = story(tmp_path / "t", seed)
    before = history.whole()
    age(history.path)

    assert swept(history.path) == history.litter
    assert history.whole() == before
    assert swept(history.path) == set()


def test_young_orphan_files_are_not_deleted(tmp_path: Path) -> None:
    """Young orphan files are not deleted, because a writer may still commit them."""
    history = story(tmp_path / "t", 99)

    assert swept(history.path) == set()
    assert history.litter


def test_files_committed_after_the_listing_are_not_deleted(tmp_path: Path) -> None:
    """Old files are not deleted if they belong to a version that is restored or committed after the listing."""
    history = story(tmp_path / "t", 5)
    age(history.path)
    lance.dataset(str(history.path), version=1).restore()

    swept(history.path)
    assert lance.dataset(str(history.path)).count_rows() == 20


def test_files_that_are_not_lances_own_are_not_deleted(tmp_path: Path) -> None:
    """Files in a table's directories that are not Lance's own are never deleted."""
    history = Story(tmp_path / "t", random.Random(1), set())
    told_names = (
        "notes.txt",
        "data/notes.txt",
        "data/short.lance",
        "_deletions/x.arrow",
        "_indices/mine/f",
        "_versions/readme",
    )
    lance.write_dataset(rows(0), str(history.path))
    for name in told_names:
        history.leave(name)
    age(history.path)

    assert swept(history.path) == set()


def test_staged_manifest_of_newest_version_is_not_deleted(tmp_path: Path) -> None:
    """The staged manifest of a managed table's newest version is not deleted before the next version exists."""
    history = Story(tmp_path / "t", random.Random(1), set())
    lance.write_dataset(rows(0), str(history.path))
    history.killed_commit()
    (staged,) = (name for name in history.litter if name.startswith("_versions/"))
    age(history.path)

    assert staged not in swept(history.path, staged=frozenset({staged.rpartition("/")[2]}))
    assert staged in swept(history.path)


def test_unreadable_manifest_prevents_all_deletions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a manifest cannot be read, nothing is deleted."""
    history = story(tmp_path / "t", 3)
    age(history.path)

    def refuse(*_: object, **__: object) -> bytes:
        raise StorageFailed("no")

    monkeypatch.setattr("limnos.files.local.LocalFiles.read", refuse)
    before = sorted(history.path.rglob("*"))
    with pytest.raises(StorageFailed):
        swept(history.path)
    assert sorted(history.path.rglob("*")) == before


def test_file_named_anywhere_in_a_manifest_is_not_deleted() -> None:
    """A file whose name is at an unexpected place of a manifest is found by the second check, which searches the
    manifest's bytes, and is not deleted.
    """
    marks = {b"a" * 40, varint(1 << 50), uuid.uuid4().bytes}
    search = ReferenceSearch(marks)
    odd = b"\x00".join(marks)

    assert search.clear(odd) is False
    assert search.clear_by_bytes(odd) is True


def test_round_searches_a_limited_number_of_files() -> None:
    """A round searches for at most `SUSPECTS_MAX` files; the others are left for a later round."""
    search = ReferenceSearch(varint((1 << 40) + each) for each in range(SUSPECTS_MAX + 10))
    search.narrow()

    assert len(search.suspects) == SUSPECTS_MAX


@pytest.mark.parametrize(
    "name, own",
    [
        ("data/x", "data/x"),
        ("tree/dev/data/x", "data/x"),
        ("tree/a/b/_versions/1.manifest", "_versions/1.manifest"),
        ("tree/dev", "tree/dev"),
    ],
)
def test_file_names_are_relative_to_their_branch_directory(name: str, own: str) -> None:
    """The name of a file is taken relative to its branch's directory, also if the branch name contains slashes."""
    assert own_name(name) == own


def test_files_are_identified_by_name_number_or_uuid() -> None:
    """Files are identified by name, deletion files by number, and indexes by UUID. Files of unknown age are not
    deleted.
    """
    index = str(uuid.uuid4())
    files = [
        AgedFile(f"data/{'ab' * 25}.lance", 1),
        AgedFile(f"_indices/{index}/f", 1),
        AgedFile("_deletions/0-1-300.arrow", 1),
        AgedFile("data/.tmp1", 0),
        AgedFile("_versions/1.manifest", 1),
    ]
    sorted_files = sort_files(files, before_ms=2, staged=frozenset())

    assert set(sorted_files.marked) == {b"ab" * 25, uuid.UUID(index).bytes, b"\xac\x02"}
    assert sorted_files.unowned == []
    assert sorted_files.manifests == ["_versions/1.manifest"]
    assert reference_of("data/x.lance") is None
