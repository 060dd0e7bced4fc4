# SPDX-License-Identifier: Apache-2.0
"""The janitor deletes old files that no object refers to, and no others."""

from __future__ import annotations

import json
import time
from pathlib import Path

import msgspec
import pytest

from limnos.app.server import janitor
from limnos.config.server import ServerSection
from limnos.config.settings import Settings
from limnos.model.errors import CannotStart
from limnos.model.uuids import new_uuid
from limnos.services.upkeep.janitors import GRACE_MS, JANITOR, MARK, JanitorPayload
from limnos.store.activity.tasks import task_counts
from tests.http.driver import DriverNode
from tests.http.iceberg.wire import commit, files_of, local, make_space, make_table, set_properties, table_path

NOW = time.time_ns() // 1_000_000
OLD = NOW - GRACE_MS - 3_600_000
"""An hour older than the grace time."""
BEFORE = OLD - 86_400_000
"""The time of the store's first round, unless a test sets another."""


@pytest.fixture
def watched(node: DriverNode) -> DriverNode:
    """A node whose store is older than the grace time."""
    make_space(node, "a")
    watch(node, since_ms=BEFORE)
    return node


def watch(node: DriverNode, *, since_ms: int, mark: str = "ours") -> None:
    """Set the janitor's task to the state after its first round, due now."""
    store, permit = node.built.services.store, node.built.upkeep._permit

    def put(tx) -> None:  # noqa: ANN001
        payload = msgspec.json.encode(JanitorPayload(since_ms, tx.epoch(), mark)).decode()
        tx.tasks.create(JANITOR, payload)

    node.runner.run(store.submit(permit, put))


def clean(node: DriverNode) -> None:
    """Run the janitor's round."""
    assert node.runner.run(node.built.upkeep.run_one()) is True


def file_name(version: int, at_ms: int = OLD) -> str:
    """Return the name of a metadata file of a given time."""
    return f"{version:05d}-{new_uuid(at_ms)}.metadata.json"


def beside(node: DriverNode, name: str) -> Path:
    """Write a file next to the metadata files of table `a.t`."""
    path = local(node.get(table_path("a", "t"))["metadata-location"]).with_name(name)
    path.write_text("{}")
    return path


def leftover(node: DriverNode, *, at_ms: int = OLD, files: tuple[str, ...] | None = None) -> Path:
    """Create the directory of a failed create with these files, by default a first metadata file."""
    home = node.data / "warehouse" / "main" / new_uuid(at_ms).replace("-", "")
    (home / "data").mkdir(parents=True)
    (home / "metadata").mkdir()
    for name in (f"metadata/{file_name(0)}",) if files is None else files:
        (home / name).write_text("{}")
    return home


def test_uncommitted_metadata_files_are_deleted(watched: DriverNode) -> None:
    """A metadata file with the same version as one that the table names was never committed, and is deleted."""
    make_table(watched, "a", "t")
    commit(watched, "a", "t", updates=[set_properties(k="v")])
    before = set(files_of(watched))
    lost = [beside(watched, file_name(version)) for version in (0, 1)]

    clean(watched)

    assert set(files_of(watched)) == before
    assert not any(path.exists() for path in lost)


def another_uuid(name: str) -> str:
    """Return the name with a UUID of another version than the server's."""
    return f"{name[:20]}4{name[21:]}"


OTHERS = {
    "young": lambda: file_name(0, NOW),
    "before the watch": lambda: file_name(0, BEFORE - 1),
    "of no version that is named": lambda: file_name(7),
    "no uuid": lambda: "00000-x.metadata.json",
    "another writer's": lambda: "v1.metadata.json",
    "no metadata": lambda: "snap-1.avro",
    "another kind of uuid": lambda: another_uuid(file_name(0)),
    "a checksum": lambda: f"{file_name(0)}.crc",
}


@pytest.mark.parametrize("kind", OTHERS)
def test_young_old_and_foreign_files_are_retained(watched: DriverNode, kind: str) -> None:
    """Files that are too young, older than the store's first round, of unused versions, or with foreign names stay."""
    make_table(watched, "a", "t")
    path = beside(watched, OTHERS[kind]())

    clean(watched)

    assert path.exists()


def test_committed_files_that_left_the_log_are_retained(watched: DriverNode) -> None:
    """Metadata files that left the log are kept, because they were committed. Only the table property deletes them."""
    table = make_table(watched, "a", "t", properties={"write.metadata.previous-versions-max": "1"})
    path = local(table["metadata-location"])
    old = path.with_name(file_name(0))
    path.rename(old)
    for number in range(3):
        commit(watched, "a", "t", updates=[set_properties(k=str(number))])

    clean(watched)

    assert old.exists()


@pytest.mark.parametrize("files", [None, ()])
def test_directories_of_failed_creates_are_deleted(watched: DriverNode, files: tuple[str, ...] | None) -> None:
    """A directory of a failed create that has at most a first metadata file is deleted, if the warehouse is marked as
    the store's.
    """
    home = leftover(watched, files=files)

    clean(watched)

    assert not home.exists()
    assert (home.parent / MARK).read_text() == "ours"


KEPT = {
    "data": ("data/x.parquet",),
    "a commit": (f"metadata/{file_name(0)}", f"metadata/{file_name(1)}"),
    "a later version": (f"metadata/{file_name(3)}",),
    "a young file": (f"metadata/{file_name(0, NOW)}",),
    "something else": ("x",),
}


