# SPDX-License-Identifier: Apache-2.0
"""Request ids: unique within a process, between processes and after a fork."""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from limnos.telemetry.request_ids import PREFIX_LENGTH, next_request_id


def test_ids_are_unique_across_threads() -> None:
    """No id is assigned twice, with any number of threads."""
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda _: next_request_id(), range(5_000)))

    assert len(set(ids)) == 5_000


def test_ids_are_header_safe_and_sort_by_assignment() -> None:
    """An id is safe in headers and log lines, and the ids of one process sort in the order of their assignment."""
    ids = [next_request_id() for _ in range(300)]

    assert all(re.fullmatch("[0-9a-f]{18,}", each) for each in ids)
    assert ids == sorted(ids)


def test_another_process_has_another_prefix() -> None:
    """Two processes do not share ids."""
    code = "from limnos.telemetry.request_ids import next_request_id; print(next_request_id())"
    other = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()

    assert other[:PREFIX_LENGTH] != next_request_id()[:PREFIX_LENGTH]


def test_a_forked_child_has_another_prefix() -> None:
    """A forked child does not repeat its parent's ids."""
    code = (
        "import os; from limnos.telemetry.request_ids import next_request_id; next_request_id()\n"
        "child = os.fork()\n"
        "if child: os.waitpid(child, 0)\n"
        "print(next_request_id(), flush=True)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    one, other = run.stdout.split()

    assert one[:PREFIX_LENGTH] != other[:PREFIX_LENGTH]
