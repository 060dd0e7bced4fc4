# SPDX-License-Identifier: Apache-2.0
"""`spark jars` and `demo`.

Spark's package, and the demonstration, are imported only when a command needs them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from limnos.cli.extras import import_extra
from limnos.cli.output import Format, format_of, show_done
from limnos.model.extras import checkout_of

app = App(name="spark")


@app.command
def jars(
    *,
    repository: str | None = None,
    cache: Path | None = None,
    config: Path | None = None,
    s3: Annotated[bool, Parameter(negative="")] = False,
    lineage: Annotated[bool, Parameter(negative="")] = False,
    output: Annotated[Format | None, Parameter(env_var="LIMNOS_OUTPUT")] = None,
) -> None:
    """Download the Iceberg JAR for Spark if it is not cached, verify it, and print its path.

    Parameters
    ----------
    repository
        Maven repository URL; by default Maven Central.
    cache
        Directory of the JAR files; by default the user's cache directory.
    config
        TOML file with settings.
    s3
        Also download the libraries for tables on S3.
    lineage
        Also download the listener that reports lineage.
    output
        `table` on a terminal, else `json`.
    """
    from limnos.config import load

    arguments: dict[str, object] = {
        "spark.repository": repository,
        "spark.cache": None if cache is None else str(cache),
    }
    settings = load(flags=arguments, file=config, environ=os.environ).settings.spark
    room_of_jars = import_extra("limnos.spark.jars", extra="spark")
    fetches: list[Callable[..., Path]] = [room_of_jars.ensure_runtime]
    if s3:
        fetches.append(room_of_jars.ensure_s3)
    if lineage:
        fetches.append(room_of_jars.ensure_listener)
    cache_at = Path(settings.cache) if settings.cache else None
    paths = [str(fetch(repository=settings.repository, cache=cache_at)) for fetch in fetches]
    output_format = output or format_of((), os.environ, terminal=sys.stdout.isatty())
    show_done("\n".join(paths), {"jars": paths}, output_format=output_format)


def demo(directory: Path = Path("demo-out"), /) -> int:
    """Start a server, run the Spark pipeline on real flight data, demonstrate access control, and print a report.

    Parameters
    ----------
    directory
        The directory for all files of the demonstration. A second run continues there.
    """
    sys.path.insert(0, str(checkout_of(Path(__file__)) or files("limnos") / "bundled"))
    run: Callable[[Path], int] = import_extra("examples.demo.run", extra="server,spark,demo").main
    return run(directory)
