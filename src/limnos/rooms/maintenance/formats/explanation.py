# SPDX-License-Identifier: Apache-2.0
"""Explanation of one table's maintenance state: sizes and counts, and for each snapshot whether it may be removed or
why it is retained.

Must not know the store. The lists are truncated at a limit, so that a response stays small.
"""

from __future__ import annotations

from typing import Final

import msgspec

from limnos.rooms.maintenance.formats.assessment import AssessmentRules
from limnos.rooms.maintenance.formats.expiry import ExpiryGuards, ExpiryPlan, ExpiryRules, plan_expiry
from limnos.rooms.maintenance.formats.table_metadata import TableMetadata, metadata_of

SHOWN_MAX: Final = 200
APPENDS: Final = "appends"
ROW_LEVEL: Final = "row-level"
_SNAPSHOTS_MAX: Final = 50


class ExplanationTerms(msgspec.Struct, array_like=True, kw_only=True):
    """The arguments in addition to a document: the time, the rules, and the snapshots that runs, plans and readers
    need, with reasons.
    """

    now_ms: int
    rules: AssessmentRules
    pinned: dict[int, str]
    checkpoints: dict[int, str]
    recent_ms: int


class SnapshotRetention(msgspec.Struct, frozen=True):
    """A snapshot, and the reason why it is retained; None if it may be removed."""

    snapshot_id: int
    timestamp_ms: int
    kept_because: str | None


class TableExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """The facts in a table's metadata that determine its maintenance."""

    snapshots: int
    removable: int
    refs_removable: tuple[str, ...]
    retentions: tuple[SnapshotRetention, ...]
    """The newest snapshots, at most `SHOWN_MAX`."""
    writer: str
    """The kind of writer: `appends` if the last snapshots only appended or rewrote files, else `row-level`; `none`
    without a snapshot.
    """
    data_files: int | None
    delete_files: int | None
    total_bytes: int | None
    blocked: str | None


def expiry_plan_of(metadata: TableMetadata, terms: ExplanationTerms) -> ExpiryPlan:
    """Return which snapshots may be removed under `terms`, and why the others are retained."""
    rules = ExpiryRules(terms.rules.older_than_ms, terms.rules.retain_last, terms.recent_ms)
    return plan_expiry(metadata, rules, guards=ExpiryGuards(terms.pinned, terms.checkpoints), now_ms=terms.now_ms)


def explain_table(body: bytes, terms: ExplanationTerms) -> TableExplanation:
    """Summarise a table's snapshots and files, with the reason why each of the newest snapshots is retained.

    Raises InvalidTable for malformed metadata.
    """
    metadata = metadata_of(body)
    plan, current = expiry_plan_of(metadata, terms), metadata.current
    newest = sorted(metadata.snapshots or (), key=lambda each: -each.timestamp_ms)[:SHOWN_MAX]
    retentions = [
        SnapshotRetention(each.snapshot_id, each.timestamp_ms, plan.retained.get(each.snapshot_id)) for each in newest
    ]
    files, deletes, size = (
        None if current is None else current.count(key)
        for key in ("total-data-files", "total-delete-files", "total-files-size")
    )
    return TableExplanation(
        snapshots=len(metadata.snapshots or ()),
        removable=len(plan.removed),
        refs_removable=plan.refs,
        retentions=tuple(retentions),
        writer=_writer(metadata),
        data_files=files,
        delete_files=deletes,
        total_bytes=size,
        blocked=plan.blocked,
    )


def _writer(metadata: TableMetadata) -> str:
    newest = sorted(metadata.snapshots or (), key=lambda each: -each.timestamp_ms)[:_SNAPSHOTS_MAX]
    operations = {(each.summary or {}).get("operation") for each in newest}
    if not operations:
        return "none"
    return APPENDS if operations <= {"append", "replace"} else ROW_LEVEL


def offloaded_explain(terms: bytes, body: bytes) -> list[bytes]:
    """Explain a table: takes `ExplanationTerms` and its document, returns a `TableExplanation`, as JSON.

    Raises InvalidTable for malformed metadata.
    """
    return [msgspec.json.encode(explain_table(body, msgspec.json.decode(terms, type=ExplanationTerms)))]


def offloaded_expiry(terms: bytes, body: bytes) -> list[bytes]:
    """Plan an expiry: takes `ExplanationTerms` and a document.

    Returns JSON of the snapshots and references to remove, the reason if nothing may be removed, and the count of all
    snapshots. Raises InvalidTable for malformed metadata.
    """
    metadata = metadata_of(body)
    plan = expiry_plan_of(metadata, msgspec.json.decode(terms, type=ExplanationTerms))
    return [msgspec.json.encode((plan.removed, plan.refs, plan.blocked, len(metadata.snapshots or ())))]
