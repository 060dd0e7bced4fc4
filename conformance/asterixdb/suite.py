# SPDX-License-Identifier: Apache-2.0
"""The cases of AsterixDB's suite, as its files declare them.

Reads `testsuite_sqlpp.xml` with the files that it includes, and lists each case's steps and expected results. May
import the standard library. It must not know how a step is executed.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

RUNTIME: Final = Path("asterix-app/src/test/resources/runtimets")
DATA: Final = Path("asterix-app")
"""The base directory of paths such as `asterix_nc1://data/…`."""
_MARK: Final = "{urn:xml.testframework.asterix.apache.org}"
_ENTITY: Final = re.compile(r'<!ENTITY\s+(\w+)\s+SYSTEM\s+"([^"]+)">')
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_DOCTYPE: Final = re.compile(r"<!DOCTYPE.*?\]>", re.DOTALL)
_FILE: Final = re.compile(r"(?P<name>.*)\.(?P<number>\d+)\.(?P<kind>[^.].*)")


@dataclass(frozen=True, slots=True)
class Step:
    """One file of a case: its number and its kind, such as `ddl.sqlpp` or `get.http`."""

    number: int
    kind: str
    file: Path

    def read(self) -> str:
        """Return the text of the file."""
        return self.file.read_bytes().decode("utf-8", "replace")


@dataclass(frozen=True, kw_only=True)
class Case:
    """One case of the suite: the location of its files, and the expected errors."""

    group: str
    key: str
    queries: Path
    results: Path
    compare: str
    errors: tuple[str, ...]
    placeholders: bool

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The files to send, in order."""
        return _numbered(self.queries)

    @cached_property
    def expected(self) -> tuple[Step, ...]:
        """The files of expected results, in order: the n-th one belongs to the n-th step with results."""
        return _numbered(self.results)


def _numbered(directory: Path) -> tuple[Step, ...]:
    if not directory.is_dir():
        return ()
    steps = []
    for file in directory.iterdir():
        parts = _FILE.fullmatch(file.name)
        if parts is not None and file.is_file():
            steps.append(Step(int(parts["number"]), parts["kind"].rstrip("."), file))
    return tuple(sorted(steps, key=lambda step: (step.number, step.file.name)))


def root_of(directory: Path) -> Path:
    """Return the directory with `asterix-app` in a checkout. Raises FileNotFoundError."""
    for each in (directory, directory / "asterixdb"):
        if (each / RUNTIME / "testsuite_sqlpp.xml").is_file():
            return each.resolve()
    raise FileNotFoundError(f"{directory} has no {RUNTIME}/testsuite_sqlpp.xml: give a checkout of apache/asterixdb")


def cases_of(root: Path) -> list[Case]:
    """Return all cases of the suite. A name that occurs again gets a number."""
    runtime = root / RUNTIME
    suite = ET.fromstring(_expanded(runtime))
    queries, results = (runtime / suite.get(f"{each}OffsetPath", "") for each in ("Query", "Result"))
    cases_by_key: dict[str, Case] = {}
    for group, case in _cases(suite, ()):
        path = case.get("FilePath", "")
        for unit in case.findall(f"{_MARK}compilation-unit"):
            name, output = unit.get("name", ""), unit.find(f"{_MARK}output-dir")
            key, times = f"{path}/{name}", 1
            while key in cases_by_key:
                times += 1
                key = f"{path}/{name}#{times}"
            cases_by_key[key] = Case(
                group=group or path.partition("/")[0],
                key=key,
                queries=queries / path / name,
                results=results / path / ((output.text or "") if output is not None else name),
                compare=output.get("compare", "Text") if output is not None else "Text",
                errors=tuple((each.text or "").strip() for each in unit.findall(f"{_MARK}expected-error")),
                placeholders=unit.find(f"{_MARK}placeholder") is not None,
            )
    return list(cases_by_key.values())


def _cases(element: ET.Element, groups: tuple[str, ...]) -> list[tuple[str, ET.Element]]:
    """Return the cases below an element, each with the name of its group: the second level, or the only one."""
    cases: list[tuple[str, ET.Element]] = []
    for each in element:
        if each.tag == f"{_MARK}test-group":
            cases += _cases(each, (*groups, each.get("name", "")))
        elif each.tag == f"{_MARK}test-case":
            named = [group for group in groups if group != "sqlpp_queries"]
            cases.append((named[0] if named else "", each))
    return cases


def _expanded(runtime: Path) -> str:
    """Return the suite's text with its includes in place."""
    text = (runtime / "testsuite_sqlpp.xml").read_text(encoding="utf-8")
    files = dict(_ENTITY.findall(text))
    body = _DOCTYPE.sub("", _COMMENT.sub("", text))

    def included(match: re.Match[str]) -> str:
        file = files.get(match[1])
        return match[0] if file is None else _COMMENT.sub("", (runtime / file).read_text(encoding="utf-8"))

    return re.sub(r"&(\w+);", included, body)
