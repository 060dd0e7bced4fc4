# SPDX-License-Identifier: Apache-2.0
"""Events of a run as text: human-readable lines for terminals and logs, or one JSON object per line for programs.

Converts events to text. Must not know runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from limnos.client.activity.runs import sample_lines

if TYPE_CHECKING:
    from rich.console import Console

    from limnos.pipeline.run.events import Listener, RunEvent

LineWriter = Callable[[str], None]
_MARKS = {"done": "done", "failed": "FAILED", "skipped": "not run", "running": "running"}
_UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def json_lines(write: LineWriter) -> Listener:
    """Return a listener that writes each event as a line of JSON, without the fields that are None."""

    def print_event(event: RunEvent) -> None:
        fields = {name: getattr(event, name) for name in event.__slots__}
        further = fields.pop("further")
        entry = {name: value for name, value in fields.items() if value not in (None, ())}
        write(msgspec.json.encode({**entry, **further}).decode())

    return print_event


def plain_lines(write: LineWriter) -> Listener:
    """Return a listener that writes each change as a line of text, without task counts."""

    def print_event(event: RunEvent) -> None:
        if event.state == "running" and event.tasks is not None:
            return
        write(line_of(event))

    return print_event


def terminal(console: Console) -> Listener:
    """Return a listener that writes colored lines to a terminal, and task counts of running steps."""
    colors = {"done": "green", "published": "green", "failed": "red", "moved": "yellow", "held": "yellow"}

    def print_event(event: RunEvent) -> None:
        if event.state == "running" and event.tasks is not None:
            if event.tasks:
                console.print(
                    f"  {event.step}: {tasks_of(event)}", style="dim", end="\r", highlight=False, markup=False
                )
            return
        console.print(line_of(event), style=colors.get(event.state, ""), highlight=False, markup=False, soft_wrap=True)

    return print_event


def line_of(event: RunEvent) -> str:
    """Format one event as human-readable text: step or run, state, rows and time."""
    if event.step is None:
        return _of_run(event)
    mark = _MARKS.get(event.state, event.state)
    parts = [f"{mark:<8}{event.step}"]
    if event.rows is not None:
        parts.append(f"{event.rows:,} rows")
    if event.bytes is not None:
        parts.append(size_of(event.bytes))
    if event.seconds is not None:
        parts.append(f"{event.seconds:.1f} s")
    if event.left_s is not None:
        parts.append(f"{event.left_s:.0f} s left")
    lines = ["  ".join(parts)]
    if event.message:
        position = event.further.get("position")
        lines.append(f"        {'' if position is None else f'{position}: '}{event.message}")
    broken = [each for each in event.findings if each.get("message") and (each.get("broken") or not each.get("held"))]
    samples = {number: sample_lines(each.get("sample")) for number, each in enumerate(broken)}
    needs_names = sum(map(bool, samples.values())) > 1
    for number, each in enumerate(broken):
        words, name = str(each["message"]), f"{each.get('rule')}: " if needs_names else ""
        lines += [f"        {words}"] if words not in (event.message or "").split("; ") else []
        lines += [f"          {name}such as {row}" for row in samples[number]]
    return "\n".join(dict.fromkeys(lines))


def _of_run(event: RunEvent) -> str:
    words = [f"run {event.run}".rstrip(), event.state]
    if event.seconds is not None:
        words.append(f"in {event.seconds:.1f} s")
    text = " ".join(words)
    return f"{text}: {event.message}" if event.message else text


def tasks_of(event: RunEvent) -> str:
    """Format the task counts of an event: `12 of 200 tasks, 30 s left`."""
    left = "" if event.left_s is None else f", {event.left_s:.0f} s left"
    return f"{event.tasks_done} of {event.tasks} tasks{left}"


def size_of(number: int) -> str:
    """Format a count of bytes with a binary unit: `1.5 MiB`."""
    for unit, word in _UNITS:
        if number >= unit:
            return f"{number / unit:.1f} {word}"
    return f"{number} bytes"
