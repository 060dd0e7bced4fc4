# SPDX-License-Identifier: Apache-2.0
"""Scan requests, and the scope of a scan in a table's metadata: manifest lists, schema and specs.

Must not know files. Source: Iceberg's OpenAPI, `PlanTableScanRequest`.
"""

from __future__ import annotations

from typing import Final, cast

import msgspec

from limnos.model.errors import BadRequest, UnsupportedOperation

Json = dict[str, object]
STEPS_MAX: Final = 1_000
"""The maximum number of snapshots that one incremental scan may span."""
NAMES_MAX: Final = 10_000
_ID_MAX: Final = 1 << 63


class ScanRequest(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True, kw_only=True):
    """The body of a request to plan a scan. The filter stays encoded until a worker process parses it."""

    snapshot_id: int | None = None
    start_snapshot_id: int | None = None
    end_snapshot_id: int | None = None
    select: list[str] | None = None
    filter: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"true"))
    min_rows_requested: int | None = None
    case_sensitive: bool = True
    use_snapshot_schema: bool = False
    stats_fields: list[str] | None = None

    @property
    def names_fields(self) -> bool:
        """Whether the request refers to columns (a filter or selected fields), so that names must be resolved."""
        return bool(self.select or self.stats_fields) or bytes(self.filter) not in (b"", b"true")

    def check(self) -> None:
        """Check the request for contradictions and limits.

        Raises BadRequest for an invalid combination of fields, or a value above a limit.
        """
        if (self.start_snapshot_id is None) != (self.end_snapshot_id is None):
            raise BadRequest("An incremental scan needs both start-snapshot-id and end-snapshot-id")
        if self.snapshot_id is not None and self.start_snapshot_id is not None:
            raise BadRequest("Request one snapshot by snapshot-id, or an incremental scan between two, not both")
        for each in (self.snapshot_id, self.start_snapshot_id, self.end_snapshot_id, self.min_rows_requested):
            if each is not None and abs(each) >= _ID_MAX:
                raise BadRequest(f"{each} is not a 64-bit number")
        if self.min_rows_requested is not None and self.min_rows_requested < 0:
            raise BadRequest(f"min-rows-requested must be 0 or more, not {self.min_rows_requested}")
        if max(len(self.select or ()), len(self.stats_fields or ())) > NAMES_MAX:
            raise BadRequest(f"A scan may name at most {NAMES_MAX} fields")


class ScanScope(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a table that a scan needs.

    `appended` are the snapshots whose files are scanned; None: all files in the manifest lists. `today` is the table's
    current schema if it differs from `schema`.
    """

    table_uuid: str
    location: str
    snapshot_id: int | None
    lists: list[str]
    appended: list[int] | None
    schema: Json
    schemas: list[Json]
    specs: list[Json]
    today: Json | None = None


class ManifestSummary(msgspec.Struct, frozen=True, rename="kebab", kw_only=True):
    """The entry of a manifest in its manifest list.

    `files` is the count of its live files; -1 if the list lacks it.
    """

    path: str
    length: int
    spec: int
    is_deletes: bool
    sequence: int
    least_sequence: int
    snapshot: int
    files: int
    first_row_id: int | None = None


class ScanManifests(msgspec.Struct, frozen=True):
    """The manifests of a scan: data manifests, and delete manifests whose deletes may apply."""

    data: list[ManifestSummary]
    deletes: list[ManifestSummary]


def scan_scope_of(metadata: Json, request: ScanRequest) -> ScanScope:
    """Determine the scope of a scan: its snapshots, manifest lists, schema and partition specs.

    Raises BadRequest for an invalid request or a missing snapshot, UnsupportedOperation for a snapshot without a
    manifest list.
    """
    request.check()
    snapshots_by_id = {cast("int", each["snapshot-id"]): each for each in _dicts(metadata.get("snapshots"))}
    appended: list[int] | None = None
    last: int | None
    if request.end_snapshot_id is not None:
        steps = _appended_snapshots(
            snapshots_by_id, cast("int", request.start_snapshot_id), end=request.end_snapshot_id
        )
        last, lists = request.end_snapshot_id, [_list_of(each) for each in steps]
        appended = [cast("int", each["snapshot-id"]) for each in steps]
    else:
        current = metadata.get("current-snapshot-id")
        last = request.snapshot_id if request.snapshot_id is not None else cast("int | None", current)
        last = None if last == -1 and request.snapshot_id is None else last
        lists = [] if last is None else [_list_of(_snapshot(snapshots_by_id, last))]
    schemas, specs = _schemas(metadata), _specs(metadata)
    snapshot = {} if last is None else snapshots_by_id[last]
    target = snapshot.get("schema-id") if request.use_snapshot_schema else None
    today = _by_id(schemas, "schema-id", target_id=metadata.get("current-schema-id")) or schemas[-1]
    schema = _by_id(schemas, "schema-id", target_id=target) or today
    return ScanScope(
        table_uuid=str(metadata.get("table-uuid", "")),
        location=str(metadata["location"]),
        snapshot_id=last,
        lists=lists,
        appended=appended,
        schema=schema,
        schemas=schemas,
        specs=specs,
        today=None if schema is today else today,
    )


def _snapshot(known: dict[int, Json], requested: int) -> Json:
    fields = known.get(requested)
    if fields is None:
        raise BadRequest(f"The table has no snapshot {requested}: it never existed or has expired")
    return fields


def _list_of(snapshot: Json) -> str:
    result = snapshot.get("manifest-list")
    if not isinstance(result, str):
        raise UnsupportedOperation(
            f"Snapshot {snapshot['snapshot-id']} has no manifest list, only manifests, as from the first Iceberg"
            " writers: plan this scan in the client"
        )
    return result


def _appended_snapshots(known: dict[int, Json], start: int, *, end: int) -> list[Json]:
    """Return the append snapshots after `start` up to `end`, newest first.

    Raises BadRequest if `start` is not an ancestor of `end`.
    """
    _snapshot(known, start)
    at, results, steps = _snapshot(known, end), [], 0
    while at["snapshot-id"] != start:
        if cast("Json", at.get("summary") or {}).get("operation") == "append":
            results.append(at)
        steps += 1
        parent = at.get("parent-snapshot-id")
        if not isinstance(parent, int) or parent not in known:
            raise BadRequest(f"Snapshot {start} is not an ancestor of snapshot {end}, or those between have expired")
        if steps > STEPS_MAX:
            raise BadRequest(f"More than {STEPS_MAX} snapshots are between {start} and {end}: request smaller ranges")
        at = known[parent]
    return results


def _dicts(value: object) -> list[Json]:
    return cast("list[Json]", value) if isinstance(value, list) else []


def _schemas(metadata: Json) -> list[Json]:
    return _dicts(metadata.get("schemas")) or [{"schema-id": 0, **cast("Json", metadata["schema"])}]


def _specs(metadata: Json) -> list[Json]:
    return _dicts(metadata.get("partition-specs")) or [{"spec-id": 0, "fields": metadata.get("partition-spec", [])}]


def _by_id(items: list[Json], key: str, *, target_id: object) -> Json | None:
    return next((each for each in items if target_id is not None and each.get(key) == target_id), None)
