# SPDX-License-Identifier: Apache-2.0
"""Settings of jobs that the server runs."""

from __future__ import annotations

import posixpath
import re
from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt
from pydantic.functional_validators import AfterValidator

from limnos.config.section import SettingsSection
from limnos.config.values import SPARK_CONFIGS, Words


def _absolute_path(text: str) -> str:
    if not re.fullmatch("/[^,#]*", text):
        raise ValueError(f"'{text}' is not an absolute path without ',' and '#'; write for example /srv/jobs")
    return posixpath.normpath(text)


DirectoryPaths = Annotated[tuple[Annotated[str, AfterValidator(_absolute_path)], ...], Words]


class JobsSection(SettingsSection):
    """Jobs of Gravitino's job templates, which the server executes in separate processes."""

    executor: Literal["off", "local"] = "off"
    """`local` runs jobs on this machine, confined by the settings below; `off` runs none."""
    allowed: DirectoryPaths = ()
    """Files, and directories with everything below them, that jobs may execute or get as input (programs, scripts,
    jars, files, archives), separated by commas. Unset: none, so that no job can run.
    """
    pipelines: bool = False
    """Run [scheduled pipelines](../guides/run-pipelines.md#schedules). Users upload their SQL and Python, so `allowed`
    does not limit them; the confinement does. Needs `jobs.network`.
    """
    readable: DirectoryPaths = ()
    """Directories that jobs may read in addition to `jobs.allowed` and the system's own, separated by commas."""
    writable: DirectoryPaths = ()
    """Directories that jobs may write to in addition to their own one, separated by commas."""
    environment: Annotated[tuple[str, ...], Words] = ()
    """Names of environment variables that templates may set; `*` matches any ending, as in `LOAD_*`; separated by
    commas. Leave out variables that make programs execute a file (`PATH`, `LD_PRELOAD`, `BASH_ENV`).
    """
    spark_configs: Annotated[tuple[str, ...], Words] = SPARK_CONFIGS
    """Spark properties that templates may set, as names or with `*`, separated by commas. Some make Spark execute code
    that they name.
    """
    spark_submit: Annotated[str, AfterValidator(_absolute_path)] | None = None
    """The program `spark-submit` for Spark templates. Unset: that of the installed PySpark."""
    user: str | None = Field(default=None, min_length=1)
    """Local user that jobs run as; requires a server started by root. Unset: the server's user."""
    confined: bool = True
    """Refuse jobs if the machine cannot confine them (namespaces for the server's user, Linux 5.12 or later); `off`
    runs them with what confinement the machine has, for trusted programs.
    """
    running_max: PositiveInt = 2
    """The maximum number of concurrent jobs per serving process; others wait."""
    waiting_max: PositiveInt = 100
    """The maximum number of waiting and running jobs of one user in a metalake; further requests get 503."""
    timeout_s: PositiveFloat = 3600.0
    """The maximum time of a job, in seconds; after it the job is ended and has failed."""
    memory_bytes_max: PositiveInt | None = None
    """The maximum memory of each process of a job, in bytes. Unset: no limit."""
    cpu_s_max: PositiveInt | None = None
    """The maximum processor time of each process, in seconds. Unset: no limit."""
    file_bytes_max: PositiveInt | None = None
    """The maximum size of each file that a job writes, in bytes. Unset: no limit."""
    network: bool = True
    """`off` denies jobs the network; where the system cannot do that, no job starts."""
    output_bytes_max: PositiveInt = Field(default=65_536, le=1 << 20)
    """The number of bytes that are stored from the end of each output stream of a job."""
