# SPDX-License-Identifier: Apache-2.0
"""Lets the disk of a server fail: Python loads this module at start if the folder is on its path.

While the file that LIMNOS_TEST_FULL names exists, every write fails as on a full disk. While the file that
LIMNOS_TEST_BROKEN names exists, its accesses fail with EIO: "read", "write", or both, as its text says.
"""

import errno
import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3]))

from tests.full_disks import Access, Disk, full

if file := os.environ.get("LIMNOS_TEST_FULL"):
    DISK = Disk(full(lambda: os.path.exists(file)))  # noqa: PTH110 - asked at each write
if broken := os.environ.get("LIMNOS_TEST_BROKEN"):
    MARK = Path(broken)

    def fails(access: Access) -> int:
        """Return the error number of an access, or 0."""
        return errno.EIO if MARK.exists() and access in MARK.read_text().split() else 0

    BROKEN = Disk(fails)
