# SPDX-License-Identifier: Apache-2.0
"""Audit records: created from change rows and notes, numbered in commit order, queried with filters, and deleted after
a retention period.

Must not know requests. A change is recorded once, in the transaction that makes it (`store.tx`): its change row
contains the access decisions. In the background these rows are converted to audit records, and the audit's feed
position advances in the same transaction. So every change has exactly one record, even if a node is killed. The writer
holds the clock of zone 0, so records are committed in the order of their IDs, and a reader misses none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

from limnos.model.audit import OTHER, AuditContext, AuditedDecision, AuditRecord, audit_context_of, audit_record
from limnos.model.entities import ChangeRow
from limnos.model.kind_table import kinds_with
from limnos.model.kinds import ROOT_ID, Kind
from limnos.names.display import render, render_part
from limnos.store.activity.feed import (
    FEED_COLUMNS,
    NODE_POSITIONS,
    NodePosition,
    entry_of,
    node_position_of,
    revisions_read,
)
from limnos.store.audit_notes import NOTES, NOTES_DROP
from limnos.store.sql import Load, Params, Row, Sql, Value, drive_load
from limnos.store.transaction import StoreTransaction

CHANGES_AT_ONCE: Final = 200
"""The approximate number of changes that one transaction converts to audit records: a few milliseconds of work."""
EXPIRED_AT_ONCE: Final = 500
SCANNED_AT_ONCE: Final = 2_000
"""The number of records that one read examines if a filter has no index, or if its index has more records."""
RIGHTS_MAX: Final = 3
"""The maximum number of rights in the record of a change whose objects are in none of its decisions."""
_COLUMNS: Final = {
    "id": "id",
    "metalake_id": "metalake_id",
    "at": "at",
    "user": "user_name",
    "user_id": "user_id",
    "outcome": "outcome",
    "change": "change",
    "action": "action",
    "kind": "kind",
    "object_id": "object_id",
    "path": "path",
    "new_path": "new_path",
    "detail": "detail",
    "rights": "rights",
    "protocol": "protocol",
    "operation": "operation",
    "status": "status",
    "request_id": "request_id",
    "client": "client",
    "peer": "peer",
    "credential": "credential",
    "zone": "zone",
    "revision": "revision",
    "ordinal": "ordinal",
}
"""The fields of `AuditRecord`, in order, with their columns."""
_NAMES: Final = ", ".join(_COLUMNS.values())
PUT = Sql(f"INSERT INTO audit ({_NAMES}) VALUES ({', '.join(f':{field}' for field in _COLUMNS)})")
BEHIND = Sql(
    "SELECT c.zone, CASE WHEN coalesce(p.revision, 0) < c.pruned_to THEN c.pruned_to ELSE coalesce(p.revision, 0) END, c.revision"
    " FROM clock c LEFT JOIN audit_position p ON p.zone = c.zone WHERE c.revision > coalesce(p.revision, 0)"
    " ORDER BY c.zone LIMIT :zones"
)
TOLD = Sql(
    f"SELECT {FEED_COLUMNS}, payload FROM change WHERE zone = :zone AND revision > :since AND revision <= :until"
    " ORDER BY revision, ordinal LIMIT :rows"
)
POSITION_PUT = Sql(
    "INSERT INTO audit_position (zone, revision) VALUES (:zone, :revision)"
    " ON CONFLICT (zone) DO UPDATE SET revision = excluded.revision"
)
FIRST_AT = Sql("SELECT min(at) FROM audit")
EXPIRE = Sql("DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < :before ORDER BY at LIMIT :limit)")
_FILTERS: Final = {
    "metalake_id": "metalake_id = :metalake_id",
    "user": "user_name = :user",
    "user_id": "user_id = :user_id",
    "object_id": "object_id = :object_id",
    "path": "(path = :path OR (path >= :below AND path < :beyond))",
    "since": "at >= :since",
    "until": "at < :until",
    "action": "(action = :action OR change = :action OR operation = :action)",
    "outcome": "outcome = :outcome",
    "request_id": "request_id = :request_id",
    "before": "id < :before",
    "after": "id > :after",
    "first": "id >= :first",
    "last": "id <= :last",
}
_ATTACHED: Final = kinds_with(lambda row: row.attached_as)
_GRANTS: Final = ("grant", "give", "grant-privileges", "grant-roles-to-user", "grant-roles-to-group")
_REVOCATIONS: Final = ("revoke", "take", "revoke-privileges", "revoke-roles-from-user", "revoke-roles-from-group")
_RESTRICTIONS: Final = ("restrict", "unrestrict", "set-restriction", "remove-restriction")
_FAMILIES: Final[Mapping[str, tuple[str, ...]]] = {
    "grant": (*_GRANTS, "change-access-preset"),
    "revoke": _REVOCATIONS,
    "owner": ("own", "set-owner"),
    "restriction": _RESTRICTIONS,
    "attachment": ("attach", "detach"),
    "protection": ("protect", "unprotect"),
    "access": (*_GRANTS, *_REVOCATIONS, "own", "set-owner", *_RESTRICTIONS, "change-access-preset"),
}
"""Families of actions: for a word of `--action`, the changes, and the operations of refused requests."""
_SCANNED: Final = frozenset({"user_id", "since", "until", "action", "outcome"})
"""Filters without an index in the order of ids: the rows between two matching records are read, too."""


class AuditFilter(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A filter of audit records: all set fields must match.

    With `after` the order is oldest first, else newest first. `path` is an object's path below the metalake and
    includes everything below it. `since` and `until` are milliseconds since 1970; `until` is excluded. `before` and
    `after` are record IDs, both excluded. `action` also matches the change and the operation of a record.
    """

    metalake_id: int | None = None
    user: str | None = None
    user_id: int | None = None
    object_id: int | None = None
    path: str | None = None
    since: int | None = None
    until: int | None = None
    action: str | None = None
    outcome: str | None = None
    request_id: str | None = None
    before: int | None = None
    after: int | None = None


