# SPDX-License-Identifier: Apache-2.0
"""The command line, the environment and the file access of a job's process."""

from __future__ import annotations

from pathlib import Path

import pytest

from limnos.formats.gravitino.job_templates import TemplateContent
from limnos.rooms.jobs.app.job_commands import JobNotRunnable, JobSettings, job_command
from limnos.services.runs.job_rules import JobWork


def plan(folder: Path, *, spark_submit: str | None) -> JobSettings:
    """Return settings that allow one directory."""
    return JobSettings(
        allowed=(str(folder),),
        readable=("/r",),
        writable=("/w",),
        closed=("/closed",),
        user=None,
        spark_submit=spark_submit,
        timeout_s=5.0,
        output_max=10,
    )


def test_spark_application_command_is_spark_submit(tmp_path: Path) -> None:
    """A Spark application's command is spark-submit's, with lists of files as options and the application's arguments
    last. The directory of Spark is readable.
    """
    for name in ("bin/spark-submit", "app.jar", "a.jar", "b.jar", "c.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    content = TemplateContent(
        executable=f"file://{tmp_path}/app.jar",
        arguments=("--day", "1"),
        environments={"LOAD": "x"},
        class_name="org.x.App",
        jars=(f"{tmp_path}/a.jar", f"{tmp_path}/b.jar"),
        files=(f"{tmp_path}/c.csv",),
        configs={"spark.executor.memory": "1g"},
    )

    submit = str(tmp_path / "bin" / "spark-submit")
    work = job_command(plan(tmp_path, spark_submit=submit), JobWork("spark", content), uuid="j", scratch="/s")

    assert work.argv == (
        submit,
        "--class",
        "org.x.App",
        "--jars",
        f"{tmp_path}/a.jar,{tmp_path}/b.jar",
        "--files",
        f"{tmp_path}/c.csv",
        "--conf",
        "spark.executor.memory=1g",
        f"{tmp_path}/app.jar",
        "--day",
        "1",
    )
    assert "-Djava.io.tmpdir=/s" in work.environment["SPARK_SUBMIT_OPTS"].split()
    assert (work.environment["SPARK_HOME"], work.environment["SPARK_LOCAL_DIRS"]) == (str(tmp_path), "/s")
    assert (work.environment["LOAD"], work.environment["LIMNOS_JOB_ID"], work.environment["HOME"]) == ("x", "j", "/s")
    assert {str(tmp_path), "/r"} <= set(work.readable)
    assert (work.writable, work.closed, work.scratch) == (("/w",), ("/closed",), "/s")


def test_spark_job_without_spark_is_refused(tmp_path: Path) -> None:
    """Without Spark the job is refused, and the message says what to do."""
    (tmp_path / "app.jar").touch()
    work = JobWork("spark", TemplateContent(executable=f"{tmp_path}/app.jar"))

    for submit in (None, str(tmp_path / "none")):
        with pytest.raises(JobNotRunnable, match=r"jobs\.spark_submit"):
            job_command(plan(tmp_path, spark_submit=submit), work, uuid="j", scratch="/s")
