# SPDX-License-Identifier: Apache-2.0
"""`sql`: SQL++ statements from the command line, a file, a pipe, or a shell."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from limnos.cli.common import DEFAULTS, CommonFlags
from limnos.cli.failures import ExitCode, UsageError
from limnos.names import display
from limnos.rooms.sqlpp.cli import ResultText

if TYPE_CHECKING:
    from limnos.rooms.sqlpp.cli.sql_session import SqlSession

GRACE_S = 30.0
"""Seconds to wait for a response after the statements' own timeout."""


def sql(
    *,
    command: Annotated[list[str] | None, Parameter(name=["--command", "-c"], negative="")] = None,
    file: Annotated[Path | None, Parameter(name=["--file", "-f"])] = None,
    dataverse: str | None = None,
    results: ResultText | None = None,
    timing: Annotated[bool, Parameter(negative="")] = False,
    statement_timeout: float = 300.0,
    history: Annotated[Path | None, Parameter(env_var="LIMNOS_SQL_HISTORY")] = None,
    common: CommonFlags = DEFAULTS,
) -> int:
    r"""Run SQL++ statements; on a terminal, start a shell.

    In the shell a statement ends with a semicolon, over as many lines as it needs. Ctrl-C cancels a running statement,
    Ctrl-D leaves, and \help lists more. Otherwise all texts are run in order until one fails, which sets the exit code.

    Parameters
    ----------
    command
        Statements to run; may be repeated.
    file
        File with statements to run; `-` is standard input.
    dataverse
        Dataverse in use, as sales.east, with back-quotes where needed.
    results
        The format in which the server returns results, one result per line; csv begins with a header. The default
        depends on --output.
    timing
        Print the number of rows and the times of each text to standard error, as the shell does.
    statement_timeout
        The timeout of each request, in seconds; a request may contain several statements.
    history
        The history file of the shell; an empty name: none.
    """
    from limnos.rooms.sqlpp.cli.sql_session import SqlSession

    if not 0 < statement_timeout <= 86_400:
        raise UsageError(f"--statement-timeout {statement_timeout:g} is out of range", hint="give 0.1 to 86400 seconds")
    waiting = dataclasses.replace(common, timeout=statement_timeout + GRACE_S)
    session = SqlSession(
        waiting.client,
        dataverse=display.parse(dataverse) if dataverse else None,
        output_format=common.output_format,
        timeout_s=statement_timeout,
        results=results,
    )
    try:
        session.require_dataverse()
        if command is None and file is None and sys.stdin.isatty() and sys.stdout.isatty():
            from limnos.rooms.sqlpp.cli.sql_prompt import run_shell

            return run_shell(session, history)
        return run_all(session, texts_of(command or (), file), timed=timing)
    finally:
        session.close()


def texts_of(commands: list[str] | tuple[()], file: Path | None) -> Iterator[str]:
    """Yield the texts to run: the `--command` texts, then the file's text; without either, standard input."""
    yield from commands
    if file is not None and str(file) != "-":
        yield _read(file)
    elif file is not None or not commands:
        yield sys.stdin.read()


def run_all(session: SqlSession, texts: Iterator[str], *, timed: bool = False) -> int:
    """Run texts in order until one fails. Returns the exit code of the last text that was run."""
    for text in texts:
        if not text.strip():
            continue
        code = session.run(text, timed=timed)
        if code is not ExitCode.OK:
            return int(code)
    return int(ExitCode.OK)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UsageError(
            f"there is no file '{file}'",
            hint="give the path of a file with statements; a statement itself is -c 'TEXT'",
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the file '{file}' cannot be read: {error}", hint="it must be text in UTF-8") from error
