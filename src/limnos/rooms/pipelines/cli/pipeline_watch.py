# SPDX-License-Identifier: Apache-2.0
"""`pipeline watch`: checks of a pipeline's file whenever it, or a file beside it, is saved."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from limnos.cli.command_line import typed_tokens
from limnos.cli.common import DEFAULTS, CommonFlags
from limnos.cli.failures import UsageError
from limnos.cli.output import visible
from limnos.rooms.pipelines.cli.helper.client import ENTRY, HelperFlag, HelperWish, ask
from limnos.rooms.pipelines.cli.helper.protocol import Answer
from limnos.rooms.pipelines.cli.pipeline_checks import OfflineFlag
from limnos.rooms.pipelines.cli.pipeline_runs import EnvironmentFlag

_POLL_S = 0.3
_SUFFIXES = (".yaml", ".yml", ".py", ".sql", ".csv")
_FILES_MAX = 5_000
_CLEAR = "\x1b[2J\x1b[3J\x1b[H"
_FileStates = Mapping[str, tuple[int, int, int]]


def watch(
    file: Path,
    /,
    *,
    env: EnvironmentFlag = None,
    offline: OfflineFlag = False,
    helper: HelperFlag = None,
    common: CommonFlags = DEFAULTS,
) -> int:
    """Check a pipeline's file now, and again whenever it or a file beside it is saved. Ctrl-C ends it.

    Each check is one line with its time, and one for each mistake; a terminal shows the newest check only. Files are
    those of the pipeline's directory that end in .yaml, .yml, .py, .sql or .csv.

    Parameters
    ----------
    file
        The pipeline, a file that ends in .yaml or .py.
    """
    del env, offline  # they are on the command line, which is passed on
    if not file.is_file():
        raise UsageError(f"there is no file {file}", hint="name a file that ends in .yaml or .py")
    tokens = check_tokens(typed_tokens.get())
    wish = HelperWish(flag=helper, default="always")
    former_states: _FileStates | None = None
    try:
        while True:
            states = file_states(file)
            if states != former_states:
                began = time.monotonic()
                answer = _check(tokens, wish=wish, common=common)
                _show(file, answer, seconds=time.monotonic() - began, output_format=common.output_format)
                former_states = states
            time.sleep(_POLL_S)
    except KeyboardInterrupt:
        return 0


def check_tokens(tokens: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command line of a check from that of `watch`, with JSON as its output and no flags of the helper."""
    words = ["check" if each == "watch" and number == 1 else each for number, each in enumerate(tokens)]
    return (*words[:2], "--output", "json", *_without_own_flags(words[2:]))


def _without_own_flags(words: list[str]) -> Iterator[str]:
    remaining = iter(words)
    for word in remaining:
        if word == "--output":
            next(remaining, None)
        elif not word.startswith("--output=") and word.partition("=")[0] not in ("--helper", "--no-helper"):
            yield word


def file_states(file: Path) -> _FileStates:
    """Return inode, size and time of the pipeline's file and of the files in its directory that it may use."""
    states: dict[str, tuple[int, int, int]] = {}
    for path in (str(file), *_paths(file.absolute().parent)):
        try:
            status = Path(path).stat()
        except OSError:
            continue
        states[path] = (status.st_ino, status.st_size, status.st_mtime_ns)
        if len(states) >= _FILES_MAX:
            break
    return states


def _paths(directory: Path) -> Iterator[str]:
    for here, directories, names in os.walk(directory):
        is_environment = "pyvenv.cfg" in names
        directories[:] = [] if is_environment else sorted(each for each in directories if each[0] not in "._")
        if not is_environment:
            yield from (f"{here}/{name}" for name in sorted(names) if name.endswith(_SUFFIXES))


def _check(tokens: tuple[str, ...], *, wish: HelperWish, common: CommonFlags) -> Answer:
    """Check by the helper, else in a process of its own, which reads the user's modules anew."""
    answer = ask(tokens, wish=wish, common=common) if wish.holds(os.environ) else None
    if answer is not None:
        return answer
    process = subprocess.run(
        [sys.executable, "-P", "-c", ENTRY, *tokens, "--no-helper"], capture_output=True, check=False
    )
    return Answer(exit_code=process.returncode, output=process.stdout, errors=process.stderr)


def _show(file: Path, answer: Answer, *, seconds: float, output_format: str) -> None:
    """Print the result of a check. JSON is one document a line."""
    try:
        document = msgspec.json.decode(answer.output, type=dict[str, object])
    except msgspec.DecodeError:
        document = {"file": str(file), "error": _failure(answer.errors)}
    at = time.strftime("%H:%M:%S")
    if output_format == "json":
        fields = {key: document[key] for key in ("file", "holds", "problems", "missing", "error") if key in document}
        print(msgspec.json.encode({"at": at, **fields}).decode(), flush=True)
        return
    clear = _CLEAR if sys.stdout.isatty() else ""
    lines = [f"{at}  {file}: {summary(document)} ({seconds:.1f} s)", *problem_lines(document)]
    print(clear + visible("\n".join(lines)), flush=True)


def _failure(errors: bytes) -> str:
    """Return the message of a failed check, from the JSON on its standard error."""
    text = errors.decode("utf-8", "replace").strip()
    try:
        message = msgspec.json.decode(text.splitlines()[-1], type=dict[str, dict[str, object]])["error"]["message"]
    except (msgspec.DecodeError, KeyError, IndexError):
        return text or "the check gave no answer"
    return str(message)


def summary(document: Mapping[str, object]) -> str:
    """Return a check's result in a few words."""
    if "error" in document:
        return f"not checked: {document['error']}"
    problems, missing = document.get("problems"), document.get("missing")
    count = len(problems) if isinstance(problems, list) else 0
    if count:
        return "1 problem" if count == 1 else f"{count} problems"
    if isinstance(missing, list) and missing:
        return f"no mistakes; {len(missing)} missing right{'s' if len(missing) > 1 else ''}"
    return "no problems found" + (" as far as was checked" if document.get("unchecked") else "")


def problem_lines(document: Mapping[str, object]) -> list[str]:
    """Return a line for each mistake and each missing right of a check."""
    lines = []
    for one in _entries(document, "problems"):
        place = ":".join(str(one[key]) for key in ("file", "line", "column") if key in one)
        lines.append(f"{place}: {one.get('message')}" if place else str(one.get("message")))
    lines += [f"you may not {one.get('needed_for')} {one.get('on')}" for one in _entries(document, "missing")]
    return lines


def _entries(document: Mapping[str, object], key: str) -> list[dict[str, object]]:
    value = document.get(key)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
