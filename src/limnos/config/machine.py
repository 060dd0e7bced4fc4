# SPDX-License-Identifier: Apache-2.0
"""Limits of this machine that settings must fit.

Must not know sections.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

CGROUP_LIMITS: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Files with a container's memory limit on Linux, by versions 2 and 1 of control groups."""


def memory_bytes() -> int:
    """Return the memory in bytes of this machine, or of the container if that is less."""
    results = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in CGROUP_LIMITS:
        try:
            text = Path(path).read_text().strip()
        except OSError:
            continue
        results += [int(text)] if text.isdecimal() else []  # `max` means no limit
    return min(results)
