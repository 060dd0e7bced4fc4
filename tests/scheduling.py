"""Who runs which tests when several processes share them: modules whole, and everything that needs Spark in one process.

A module's tests share servers, so they stay together; a second Spark would cost half a gigabyte and its start. The process that
hands out tests knows their names alone and no marks, so modules that need Spark are told by their text; whoever collects them
checks that. (The groups of pytest-xdist 3.8 do not reach names of pytest 9.) Must know nothing of any single test.
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
_TEXT: Final = re.compile(r"mark\.spark\b|\bspark: SparkSession\b|\bhere: ")
SPARK: Final = "spark"


@cache
def needs_spark(module: str) -> bool:
    """Say whether some test of a module, by its path from the root, needs Spark."""
    return module.startswith(_FOLDERS) or _TEXT.search((_ROOT / module).read_text(encoding="utf-8")) is not None


class ModulesAndSpark(LoadScopeScheduling):
    """Gives each process a module at a time, in the order of their collection; the modules that need Spark are one piece."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        """Return what a test is handed out with: Spark's, or those of its module."""
        module = nodeid.partition("::")[0]
        return SPARK if needs_spark(module) else module
