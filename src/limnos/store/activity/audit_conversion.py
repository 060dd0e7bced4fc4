# SPDX-License-Identifier: Apache-2.0
"""Audit records from change rows and notes.

Must not know requests. A change is recorded once, in the transaction that makes it (`store.tx`): its change row
contains the access decisions. In the background these rows are converted to audit records, and the audit's feed
position advances in the same transaction. So every change has exactly one record, even if a node is killed. The writer
holds the clock of zone 0, so records are committed in the order of their IDs, and a reader misses none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

from limnos.model.audit import OTHER, AuditContext, AuditedDecision, AuditRecord, audit_context_of, audit_record
from limnos.model.entities import ChangeRow
from limnos.model.kind_table import kinds_with
from limnos.model.kinds import ROOT_ID, Kind
from limnos.names.display import render, render_part
from limnos.store.activity.audit import lines_put
from limnos.store.activity.feed import (
    FEED_COLUMNS,
    NODE_POSITIONS,
    NodePosition,
    entry_of,
    node_position_of,
    revisions_read,
)
from limnos.store.audit_notes import NOTES, NOTES_DROP
from limnos.store.sql import Load, Row, Sql, drive_load
from limnos.store.transaction import StoreTransaction

CHANGES_AT_ONCE: Final = 200
"""The approximate number of changes that one transaction converts to audit records: a few milliseconds of work."""
RIGHTS_MAX: Final = 3
"""The maximum number of rights in the record of a change whose objects are in none of its decisions."""
_ATTACHED: Final = kinds_with(lambda row: row.attached_as)
BEHIND = Sql(
    "SELECT c.zone, CASE WHEN coalesce(p.revision, 0) < c.pruned_to THEN c.pruned_to ELSE coalesce(p.revision, 0) END,"
    " c.revision FROM clock c LEFT JOIN audit_position p ON p.zone = c.zone WHERE c.revision > coalesce(p.revision, 0)"
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
    events, revisions = _changes(tx)
    more = max(len(events), len(revisions)) >= CHANGES_AT_ONCE
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
    tx.session.many(POSITION_PUT, [{"zone": zone, "revision": revision} for zone, revision in revisions.items()])
    return more or len(notes) >= CHANGES_AT_ONCE


def _changes(tx: StoreTransaction) -> tuple[list[_AuditedEvent], dict[int, int]]:
    """Read the next changes that have no audit record yet, and the revision reached in each of their zones."""
    events: list[_AuditedEvent] = []
    revisions: dict[int, int] = {}
    for zone, since, revision in tx.rows(BEHIND, {"zones": CHANGES_AT_ONCE}):
        left = CHANGES_AT_ONCE - len(events)
        if left <= 0:
            break
        until = min(since + left, revision)
        load = revisions_read(TOLD, zone, since=since, until=until, rows_max=2 * CHANGES_AT_ONCE)
        rows, revisions[zone] = drive_load(load, tx.rows)
        events += _events_of_zone(rows)
    return events, revisions


def _events_of_zone(rows: Iterable[Row]) -> list[_AuditedEvent]:
    events: list[_AuditedEvent] = []
    mutation, account = -1, AuditContext()
    for row in rows:
        entry, own_context = entry_of(row), audit_context_of(row[-1])
        change = entry.change
        if change.revision != mutation:
            mutation, account = change.revision, own_context
        events.append(
            _AuditedEvent(
                zone=change.zone,
                actor=entry.actor,
                request_id=entry.request_id,
                at=entry.at,
                account=account,
                detail=own_context.detail,
                change=change,
                word=own_context.change,
            )
        )
    return events


def _node_positions(tx: StoreTransaction, events: Iterable[_AuditedEvent]) -> dict[int, NodePosition]:
    """Read the tree positions of the zones, and of the changed nodes without a recorded access decision."""
    about: set[int] = set()
    for each in events:
        about.add(each.zone)
        if each.change is not None:
            object_ids = {right.object_id for right in each.account.rights}
            about.update({each.change.node_id, each.change.old_parent or 0, each.change.new_parent or 0} - object_ids)
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
        separator = ": " if event.word else ", "
        event, about = event._replace(detail=separator.join(filter(None, (what, event.detail)))), target
    record = _build_line(event, node_positions, about=about, change=event.word or change.operation, rights=rights)
    new_path = new if new != path else ""
    return msgspec.structs.replace(
        record, new_path=new_path, zone=change.zone, revision=change.revision, ordinal=change.ordinal
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
        outcome=event.account.outcome,
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
        own_name = render_part(name)
        return own_name if kind == Kind.METALAKE.word else f"{above}.{own_name}"

    def name(self, node_id: int) -> str:
        """Return the path of a node at its current position, or at its last position if it was dropped."""
        parts: list[str] = []
        while (node_position := self.node_positions.get(node_id)) is not None and (
            node_position.kind is not Kind.METALAKE or not parts
        ):
            parts.append(node_position.name)
            node_id = node_position.parent_id
        return render(reversed(parts))
