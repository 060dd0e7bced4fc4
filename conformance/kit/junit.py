# SPDX-License-Identifier: Apache-2.0
"""JUnit's XML report in, a score out; and the comparison with the expectation.

Job: values and text only. May import the standard library. It must not know how tests are run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

_ABORTED = "org.opentest4j.TestAbortedException: "


@dataclass(frozen=True, slots=True)
class Outcome:
    """One test: `verdict` is passed, failed or skipped; `reason` is the failure's text or the reason for the skip."""

    name: str
    verdict: str
    reason: str
    seconds: float

    @property
    def headline(self) -> str:
        """The first line of the reason that is not empty."""
        return next((line.strip() for line in self.reason.splitlines() if line.strip()), "")


@dataclass(frozen=True, slots=True)
class Expectation:
    """The tests that are expected not to pass: names of failing and of skipped tests, and the total number of tests."""

    failed: frozenset[str]
    skipped: frozenset[str]
    total: int


def read_report(directory: Path) -> list[Outcome]:
    """Read every `TEST-*.xml` below the directory; sorted by name."""
    outcomes = [
        _outcome(case)
        for file in sorted(directory.glob("TEST-*.xml"))
        for case in ET.parse(file).getroot().iter("testcase")
    ]
    return sorted(outcomes, key=lambda outcome: outcome.name)


def _outcome(case: ET.Element) -> Outcome:
    name, seconds = case.get("name", ""), float(case.get("time", "0").replace(",", ""))
    for tag, verdict in (("failure", "failed"), ("error", "failed"), ("skipped", "skipped")):
        if (element := case.find(tag)) is not None:
            reason = (element.get("message") or element.text or "").removeprefix(_ABORTED)
            return Outcome(name=name, verdict=verdict, reason=reason, seconds=seconds)
    return Outcome(name=name, verdict="passed", reason="", seconds=seconds)


def of(outcomes: Iterable[Outcome], verdict: str) -> list[Outcome]:
    """The outcomes with that verdict."""
    return [outcome for outcome in outcomes if outcome.verdict == verdict]


def parse_expectation(text: str) -> Expectation:
    """Read lines `total N`, `fail NAME` and `skip NAME`; what follows a `#` is a comment."""
    words = [line.partition("#")[0].split() for line in text.splitlines()]
    pairs = [(line[0], " ".join(line[1:])) for line in words if line]
    return Expectation(
        failed=frozenset(name for kind, name in pairs if kind == "fail"),
        skipped=frozenset(name for kind, name in pairs if kind == "skip"),
        total=next(int(value) for kind, value in pairs if kind == "total"),
    )


def complaints(outcomes: list[Outcome], expected: Expectation) -> list[str]:
    """Return the differences between a run and the expectation. An unexpected pass is one, too, so that the list is
    kept current.
    """
    failed = {outcome.name for outcome in of(outcomes, "failed")}
    skipped = {outcome.name for outcome in of(outcomes, "skipped")}
    problems = [f"fails, but is expected to pass: {name}" for name in sorted(failed - expected.failed)]
    problems += [f"is skipped, but is expected to run: {name}" for name in sorted(skipped - expected.skipped)]
    better = (expected.failed - failed) | (expected.skipped - skipped)
    problems += [f"no longer true, take it out of the expectation: {name}" for name in sorted(better)]
    if len(outcomes) != expected.total:
        problems.append(f"{len(outcomes)} tests ran, {expected.total} are expected")
    return problems


def as_json(outcomes: list[Outcome], *, kit: str) -> str:
    """The score as a JSON document: counts, and each test with its verdict and reason."""
    counts = {verdict: len(of(outcomes, verdict)) for verdict in ("passed", "failed", "skipped")}
    tests = [
        {"name": each.name, "verdict": each.verdict, "reason": each.reason, "seconds": each.seconds}
        for each in outcomes
    ]
    return json.dumps({"kit": kit, **counts, "tests": tests}, indent=1, ensure_ascii=False) + "\n"


def as_text(outcomes: list[Outcome]) -> str:
    """The score for a terminal: counts, then the tests that did not pass with the first line of the reason."""
    lines = [", ".join(f"{len(of(outcomes, verdict))} {verdict}" for verdict in ("passed", "failed", "skipped"))]
    lines += [
        f"  {verdict} {each.name}: {each.headline}"
        for verdict in ("failed", "skipped")
        for each in of(outcomes, verdict)
    ]
    return "\n".join(lines)
