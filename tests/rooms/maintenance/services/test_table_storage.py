# SPDX-License-Identifier: Apache-2.0
"""Files of one table: several are read with one call in a thread, and no file outside of the table's location is
read.
"""

from __future__ import annotations

import pytest

from limnos.files import ThreadShares
from limnos.model.errors import OutsideRoots
from limnos.rooms.maintenance.services.orphans.references import referenced_files_read
from limnos.rooms.maintenance.services.table_storage import MaintainedFiles, maintained_files
from limnos.store.activity.maintenance import tables_page
from limnos.store.objects.documents import document_read
from tests.http.driver import DriverNode
from tests.http.iceberg import wire
from tests.rooms.maintenance.services.histories import HistoryTable


@pytest.fixture
def table(node: DriverNode) -> HistoryTable:
    """A table with three snapshots."""
    history_table = HistoryTable(node)
    history_table.append(3)
    return history_table


def files_of(node: DriverNode) -> MaintainedFiles:
    """Return the files of the only table."""
    services = node.built.services
    (head,) = node.runner.run(services.gate.look_up(lambda: tables_page(0, limit=2)))
    document = node.runner.run(services.gate.look_up(lambda: document_read(head.node_id)))
    assert document is not None
    files = node.runner.run(maintained_files(services, document))
    assert files is not None
    return files


def read_parts(table: HistoryTable, *names: str, part_bytes: int) -> list[list[bytes]]:
    """Read files below the table's location in parts."""

    async def read() -> list[list[bytes]]:
        locations = [f"{table.location}/{name}" for name in names]
        return [part async for part in files.reader(bytes_max=100).read_parts(locations, part_bytes=part_bytes)]

    files = files_of(table.node)
    return table.node.runner.run(read())


def test_parts_have_a_bounded_size(table: HistoryTable) -> None:
    """Files are returned in order. A part ends with the file that exceeds the part's size, and each part has at least
    one file.
    """
    for name in "abcd":
        wire.local(f"{table.location}/data/{name}").write_bytes(name.encode() * 4)

    names = [f"data/{name}" for name in "abcd"]
    assert read_parts(table, *names, part_bytes=100) == [[b"aaaa", b"bbbb", b"cccc", b"dddd"]]
    assert read_parts(table, *names, part_bytes=7) == [[b"aaaa", b"bbbb"], [b"cccc", b"dddd"]]
    assert read_parts(table, *names, part_bytes=0) == [[b"aaaa"], [b"bbbb"], [b"cccc"], [b"dddd"]]
    assert read_parts(table, part_bytes=0) == []


def test_files_outside_the_tables_location_are_not_read(table: HistoryTable) -> None:
    """If a file of the list is outside of the table's location, by its name or by a link, none is returned."""
    inside, outside = wire.local(f"{table.location}/data/a"), wire.local(f"{table.location}-other")
    for each in (inside, outside):
        each.write_bytes(b"text")
    wire.local(f"{table.location}/data/link").symlink_to(outside)

    with pytest.raises(OutsideRoots):
        read_parts(table, "data/a", "../t-other", part_bytes=100)
    with pytest.raises(OutsideRoots, match="outside of the table's locations"):
        read_parts(table, "data/a", "data/link", part_bytes=100)


def test_check_reads_lists_and_manifests_with_one_call_each(
    table: HistoryTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check reads all manifest lists with one call in a thread and all manifests with another, because a call costs
    more CPU than a small manifest.
    """
    node, real, calls = table.node, ThreadShares.run, []

    async def run(shares: ThreadShares, key: object, call: object, **named: object) -> object:
        calls.append(key)
        return await real(shares, key, call, **named)  # type: ignore[arg-type]

    files, services = files_of(node), node.built.services
    (head,) = node.runner.run(services.gate.look_up(lambda: tables_page(0, limit=2)))
    document = node.runner.run(services.gate.look_up(lambda: document_read(head.node_id)))
    assert document is not None
    monkeypatch.setattr(ThreadShares, "run", run)
    references = node.runner.run(referenced_files_read(services, files, document=document))

    assert len(calls) == 2
    assert len([each for each in references.files if each.endswith(".avro")]) == 6
    assert len([each for each in references.files if each.endswith(".parquet")]) == 3
