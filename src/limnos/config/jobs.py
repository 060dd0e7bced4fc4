"""Settings of jobs that the server runs.

May import pydantic, `model` and this room.
"""

from __future__ import annotations

import posixpath
import re
from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt
from pydantic.functional_validators import AfterValidator

from limnos.config.section import SettingsSection
from limnos.config.values import SPARK_CONFIGS, Words


def _place(text: str) -> str:
    if not re.fullmatch("/[^,#]*", text):
        raise ValueError(f"'{text}' is no absolute path without ',' and '#'; write for example /srv/jobs")
    return posixpath.normpath(text)


DirectoryPaths = Annotated[tuple[Annotated[str, AfterValidator(_place)], ...], Words]


class JobsSection(SettingsSection):
    """Jobs of Gravitino's templates, which the server runs in separate processes."""

    executor: Literal["off", "local"] = "off"
    """`local` runs jobs on this machine, confined to `jobs.allowed` and what follows; `off` runs none."""
    allowed: DirectoryPaths = ()
    """Files, and directories with all below them, that jobs may run or be given (programs, scripts, jars, files,
    archives), separated by commas. Unset: none, so that no job can run.
    """
    readable: DirectoryPaths = ()
    """Directories that jobs may read beside `jobs.allowed` and the system's own, separated by commas."""
    writable: DirectoryPaths = ()
    """Directories that jobs may write to beside the one of their own, separated by commas."""
    environment: Annotated[tuple[str, ...], Words] = ()
    """Names of environment variables that templates may set, `*` for any rest as in `LOAD_*`, separated by commas. Some
    make programs run what they name (`PATH`, `LD_PRELOAD`, `BASH_ENV`): leave those out.
    """
    spark_configs: Annotated[tuple[str, ...], Words] = SPARK_CONFIGS
    """Properties of Spark that templates may set, as names or with `*`, separated by commas. Some make Spark run what
    they name.
    """
    spark_submit: Annotated[str, AfterValidator(_place)] | None = None
    """The program `spark-submit`, for templates of Spark. Unset: that of the PySpark that is installed here."""
    user: str | None = Field(default=None, min_length=1)
    """User of this machine that jobs run as, which takes a server that was started by root. Unset: the server's own."""
    confined: bool = True
    """Where the kernel cannot confine a job (Landlock, Linux 5.13 or later) and `jobs.user` is unset, refuse it; `off`
    runs it with all rights of the server's user to files, for programs that are trusted.
    """
    running_max: PositiveInt = 2
    """Jobs that each serving process runs at once; others wait."""
    waiting_max: PositiveInt = 100
    """Jobs of one user in a metalake that wait or run; for one more the answer is 503."""
    timeout_s: PositiveFloat = 3600.0
    """Longest time for a job, in seconds; then it is ended and has failed."""
    memory_bytes_max: PositiveInt | None = None
    """Memory of each process of a job. Unset: no limit."""
    cpu_s_max: PositiveInt | None = None
    """Processor seconds of each process. Unset: no limit."""
    file_bytes_max: PositiveInt | None = None
    """Size of each file that it writes. Unset: no limit."""
    network: bool = True
    """`off` leaves jobs no network; where that cannot be, none begins."""
    output_bytes_max: PositiveInt = Field(default=65_536, le=1 << 20)
    """How many bytes are kept of the end of what a job writes to each of its streams."""
