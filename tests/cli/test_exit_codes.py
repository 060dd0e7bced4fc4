# SPDX-License-Identifier: Apache-2.0
"""Every operation keeps the table of exit codes: what the server answers determines the code."""

from __future__ import annotations

import pytest

from limnos.cli.exit_codes import TABLE, ExitCode
from limnos.cli.operations import OPERATIONS, Operation, plural
from limnos.pipeline.run.result import EXIT_CODES
from tests.cli.conftest import Run
from tests.client.fake import FakeAnswer, FakeServer

pytestmark = pytest.mark.slow

VALUES = {
    "PATH": "main.raw.t",
    "TABLE": "main.raw.t",
    "SOURCE": "main.raw.t",
    "TARGET": "main.raw.u",
    "CATALOG": "main",
    "ID": "1234567",
    "URL": "https://hooks.example.com/x",
    "RUN": "0192f0c1-7b1e-7cc3-98c4-dc0c0c07398f",
    "JOB": "0192f0c1-7b1e-7cc3-98c4-dc0c0c07398f",
    "EXECUTABLE": "/bin/true",
}
"""Arguments of operations; others are the name `ana`."""
FLAGS = {
    "create catalog": ["--provider", "lakehouse-iceberg"],
    "create restriction": ["--mask", "c=null"],
    "set restriction": ["--mask", "c=null"],
    "create policy": ["--content", "{}"],
}
LOCAL = {"list profiles", "set profile", "set password", "create pipeline"}
"""Operations that ask no server, or read standard input or write a file before they do."""


def words_of(operation: Operation) -> list[str]:
    """Return the operation as it is typed, with its arguments."""
    kind = plural(operation.kind) if operation.verb == "list" else operation.kind
    values = [VALUES.get(name.strip("[]"), "ana") for name in operation.arguments.split()]
    if operation.kind in {"metalake", "catalog"} and operation.arguments == "PATH":
        values = ["main"]
    flags = FLAGS.get(f"{operation.verb} {operation.kind}", [])
    if operation.command.startswith("set "):
        flags = ["--comment", "c"]
    return [operation.verb, kind, *values, *flags]


@pytest.mark.parametrize(
    "status,code,expected",
    [
        (403, "forbidden", ExitCode.DENIED),
        (404, "not-found", ExitCode.NOT_FOUND),
        (409, "already-exists", ExitCode.CONFLICT),
        (418, "teapot", ExitCode.FAILED),
    ],
)
def test_operation_ends_with_the_code_of_the_answer(
    limnos: Run, fake: FakeServer, *, status: int, code: str, expected: ExitCode
) -> None:
    """If the server refuses every request for one reason, every operation ends with the exit code of that reason."""
    fake.default = FakeAnswer(
        status, {"code": 1, "type": "Refusal", "message": "no", "error": {"code": code, "message": "no"}}
    )
    typed = [words for each in OPERATIONS if " ".join((words := words_of(each))[:2]) not in LOCAL]

    codes = {" ".join(words): limnos(*words).code for words in typed}

    assert len(codes) > 80
    assert {words: code for words, code in codes.items() if code != expected} == {}


def test_wrong_arguments_of_an_operation_are_the_code_of_usage(limnos: Run, fake: FakeServer) -> None:
    """An unknown flag ends every operation with the code of usage, and no request is sent."""
    codes = {" ".join(words): limnos(*words, "--zzz").code for words in map(words_of, OPERATIONS)}

    assert {words: code for words, code in codes.items() if code != ExitCode.USAGE} == {}
    assert fake.asked == []


def test_table_has_every_exit_code_once() -> None:
    """The table has each code of commands and of pipeline runs, and no code twice."""
    numbers = [row.numbers for row in TABLE]
    first, last = (int(number) for number in numbers[-2].split(" to "))

    single = [int(number) for number in numbers if number.isdecimal()]
    assert single == sorted({int(code) for code in ExitCode})
    assert set(EXIT_CODES.values()) <= {*single, *range(first, last + 1)}
