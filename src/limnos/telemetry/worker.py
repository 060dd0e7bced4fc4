# SPDX-License-Identifier: Apache-2.0
"""The ordinal of this worker process, for log lines and metrics; None if the server has a single process.

Must not know the start of processes.
"""

from __future__ import annotations

number: int | None = None


def set_worker_number(chosen: int) -> None:
    """Set the ordinal of this worker process, from 1, which log lines and metrics contain."""
    global number  # noqa: PLW0603 - one number per process is the point
    number = chosen