@cache
def _page(names: tuple[str, ...], *, family: str = "") -> Sql:
    """Build the SELECT with conditions for the columns `names` only, so that each combination of filters can use its
    index. With a family of actions, the action is one of it.

    Without a range of ids, the few records of a path are read by the path and sorted. `id + 0` keeps PostgreSQL from
    reading all records in the order of ids.
    """
    where = _where(names, family=family)
    order = "id" if "path" not in names or {"first", "last"}.intersection(names) else "id + 0"
    descending = "" if "after" in names else " DESC"
    return Sql(f"SELECT {_NAMES} FROM audit WHERE {where} ORDER BY {order}{descending} LIMIT :limit")


def _where(names: tuple[str, ...], *, family: str) -> str:
    words = ", ".join(f"'{word}'" for word in _FAMILIES.get(family, ()))
    filters = {**_FILTERS, "action": f"(action = :action OR change IN ({words}) OR operation IN ({words}))"}
    return " AND ".join((filters if words else _FILTERS)[name] for name in names) or "1 = 1"


AT_PATH = Sql(f"SELECT id FROM audit WHERE {_FILTERS['path']} LIMIT :rows")


@cache
def _end(names: tuple[str, ...]) -> Sql:
    """Build the SELECT of the id at which a read of `:rows` more records ends."""
    where = " AND ".join(_FILTERS[name] for name in names) or "1 = 1"
    order = "" if "after" in names else " DESC"
    return Sql(f"SELECT id FROM audit WHERE {where} ORDER BY id{order} LIMIT 1 OFFSET :rows")


class AuditPart(NamedTuple):
    """Records of one read. `following` is the id after which the next read begins; None at the end."""

    records: list[AuditRecord]
    following: int | None


def lines_read(audit_filter: AuditFilter, *, limit: int) -> Load[list[AuditRecord]]:
    """Read up to `limit` records in the order of their IDs: the newest first, or with `after` the oldest first."""
    return (yield from _lines_read(_filters_of(audit_filter), audit_filter.path, limit=limit))


def lines_part_read(audit_filter: AuditFilter, *, limit: int) -> Load[AuditPart]:
    """Read what `lines_read` reads, but examine at most `SCANNED_AT_ONCE` records, or twice as many for a path."""
    filters = _filters_of(audit_filter)
    indexed = {name: value for name, value in filters.items() if name not in _SCANNED and name != "path"}
    if audit_filter.path is not None:
        at_path = yield AT_PATH, {**_path_range(audit_filter.path), "path": audit_filter.path, "rows": SCANNED_AT_ONCE}
        is_indexed = len(at_path) < SCANNED_AT_ONCE
    else:
        is_indexed = _SCANNED.isdisjoint(filters)
    if is_indexed:
        return AuditPart((yield from lines_read(audit_filter, limit=limit)), None)
    ends = yield _end(tuple(indexed)), {**indexed, "rows": SCANNED_AT_ONCE - 1}
    if not ends:
        return AuditPart((yield from lines_read(audit_filter, limit=limit)), None)
    filters["first" if audit_filter.after is None else "last"] = end = ends[0][0]
    records = yield from _lines_read(filters, audit_filter.path, limit=limit)
    return AuditPart(records, end if len(records) < limit else None)


