# SPDX-License-Identifier: Apache-2.0
"""`node list | settings`: the nodes of a server and their settings.

The commands are for service admins.
"""

from __future__ import annotations

import json
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from limnos.cli.common import DEFAULTS, CommonFlags
from limnos.cli.output import show_rows

app = App(name="node")


@app.command(name="list")
def list_nodes(*, common: CommonFlags = DEFAULTS) -> None:
    """List the server's nodes with a heartbeat within the last day, with their clocks and failing background work."""
    with common.client() as client:
        info = client.nodes.list()
    rows = [msgspec.structs.asdict(each) for each in info.nodes]
    if common.output_format == "table":
        for row, node in zip(rows, info.nodes, strict=True):
            texts = [f"{each.name} since {each.since}: {each.error or 'has not ended'}" for each in node.failing]
            row["failing"] = "; ".join(texts)
    columns = ["name", "version", "started_at", "seen_at", "clock_offset_ms", "silent", "own", "failing"]
    show_rows(rows, columns, output_format=common.output_format, empty="no node has sent a heartbeat yet")


@app.command
def settings(
    *,
    all_: Annotated[bool, Parameter(name="--all", negative="", help="Also settings with their default value.")] = False,
    common: CommonFlags = DEFAULTS,
) -> None:
    """List the effective settings of the node that answers. Secrets are masked."""
    with common.client() as client:
        lines = client.nodes.settings()
    rows = [
        {
            "name": each.name,
            "value": json.dumps(each.value, ensure_ascii=False),
            "default": each.default,
            "origin": each.origin,
        }
        for each in lines
        if all_ or not each.default
    ]
    show_rows(
        rows,
        ["name", "value", "default", "origin"],
        output_format=common.output_format,
        empty="every setting has its default",
    )
