# SPDX-License-Identifier: Apache-2.0
"""Pages of the server's nodes with their clocks, metrics of this node, and the effective settings.

Has no business rules: the services return this data only to service admins.
"""

from __future__ import annotations

from typing import Final

from limnos.http.response import Response
from limnos.rooms.console.http.frame import frame_of
from limnos.rooms.console.http.operation.sections import operation_tabs
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.sheets import Sheet, SheetCell, SheetColumn, SheetPage, sheet_response
from limnos.rooms.console.http.tabs import Chip, Fact
from limnos.services.request.concurrency.background_loops import LoopFailure
from limnos.services.upkeep.effective_settings import SettingLine, settings_list
from limnos.services.upkeep.nodes import NodeLine, server_state
from limnos.telemetry.metrics import REGISTRY, Counter, Gauge, LabelValues

CLOCK_OFF_MS: Final = 5_000
"""The clock offset in milliseconds above which the page marks a node."""
_VALUE_CHARS_MAX: Final = 500
_METRIC_PREFIXES: Final = (
    "limnos_answers_",
    "limnos_batched_mutations_total",
    "limnos_batches_total",
    "limnos_chores_",
    "limnos_cold_reads_",
    "limnos_feed_",
    "limnos_gate_",
    "limnos_lock_",
    "limnos_stale_",
    "limnos_webhook_behind",
)
"""Prefixes of the names of metrics of caches and queues."""


async def nodes_page(page_request: PageRequest) -> Response:
    """Show the nodes with a heartbeat within the last day, and failing background work and metrics of the node that
    handles the request.
    """
    state = await server_state(page_request.ctx)
    frame = await frame_of(page_request, "Nodes", section="operations")
    columns = (
        SheetColumn(text="Node"),
        SheetColumn(text="State"),
        SheetColumn(text="Release", hides=True),
        SheetColumn(text="Started", hides=True),
        SheetColumn(text="Last heartbeat"),
        SheetColumn(text="Clock", is_number=True),
    )
    behind = state.search
    words = (
        f"{behind.changes:,} changes behind, in {behind.zones:,} catalogs and metalakes"
        if behind.zones
        else "up to date"
    )
    loops = _loops_sheet(state.failures, now_ms=page_request.ctx.services.store.time.now_ms())
    nodes = Sheet(
        title="",
        columns=columns,
        rows=tuple(_node_row(each) for each in state.nodes),
        note="No node has sent a heartbeat yet.",
    )
    page = SheetPage(
        frame=frame,
        title="Nodes",
        intro="Each process that serves this lake sends a heartbeat every half minute.",
        tabs=operation_tabs(page_request, frame.metalake, current="nodes"),
        facts=(Fact(label="Search index", text=words),),
        sheets=(nodes, loops, _others_sheet(state.nodes), _metrics_sheet()),
    )
    return sheet_response(page_request, page)


def _node_row(line: NodeLine) -> tuple[SheetCell, ...]:
    node = line.node
    state = Chip("silent", "warn", "alert") if line.is_silent else Chip("alive", "ok", "check")
    chips = (state, Chip("serves this page")) if line.is_own else (state,)
    is_off = abs(node.clock_offset_ms) > CLOCK_OFF_MS
    return (
        SheetCell(text=node.name, is_name=True),
        SheetCell(chips=chips),
        SheetCell(text=node.version),
        SheetCell(at_ms=node.started_at),
        SheetCell(at_ms=node.seen_at),
        SheetCell(
            text=f"{node.clock_offset_ms / 1000:+.1f} s", chips=(Chip("correct it", "bad", "alert"),) if is_off else ()
        ),
    )


def _loops_sheet(failures: tuple[LoopFailure, ...], *, now_ms: int) -> Sheet:
    """Return the list of this node's background loops whose last step failed or does not end."""
    rows = tuple(
        (
            SheetCell(text=each.name, is_name=True, chips=(_loop_chip(is_stuck=each.is_stuck),)),
            SheetCell(at_ms=now_ms - round(each.failing_s * 1000)),
            SheetCell(text=f"{each.failures:,}"),
            SheetCell(text=each.reason),
            SheetCell(text=f"{each.next_try_s:.0f} s"),
        )
        for each in failures
    )
    columns = (
        SheetColumn(text="Work"),
        SheetColumn(text="Since"),
        SheetColumn(text="Attempts", is_number=True),
        SheetColumn(text="Last error", is_wrapped=True),
        SheetColumn(text="Next attempt in", is_number=True),
    )
    return Sheet(
        title="Background work of this node",
        columns=columns,
        rows=rows,
        note="All background work of this node succeeds.",
    )


