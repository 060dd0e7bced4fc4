# SPDX-License-Identifier: Apache-2.0
"""The steps of scan planning as functions from bytes to bytes, for worker processes that can be killed.

A worker process loads this module with its first scan, because pyiceberg is slow to load; the server does not need it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.scans.filters import filter_json
from limnos.formats.scans.request import ScanManifests, ScanRequest, ScanScope, scan_scope_of
from limnos.formats.scans.table import ScannedTable
from limnos.formats.scans.tasks import manifests_of, tasks_of


def find_scan_scope(document: bytes, requested: bytes) -> list[bytes]:
    """Determine the scope of a scan. An entry point of worker processes.

    Args:
        document: The bytes of the table's metadata document.
        requested: A `ScanRequest` as JSON.

    Returns:
        A list with one element: the `ScanScope` as JSON.
    """
    return [
        msgspec.json.encode(
            scan_scope_of(iceberg_metadata.decode(document), msgspec.json.decode(requested, type=ScanRequest))
        )
    ]


def manifests(aim: bytes, request: bytes, *lists: bytes) -> list[bytes]:
    """Determine the manifests that a scan must read: takes scope, request and the bytes of manifest lists, returns a
    `ScanManifests`.
    """
    scan_manifests = manifests_of(
        msgspec.json.decode(aim, type=ScanScope), msgspec.json.decode(request, type=ScanRequest), lists=lists
    )
    return [msgspec.json.encode(scan_manifests)]


def tasks(aim: bytes, requested: bytes, *files: bytes) -> list[bytes]:
    """Plan the files of some manifests: takes scope, request, the prefixes of the table's locations as JSON, a
    `ScanManifests` and the manifests' bytes.

    Returns the tasks and the delete files, both as comma-separated JSON objects, the number of rows in files that match
    completely and have no deletes, and as JSON the paths of planned files that are not plainly below a prefix.
    """
    scan_tasks = tasks_of(
        msgspec.json.decode(aim, type=ScanScope),
        msgspec.json.decode(requested, type=ScanRequest),
        needed=msgspec.json.decode(files[1], type=ScanManifests),
        files=files[2:],
        prefixes=msgspec.json.decode(files[0], type=tuple[str, ...]),
    )
    return [
        b",".join(scan_tasks.files),
        b",".join(scan_tasks.deletes),
        b"%d" % scan_tasks.sure_rows,
        msgspec.json.encode(scan_tasks.outside),
    ]


def residual(aim: bytes, requested: bytes) -> list[bytes]:
    """Check a request's columns against the schema: takes scope and request, returns the filter in the JSON form of a
    residual.
    """
    table = ScannedTable(msgspec.json.decode(aim, type=ScanScope), msgspec.json.decode(requested, type=ScanRequest))
    return [msgspec.json.encode(filter_json(table.filter))]


OFFLOADED_WORK: Mapping[str, Callable[..., list[bytes]]] = {
    "scan-aim": find_scan_scope,
    "scan-manifests": manifests,
    "scan-tasks": tasks,
    "scan-residual": residual,
}
"""The functions that a worker process can run, by name."""
