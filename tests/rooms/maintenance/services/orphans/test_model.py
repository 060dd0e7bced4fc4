# SPDX-License-Identifier: Apache-2.0
"""Random sequences of steps lose no live file, and the model detects each planted bug of the removal of orphan
files.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from limnos.files import FileKeys, place_key
from limnos.formats.avro import values_of_files
from limnos.rooms.maintenance.formats import orphans
from limnos.rooms.maintenance.services.orphans import references, removal, rounds, search
from limnos.rooms.maintenance.services.table_storage import maintained_files
from limnos.services.iceberg import orphan_fence
from limnos.store.activity.maintenance import tables_page
from limnos.store.activity.orphan_files import REMOVING
from limnos.store.objects.documents import document_read
from tests.http.driver import DriverNode
from tests.http.iceberg.wire import make_space, node_over
from tests.rooms.maintenance.services.orphans.histories import no_wait
from tests.rooms.maintenance.services.orphans.story import OrphanStory

pytestmark = pytest.mark.heavy
STEPS: Final = int(os.environ.get("LIMNOS_TEST_ORPHANS", "250"))
"""Steps on each database; `make test-orphans` runs 10,000."""
SEED: Final = int(os.environ.get("LIMNOS_TEST_ORPHANS_SEED", "53"))
SEARCH: Final = 300
"""Steps of each of the sequences, in one of which the planted bug must be detected."""
SEARCHES: Final = 12


def tell(story: OrphanStory, steps: int) -> list[str]:
    """Execute steps until a file is lost. Returns the lost files, or an empty list."""
    for number in range(steps):
        act = story.step()
        try:
            lost = story.check()
        except FileNotFoundError as error:  # a manifest or manifest list is lost
            lost = [str(error)]
        if lost:
            return [f"step {number} ({act}): {each}" for each in lost]
    return []


def test_no_live_file_is_lost(lake: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever writers, crashes and clocks do, every file that a reader may open exists, and orphan files are
    deleted.
    """
    no_wait(monkeypatch)
    story = OrphanStory(lake, seed=SEED)
    began = time.process_time()
    assert tell(story, STEPS) == []
    print(
        f"{STEPS} steps: {story.kills} kills, {story.deleted} orphans deleted of {story.orphans} left, {story.expired}"
        f" expiries, {story.refused} commits refused, {len(story.clones)} copies, {time.process_time() - began:.0f}"
        " s CPU"
    )
    assert story.kills > 0
    assert story.deleted > 0


def only_current(body: bytes) -> orphans.TableReferences:
    """Planted bug: the removal reads only the files of the current snapshot."""
    metadata = json.loads(body)
    current = metadata.get("current-snapshot-id")
    metadata["snapshots"] = [each for each in metadata.get("snapshots", []) if each["snapshot-id"] == current]
    return REAL_REFERENCES(json.dumps(metadata).encode())


def only_main(body: bytes) -> orphans.TableReferences:
    """Planted bug: the removal reads only the files of the snapshots of `main`."""
    metadata = json.loads(body)
    parents = {each["snapshot-id"]: each.get("parent-snapshot-id") for each in metadata.get("snapshots", [])}
    current, reached = metadata.get("current-snapshot-id"), set()
    while current in parents:
        reached.add(current)
        current = parents[current]
    metadata["snapshots"] = [each for each in metadata.get("snapshots", []) if each["snapshot-id"] in reached]
    return REAL_REFERENCES(json.dumps(metadata).encode())


def stand_in(body: bytes) -> orphans.TableReferences:
    """Planted bug: the removal reads the metadata without snapshots that restricted users get."""
    metadata = {**json.loads(body), "snapshots": [], "statistics": [], "partition-statistics": []}
    return REAL_REFERENCES(json.dumps(metadata).encode())


def no_statistics(body: bytes) -> orphans.TableReferences:
    """Planted bug: the removal ignores statistics files."""
    return msgspec.structs.replace(REAL_REFERENCES(body), files=())


def by_text(self: FileKeys, location: str) -> tuple[object, ...]:
    """Planted bug: the removal compares locations as text, without resolving links."""
    del self
    return (place_key(location),)


def no_target(self: FileKeys, location: str) -> None:
    """Planted bug: the removal resolves no link."""
    del self, location


def not_strict(real: Callable[..., Any]) -> Callable[..., Any]:
    """Planted bug: the removal ignores that the listing lacks referenced files."""

    def change(*args: Any, **named: Any) -> Any:  # noqa: ANN401
        return real(*args, **named)._replace(missing=(), elsewhere=())

    return change


def by_deleted(*lists: bytes) -> list[str]:
    """Planted bug: the removal reads only the first manifest of each manifest list, as a reader that stops early."""
    return [path for data in lists for path in REAL_PATHS(data)[:1]]


def of_any_status(*manifests: bytes) -> list[str]:
    """Planted bug: the removal treats entries of status DELETED as required files."""
    return [str(path) for (path,) in values_of_files(manifests, ("data_file", "file_path"), is_needed=True)]


async def metadata_first(work: Any, services: Any, *, node_id: int) -> Any:  # noqa: ANN401
    """Planted bug: the removal reads the metadata before the listing."""
    document = await services.gate.look_up(lambda: document_read(node_id))
    files = await maintained_files(services, document)
    read = await REAL_READ(services, files, document=document)

    async def read_before(*args: object, **named: object) -> Any:  # noqa: ANN401
        del args, named
        return read

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "referenced_files_read", read_before)
        return await REAL_SEARCH(work, services, node_id=node_id)


