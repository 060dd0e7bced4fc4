# SPDX-License-Identifier: Apache-2.0
"""Whether this machine can confine jobs, found out by a process that tries it.

The server process has threads, so it cannot try it itself.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Final

from limnos.config.settings import Settings

MODULE: Final = "limnos.confinement.namespaces"
WITHIN_S: Final = 60.0


def job_obstacle(settings: Settings) -> str:
    """Return why jobs cannot be confined on this machine; empty if they can, need not be, or are disabled."""
    jobs = settings.jobs
    if jobs.executor == "off" or not jobs.confined:
        return ""
    command = [sys.executable, "-P", "-m", MODULE, *([jobs.user] if jobs.user else [])]
    try:
        process = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=WITHIN_S,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"the process that tries it failed ({error})"
    return process.stdout.strip()


def job_notes(settings: Settings) -> list[str]:
    """Return a sentence for `server check` if every job of this server would be refused."""
    reason = job_obstacle(settings)
    return [obstacle_text(reason)] if reason else []


def obstacle_text(reason: str) -> str:
    """Return the sentence that tells an operator why jobs are refused, and what to do."""
    return (
        f"Jobs are refused, because they cannot be confined: {reason}. Allow namespaces (docs/guides/jobs.md), or set "
        "jobs.confined = false if all programs in jobs.allowed are trusted"
    )
