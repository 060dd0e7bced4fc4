# SPDX-License-Identifier: Apache-2.0
"""The command of a job's process, built from the job's template and the server's settings.

It resolves links in paths; it starts nothing.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from limnos.config.settings import Settings
from limnos.formats.gravitino.job_templates import SPARK
from limnos.rooms.jobs.app.job_keeper import JobCommand, JobLimits
from limnos.services.runs.job_rules import JobWork, path_of

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class JobNotRunnable(Exception):
    """Raised if a job cannot start. The message has the reason and what the user can do."""


class JobSettings(NamedTuple):
    """Settings that apply to all jobs."""

    allowed: tuple[str, ...]
    readable: tuple[str, ...]
    writable: tuple[str, ...]
    closed: tuple[str, ...]
    user: str | None
    spark_submit: str | None
    timeout_s: float
    output_max: int
    must_be_confined: bool = True
    limits: JobLimits = JobLimits()
    grace_s: float = 5.0
    """Seconds between a job's SIGTERM and SIGKILL."""


def job_settings_of(settings: Settings) -> JobSettings:
    """Read the settings of jobs, with absolute paths and the default of `spark_submit`."""
    jobs = settings.jobs
    closed_directories = (str(Path(settings.server.data).absolute()),)
    limits = JobLimits(jobs.memory_bytes_max, jobs.cpu_s_max, jobs.file_bytes_max, jobs.network)
    return JobSettings(
        allowed=jobs.allowed,
        readable=jobs.readable,
        writable=jobs.writable,
        closed=closed_directories,
        user=jobs.user,
        spark_submit=jobs.spark_submit or _spark_submit(),
        timeout_s=jobs.timeout_s,
        output_max=jobs.output_bytes_max,
        must_be_confined=jobs.confined,
        limits=limits,
    )


def _spark_submit() -> str | None:
    spec = importlib.util.find_spec("pyspark")
    return None if spec is None or spec.origin is None else str(Path(spec.origin).parent / "bin" / "spark-submit")


def job_command(plan: JobSettings, work: JobWork, *, uuid: str, scratch: str) -> JobCommand:
    """Build the command of a job's process. Raises JobNotRunnable if a file or spark-submit is missing, or
    a file is outside of `jobs.allowed`.
    """
    content, is_spark = work.content, work.job_type == SPARK
    environment = {
        "PATH": PATH,
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "HOME": scratch,
        "TMPDIR": scratch,
        "LIMNOS_JOB_ID": uuid,
        **(_spark_environment(plan, scratch) if is_spark else {}),
        **content.environments,
    }
    argv = _spark(plan, work) if is_spark else (real_file(plan, content.executable), *content.arguments)
    spark_homes = (*_spark_homes(plan),) if is_spark else ()
    return JobCommand(
        argv=argv,
        environment=environment,
        scratch=scratch,
        copies=tuple(real_file(plan, each) for each in content.scripts),
        readable=(*plan.allowed, *plan.readable, *spark_homes),
        writable=plan.writable,
        closed=plan.closed,
        user=plan.user,
        must_be_confined=plan.must_be_confined,
        timeout_s=plan.timeout_s,
        grace_s=plan.grace_s,
        output_max=plan.output_max,
        limits=plan.limits,
    )


def real_file(plan: JobSettings, text: str) -> str:
    """Return a file's path with all links resolved.

    Raises JobNotRunnable if it is missing or outside of `jobs.allowed`.
    """
    try:
        path = Path(path_of(text)).resolve(strict=True)
    except (OSError, RuntimeError):
        raise JobNotRunnable(f"There is no file {text} on the server's machine") from None
    if not path.is_file():
        raise JobNotRunnable(f"{text} is not a file")
    if not any(path.is_relative_to(Path(root).resolve()) for root in plan.allowed):
        raise JobNotRunnable(f"{text} is a link to a file outside of the locations in jobs.allowed")
    return str(path)


def _spark(plan: JobSettings, work: JobWork) -> tuple[str, ...]:
    """Return the spark-submit command of a Spark application. Raises JobNotRunnable."""
    if plan.spark_submit is None or not Path(plan.spark_submit).is_file():
        raise JobNotRunnable("There is no spark-submit: install limnos[spark], or name one in jobs.spark_submit")
    content = work.content
    lists = (("--jars", content.jars), ("--files", content.files), ("--archives", content.archives))
    names = [
        part for flag, files in lists if files for part in (flag, ",".join(real_file(plan, each) for each in files))
    ]
    class_option = ["--class", content.class_name] if content.class_name else []
    configs = [part for key, value in content.configs.items() for part in ("--conf", f"{key}={value}")]
    return (plan.spark_submit, *class_option, *names, *configs, real_file(plan, content.executable), *content.arguments)


def _spark_environment(plan: JobSettings, scratch: str) -> dict[str, str]:
    java = {"JAVA_HOME": os.environ["JAVA_HOME"]} if "JAVA_HOME" in os.environ else {}
    home = {"SPARK_HOME": str(Path(plan.spark_submit).parent.parent)} if plan.spark_submit else {}
    java_options = f"-Djava.io.tmpdir={scratch} -Duser.home={scratch} -XX:-UsePerfData"  # Java ignores TMPDIR and HOME
    return {
        **java,
        **home,
        "SPARK_LOCAL_DIRS": scratch,
        "SPARK_SUBMIT_OPTS": java_options,
        "PYSPARK_PYTHON": sys.executable,
    }


def _spark_homes(plan: JobSettings) -> Iterable[str]:
    """Return the directories of Spark, Java, the interpreter and its libraries."""
    directories = (
        sys.prefix,
        sys.base_prefix,
        os.environ.get("JAVA_HOME", ""),
        plan.spark_submit and str(Path(plan.spark_submit).parent.parent),
    )
    return [str(Path(each).resolve()) for each in directories if each]