class AuditMoment(NamedTuple):
    """The position of a record in the order of times: its time in milliseconds since 1970, and its id."""

    at: int
    id: int


NEWEST: Final = AuditMoment(2**62, 2**62)
"""The position after all records."""
_OLDEST: Final = AuditMoment(-1, -1)
TIME_END = Sql(
    "SELECT at, id FROM audit WHERE metalake_id = :metalake_id AND (at, id) < (:before_at, :before_id)"
    " ORDER BY at DESC, id DESC LIMIT 1 OFFSET :rows"
)
FEW = {name: Sql(f"SELECT id FROM audit WHERE {_FILTERS[name]} LIMIT :rows") for name in ("user", "request_id")} | {
    "path": AT_PATH
}
"""Statements that tell whether a filter has few records, which are read by its index and sorted."""


class AuditTimePart(NamedTuple):
    """Records of one read, the latest first. `following` is the position before which the next read begins; None at the
    end.
    """

    records: list[AuditRecord]
    following: AuditMoment | None


@cache
def _timed(names: tuple[str, ...], *, family: str = "", is_few: bool = False) -> Sql:
    """Build the SELECT of records between two moments, the latest first. With `is_few`, the filters' index is used and
    its records are sorted: `at + 0` keeps both stores from reading all records in the order of times.
    """
    order = "at + 0 DESC, id + 0 DESC" if is_few else "at DESC, id DESC"
    return Sql(
        f"SELECT {_NAMES} FROM audit WHERE {_where(names, family=family)}"
        " AND (at, id) < (:before_at, :before_id) AND (at, id) >= (:from_at, :from_id)"
        f" ORDER BY {order} LIMIT :limit"
    )


def latest_part_read(audit_filter: AuditFilter, before: AuditMoment, *, limit: int) -> Load[AuditTimePart]:
    """Read up to `limit` records of a metalake before a moment, the latest first. At most `SCANNED_AT_ONCE` records are
    examined. The ids of the filter are ignored.
    """
    filters = {name: value for name, value in _filters_of(audit_filter).items() if name not in ("before", "after")}
    params: dict[str, Value] = {**filters, **_path_range(audit_filter.path)}
    moment = {"before_at": before.at, "before_id": before.id}
    is_few = False
    for name in FEW.keys() & filters.keys():
        rows = yield FEW[name], {**params, "rows": SCANNED_AT_ONCE}
        is_few = is_few or len(rows) < SCANNED_AT_ONCE
    end: AuditMoment | None = None
    if not is_few:
        ends = yield TIME_END, {"metalake_id": filters["metalake_id"], **moment, "rows": SCANNED_AT_ONCE - 1}
        end = AuditMoment(*ends[0]) if ends else None
    first = end or _OLDEST
    action = str(filters.get("action"))
    statement = _timed(tuple(filters), family=action if action in _FAMILIES else "", is_few=is_few)
    rows = yield statement, {**params, **moment, "from_at": first.at, "from_id": first.id, "limit": limit}
    records = [AuditRecord(*row) for row in rows]
    return AuditTimePart(records, end if len(records) < limit else None)


def _filters_of(audit_filter: AuditFilter) -> dict[str, Value]:
    fields = msgspec.structs.asdict(audit_filter)
    return {name: fields[name] for name in _FILTERS if fields.get(name) is not None}


def _lines_read(filters: Mapping[str, Value], path: str | None, *, limit: int) -> Load[list[AuditRecord]]:
    action = str(filters.get("action"))
    statement = _page(tuple(filters), family=action if action in _FAMILIES else "")
    rows = yield statement, {**filters, **_path_range(path), "limit": limit}
    return [AuditRecord(*row) for row in rows]


def _path_range(path: str | None) -> dict[str, Value]:
    """Return the query parameters for the range of paths that have `path` and a dot as their prefix.

    A path component that contains a dot is quoted, so only paths below `path` have this prefix.
    """
    return {} if path is None else {"below": f"{path}.", "beyond": f"{path}/"}


def first_at(tx: StoreTransaction) -> int | None:
    """Return the time of the oldest record in milliseconds since 1970, or None if there are no records."""
    rows: int | None = tx.rows(FIRST_AT, {})[0][0]
    return rows


def lines_put(tx: StoreTransaction, lines: Sequence[AuditRecord]) -> None:
    """Insert records with ascending IDs in the given order. The permit's zone is 0."""
    ids = tx.session.next_ids(len(lines))
    tx.session.many(PUT, [_params(line, number) for line, number in zip(lines, ids, strict=True)])


