# SPDX-License-Identifier: Apache-2.0
"""Values of the server's responses about the audit, changes, webhooks, lineage, reports and imports.

Must not know HTTP.
"""

from __future__ import annotations

import msgspec

from limnos.client.values.shared import Json, Parts


class ReportInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A client's metrics report: `type` is `scan` or `commit`, `report` is the JSON that was sent."""

    id: int
    type: str
    at: str
    user: str
    snapshot_id: int | None = None
    report: Json = {}


class AuditObject(msgspec.Struct, frozen=True):
    """The object of an audit record. `path` is its path at the time of the action, below the metalake."""

    id: int
    kind: str
    path: str


class AuditLine(msgspec.Struct, frozen=True, kw_only=True):
    """An audit record.

    `change` is None for actions that changed nothing. `rights` have the form of an access explanation.
    """

    id: int
    at: str
    outcome: str
    user: str | None = None
    change: str | None = None
    action: str | None = None
    object: AuditObject | None = None
    new_path: str | None = None
    detail: str | None = None
    rights: tuple[Json, ...] = ()
    protocol: str | None = None
    operation: str | None = None
    status: int | None = None
    request_id: str | None = None
    client: str | None = None
    peer: str | None = None
    credential: str | None = None
    zone: int | None = None
    revision: int | None = None
    ordinal: int | None = None


class AuditPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of audit records. `next` is the record to continue before or after; `more` is whether more records exist
    now. `records_reads` is whether the server records reads of now, `own` whether records of other users are left out.
    """

    lines: tuple[AuditLine, ...]
    next: int | None
    more: bool
    records_reads: bool = True
    own: bool = False


class ImportInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An unfinished import of a metalake, with the count of the records received so far. Times are ISO 8601 strings in
    UTC.
    """

    id: int
    name: str
    format: str
    ids: str
    state: str
    records: int
    source: str = ""
    begun_by: str = ""
    begun_at: int | float | str | None = None
    fed_at: int | float | str | None = None


class MetalakeImportResult(msgspec.Struct, frozen=True):
    """An imported metalake. `masked` are catalog properties that are missing in its file because they are secret."""

    metalake: str
    records: int
    masked: tuple[str, ...] = ()


class ChangeInfo(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A committed change. `path` is the object's current path, or its last path if it was dropped.

    `old` and `new` are the paths before and after a move. A path that the caller may not see is None.
    """

    zone: int
    revision: int
    ordinal: int
    operation: str
    kind: str
    id: int
    actor: str
    request_id: str
    at: str
    path: Parts | None = None
    old: Parts | None = None
    new: Parts | None = None


class ChangesPage(msgspec.Struct, frozen=True):
    """A page of changes, the feed position after them, and whether more changes are available."""

    changes: tuple[ChangeInfo, ...]
    next: str
    more: bool = False


class WebhookInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook that the caller may see. `behind` is the count of undelivered revisions."""

    id: int | str
    url: str
    user: str
    state: str
    behind: int = 0
    created_at: str | None = None
    delivered_at: str | None = None
    attempts: int = 0
    due_at: str | None = None
    error: str | None = None
    operations: tuple[str, ...] = ()


class NewWebhook(msgspec.Struct, frozen=True):
    """A new webhook. `secret` signs its deliveries; no later response contains it."""

    id: int | str
    url: str
    user: str
    secret: str


class LineageNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node of a lineage graph: a table or view (with a path), an external dataset, or a hidden node.

    An external dataset has `namespace` and `name`. `id` is valid within its graph.
    """

    id: str
    kind: str
    path: Parts | None = None
    namespace: str | None = None
    name: str | None = None
    column: str | None = None


class LineageJob(msgspec.Struct, frozen=True):
    """A job in OpenLineage events: its namespace and name."""

    namespace: str
    name: str


class LineageAssertion(msgspec.Struct, frozen=True, kw_only=True):
    """One reported event for an edge: the job, the run, the time, the user, and the column lineage."""

    job: LineageJob
    at: str
    by: str
    run: str | None = None
    kinds: tuple[str, ...] = ()


class LineageEdge(msgspec.Struct, frozen=True, kw_only=True):
    """An edge from a source to a target, by their ids in the graph. `depth` is its distance from the root.

    `said` is empty if one of the nodes is hidden.
    """

    source: str
    target: str
    depth: int
    direct: bool = True
    said: tuple[LineageAssertion, ...] = ()


class LineageGraph(msgspec.Struct, frozen=True, kw_only=True):
    """The lineage graph of an object: its sources or its derived objects. `complete` is false if the graph was
    truncated at its size limit.
    """

    root: str
    nodes: tuple[LineageNode, ...]
    edges: tuple[LineageEdge, ...]
    direction: str = "up"
    depth: int = 1
    complete: bool = True
    after: str | None = None


class SkippedDatasetInfo(msgspec.Struct, frozen=True):
    """A dataset of an event that was skipped, and the reason."""

    namespace: str
    name: str
    reason: str


class LineageReceipt(msgspec.Struct, frozen=True):
    """The result of sending events: the count of stored edges, and skipped datasets."""

    kept: int
    left_out: tuple[SkippedDatasetInfo, ...] = ()


class BulkOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of an item of a bulk job: `made`, `same` (nothing to do), `refused`, or `failed` for now.

    `repeated`: an earlier request of the job has executed it. The other fields describe an error.
    """

    index: int
    outcome: str
    repeated: bool = False
    status: int = 0
    code: str = ""
    message: str = ""
    request_id: str = ""


class SystemTableColumn(msgspec.Struct, frozen=True):
    """A column of a system table: its name, and its type: int, text, bool, time, texts (a list) or map."""

    name: str
    type: str


class SystemTableInfo(msgspec.Struct, frozen=True):
    """A system table: its name, a sentence about its rows, and its columns."""

    name: str
    about: str
    columns: tuple[SystemTableColumn, ...]


class SystemTableScan(msgspec.Struct, frozen=True):
    """A revision of a metalake at which a table can be read, with the table's parts. The server holds it for `held_s`
    seconds between two requests.
    """

    revision: str
    parts: tuple[str, ...]
    held_s: float
    table: SystemTableInfo
