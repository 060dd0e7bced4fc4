# SPDX-License-Identifier: Apache-2.0
"""Exceptions of Spark as failures that the runner distinguishes."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from limnos.pipeline.engine.spark_failures import failure_of
from limnos.pipeline.failures import StepAway, StepFailed

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "message",
    [
        "Could not write file file:///w/t/metadata/1.json: No space left on device. Free space there, then try again.",
        "Could not write file file:///w/t/metadata/1.json: Disk quota exceeded. Free space there, then try again.",
        "The database has no room left (could not extend file); nothing was changed",
        "The disk of the database is full, or read-only. Nothing was changed; try again",
    ],
)
def test_server_without_disk_space_fails_the_step(message: str) -> None:
    """A refusal for lack of disk space fails the step with its message, although it has the status of an unavailable
    server.
    """
    java = "org.apache.iceberg.exceptions.ServiceUnavailableException: Service unavailable: "

    full = failure_of(PySparkException(f"{java}{message}"))
    away = failure_of(PySparkException(f"{java}The database does not answer: try again"))

    assert isinstance(full, StepFailed)
    assert message in full.message
    assert isinstance(away, StepAway)


def test_step_is_rerun_after_staged_rows_are_lost() -> None:
    """A step whose staged rows were lost with their executors is run again; after another failure of Spark it is
    not.
    """
    lost_rows_failure = failure_of(
        PySparkException("[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] Checkpoint block rdd_5_0 not found!")
    )
    other = failure_of(PySparkException("[DIVIDE_BY_ZERO] Division by zero."))

    assert isinstance(lost_rows_failure, StepAway)
    assert isinstance(other, StepFailed)
