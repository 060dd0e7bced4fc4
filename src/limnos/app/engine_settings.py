# SPDX-License-Identifier: Apache-2.0
"""What all processes with Spark have that a server starts: their environment, its address, and writable directories.

Must not know what they run.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from limnos.app.engine_files import cache_of
from limnos.app.listening import url_of
from limnos.config.loading import PREFIX
from limnos.config.settings import Settings

PASSED_ON: Final = ("LANG", "LC_ALL", "PATH", "PYTHONPATH", "HOME", "XDG_CACHE_HOME", "JAVA_HOME")
"""Environment variables that an engine inherits. Its settings are added."""


def engine_settings(settings: Settings) -> dict[str, str]:
    """Return the settings of the section `spark` that are set, as environment variables of an engine."""
    spark_settings = settings.spark.model_dump() | {"cache": cache_of(settings)}
    return {f"{PREFIX}SPARK__{name.upper()}": str(value) for name, value in spark_settings.items() if value is not None}


def local_url(bound: socket.socket) -> str:
    """Return the URL at which this machine reaches the server: a loopback URL if the server listens on all
    addresses.
    """
    return url_of(bound).replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def local_directories(roots: Iterable[str]) -> Iterator[str]:
    """Yield the paths of the roots that are local directories."""
    for root in roots:
        if root.startswith("file:"):
            yield unquote(urlsplit(root).path)


def make_writable_directories(paths: Iterable[str], *, closed: Iterable[str]) -> None:
    """Create missing directories within `closed` ones: a confined process cannot be allowed a missing one.

    Raises OSError.
    """
    for path in map(Path, paths):
        if any(path.is_relative_to(directory) for directory in closed):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
