"""What is raised, as a failure that a runner knows."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from limnos.pipeline.engine.raised import failure_of
from limnos.pipeline.failures import StepAway, StepFailed

pytestmark = pytest.mark.spark


def test_held_rows_that_are_gone_are_made_again() -> None:
    """A step whose staged rows died with their executors is run again; another failure of Spark is not."""
    gone = failure_of(PySparkException("[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] Checkpoint block rdd_5_0 not found!"))
    other = failure_of(PySparkException("[DIVIDE_BY_ZERO] Division by zero."))

    assert isinstance(gone, StepAway)
    assert isinstance(other, StepFailed)
