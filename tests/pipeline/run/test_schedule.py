# SPDX-License-Identifier: Apache-2.0
"""Steps begin when their inputs are done, in parallel if allowed, and none begins after a failure."""

from __future__ import annotations

import random
import threading

import pytest

from limnos.pipeline.run import schedule
from limnos.pipeline.run.result import EndReason
from limnos.pipeline.run.schedule import run_schedule, steps_after
from limnos.pipeline.run.stop import RunStopped, StopSignal


def nothing() -> None:
    """Halt no step."""


@pytest.mark.parametrize("seed", range(10))
def test_steps_run_once_after_their_inputs(seed: int) -> None:
    """In random graphs every step runs once, after all its inputs, and at most the given number run concurrently."""
    chance = random.Random(seed)
    names = [f"s{number}" for number in range(30)]
    needs = {
        name: frozenset(chance.sample(names[:place], k=min(place, chance.randint(0, 3))))
        for place, name in enumerate(names)
    }
    done: list[str] = []
    lock, under_way, most = threading.Lock(), [0], [0]

    def do(name: str) -> None:
        with lock:
            assert needs[name] <= set(done)
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        with lock:
            done.append(name)
            under_way[0] -= 1

    carried = run_schedule(needs, do, at_once=3, stop=StopSignal(), halt=nothing)

    assert sorted(done) == sorted(names)
    assert carried.done == set(names)
    assert most[0] <= 3


def test_independent_steps_run_at_the_same_time() -> None:
    """Two steps that wait for each other both begin."""
    meeting = threading.Barrier(2, timeout=300)

    carried = run_schedule(
        {"a": frozenset(), "b": frozenset()},
        lambda name: meeting.wait() and None,
        at_once=2,
        stop=StopSignal(),
        halt=nothing,
    )

    assert carried.done == {"a", "b"}


def test_no_step_begins_after_a_failure() -> None:
    """The failed step is named, and steps that have not begun are reported as waiting."""

    def do(name: str) -> None:
        if name == "b":
            raise ValueError("no")

    carried = run_schedule(
        {"a": frozenset(), "b": frozenset({"a"}), "c": frozenset({"b"}), "d": frozenset({"c"})},
        do,
        at_once=1,
        stop=StopSignal(),
        halt=nothing,
    )

    assert carried.done == {"a"}
    assert list(carried.failed) == ["b"]
    assert carried.waiting == ("c", "d")


def test_running_steps_are_halted_when_run_stops() -> None:
    """If the run is stopped, running steps are halted, and no step begins."""
    stop, halted = StopSignal(), threading.Event()

    def do(name: str) -> None:
        stop.request(EndReason.CANCELLED, "enough")
        assert halted.wait(300)
        stop.check()

    carried = run_schedule({"a": frozenset(), "b": frozenset({"a"})}, do, at_once=2, stop=stop, halt=halted.set)

    assert carried.done == frozenset()
    assert carried.failed == {}
    assert carried.waiting == ("b",)


def test_ctrl_c_halts_running_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a signal handler Ctrl-C interrupts the waiting thread, which halts running steps and waits for their
    end.
    """
    stop, halted = StopSignal(), threading.Event()
    sound = schedule.wait

    def interrupted(*arguments: object, **more: object) -> object:
        monkeypatch.setattr(schedule, "wait", sound)
        raise KeyboardInterrupt

    def do(name: str) -> None:
        assert halted.wait(300)
        stop.check()

    monkeypatch.setattr(schedule, "wait", interrupted)
    carried = run_schedule({"a": frozenset(), "b": frozenset({"a"})}, do, at_once=2, stop=stop, halt=halted.set)

    assert (carried.done, carried.failed, carried.waiting) == (frozenset(), {}, ("b",))
    assert stop.reason is not None
    assert stop.reason.why is EndReason.INTERRUPTED


def test_first_reason_to_stop_is_retained() -> None:
    """The first reason to stop is kept: a run that lost its lease is not cancelled afterwards."""
    stop = StopSignal()
    stop.request(EndReason.SUPERSEDED, "first")
    stop.request(EndReason.CANCELLED, "second")

    with pytest.raises(RunStopped, match="first") as stopped:
        stop.check()

    assert stopped.value.why is EndReason.SUPERSEDED


def test_transitive_dependents_come_after_their_step() -> None:
    """Transitive dependents of a step come after it; other steps do not."""
    needs = {"a": frozenset[str](), "b": frozenset({"a"}), "c": frozenset({"b"}), "d": frozenset[str]()}

    assert steps_after(frozenset({"a"}), needs) == {"a", "b", "c"}
    assert steps_after(frozenset({"d"}), needs) == {"d"}
