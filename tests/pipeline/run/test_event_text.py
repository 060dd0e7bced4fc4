# SPDX-License-Identifier: Apache-2.0
"""Events as lines for people and for programs."""

from __future__ import annotations

import json

import pytest

from limnos.pipeline.run.event_text import json_lines, plain_lines
from limnos.pipeline.run.events import RunEvent
from limnos.pipeline.run.result import EXIT_CODES, EndReason, RunFailed, RunResult

DONE = RunEvent(run="r", step="a.t", state="done", rows=1200, bytes=3 << 20, seconds=1.26)
UNDER_WAY = RunEvent(run="r", step="a.t", state="running", tasks_done=3, tasks=4, left_s=2.0)


def test_each_event_is_one_line_of_json() -> None:
    """Unknown fields are omitted, and additional facts are beside the others."""
    lines: list[str] = []
    hear = json_lines(lines.append)

    hear(DONE)
    hear(RunEvent(run="r", state="published", further={"exit_code": 0}))

    assert [json.loads(line) for line in lines] == [
        {"run": "r", "step": "a.t", "state": "done", "rows": 1200, "bytes": 3145728, "seconds": 1.26},
        {"run": "r", "state": "published", "exit_code": 0},
    ]


def test_failed_step_has_its_position_in_the_file() -> None:
    """The message of a failed step begins with its position, as the problems of a check; JSON has it as a field."""
    lines: list[str] = []
    event = RunEvent(run="r", step="a.t", state="failed", message="no x", further={"position": "p.yaml:7:5"})

    plain_lines(lines.append)(event)
    json_lines(lines.append)(event)

    assert lines[0].splitlines() == ["FAILED  a.t", "        p.yaml:7:5: no x"]
    assert json.loads(lines[1])["position"] == "p.yaml:7:5"


def test_violated_rule_shows_rows_of_its_sample() -> None:
    """Below a broken rule stand the first rows that break it; a rule that holds, and a sample of keys, have none."""
    lines: list[str] = []
    sample = json.dumps([{"id": str(number), "price": None} for number in range(5)])
    findings = (
        {"held": False, "broken": 5, "message": "price > 0: 5 of 9 rows", "sample": sample},
        {"held": False, "broken": 2, "message": "2 rows share their key (id)", "sample": "id=1 (2 rows)"},
        {"held": True, "broken": 0, "message": "id > 0", "sample": None},
    )

    plain_lines(lines.append)(RunEvent(run="r", step="a.t", state="failed", findings=findings))

    assert [line.strip() for line in lines[0].splitlines()[1:]] == [
        "price > 0: 5 of 9 rows",
        "such as id = 0, price = NULL",
        "such as id = 1, price = NULL",
        "such as id = 2, price = NULL",
        "2 rows share their key (id)",
    ]


def test_samples_of_several_rules_name_their_rules() -> None:
    """If several rules have samples, each line of a sample begins with its rule: the messages may stand above them."""
    lines: list[str] = []
    findings = tuple(
        {"rule": rule, "held": False, "broken": 1, "message": f"{rule}: 1 row", "sample": json.dumps([{"id": rule}])}
        for rule in ("paid", "known")
    )

    event = RunEvent(run="r", step="a.t", state="failed", message="known: 1 row", findings=findings)
    plain_lines(lines.append)(event)

    assert [line.strip() for line in lines[0].splitlines()[1:]] == [
        "known: 1 row",
        "paid: 1 row",
        "paid: such as id = paid",
        "known: such as id = known",
    ]


def test_violated_rule_is_reported_once() -> None:
    """The message of a step that failed by its rules has each of them; a warning is on a separate line."""
    lines: list[str] = []
    messages = [
        "price > 0: 1 of 561 rows (0.2%) violate it",
        "id: 2 of 561 rows (0.4%) violate it",
        "name: 3 of 561 rows",
    ]
    findings = tuple({"held": False, "message": each} for each in messages)

    plain_lines(lines.append)(
        RunEvent(run="r", step="b", state="failed", message="; ".join(messages[:2]), findings=findings)
    )

    assert lines == [f"FAILED  b\n        {messages[0]}; {messages[1]}\n        {messages[2]}"]


def test_rows_outside_of_the_table_are_reported() -> None:
    """A finished step says which rules kept rows out of its table; rules that nothing breaks are not mentioned."""
    lines: list[str] = []
    findings = (
        {"held": True, "broken": 1, "message": "known: 1 of 4 rows (25%) violate it; they are in quarantine"},
        {"held": True, "broken": 0, "message": "unique id: holds for all of 3 rows"},
    )

    plain_lines(lines.append)(RunEvent(run="r", step="b", state="done", rows=3, findings=findings))

    assert lines == ["done    b  3 rows\n        known: 1 of 4 rows (25%) violate it; they are in quarantine"]


def test_plain_log_omits_task_counts() -> None:
    """A log has a line per change of state, without task counts; violated rules are below their step."""
    lines: list[str] = []
    hear = plain_lines(lines.append)

    hear(UNDER_WAY)
    hear(DONE)
    hear(RunEvent(run="r", step="b", state="failed", message="no", findings=({"held": False, "message": "2 of 3"},)))

    assert lines == ["done    a.t  1,200 rows  3.0 MiB  1.3 s", "FAILED  b\n        no\n        2 of 3"]


def test_exit_code_is_zero_only_on_success() -> None:
    """The exit code is zero only if the run did what was requested, for schedulers that know only success and
    failure.
    """
    assert set(EXIT_CODES) == set(EndReason)
    for why in EndReason:
        ended = RunResult(run="r", pipeline="p", attempt=1, state="s", why=why, message="words")
        if why is EndReason.DONE:
            assert (ended.require(), ended.exit_code) == (ended, 0)
        else:
            assert ended.exit_code > 0
            with pytest.raises(RunFailed, match="words"):
                ended.require()
