# SPDX-License-Identifier: Apache-2.0
"""Increments of Lance tables over random histories: the rows read before with the increment are the rows of now."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from limnos.pipeline.engine.lance.increments import added_fragments
from limnos.pipeline.engine.lance.reading import digest_of
from limnos.pipeline.failures import WholeReadNeeded
from limnos.spark.lance.reading import LanceTableFiles

STORIES = 60
SEED = 20261129


class Story:
    """A table that one client writes, in steps chosen at random."""

    def __init__(self, path: Path, chance: random.Random) -> None:
        self.path, self.chance, self.next = str(path), chance, 0
        self.append()

    @property
    def dataset(self) -> lance.LanceDataset:
        """The table's newest version."""
        return lance.dataset(self.path)

    def _rows(self) -> pa.Table:
        count = self.chance.randint(1, 5)
        self.next += count
        return pa.table({"id": range(self.next - count, self.next), "x": [0] * count})

    def append(self) -> None:
        """Append rows as a fragment."""
        lance.write_dataset(self._rows(), self.path, mode="append")

    def compact(self) -> None:
        """Merge all fragments."""
        self.dataset.optimize.compact_files(target_rows_per_fragment=1000)

    def delete(self) -> None:
        """Delete an old or a new row."""
        self.dataset.delete(f"id = {self.chance.randrange(self.next)}")

    def update(self) -> None:
        """Change an old or a new row."""
        self.dataset.update({"x": "x + 1"}, where=f"id = {self.chance.randrange(self.next)}")

    def index(self) -> None:
        """Build an index, which changes no row. Pylance cannot describe a compaction after it."""
        self.dataset.create_scalar_index("id", "BTREE", replace=True)

    def overwrite(self) -> None:
        """Replace all rows."""
        lance.write_dataset(self._rows(), self.path, mode="overwrite")

    def restore(self) -> None:
        """Make an older version the newest one."""
        lance.dataset(self.path, version=self.chance.randint(1, int(self.dataset.version))).restore()


def test_added_fragments_have_exactly_the_new_rows(tmp_path: Path) -> None:
    """In random histories the rows of a version, with those that are found to be new, are the rows of a later version.
    Appends and compactions alone need no full read, unless a compaction has rewritten an index.
    """
    chance = random.Random(SEED)
    seen: Counter[str] = Counter()
    for number in range(STORIES):
        story = Story(tmp_path / str(number), chance)
        harmless: list[Callable[[], None]] = [story.append, story.append, story.compact]
        others = [] if number % 2 else [story.index, story.delete, story.update, story.restore, story.overwrite]
        for _ in range(chance.randint(0, 3)):
            chance.choice(harmless)()
        old = story.dataset
        for _ in range(chance.randint(1, 5)):
            chance.choice([*harmless, *others])()
        new = story.dataset
        since, until = (LanceTableFiles(story.path, int(each.version), {}) for each in (old, new))
        before, after = (Counter(map(str, each.to_table().to_pylist())) for each in (old, new))
        try:
            added = added_fragments(until, since=since, digest=digest_of(old))
        except WholeReadNeeded:
            assert others
            seen["whole"] += 1
            continue
        reads = [*added.earlier, (until.version, added.current)]
        for version, ids in reads:
            dataset = lance.dataset(story.path, version=version)
            fragments = [each for each in dataset.get_fragments() if each.fragment_id in ids]
            assert len(fragments) == len(ids)
            before.update(str(row) for each in fragments for row in each.to_table().to_pylist())

        assert before == after, f"story {number} of seed {SEED}: {reads}"
        seen["compacted" if added.earlier else "plain"] += 1
    assert min(seen[kind] for kind in ("whole", "plain", "compacted")) > 3, seen


@pytest.mark.parametrize("lie", ["rows", "fragments"])
def test_false_compaction_needs_a_full_read(tmp_path: Path, lie: str) -> None:
    """A commit that calls itself a compaction, and has fewer rows or replaces other fragments, is not believed."""
    path = str(tmp_path / "t")
    for start in (0, 10, 20):
        old = lance.write_dataset(pa.table({"id": range(start, start + 10)}), path, mode="append")
    other = pa.table({"id": range(100, 105 if lie == "rows" else 120)})
    fragments = lance.fragment.write_fragments(other, path, mode="append")
    group = lance.LanceOperation.RewriteGroup(
        old_fragments=[each.metadata for each in old.get_fragments()[:2]], new_fragments=fragments
    )
    rewrite = lance.LanceOperation.Rewrite(groups=[group], rewritten_indices=[])
    new = lance.LanceDataset.commit(path, rewrite, read_version=int(old.version))
    if lie == "fragments":
        new.delete("id = 25")
    files = [LanceTableFiles(path, int(each.version), {}) for each in (old, lance.dataset(path))]

    with pytest.raises(WholeReadNeeded, match="rows were changed or removed in version"):
        added_fragments(files[1], since=files[0], digest=digest_of(old))


def test_version_of_another_table_needs_a_full_read(tmp_path: Path) -> None:
    """A checkpoint of a table that was dropped and created again, or of a version that is gone, is not continued."""
    path = str(tmp_path / "t")
    old = lance.write_dataset(pa.table({"id": [1]}), path)
    lance.write_dataset(pa.table({"id": [2]}), path, mode="append")
    files = [LanceTableFiles(path, each, {}) for each in (1, 2)]
    with pytest.raises(WholeReadNeeded, match="dropped and created again"):
        added_fragments(files[1], since=files[0], digest="0" * 32)
    lance.dataset(path).add_columns({"more": "id"})

    with pytest.raises(WholeReadNeeded, match="columns were changed"):
        added_fragments(LanceTableFiles(path, 3, {}), since=files[0], digest=digest_of(old))
