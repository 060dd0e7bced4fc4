# SPDX-License-Identifier: Apache-2.0
"""The schedule of steps: each starts when its dependencies are done; several run concurrently.

Determines the order and the threads of steps. Must not know the work of a step. After the first failure or a stop no
further step starts, and running steps finish.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from limnos.model.struct_types import build_struct_types
from limnos.pipeline.run.result import EndReason
from limnos.pipeline.run.stop import RunStopped, StopSignal

_LOOK_S = 0.2
"""The interval between two checks for a stop, in seconds. Python also handles signals at these moments."""


@dataclass(frozen=True, slots=True)
class ScheduleResult:
    """The result of a schedule: done steps, errors by step, and steps that never started."""

    done: frozenset[str]
    failed: Mapping[str, BaseException]
    waiting: tuple[str, ...]


def run_schedule(
    needs: Mapping[str, frozenset[str]],
    do: Callable[[str], None],
    *,
    at_once: int,
    stop: StopSignal,
    halt: Callable[[], None],
) -> ScheduleResult:
    """Run each step of `needs` after its dependencies. Dependencies that are not keys of `needs` count as done.

    After a stop `halt` is called, possibly more than once, to cancel running steps.
    """
    waiting = dict(needs)
    done: set[str] = set()
    failed: dict[str, BaseException] = {}
    under_way: dict[Future[None], str] = {}
    build_struct_types()
    with ThreadPoolExecutor(max_workers=at_once, thread_name_prefix="step") as pool:
        while True:
            if not failed and stop.reason is None:
                for name in _ready(waiting, done, among=needs)[: at_once - len(under_way)]:
                    del waiting[name]
                    under_way[pool.submit(do, name)] = name
            if not under_way:
                break
            for future in _wait_for_ended(under_way, stop):
                _note(under_way.pop(future), future, done=done, failed=failed)
            if stop.reason is not None and under_way:
                halt()
    return ScheduleResult(frozenset(done), failed, tuple(waiting))


def _wait_for_ended(under_way: Collection[Future[None]], stop: StopSignal) -> Collection[Future[None]]:
    """Wait for steps to end. Ctrl-C stops the run, so that running steps are cancelled in order."""
    try:
        return wait(under_way, timeout=_LOOK_S, return_when=FIRST_COMPLETED).done
    except KeyboardInterrupt:
        stop.request(EndReason.INTERRUPTED, "interrupted by the keyboard")
        return ()


def _ready(
    waiting: Mapping[str, frozenset[str]], done: set[str], *, among: Mapping[str, frozenset[str]]
) -> tuple[str, ...]:
    """Return the steps whose dependencies are done, in the order of the file."""
    return tuple(name for name, needed in waiting.items() if all(each in done or each not in among for each in needed))


def _note(name: str, future: Future[None], *, done: set[str], failed: dict[str, BaseException]) -> None:
    error = future.exception()
    if error is None:
        done.add(name)
    elif not isinstance(error, RunStopped):
        failed[name] = error


def steps_after(names: frozenset[str], needs: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the given steps and their direct and indirect dependents."""
    entries = set(names)
    grown = True
    while grown:
        more = {name for name, needed in needs.items() if name not in entries and needed & entries}
        entries |= more
        grown = bool(more)
    return frozenset(entries)


def steps_before(names: frozenset[str], needs: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the given steps' direct and indirect dependencies.

    A given step is included only if another needs it.
    """
    entries: set[str] = set()
    todo = list(names)
    while todo:
        more = needs.get(todo.pop(), frozenset()) - entries
        entries |= more
        todo += more
    return frozenset(entries)
