# SPDX-License-Identifier: Apache-2.0
"""Distribution of tests to processes: whole modules, all tests with Spark to one process, and so the house tests.

A module's tests share servers, so they run in one process; a second Spark would cost half a gigabyte and its start. The
process that distributes tests knows their names but not their marks, so modules with Spark are recognized by their
text; the collecting process checks that. (The groups of pytest-xdist 3.8 do not work with names of pytest 9.) Must know
nothing of any single test.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    import pytest
    from xdist.remote import Producer

_ROOT: Final = Path(__file__).parents[1]
_FOLDERS: Final = ("tests/demo/", "tests/spark/", "tests/pipeline/engine/")
_TEXT: Final = re.compile(r"mark\.spark\b|\b(spark|here): SparkSession\b")
SPARK: Final = "spark"
HOUSE: Final = "tests/house/"
"""The folder of the rules about sources, which share one pass over them in a process."""


@cache
def needs_spark(module: str) -> bool:
    """Return whether a test of a module, given by its path from the root, needs Spark."""
    return module.startswith(_FOLDERS) or _TEXT.search((_ROOT / module).read_text(encoding="utf-8")) is not None


class ModulesAndSpark(LoadScopeScheduling):
    """Assigns modules to processes one at a time, in the order of collection. The modules with Spark are one unit, and
    the house tests are one.
    """

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        """Return the unit of a test: Spark's, that of the house tests, or its module."""
        module = nodeid.partition("::")[0]
        if module.startswith(HOUSE):
            return HOUSE
        return SPARK if needs_spark(module) else module
