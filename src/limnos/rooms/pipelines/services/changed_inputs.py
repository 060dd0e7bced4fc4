# SPDX-License-Identifier: Apache-2.0
"""Inputs of a scheduled pipeline: whether what its last run read has changed since.

Reads the record of the last run, which a client wrote: what it does not say, or says wrongly, counts as changed. Must
not know what a pipeline's files contain, nor decide about access: the run that follows reads with its user's rights.
"""

from __future__ import annotations

import asyncio

import msgspec

from limnos.access.authentication import Credential
from limnos.formats.iceberg.view_fingerprints import metadata_fingerprint
from limnos.model.entities import Node
from limnos.model.errors import LimnosError
from limnos.model.kinds import Kind
from limnos.model.runs import PUBLISHED
from limnos.model.schedules import Schedule
from limnos.services.request.context import Context
from limnos.services.request.node_services import NodeServices
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import ICEBERG, LANCE
from limnos.store.activity.runs import newest_run_read
from limnos.store.objects.lance_versions import lance_top_read
from limnos.store.objects.node_reads import node_read

TABLES_MAX = 1_000
"""The maximum number of inputs that are compared; a run with more counts as changed."""


class _Pin(msgspec.Struct):
    table: list[str]
    snapshot: int | None = None
    fingerprint: str | None = None


class _Options(msgspec.Struct, kw_only=True):
    """The options of a run about its inputs. Partial runs name their steps."""

    pins: list[_Pin] = []
    sources: dict[str, object] = {}
    loops: dict[str, object] = {}
    only: list[str] = []
    select: list[str] = []
    exclude: list[str] = []
    since: list[str] = msgspec.field(name="from", default=[])


class _CurrentSnapshot(msgspec.Struct, rename="kebab"):
    current_snapshot_id: int | None = None


async def inputs_changed(services: NodeServices, schedule: Schedule) -> bool:
    """Return whether a due time of a schedule starts a run: always, or with `if_changed` unless the newest run of the
    pipeline was whole and published, began after the schedule was registered, and every table and view that it read is
    as it was. Topics, loops over queries, Lance tables whose versions their storage keeps, and tables of other systems
    count as changed.
    """
    if not schedule.terms.if_changed:
        return True
    run = await services.gate.look_up(lambda: newest_run_read(schedule.pipeline_id))
    if run is None or run.state != PUBLISHED or run.started_at < schedule.created_at:
        return True
    try:
        options = msgspec.json.decode(run.options, type=_Options)
    except (msgspec.ValidationError, msgspec.DecodeError):
        return True
    partial = options.only or options.since or options.select or options.exclude or options.loops
    metalake = await services.gate.look_up(lambda: node_read(schedule.metalake_id))
    if partial or options.sources or not options.pins or len(options.pins) > TABLES_MAX or metalake is None:
        return True
    ctx = Context(services, Credential(user=schedule.user), "schedule")
    for pin in options.pins:
        if not await _is_unchanged(ctx, metalake, pin=pin, started_ms=run.started_at):
            return True
        await asyncio.sleep(0)  # documents are decoded on the loop: requests come between two of them
    return False


async def _is_unchanged(ctx: Context, metalake: Node, *, pin: _Pin, started_ms: int) -> bool:
    """Return whether a pinned input of a run is a table in a catalog in use that still has its snapshot or version, or
    a view that still has its definition. The tables below a view have pins of their own.
    """
    if len(pin.table) < 2:
        return False
    catalog, *levels = pin.table

    def compare(request_view: RequestView) -> bool | Node:
        """Return the answer; for a Lance table its node, because its versions are not in the view."""
        request_view.require_in_use()
        if pin.fingerprint is not None:
            view, _ = request_view.find(tuple(levels), Kind.VIEW)
            return view is not None and metadata_fingerprint(request_view.document(view.id).body) == pin.fingerprint
        table, _ = request_view.find(tuple(levels), Kind.TABLE)
        if table is None or table.format not in (ICEBERG, LANCE):
            return False
        if table.format == LANCE:
            return table
        body = request_view.document(table.id).body
        current = msgspec.json.decode(body, type=_CurrentSnapshot).current_snapshot_id
        return (None if current == -1 else current) == pin.snapshot

    try:
        answer = await ctx.read(RequestScope(metalake.name, catalog), compare, refuse_disabled=False)
        return answer if isinstance(answer, bool) else await _has_version(ctx, answer, pin=pin, started_ms=started_ms)
    except (LimnosError, msgspec.MsgspecError):
        return False  # the run says what is missing


async def _has_version(ctx: Context, table: Node, *, pin: _Pin, started_ms: int) -> bool:
    """Return whether a Lance table has the pinned version as its newest one, and had it when the run began: a table
    that was dropped and declared again counts its versions anew.
    """
    top = await ctx.look_up(lambda: lance_top_read(table.id, ""))
    if top is None or top.version != pin.snapshot:
        return False
    return max(table.created_at, top.created_at) <= started_ms
