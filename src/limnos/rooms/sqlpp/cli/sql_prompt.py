# SPDX-License-Identifier: Apache-2.0
"""The SQL++ shell: line editing, history, completion, and commands that begin with a backslash.

Typing never blocks: names for completion are loaded on a separate thread, and the previous names are offered until it
has finished.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, cast

import msgspec
from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from limnos import __version__
from limnos.cli.output import visible
from limnos.client.errors import ClientError
from limnos.names import canonical
from limnos.names.display import render
from limnos.names.errors import InvalidName
from limnos.names.sqlpp import KEYWORDS
from limnos.rooms.sqlpp.cli import ResultText
from limnos.rooms.sqlpp.cli.sql_session import CATALOG, FORMATS, SqlSession
from limnos.rooms.sqlpp.cli.sql_text import is_whole, takes_words
from limnos.rooms.sqlpp.language.dialects import advice_at
from limnos.rooms.sqlpp.language.functions.table import FUNCTIONS

FRESH_S: Final = 30.0
"""Seconds for which loaded names are used."""
_MARKS: Final = ("\\", ".", "!")
"""The beginnings of commands, the last two of other shells: no statement begins so."""
_WORD: Final = re.compile(r"[A-Za-z0-9_$.`]+\Z")
QUERY: Final = """
select value [d.DataverseName, ''] from Metadata.`Dataverse` d limit 10000;
select value [d.DataverseName, d.DatasetName] from Metadata.`Dataset` d limit 10000;
select value [d.DataverseName, d.DatatypeName] from Metadata.`Datatype` d limit 10000;
select value [d.DataverseName, d.Name] from Metadata.`Function` d limit 10000;
select value [d.DataverseName, d.SynonymName] from Metadata.`Synonym` d limit 10000;
"""
HELP: Final = r"""A statement ends with a semicolon; Enter before that goes on in the next line.
  \format table|json                          show results as a table or as one JSON document
  \format json-lines|csv|adm|lossless-json    show results as the server writes them, a line for each one
  \help                                       this list
  \quit                                       leave, as Ctrl-D does
EXPLAIN before a query shows its plan. Ctrl-C cancels a running statement, and clears a line. Tab completes; arrow keys
and Ctrl-R search the history.
"""


class CompletionNames:
    """A cache of names for completion, as statements spell them. A separate thread reloads it after `FRESH_S`
    seconds.
    """

    def __init__(self, session: SqlSession) -> None:
        self.session = session
        self._known: tuple[tuple[tuple[str, ...], str], ...] = ()
        self._read_at = -FRESH_S
        self._reading: threading.Thread | None = None

    def names(self) -> Iterator[str]:
        """Yield all cached names with their dataverse, and those of the current dataverse also without it.

        Starts a reload if the names are older than `FRESH_S` seconds.
        """
        self.refresh()
        here = self.session.dataverse_text
        for dataverse, name in self._known:
            yield render((*dataverse, name) if name else dataverse)
            if name and render(dataverse) == here:
                yield render((name,))

    def refresh(self) -> None:
        """Start a thread that reloads the names if they are older than `FRESH_S` seconds."""
        old = time.monotonic() - self._read_at > FRESH_S or self.session.names_changed
        if old and self._reading is None:
            self._read_at = time.monotonic()
            self.session.names_changed = False
            self._reading = threading.Thread(target=self._read, daemon=True, name="limnos-names")
            self._reading.start()

    def _read(self) -> None:
        try:
            with self.session.connect() as client:
                answer = client.sqlpp.run(QUERY, timeout_s=FRESH_S)
            self._known = tuple(names_of(answer.results or ()))
        except (ClientError, msgspec.DecodeError, OSError):
            pass  # names are optional; keywords are still offered
        finally:
            self._reading = None


def names_of(results: tuple[msgspec.Raw, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the rows of `QUERY` as pairs of a dataverse's parts and the name of an object in it (empty for the
    dataverse itself).
    """
    for row in results:
        dataverse, name = msgspec.json.decode(row, type=tuple[str, str])
        try:
            yield canonical.decode(dataverse), name
        except InvalidName:
            continue


