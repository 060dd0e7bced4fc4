# SPDX-License-Identifier: Apache-2.0
"""States of runs and steps, each with a label, an icon and a colour; and graphs of steps.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from limnos.model.runs import RunStepState
from limnos.rooms.console.http.pictures import GraphPicture, PictureNode, graph_picture
from limnos.rooms.console.http.rendering import count_text
from limnos.rooms.console.http.tabs import Chip, ChipLook

_CHIPS: Final[Mapping[str, tuple[ChipLook, str]]] = {
    "published": ("ok", "check"),
    "done": ("ok", "check"),
    "running": ("info", "ring"),
    "cancelling": ("warn", "ring"),
    "held": ("warn", "alert"),
    "failed": ("bad", "cross"),
    "lost": ("bad", "cross"),
    "cancelled": ("plain", "cross"),
    "discarded": ("plain", "trash"),
}


def state_chip(state: str) -> Chip:
    """Return the label of a state, with its colour and icon."""
    look, icon = _CHIPS.get(state, ("plain", ""))
    return Chip(state, look, icon)


def result_chip(*, is_held: bool, action: str, words: str = "") -> Chip:
    """Return the label of an expectation's result: passed, a warning, or failed. `words` replace the label's text."""
    if is_held:
        return Chip(words or "passed", "ok", "check")
    if action == "warn":
        return Chip(words or "warning", "warn", "alert")
    return Chip(words or "failed", "bad", "cross")


def reads_of(step: RunStepState) -> list[str]:
    """Return the inputs of a step; empty if the structure of its report is unknown."""
    try:
        return msgspec.json.decode(step.reads, type=list[str])
    except msgspec.MsgspecError:
        return []


def steps_picture(steps: Sequence[RunStepState]) -> GraphPicture:
    """Return the picture of a run's steps, with lines from the producers of tables to their readers."""
    makers = {name: step.name for step in steps for name in (step.output, step.name) if name}
    edges = [
        (makers[read], step.name)
        for step in steps
        for read in reads_of(step)
        if makers.get(read, step.name) != step.name
    ]
    nodes = [
        PictureNode(
            id=step.name,
            name=step.name,
            place=f"{step.state}{_rows(step)}",
            icon="run",
            look=_CHIPS.get(step.state, ("plain", ""))[0],
        )
        for step in steps
    ]
    return graph_picture(f"{len(nodes)} steps, {len(edges)} edges between them", nodes, edges=edges)


def _rows(step: RunStepState) -> str:
    return "" if step.rows is None else f", {count_text(step.rows)} rows"


def message_text(rule: str, message: str) -> str:
    """Return the message of an expectation's result without the expectation's name, which has a column of its own."""
    return message.removeprefix(f"{rule}: ")
