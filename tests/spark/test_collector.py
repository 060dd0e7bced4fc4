# SPDX-License-Identifier: Apache-2.0
"""The collector of Spark on one machine: the parallel one, unless a user has chosen one anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from limnos.spark.collector import DEFAULT_JAVA_OPTIONS, is_chosen
from tests.installed import has_room

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPTIONS = "spark.driver.extraJavaOptions"


@pytest.mark.parametrize(
    "settings, environment",
    [
        ({OPTIONS: "-Da=b -XX:+UseG1GC"}, {}),
        ({OPTIONS: "-XX:-UseSerialGC"}, {}),
        ({DEFAULT_JAVA_OPTIONS: "-Da=b"}, {}),
        ({}, {"JAVA_TOOL_OPTIONS": "-XX:+UseZGC"}),
        ({}, {"JDK_JAVA_OPTIONS": "-XX:+UseShenandoahGC -Xlog:gc"}),
    ],
)
def test_named_collectors_are_choices(settings: dict[str, str], environment: dict[str, str]) -> None:
    """A collector in the settings or variables of the user, or default Java options of the user, are left alone."""
    assert is_chosen(settings, environment)


def test_other_options_are_no_choice(tmp_path: Path) -> None:
    """Other Java options, and a directory of settings without a file of defaults, name no collector."""
    environment = {"JAVA_TOOL_OPTIONS": "-Dfile.encoding=UTF-8", "SPARK_CONF_DIR": str(tmp_path)}

    assert not is_chosen(
        {OPTIONS: "-Xlog:gc -XX:+UseStringDeduplication", "spark.app.name": "-XX:+UseG1GC"}, environment
    )


@pytest.mark.parametrize("line", [f"{OPTIONS} -XX:+UseG1GC", f"{DEFAULT_JAVA_OPTIONS} -Da=b"])
def test_file_of_defaults_is_searched(tmp_path: Path, line: str) -> None:
    """A collector, or default Java options, in Spark's file of defaults are a choice."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(f"spark.master local\n{line}\n")

    assert is_chosen({}, {"SPARK_HOME": str(tmp_path)})
    assert is_chosen({}, {"SPARK_CONF_DIR": str(tmp_path / "conf")})


if has_room("pipelines"):

    @pytest.mark.spark
    @pytest.mark.filterwarnings("ignore::ResourceWarning")
    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    def test_local_spark_has_the_parallel_collector(here: SparkSession) -> None:
        """The machine of a local session runs the parallel collector."""
        beans = here._jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()

        assert sorted(bean.getName() for bean in beans) == ["PS MarkSweep", "PS Scavenge"]