def _params(line: AuditRecord, number: int) -> Params:
    return {**{field: getattr(line, field) for field in _COLUMNS}, "id": number}


def lines_expire(tx: StoreTransaction, *, keep_ms: int) -> int:
    """Delete up to `EXPIRED_AT_ONCE` records older than `keep_ms`. Returns the number of deleted records."""
    return tx.count(EXPIRE, {"before": tx.now_ms - keep_ms, "limit": EXPIRED_AT_ONCE})


# -- making records from change rows ---------------------------------------------------------------------------


class _AuditedEvent(NamedTuple):
    """A change row or an audit note, with the context of its request.

    The context is stored with the first change row of a mutation and applies to all of them.
    """

    zone: int
    actor: str
    request_id: str
    at: int
    account: AuditContext
    detail: str = ""
    change: ChangeRow | None = None
    word: str = ""


def lines_due() -> Load[bool]:
    """Return whether there are changes or notes that have no audit record yet."""
    rows = yield BEHIND, {"zones": 1}
    if not rows:
        rows = yield NOTES, {"limit": 1}
    return bool(rows)


def lines_collect(tx: StoreTransaction) -> bool:
    """Create records for the next batch of changes and notes, and delete the notes.

    Returns whether more changes or notes may wait. The permit's zone is 0.
    """
    events, reached = _changes(tx)
    more = max(len(events), len(reached)) >= CHANGES_AT_ONCE
    notes = [
        (
            row[0],
            _AuditedEvent(
                zone=row[1], actor=row[2], request_id=row[3], at=row[4], account=account, detail=account.detail
            ),
        )
        for row in tx.rows(NOTES, {"limit": CHANGES_AT_ONCE})
        for account in (audit_context_of(row[5]),)
    ]
    events += [each for _, each in notes]
    node_positions = _node_positions(tx, events)
    lines = [line for each in events for line in _lines_of(each, node_positions)]
    lines_put(tx, sorted(lines, key=attrgetter("at")))
    tx.session.many(NOTES_DROP, [{"id": number} for number, _ in notes])
    tx.session.many(POSITION_PUT, [{"zone": zone, "revision": revision} for zone, revision in reached.items()])
    return more or len(notes) >= CHANGES_AT_ONCE


def _changes(tx: StoreTransaction) -> tuple[list[_AuditedEvent], dict[int, int]]:
    """Read the next changes that have no audit record yet, and the revision reached in each of their zones."""
    events: list[_AuditedEvent] = []
    reached: dict[int, int] = {}
    for zone, since, revision in tx.rows(BEHIND, {"zones": CHANGES_AT_ONCE}):
        left = CHANGES_AT_ONCE - len(events)
        if left <= 0:
            break
        until = min(since + left, revision)
        load = revisions_read(TOLD, zone, since=since, until=until, rows_max=2 * CHANGES_AT_ONCE)
        rows, reached[zone] = drive_load(load, tx.rows)
        events += _of_one_zone(rows)
    return events, reached


def _of_one_zone(rows: Iterable[Row]) -> list[_AuditedEvent]:
    events: list[_AuditedEvent] = []
    mutation, account = -1, AuditContext()
    for row in rows:
        entry, own = entry_of(row), audit_context_of(row[-1])
        change = entry.change
        if change.revision != mutation:
            mutation, account = change.revision, own
        events.append(
            _AuditedEvent(
                zone=change.zone,
                actor=entry.actor,
                request_id=entry.request_id,
                at=entry.at,
                account=account,
                detail=own.detail,
                change=change,
                word=own.change,
            )
        )
    return events


def _node_positions(tx: StoreTransaction, events: Iterable[_AuditedEvent]) -> dict[int, NodePosition]:
    """Read the tree positions of the zones, and of the changed nodes without a recorded access decision."""
    about: set[int] = set()
    for each in events:
        about.add(each.zone)
        if each.change is not None:
            known = {right.object_id for right in each.account.rights}
            about.update({each.change.node_id, each.change.old_parent or 0, each.change.new_parent or 0} - known)
    if not about:
        return {}
    return {row[0]: node_position_of(row) for row in tx.rows(NODE_POSITIONS, {"nodes": json.dumps(sorted(about))})}


def _lines_of(event: _AuditedEvent, node_positions: Mapping[int, NodePosition]) -> list[AuditRecord]:
    """Create the record of a change, or one record for each access decision of a note."""
    if event.change is not None:
        return [_line(event, event.change, node_positions=node_positions)]
    return [
        _build_line(event, node_positions, about=right, change=OTHER, rights=(right,)) for right in event.account.rights
    ]


