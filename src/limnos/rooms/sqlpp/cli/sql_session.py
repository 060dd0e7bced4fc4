# SPDX-License-Identifier: Apache-2.0
"""A session of the SQL++ shell: sends statements, waits, cancels them on Ctrl-C, and shows results.

Must not know the source of statements. Each text is one request. Only its current dataverse carries over to the next
request.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import uuid4

import msgspec

from limnos.cli.command_line import typed_tokens
from limnos.cli.failures import CommandFailure, ExitCode, render
from limnos.cli.hints.failed_calls import hint_for
from limnos.cli.hints.typed_command import TypedCommand
from limnos.cli.lookups import unknown_token
from limnos.cli.output import Format, show_rows, to_json, visible
from limnos.cli.sentences import quote_command, with_datasets
from limnos.client.errors import ClientError
from limnos.client.values import StatementResponse
from limnos.names.display import render as render_path
from limnos.names.path import Levels
from limnos.rooms.sqlpp.cli import ResultText
from limnos.rooms.sqlpp.cli.sql_names import dataverse_require, hint_for_names
from limnos.rooms.sqlpp.cli.sql_text import active_dataverse, changes_names, error_position, underline_position

if TYPE_CHECKING:
    from limnos.client import Client

FORMATS: Final[Mapping[ResultText, str]] = {
    "json-lines": "json",
    "csv": "csv; header=present",
    "adm": "adm",
    "lossless-json": "lossless-json",
}
"""The query service's parameter `format` for each."""
DEFAULT: Final = ("Default",)
CATALOG: Final = "main"
"""The catalog whose namespaces are dataverses, unless a server's setting names another one."""
WARNINGS_MAX: Final = 20
"""Warnings that the server lists for one request."""
CANCEL_S: Final = 5.0
"""Seconds to wait for a cancelled statement."""
CANCEL_EVERY_S: Final = 0.2
NOTED_S: Final = 10.0
"""Seconds after which a note says that the command waits."""
_WAITS: Final = (
    "note: the server has not answered yet. The first query over data starts its engine, which can take minutes on a"
    " busy machine; Ctrl-C cancels the statement"
)
_EXITS: Final = {"denied": ExitCode.DENIED, "unavailable": ExitCode.UNAVAILABLE}


class StatementFailure(NamedTuple):
    """A failed statement: the error code of SQL++ or of the client, the message, the command's exit code, and the hint
    for an error of the client.
    """

    code: str
    message: str
    exit_code: ExitCode = ExitCode.FAILED
    hint: str | None = None


