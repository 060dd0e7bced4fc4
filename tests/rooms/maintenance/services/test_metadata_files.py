# SPDX-License-Identifier: Apache-2.0
"""Old metadata files: files that have left the log of an existing table are deleted after their age, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from limnos.files import place_key
from limnos.files.local import LocalFiles
from limnos.model.entities import MetadataDocument
from limnos.model.errors import LimnosError, ServiceUnavailable, StorageFailed
from limnos.model.permits import upkeep_permit
from limnos.model.storage_locations import LocationClaim, LocationKind
from limnos.model.uuids import new_uuid
from limnos.rooms.maintenance.services import metadata_files
from limnos.rooms.maintenance.services.metadata_files import AgeWindow, metadata_files_delete, old_metadata_files
from limnos.rooms.maintenance.services.task import MaintenancePosition
from limnos.store.sql import Sql
from limnos.store.tx import Tx
from tests.http.driver import DriverNode
from tests.http.iceberg import wire
from tests.rooms.maintenance.services.histories import DAY_MS, FIRST_MS, HistoryTable, set_clock
from tests.rooms.maintenance.services.test_operations import maintain

OLD_MS = FIRST_MS
WINDOW = AgeWindow(OLD_MS - 1, OLD_MS + DAY_MS)


def name(version: int, at_ms: int = OLD_MS) -> str:
    """Return the name of a metadata file of a given time."""
    return f"{version:05d}-{new_uuid(at_ms)}.metadata.json"


def document(current: str, *logged: str) -> MetadataDocument:
    """Return a document whose metadata names these files."""
    import json

    log = [{"metadata-file": f"file:///t/metadata/{each}", "timestamp-ms": 1} for each in logged]
    body = json.dumps({"location": "file:///t", "metadata-log": log}).encode()
    return MetadataDocument(
        node_id=1,
        version=1,
        uuid="u",
        location="file:///t",
        metadata_location=f"file:///t/metadata/{current}",
        body=body,
    )


def test_only_own_files_below_all_named_versions_are_old() -> None:
    """Old files are only those with this server's name pattern, within the time window, and with versions below all
    that the metadata names.
    """
    current, logged = name(7), name(5)
    old, gz = name(3), name(2).replace(".metadata", ".gz.metadata")
    retained_files = [
        current,
        logged,
        name(5),
        name(6),
        name(8),
        name(3, OLD_MS - 5),
        name(3, OLD_MS + 2 * DAY_MS),
        "v3.metadata.json",
        "00003-abc.metadata.json",
        "snap-1.avro",
        f"{name(3)}.tmp",
        f".{name(3)}",
        "00003-9c12d441-03fe-4693-9a96-a0705ddf69c1.metadata.json",
    ]
    assert old_metadata_files([old, gz, *retained_files], document(current, logged), window=WINDOW) == sorted([old, gz])
    assert old_metadata_files([name(6)], document(current), window=WINDOW) != []


@pytest.fixture
def table(node: DriverNode) -> HistoryTable:
    """A table whose log keeps two of six metadata files."""
    history_table = HistoryTable(node)
    update = wire.set_properties(**{"write.metadata.previous-versions-max": "2"})
    assert wire.commit(node, "a", "t", updates=[update]).status == 200
    history_table.append(4)
    return history_table


def metadata_files_of(table: HistoryTable) -> list[Path]:
    """Return the metadata files of the table."""
    return sorted(wire.local(f"{table.location}/metadata").glob("*.metadata.json"))


def delete(table: HistoryTable, window: AgeWindow) -> int:
    """Delete old metadata files of the table."""
    services = table.node.built.services
    node_id = table.node.runner.run(_node_id(table))
    return table.node.runner.run(metadata_files_delete(services, node_id, window=window))


async def _node_id(table: HistoryTable) -> int:
    from limnos.store.activity.maintenance import tables_page

    return (await table.node.built.services.gate.look_up(lambda: tables_page(0, limit=1)))[0].node_id


def test_files_outside_the_log_are_deleted(table: HistoryTable) -> None:
    """Files that have left the log are deleted, those in the log are kept, and the table can be read."""
    assert len(metadata_files_of(table)) == 6
    metadata = wire.metadata_of(table.node, "a", "t")
    now_ms = table.node.built.services.store.time.now_ms()
    assert delete(table, AgeWindow(0, now_ms - DAY_MS)) == 0
    assert delete(table, AgeWindow(now_ms, now_ms + 2 * DAY_MS)) == 0
    assert delete(table, AgeWindow(0, now_ms + DAY_MS)) == 3
    logged = {Path(str(each["metadata-file"])).name for each in metadata["metadata-log"]}  # type: ignore[index, attr-defined]
    assert {each.name for each in metadata_files_of(table)} >= logged
    assert len(metadata_files_of(table)) == 3
    assert wire.metadata_of(table.node, "a", "t") == metadata


def test_links_are_not_followed(table: HistoryTable, tmp_path: Path) -> None:
    """If the metadata directory is a link out of the table, nothing is listed or deleted."""
    place = wire.local(f"{table.location}/metadata")
    away = tmp_path / "away"
    place.rename(away)
    place.symlink_to(away)
    now_ms = table.node.built.services.store.time.now_ms()
    assert delete(table, AgeWindow(0, now_ms + DAY_MS)) == 0
    assert len(list(away.glob("*.metadata.json"))) == 6


def test_files_are_deleted_only_with_an_age_set(table: HistoryTable) -> None:
    """By default all files are kept. With an age set, files are deleted once that age has passed since the node first
    saw the store's epoch.
    """
    node = table.node
    services = node.built.services
    now_ms = services.store.time.now_ms()
    clock = set_clock(node, now_ms + DAY_MS)
    at = maintain(node)
    clock.at_ms += 30 * DAY_MS
    at = maintain(node, at)
    assert len(metadata_files_of(table)) == 6
    defaults = services.defaults.maintenance._replace(metadata_keep_ms=7 * DAY_MS)
    services.defaults = services.defaults._replace(maintenance=defaults)
    at = maintain(node, MaintenancePosition(epoch=at.epoch + 1, since_ms=0))
    assert len(metadata_files_of(table)) == 6  # a backup may name files that are older than this epoch
    maintain(node, MaintenancePosition(epoch=at.epoch, since_ms=1))
    assert len(metadata_files_of(table)) == 3


def audited(table: HistoryTable) -> list[str]:
    """Return the audit records of deleted metadata files."""
    lines = table.node.get("/api/limnos/v1/audit?metalake=lake&action=remove_metadata_file").json()
    return [each["detail"] for each in lines["lines"]]


def test_each_deleted_file_is_audited(table: HistoryTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each deleted file has an audit record with the reason, also if the node crashes between deletion and record."""
    now_ms = table.node.built.services.store.time.now_ms()
    with monkeypatch.context() as patch:
        patch.setattr(metadata_files, "_record", killed)
        with pytest.raises(SystemExit):
            delete(table, AgeWindow(0, now_ms + DAY_MS))
    assert len(metadata_files_of(table)) == 3
    assert audited(table) == []
    assert delete(table, AgeWindow(0, now_ms + DAY_MS)) == 0
    assert len(audited(table)) == 3
    assert all("metadata_retention_s" in each for each in audited(table))
    assert delete(table, AgeWindow(0, now_ms + DAY_MS)) == 0
    assert len(audited(table)) == 3