def _line(event: _AuditedEvent, change: ChangeRow, *, node_positions: Mapping[int, NodePosition]) -> AuditRecord:
    names = {right.object_id: (right.kind, right.name) for right in event.account.rights if right.object_id > 0}
    ends = _PathBuilder(names, node_positions)
    here = names.get(change.node_id)
    old, new = ends.of(change.old_parent, change.old_name), ends.of(change.new_parent, change.new_name)
    path = (here[1] if here is not None else "") or old or new or ends.name(change.node_id)
    decisions = event.account.rights
    rights = tuple(right for right in decisions if right.object_id in _subject_of(change)) or decisions[:RIGHTS_MAX]
    about = AuditedDecision(action="", object_id=change.node_id, kind=change.kind.word, name=path)
    target = _touched_object(event, change, paths=ends)
    if target is not None:
        what = f"role {change.old_name}" if event.word else f"{change.kind.word} {path or change.node_id}"
        parts = (event.detail, what) if event.word else (what, event.detail)
        event, about = event._replace(detail=", ".join(filter(None, parts))), target
    record = _build_line(event, node_positions, about=about, change=event.word or change.operation, rights=rights)
    moved = new if new != path else ""
    return msgspec.structs.replace(
        record, new_path=moved, zone=change.zone, revision=change.revision, ordinal=change.ordinal
    )


def _touched_object(event: _AuditedEvent, change: ChangeRow, *, paths: _PathBuilder) -> AuditedDecision | None:
    """Return the object of a grant or revocation on one object, or of an attached tag or policy, which the record is
    about; None for other changes.
    """
    object_id = change.new_parent
    is_attachment = change.operation in ("attach", "detach") and change.kind in _ATTACHED
    if object_id is None or not (event.word or is_attachment):
        return None
    kind, name = paths.names.get(object_id, ("", ""))
    position = paths.node_positions.get(object_id)
    if not kind and position is not None:
        kind, name = position.kind.word, paths.name(object_id)
    return AuditedDecision(action="", object_id=object_id, kind=kind, name=name) if kind else None


def _subject_of(change: ChangeRow) -> set[int]:
    """Return the ids of the objects whose access decisions belong to a change: the object, its old parent and its new
    parent.
    """
    return {each for each in (change.node_id, change.old_parent, change.new_parent) if each is not None}


def _build_line(
    event: _AuditedEvent,
    node_positions: Mapping[int, NodePosition],
    *,
    about: AuditedDecision,
    change: str,
    rights: tuple[AuditedDecision, ...],
) -> AuditRecord:
    """Build a record about an object. Its action is that of the first access decision."""
    return audit_record(
        about,
        origin=event.account.origin,
        rights=rights,
        metalake_id=_metalake_of(event, about, node_positions=node_positions),
        at=event.at,
        user=event.actor,
        user_id=event.account.user_id,
        change=change,
        detail=event.detail,
        request_id=event.request_id,
        status=0,
    )


def _metalake_of(event: _AuditedEvent, about: AuditedDecision, *, node_positions: Mapping[int, NodePosition]) -> int:
    """Return the id of the metalake of a change; ROOT_ID for changes of the server itself."""
    if about.kind == Kind.METALAKE.word and about.object_id > 0:
        return about.object_id
    node_position = node_positions.get(event.zone)
    if node_position is None:
        return ROOT_ID
    return event.zone if node_position.kind is Kind.METALAKE else node_position.parent_id


class _PathBuilder(NamedTuple):
    """Builds the path of an object: from the names at the decision, else from the current positions of the nodes."""

    names: Mapping[int, tuple[str, str]]
    node_positions: Mapping[int, NodePosition]

    def of(self, parent_id: int | None, name: str | None) -> str:
        """Return the path of a name below a parent; "" if either is None."""
        if parent_id is None or name is None:
            return ""
        kind, above = self.names.get(parent_id, ("", ""))
        if not above:
            node_position = self.node_positions.get(parent_id)
            kind, above = (
                (Kind.METALAKE.word, "") if node_position is None else (node_position.kind.word, self.name(parent_id))
            )
        own = render_part(name)
        return own if kind == Kind.METALAKE.word else f"{above}.{own}"

    def name(self, node_id: int) -> str:
        """Return the path of a node at its current position, or at its last position if it was dropped."""
        parts: list[str] = []
        while (node_position := self.node_positions.get(node_id)) is not None and (
            node_position.kind is not Kind.METALAKE or not parts
        ):
            parts.append(node_position.name)
            node_id = node_position.parent_id
        return render(reversed(parts))
