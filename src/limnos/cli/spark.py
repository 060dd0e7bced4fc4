"""`spark jars` and `demo`.

May import `config`; Spark's room only when it is needed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from limnos.cli.output import Format, format_of, show_done
from limnos.cli.rooms import room

app = App(name="spark")


@app.command
def jars(
    *,
    repository: Annotated[str | None, Parameter(help="Maven repository URL; else Maven Central.")] = None,
    cache: Annotated[Path | None, Parameter(help="Directory to keep them in; else in the user's cache.")] = None,
    config: Annotated[Path | None, Parameter(help="TOML file with settings.")] = None,
    output: Annotated[
        Format | None, Parameter(env_var="LIMNOS_OUTPUT", help="`table` on a terminal, else `json`.")
    ] = None,
) -> None:
    """Fetch the jar that Spark needs for Iceberg, once, verify it, and print where it is."""
    from limnos.config import load

    given: dict[str, object] = {"spark.repository": repository, "spark.cache": None if cache is None else str(cache)}
    settings = load(flags=given, file=config, environ=os.environ).settings.spark
    fetch: Callable[..., Path] = room("limnos.spark.jars", extra="spark").ensure_runtime
    path = fetch(repository=settings.repository, cache=Path(settings.cache) if settings.cache else None)
    shape = output or format_of((), os.environ, terminal=sys.stdout.isatty())
    show_done(str(path), {"jars": [str(path)]}, shape=shape)


def demo(directory: Path = Path("demo-out"), /) -> int:
    """Start a server, run the Spark pipeline on real flight data, show access at work, and report.

    Parameters
    ----------
    directory
        Where the demonstration keeps everything; a second run there continues.
    """
    run: Callable[[Path], int] = room("limnos.spark.demo.run", extra="server,spark,demo").main
    return run(directory)
