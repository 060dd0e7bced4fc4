# SPDX-License-Identifier: Apache-2.0
"""`snapshots`: the states of a table that can still be read: snapshots of Iceberg, versions of Lance."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from limnos.cli.catalog.metadata_values import structs_of, utc_time, whole_number
from limnos.cli.common import DEFAULTS, CommonFlags
from limnos.cli.errors import UsageError
from limnos.cli.lookups import known_path
from limnos.cli.output import Row, show_rows
from limnos.client.errors import ArgumentError, ClientError, NotFoundError
from limnos.names import display

if TYPE_CHECKING:
    from limnos.client import Client
    from limnos.client.values import Json, LanceVersionInfo


def snapshots(path: str, /, *, limit: int = 50, common: CommonFlags = DEFAULTS) -> None:
    """List the snapshots of an Iceberg table, or the versions of a Lance table, the newest first, with the branches and
    tags that refer to each.

    `current_at` is the time at which a snapshot became the table's state. One without it was never read without being
    asked for: a run that failed wrote it, or it was made on a branch.

    `limnos head PATH --snapshot ID` shows rows of one; engines read it, and roll the table back to it.

    Parameters
    ----------
    path
        The table, as `main.raw.trips`.
    limit
        The maximum number of snapshots.
    """
    with common.client() as client:
        metadata = _iceberg_metadata(client, path)
        if metadata is None:
            _show_versions(client.lance.versions(path, limit=limit + 1), limit=limit, common=common)
            return
    every = structs_of(metadata, "snapshots")
    log = structs_of(metadata, "snapshot-log")
    current_at = {str(each.get("snapshot-id")): each.get("timestamp-ms") for each in log}
    rows = [_row(each, metadata, current_at=current_at) for each in reversed(every)]
    if len(rows) > limit:
        print(f"note: the newest {limit} of {len(rows)} snapshots; --limit NUMBER shows others", file=sys.stderr)
    columns = ["id", "at", "current_at", "operation", "refs", "rows", "added", "deleted"]
    show_rows(rows[:limit], columns, output_format=common.output_format, empty="no snapshots: no rows were written yet")


def _iceberg_metadata(client: Client, path: str) -> Json | None:
    """Return the metadata of an Iceberg table; None if there is none at the path, which may be that of a Lance table.

    Raises the error of the load if there is no Lance table either.
    """
    try:
        return client.tables.load(path).metadata
    except (NotFoundError, ArgumentError) as error:
        with suppress(ClientError, ArgumentError):
            client.lance.load(path)
            return None
        if isinstance(error, ArgumentError) and (container := _container_error(path)) is not None:
            raise container from error
        raise


def _container_error(path: str) -> UsageError | None:
    """Return the error for a path that is too short for a table, because it is that of a catalog or namespace; None
    for others.
    """
    parts = display.parse(path)
    known_object = known_path(parts)
    if known_object is None or known_object.length < len(parts):
        return None
    spelled = shlex.quote(path)
    return UsageError(
        f"{path} is a {known_object.kinds[0]}: snapshots are of tables",
        hint=f"'limnos audit --path {spelled}' has who changed what in it, 'limnos list {spelled}' lists its objects",
    )


def _show_versions(versions: Sequence[LanceVersionInfo], *, limit: int, common: CommonFlags) -> None:
    if len(versions) > limit:
        print(f"note: the newest {limit} versions; --limit NUMBER shows others", file=sys.stderr)
    rows: list[Row] = [
        {"id": each.version, "at": utc_time(each.at_ms), "refs": ", ".join(each.tags)} for each in versions[:limit]
    ]
    show_rows(
        rows, ["id", "at", "refs"], output_format=common.output_format, empty="no versions: the table has no data"
    )


def _row(snapshot: Json, metadata: Json, *, current_at: Mapping[str, object]) -> Row:
    summary = snapshot.get("summary")
    counts = summary if isinstance(summary, dict) else {}
    references = metadata.get("refs")
    number = snapshot.get("snapshot-id")
    refs = [
        name
        for name, reference in (references.items() if isinstance(references, dict) else ())
        if isinstance(reference, dict) and reference.get("snapshot-id") == number
    ]
    return {
        "id": number,
        "at": utc_time(snapshot.get("timestamp-ms")),
        "current_at": utc_time(current_at.get(str(number))),
        "operation": str(counts.get("operation", "")),
        "refs": ", ".join(sorted(refs)),
        "rows": whole_number(counts.get("total-records")),
        "added": whole_number(counts.get("added-records")),
        "deleted": whole_number(counts.get("deleted-records")),
    }
