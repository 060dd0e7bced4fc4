# SPDX-License-Identifier: Apache-2.0
"""Temporary changes of a session: settings are restored, and a DataFrame has a name only for a limited time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from limnos.pipeline.engine.session import settings, snapshot_summary_settings, temporary_view

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SET, UNSET = "spark.sql.shuffle.partitions", "spark.sql.iceberg.snapshot-property.limnos.run"


def test_settings_are_restored(here: SparkSession) -> None:
    """Settings are restored, also after a failure, and settings without a former value are unset."""
    before = here.conf.get(SET)
    inside: list[str | None] = []

    def work() -> None:
        with settings(here, {SET: "7", **snapshot_summary_settings({"limnos.run": "r"})}):
            inside.extend((here.conf.get(SET), here.conf.get(UNSET)))
            raise KeyError

    with pytest.raises(KeyError):
        work()

    assert inside == ["7", "r"]
    assert (here.conf.get(SET), here.conf.get(UNSET, None)) == (before, None)


def test_temporary_dataframe_name_is_removed(here: SparkSession) -> None:
    """SQL reads the DataFrame by the name; afterwards, also after a failure, the name does not exist. Two names never
    collide.
    """
    one, other = here.range(3), here.range(5)
    names: list[str] = []
    counted: list[int] = []

    def work() -> None:
        with temporary_view(one) as first, temporary_view(other) as second:
            names.extend((first, second))
            counted.extend(here.table(name).count() for name in names)
            raise KeyError

    with pytest.raises(KeyError):
        work()

    assert counted == [3, 5]
    assert [here.catalog.tableExists(name) for name in names] == [False, False]
