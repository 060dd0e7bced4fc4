# SPDX-License-Identifier: Apache-2.0
"""Names of lease holders: a killed process has ended, a running one has not, and nothing is said of other machines."""

from __future__ import annotations

import subprocess
import sys

import pytest

from limnos.model.statement_locks import secret_of
from limnos.services.request.concurrency import lease_holders
from limnos.services.request.concurrency.lease_holders import has_ended, new_holder

CHILD = """
from limnos.services.request.concurrency.lease_holders import new_holder
print(new_holder(), flush=True)
input()
"""


def test_killed_process_has_ended() -> None:
    """A process counts as ended when it was killed, also before it was reaped, and not while it runs."""
    command = [sys.executable, "-c", CHILD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        holder = child.stdout.readline().strip()
        ended_before = has_ended(holder)
        child.kill()
        child.stdout.read()  # until the kernel has closed its end
        while not has_ended(holder):
            pass
    ended_after = has_ended(holder)

    assert (ended_before, ended_after) == (False, True)


def test_later_process_with_the_same_id_is_another_one() -> None:
    """A holder whose process id now belongs to a process with another start has ended."""
    place, pid, start, secret = new_holder().split(":")

    assert not has_ended(f"{place}:{pid}:{start}:{secret}")
    assert has_ended(f"{place}:{pid}:{int(start) - 1}:{secret}")


@pytest.mark.parametrize("change", ["other boot", "other form"])
def test_holder_of_another_place_never_counts_as_ended(change: str) -> None:
    """Holders of another boot, another namespace or an earlier release may live."""
    _, _, start, secret = new_holder().split(":")

    holder = f"{'0' * 12}:999999999:{start}:{secret}" if change == "other boot" else secret

    assert not has_ended(holder)


def test_names_of_one_process_differ_and_fit_as_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each name has a secret part, and is short enough for the key of a lock's secret."""
    first, second = new_holder(), new_holder()
    monkeypatch.setattr(lease_holders, "_start_of", lambda _: "9" * 12)
    monkeypatch.setattr("os.getpid", lambda: 4_194_304)

    assert first != second
    assert secret_of(new_holder(), 1) != secret_of(new_holder(), 1)


def test_system_without_proc_names_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system does not tell the start of a process, a name is its secret part alone."""
    monkeypatch.setattr(lease_holders, "_place", lambda: None)

    assert ":" not in new_holder()
    assert not has_ended(new_holder())


def test_hidden_process_has_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that the system hides from this user, but that exists, has not ended."""
    holder = new_holder()
    monkeypatch.setattr(lease_holders, "_start_of", lambda _: None)

    assert not has_ended(holder)
