"""The steps of planning a scan as chores: from bytes to bytes, for processes that can be ended while they are at it.

May import `formats.iceberg`, this package and msgspec. A worker process loads it when there is a scan to plan: the library takes a while to load, and the server needs none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.scans.filters import filter_json
from limnos.formats.scans.request import ScanManifests, ScanRequest, ScanScope, scan_scope_of
from limnos.formats.scans.table import ScannedTable
from limnos.formats.scans.tasks import manifests_of, tasks_of


def find_scan_scope(document: bytes, asked: bytes) -> list[bytes]:
    """Say what of a table a scan is about: a document's bytes in, an `ScanScope` out."""
    return [
        msgspec.json.encode(
            scan_scope_of(iceberg_metadata.decode(document), msgspec.json.decode(asked, type=ScanRequest))
        )
    ]


def manifests(aim: bytes, asked: bytes, *lists: bytes) -> list[bytes]:
    """Say which manifests a scan has to read: the lists' bytes in, a `ScanManifests` out."""
    needed = manifests_of(
        msgspec.json.decode(aim, type=ScanScope), msgspec.json.decode(asked, type=ScanRequest), lists=lists
    )
    return [msgspec.json.encode(needed)]


def tasks(aim: bytes, asked: bytes, *files: bytes) -> list[bytes]:
    """Plan the files of some manifests: a `ScanManifests` and their bytes in; tasks, delete files, and how many rows are sure, out."""
    found = tasks_of(
        msgspec.json.decode(aim, type=ScanScope), msgspec.json.decode(asked, type=ScanRequest),
        needed=msgspec.json.decode(files[0], type=ScanManifests), files=files[1:],
    )  # fmt: skip
    return [b",".join(found.files), b",".join(found.deletes), b"%d" % found.sure_rows]


def residual(aim: bytes, asked: bytes) -> list[bytes]:
    """Hold what a scan says about columns against a schema: an `ScanScope` and a request in, its filter as tasks tell it out."""
    table = ScannedTable(msgspec.json.decode(aim, type=ScanScope), msgspec.json.decode(asked, type=ScanRequest))
    return [msgspec.json.encode(filter_json(table.filter))]


CHORES: Mapping[str, Callable[..., list[bytes]]] = {
    "scan-aim": find_scan_scope,
    "scan-manifests": manifests,
    "scan-tasks": tasks,
    "scan-residual": residual,
}
"""Every chore by its name."""