class SqlSession:
    """Sends one user's statements to one server. `connect` opens a client; the session calls it again after it has
    abandoned a client.
    """

    def __init__(
        self,
        connect: Callable[[], Client],
        *,
        dataverse: Levels | None,
        output_format: Format,
        timeout_s: float,
        results: ResultText | None = None,
    ) -> None:
        self.connect = connect
        self.dataverse = dataverse
        self.output_format = output_format
        self.timeout_s = timeout_s
        self.results = results
        """The format of results, instead of `output_format`, which errors keep."""
        self.names_changed = False
        """Whether statements may have created or dropped objects since the flag was last cleared."""
        self._client = connect()

    @property
    def dataverse_text(self) -> str:
        """The current dataverse, as written in statements."""
        return render_path(self.dataverse or DEFAULT)

    def run(self, text: str, *, timed: bool = False) -> ExitCode:
        """Run statements, print the results, with `timed` also the times, and update `dataverse`.

        Returns the exit code.
        """
        began = time.monotonic()
        answer, failure = self._answer(text)
        if answer is not None:
            _show_warnings(answer)
            if answer.results is not None:
                self._show(answer.results)
        if failure is not None:
            self._print_failure(failure, text)
            return failure.exit_code
        if answer is not None and answer.results is None and text.strip():
            self._print_success(text)
        self.dataverse = active_dataverse(text, self.dataverse)
        self.names_changed = self.names_changed or changes_names(text)
        if timed and answer is not None:
            print(_times(answer, time.monotonic() - began), file=sys.stderr)
        return ExitCode.OK

    def require_dataverse(self) -> None:
        """Check that the dataverse of the command line exists. Raises StoppedError if not, and ClientError."""
        if self.dataverse is not None:
            dataverse_require(self._client, self.dataverse, catalog=CATALOG)

    def close(self) -> None:
        """Close the client and its connections."""
        self._client.close()

    # -- sending and ending --------------------------------------------------------------------------------------

    def _answer(self, text: str) -> tuple[StatementResponse | None, StatementFailure | None]:
        """Send statements and wait for the response. The first Ctrl-C cancels them on the server, the second Ctrl-C
        stops waiting.
        """
        own_id = uuid4().hex
        sent: Future[StatementResponse] = Future()
        interrupted = False
        try:
            try:
                self._send(text, own_id, sent=sent)
                answer = self._wait(sent)
            except KeyboardInterrupt:
                interrupted = True
                answer = self._cancel(sent, own_id)
        except ClientError as error:
            exit_code = ExitCode.INTERRUPTED if interrupted else _EXITS.get(error.kind, ExitCode.FAILED)
            message = unknown_token(error) or error.message
            hint = hint_for(error, TypedCommand(typed_tokens.get() or ("sql",)))
            return None, StatementFailure(error.code, message, exit_code, hint)
        except (KeyboardInterrupt, TimeoutError):
            self._replace_client()
            message = "the client stops waiting; the statement ends on the server, at the latest at its time limit"
            return None, StatementFailure("interrupted", message, ExitCode.INTERRUPTED)
        if not answer.errors:
            return answer, None
        message = answer.errors[0].msg
        code, colon, _ = message.partition(":")
        return answer, StatementFailure(code if colon and code.startswith("ASX") else answer.status, message)

    def _send(self, text: str, own_id: str, *, sent: Future[StatementResponse]) -> None:
        """Send the request on a separate thread, because Ctrl-C cannot interrupt a thread that waits for a socket.

        `sent` gets the response. The caller creates it, because an interrupt may arrive before this method returns.
        """
        client, options = self._client, self._options()

        def work() -> None:
            try:
                answer = client.sqlpp.run(
                    text, dataverse=self.dataverse, client_context_id=own_id, timeout_s=self.timeout_s, options=options
                )
            except BaseException as error:  # noqa: BLE001 - the waiting caller gets it
                sent.set_exception(error)
            else:
                sent.set_result(answer)

        threading.Thread(target=work, daemon=True, name="limnos-sql").start()

    def _wait(self, sent: Future[StatementResponse]) -> StatementResponse:
        """Wait for the response. After `NOTED_S` a note says that the command waits, and how to end it."""
        try:
            return sent.result(NOTED_S)
        except TimeoutError:
            if not sent.done() and self.output_format == "table":
                print(_WAITS, file=sys.stderr)
        return sent.result()

    def _options(self) -> dict[str, str]:
        """Return the request parameters that select the format of the results and plans, and limit the warnings."""
        options = {"max-warnings": str(WARNINGS_MAX)}
        if self.results is not None:
            options["format"] = FORMATS[self.results]
        if self.results is None and self.output_format == "table":
            options["plan-format"] = "string"
        return options

    def _cancel(self, sent: Future[StatementResponse], own_id: str) -> StatementResponse:
        """Cancel a statement on the server and wait until it ends. Raises the statement's error, or TimeoutError."""
        print("cancelling", file=sys.stderr)
        until = time.monotonic() + CANCEL_S
        with self.connect() as client:
            while not sent.done() and time.monotonic() < until:
                try:
                    is_found = client.sqlpp.cancel(own_id)  # False if it has not begun yet or runs on another node
                except ClientError:
                    break
                pause_s = until - time.monotonic() if is_found else CANCEL_EVERY_S
                try:
                    return sent.result(max(pause_s, 0))
                except TimeoutError:
                    continue
        return sent.result(0)

    def _replace_client(self) -> None:
        """Close the client on which a request is still waiting, and open a new client."""
        self._client.close()
        self._client = self.connect()

    # -- showing -------------------------------------------------------------------------------------------------

    def _show(self, results: Sequence[msgspec.Raw]) -> None:
        """Print the results. A plan, a single string of several lines, is printed without a table."""
        if self.results is None and self.output_format == "table" and len(results) == 1:
            only = msgspec.json.decode(results[0])
            if isinstance(only, str) and "\n" in only:
                print(visible(only))
                return
        if self.results is None:
            show(results, output_format=self.output_format)
        else:
            show_texts(results)

    def _print_success(self, text: str) -> None:
        """Say that statements succeeded that return no rows, such as COPY TO; programs get no such line."""
        if self.output_format != "table":
            return
        names = re.findall(
            r"(?:^|;)\s*(copy|load|insert|upsert|delete|update|create|drop|alter)\b", text, re.IGNORECASE
        )
        done = ", ".join(dict.fromkeys(name.upper() for name in names))
        print(f"done: {done or 'the statement'} succeeded, without rows to show", file=sys.stderr)

    def _print_failure(self, statement_failure: StatementFailure, text: str) -> None:
        """Print an error with its position in the text."""
        from limnos.rooms.sqlpp.language.hints import hint_of_text

        place = error_position(statement_failure.message)
        hint = (
            statement_failure.hint
            or hint_of_text(statement_failure.message, text, catalog=CATALOG)
            or hint_for_names(self._client, statement_failure.message, catalog=CATALOG)
        )
        statement = text.strip()
        if hint is not None and hint.endswith(f"leave out {CATALOG}") and "\n" not in statement:
            hint += f": {quote_command(['sql', '-c', with_datasets(statement)])}"
        failure = CommandFailure(
            exit_code=statement_failure.exit_code,
            code=statement_failure.code,
            message=statement_failure.message,
            hint=hint,
            details={} if place is None else {"line": place.line, "column": place.column},
        )
        print(render(failure, self.output_format), file=sys.stderr)
        marked = None if place is None or self.output_format == "json" else underline_position(text, place)
        if marked is not None:
            print(visible(marked), file=sys.stderr)


