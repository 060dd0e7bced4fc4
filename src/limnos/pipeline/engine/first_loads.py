# SPDX-License-Identifier: Apache-2.0
"""Large first loads in mode `merge`: rows are inserted into the run's branch, and their keys are checked there.

Rows of other merges are stored before their keys are checked, which costs memory and more time than reading the keys
from the table again. Must not know how a write is repeated or undone.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from limnos.names import engine
from limnos.pipeline.declaration import StepDeclaration, WriteMode
from limnos.pipeline.engine.branches import WriteKind
from limnos.pipeline.engine.expectations.flags import ROWS
from limnos.pipeline.engine.expectations.rows import read_observation
from limnos.pipeline.engine.inserting import insert
from limnos.pipeline.engine.keys import are_distinct, require_keys
from limnos.pipeline.engine.merging import DELETE_COLUMN, with_deletes
from limnos.pipeline.engine.metadata import LoadedTable
from limnos.pipeline.engine.staging import is_large
from limnos.pipeline.outcomes import StepBranch

_DELETED = "deleted"


def is_large_first_load(step: StepDeclaration, frame: DataFrame, *, branch: StepBranch) -> bool:
    """Return whether a merge writes many rows to a table that has none."""
    return step.write.mode is WriteMode.MERGE and branch.base is None and is_large(frame)


class FirstLoad:
    """The rows of a large first load."""

    def __init__(self, step: StepDeclaration, frame: DataFrame, *, branch: StepBranch, schema: StructType) -> None:
        self._step = step
        self._branch = branch
        self._observation: Observation | None = None
        rows = with_deletes(step, frame, schema=schema)
        self._are_distinct = are_distinct(rows, step.write.keys)
        if step.write.delete_when is not None:
            self._observation, is_deleted = Observation(), f.col(DELETE_COLUMN)
            counts = (f.count(f.lit(1)).alias(ROWS), f.count_if(is_deleted).alias(_DELETED))
            rows = rows.observe(self._observation, *counts).where(~is_deleted)
        self._rows = rows.drop(DELETE_COLUMN)

    def insert(self) -> LoadedTable | None:
        """Insert the rows that are not to be deleted. Returns the table as the commit left it."""
        return insert(self._rows, branch=self._branch, kind=WriteKind.APPEND)

    def check(self, *, head: int | None, on_written: Callable[[DataFrame], None] | None) -> bool:
        """Check the keys of the rows in snapshot `head`, and call `on_written` with the rows.

        Returns False if some rows were to be deleted: the table lacks their keys, so the load must be repeated from
        stored rows. Raises KeyViolation.
        """
        if self._observation is not None:
            observed = read_observation(self._observation)
            if observed is None or observed[_DELETED]:
                return False
        name = engine.render_spark(self._branch.table)
        written = self._rows.sparkSession.sql(f"SELECT * FROM {name} VERSION AS OF {head}")
        require_keys(written, self._step.write.keys, step=self._step.name, distinct=self._are_distinct)
        if on_written is not None:
            on_written(written)
        return True
