"""Which of several serving processes this one is: for log lines and metrics. None where there is only one.

May import nothing. Must not know how processes are started.
"""

from __future__ import annotations

number: int | None = None


def set_worker_number(chosen: int) -> None:
    """Say which worker this process is, from 1."""
    global number  # noqa: PLW0603 - one number per process is the point
    number = chosen
