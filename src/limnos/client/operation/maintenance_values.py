# SPDX-License-Identifier: Apache-2.0
"""Values of table maintenance: findings, operations, and the report on one table."""

from __future__ import annotations

import msgspec

from limnos.client.values import Json


class MaintenanceFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Maintenance that a table needs: its path below the catalog, kind, reason and figures."""

    table: str
    kind: str
    score: int
    reason: str
    figures: dict[str, int]
    found_at: str | None = None


class MaintenanceFindings(msgspec.Struct, frozen=True):
    """A page of findings. `after` is the cursor of the next page."""

    findings: tuple[MaintenanceFinding, ...]
    after: int | None = None


class MaintenanceOperation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation on a table: `waiting`, `running`, `done`, `failed`, `cancelled` or `lost`."""

    id: int
    kind: str
    state: str
    user: str
    started_at: str
    table: str = ""
    policy: str | None = None
    result: str | None = None
    ended_at: str | None = None
    leased_at: str | None = None
    """The time of the last lease by an executor; `started_at` is the time of the request."""


class MaintenanceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The maintenance that the server does automatically, and the operations, newest first."""

    assess: bool
    operations: tuple[MaintenanceOperation, ...]
    expire: bool = False
    rewrite: bool = False
    metadata_keep_s: int = 0
    orphans: str = "off"
    orphan_age_s: int = 0
    quiet_hours: tuple[str, ...] = ()
    bytes_per_day: int = 0
    executor: str | None = None
    waiting_for_executor: int = 0
    executor_active: bool = False
    """Whether an executor asked the server for operations within the last minute."""
    table_format: str = "iceberg"


class AppliedPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A policy that applies to a table, and the object to which it is attached.

    The name is None if the caller may not load the policy. `decides` are the kinds of operations that it requests or
    turns off; None from an older server.
    """

    type: str
    name: str | None
    on: str
    enabled: bool
    content: Json
    not_applied: tuple[str, ...] = ()
    decides: tuple[str, ...] | None = None
    turned_off: tuple[str, ...] = ()
    """Those of `decides` that its content turns off."""


class SnapshotHistory(msgspec.Struct, frozen=True):
    """A snapshot, and the reason why it is retained; None if an expiry may remove it."""

    snapshot_id: int
    at: str
    kept_because: str | None = None


class OrphanFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that no metadata of a table names: its state (`waiting`, `deleting` or `deleted`), and its name below the
    table's location.
    """

    name: str
    size: int
    state: str
    first_seen_at: str
    waited_s: int = 0


class OrphanFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The orphan files of a table by its last check, whether they are removed, and the reason if not."""

    removal: str
    files: tuple[OrphanFile, ...] = ()
    age_s: int | None = None
    checked_at: str | None = None
    blocked: str | None = None
    listed: int = 0
    candidates: int = 0
    candidate_bytes: int = 0


class MaintenanceReport(msgspec.Struct, frozen=True, kw_only=True):
    """The maintenance report of one table: its findings, effective policies, snapshots and orphan files."""

    snapshots: int
    removable: int
    refs_removable: tuple[str, ...]
    writer: str
    history: tuple[SnapshotHistory, ...]
    findings: tuple[MaintenanceFinding, ...]
    policies: tuple[AppliedPolicy, ...]
    blocked: tuple[str, ...]
    operations: tuple[MaintenanceOperation, ...]
    data_files: int | None = None
    delete_files: int | None = None
    total_bytes: int | None = None
    orphans: OrphanFiles = OrphanFiles(removal="off")
    inactions: dict[str, str] = {}
    """For each kind of finding that leads to no operation, the reason."""


class LeasedOperation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation that an executor may execute now, with a token that is valid only for its table."""

    operation: int
    kind: str
    catalog: str
    path: tuple[str, ...]
    token: str
    options: dict[str, str] = {}

    def __repr__(self) -> str:
        """Return a representation without the token."""
        return f"LeasedOperation({self.operation}, {self.kind!r}, {self.catalog!r}, {self.path!r})"


class LeasedOperations(msgspec.Struct, frozen=True):
    """Leased operations, and the duration of a lease after each heartbeat, in seconds."""

    lease_s: int
    operations: tuple[LeasedOperation, ...]


class RestrictedSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a data file whose rows an executor writes for restricted users. `name` is the name of its files."""

    number: int
    name: str
    task: Json
    deletes: list[Json]
    span: tuple[int, int]


class RestrictedSpans(msgspec.Struct, frozen=True):
    """Parts of data files to write, and the request that all of them have in common; no parts if none is left."""

    spans: tuple[RestrictedSpan, ...]
    common: Json

    def __repr__(self) -> str:
        """Return a representation without credentials."""
        return f"RestrictedSpans({[each.number for each in self.spans]})"