def show_texts(results: Sequence[msgspec.Raw]) -> None:
    """Print a line for each result: a string without control characters unchanged, other values as JSON."""
    on_terminal = sys.stdout.isatty()
    for row in results:
        value = bytes(row)
        text = msgspec.json.decode(value, type=str) if value.startswith(b'"') else value.decode()
        print(visible(text) if on_terminal else text)


def _show_warnings(answer: StatementResponse) -> None:
    """Print the warnings in the response, and the count of omitted warnings."""
    for warning in answer.warnings:
        print(visible(f"warning: {warning.msg}"), file=sys.stderr)
    count = answer.metrics.get("warningCount")
    if isinstance(count, int) and count > len(answer.warnings):
        print(f"warning: {count - len(answer.warnings)} more warnings", file=sys.stderr)


def _times(answer: StatementResponse, elapsed_s: float) -> str:
    """Format the count of rows, the time until the response arrived, and the server's elapsed time."""
    rows = "" if answer.results is None else f"{len(answer.results)} rows, "
    server_time = answer.metrics.get("elapsedTime")
    return f"{rows}{elapsed_s:.3f} s" + (visible(f" (server {server_time})") if isinstance(server_time, str) else "")


def show(results: Sequence[msgspec.Raw], *, output_format: Format) -> None:
    """Print rows as one JSON document, or as a table whose columns are the fields of objects."""
    if output_format == "json":
        print(to_json(list(results)))
        return
    rows = [_cells(msgspec.json.decode(row)) for row in results]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    show_rows(rows, columns, output_format=output_format, empty="no rows", verbatim=True)


def _cells(row: object) -> Mapping[str, str]:
    """Format a row for a table: an object by its fields, other values as one cell. MISSING is empty, NULL is `null`."""
    fields = row if isinstance(row, dict) and row else {"value": row}
    return {str(name): value if isinstance(value, str) else to_json(value, indent=-1) for name, value in fields.items()}
