# SPDX-License-Identifier: Apache-2.0
"""Every write mode compared with plain Python: random sequences of runs, some published, some discarded, on the branch
and on `main`.
"""

from __future__ import annotations

import datetime as dt
import os
import random

import pytest
from pyspark.sql import SparkSession

from limnos.client import Client
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.engine.branches import drop
from tests.pipeline.engine.steps import on_branch, on_main, ordered, published, step_of, written
from tests.pipeline.engine.write_models import CASES, Row, instant

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
STORIES = int(os.environ.get("LIMNOS_TEST_STORIES", "1"))
TURNS = 4


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("name", sorted(CASES))
def test_random_runs_equal_plain_python_model(
    spark: SparkSession, admin: Client, place: Parts, name: str, version: str
) -> None:
    """After each run the branch equals the model; `main` equals the last published run."""
    case = CASES[name]
    for number in range(STORIES):
        seed = f"{name} {version} {number}"
        chance = random.Random(seed)
        properties = {"format-version": version}
        if chance.random() < 0.5:
            properties["write.merge.mode"] = "merge-on-read"
        step = step_of((*place, f"t{number}"), case.write, partition=case.partition, properties=properties)
        main: list[Row] = []
        for turn in range(TURNS):
            source = case.rows(chance, turn)
            # Clocks of several machines: a run's time may be before that of the previous run.
            now = instant(10 * turn + chance.randrange(-12, 12))
            frame = spark.createDataFrame(source, case.schema)
            branch, _ = written(
                spark, step, frame, branch=f"run_{number:012x}_{turn + 1}", run_at=now.replace(tzinfo=dt.UTC)
            )
            expected = case.after(main, source, now)

            assert on_branch(spark, branch) == ordered(expected), f"seed {seed!r}, turn {turn}, of {source}"
            if chance.random() < 0.75:
                published(admin, spark, branch)
                main = expected
            else:
                drop(spark, step.table, name=branch.name)
            assert on_main(spark, step.table) == ordered(main), f"seed {seed!r}, turn {turn}: main"
