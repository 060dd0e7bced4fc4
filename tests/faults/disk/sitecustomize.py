"""Fills the disk of a server: Python loads this module at start if the folder is on its path. While a file exists,
every write fails.
"""

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3]))

from tests.full_disks import Disk

if file := os.environ.get("LIMNOS_TEST_FULL"):
    DISK = Disk(lambda: os.path.exists(file))  # noqa: PTH110 - asked at each write