class SqlCompleter(Completer):
    """The completer of the prompt: offers names, keywords and functions, except in strings and comments."""

    def __init__(self, names: Callable[[], Iterator[str]]) -> None:
        self.names = names
        self.functions = sorted(name.replace("-", "_") for name in FUNCTIONS)

    def get_completions(self, document: Document, _event: CompleteEvent) -> Iterator[Completion]:
        """Yield completions of the word before the cursor."""
        text_before_cursor = document.text_before_cursor
        match = _WORD.search(text_before_cursor)
        if match is None or not takes_words(text_before_cursor[: match.start()]):
            return
        word, seen_words = match[0], set[str]()
        for name, kind in self._candidates(word):
            if name.startswith(word) and name not in seen_words:
                seen_words.add(name)
                yield Completion(name, start_position=-len(word), display=visible(name), display_meta=kind)

    def _candidates(self, word: str) -> Iterator[tuple[str, str]]:
        """Yield the completions of a word: names first, then keywords in the case of the typed word."""
        yield from ((name, "") for name in sorted(self.names()))
        if "." not in word:
            yield from ((key if word.isupper() else key.lower(), "keyword") for key in sorted(KEYWORDS))
            yield from ((f"{name}(", "function") for name in self.functions)


def run_shell(session: SqlSession, history: Path | None) -> int:
    """Read statements from a terminal and run them, until Ctrl-D or a command ends the shell. Returns the exit code."""
    completion = CompletionNames(session)
    completion.refresh()
    prompt: PromptSession[str] = PromptSession(
        history=history_at(default_history() if history is None else history),
        completer=SqlCompleter(completion.names),
        complete_in_thread=True,
        multiline=Condition(lambda: not _can_be_sent(get_app().current_buffer.text)),
        prompt_continuation=lambda width, _number, _wrapped: "... ".rjust(width),
        enable_history_search=False,
    )
    print(f"limnos {__version__}. \\help lists the commands; Ctrl-D exits.")
    while True:
        try:
            text = prompt.prompt(lambda: f"{visible(session.dataverse_text)}> ").strip()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return 0
        if text.startswith(_MARKS) or text.rstrip(";").strip().lower() in ("quit", "exit"):
            if not run_shell_command(session, text):
                return 0
        elif text.strip("; \t\n"):
            with suppress(KeyboardInterrupt):  # interrupted while rows are printed
                session.run(text, timed=True)
            completion.refresh()  # while the user types the next statement


def _can_be_sent(text: str) -> bool:
    stripped = text.strip()
    return stripped.startswith(_MARKS) or stripped.lower() in ("", "quit", "exit") or is_whole(text)


def run_shell_command(session: SqlSession, text: str) -> bool:
    """Run a command of the shell, a word behind a backslash such as `help` or `format`. Returns False to leave the
    shell.
    """
    word, _, rest = text.strip("\\; \t\n").partition(" ")
    if word in ("q", "quit", "exit"):
        return False
    if word == "format" and rest.strip() in ("table", "json"):
        session.output_format, session.results = "json" if rest.strip() == "json" else "table", None
    elif word == "format" and rest.strip() in FORMATS:
        session.results = cast("ResultText", rest.strip())
    elif word in ("help", "h", "?"):
        print(HELP, end="")
    else:
        advice = advice_at(text, 0, catalog=CATALOG) or "\\help lists the commands"
        print(visible(f"'{text}' is not a command of the shell: {advice}"), file=sys.stderr)
    return True


def default_history() -> Path:
    """Return the default path of the history file, in the user's state directory."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "limnos" / "sql_history"


def history_at(path: Path) -> History:
    """Open the history file with mode 600. If `path` is empty or cannot be created, keep the history in memory."""
    if str(path) in ("", "."):
        return InMemoryHistory()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)
    except OSError as error:
        print(visible(f"history is not saved: {error}"), file=sys.stderr)
        return InMemoryHistory()
    return FileHistory(path)