def _others_sheet(lines: tuple[NodeLine, ...]) -> Sheet:
    """Return the list of the failing background loops that other nodes report with their heartbeats."""
    rows = tuple(
        (
            SheetCell(text=each.name, is_name=True, chips=(_loop_chip(is_stuck=not each.error),)),
            SheetCell(text=line.node.name),
            SheetCell(at_ms=each.since),
            SheetCell(text=each.error),
        )
        for line in lines
        if not line.is_own
        for each in line.node.failing
    )
    columns = (
        SheetColumn(text="Work"),
        SheetColumn(text="Node"),
        SheetColumn(text="Since"),
        SheetColumn(text="Last error"),
    )
    return Sheet(
        title="Background work of other nodes",
        columns=columns,
        rows=rows,
        note="The other nodes report no failing background work.",
    )


def _loop_chip(*, is_stuck: bool) -> Chip:
    return Chip("has not ended" if is_stuck else "failing", "bad", "alert")


def _metrics_sheet() -> Sheet:
    """Return the list of the metrics of this process's caches and queues."""
    metrics = [
        each for each in REGISTRY.all() if isinstance(each, Gauge | Counter) and each.name.startswith(_METRIC_PREFIXES)
    ]
    rows = tuple(
        (
            SheetCell(text=each.name.removeprefix("limnos_").replace("_", " "), is_name=True, small=each.help),
            SheetCell(text=", ".join(_metric_text(labels, value) for labels, value in each.items())),
        )
        for each in metrics
        if each
    )
    columns = (SheetColumn(text="Figure"), SheetColumn(text="Since the start, or at present"))
    return Sheet(
        title="Caches and queues of this node", columns=columns, rows=rows, note="This node has no figures yet."
    )


def _metric_text(labels: LabelValues, value: float) -> str:
    number = f"{value:,.3f}" if value % 1 else f"{int(value):,}"
    return f"{' '.join(map(str, labels))} {number}".strip()


async def settings_page(page_request: PageRequest) -> Response:
    """Show the effective settings of the node that handles the request, those that differ from the default first."""
    lines = await settings_list(page_request.ctx)
    frame = await frame_of(page_request, "Settings", section="operations")
    columns = (
        SheetColumn(text="Setting"),
        SheetColumn(text="Value", is_code=True, is_wrapped=True),
        SheetColumn(text="Set by", hides=True),
    )
    changed_rows = tuple((*_setting_cells(each), SheetCell(text=each.origin)) for each in lines if not each.is_default)
    rest = tuple(_setting_cells(each) for each in lines if each.is_default)
    page = SheetPage(
        frame=frame,
        title="Settings",
        intro=(
            "Settings of the node that serves this page. They are read at its start, from flags, the environment and a"
            " file."
        ),
        tabs=operation_tabs(page_request, frame.metalake, current="settings"),
        sheets=(
            Sheet(title="Set here", columns=columns, rows=changed_rows, note="Every setting has its default."),
            Sheet(title="Defaults", columns=columns[:2], rows=rest, note="All settings differ from their defaults."),
        ),
    )
    return sheet_response(page_request, page)


def _setting_cells(line: SettingLine) -> tuple[SheetCell, SheetCell]:
    """Return the cells with a setting's name and value."""
    value = "unset" if line.value == "null" else line.value
    chips = (Chip("secret", "plain", "lock"),) if line.is_secret else ()
    return SheetCell(text=line.name, is_name=True), SheetCell(text=value[:_VALUE_CHARS_MAX], chips=chips)


ROUTES = (
    ConsoleRoute(method="GET", path="/nodes", handler=nodes_page, operation="nodes-page", query=("metalake",)),
    ConsoleRoute(method="GET", path="/settings", handler=settings_page, operation="settings-page", query=("metalake",)),
)
