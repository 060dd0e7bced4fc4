# SPDX-License-Identifier: Apache-2.0
"""Explanation of one Lance table: its figures and findings, and for each of the newest versions why it is kept.

Must not know any wire format. The callers of this module have checked that the reader may maintain the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from limnos.model.entities import Node
from limnos.model.number_texts import age_text
from limnos.names.path import Levels
from limnos.rooms.maintenance.formats.explanation import TableExplanation
from limnos.rooms.maintenance.formats.lance_tables import assess_lance_table, explain_lance_table
from limnos.rooms.maintenance.services.assessing import finding_rows
from limnos.rooms.maintenance.services.lance.tables import clean_up_plan, current_state, removal_refusal
from limnos.rooms.maintenance.services.orphans.reports import OrphanReport
from limnos.rooms.maintenance.services.policies import EffectivePolicy, assessment_rules, retention_rule
from limnos.rooms.maintenance.services.rewriting.row_retention import NO_LANCE
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.table_formats import LANCE
from limnos.store.activity.maintenance import FindingRow, tables_of


class ExplanationResult(NamedTuple):
    """The explanation of a table of any format, its findings, and the reasons why some operations have no effect."""

    explanation: TableExplanation
    findings: Sequence[FindingRow]
    blocked: tuple[str, ...]


async def lance_explain(
    ctx: Context, scope: RequestScope, *, node: Node, path: Levels, policies: Mapping[str, EffectivePolicy]
) -> ExplanationResult:
    """Explain a Lance table from its current state. Raises as `current_state`."""
    state = await current_state(ctx, scope, levels=path)
    plan = await clean_up_plan(ctx, state, node_id=node.id, policies=policies)
    now_ms = ctx.services.store.time.now_ms()
    heads = await ctx.look_up(lambda: tables_of([node.id], table_format=LANCE))
    findings = assess_lance_table(state, assessment_rules(policies), now_ms=now_ms)
    rows = [row._replace(found_at=now_ms) for head in heads for row in finding_rows(head, findings)]
    refusal = await removal_refusal(ctx, node)
    blocked = [] if refusal is None else [f"{refusal}: no version is removed"]
    blocked += [] if retention_rule(policies) is None else [NO_LANCE]
    return ExplanationResult(explain_lance_table(state, plan), rows, tuple(blocked))


def lance_orphans(debris_ms: int) -> OrphanReport:
    """Return the report on unreferenced files of a Lance table: whether and after what age the setting
    `lance.debris_age_s` deletes them.
    """
    removal = f"removed after {age_text(debris_ms)}" if debris_ms else "not removed"
    return OrphanReport(
        removal=f"{removal} (setting lance.debris_age_s)", age_ms=None, check=None, files=(), removed=()
    )
