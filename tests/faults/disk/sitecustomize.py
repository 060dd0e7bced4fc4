"""Found by the Python of a server that is started with this folder on its path: its disk is full while a file is
there.
"""

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3]))

from tests.full_disks import Disk

if file := os.environ.get("LIMNOS_TEST_FULL"):
    DISK = Disk(lambda: os.path.exists(file))  # noqa: PTH110 - asked at each write
