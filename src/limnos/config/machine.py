"""What this machine has, as far as settings must fit it.

May import the standard library. Knows no section.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

CGROUP_LIMITS: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where Linux tells what a container may use, by versions 2 and 1 of its control groups."""


def memory_bytes() -> int:
    """The memory of this machine, or of the container where that has less, in bytes."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in CGROUP_LIMITS:
        try:
            text = Path(path).read_text().strip()
        except OSError:
            continue
        found += [int(text)] if text.isdecimal() else []  # `max` is no limit
    return min(found)