async def killed(*_: object, names: list[str]) -> None:
    """Crash if there is something to record."""
    if names:
        raise SystemExit


@pytest.mark.parametrize("failure", [StorageFailed("refused"), ServiceUnavailable("away")])
def test_failed_deletion_of_a_file_is_not_recorded(
    table: HistoryTable, monkeypatch: pytest.MonkeyPatch, failure: LimnosError
) -> None:
    """A file that the storage does not delete has no audit record until it is deleted in a later round."""
    window = AgeWindow(0, table.node.built.services.store.time.now_ms() + DAY_MS)
    refused = metadata_files_of(table)[1].name
    real = LocalFiles.delete

    def delete_others(files: LocalFiles, location: str) -> None:
        if location.endswith(refused):
            raise failure
        real(files, location)

    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(LocalFiles, "delete", delete_others)
            with pytest.raises(type(failure)):
                delete(table, window)
        assert refused in [each.name for each in metadata_files_of(table)]
        assert not [each for each in audited(table) if refused in each]
    assert delete(table, window) >= 1
    assert len([each for each in audited(table) if refused in each]) == 1
    assert len(audited(table)) == 3
    assert len(metadata_files_of(table)) == 3


@pytest.mark.parametrize("relation", ["same", "above", "below", "root above"])
def test_metadata_files_near_another_object_are_not_deleted(table: HistoryTable, relation: str) -> None:
    """No metadata file is deleted while another object is at, above or below the table's location; the root of a
    catalog is no object.
    """
    node = table.node
    at = {
        "same": table.location,
        "above": table.location.rpartition("/")[0],
        "below": f"{table.location}/data",
        "root above": table.location.rpartition("/")[0],
    }[relation]
    kind = LocationKind.ALLOWED_LOCATION if relation == "root above" else LocationKind.EXTERNAL_FILESET
    main = Sql("SELECT id FROM node WHERE name = 'main'")

    def claim(tx: Tx) -> None:
        ((catalog_id,),) = tx.rows(main, {})
        tx.places.put(LocationClaim(kind=kind, owner_id=999_999, catalog_id=catalog_id, metalake_id=0), place_key(at))

    node.runner.run(node.built.services.store.submit(upkeep_permit("t"), claim))
    now_ms = node.built.services.store.time.now_ms()

    assert delete(table, AgeWindow(0, now_ms + DAY_MS)) == (3 if relation == "root above" else 0)
