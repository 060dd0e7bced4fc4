# SPDX-License-Identifier: Apache-2.0
"""Actions on Spark without Spark: decisions before an action of Iceberg starts."""

from __future__ import annotations

from typing import Any

import pytest

from limnos.client.operation.maintenance_values import LeasedOperation
from limnos.rooms.maintenance.engine import actions


class FakeTable:
    """A table whose current snapshot has a summary."""

    def __init__(self, summary: dict[str, str]) -> None:
        self._summary = summary

    def currentSnapshot(self) -> FakeTable:  # noqa: N802 - the name of Iceberg's method
        """Return the snapshot."""
        return self

    def summary(self) -> dict[str, str]:
        """Return the summary."""
        return self._summary


class StartedActionError(Exception):
    """An action of Iceberg was started."""


class FakeActions:
    """Iceberg actions that must not be started."""

    def rewriteDataFiles(self, table: Any) -> None:  # noqa: ANN401, N802 - the name of Iceberg's method
        """Raise an error."""
        raise StartedActionError


def test_table_without_delete_files_is_not_rewritten() -> None:
    """In a table without delete files nothing is rewritten; with some, or if the summary does not say, Iceberg
    decides.
    """
    operation = LeasedOperation(operation=1, kind="deletes", catalog="main", path=("a", "t"), token="token")

    assert actions._deletes(FakeActions(), FakeTable({"total-delete-files": "0"}), operation=operation) == (
        "nothing to rewrite"
    )
    for summary in ({"total-delete-files": "1"}, {}):
        with pytest.raises(StartedActionError):
            actions._deletes(FakeActions(), FakeTable(summary), operation=operation)