def deleted_files(node_id: int) -> Any:  # noqa: ANN401
    """Planted bug: the commit fence reads the deleted files only, not the marked ones."""
    names = yield from REAL_FENCED(node_id)
    return {name: state for name, state in names.items() if state != REMOVING}


async def nobody_else(*args: object, **named: object) -> dict[int, int]:
    """Planted bug: the removal does not look for other tables that name the files."""
    del args, named
    return {}


def live_ones(after: int, *, kind: int, limit: int) -> Any:  # noqa: ANN401
    """Planted bug: the removal ignores tables in the trash."""
    del kind
    return [head.node_id for head in (yield from tables_page(after, limit=limit))]


class TextPrefix(references._TableScan):
    """Planted bug: the removal treats a location that has the table's location as a text prefix as below it."""

    def __init__(self, files: Any, *, own: str, **named: Any) -> None:  # noqa: ANN401
        super().__init__(files, own=own.rstrip("/"), **named)


async def all_marked(self: Any, rows: Any, search: Any, *, table_files: Any) -> Any:  # noqa: ANN401
    """Planted bug: the removal deletes all marked files, whatever the second search found."""
    candidates = tuple([orphans.ListedFileState(row.name, row.size, row.modified_ms) for row in rows])
    return await REAL_DELETE(self, rows, search._replace(candidates=candidates), table_files=table_files)


def aged_by_disk(node_id: int) -> Any:  # noqa: ANN401
    """Planted bug: the removal uses the file's age by its modification time as its waiting time."""
    rows = yield from REAL_FILES(node_id)
    return [row._replace(waited_ms=OrphanStory.start_ms - row.modified_ms) for row in rows]


class SameEpoch:
    """A transaction whose epoch never changes."""

    def __init__(self, tx: Any) -> None:  # noqa: ANN401
        self.tx = tx

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return (lambda: 1) if name == "epoch" else getattr(self.tx, name)


def any_epoch(tx: Any, row: Any, *, search: Any) -> bool:  # noqa: ANN401
    """Planted bug: the removal ignores a new epoch of the store."""
    return REAL_STORE(SameEpoch(tx), row, search=search)  # type: ignore[arg-type]


REAL_REFERENCES, REAL_PATHS, REAL_READ = orphans.references_of, orphans.manifest_paths, search.referenced_files_read
REAL_SEARCH, REAL_DELETE = removal.orphans_search, removal.OrphanRemoval._delete
REAL_FILES, REAL_STORE = rounds.orphan_files_read, rounds.check_store
REAL_FENCED = orphan_fence.fenced_files_read
LENIENT = (search, "search_orphans", not_strict(search.search_orphans))


def often(*steps: str) -> tuple[Any, str, Any]:
    """Make some steps more frequent."""
    return OrphanStory, "often", steps


NO_MARKS = (orphan_fence, "fenced_files_read", deleted_files)
"""Planted bug: the fence refuses commits of deleted files only, not of marked ones."""
BUGS: Final[dict[str, tuple[tuple[Any, str, Any], ...]]] = {
    "metadata read before the listing": (
        often("write_early"),
        (removal, "orphans_search", metadata_first),
        NO_MARKS,
        (OrphanStory, "moments", ("listing",)),
    ),
    "current snapshot alone": ((orphans, "references_of", only_current),),
    "branches and tags left out": (
        often("tag", "overwrite", "wait", "remove_orphans"),
        (orphans, "references_of", only_main),
    ),
    "stand-in of restricted users": ((orphans, "references_of", stand_in),),
    "statistics left out": (often("add_statistics"), (orphans, "references_of", no_statistics)),
    "manifests left out": ((orphans, "manifest_paths", by_deleted),),
    "deleted entries missed": (
        often("overwrite", "engine_deletes", "wait", "remove_orphans"),
        (orphans, "referenced_files", of_any_status),
    ),
    "links compared by text": ((FileKeys, "of", by_text), (FileKeys, "target_of", no_target), LENIENT),
    "other tables left out": (often("name_neighbour"), (references.ForeignReferences, "find", nobody_else)),
    "trash left out": (often("name_neighbour", "drop_or_restore"), (references, "documents_after", live_ones)),
    "prefixes without a slash": (often("name_neighbour"), (references, "_TableScan", TextPrefix)),
    "marks left out by the fence": (often("write_early"), NO_MARKS, (OrphanStory, "moments", ("deleting",))),
    "no second search": (
        often("write_early"),
        (removal.OrphanRemoval, "_delete", all_marked),
        (OrphanStory, "moments", ("marking",)),
    ),
    "age by the disk's clock": ((rounds, "orphan_files_read", aged_by_disk),),
    "restored store not noticed": (often("leave_orphan", "restore_backup"), (rounds, "check_store", any_epoch)),
}


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_detected(bug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With each planted bug, a sequence of steps loses a live file and the model reports it."""
    no_wait(monkeypatch)
    for where, name, put in BUGS[bug]:
        monkeypatch.setattr(where, name, put)
    assert rounds.FENCE_WAIT_S == 0
    for seed in range(1, SEARCHES + 1):
        with node_over(tmp_path / str(seed)) as node:
            make_space(node, "a")
            lost = tell(OrphanStory(node, seed=seed), SEARCH)
        if lost:
            print(f"{bug}: story {seed}, {lost[0]}")
            return
    pytest.fail("the model does not find it")