@pytest.mark.parametrize("kind", KEPT)
def test_directories_with_other_files_are_retained(watched: DriverNode, kind: str) -> None:
    """A directory with other files, such as those of a dropped table, is kept."""
    home = leftover(watched, files=KEPT[kind])

    clean(watched)

    assert all((home / name).exists() for name in KEPT[kind])


@pytest.mark.parametrize("at_ms", [NOW, BEFORE - 1], ids=["young", "before the watch"])
def test_directories_of_running_creates_and_old_ones_are_retained(watched: DriverNode, at_ms: int) -> None:
    """Directories of running creates, and those older than the store, are kept."""
    home = leftover(watched, at_ms=at_ms)

    clean(watched)

    assert (home / "metadata").exists()


def test_directories_of_live_and_pending_tables_are_retained(watched: DriverNode) -> None:
    """Directories of tables without commits, and of tables with a pending purge, stay."""
    live, dropped = leftover(watched), leftover(watched)
    for name, home in (("live", live), ("dropped", dropped)):
        file = next((home / "metadata").iterdir())
        table = make_table(watched, "a", "model")
        watched.delete(table_path("a", "model"))
        text = {**table["metadata"], "location": f"file://{home}"}
        file.write_text(json.dumps(text))
        body = {"name": name, "metadata-location": f"file://{file}"}
        assert watched.post("/iceberg/v1/lake.main/namespaces/a/register", body).status == 200
    watched.delete(f"{table_path('a', 'dropped')}?purgeRequested=true")

    clean(watched)

    assert list((live / "metadata").iterdir())
    assert list((dropped / "metadata").iterdir())


def test_warehouse_of_another_store_is_not_cleaned(watched: DriverNode) -> None:
    """Unknown directories in a warehouse with another store's mark are kept, because they may be that store's
    tables.
    """
    home = leftover(watched)
    (home.parent / MARK).write_text("theirs")

    clean(watched)

    assert list((home / "metadata").iterdir())


def test_first_round_deletes_no_older_files(node: DriverNode) -> None:
    """A new, upgraded or restored store deletes only files that appeared since."""
    make_space(node, "a")
    watch(node, since_ms=BEFORE)
    home = leftover(node)
    node.runner.run(
        node.built.services.store.submit(
            node.built.upkeep._permit,
            lambda tx: tx.session.rows(janitors_sql("UPDATE store SET epoch = epoch + 1"), {}),
        )
    )

    clean(node)

    assert list((home / "metadata").iterdir())
    stated = node.runner.run(
        node.built.services.store.submit(node.built.upkeep._permit, lambda tx: tx.tasks.waiting_payload(JANITOR))
    )
    assert msgspec.json.decode(stated, type=JanitorPayload).since_ms >= NOW
    assert msgspec.json.decode(stated, type=JanitorPayload).mark == "ours"


def janitors_sql(text: str):  # noqa: ANN201
    """Execute a statement."""
    from limnos.store.sql import Sql

    return Sql(text)


def test_dry_run_lists_paths_without_deleting(watched: DriverNode) -> None:
    """The command lists the paths first, and deletes the same paths on confirmation."""
    home = leftover(watched)
    make_table(watched, "a", "t")
    lost = beside(watched, file_name(0))
    settings = Settings(server=ServerSection(data=str(watched.data)))

    paths = janitor(settings, dry_run=True)
    before = lost.exists() and home.exists()
    done = janitor(settings, dry_run=False)

    assert before
    assert (
        set(paths) == set(done) == {str(lost), str(home), *(f"{home}/{name}" for name in ("data", "metadata")), done[1]}
    )
    assert not lost.exists()
    assert not home.exists()


def test_command_fails_without_a_store(tmp_path: Path) -> None:
    """If the data path is a file, or has no store, the command raises CannotStart, and creates nothing."""
    (tmp_path / "file").write_text("x")

    with pytest.raises(CannotStart):
        janitor(Settings(server=ServerSection(data=str(tmp_path / "file"))), dry_run=True)
    with pytest.raises(CannotStart, match="There is no store at"):
        janitor(Settings(server=ServerSection(data=str(tmp_path / "new"))), dry_run=True)
    assert not (tmp_path / "new").exists()


def test_each_store_has_one_recurring_janitor_task(node: DriverNode) -> None:
    """Each store has exactly one janitor task, which recurs."""
    for _ in range(2):
        node.runner.run(node.built.upkeep.sweep())
    clean(node)

    counts = node.runner.run(node.built.upkeep.gate.look_up(task_counts))

    assert counts[JANITOR, "waiting"] == 1
    assert set(counts.values()) == {1}
    rounds = [node.runner.run(node.built.upkeep.run_one()) for _ in range(len(counts))]
    assert rounds[-1] is False  # its next round is not due yet


def test_failed_create_deletes_its_directories(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A create that is refused, or whose file cannot be written, deletes the directories that it created."""
    make_table(node, "a", "t")
    before = sorted((node.data / "warehouse").rglob("*"))
    body = {"name": "t", "schema": {"type": "struct", "fields": []}}
    refused = node.post("/iceberg/v1/lake.main/namespaces/a/tables", body)
    monkeypatch.setattr("limnos.files.local._write_all", _full)
    full = node.post("/iceberg/v1/lake.main/namespaces/a/tables", {**body, "name": "u"})

    assert (refused.status, full.status) == (409, 503)
    assert sorted((node.data / "warehouse").rglob("*")) == before


def _full(_descriptor: int, _data: bytes) -> None:
    raise OSError(28, "No space left on device")
