"""Who runs which tests when several processes share them: modules whole, and everything that needs Spark in one process.

A module's tests share servers, so they stay together; a second Spark would cost half a gigabyte and its start. Must know
nothing of any single test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdist.scheduler import LoadScopeScheduling

from tests.sampling import SPARK_GROUP

if TYPE_CHECKING:
    import pytest
    from xdist.remote import Producer


class ModulesAndSpark(LoadScopeScheduling):
    """Gives each process a module at a time, in the order of their collection."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        """Return the group of a test: Spark's, whose name pytest-xdist appends to the test's, or its module."""
        return SPARK_GROUP if nodeid.endswith(f"@{SPARK_GROUP}") else nodeid.partition("::")[0]
