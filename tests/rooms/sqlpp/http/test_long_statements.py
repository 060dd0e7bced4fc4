# SPDX-License-Identifier: Apache-2.0
"""The process in which statements are parsed, bound and evaluated: the event loop for short ones, a worker process for
others.
"""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.offloaded_work import BIND, EVALUATE, PARAMETERS, PARSE
from limnos.rooms.sqlpp.services.requests.names import TEXT_SHORT
from limnos.rooms.sqlpp.services.requests.node_limits import SQLPP_OFFLOADER
from limnos.services.request.offloaded_work import InlineOffloader
from tests.http.driver import DriverNode
from tests.rooms.sqlpp.http.wire import ask, form, refusal, rows, status_and_message

pytestmark = pytest.mark.slow

ONE_LONG = "select value [" + ", ".join(["1"] * 2000) + "]"
DOUBLING = "declare function f0(x) {x+x};" + "".join(
    f"declare function f{at}(x) {{f{at - 1}(x)+f{at - 1}(x)}};" for at in range(1, 12)
)


class RecordingOffloader(InlineOffloader):
    """Runs offloaded work in this process, and records each piece with its caller."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.callers: set[str] = set()

    async def do(self, name: str, *parts: bytes, caller: str = "") -> list[bytes]:
        """Execute offloaded work."""
        self.done.append(name)
        self.callers.add(caller)
        return await super().do(name, *parts, caller=caller)


@pytest.fixture
def recorded(node: DriverNode) -> RecordingOffloader:
    """Return the node's offloader, which records its work."""
    offloader = RecordingOffloader()
    SQLPP_OFFLOADER.put(node.built.services, offloader)
    return offloader


@pytest.mark.parametrize(
    "text, expected",
    [
        ("select value 1", []),
        ("select value x.DataverseName from Metadata.`Dataverse` x", []),
        ("select value array_length(array_sort(array_range(0, 9999)))", [EVALUATE]),
        ("select value regexp_contains('a', 'a')", [EVALUATE]),
        ("select value array_length(array_repeat(repeat('x', 16000), 99))", [EVALUATE]),
        (ONE_LONG, [PARSE, BIND, EVALUATE]),
        ("select value " + " or ".join(["true"] * 1300), [PARSE, BIND, EVALUATE]),
        (DOUBLING + "select value f11(1)", [BIND, EVALUATE]),
        ("select value 1; " * 200, [PARSE]),
        ("explain " + ONE_LONG, [PARSE, BIND]),
    ],
)
def test_long_statements_run_in_a_worker_process(
    node: DriverNode, recorded: RecordingOffloader, text: str, expected: list[str]
) -> None:
    """A long text, many expressions or many units of work move the work of a statement from the event loop to a worker
    process.
    """
    answer = ask(node, text)

    assert answer.json()["status"] == "success", answer.body
    assert recorded.done == expected
    assert recorded.callers <= {"admin"}


def test_long_statements_behave_like_short_ones(node: DriverNode, recorded: RecordingOffloader) -> None:
    """Parameters, declared functions, USE and several statements have the same meaning in a worker process as on the
    event loop.
    """
    padding = "/* " + "x" * TEXT_SHORT + " */"
    rows(node, "create dataverse a; create view a.v as select value 41")
    text = f"use a; declare function f(x) {{ x + ? }}; select value f(w) {padding} from v w; select value [?, $b]"

    results = rows(node, text, args=[1, 2], **{"$b": 3})

    assert results == [42, [2, 3]]
    assert recorded.done == [PARSE, *[BIND] * recorded.done.count(BIND), EVALUATE]


def test_errors_of_long_statements_have_line_and_column(node: DriverNode, recorded: RecordingOffloader) -> None:
    """Errors of long statements have the line and column of the original text."""
    padding = "/* " + "x" * TEXT_SHORT + " */"

    assert "in line 2, at column 14" in refusal(node, f"{padding}\nselect value nobody(1)")[1]
    assert "In line 2" in refusal(node, f"{padding}\nselect value 1 1")[1]
    assert recorded.done[0] == PARSE


def test_a_long_view_is_parsed_by_a_process(node: DriverNode, recorded: RecordingOffloader) -> None:
    """A worker process parses a long view text for every reader."""
    rows(node, f"create dataverse a; create view a.v as {ONE_LONG}")
    recorded.done.clear()

    assert rows(node, "select value array_length(x) from a.v x") == [2000]
    assert recorded.done[0] == BIND
    assert PARSE not in recorded.done


def test_overload_of_a_long_function_is_parsed_in_a_worker(node: DriverNode, recorded: RecordingOffloader) -> None:
    """A worker process also parses a short function that has the name of a long one, because one object stores both."""
    rows(node, f"create dataverse a; create function a.f(x) {{ {ONE_LONG[13:]}[x] }}; create function a.f() {{ 7 }}")
    recorded.done.clear()

    assert rows(node, "select value a.f(3)") == [1]
    assert recorded.done[0] == BIND
    recorded.done.clear()
    assert rows(node, "a.f()") == [7]
    assert recorded.done[0] == BIND
    rows(node, "create view a.w as select value a.f(1)")
    assert rows(node, "select value x from a.w x") == [1]
    assert refusal(node, "a.f(1, 2)")[1].startswith("ASX1081: ")


LONG_COMMENT = f"select value [?, $b] /* {'%,[' * 30_000} */"


def test_long_bodies_are_decoded_like_short_ones(node: DriverNode, recorded: RecordingOffloader) -> None:
    """A form and a JSON object over 64 KiB have the same meaning as short ones."""
    results = rows(node, LONG_COMMENT, args=[1], **{"$b": {"c": [2]}})
    answer = form(node, ("statement", LONG_COMMENT), ("args", "[1]"), ("$b", '{"c": [2]}'))

    assert results == answer.json()["results"] == [[1, {"c": [2]}]]
    assert recorded.done.count(PARAMETERS) == 2


@pytest.mark.parametrize("sends_form", [False, True])
@pytest.mark.parametrize("count", [1000, 50_001])
def test_parameters_with_many_values_are_refused(
    node: DriverNode, recorded: RecordingOffloader, count: int, *, sends_form: bool
) -> None:
    """The number of parameter values is limited in JSON and forms, because they are decoded on the event loop."""
    values = [1] * count
    if sends_form:
        answer = form(node, ("statement", "select value array_length($a)"), ("$a", str(values)))
    else:
        answer = ask(node, "select value array_length($a)", **{"$a": values})

    if count == 1000:
        assert answer.json()["results"] == [count]
    else:
        assert status_and_message(answer) == (
            400,
            "ASX0047: The parameters have more than 50000 values: send less at once",
        )
        assert recorded.done in ([], [PARAMETERS])
