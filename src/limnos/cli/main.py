# SPDX-License-Identifier: Apache-2.0
"""The entry point: it finds and runs the command, and converts any failure to a message and an exit code.

Command modules are imported only when they are called, so that `limnos --version`, `--help` and the answer to a
misspelt word are there at once.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from limnos import __version__
from limnos.cli import completion, help_page, output
from limnos.cli.command_line import PROCESS_PREFIX, misspelt_variables, typed_tokens
from limnos.cli.errors import UsageError
from limnos.cli.grammar.reading import resolve
from limnos.cli.output import Format, format_of
from limnos.cli.redaction import collect_secrets
from limnos.model.secrets import hide_secrets

if TYPE_CHECKING:
    from rich.console import Console

    from limnos.cli.failures import CommandFailure

_OWN_COLUMNS = ("head",)
"""Commands with a flag `--columns` of their own."""
_COUNTED = frozenset({"--limit", "--rows", "--depth", "--count"})
"""Flags whose values are checked before a command starts."""

_NO_CONSOLE = cast("Console", object())
"""The parser keeps a console in each of its errors, and would import one. `hints.slips` writes their messages."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code (see `failures.ExitCode`)."""
    tokens = list(sys.argv[1:] if argv is None else argv)
    output.escape_unencodable()
    if tokens[:1] == [completion.ASK]:
        return completion.complete(tokens[1:])
    if tokens and tokens[0].startswith(PROCESS_PREFIX):
        from limnos.cli.operations import room_process

        if (serve := room_process(tokens[0])) is not None:
            return serve(tokens[1:], lambda command: execute(command, raises_unexpected=True))
    output_format = format_of(tokens, os.environ, terminal=sys.stdout.isatty())
    for warning in misspelt_variables(os.environ):
        print(f"warning: {warning}", file=sys.stderr)
    return execute(tokens, output_format=output_format)


def execute(typed: Sequence[str], *, output_format: Format | None = None, raises_unexpected: bool = False) -> int:
    """Run a command line that is not one of the program's own. Returns its exit code; prints its failure.

    With `raises_unexpected` errors that no rule describes are raised instead.
    """
    tokens = list(typed)
    output_format = output_format or format_of(tokens, os.environ, terminal=sys.stdout.isatty())
    try:
        tokens = resolve(tokens)
        result = _page(tokens)
        if result is None:
            result = _run(tokens)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed our output; keep the interpreter from reporting that at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    except UsageError as error:
        return _fail_usage(error, tokens, output_format=output_format)
    except Exception as error:
        from limnos.cli import failures
        from limnos.cli.hints.typed_command import TypedCommand

        failure = failures.failure_of(error, TypedCommand(tokens))
        if failure is None and raises_unexpected:
            raise
        if failure is None:
            return _report(error, tokens, output_format=output_format)
        return _fail(failure, tokens, output_format=output_format)
    finally:
        if (lookups := sys.modules.get("limnos.cli.lookups")) is not None:
            lookups.reopen.set(None)
            lookups.used_server.set(None)
    return result


def _page(tokens: Sequence[str]) -> int | None:
    """Print the page of the program, or its version. Returns the exit code; None if another command was typed."""
    if not tokens or tokens[0] == "--help":
        print(help_page.program_page())
        return 0
    if tokens[0] == "--version":
        print(f"limnos {__version__}")
        return 0
    if tokens[-1] == "--help" and len(tokens) == 2 and (page := help_page.verb_page(tokens[0])):
        print(f"{page}\n")
        return 0 if tokens[0] == "create" else None
    return None


def _run(tokens: Sequence[str]) -> int:
    """Run the command. Raises UsageError for arguments that it does not take, and the errors of the command."""
    from cyclopts import CycloptsError

    from limnos.cli.command_tree import build
    from limnos.cli.hints.slips import slip_of

    if not _COUNTED.isdisjoint(each.partition("=")[0] for each in tokens):
        from limnos.cli.hints.values import check_counts

        check_counts(tokens)
    rest = list(tokens)
    options = output.TableOptions()
    if tokens[0] not in _OWN_COLUMNS:
        rest, options = output.take_options(tokens)
        if options != output.TableOptions():
            from limnos.cli.hints.list_flags import check_list_flags

            check_list_flags(tokens, options)
    token = output.table_options.set(options)
    typed = typed_tokens.set(tuple(tokens))
    tree = build(tokens[0])
    try:
        result = tree(
            rest, error_console=_NO_CONSOLE, exit_on_error=False, print_error=False, result_action="return_value"
        )
    except CycloptsError as error:
        raise slip_of(error, tokens=rest, tree=tree) from error
    finally:
        output.table_options.reset(token)
        typed_tokens.reset(typed)
        if (acting := sys.modules.get("limnos.cli.acting")) is not None:
            acting.revoke_tokens()
    return result if isinstance(result, int) else 0


def _fail_usage(error: UsageError, tokens: Sequence[str], *, output_format: Format) -> int:
    from limnos.cli import failures

    return _fail(failures.usage(error), tokens, output_format=output_format)


def _fail(failure: CommandFailure, tokens: Sequence[str], *, output_format: Format) -> int:
    """Print a failure to standard error, with secrets from arguments and environment masked. Returns the exit code."""
    from limnos.cli import failures

    text = hide_secrets(failures.render(failure, output_format), collect_secrets(tokens, os.environ))
    print(text, file=sys.stderr)
    return int(failure.exit_code)


def _report(error: Exception, tokens: Sequence[str], *, output_format: Format) -> int:
    """Print an unexpected exception without local variables and secrets. Returns the exit code."""
    from limnos.cli import failures

    lines = "".join(traceback.format_exception(error))
    print(hide_secrets(lines, collect_secrets(tokens, os.environ)), end="", file=sys.stderr)
    return _fail(failures.unexpected_failure(error), tokens, output_format=output_format)


if __name__ == "__main__":
    sys.exit(main())
