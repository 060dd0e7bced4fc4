# SPDX-License-Identifier: Apache-2.0
"""CPU time of process trees, from /proc: the scheduler's run time of each thread.

Imports the standard library only. Knows nothing of what the processes do. Linux only.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

PROC = Path("/proc")
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class TreeCpu:
    """Run time of processes and all of their descendants, including threads and processes that have ended.

    A thread's time is read by each `look`; its run time between the last read and its end is lost. So long measurements
    should read periodically.
    """

    def __init__(self, roots: Sequence[int], *, below: bool = True) -> None:
        """Watch some processes, and their descendants if `below` is true."""
        self.roots = tuple(roots)
        self.below = below
        self._seen: dict[tuple[int, int], int] = {}
        self._ended_ns = 0

    def look(self) -> int:
        """Read the clocks of all threads. Returns a growing number of CPU nanoseconds."""
        for pid in descendants(self.roots) if self.below else self.roots:
            for tid in _threads(pid):
                now = _run_ns(pid, tid)
                if now is None:
                    continue
                before = self._seen.get((pid, tid), 0)
                if now < before:  # the id was reused by a new thread
                    self._ended_ns += before
                self._seen[pid, tid] = now
        return self._ended_ns + sum(self._seen.values())


def descendants(roots: Sequence[int]) -> set[int]:
    """Return the roots and every process below them, by the parents in /proc/*/stat."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir(PROC):  # noqa: PTH208
        if entry.isdigit():
            parent = _parent(int(entry))
            if parent is not None:
                children.setdefault(parent, []).append(int(entry))
    pids: set[int] = set()
    todo = list(roots)
    while todo:
        pid = todo.pop()
        if pid not in pids:
            pids.add(pid)
            todo.extend(children.get(pid, ()))
    return pids


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="ascii", errors="replace") as file:  # noqa: PTH123 - read often: no Path objects
            return file.read()
    except OSError:  # the process has ended
        return None


def _parent(pid: int) -> int | None:
    stat = _read(f"/proc/{pid}/stat")
    if not stat:
        return None
    return int(stat[stat.rindex(")") + 1 :].split()[1])  # the name before it may contain anything


def _threads(pid: int) -> list[int]:
    try:
        return [int(tid) for tid in os.listdir(f"/proc/{pid}/task")]  # noqa: PTH208
    except OSError:
        return []


def _run_ns(pid: int, tid: int) -> int | None:
    """Return a thread's run time in nanoseconds, or by clock ticks on kernels without it."""
    schedstat = _read(f"/proc/{pid}/task/{tid}/schedstat")
    if schedstat:
        return int(schedstat.split()[0])
    stat = _read(f"/proc/{pid}/task/{tid}/stat")
    if not stat:
        return None
    fields = stat[stat.rindex(")") + 1 :].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_NS


def processes_s(roots: Sequence[int]) -> float:
    """Return CPU seconds of the processes and their descendants, by whole processes and in clock ticks.

    Ended threads and waited-for children are included. For work of seconds in long-lived processes.
    """
    ticks = 0
    for pid in descendants(roots):
        stat = _read(f"/proc/{pid}/stat")
        if stat:
            ticks += sum(map(int, stat[stat.rindex(")") + 1 :].split()[11:15]))
    return ticks * _TICK_NS / 1e9
